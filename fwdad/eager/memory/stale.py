"""Stale values: plain values left outside by earlier derivative calls, whose derivatives are gone.

A function may keep what it has computed (``self.last = y``, a dict of results, a work array), and
look there first when it is called again. In a later derivative call it would find a plain number,
and the derivative would silently be zero. So these values are tracked: one that is read before the
call has written there raises. Numbers are tracked as objects, arrays by their elements: those that
have carried a derivative, as long as they hold the same content.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from fwdad.eager.duals.dual import was_left
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.memory.shadow import Shadow, address, owner_of
from fwdad.eager.run import LEFT, STATE
from fwdad.errors import StaleValueError
from fwdad.tangents.plain import plain

NUMBERS: dict[int, tuple[Any, int]] = {}
"""id of a number -> the number, and the order of the call that has left it."""

ARRAYS: dict[int, Left] = {}
"""id of the owner of a piece of memory -> what is known of it."""

NUMBER_TYPES = {float, complex, np.float64, np.float32, np.complex128}
_LOCK = threading.RLock()
_PURGE_AT = [1024]


class Left:
    """Memory with elements that have carried a derivative.

    ``marks`` has, for each byte of the memory, whether the element that begins there has carried
    one; ``content`` are the bytes as they were left, and ``order`` is that of the call that left
    them.
    """

    __slots__ = ("content", "low", "marks", "order", "owner")

    def __init__(self, owner: Any, marks: np.ndarray, order: int) -> None:
        key = id(owner)
        self.owner = weakref.ref(owner, lambda _: ARRAYS.pop(key, None))
        self.low = address(owner)
        self.marks = marks
        self.content = np.frombuffer(owner.tobytes(order="A"), np.uint8)
        self.order = order

    def is_stale(self, a: np.ndarray, index: Any) -> bool:
        """Whether a view of the memory, or a part of it, holds stale elements."""
        marks = as_view(self.marks, a, self.low, np.uint8)[index]
        if not np.any(marks):
            return False
        for overwritten in _overwritten(a):
            marks = marks & (as_view(overwritten, a, self.low, np.uint8)[index] == 0)
        same = _bits(a[index]) == _bits(as_view(self.content, a, self.low, a.dtype)[index])
        return bool(np.any(np.asarray(marks, bool) & same))


def as_view(buffer: np.ndarray, a: np.ndarray, low: int, dtype: Any) -> np.ndarray:
    """A buffer with the layout of some memory, viewed as an array views that memory."""
    offset = address(a) - low if a.size else 0
    return np.ndarray(a.shape, dtype, buffer.data, offset, a.strides)


def _bits(a: Any) -> Any:
    """The elements of an array as bits, so that NaN equals itself and 0.0 is not -0.0."""
    a = np.ascontiguousarray(a)
    if a.dtype.kind not in "fc":
        return a
    raw = a.view(np.uint8).reshape(*a.shape, a.dtype.itemsize)
    return raw.view(np.dtype((np.void, a.dtype.itemsize)))[..., 0]


# -- entering


def leave(numbers: list[Any], arrays: list[np.ndarray], order: int) -> None:
    """Note what one call has left: numbers, and arrays all of whose elements are stale."""
    with _LOCK:
        for x in numbers:
            NUMBERS[id(x)] = (x, order)
        if len(NUMBERS) > _PURGE_AT[0]:
            _purge()
        for a in arrays:
            if a.size:
                leave_bytes(owner_of(a), _bytes_of(a, 1), order)


def overwritten(written: dict[int, np.ndarray]) -> None:
    """Drop what a call has written from what earlier calls have left."""
    for key, marks in written.items():
        left = ARRAYS.get(key)
        if left is not None and len(marks) == len(left.marks):
            left.marks = left.marks & (marks == 0)
            if not left.marks.any():
                ARRAYS.pop(key, None)


def leave_bytes(owner: Any, which: np.ndarray, order: int) -> None:
    """Note elements of an array that one call has left, by the bytes of its memory."""
    if type(owner) is not np.ndarray or not owner.flags.forc or not which.any():
        return
    with _LOCK:
        known = ARRAYS.get(id(owner))
        if known is not None:
            same = known.content == np.frombuffer(owner.tobytes(order="A"), np.uint8)
            which = which | (known.marks & same)
        ARRAYS[id(owner)] = Left(owner, which, order)


def leave_lanes(shadow: Shadow, tag: Any, before: np.ndarray | None, order: int) -> None:
    """Note elements of written memory that have changed, or have tangents of the ending call."""
    owner = shadow.owner
    if type(owner) is not np.ndarray or owner.dtype.kind not in "fcV" or not owner.size:
        return
    if owner.dtype.kind == "V":
        which = np.ones((), bool)
    else:
        which = np.any(plain(shadow.view(tag, owner)) != 0, axis=0)
        if before is not None and before.shape == owner.shape:
            which |= _bits(owner) != _bits(before)
    leave_bytes(owner, _bytes_of(owner, which), order)


def _bytes_of(a: np.ndarray, which: Any) -> np.ndarray:
    """Elements of an array as a mask of its memory's bytes, set where each element begins."""
    owner = owner_of(a)
    marks = np.zeros(owner.nbytes if isinstance(owner, np.ndarray) else 0, np.uint8)
    if len(marks):
        as_view(marks, a, address(owner), np.uint8)[...] = which
    return marks


def _purge() -> None:
    """Drop the numbers to which there is no other reference."""
    for key in list(NUMBERS):
        if sys.getrefcount(NUMBERS[key][0]) <= _ALONE:
            del NUMBERS[key]
    _PURGE_AT[0] = max(1024, 2 * len(NUMBERS))


def _references_when_alone() -> int:
    table = {0: (float("1.5"), 0)}
    counts = [sys.getrefcount(table[key][0]) for key in list(table)]
    return counts[0]


_ALONE = _references_when_alone()


# -- reading and writing


def check_number(x: Any) -> None:
    """Raise if a number is stale."""
    left = NUMBERS.get(id(x))
    if left is not None and left[0] is x and _is_later(left[1]):
        raise StaleValueError(was_left(f"a number ({x!r})"))


def is_left(x: Any) -> bool:
    """Whether a number or an array from outside is, or holds, what an earlier call has left."""
    if type(x) in NUMBER_TYPES:
        known = NUMBERS.get(id(x))
        return known is not None and known[0] is x
    if not ARRAYS or type(x) is not np.ndarray or not x.size:
        return False
    left = ARRAYS.get(id(x if x.base is None else owner_of(x)))
    return left is not None and left.is_stale(x, Ellipsis)


def any_left(items: Any) -> bool:
    """Whether any of some items is a number that an earlier call has left."""
    return bool(NUMBERS) and not NUMBERS.keys().isdisjoint(map(id, items))


def revive(x: Any) -> Any:
    """A number that was found outside; a dual that may not be used if it is stale."""
    known = NUMBERS.get(id(x))
    if known is not None and known[0] is x and _is_later(known[1]):
        return Scalar(x, {}, LEFT)
    return x


def check_array(a: np.ndarray, index: Any = Ellipsis) -> None:
    """Raise if an array, or a part of it, holds stale elements."""
    left = ARRAYS.get(id(a if a.base is None else owner_of(a)))
    if left is None or not a.size or not _is_later(left.order):
        return
    if left.is_stale(a, index):
        raise StaleValueError(was_left(f"an array of shape {a.shape}"))


def check_lists(values: Any) -> None:
    """Raise if a list among some values, whose items are about to be read, holds stale values."""
    if NUMBERS or ARRAYS:
        for x in values:
            if type(x) is list or type(x) is tuple:
                _check_items(x)


def check_read(values: Any) -> None:
    """Raise if an array or a list that is about to be read holds stale values."""
    if NUMBERS or ARRAYS:
        for x in values:
            if type(x) is np.ndarray:
                check_array(x)
        check_lists(values)


def check_copied(values: Any, y: Any) -> None:
    """Raise if a call that returned y read stale arrays: those of which y holds no view."""
    if not ARRAYS:
        return
    made = y if isinstance(y, (list, tuple)) else (y,)
    owners = {id(owner_of(part)) for part in made if isinstance(part, np.ndarray)}
    for x in values:
        if type(x) is np.ndarray and id(owner_of(x)) not in owners:
            check_array(x)  # a view is checked where it is read


def _check_items(values: Any) -> None:
    for x in values:
        t = type(x)
        if t in NUMBER_TYPES:
            check_number(x)
        elif t is np.ndarray:
            check_array(x)
        elif t is list or t is tuple:
            _check_items(x)


def overwrite(a: np.ndarray, index: Any = Ellipsis) -> None:
    """Note that an array, or a part of it, is written, so that it is no longer stale."""
    known = ARRAYS.get(id(a if a.base is None else owner_of(a)))
    if known is None or not a.size:
        return
    run = STATE.run
    if run is None:
        return
    while run.stays and run.outer is not None:  # others restore what they have written
        run = run.outer
    key = id(owner_of(a))
    if key not in run.overwritten:
        run.overwritten[key] = np.zeros(len(known.marks), np.uint8)
    as_view(run.overwritten[key], a, known.low, np.uint8)[index] = 1


def _overwritten(a: np.ndarray) -> Iterator[np.ndarray]:
    """Masks of the bytes of some memory that this thread's runs have written."""
    key, run = id(owner_of(a)), STATE.run
    while run is not None:
        if key in run.overwritten:
            yield run.overwritten[key]
        run = run.outer


def _is_later(order: int) -> bool:
    run = STATE.run
    return run is not None and run.tag.order > order
