"""The types of what SciPy's internal code returns, where it trusts lengths and values."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.ir.ops import Operand, Value
from fwdad.ir.types import ArrayType, CannotInferError, Dimension, Size, number_type, type_of
from fwdad.rules.core.registry import RULES, when_imported

Given = dict[str, Operand]  # by the names in the rule's signature
_INTEGER, _NUMBER = number_type(0), number_type(0.0)


def _array(*lengths: Dimension, dtype: Any = float) -> ArrayType:
    return ArrayType(np.dtype(dtype), lengths)


def _own(x: Operand) -> Any:
    return x.type if isinstance(x, Value) else type_of(x)


def _length(x: Operand, axis: int = 0) -> Dimension:
    """A length; one for a number, of which f2py makes an array."""
    shape: tuple[Dimension, ...] = x.type.shape if isinstance(x, Value) else np.shape(x)
    if not shape:
        return 1
    if axis >= len(shape):
        raise CannotInferError("it takes arrays of a higher rank")
    return shape[axis]


def _order(k: Operand) -> Dimension:
    return Size() if isinstance(k, Value) else int(k) + 1


def _solved(given: Given, dtype: str) -> Any:
    ab, b = given["ab"], given["b"]
    factors, pivots = _array(_length(ab), _length(ab, 1), dtype=dtype), _length(ab, 1)
    return factors, _array(pivots, dtype="i"), _array(*_own(b).shape, dtype=dtype), _INTEGER


def _located(given: Given) -> Any:
    shape = _own(given["xi"]).shape
    return _array(*shape, dtype=np.intp), _array(*shape)


def _in_cells(given: Given) -> Any:
    y = _array(_length(given["indices"], 1), dtype=_own(given["values"]).dtype)
    return y, _own(given["out"])


def _sum(p: Dimension, r: Dimension) -> Dimension:
    return p + r if isinstance(p, int) and isinstance(r, int) else p if r == 0 else Size()


def _system(given: Given) -> Any:
    p, n = _length(given["y"]), _length(given["y"], 1)
    q = _sum(p, _length(given["powers"]))
    return _array(q, q), _array(q, _length(given["d"], 1)), _array(n), _array(n)


def _coefficients(given: Given) -> Any:
    q = _sum(_length(given["y"]), _length(given["powers"]))
    return _array(_length(given["x"]), q)


def _estimates(given: Given) -> Any:
    dtype: Any = given["dtype"]
    return _array(_length(given["xi"]), _length(given["values"], 1), dtype=dtype)


def _solved_by_factors(given: Given) -> Any:
    n = _length(given["a"])
    return _array(n, n), _array(n, dtype="i"), _array(*_own(given["b"]).shape), _INTEGER


def _written(*names: str) -> Callable[[Given], Any]:
    """Of a function that returns nothing, the types of the arrays that it writes into."""
    return lambda given: (None, *(_own(given[name]) for name in names))


def _fitted(given: Given) -> Any:
    knots, order, y = _length(given["t"]), _order(given["k"]), _own(given["y"])
    first: Dimension = Size()
    if given.get("adjoint"):
        first = _length(given["x"])
    elif isinstance(knots, int) and isinstance(order, int):
        first = knots - order
    return ArrayType(np.result_type(y.dtype, float), (first, *y.shape[1:]))


def _fitted_by_qr(given: Given) -> Any:
    """The factor, the data that are turned with it, coefficients and, in newer SciPy, residuals."""
    if given.get("periodic"):
        raise CannotInferError("it is of periodic splines")
    y = _length(given["y"]), _length(given["y"], 1)
    found = (_array(y[0], _order(given["k"])), _array(*y), _array(Size(), y[1]), _NUMBER,
             _array(y[0]))  # fmt: skip
    x = np.arange(4.0)
    bsplines = importlib.import_module("scipy.interpolate._bsplines")  # the caller's, imported
    line = bsplines._lsq_solve_qr(x, x[:, None], np.array([0.0, 0.0, 3.0, 3.0]), 1, np.ones(4))
    return found[: len(line)]


def _curve(given: Given) -> Any:
    """The data of a ``UnivariateSpline``: FITPACK has room for more knots than it finds."""
    x = _array(_length(given["x"]))
    room: Dimension = _length(given["fpint"]) if "fpint" in given else Size()
    knots = _length(given["t"]) if "t" in given else room
    ends, order, counts = (_NUMBER, _NUMBER), _INTEGER, _array(room, dtype="i")
    parts = (_array(knots), _array(room), _NUMBER, _array(room), counts)
    return (x, x, x, *ends, order, _NUMBER, _INTEGER, *parts, _INTEGER)


def _surface(_: Given) -> Any:
    knots = [part for _ in "xy" for part in (_INTEGER, _array(Size()))]
    return (*knots, _array(Size()), _NUMBER, _INTEGER)


_RETURNED: dict[str, Callable[[Given], Any]] = {
    "scipy.interpolate._dierckx.evaluate_spline": lambda g: _array(
        _length(g["xp"]), _length(g["c"], 1)
    ),
    "scipy.interpolate._dierckx.evaluate_all_bspl": lambda g: _array(_order(g["k"])),
    "scipy.interpolate._dierckx.find_interval": lambda _: _INTEGER,
    "scipy.interpolate._dierckx.data_matrix": lambda g: (
        _array(_length(g["x"]), _order(g["k"])), _array(_length(g["x"]), dtype=np.int64), _INTEGER,
    ),
    "scipy.interpolate._dierckx._coloc": _written("ab"),
    "scipy.interpolate._bspl.evaluate_spline": _written("out"),
    "scipy.interpolate._bsplines._lsq_solve_qr": _fitted_by_qr,
    "fwdad.rules.scipy_fitpack.fitted": _fitted,
    "scipy.interpolate._rgi_cython.find_indices": _located,
    "scipy.interpolate._rgi_cython.evaluate_linear_2d": _in_cells,
    "scipy.interpolate._rbfinterp_pythran._build_system": _system,
    "scipy.interpolate._rbfinterp_pythran._build_evaluation_coefficients": _coefficients,
    "scipy.signal._peak_finding_utils._select_by_peak_distance": lambda g: _array(
        _length(g["args"][0]), dtype=bool
    ),
    "scipy.signal._peak_finding_utils._peak_prominences": lambda g: (
        _array(_length(g["peaks"])), *[_array(_length(g["peaks"]), dtype=np.intp)] * 2
    ),
    "scipy.signal._peak_finding_utils._peak_widths": lambda g: (
        *[_array(_length(g["peaks"]))] * 4,
    ),
    "scipy.linalg.lapack.dgesv": _solved_by_factors,
    **{
        f"scipy.linalg.lapack.{letter}gbsv": functools.partial(_solved, dtype=dtype)
        for letter, dtype in zip("sdcz", "fdFD", strict=True)
    },
}  # fmt: skip

_OF_FITPACK: dict[str, Callable[[Given], Any]] = {
    "splev": lambda g: (_array(_length(g["x"])), _INTEGER),
    "splder": lambda g: (_array(_length(g["x"])), _INTEGER),
    "splint": lambda g: (_NUMBER, _array(_length(g["t"]))),
    "spalde": lambda _: (_array(Size()), _INTEGER),
    "curfit": lambda g: (
        (_INTEGER, _array(_length(g["t"])), _NUMBER, _INTEGER), *_written("t", "wrk", "iwrk")(g)[1:]
    ),
    "bispev": lambda g: (_array(_length(g["x"]), _length(g["y"])), _INTEGER),
    "parder": lambda g: (_array(_length(g["x"]), _length(g["y"])), _INTEGER),
    "bispeu": lambda g: (_array(_length(g["x"])), _INTEGER),
    "pardeu": lambda g: (_array(_length(g["x"])), _INTEGER),
    "fpcurf0": _curve, "fpcurf1": _curve, "fpcurfm1": _curve, "fpchec": lambda _: _INTEGER,
    "regrid_smth": _surface,
}  # fmt: skip


def enter(table: dict[Any, Callable[..., Any]]) -> None:
    """Add the rules of these functions to a table, once their modules are imported."""

    def add(result: Callable[[Given], Any], function: Any) -> None:
        rule = RULES[function]
        signature = rule.binder.signature

        def of_call(args: Operand, kwargs: dict[str, Operand]) -> Any:
            bound = signature.bind(*args, **kwargs)
            return result(bound.arguments)

        table[rule.pure or function] = of_call

    def add_fused(function: Any) -> None:
        for own in function.__signatures__.values():  # one for each type of numbers
            add(_estimates, own)

    def add_fitpack(module: Any) -> None:
        for name, result in _OF_FITPACK.items():
            if hasattr(module, name):
                add(result, getattr(module, name))

    for dotted, result in _RETURNED.items():
        when_imported(dotted, functools.partial(add, result))
    for log in ("", "_log"):
        when_imported(f"scipy.stats._stats.gaussian_kernel_estimate{log}", add_fused)
    when_imported("scipy.interpolate._fitpack2.dfitpack", add_fitpack)
