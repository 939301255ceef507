"""Values that hold numbers in a form that carries no tangents, and what to write instead."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np


def refusal(x: Any) -> str | None:
    """Why a value, or a class, must not pass for a constant, and what to write instead.

    None for what simply has no tangent space: integers, booleans, strings, None, functions, objects
    of unknown classes.
    """
    cls = x if isinstance(x, type) else type(x)
    name = f"{cls.__module__}.{cls.__qualname__}"
    reason = None
    if issubclass(cls, np.ndarray):
        reason = _array_refusal(cls, name, getattr(x, "dtype", None))
    elif cls.__module__.startswith("pandas."):
        reason = (
            f"a {name}: pandas hands its values to C, where a derivative would be lost. "
            "Differentiate with respect to x.to_numpy()"
        )
    elif issubclass(cls, (set, frozenset)):
        if isinstance(x, type) or any(_is_inexact(item) for item in x):
            reason = f"a {name}, whose elements have no order: write a list or a tuple"
    elif issubclass(cls, (np.generic, int)):
        reason = None
    elif issubclass(cls, numbers.Number):
        reason = f"a {name}, which has no tangents: write float(x)"
    elif hasattr(cls, "__array__") or hasattr(cls, "__array_interface__"):
        reason = f"a {name}, which has no tangents: write numpy.asarray(x)"
    return reason


def _is_inexact(x: Any) -> bool:
    return isinstance(x, (float, complex, np.inexact))


def _array_refusal(cls: type, name: str, dtype: Any) -> str | None:
    if isinstance(dtype, np.dtype) and dtype.kind == "V":
        return (
            f"a structured array of dtype {dtype}: write a dict of its fields, "
            "{name: x[name] for name in x.dtype.names}"
        )
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        return "an array of dtype object: write x.astype(float), or a list of its elements"
    if issubclass(cls, np.ma.MaskedArray):
        return (
            f"a {name}: a mask has no tangents. Write x.filled(value), and pass the mask as a "
            "separate argument"
        )
    if issubclass(cls, np.matrix):
        return f"a {name}, whose `*` is a matrix product: write numpy.asarray(x), and `@` in f"
    if cls not in (np.ndarray, np.memmap):
        return (
            f"a {name}, a subclass of ndarray that may change what NumPy's functions mean: write "
            "numpy.asarray(x), or register_tangent_type"
        )
    return None
