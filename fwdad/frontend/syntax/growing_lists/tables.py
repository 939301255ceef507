"""Lists of lists of numbers that are changed while the program runs: rows of one array.

All lists on a :class:`Table` are of one length, which never changes. Each is a view of the table's
array, so that whoever has one of them sees what is stored in the table, and the other way around.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.frontend.syntax.growing_lists.changing import Changing, Stored, array_of
from fwdad.frontend.syntax.growing_lists.growing_tuples import Tuples
from fwdad.frontend.syntax.growing_lists.items import Items, ListGrows, root
from fwdad.frontend.syntax.symbols import Maybe, Optional
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType, Number, join

ALIASED = (
    "a list whose items are lists, one of which stands in it twice or is known by another name, "
    "cannot be changed at places that are known at run time only: make each of them in the list"
)
_RAGGED = (
    "a list whose items are lists of different lengths or kinds cannot be changed at places that "
    "are known at run time only: use an array"
)


class RaggedError(UntraceableError):
    """Lists on a list differ in length, or may."""


class Table(Changing):
    """A list of lists of numbers, of as many each: the rows of an array.

    ``type`` is that of the numbers.
    """

    inner = True

    def __init__(self, tracer: Tracer, memory: Symbol, place: Any, t: Number) -> None:
        super().__init__(tracer, tracer.recorder.length(memory, 0), place, None)
        self.type = t
        self._memory = memory
        self._sharing: weakref.WeakSet[Any] | None = weakref.WeakSet((self,))

    @property
    def python(self) -> bool:  # type: ignore[override]
        """Whether the numbers are Python's."""
        return bool(self.type.python)

    @property
    def alone(self) -> bool:
        """Whether nothing else stands for this list."""
        return not (self.merged or self.place[-1] == "row")

    def whole(self) -> Symbol:
        """The memory."""
        return self._memory

    def rows(self) -> Symbol:
        """The numbers as they are now, as an array that nobody may write into."""
        rows: Symbol = self.tracer.recorder.apply(np.ndarray.copy, (self._memory,), {})
        return rows

    def at(self, place: Any) -> Any:
        """The list at an index that is in bounds."""
        row = self.tracer.recorder.load(self._memory, place)
        inner = (root(self.place), "row")
        if row.type.ndim > 1:
            return self._shares(Table(self.tracer, row, inner, self.type))
        count = self.tracer.recorder.length(row, 0)
        return self._shares(Stored(self.tracer, count, inner, self.type, rows=row))

    def _shares(self, x: Any) -> Any:
        """Note a list that has a part of the memory, as long as somebody has it."""
        if self._sharing is not None:
            self._sharing.add(x)
        if isinstance(x, Table):
            x._sharing = self._sharing
        return x

    def _like(self, rows: Symbol) -> Items:
        return Items(self.tracer, rows, python=self.python, inner=True)

    def item(self, index: Any) -> Any:
        """The list at an index, or a list of the same lists, those of a slice."""
        if isinstance(index, slice):
            part = self.tracer.recorder.load(self._memory, index)
            return self._shares(Table(self.tracer, part, self.place, self.type))
        return super().item(index)

    def copied(self) -> Items:
        """A list of the same lists."""
        return self.item(slice(None))

    def deeply_copied(self) -> Items:
        """A list of copies of the lists."""
        return self._like(self.rows())

    def made_at(self, place: Any) -> None:
        """Note nothing: the lists are made where the table is."""

    def put(self, k: Any, x: Any) -> None:
        """Replace a list, which nobody else has, by another one."""
        known = self._sharing is not None and all(y is self for y in self._sharing)
        if not known or are_shared(self.tracer, [x]):
            raise ListGrows((root(self.place), "apart"), item=True)
        row, t = rows_of(self.tracer, x)
        wide = join(self.type, t)
        if wide is None or not _alike(self.tracer, row.type.shape, self._memory.type.shape[1:]):
            raise ListGrows((root(self.place), "apart"), item=True)
        if wide != self.type:
            raise ListGrows((root(self.place), "row"), wide)
        self.store(self._memory, k, row)

    def as_resized(self) -> None:
        """Begin the trace anew with lists apart."""
        raise ListGrows((root(self.place), "apart"), item=True)

    def move(self, source: slice, into: slice) -> None:
        """Begin the trace anew with lists apart."""
        self.as_resized()

    def reverse(self) -> None:
        """Begin the trace anew with lists apart."""
        self.as_resized()

    def is_like(self, other: Any) -> bool:
        """Whether two tables can be one; the trace begins anew where they can be made such."""
        wide = join(self.type, other.type)
        if wide is None or self._memory.type.ndim != other.whole().type.ndim:
            return False
        for x in (self, other):
            if x.type != wide:
                raise ListGrows((root(x.place), "row"), wide)
        return True

    def parts(self, held: Any = None) -> tuple[Any, ...]:
        """The memory."""
        return (self._memory,)

    def anew(self, parts: Any) -> Table:
        """A table of other numbers, which may be those of lists that are not known."""
        made = Table(self.tracer, parts[0], self.place, self.type)
        made._sharing, made.merged = None, True
        return made


def table_of(tracer: Tracer, items: Any, place: Any) -> Table:
    """A table that is made at a place, of a list of lists."""
    shared = items.shared if isinstance(items, Items) else are_shared(tracer, items)
    if shared:
        raise UntraceableError(ALIASED, tracer.position.location())
    try:
        rows, t = rows_of(tracer, items)
    except RaggedError:
        raise ListGrows((place, "apart"), item=True) from None
    known = tracer.growing.get((place, "row"))
    wide = t if known is None else join(t, known)
    if not isinstance(wide, Number):
        raise UntraceableError(_RAGGED, tracer.position.location())
    if wide != known:
        raise ListGrows((place, "row"), wide)
    if rows.dtype != wide.dtype:
        rows = tracer.recorder.apply(np.ndarray.astype, (rows, wide.dtype), {})
    return Table(tracer, rows, place, wide)


def may_be_table(items: Any) -> bool:
    """Whether the lists on a list are of one length, as far as that is known."""
    lengths = set() if isinstance(items, Items) else {len(x) for x in items if type(x) is list}
    return len(lengths) < 2 and 0 not in lengths


def rows_of(tracer: Tracer, x: Any) -> tuple[Symbol, Number]:
    """A new array of the numbers on a list, or on the lists in it, and their type."""
    if isinstance(x, Items):
        if x.arrays or isinstance(x, Tuples):
            x.refused("changing, at a place that is known at run time only,")
        return x.copied().array(), Number(x.rows().dtype, python=x.python)
    if any(isinstance(item, Items) for item in x):
        parts = [rows_of(tracer, item) for item in x]
        first, wide = parts[0][0], _joined_types([t for _, t in parts])
        same = all(_alike(tracer, row.type.shape, first.type.shape) for row, _ in parts)
        if wide is None or not same:
            raise RaggedError(_RAGGED, tracer.position.location())
        return tracer.recorder.apply(np.stack, ([row for row, _ in parts],), {}), wide
    rows, t = array_of(tracer, x)
    if t is None:
        raise UntraceableError(_RAGGED, tracer.position.location())
    return rows, t


def _joined_types(types: list[Number]) -> Number | None:
    """The smallest type of numbers of all types."""
    wide: Any = types[0]
    for t in types[1:]:
        wide = join(wide, t) if isinstance(wide, Number) else None
    return wide


def _alike(tracer: Tracer, a: Any, b: Any) -> bool:
    """Whether two shapes are known to be one."""
    dtype = np.dtype(float)
    first, second = (tracer.recorder.lengths.resolved(ArrayType(dtype, tuple(s))) for s in (a, b))
    return first.shape == second.shape


def are_shared(tracer: Tracer, lists: list[Any]) -> bool:
    """Whether one of some lists may have another name."""
    ids = set(map(id, lists))
    journal = tracer.recorder.journal
    if len(ids) < len(lists) or any(isinstance(x, Items) and not x.alone for x in lists):
        return True
    if any(type(x) is list and not journal.is_own(x) for x in lists):
        return True
    waiting = [x for o in journal.heap() for x in (o.values() if isinstance(o, dict) else o)]
    while waiting:
        x = waiting.pop()
        if id(x) in ids:
            return True
        if isinstance(x, tuple):
            waiting.extend(x)
        elif isinstance(x, (Maybe, Optional)):
            waiting.append(x.value)
    return False
