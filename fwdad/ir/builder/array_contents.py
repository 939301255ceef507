"""The contents of an array, as an object that arrays can be compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

_SHORT = 32  # elements of an array that specifies a shape or axes
BYTES_AT_MOST = 1 << 20
"""Of arrays that are compared at each call."""


class Contents:
    """A snapshot of an array's contents, equal to arrays with the same contents."""

    __slots__ = ("array",)
    __array_ufunc__ = None  # so that `array != contents` calls `__ne__` of the contents
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: np.ndarray) -> None:
        self.array = array.copy()

    def __eq__(self, other: object) -> bool:
        """Whether an array has these contents."""
        return isinstance(other, np.ndarray) and np.array_equal(self.array, other)

    def __repr__(self) -> str:
        return np.array2string(self.array, threshold=_SHORT)

    def __ne__(self, other: object) -> bool:
        """Whether an array has other contents."""
        return not self == other


def holds_ints(x: Any) -> bool:
    """Whether something is an array of ints, or truth values, that can be compared at each call."""
    ints = isinstance(x, np.ndarray) and x.dtype.kind in "iub"
    return ints and x.nbytes <= BYTES_AT_MOST


def may_be_option(x: Any) -> bool:
    """Whether an array may specify a shape or axes: a few integers in one dimension."""
    return isinstance(x, np.ndarray) and x.dtype.kind in "iu" and x.ndim <= 1 and x.size <= _SHORT
