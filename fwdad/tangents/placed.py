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


class Placed(Lanes):
    """Lanes that are one where an element moves along the lane, and zero elsewhere.

    ``places`` is each element's lane, or ``NOWHERE``; it must not be written later. Equal places
    make one term of a sum. ``placer(n, shape, terms)`` writes a sum of scaled placed lanes out,
    ``(n, *shape)``.
    """

    __slots__ = ("_dtype", "_hash", "n", "placer", "places")
    placed = True

    def __init__(self, n: int, places: Any, dtype: np.dtype[Any], placer: Any) -> None:
        self._array = None
        self._parts = None
        self._finite = True
        self.basis = None
        self.hot = None
        self.n = n
        self.places = np.asarray(places)
        self.placer = placer
        self._dtype = dtype
        self.shape = self.places.shape
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
        """Whether the lanes are numbers: always, although they are not stored."""
        return False

    def part(self, key: Any, make: Any) -> Lanes | None:
        """The lanes that ``make(self)`` derives; nothing is kept."""
        return make(self)

    def moved(self, places: Any) -> Placed:
        """Lanes of the same basis at other places."""
        return Placed(self.n, places, self._dtype, self.placer)

    def element(self, index: tuple[int, ...]) -> Lanes | None:
        """The lanes of one element, or None where it does not move."""
        position = self.places[index]
        return self.moved(position) if position >= 0 else None

    def expanded(self, ndim: int) -> Lanes:
        """With axes of length one in front, for a primal of rank ndim."""
        missing = ndim - len(self.shape)
        return self.moved(self.places.reshape((1,) * missing + self.shape)) if missing else self

    def broadcast(self, shape: tuple[Any, ...]) -> Lanes:
        """The lanes of a primal that is broadcast to a shape."""
        if all(type(m) is int for m in shape):
            return self.moved(np.broadcast_to(self.places, shape))
        return super().broadcast(shape)

    def cut(self, part: slice) -> Lanes:
        """The lanes of a slice along the primal's first axis."""
        return self.moved(self.places[part])

    def indexed(self, index: tuple[Any, ...], shape: tuple[Any, ...]) -> Lanes:
        """The lanes of an index into a primal of the given shape."""
        if is_fixed(index) and all(type(m) is int for m in shape):
            return self.moved(np.broadcast_to(self.places, shape)[index])
        return super().indexed(index, shape)


def is_fixed(index: tuple[Any, ...]) -> bool:
    """Whether an index is basic, and known as numbers."""
    for i in index:
        parts = (i.start, i.stop, i.step) if isinstance(i, slice) else (i,)
        if any(hasattr(p, "__fwdad_symbolic__") for p in parts):
            return False
    return is_basic(index)


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
        if not isinstance(lanes, Placed):
            return None
        moved = lanes.moved(move(np.broadcast_to(lanes.places, shape)))
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
