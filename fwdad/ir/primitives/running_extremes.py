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


def _row(a: np.ndarray, start: int, stop: int, axis: int, others: tuple[int, ...]) -> np.ndarray:
    index: Any = (*others[:axis], slice(None), *others[axis:])
    row: np.ndarray = a[index]
    if stop > len(row):
        place = max(start, len(row))
        message = f"index {place} is out of bounds for axis {axis} with size {len(row)}"
        raise IndexError(message)
    return row[start:stop]


def _find(
    a: np.ndarray, begin: Any, start: int, stop: int, axis: int, others: tuple[int, ...],
    compare: Callable[[Any, Any], Any], extreme: np.ufunc,
) -> int:  # fmt: skip
    if start >= stop:
        return -1
    found = _row(a, start, stop, axis, others)
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


COMPARISONS: dict[str, tuple[Callable[[Any, Any], Any], np.ufunc]] = {
    ">": (operator.gt, np.fmax), ">=": (operator.ge, np.fmax),
    "<": (operator.lt, np.fmin), "<=": (operator.le, np.fmin),
    "not <": (operator.ge, np.fmax), "not <=": (operator.gt, np.fmax),
    "not >": (operator.le, np.fmin), "not >=": (operator.lt, np.fmin),
}  # fmt: skip
"""How an element is compared with what there is; that of ordered numbers, and its extreme."""


def place_of_extreme(
    a: np.ndarray, begin: Any, start: int, stop: int, axis: int, comparison: str, *others: int
) -> int:
    """The place of the element that a loop of comparisons leaves; -1 if it leaves what was before.

    ``>=`` leaves the last of the largest elements, and skips NaN; ``not <`` takes each NaN, and
    what follows it.

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
    comparison : str
        One of ``COMPARISONS``: an element is taken if it holds for the element and what there is.
    *others : int
        The index along all others, in their order.
    """
    if start >= stop:
        return -1
    compare, extreme = COMPARISONS[comparison]
    found, taken = _row(a, start, stop, axis, others), False
    if comparison.startswith("not"):
        odd = np.flatnonzero(np.isnan(found))
        if odd.size:
            start += int(odd[-1]) + 1
            found = found[odd[-1] + 1 :]
            if start == stop:
                return stop - 1
        taken = bool(odd.size) or bool(np.isnan(begin))  # whatever follows NaN is taken
    best = extreme.reduce(found)
    if not taken and not compare(best, begin):
        return -1
    equal = found == best
    if compare(best, best):  # each of equals is taken
        return start + len(equal) - 1 - int(np.argmax(equal[::-1]))
    return start + int(np.argmax(equal))
