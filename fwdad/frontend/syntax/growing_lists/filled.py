"""Lists that one body of a loop fills: the comprehensions of many items that are all alike.

Item by item, ``[f(t) for t in x]`` would be as many copies of f as x is long. Here the items go
into arrays of the list's length, one for each part of an item. What an array cannot do as a list
would (be written, say) is refused: then the trace restarts, and the list is made item by item.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.numpy_sources.row_by_row import Flat
from fwdad.frontend.syntax import iteration
from fwdad.frontend.syntax.control import NotOneBodyError
from fwdad.frontend.syntax.growing_lists.growing_tuples import Tuples
from fwdad.frontend.syntax.growing_lists.items import ONE_BODY, ONE_BY_ONE, Items
from fwdad.frontend.syntax.growing_lists.making import can_grow, growing_list
from fwdad.frontend.syntax.growing_lists.tables import are_shared
from fwdad.frontend.syntax.iterators import Iterator
from fwdad.frontend.syntax.one_body import loop
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.ops import Block, Op, Value, walk
from fwdad.ir.symbol import UNBOUND, Symbol
from fwdad.ir.types import ArrayType, Number, Size, Type, number_type

_FEW = 8  # items
_MANY = 200  # operations of all items


def list_all(tracer: Tracer, x: Any) -> Any:
    """``list(x)``, made at the location that is being evaluated."""
    x = iteration.iterable(tracer, x)
    if isinstance(x, Iterator) or iteration.sequence(x) is not None:
        return iteration.items(tracer, x)
    if isinstance(x, Flat):
        x = tracer.call(np.ravel, (x.array,), {})
    found, made = iteration.from_zero(tracer, iteration.steps(tracer, x)), None
    if found.one_body and _only_the_run_tells(tracer, found.length):
        made = by_loop(tracer, lambda place: _pushed(tracer, place, found))
    if made is None:
        found.length = iteration.number_of(tracer, found)
        if found.one_body and _FEW <= found.length < iteration.ENDLESS:
            made = by_loop(tracer, lambda _: _filled(tracer, found.length, found.item))
    iteration.end(tracer, x)
    return list(iteration.walk_steps(tracer, found)) if made is None else made


def by_loop(tracer: Tracer, run: Callable[[Any], Items | None]) -> Items | None:
    """The list that a loop fills, which ``run`` makes at the place that it is given.

    None where that cannot be: all is met again when the list is made item by item.
    """
    recorder, at = tracer.recorder, tracer.position.exact()
    if at is None or recorder.catchers:
        return None
    place = (at.filename, at.line, at.column, "items")
    if tracer.growing.get((place, "how")) is ONE_BY_ONE:
        return None
    before, lists = recorder.latest, len(recorder.lists)
    try:
        made = run(place)
    except (UntraceableError, AlwaysRaises):
        recorder.cut_behind(before)
        del recorder.lists[lists:]
        return None
    if made is not None:
        tracer.growing[place, "how"] = ONE_BODY
    return made


def _only_the_run_tells(tracer: Tracer, length: Any) -> bool:
    """Whether a length is neither known nor the example's, which the tape would assume."""
    return type(length) is Symbol and tracer.recorder.examples.forced(length.value) is UNBOUND


def _pushed(tracer: Tracer, place: Any, found: iteration.Steps) -> Items:
    """The list of all items, pushed one after the other."""
    items = growing_list(tracer, [], place)

    def body(k: Symbol | None) -> bool:
        items.append(found.item(k))
        return False

    loop(tracer.recorder, (0, found.length, 1), None, body)
    return items


def _filled(tracer: Tracer, length: int, item: Callable[[Any], Any]) -> Items | None:
    """The list of ``item(k)`` for all k below a length; None if it is short, or known."""
    first, size = _first(tracer, item)
    if length * size < _MANY or not mentions_symbols(first):
        return None
    made = _made(tracer, length, first)

    def body(k: Symbol | None) -> bool:
        made.put(k, item(k))
        return False

    loop(tracer.recorder, (0, length, 1), None, body)
    items: Items = made.items()
    return items


def would_grow(tracer: Tracer, error: UntraceableError, count: int) -> bool:
    """Whether a list that a short loop appends to grows at run time, if it can.

    ``error`` says why the loop is no one body, and where the list is made: the trace restarts.
    """
    if not isinstance(error, NotOneBodyError) or count < _FEW or count * error.size < _MANY:
        return False
    return can_grow(tracer, error)


def _first(tracer: Tracer, item: Callable[[Any], Any]) -> tuple[Any, int]:
    """The first item, and by how many operations it is made; nothing of it is kept."""
    recorder, block = tracer.recorder, Block()
    if recorder.ways is not None:
        recorder.ways.begin_loop()
    try:
        with recorder.region(block) as region:
            region.repeats = True
            first = item(0)
            region.undo()
    finally:
        if recorder.ways is not None:
            recorder.ways.end_loop()
    return first, sum(1 for _ in walk(block))


# -- the parts of items


@dataclass
class _Column:
    """A number, an array, or a list of numbers of each item, as the rows of an array."""

    tracer: Tracer
    type: Type
    rows: Symbol
    inner: bool
    python: bool
    own: set[Op]
    shared: bool = False

    def put(self, k: Any, x: Any) -> None:
        """Store one item."""
        same = not self.inner or _are_pythons(x) is self.python
        self.shared |= self.inner and are_shared(self.tracer, [x])
        x = _numbers(self.tracer, x) if self.inner else x
        found = _type_of(x)
        if found is None or not (same and self._is_like(found)):
            raise UntraceableError("items of a comprehension differ in type or shape")
        recorder = self.tracer.recorder
        recorder.store(self.rows, k, x)
        assert recorder.latest is not None
        self.own.add(recorder.latest)

    def _is_like(self, t: Type) -> bool:
        if isinstance(t, ArrayType) and isinstance(self.type, ArrayType):
            t, own = map(self.tracer.recorder.lengths.resolved, (t, self.type))
            return t.dtype == own.dtype and t.shape == own.shape
        return t == self.type

    def items(self) -> Items:
        """The list."""
        arrays = isinstance(self.type, ArrayType) and not self.inner
        items = Items(self.tracer, self.rows, python=self.python, arrays=arrays, inner=self.inner)
        items.shared = self.shared
        return items

    # -- what `check_items` asks for

    head: tuple[Any, ...] = ()
    made: Op | None = None

    @property
    def into(self) -> Value:
        """The memory that the items are stored in."""
        return self.rows.value

    def read(self) -> list[tuple[Value, set[Op]]]:
        """The array that the list is, and the operations that fill it."""
        return [(self.rows.value, self.own)]


@dataclass
class _Tuple:
    """A tuple of class ``kind`` of each item."""

    tracer: Tracer
    kind: Any
    parts: list[Any]

    def put(self, k: Any, x: Any) -> None:
        """Store one item."""
        if type(x) is not self.kind or len(x) != len(self.parts):
            raise UntraceableError("items of a comprehension differ in structure")
        for part, held in zip(self.parts, x, strict=True):
            part.put(k, held)

    def items(self) -> Items:
        """The list."""
        return Tuples(self.tracer, self.kind, [part.items() for part in self.parts])


def _made(tracer: Tracer, length: int, x: Any) -> Any:
    """Room for as many items as x; raises if they are not what arrays hold."""
    if isinstance(x, tuple) and x and (type(x) is tuple or hasattr(x, "_fields")):
        return _Tuple(tracer, type(x), [_made(tracer, length, part) for part in x])
    inner = type(x) is list or isinstance(x, Items)
    python = inner and _are_pythons(x)
    t = _type_of(_numbers(tracer, x) if inner else x)
    if t is None:
        raise UntraceableError("items of a comprehension are neither numbers nor arrays")
    recorder = tracer.recorder
    shape = t.shape if isinstance(t, ArrayType) else ()
    lengths = [recorder.length_symbol(d) if isinstance(d, Size) else d for d in shape]
    rows = recorder.apply(np.zeros, ((length, *lengths), t.dtype), {})
    column = _Column(tracer, t, rows, inner, python or (isinstance(t, Number) and t.python), set())
    recorder.lists.append(column)
    return column


def _type_of(x: Any) -> Any:
    """The type of a number or an array; None of anything else."""
    if type(x) is Symbol:
        return x.type
    if isinstance(x, np.ndarray):
        return None  # of constants
    return number_type(x)


def _numbers(tracer: Tracer, x: Any) -> Any:
    """A list of numbers of one type, as an array."""
    if isinstance(x, Items):
        if x.inner or x.arrays or isinstance(x, Tuples):
            x.refused("a list of")
        return x.rows()
    types = set(map(_type_of, x)) if type(x) is list else set()
    if len(types) != 1 or not isinstance(next(iter(types)), Number):
        raise UntraceableError("lists of different things as items of a comprehension")
    return tracer.recorder.apply(np.array, (list(x),), {})


def _are_pythons(x: Any) -> bool:
    """Whether the numbers in a list are Python's."""
    t = x if isinstance(x, Items) else _type_of(x[0]) if type(x) is list and x else None
    return isinstance(t, (Items, Number)) and t.python
