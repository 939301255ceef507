"""Methods of ufuncs that are NumPy functions under another name."""

from __future__ import annotations

from typing import Any

import numpy as np

NAMED: dict[tuple[Any, str], Any] = {
    (np.add, "reduce"): np.sum,
    (np.multiply, "reduce"): np.prod,
    (np.maximum, "reduce"): np.max,
    (np.minimum, "reduce"): np.min,
    (np.add, "accumulate"): np.cumsum,
    (np.multiply, "accumulate"): np.cumprod,
}


def reduce_arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of ``ufunc.reduce(a, axis=0, …)``, with all options as keywords."""
    names = ("axis", "dtype", "out", "keepdims", "initial", "where")
    merged = {"axis": 0, **dict(zip(names, args[1:], strict=False)), **kwargs}
    merged = {k: v for k, v in merged.items() if v is not None or k == "axis"}
    return args[:1], merged
