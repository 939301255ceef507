"""The position of a running extreme, which a loop of comparisons finds.

``for j in range(start, stop): if a[i, j] > m: m = a[i, j]`` leaves in m the first of the largest
elements, or m as it was. The position of that element is an int: the element is read there, and its
cotangent goes there, without recording each comparison.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.ops.record import op


def _row(a: np.ndarray, start: int, stop: int, axis: int, others: tuple[int, ...]) -> np.ndarray:
    index: Any = (*others[:axis], slice(None), *others[axis:])
    row: np.ndarray = a[index]
    if stop > len(row):
        place = max(start, len(row))
        raise IndexError(f"index {place} is out of bounds for axis {axis} with size {len(row)}")
    return row[start:stop]


def _find(
    a: np.ndarray, begin: Any, start: int, stop: int, axis: int, others: tuple[int, ...],
    compare: Callable[[Any, Any], Any], extreme: np.ufunc,
) -> int:  # fmt: skip
    if start >= stop:
        return -1
    row = _row(a, start, stop, axis, others)
    best = extreme.reduce(row)  # NaN only if nothing else is there, as in the loop
    if not compare(best, begin):
        return -1
    return start + int(np.argmax(row == best))


def place_of_larger(
    a: np.ndarray, begin: Any, start: int, stop: int, axis: int, *others: int
) -> int:
    """The position of the first largest element in a range; -1 if none is larger than ``begin``.

    NaN is never larger, and nothing is larger than NaN. ``a`` is real, ``start`` not negative, and
    ``others`` the index along the other axes in order.
    """
    return _find(a, begin, start, stop, axis, others, operator.gt, np.fmax)


def place_of_smaller(
    a: np.ndarray, begin: Any, start: int, stop: int, axis: int, *others: int
) -> int:
    """As :func:`place_of_larger`, for the first smallest element."""
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
    """The position of the element that a loop of comparisons ends with; -1 if that is ``begin``.

    ``comparison`` is a key of ``COMPARISONS``, other arguments are those of
    :func:`place_of_larger`. ``>=`` yields the last of the largest elements, and skips NaN;
    ``not <`` takes every NaN, and what follows it.
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


op(place_of_extreme, place_of_larger, place_of_smaller, constant=True)
