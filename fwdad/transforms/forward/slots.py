"""The tangent of memory that is stored into, as coefficients at places.

A *slot* is an array of coefficients on the tape, of the memory's shape, with the place of each
element, which is known while the tape is recorded. A store uses a slot for each of its terms,
preferably one that continues its neighbours' progression, so that a band stays one run; in the
other slots the stored elements no longer have a place. What is added at indices that may repeat is
kept beside the slots, as pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import Lanes, add_term
from fwdad.tangents.placed import NOWHERE, Placed, most_terms
from fwdad.tangents.scattered import Piece, Scattered, pieces_of

Step = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class Slot:
    """One array of coefficients, and the places of its elements.

    ``pieces`` are what has been stored: the elements, flat, and the coefficients of these;
    ``latest`` is the piece that each element is of.
    """

    def __init__(self, array: Symbol, shape: tuple[int, ...]) -> None:
        self.array = array
        self.places = np.full(shape, NOWHERE)
        self.pieces: list[tuple[np.ndarray, Any]] = []
        self.latest = np.full(shape, NOWHERE)
        self.shift: int | None = None  # place less flat index, of what was stored last


class Slots:
    """The tangent of one allocation of a given shape; ``placer`` records placed lanes."""

    def __init__(
        self, recorder: Recorder, n: int, shape: tuple[int, ...], dtype: np.dtype[Any], placer: Any
    ) -> None:
        self.recorder = recorder
        self.n = n
        self.shape = shape
        self.dtype = dtype
        self.placer = placer
        self.slots: list[Slot] = []
        self.added: list[Piece] = []  # to elements of the memory
        self.order = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)

    def add(self) -> Slot:
        """A new slot, whose elements have no place."""
        recorder = self.recorder
        array = recorder.apply_typed(
            np.zeros, (self.shape, self.dtype), ArrayType(self.dtype, self.shape)
        )
        self.slots.append(Slot(array, self.shape))
        return self.slots[-1]


class View:
    """A view of memory whose tangent is in slots; without steps, the memory itself.

    ``steps`` are the calls that lead from an array of the memory's shape to the view.
    """

    def __init__(self, slots: Slots, steps: tuple[Step, ...] = ()) -> None:
        self.slots = slots
        self.steps = steps

    def _here(self, array: np.ndarray) -> Any:
        for function, args, kwargs in self.steps:
            array = function(array, *args, **kwargs)
        return array

    def _symbol(self, slot: Slot) -> Any:
        symbol: Any = slot.array
        recorder = self.slots.recorder
        for function, args, kwargs in self.steps:
            if function is np.ndarray.__getitem__:
                symbol = recorder.load(symbol, *args)
            else:
                symbol = recorder.apply(function, (symbol, *args), kwargs)
        return symbol

    @property
    def shape(self) -> tuple[int, ...]:
        """The view's shape."""
        return np.shape(self._here(self.slots.order))

    def at(self, index: tuple[Any, ...]) -> View:
        """The view at a basic index of numbers."""
        return View(self.slots, (*self.steps, (np.ndarray.__getitem__, (index,), {})))

    def through(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> View | None:
        """The view that a function returns; None if it returns a copy."""
        view = View(self.slots, (*self.steps, (function, args, kwargs)))
        order = view._here(self.slots.order)
        if isinstance(order, np.ndarray) and np.shares_memory(order, self.slots.order):
            return view
        return None

    def chunk(self, *, copy: bool = True) -> Chunk:
        """The tangent of the view's present content."""
        slots = self.slots
        shape = self.shape
        terms: dict[Lanes, Any] = {}
        for slot in slots.slots:
            places = np.array(self._here(slot.places))
            if (places < 0).all():
                continue
            d = self._symbol(slot)
            if copy and d.is_array:
                d = slots.recorder.apply(np.ndarray.copy, (d,), {})
            add_term(terms, self._lanes(places), d)
        added = self._added()
        if added:
            scattered = Scattered(slots.n, shape, slots.dtype, added, slots.placer)
            terms[scattered] = None if shape else 1.0
        if not terms:
            terms[self._lanes(np.full(shape, NOWHERE))] = None if shape else 0.0
        return Chunk.of(slots.n, shape, terms)

    def _lanes(self, places: np.ndarray) -> Placed:
        return Placed(self.slots.n, places, self.slots.dtype, self.slots.placer)

    def adds(self, index: tuple[Any, ...]) -> bool:
        """Whether anything has been added to elements at an index."""
        return bool(self.slots.added) and bool(self.at(index)._added())

    def _added(self) -> list[Piece]:
        """What has been added to the view's elements."""
        slots = self.slots
        if not slots.added or not self.steps:
            return list(slots.added)
        whole = Scattered(slots.n, slots.shape, slots.dtype, slots.added, slots.placer)
        return [p for p in whole.rearranged(slots.shape, self._here).pieces if p.elements.size]

    def add(self, index: tuple[Any, ...], t: Chunk) -> bool:
        """Add a tangent at a known index, which may repeat elements; whether that was possible."""
        order = self._here(self.slots.order)[index]
        pieces = pieces_of(t, np.shape(order))
        if pieces is None:
            return False
        self._add(order, pieces)
        return True

    def _add(self, order: np.ndarray, pieces: list[Piece]) -> None:
        """Keep pieces of what is added to some elements of the memory."""
        for piece in pieces:
            d = self._real(piece.coefficient)
            elements = np.ravel(order)[piece.elements]
            self.slots.added.append(piece._replace(elements=elements, coefficient=d))

    def _clear(self, order: np.ndarray) -> None:
        """Forget what has been added to some elements of the memory."""
        cleared = np.zeros(self.slots.order.size, bool)
        cleared[order] = True
        left = [piece.among(~cleared[piece.elements]) for piece in self.slots.added]
        self.slots.added = [piece for piece in left if piece.elements.size]

    def store(self, index: tuple[Any, ...], t: Chunk | None) -> bool:
        """Store a tangent, or None, at a basic index of numbers; whether that was possible.

        False, and nothing is written, if the tangent is not placed or has too many terms.
        """
        slots = self.slots
        order = self._here(slots.order)[index]
        found = _terms(t, np.shape(order))
        if found is None or len(found[0]) > most_terms(slots.n):
            return False
        terms, pieces = found
        if slots.added:
            self._clear(order)
        self._add(order, pieces)
        flat = np.ravel(order)
        free = list(slots.slots)
        chosen: list[tuple[Slot | None, np.ndarray, Any, int]] = []
        for places, d in terms:
            first = int(np.flatnonzero(places.ravel() >= 0)[0])
            shift = int(places.ravel()[first]) - int(flat[first])
            slot = _free_slot(free, shift)
            if slot is not None:
                free.remove(slot)
            chosen.append((slot, places, d, shift))
        new = sum(slot is None for slot, *_ in chosen)
        spare = max(most_terms(slots.n) - len(slots.slots), 0)
        for slot in slots.slots:
            self._here(slot.places)[index] = NOWHERE
        for slot, places, d, shift in chosen:
            if slot is None:
                slot = slots.add() if new <= spare or not free else free.pop(0)
                new -= 1
            slot.shift = shift
            self._here(slot.places)[index] = places
            self._here(slot.latest)[index] = len(slot.pieces)
            slot.pieces.append((order, self._write(slot, index, d)))
        return True

    def pieces(self) -> Iterator[Piece]:
        """What the present content was stored as, and what was added to it."""
        yield from self._added()
        order = self._here(self.slots.order).ravel()
        element = np.full(self.slots.order.size, NOWHERE)
        element[order] = np.arange(order.size)
        for slot in self.slots.slots:
            lanes, latest = slot.places.ravel(), slot.latest.ravel()
            for k, (stored, d) in enumerate(slot.pieces):
                at = stored.ravel()
                left = (latest[at] == k) & (lanes[at] >= 0) & (element[at] >= 0)
                (of,) = np.nonzero(left)
                if of.size:
                    yield Piece(element[at[of]], lanes[at[of]], of, d, stored.shape)

    def _write(self, slot: Slot, index: tuple[Any, ...], d: Any) -> Any:
        """Store coefficients, and return them as they are stored."""
        d = self._real(1.0 if d is None else d)
        self.slots.recorder.store(self._symbol(slot), index, d)
        return d

    def _real(self, d: Any) -> Any:
        """A coefficient in the dtype of the memory."""
        if getattr(d, "dtype", np.dtype(float)).kind == "c" and self.slots.dtype.kind != "c":
            return self.slots.recorder.apply(np.real, (d,), {})
        return d


def _free_slot(free: list[Slot], shift: int) -> Slot | None:
    """A slot whose progression has this shift, or one without places; None if there is none."""
    for slot in free:
        if slot.shift == shift:
            return slot
    return next((slot for slot in free if (slot.places < 0).all()), None)


def _terms(
    t: Chunk | None, shape: tuple[int, ...]
) -> tuple[list[tuple[np.ndarray, Any]], list[Piece]] | None:
    """Places and coefficients of what is stored into a shape, and pieces; None if not placed."""
    terms: list[tuple[np.ndarray, Any]] = []
    pieces: list[Piece] = []
    if t is None:
        return terms, pieces
    while len(t.shape) > len(shape) and t.shape[0] == 1:  # NumPy drops axes of length one
        t = t.reshape(t.shape[1:])
    if not all(type(m) is int for m in t.shape):
        return None
    for lanes, d in t.broadcast_to(shape).terms.items():
        if isinstance(lanes, Scattered):
            pieces += lanes.scaled(d, shape)
            continue
        if not isinstance(lanes, Placed):
            return None
        places = np.broadcast_to(lanes.places, shape)
        if (places >= 0).any():
            terms.append((places, d))
    return terms, pieces
