"""Tables and labelled arrays: xarray and pandas."""

import numpy as np

from tests.packages.package_function import PackageFunction

CURVE = np.array([1.0, 0.8, 0.55, 0.5, 0.31, 0.27])


def _xarray_reductions():
    import xarray as xr

    def f(x):
        a = xr.DataArray(x.reshape(2, 3), dims=("time", "place"))
        anomaly = a - a.mean("time")
        return (anomaly**2).sum().values

    return f, np.array([0.3, 1.2, -0.4, 2.0, 0.7, 1.1])


def _xarray_weighted():
    import xarray as xr

    def f(x):
        a = xr.DataArray(x.reshape(2, 3), dims=("time", "place"), coords={"place": [10, 20, 30]})
        w = xr.DataArray(np.array([0.2, 0.5, 0.3]), dims="place", coords={"place": [10, 20, 30]})
        return a.weighted(w).mean("place").values

    return f, np.array([0.3, 1.2, -0.4, 2.0, 0.7, 1.1])


def _xarray_groupby():
    import xarray as xr

    def f(x):
        a = xr.DataArray(x, dims="t", coords={"season": ("t", ["a", "b", "a", "b", "a", "b"])})
        return a.groupby("season").mean().values

    return f, np.array([0.3, 1.2, -0.4, 2.0, 0.7, 1.1])


def _xarray_dataset():
    import xarray as xr

    def f(x):
        ds = xr.Dataset({"u": ("t", x[:3]), "v": ("t", x[3:])}, coords={"t": [0.0, 1.0, 2.0]})
        ds["speed"] = np.hypot(ds.u, ds.v)
        return ds.speed.isel(t=slice(0, 2)).sum().values

    return f, np.array([0.3, 1.2, -0.4, 2.0, 0.7, 1.1])


def _xarray_interp():
    import xarray as xr

    def f(x):
        a = xr.DataArray(x, dims="t", coords={"t": np.arange(6.0)})
        return a.interp(t=[0.5, 2.25, 4.0]).values

    return f, np.array([0.3, 1.2, -0.4, 2.0, 0.7, 1.1])


def _pandas_frame():
    import pandas as pd

    def f(x):
        frame = pd.DataFrame({"a": x[:3], "b": x[3:]})
        return (frame["a"] * frame["b"]).sum()

    return f, np.array([0.3, 1.2, -0.4, 2.0, 0.7, 1.1])


def _pandas_series():
    import pandas as pd

    def f(x):
        s = pd.Series(x)
        return (s.to_numpy() ** 2).sum()

    return f, np.array([0.3, 1.2, -0.4, 2.0, 0.7, 1.1])


def _pandas_groupby():
    import pandas as pd

    def f(x):
        frame = pd.DataFrame({"key": ["a", "b", "a", "b", "a", "b"], "value": x})
        return frame.groupby("key")["value"].mean().to_numpy()

    return f, np.array([0.3, 1.2, -0.4, 2.0, 0.7, 1.1])


def _pandas_rolling():
    import pandas as pd

    def f(x):
        return pd.Series(x).rolling(3).mean().dropna().values

    return f, np.array([0.3, 1.2, -0.4, 2.0, 0.7, 1.1])


def _pandas_data():
    import pandas as pd

    frame = pd.DataFrame({"t": np.arange(6.0), "y": CURVE, "site": list("ababab")})

    def f(p):
        residual = frame["y"].to_numpy() - p[0] * np.exp(-p[1] * frame["t"].to_numpy())
        return (residual**2).sum()

    return f, np.array([1.1, 0.3])


def _pandas_series_of_data():
    import pandas as pd

    frame = pd.DataFrame({"t": np.arange(6.0), "y": CURVE})

    def f(p):
        model = p[0] * np.exp(-p[1] * frame["t"])
        return ((frame["y"] - model) ** 2).sum()

    return f, np.array([1.1, 0.3])


def _pandas_rows():
    import pandas as pd

    frame = pd.DataFrame({"t": np.arange(6.0), "y": CURVE})

    def f(p):
        total = 0.0
        for row in frame.itertuples():
            total = total + (row.y - p[0] * np.exp(-p[1] * row.t)) ** 2
        return total

    return f, np.array([1.1, 0.3])


def _pandas_groups_of_data():
    import pandas as pd

    frame = pd.DataFrame({"t": np.arange(6.0), "y": CURVE, "site": list("ababab")})

    def f(p):
        total = 0.0
        for k, (_, group) in enumerate(frame.groupby("site")):
            model = p[k] * np.exp(-p[2] * group["t"].values)
            total = total + ((group["y"].values - model) ** 2).sum()
        return total

    return f, np.array([1.1, 0.9, 0.3])


def _pandas_column_stored():
    import pandas as pd

    frame = pd.DataFrame({"t": np.arange(6.0), "y": CURVE})

    def f(p):
        work = frame.copy()
        work["model"] = p[0] * np.exp(-p[1] * work["t"].values)
        return ((work["y"] - work["model"]) ** 2).mean()

    return f, np.array([1.1, 0.3])


UNTRACED = {"jit": "UntraceableError"}

CASES = [
    PackageFunction("xarray", "DataArray, anomalies of a mean, squared", _xarray_reductions),
    PackageFunction(
        "xarray",
        "DataArray.weighted",
        _xarray_weighted,
        refused=UNTRACED,
        why="pandas' compiled code is given arrays that are made inside",
    ),
    PackageFunction(
        "xarray",
        "DataArray.groupby",
        _xarray_groupby,
        refused=UNTRACED,
        why="makes indices of pandas, compiled code that changes what it is given",
    ),
    PackageFunction(
        "xarray",
        "Dataset, a variable of two",
        _xarray_dataset,
        refused=UNTRACED,
        why="pandas' compiled code is given arrays that are made inside",
    ),
    PackageFunction(
        "xarray",
        "DataArray.interp",
        _xarray_interp,
        refused=UNTRACED,
        why="pandas' compiled code is given arrays that are made inside",
    ),
    PackageFunction(
        "pandas",
        "DataFrame of x, a product of columns",
        _pandas_frame,
        refused={"*": "MissingRuleError", "jit": "UntraceableError"},
        why="pandas hands its values to C",
    ),
    PackageFunction(
        "pandas",
        "Series of x, to_numpy",
        _pandas_series,
        refused={"*": "MissingRuleError", "jit": "UntraceableError"},
        why="pandas hands its values to C",
    ),
    PackageFunction(
        "pandas",
        "DataFrame of x, groupby",
        _pandas_groupby,
        refused={"*": "MissingRuleError", "jit": "UntraceableError"},
        why="pandas hands its values to C",
    ),
    PackageFunction(
        "pandas",
        "Series of x, rolling",
        _pandas_rolling,
        refused={"*": "MissingRuleError", "jit": "UntraceableError"},
        why="pandas hands its values to C",
    ),
    PackageFunction("pandas", "a loss whose data are columns, to_numpy", _pandas_data),
    PackageFunction(
        "pandas",
        "a loss whose data are columns",
        _pandas_series_of_data,
        refused={"*": "MissingRuleError", "jit": "UntraceableError"},
        why="pandas hands its values to C: take .to_numpy()",
    ),
    PackageFunction(
        "pandas",
        "a loss, row by row",
        _pandas_rows,
        refused=UNTRACED,
        why="pandas' tables keep state in compiled code",
    ),
    PackageFunction(
        "pandas",
        "a loss, group by group",
        _pandas_groups_of_data,
        refused=UNTRACED,
        why="an iterator of pandas is used inside a loop",
    ),
    PackageFunction(
        "pandas",
        "a column put into a copy of a table",
        _pandas_column_stored,
        refused={"*": "MissingRuleError", "jit": "UntraceableError"},
        why="pandas hands its values to C",
    ),
]
