"""Lanes: the immutable arrays behind chunks, shared by every tangent that grew out of them."""

from __future__ import annotations

import math
import operator
from functools import lru_cache
from typing import Any

import numpy as np

BLOCK = 8 * 2**20
"""Bytes of lanes of one array that are kept near a core's cache: wider chunks are cut."""

UNKNOWN, SEVERAL = -1, -2  # in the place of the one lane that is not zero

_PARTS_KEPT = 4096
_SMALL = 4096  # elements of lanes


class Lanes:
    """N lanes with the lane axis in front, ``(N, *shape)``, shared by identity and never written.

    ``basis = (n, start, shape, dtype)``: lane k is the unit direction of flat index ``start + k``,
    not stored until it is read. ``hot = (n, k, dtype)``: a scalar's lanes, one in lane k. ``lane``
    is the one nonzero lane, ``SEVERAL`` or ``UNKNOWN``. A primal may be larger than ``shape`` by
    broadcasting.
    """

    __slots__ = ("_array", "_finite", "_parts", "basis", "hot", "lane", "shape")
    placed = False  # whether each element has one lane or none, known by its place

    def __init__(self, array: Any = None, *, basis: Any = None, hot: Any = None) -> None:
        self._array = array
        self._parts: dict[Any, Lanes | None] | None = None
        self._finite: bool | None = None if array is not None else True
        self.basis = basis
        self.hot = hot
        self.lane = UNKNOWN if hot is None else hot[1]
        self.shape: tuple[int, ...] = (
            array.shape[1:] if array is not None else () if hot is not None else basis[2]
        )

    @property
    def array(self) -> Any:
        """The ``(N, *shape)`` array."""
        if self._array is None:
            self._array = self._build()
        return self._array

    def _build(self) -> np.ndarray:
        if self.hot is not None:
            n, k, dtype = self.hot
            array = np.zeros(n, dtype)
            array[k] = 1
        else:
            n, start, shape, dtype = self.basis
            size = math.prod(shape)
            array = np.zeros((n, size), dtype)
            if start < size:
                k = np.arange(max(0, -start), min(n, size - start))
                array[k, start + k] = 1
            array = array.reshape((n, *shape))
        array.flags.writeable = False
        return array

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the lanes."""
        if self.basis is not None:
            return np.dtype(self.basis[3])
        return np.dtype(self.hot[2] if self.hot is not None else self._array.dtype)

    @property
    def known(self) -> bool:
        """Whether they are numbers, and not symbols of a tape that is being written."""
        return not hasattr(self._array, "__fwdad_symbolic__")

    @property
    def zero(self) -> bool:
        """Whether they are zeros, as far as that is known without a run."""
        if self.basis is not None:
            return bool(self.basis[1] >= math.prod(self.shape))
        return type(self._array) is np.ndarray and not self._array.any()

    @property
    def finite(self) -> bool:
        """Whether every element is finite, so that a zero scaling gives zero."""
        if self._finite is None:
            array = self._array
            while hasattr(array, "__fwdad_tag__"):
                array = array.p
            self._finite = bool(np.isfinite(array).all())
        return self._finite

    def part(self, key: Any, make: Any) -> Lanes | None:
        """Return the lanes that ``make(self)`` derives, the same object each time for one key."""
        parts = self._parts
        if parts is None:
            parts = self._parts = {}
        if hasattr(self._array, "__fwdad_symbolic__"):
            key = (key, self._array.recorder.scope)
        try:
            return parts[key]
        except KeyError:
            if len(parts) >= _PARTS_KEPT:
                parts.clear()
            lanes = parts[key] = make(self)
            return lanes

    def element(self, index: tuple[int, ...]) -> Lanes | None:
        """The lanes of one element, or None when they are structurally zero."""
        parts = self._parts
        if parts is not None and index in parts:
            return parts[index]
        if min(index, default=0) < 0:  # one element has one part, however it is written
            index = tuple(i + n if i < 0 else i for i, n in zip(index, self.shape, strict=True))
            if parts is not None and index in parts:
                return parts[index]
        if self.basis is not None:
            return self.part(index, lambda lanes: lanes._basis_element(index))
        return self.part(index, lambda lanes: Lanes(lanes.array[(slice(None), *index)]))

    def _basis_element(self, index: tuple[int, ...]) -> Lanes | None:
        n, start, shape, dtype = self.basis
        flat = 0
        for i, length in zip(index, shape, strict=True):
            if not -length <= i < length:
                raise IndexError(f"index {i} is out of bounds for axis with size {length}")
            flat = flat * length + (i + length if i < 0 else i)
        k = flat - start
        return hot_lanes(n, k, dtype) if 0 <= k < n else None

    def expanded(self, ndim: int) -> Lanes:
        """These lanes with axes of length one after the lane axis, for a primal of rank ndim."""
        array = self.array
        if array.ndim == ndim + 1:
            return self
        key = ("ndim", ndim)
        missing = ndim + 1 - array.ndim
        lanes = self.part(
            key,
            lambda _: Lanes(array.reshape((array.shape[0],) + (1,) * missing + array.shape[1:])),
        )
        assert lanes is not None
        return lanes

    def broadcast(self, shape: tuple[Any, ...]) -> Lanes:
        """The lanes of a primal that is broadcast to a shape, of the same rank."""
        array = self.array
        return Lanes(np.broadcast_to(array, (array.shape[0], *shape)))

    def cut(self, part: slice) -> Lanes:
        """The lanes of a slice along the primal's first axis."""
        parts = self._parts
        if parts is None:
            parts = self._parts = {}
        key = ("cut", part.start, part.stop, part.step)
        try:
            lanes = parts.get(key)
        except TypeError:  # bounds that are arrays without axes
            return self.cut(slice(*_bounds(part)))
        if lanes is None:
            if len(parts) >= _PARTS_KEPT:
                parts.clear()
            lanes = parts[key] = Lanes(self.array[:, part])
        return lanes

    def indexed(self, index: tuple[Any, ...], shape: tuple[int, ...]) -> Lanes:
        """The lanes of a basic or fancy index into a primal of the given shape."""
        array = self.array
        full = (array.shape[0], *shape)
        if array.shape != full:
            array = np.broadcast_to(array, full)
        key = _index_key(index)
        if key is None:
            return Lanes(index_lanes(array, index))
        lanes = self.part((key, shape), lambda _: Lanes(index_lanes(array, index)))
        assert lanes is not None
        return lanes


def add_term(terms: dict[Lanes, Any], lanes: Lanes, d: Any) -> None:
    """Add scaled lanes to a sum; lanes that were apart may be equal after an index."""
    if lanes in terms:
        scaling = terms[lanes]
        d = (1.0 if scaling is None else scaling) + (1.0 if d is None else d)
    terms[lanes] = d


_HOT: dict[tuple[int, int, Any], Lanes] = {}


def hot_lanes(n: int, k: int, dtype: np.dtype[Any]) -> Lanes:
    """A number's unit direction k of n: one object, so that sums of it are one term."""
    key = (n, k, dtype)
    lanes = _HOT.get(key)
    if lanes is None:
        lanes = _HOT.setdefault(key, Lanes(hot=key))
    return lanes


def support_lanes(moves: np.ndarray) -> Lanes:
    """A number's lanes, one where ``moves`` is true: one object, so that sums of it are one term.

    The coefficient of these is an array with a number for each lane. Where ``moves`` is false the
    tangent is zero for any coefficient.
    """
    return _support(moves.tobytes())


@lru_cache(maxsize=1024)
def _support(moves: bytes) -> Lanes:
    lanes = Lanes(np.frombuffer(moves, np.bool_).astype(np.float64))
    lanes.lane = SEVERAL
    return lanes


@lru_cache(maxsize=256)
def _small_basis(n: int, start: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Lanes:
    return Lanes(basis=(n, start, shape, dtype))


def basis_lanes(n: int, start: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Lanes:
    """The lanes of n basis directions of an array, from flat index ``start`` on.

    Those of small arrays are kept from call to call: solvers ask for the same Jacobian again.
    """
    if n * math.prod(shape) <= _SMALL:
        return _small_basis(n, start, shape, dtype)
    return Lanes(basis=(n, start, shape, dtype))


def zero_lanes(n: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Lanes:
    """Lanes of zeros: directions behind the last one, not stored until they are read."""
    return Lanes(basis=(n, math.prod(shape), shape, dtype))


def _index_key(index: tuple[Any, ...]) -> Any:
    key: list[Any] = []
    for i in index:
        if isinstance(i, slice):
            bounds = i.start, i.stop, i.step
            if not all(b is None or isinstance(b, (int, np.integer)) for b in bounds):
                return None  # lengths of a tape
            key.append(("slice", *_bounds(i)))
        elif i is None or i is Ellipsis or type(i) is int:
            key.append(i)
        else:
            return None
    return ("index", *key)


def _bounds(part: slice) -> tuple[int | None, ...]:
    """Start, stop and step of a slice as Python's ints: others may be no keys of a dict."""
    bounds = (part.start, part.stop, part.step)
    return tuple([b if b is None else operator.index(b) for b in bounds])


def is_basic(index: tuple[Any, ...]) -> bool:
    """Whether NumPy treats an index tuple as basic (a view), not as fancy (a copy)."""
    for i in index:
        if type(i) is int or isinstance(i, slice) or i is None or i is Ellipsis:
            continue
        if isinstance(i, (np.integer, int)) and not isinstance(i, (bool, np.bool_)):
            continue
        return False
    return True


def index_lanes(lanes: Any, index: tuple[Any, ...]) -> Any:
    """Index every lane.

    A fancy index moves its result axes, depending on the indices next to it; with the lane
    axis last, and never part of the index, the primal's own rules hold.
    """
    if is_basic(index):
        return lanes[(slice(None), *index)]
    last = np.moveaxis(lanes, 0, -1)
    return np.moveaxis(last[lane_last_index(index)], -1, 0)


def lane_last_index(index: tuple[Any, ...]) -> tuple[Any, ...]:
    """Extend an index so that a trailing lane axis is taken whole."""
    if any(i is Ellipsis for i in index):
        return (*index, slice(None))
    return (*index, Ellipsis)
