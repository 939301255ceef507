"""The tangent of memory that is stored into, as coefficients at places.

A *slot* is an array of coefficients on the tape, of the memory's shape, with the place of each
element, which is known while the tape is recorded. A store uses a slot for each of its terms,
preferably one that continues its neighbours' progression, so that a band stays one run; in the
other slots the stored elements no longer have a place.
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
        if not terms:
            terms[self._lanes(np.full(shape, NOWHERE))] = None if shape else 0.0
        return Chunk.of(slots.n, shape, terms)

    def _lanes(self, places: np.ndarray) -> Placed:
        return Placed(self.slots.n, places, self.slots.dtype, self.slots.placer)

    def store(self, index: tuple[Any, ...], t: Chunk | None) -> bool:
        """Store a tangent, or None, at a basic index of numbers; whether that was possible.

        False, and nothing is written, if the tangent is not placed or has too many terms.
        """
        slots = self.slots
        order = self._here(slots.order)[index]
        terms = _terms(t, np.shape(order))
        if terms is None or len(terms) > most_terms(slots.n):
            return False
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

    def pieces(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, Any, tuple[int, ...]]]:
        """What the present content was stored as.

        Elements of the view, the lane of each, and which elements of the coefficients these move
        with; the coefficients, and the shape that they broadcast to.
        """
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
                    yield element[at[of]], lanes[at[of]], of, d, stored.shape

    def _write(self, slot: Slot, index: tuple[Any, ...], d: Any) -> Any:
        """Store coefficients, and return them as they are stored."""
        recorder = self.slots.recorder
        d = 1.0 if d is None else d
        if getattr(d, "dtype", np.dtype(float)).kind == "c" and self.slots.dtype.kind != "c":
            d = recorder.apply(np.real, (d,), {})
        recorder.store(self._symbol(slot), index, d)
        return d


def _free_slot(free: list[Slot], shift: int) -> Slot | None:
    """A slot whose progression has this shift, or one without places; None if there is none."""
    for slot in free:
        if slot.shift == shift:
            return slot
    return next((slot for slot in free if (slot.places < 0).all()), None)


def _terms(t: Chunk | None, shape: tuple[int, ...]) -> list[tuple[np.ndarray, Any]] | None:
    """Places and coefficients of what is stored into a shape; None if it is not placed."""
    if t is None:
        return []
    while len(t.shape) > len(shape) and t.shape[0] == 1:  # NumPy drops axes of length one
        t = t.reshape(t.shape[1:])
    if not all(type(m) is int for m in t.shape):
        return None
    terms = []
    for lanes, d in t.broadcast_to(shape).terms.items():
        if not isinstance(lanes, Placed):
            return None
        places = np.broadcast_to(lanes.places, shape)
        if (places >= 0).any():
            terms.append((places, d))
    return terms
