"""Shadow memory: the tangents of arrays that are written.

The tangent of a writable array is N copies of its owner's byte layout, made at the first active
store. Any view of the array, whenever it was made, has the view of the shadow with the same offset,
strides and dtype, so NumPy's own aliasing rules hold for tangents as well.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from typing import Any

import numpy as np

from fwdad.eager.run import STATE, Tag
from fwdad.errors import UnsupportedTypeError, type_in_words

_ALIGNMENT = 64
_VIEWS_KEPT = 64

# a view of the memory, its shape, strides and dtype, and the lanes seen in the same way
_Held = tuple["weakref.ref[np.ndarray]", tuple[int, ...], tuple[int, ...], Any, Any]


class Shadow:
    """The shadow of one piece of memory: a buffer of lanes for each derivative call."""

    __slots__ = ("lanes", "low", "nbytes", "owner", "views")

    def __init__(self, owner: Any, low: int, nbytes: int) -> None:
        self.owner = owner
        self.low = low
        self.nbytes = nbytes
        self.lanes: dict[Tag, Any] = {}
        self.views: dict[Tag, dict[int, _Held]] = {}

    def allocate(self, tag: Tag, lanes: Any = None) -> None:
        """Give a call ``lanes``, or zero lanes, or a recorder of its loads and stores."""
        if lanes is None and tag.record is not None:
            lanes = tag.record.memory(self.owner, self.nbytes)
        if lanes is not None:
            self.lanes[tag] = lanes
            self.views[tag] = {}
            return
        row = -(-self.nbytes // _ALIGNMENT) * _ALIGNMENT or _ALIGNMENT
        raw = np.zeros(tag.n * row + _ALIGNMENT, np.uint8)
        start = -address(raw) % _ALIGNMENT
        self.lanes[tag] = raw[start : start + tag.n * row].reshape(tag.n, row)
        self.views[tag] = {}

    def view(self, tag: Tag, a: np.ndarray) -> Any:
        """The lanes of the view ``a``: shape ``(N, *a.shape)``, written through.

        A call that records has no lanes, but a view with ``read``, ``load`` and ``assign``.
        """
        views = self.views[tag]
        entry = views.get(id(a))
        # an array's shape, strides and dtype can be assigned to
        if entry is not None and entry[0]() is a:
            _, shape, strides, dtype, lanes = entry
            if shape == a.shape and strides == a.strides and dtype is a.dtype:
                return lanes
        shape, strides, dtype = a.shape, a.strides, a.dtype
        buffer = self.lanes[tag]
        whole = a is self.owner and a.flags.forc
        offset = 0 if whole or not a.size else address(a) - self.low
        if tag.record is not None:
            lanes = buffer.view(offset, shape, strides, dtype)
        else:
            rows = (buffer.strides[0], *strides)
            lanes = np.ndarray((tag.n, *shape), dtype, buffer, offset, rows)
        if len(views) >= _VIEWS_KEPT:
            views.clear()
        views[id(a)] = (weakref.ref(a), shape, strides, dtype, lanes)
        return lanes

    def seen(self) -> list[Tag]:
        """The calls whose tangents are visible, outermost first."""
        hidden = STATE.hidden
        return sorted((t for t in self.lanes if t not in hidden), key=lambda t: t.order)

    def drop(self, tag: Tag) -> None:
        """Forget a call's lanes."""
        self.views.pop(tag, None)
        self.lanes.pop(tag, None)

    def only(self, tag: Tag) -> bool:
        """Whether this call has the only tangents here, and these carry no tangents themselves."""
        lanes = self.lanes
        if len(lanes) != 1 or tag not in lanes:
            return False
        return len(SHADOWED) == 1 or id(owner_of(lanes[tag])) not in SHADOWED


KEPT: dict[int, list[Any]] = {}
"""id of the owner of a piece of memory -> what reads it later, and is notified before a write."""
_KEPT_LOCK = threading.Lock()


def keep(owner: Any, keeper: Any) -> None:
    """Register a later reader of some memory, whose ``copy_from(owner, copies)`` makes its copy."""
    with _KEPT_LOCK:
        KEPT.setdefault(id(owner), []).append(keeper)


def release(owner: Any, keepers: list[Any]) -> bool:
    """Remove registered readers; whether they were still registered, so nothing was written."""
    mine = set(map(id, keepers))
    with _KEPT_LOCK:
        registered = KEPT.get(id(owner))
        if registered is None:
            return False
        rest = [keeper for keeper in registered if id(keeper) not in mine]
        if rest:
            KEPT[id(owner)] = rest
        else:
            del KEPT[id(owner)]
        return len(rest) < len(registered)


def before_write(owner: Any) -> None:
    """Let later readers of some memory make their copies, because it is about to be written."""
    with _KEPT_LOCK:
        keepers = KEPT.pop(id(owner), ())
    copies: dict[int, Any] = {}
    for keeper in keepers:
        keeper.copy_from(owner, copies)


SHADOWED: dict[int, Shadow] = {}
"""id of the owner of a piece of memory -> its shadow; empty while nothing active was stored."""


def address(a: np.ndarray) -> int:
    """The address of an array's first element."""
    try:  # contiguous and writable memory takes a quarter of the time
        return ctypes.addressof(_BYTE.from_buffer(a))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return int(a.__array_interface__["data"][0])


_BYTE = ctypes.c_char


def owner_of(a: Any) -> Any:
    """The object whose memory an array views, through any chain of bases."""
    base = a.base
    if type(base) is np.ndarray and base.base is None:
        return base
    while base is not None and base is not a:  # an array of Cython's says that it is its own base
        if isinstance(base, memoryview):
            a, base = base.obj, getattr(base.obj, "base", None)
        elif isinstance(base, np.nditer):
            operand = _operand_of(a, base)
            if operand is None:
                return a
            a, base = operand, operand.base
        else:
            a, base = base, getattr(base, "base", None)
    return a


def _operand_of(view: np.ndarray, iterator: np.nditer) -> np.ndarray | None:
    """The array that an element of NumPy's iterator lies in; None if it lies in a buffer."""
    try:
        operands = iterator.operands
    except ValueError:  # the iterator is closed
        return None
    return next((a for a in operands if np.may_share_memory(a, view)), None)


def find_shadow(a: np.ndarray) -> Shadow | None:
    """The shadow of the memory behind an array; None if it has no visible tangents."""
    if a.dtype.kind not in "fcV":
        return None
    owner = a if a.base is None else owner_of(a)
    shadow = SHADOWED.get(id(owner))
    if shadow is None and (_FOREIGN or not isinstance(owner, np.ndarray)):
        shadow = _find_by_address(a)
    if shadow is not None and STATE.hidden and not shadow.seen():
        return None
    return shadow


def shadow_of_memory(a: np.ndarray) -> Shadow | None:
    """The shadow of the memory behind an array of any dtype."""
    owner = a if a.base is None else owner_of(a)
    return SHADOWED.get(id(owner)) or _find_by_address(a)


_FOREIGN: set[int] = set()
"""Keys of shadows whose owner is no array: arrays elsewhere may view the same memory."""


def _find_by_address(a: np.ndarray) -> Shadow | None:
    if not a.size:
        return None
    low, high = np.lib.array_utils.byte_bounds(a)
    for shadow in list(SHADOWED.values()):  # other threads make and drop their own meanwhile
        if shadow.low <= low and high <= shadow.low + shadow.nbytes:
            return shadow
    return None


def untouched(p: Any) -> bool:
    """Whether nothing was stored into the memory of a plain array."""
    return id(p if p.base is None else owner_of(p)) not in SHADOWED


def any_shadow(a: np.ndarray) -> Shadow | None:
    """The shadow of the memory behind an array, even if its tangents are hidden."""
    owner = owner_of(a)
    shadow = SHADOWED.get(id(owner))
    if shadow is None and not isinstance(owner, np.ndarray):
        shadow = _find_by_address(a)
    return shadow


def make_shadow(a: np.ndarray, tag: Tag, lanes: Any = None) -> Shadow:
    """Find or make the shadow of the memory behind an array, with the lanes of a call.

    It is registered once it has them: one without, left by an interrupt, would never be dropped.
    """
    shadow = any_shadow(a)
    if shadow is None:
        owner = owner_of(a)
        whole = owner if isinstance(owner, np.ndarray) else _buffer(owner, a)
        if not isinstance(owner, np.ndarray):
            _FOREIGN.add(id(owner))
        if whole.flags.forc:
            low, nbytes = address(whole), whole.nbytes
        else:
            low, high = np.lib.array_utils.byte_bounds(whole)
            nbytes = high - low
        shadow = Shadow(owner, low, nbytes)
        shadow.allocate(tag, lanes)
        SHADOWED[id(owner)] = shadow
    elif tag not in shadow.lanes or lanes is not None:
        shadow.allocate(tag, lanes)
    return shadow


def shadow_for(a: np.ndarray, tag: Tag) -> Shadow | None:
    """The shadow that can take tangents of a call; None if other calls have tangents there."""
    shadow = any_shadow(a)
    if shadow is None or not shadow.lanes:
        shadow = make_shadow(a, tag)
    return shadow if shadow.only(tag) else None


def _buffer(owner: Any, a: np.ndarray) -> np.ndarray:
    try:
        return np.frombuffer(memoryview(owner).cast("B"), np.uint8)
    except TypeError as error:
        message = (
            f"a value that carries a derivative is stored into an array ({a.dtype}, shape "
            f"{a.shape}) that views the memory of {type_in_words(owner)}, of which NumPy does "
            "not know the size: copy the array first"
        )
        raise UnsupportedTypeError(message) from error


def forget(tag: Tag) -> None:
    """Drop the lanes of a call that has ended, and those that an interrupt has left behind."""
    if not SHADOWED:
        return
    for key in list(SHADOWED):
        shadow = SHADOWED.get(key)
        if shadow is None:
            continue
        ended = [t for t in list(shadow.lanes) if t is tag or not t.alive]
        if ended and len(ended) == len(shadow.lanes):
            SHADOWED.pop(key, None)
            _FOREIGN.discard(key)
        for t in ended:
            shadow.drop(t)
