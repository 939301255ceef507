"""Cotangents as a caller gives them, made those of a value's leaves, or refused."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.errors import SeedError, type_in_words
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import check_one_array, check_unmasked, leaf_dtype
from fwdad.tangents.zero import ZERO, NoTangent, Zero


def fitted(bar: Any, y: Any) -> Any:
    """A cotangent of one leaf of the value as an array, a dual or ``ZERO``."""
    if isinstance(bar, Zero):
        return bar
    if isinstance_dual(bar):  # a copy: the caller may write into it, and into the result
        return call(np.ndarray.copy, bar) if isinstance(plain(bar), np.ndarray) else bar
    if bar is None or bar is NoTangent:
        raise SeedError(
            f"got {bar} as the cotangent of a value that needs one: pass fwdad.ZERO for a zero "
            "cotangent"
        )
    check_one_array(bar, "cotangent")
    check_unmasked(bar, "cotangent")
    try:
        made, dtype = np.asarray(bar), leaf_dtype(plain(y))
    except ValueError as error:  # a ragged list
        message = f"expected an array as a cotangent; got {type_in_words(bar)} ({error})"
        raise SeedError(message) from error
    if made.dtype.kind == "c" and dtype.kind != "c":
        raise SeedError(f"got a complex cotangent for a real value of dtype {dtype}")
    if made.dtype.kind not in "biufc":
        what = f"{type(bar).__name__} of dtype {made.dtype}"
        raise SeedError(f"expected a float array; got a {what} as a cotangent")
    return made


def summed(a: Any, b: Any) -> Any:
    """The sum of the cotangents of an array that occurs twice in the value."""
    if a is ZERO or b is ZERO:
        return b if a is ZERO else a
    shapes = np.shape(plain(a)), np.shape(plain(b))
    if shapes[0] != shapes[1]:
        raise SeedError(f"got cotangents of shapes {list(shapes)} for two places of one array")
    return call(operator.add, a, b)


def in_type_of(bar: Any, y: Any) -> Any:
    """A cotangent in its value's type, and in memory of its own."""
    if isinstance_dual(bar):
        return bar
    y = plain(y)
    if bar is ZERO:
        return np.zeros_like(y) if isinstance(y, np.ndarray) else type(y)(0)
    if isinstance(y, np.ndarray):
        return np.array(bar, y.dtype)
    return y.dtype.type(bar) if isinstance(y, np.generic) else type(y)(bar.item())


def rows_of(bars: Any, start: int, stop: int, width: int) -> Any:
    """Some of stacked cotangents, filled up with zeros to a width, such that one program takes all.

    Cotangents that carry derivatives go one by one, and are not filled up.
    """
    rows = bars if bars is ZERO else call(operator.getitem, bars, slice(start, stop))
    if isinstance_dual(rows) or not isinstance(rows, np.ndarray) or stop - start == width:
        return rows
    filled = np.zeros((width, *rows.shape[1:]), rows.dtype)
    filled[: stop - start] = rows
    return filled
