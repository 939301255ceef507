"""Placed lanes, where each element of the primal has one lane or none: a rearranged basis.

Under a Jacobian, a tangent starts as the directions of a basis. Slices, shifts, joins and stores
only move its elements about, elementwise operations only scale them. So it is a sum of *places*
(which lane an element moves along) with coefficients, and the Jacobian of such a program is written
place by place into zeros: O(size), where dense lanes cost O(N size) at each operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.tangents.lanes import UNKNOWN, Lanes, add_term, is_basic

NOWHERE = -1  # the place of an element that does not move
_FEW, _MANY = 4, 32


def most_terms(n: int) -> int:
    """How many placed terms a sum may have: beyond, n dense lanes are less work."""
    return max(_FEW, min(_MANY, n // 2))


class KnownPlaces(Lanes):
    """Lanes whose places are known, and only the coefficients there may be symbols.

    ``placer(n, shape, terms)`` writes a sum of such lanes out, each scaled, ``(n, *shape)``.
    """

    __slots__ = ("_dtype", "n", "placer")

    def __init__(self, n: int, shape: tuple[int, ...], dtype: np.dtype[Any], placer: Any) -> None:
        self._array = None
        self._parts = None
        self._finite = True
        self.basis = None
        self.hot = None
        self.lane = UNKNOWN
        self.n = n
        self.shape = shape
        self.placer = placer
        self._dtype = dtype

    @property
    def array(self) -> Any:
        """The lanes, written out at each access."""
        return self.placer(self.n, self.shape, {self: None})

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the lanes."""
        return self._dtype

    @property
    def known(self) -> bool:
        """Whether the lanes are numbers: they are not stored."""
        return False

    def part(self, key: Any, make: Any) -> Lanes | None:
        """The lanes that ``make(self)`` derives; nothing is kept."""
        return make(self)

    def rearranged(self, shape: tuple[int, ...], move: Callable[[Any], Any]) -> KnownPlaces:
        """The lanes of elements that are rearranged, or repeated.

        ``move`` does so to an array of ``shape``, the primal's.
        """
        raise NotImplementedError

    def expanded(self, ndim: int) -> Lanes:
        """With axes of length one in front, for a primal of rank ndim."""
        missing = ndim - len(self.shape)
        if not missing:
            return self
        return self.rearranged(self.shape, lambda a: a.reshape((1,) * missing + a.shape))

    def broadcast(self, shape: tuple[Any, ...]) -> Lanes:
        """The lanes of a primal that is broadcast to a shape."""
        if all(type(m) is int for m in shape):
            return self.rearranged(shape, lambda a: a)
        return super().broadcast(shape)

    def cut(self, part: slice) -> Lanes:
        """The lanes of a slice along the primal's first axis."""
        return self.rearranged(self.shape, lambda a: a[part])

    def indexed(self, index: tuple[Any, ...], shape: tuple[Any, ...]) -> Lanes:
        """The lanes of a basic or known index into a primal of the given shape."""
        if is_fixed(index) and all(type(m) is int for m in shape):
            return self.rearranged(shape, lambda a: a[index])
        return super().indexed(index, shape)


class Placed(KnownPlaces):
    """Lanes that are one where an element moves along the lane, and zero elsewhere.

    ``places`` is each element's lane, or ``NOWHERE``; it must not be written later. Equal places
    make one term of a sum.
    """

    __slots__ = ("_hash", "places")
    placed = True

    def __init__(self, n: int, places: Any, dtype: np.dtype[Any], placer: Any) -> None:
        self.places = np.asarray(places)
        super().__init__(n, self.places.shape, dtype, placer)
        self.lane = UNKNOWN if self.shape else int(self.places)
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.n, self.shape, self.places.tobytes()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Placed)
            and self.n == other.n
            and self._dtype == other._dtype
            and np.array_equal(self.places, other.places)
        )

    def moved(self, places: Any) -> Placed:
        """Lanes of the same basis at other places."""
        return Placed(self.n, places, self._dtype, self.placer)

    def element(self, index: tuple[int, ...]) -> Lanes | None:
        """The lanes of one element, or None where it does not move."""
        position = self.places[index]
        return self.moved(position) if position >= 0 else None

    def rearranged(self, shape: tuple[int, ...], move: Callable[[Any], Any]) -> Placed:
        """The lanes of elements that are rearranged: their places are."""
        same = self.shape == shape
        return self.moved(move(self.places if same else np.broadcast_to(self.places, shape)))


def is_fixed(index: tuple[Any, ...]) -> bool:
    """Whether an index is basic, and known as numbers."""
    return is_basic(index) and is_number(index)


def is_number(index: tuple[Any, ...]) -> bool:
    """Whether nothing of an index is a symbol."""
    for i in index:
        parts = (i.start, i.stop, i.step) if isinstance(i, slice) else (i,)
        if any(hasattr(p, "__fwdad_symbolic__") for p in parts):
            return False
    return True


def rearranged(
    shape: tuple[Any, ...], terms: dict[Lanes, Any], move: Callable[[Any], Any]
) -> dict[Lanes, Any] | None:
    """The terms of a tangent whose elements are rearranged, or None if not all are placed.

    ``move`` rearranges an array of the primal's ``shape``.
    """
    if not all(type(m) is int for m in shape):
        return None
    result: dict[Lanes, Any] = {}
    for lanes, d in terms.items():
        if not isinstance(lanes, KnownPlaces):
            return None
        moved = lanes.rearranged(shape, move)
        add_term(result, moved, move(d) if getattr(d, "shape", ()) else d)
    return result


def even_steps(places: np.ndarray) -> tuple[int, list[int] | None]:
    """The first place, and by how much places go on along each axis if they do so evenly."""
    first = int(places.flat[0])
    steps = []
    expected = np.full((1,) * places.ndim, first)
    for axis, m in enumerate(places.shape):
        at = [0] * places.ndim
        at[axis] = 1
        step = int(places[tuple(at)]) - first if m > 1 else 0
        steps.append(step)
        along = [1] * places.ndim
        along[axis] = m
        expected = expected + step * np.arange(m).reshape(along)
    even = first >= 0 and np.array_equal(expected, places)
    return first, steps if even else None
