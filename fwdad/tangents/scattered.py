"""Scattered lanes: coefficients that are added to elements, each along a lane of its own.

A gather repeats elements, and a sum or a scatter adds several to one. Where indices are known, it
is known along which lanes an element of the result moves; how far are elements of coefficients:
a sparse matrix whose pattern is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fwdad.tangents.chunk import Chunk
from fwdad.tangents.placed import KnownPlaces, Placed
from fwdad.tangents.scaling import scale_lanes

_MOST = 1 << 22  # places of one coefficient; a matrix that full has no use for its pattern


class Piece(NamedTuple):
    """What one coefficient adds: to which elements, along which lanes, which of its elements.

    ``shape`` is what the coefficient broadcasts to; it is 1 if it is None.
    """

    elements: np.ndarray
    lanes: np.ndarray
    of: np.ndarray
    coefficient: Any
    shape: tuple[int, ...]

    def among(self, kept: np.ndarray) -> Piece:
        """The part for which a mask is true."""
        return self._replace(elements=self.elements[kept], lanes=self.lanes[kept], of=self.of[kept])

    def moved(self, order: np.ndarray) -> Piece | None:
        """What it adds where element k is element ``order[k]`` of what it was; None if too much."""
        flat = order.ravel()
        by_source = np.argsort(flat, kind="stable")
        found = flat[by_source]
        first = np.searchsorted(found, self.elements, "left")
        count = np.searchsorted(found, self.elements, "right") - first
        if int(count.sum()) > _MOST:
            return None
        whose = np.repeat(np.arange(count.size), count)
        within = np.arange(whose.size) - np.repeat(np.cumsum(count) - count, count)
        elements = by_source[first[whose] + within]
        return self._replace(elements=elements, lanes=self.lanes[whose], of=self.of[whose])

    def scaled(self, d: Any, shape: tuple[int, ...]) -> Piece:
        """It times what broadcasts to the primal's shape."""
        if d is None:
            return self
        own = self.coefficient
        if not getattr(d, "shape", ()):
            return self._replace(coefficient=d if own is None else scale_lanes(d, own))
        scaling = picked(d, shape, self.elements)
        if own is not None:
            own = picked(own, self.shape, self.of) if getattr(own, "shape", ()) else own
            scaling = scale_lanes(scaling, own)
        count = self.elements.size
        return self._replace(of=np.arange(count), coefficient=scaling, shape=(count,))


class Scattered(KnownPlaces):
    """Lanes that are the sum of pieces, of a primal of a known shape."""

    __slots__ = ("pieces",)

    def __init__(
        self, n: int, shape: tuple[int, ...], dtype: Any, pieces: list[Piece], placer: Any
    ) -> None:
        super().__init__(n, shape, np.dtype(dtype), placer)
        self.pieces = pieces

    def rearranged(self, shape: tuple[int, ...], move: Callable[[Any], Any]) -> Scattered:
        """The lanes of elements that are rearranged: the pieces are moved."""
        own = np.arange(math.prod(self.shape)).reshape(self.shape)
        order = np.asarray(move(np.broadcast_to(own, shape)))
        pieces = [piece.moved(order) or self._refused() for piece in self.pieces]
        return Scattered(self.n, order.shape, self._dtype, pieces, self.placer)

    def scaled(self, d: Any, shape: tuple[int, ...]) -> list[Piece]:
        """The pieces times d, where the primal is broadcast to a shape."""
        wide = self if shape == self.shape else self.rearranged(shape, lambda a: a)
        return [piece.scaled(d, shape) for piece in wide.pieces]

    def _refused(self) -> Any:
        """Raise what writing the lanes out raises."""
        return self.array


def picked(d: Any, shape: tuple[int, ...], flat: np.ndarray) -> Any:
    """Elements of a coefficient that broadcasts to a shape, as a vector."""
    whole = d if d.shape == shape else np.broadcast_to(d, shape)
    vector = whole if len(shape) == 1 else np.reshape(whole, (-1,))
    every = flat.size == math.prod(shape) and np.array_equal(flat, np.arange(flat.size))
    return vector if every else np.take(vector, flat)


def stays_placed(t: Any) -> bool:
    """Whether the lanes of a tangent are never to be written out, and its places are known."""
    if not isinstance(t, Chunk) or not t.terms:
        return False
    for lanes in t.terms:  # first, since lanes hardly ever are: laws ask at each call
        if not isinstance(lanes, KnownPlaces) or not lanes.placer.only:
            return False
    return all(type(m) is int for m in t.shape)


def pieces_of(t: Chunk, shape: tuple[int, ...]) -> list[Piece] | None:
    """A tangent that broadcasts to a shape as pieces; None if its places are not known."""
    if not all(type(m) is int for m in t.shape):
        return None
    pieces: list[Piece] = []
    for lanes, d in t.broadcast_to(shape).terms.items():
        if isinstance(lanes, Placed):
            flat = np.broadcast_to(lanes.places, shape).reshape(-1)
            elements = np.flatnonzero(flat >= 0)
            pieces.append(Piece(elements, flat[elements], elements, d, shape))
        elif isinstance(lanes, Scattered):
            pieces += lanes.scaled(d, shape)
        else:
            return None
    return pieces


def gathered(shape: tuple[int, ...], parts: list[tuple[Any, Chunk]]) -> Chunk | None:
    """The tangent of an array that is put together of parts at indices; None if not placed."""
    order = np.arange(math.prod(shape)).reshape(shape)
    pieces: list[Piece] = []
    for at, t in parts:
        own = np.asarray(order[at])
        if not stays_placed(t):
            return None
        found = pieces_of(t, own.shape) or ()
        pieces += [piece._replace(elements=own.ravel()[piece.elements]) for piece in found]
    t = parts[0][1]
    (lanes, *_), dtype = t.terms, np.result_type(*(t.dtype for _, t in parts))
    assert isinstance(lanes, KnownPlaces)
    return Chunk.of(t.n, shape, {Scattered(t.n, shape, dtype, pieces, lanes.placer): None})


def summed(t: Chunk, axes: tuple[int, ...], *, keepdims: bool) -> Chunk:
    """The tangent of a sum over some axes; :func:`stays_placed` holds for t."""
    kept = tuple(1 if k in axes else m for k, m in enumerate(t.shape))
    left = kept if keepdims else tuple(m for k, m in enumerate(t.shape) if k not in axes)
    targets = np.arange(math.prod(left)).reshape(kept)
    return added(t, np.broadcast_to(targets, t.shape), left)


def summed_to(t: Chunk, shape: tuple[int, ...]) -> Chunk:
    """The tangent of what is summed over the axes along which a shape was broadcast."""
    lead = len(t.shape) - len(shape)
    wide = [k + lead for k, m in enumerate(shape) if m == 1 != t.shape[k + lead]]
    return summed(t, (*range(lead), *wide), keepdims=True).reshape(shape)


def added(t: Chunk, targets: np.ndarray, shape: tuple[int, ...]) -> Chunk:
    """The tangent of an array to whose elements those of another are added.

    ``targets`` has the flat index in ``shape`` of each element; :func:`stays_placed` holds for t.
    """
    found, flat = pieces_of(t, targets.shape), targets.ravel()
    lanes = next(iter(t.terms))
    assert found is not None
    assert isinstance(lanes, KnownPlaces)
    pieces = [piece._replace(elements=flat[piece.elements]) for piece in found]
    scattered = Scattered(t.n, shape, t.dtype, pieces, lanes.placer)
    return Chunk.of(t.n, shape, {scattered: None if shape else 1.0})
