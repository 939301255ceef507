"""The parts of an index: numbers and slices, masks, index arrays."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType, Number
from fwdad.ops.record import also


def spelled_out(index: Sequence[Any], ndim: int) -> list[Any]:
    """A basic index with one part for each axis, the ellipsis and omitted axes as slices."""
    parts = list(index)
    taken = sum(i is not None and i is not Ellipsis for i in parts)
    at = next((k for k, i in enumerate(parts) if i is Ellipsis), len(parts))
    parts[at : at + 1] = [slice(None)] * (ndim - taken)
    return parts


def is_basic(i: Any) -> bool:
    """Whether a part of an index makes no copy: None, an ellipsis, a slice or an int."""
    if i is None or i is Ellipsis or isinstance(i, slice):
        return True
    if type(i) is Symbol:
        return isinstance(i.type, Number) and i.type.dtype.kind in "iu"
    return isinstance(i, (int, np.integer)) and not isinstance(i, (bool, np.bool_))


def is_mask(i: Any) -> bool:
    """Whether a part of an index is a boolean, or an array or a list of booleans."""
    if i is None or i is Ellipsis or isinstance(i, slice):
        return False
    if type(i) is Symbol:
        return bool(i.type.dtype.kind == "b")
    if isinstance(i, (list, tuple)):  # of elements that need not be known
        return bool(i) and all(map(is_mask, i))
    return bool(np.asarray(i).dtype.kind == "b")


def mask_rank(i: Any) -> int:
    """How many axes a mask consumes; 0 for anything else."""
    if not is_mask(i):
        return 0
    if isinstance(i, (list, tuple)):
        return 1 + mask_rank(i[0])
    return i.type.ndim if type(i) is Symbol else np.ndim(i)


def check_index(at: tuple[Any, ...], rank: int) -> None:
    """Raise NumPy's ``IndexError`` for an index that no array of this rank accepts."""
    for i in at:
        if i is None or i is Ellipsis or isinstance(i, slice):
            continue
        if type(i) is Symbol:
            dtype, ndim = i.type.dtype, i.type.ndim if i.is_array else 0
        else:
            array = np.asarray(i)
            dtype, ndim = array.dtype, array.ndim
            if isinstance(i, (list, tuple)) and not array.size:  # of no dtype
                continue
        if dtype.kind not in "fc":  # a text names a field
            continue
        message = "arrays used as indices must be of integer (or boolean) type"
        if not ndim:
            message = (
                "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and "
                "integer or boolean arrays are valid indices"
            )
        raise IndexError(message)
    used = sum(i is not None and i is not Ellipsis and not is_mask(i) for i in at)
    used += sum(mask_rank(i) for i in at)
    if used > rank:
        message = f"too many indices for array: array is {rank}-dimensional, but {used} were "
        message += "indexed"
        raise IndexError(message)


def selected_rank(at: tuple[Any, ...], rank: int) -> int:
    """How many axes ``a[at]`` has, of an array of some rank."""
    kept, arrays = 0, [0]
    for i in at:
        if i is None or isinstance(i, slice):
            kept += 1
        if i is None or i is Ellipsis:
            continue
        if is_mask(i):
            rank -= mask_rank(i)
            arrays.append(1)
            continue
        rank -= 1
        if not is_basic(i):
            arrays.append(i.type.ndim if type(i) is Symbol else np.ndim(i))
    return kept + rank + max(arrays)


def check_value(at: tuple[Any, ...], rank: int, value: Any) -> None:
    """Raise NumPy's ``ValueError`` for an array that is stored where there is one number."""
    if any(i is Ellipsis for i in at) or selected_rank(at, rank):
        return
    if type(value) is Symbol:
        given = value.type.shape if value.is_array else ()
    else:
        given = np.shape(value) if isinstance(value, (np.ndarray, list, tuple)) else ()
    one = _takes_one() and not isinstance(value, (list, tuple))
    if given and not (one and all(type(n) is int and n == 1 for n in given)):
        message = "setting an array element with a sequence."
        raise ValueError(message)


@cache
def _takes_one() -> bool:
    """Whether NumPy stores an array of one element as a number, as it did before version 2.4."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.zeros(1)[0] = np.zeros(1)
    except ValueError:
        return False
    return True


def check_rank(rank: int, given: Any) -> None:
    """Raise NumPy's ``ValueError`` for a result of more axes than the array it is written into."""
    if isinstance(given, ArrayType) and given.ndim > rank:
        message = (
            f"non-broadcastable output operand: an array of {rank} axes cannot hold a result of "
            f"{given.ndim}"
        )
        raise ValueError(message)


def sample_index(a: Any, at: tuple[Any, ...]) -> Any:
    """``a[at]`` on samples, with zeros for the ones of index arrays, which may be out of bounds."""
    zero = [
        i
        if i is None or i is Ellipsis or isinstance(i, slice) or np.asarray(i).dtype.kind == "b"
        else np.zeros_like(i)
        for i in at
    ]
    return a[tuple(zero)]


also(sample_index, pure=True)


def is_plain(s: slice) -> bool:
    """Whether the bounds and the step of a slice are known."""
    return all(x is None or isinstance(x, (int, np.integer)) for x in (s.start, s.stop, s.step))
