"""Shadow memory: the tangents of arrays that are written.

The tangent of a writable array is N copies of its owner's byte layout, made at the first active
store. Any view of the array, whenever it was made, has the view of the shadow with the same
offset, strides and dtype, so NumPy's own aliasing rules hold for tangents as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.builder.run import Tag
from fwdad.errors import UnsupportedTypeError

_ALIGNMENT = 64


class Shadow:
    """The shadow of one piece of memory: a buffer of lanes for each derivative call."""

    __slots__ = ("lanes", "low", "nbytes", "owner", "whole")

    def __init__(self, owner: Any, low: int, nbytes: int) -> None:
        self.owner = owner
        self.low = low
        self.nbytes = nbytes
        self.lanes: dict[Tag, np.ndarray] = {}
        self.whole: dict[Tag, np.ndarray] = {}

    def allocate(self, tag: Tag) -> None:
        """Make zero lanes for a call."""
        row = -(-self.nbytes // _ALIGNMENT) * _ALIGNMENT or _ALIGNMENT
        raw = np.zeros(tag.n * row + _ALIGNMENT, np.uint8)
        start = -address(raw) % _ALIGNMENT
        self.lanes[tag] = raw[start : start + tag.n * row].reshape(tag.n, row)
        self.whole.pop(tag, None)

    def view(self, tag: Tag, a: np.ndarray) -> np.ndarray:
        """The lanes of the view ``a``: shape ``(N, *a.shape)``, written through."""
        if a is self.owner:  # the commonest view, kept: finding an address costs a microsecond
            found = self.whole.get(tag)
            if found is None:
                found = self.whole[tag] = self._view(tag, a)
            return found
        return self._view(tag, a)

    def _view(self, tag: Tag, a: np.ndarray) -> np.ndarray:
        buffer = self.lanes[tag]
        return np.ndarray(
            (tag.n, *a.shape),
            a.dtype,
            buffer,
            address(a) - self.low if a.size else 0,
            (buffer.strides[0], *a.strides),
        )

    def drop(self, tag: Tag) -> bool:
        """Forget a call's lanes; answers whether there were any."""
        self.whole.pop(tag, None)
        return self.lanes.pop(tag, None) is not None

    def only(self, tag: Tag) -> bool:
        """Whether this call's are the only tangents here, and are plain numbers themselves."""
        lanes = self.lanes
        if len(lanes) != 1 or tag not in lanes:
            return False
        return len(SHADOWED) == 1 or id(owner_of(lanes[tag])) not in SHADOWED


SHADOWED: dict[int, Shadow] = {}
"""id of the owner of a piece of memory -> its shadow; empty while nothing active was stored."""


def address(a: np.ndarray) -> int:
    """Where an array's first element lies."""
    return int(a.__array_interface__["data"][0])


def owner_of(a: Any) -> Any:
    """The object whose memory an array views: views hide it in several ways."""
    base = a.base
    while base is not None:
        if isinstance(base, memoryview):
            a, base = base.obj, getattr(base.obj, "base", None)
        else:
            a, base = base, getattr(base, "base", None)
    return a


def find_shadow(a: np.ndarray) -> Shadow | None:
    """The shadow of the memory behind an array, if anything active was stored there."""
    if a.dtype.kind not in "fcV":
        return None
    owner = a if a.base is None else owner_of(a)
    shadow = SHADOWED.get(id(owner))
    if shadow is None and (_FOREIGN or not isinstance(owner, np.ndarray)):
        return _find_by_address(a)
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


def make_shadow(a: np.ndarray) -> Shadow:
    """Find or make the shadow of the memory behind an array."""
    owner = owner_of(a)
    shadow = SHADOWED.get(id(owner))
    if shadow is None and not isinstance(owner, np.ndarray):
        shadow = _find_by_address(a)
    if shadow is None:
        whole = owner if isinstance(owner, np.ndarray) else _buffer(owner, a)
        if not isinstance(owner, np.ndarray):
            _FOREIGN.add(id(owner))
        low, high = np.lib.array_utils.byte_bounds(whole)
        shadow = SHADOWED[id(owner)] = Shadow(owner, low, high - low)
    return shadow


def _buffer(owner: Any, a: np.ndarray) -> np.ndarray:
    try:
        return np.frombuffer(memoryview(owner).cast("B"), np.uint8)
    except TypeError as error:
        message = (
            f"an active value is stored into an array ({a.dtype}, shape {a.shape}) that views the "
            f"memory of a {type(owner).__name__}, whose extent NumPy cannot tell: copy it first"
        )
        raise UnsupportedTypeError(message) from error


def forget(tag: Tag) -> None:
    """Drop the lanes of a call that has ended."""
    for key in list(SHADOWED):
        shadow = SHADOWED.get(key)
        if shadow is not None and shadow.drop(tag) and not shadow.lanes:
            SHADOWED.pop(key, None)
            _FOREIGN.discard(key)
