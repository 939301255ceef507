"""The contents of an array, as something that an array can be compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

_SHORT = 32  # elements of an array that says a shape, or axes


class Contents:
    """What an array held: equal to arrays that hold the same."""

    __slots__ = ("array",)
    __array_ufunc__ = None  # `array != contents` is asked of the contents, as a whole
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: np.ndarray) -> None:
        self.array = array.copy()

    def __eq__(self, other: object) -> bool:
        """Whether an array holds the same."""
        return isinstance(other, np.ndarray) and np.array_equal(self.array, other)

    def __ne__(self, other: object) -> bool:
        """Whether it holds something else."""
        return not self == other


def may_be_option(x: Any) -> bool:
    """Whether an array may say a shape or axes: a few whole numbers in a row."""
    return isinstance(x, np.ndarray) and x.dtype.kind in "iu" and x.ndim <= 1 and x.size <= _SHORT
