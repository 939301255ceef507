"""Where a running extreme is found: what a loop of comparisons comes to.

``for j in range(start, stop): if a[i, j] > m: m = a[i, j]`` leaves in m the first of the largest
elements, or what m was before. Which of them is a place, an int: the element is read there, and
its cotangent goes there, without a note of each comparison.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np


def _find(
    a: np.ndarray, begin: Any, start: int, stop: int, axis: int, others: tuple[int, ...],
    compare: Callable[[Any, Any], Any], extreme: np.ufunc,
) -> int:  # fmt: skip
    if start >= stop:
        return -1
    index: Any = (*others[:axis], slice(None), *others[axis:])
    row = a[index]
    if stop > len(row):
        place = max(start, len(row))
        message = f"index {place} is out of bounds for axis {axis} with size {len(row)}"
        raise IndexError(message)
    found = row[start:stop]
    best = extreme.reduce(found)  # NaN only if nothing else is there, as in the loop
    if not compare(best, begin):
        return -1
    return start + int(np.argmax(found == best))


def place_of_larger(
    a: np.ndarray, begin: Any, start: int, stop: int, axis: int, *others: int
) -> int:
    """The place of the largest element of a range, the first of equals; -1 if none is larger.

    NaN is larger than nothing, and nothing is larger than NaN.

    Parameters
    ----------
    a : ndarray
        Of real numbers.
    begin : number
        What the elements are compared with first, of their dtype.
    start, stop : int
        The range along the axis; start is not negative.
    axis : int
        The axis.
    *others : int
        The index along all others, in their order.
    """
    return _find(a, begin, start, stop, axis, others, operator.gt, np.fmax)


def place_of_smaller(
    a: np.ndarray, begin: Any, start: int, stop: int, axis: int, *others: int
) -> int:
    """The same for the smallest element.

    Parameters
    ----------
    a : ndarray
        Of real numbers.
    begin : number
        What the elements are compared with first, of their dtype.
    start, stop : int
        The range along the axis; start is not negative.
    axis : int
        The axis.
    *others : int
        The index along all others, in their order.
    """
    return _find(a, begin, start, stop, axis, others, operator.lt, np.fmin)
