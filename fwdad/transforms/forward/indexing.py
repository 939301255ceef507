"""Tangents of elements and parts of arrays, term by term."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import INT, ArrayType, Number, Type
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import Lanes, add_term
from fwdad.tangents.placed import KnownPlaces, Placed, even_steps, is_fixed
from fwdad.tangents.zero import Zero
from fwdad.transforms.forward.lanes import element_place, unit_lanes
from fwdad.transforms.forward.state import State
from fwdad.transforms.forward.tangents import broadcasts


class Indexing:
    """Indexes tangents."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.recorder = state.recorder
        self.n = state.n

    def indexed(
        self, chunk: Chunk, index: tuple[Any, ...], t: Type, known: tuple[Any, ...] | None = None
    ) -> Any:
        """The tangent of ``a[index]``, term by term.

        ``known`` is the index where its values are known.
        """
        if self.state.placed and known is not None and all(type(m) is int for m in chunk.shape):
            self._know_lengths(chunk.shape, known, t)
        places = zip(index, chunk.shape, strict=False)
        of_one = all(
            type(i) is int and (-n <= i < n if type(n) is int else i >= 0) for i, n in places
        )
        if of_one and len(index) == len(chunk.shape):
            item = chunk.element(index)
            if isinstance(item, Zero):
                return item
            numbers = {part: 1.0 if d is None else d for part, d in item.terms.items()}
            return Chunk.of(self.n, (), numbers)
        alignable(index)
        terms: dict[Lanes, Any] = {}
        for lanes, d in chunk.terms.items():
            scaling: Any = d
            if type(d) is Symbol and d.is_array:
                whole: Any = d
                if broadcasts(d.shape, chunk.shape):
                    whole = np.broadcast_to(d, chunk.shape)
                scaling = self.recorder.load(whole, index)
            indexed = self._indexed_lanes(lanes, index, chunk.shape, known)
            if isinstance(t, Number) and scaling is None:
                scaling = 1.0
            add_term(terms, indexed, scaling)
        return Chunk.of(self.n, self.state.shape(t), terms)

    def _know_lengths(self, shape: tuple[int, ...], known: tuple[Any, ...], t: Type) -> None:
        """Note the lengths of what a known index takes."""
        with contextlib.suppress(IndexError):
            self.recorder.lengths.know(t, np.broadcast_to(np.False_, shape)[known].shape)

    def _indexed_lanes(
        self,
        lanes: Lanes,
        index: tuple[Any, ...],
        shape: tuple[Any, ...],
        known: tuple[Any, ...] | None,
    ) -> Lanes:
        if isinstance(lanes, KnownPlaces) and all(type(m) is int for m in shape):
            at = index if known is None else known
            if known is not None or is_fixed(index):
                # one out of range raises when the program gets there
                with contextlib.suppress(IndexError):
                    return lanes.rearranged(shape, lambda a: a[at])
        if isinstance(lanes, Placed):
            place = self._place(lanes, index, shape)
            if place is not None:
                dtype = lanes.dtype
                args = (self.n, place) if dtype == np.float64 else (self.n, place, dtype)
                unit = ArrayType(dtype, (self.n,))
                return Lanes(self.recorder.apply_typed(unit_lanes, args, unit))
        array = lanes.array
        if array.ndim < len(shape) + 1:
            array = lanes.expanded(len(shape)).array
        if broadcasts(array.shape[1:], shape):
            array = np.broadcast_to(array, (self.n, *shape))
        array = self.recorder.as_symbol(array)
        return Lanes(self.recorder.load(array, (slice(None), *index)))

    def _place(self, lanes: Placed, index: tuple[Any, ...], shape: tuple[Any, ...]) -> Any:
        """The lane of an element at a symbolic index; None if lanes do not advance evenly."""
        numbers = all(type(i) is int or (type(i) is Symbol and not i.is_array) for i in index)
        if not numbers or len(index) != len(shape) or lanes.shape != shape or not lanes.places.size:
            return None
        first, steps = even_steps(lanes.places)
        if steps is None:
            return None
        place: Any = first
        for axis, (i, m, step) in enumerate(zip(index, shape, steps, strict=True)):
            if step:
                # an index out of range has no lane: the element may be read nowhere else
                own: Any = self.recorder.apply_typed(element_place, (i, m, axis), INT)
                own = own if step == 1 else own * step
                place = own if type(place) is int and place == 0 else own + place
        return place


def alignable(index: tuple[Any, ...]) -> None:
    """Refuse separated index arrays, whose axes NumPy would move in front of the lanes."""
    advanced = [
        k
        for k, i in enumerate(index)
        if i is not None and i is not Ellipsis and not isinstance(i, slice)
    ]
    arrays = [
        k
        for k in advanced
        if isinstance(index[k], (list, np.ndarray))
        or (type(index[k]) is Symbol and index[k].is_array)
    ]
    if arrays and advanced != list(range(advanced[0], advanced[-1] + 1)):
        raise UntraceableError(
            "index arrays apart from each other, as in a[i, :, j], cannot be pushed through a "
            "tape: use numpy.take, or index in two steps"
        )
