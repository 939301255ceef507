"""Lists of lists of numbers, in all ways that Python has to change them.

Where a :class:`Table` is not enough, since lists are added, exchanged or of different lengths, each
list has a row of one array for itself, with its length beside. A row is never given to another
list, so the list of lists holds the numbers of rows, and two names of one list are one number.
"""

from __future__ import annotations

import copy
import operator
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.frontend.syntax.growing_lists.changing import Changing, Stored, rooms
from fwdad.frontend.syntax.growing_lists.items import Items, ListGrows, ask_stored, root
from fwdad.frontend.syntax.growing_lists.tables import ALIASED, are_shared, rows_of
from fwdad.frontend.syntax.lengths import binary_add
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Number, join

_LISTS, _LONG = 1024, 64
"""For how many lists there is room, and for how many numbers on each, unless more was needed."""


class ListOfLists(Changing):
    """A list of lists of numbers of the type ``type``, None if it is not known before the first.

    The lists lie in the rows of ``memory``, ``counts`` has their lengths.
    """

    rebuilt = False
    inner = True

    def __init__(self, tracer: Tracer, place: Any, t: Number | None) -> None:
        super().__init__(tracer, 0, place, None)
        self.resized = True
        self.type = t
        self.room = rooms.get(root(place), _LISTS)
        self.long = rooms.get((*root(place), "row"), _LONG)
        recorder = tracer.recorder
        dtype = np.dtype(float) if t is None else t.dtype
        self.memory = recorder.apply(np.zeros, ((self.room, self.long), dtype), {})
        self.counts = recorder.apply(np.zeros, ((self.room,), np.dtype(np.int64)), {})
        self._order = recorder.apply(np.zeros, ((self.room,), np.dtype(np.int64)), {})
        self.version: list[Any] = [object()]  # another object after each change of a length
        self.pool: dict[str, Any] = {"used": 0}  # rows, shared by all that have such a list
        recorder.journal.own(self.pool, namespace=True)

    def whole(self) -> Symbol:
        """The numbers of the rows that the lists have."""
        return self._order

    def at(self, place: Any) -> Any:
        """The list at an index that is in bounds."""
        return Row(self, self.tracer.recorder.load(self._order, place))

    def item(self, index: Any) -> Any:
        """The list at an index, or a list of the same lists, those of a slice."""
        if not isinstance(index, slice):
            return super().item(index)
        recorder = self.tracer.recorder
        numbers = recorder.load(self._order, slice(None, self.length()))
        numbers = recorder.load(numbers, index)
        count = recorder.length(numbers, 0)
        return self._another(count, numbers)

    def _another(self, count: Any, numbers: Symbol) -> ListOfLists:
        """A list of some of the same lists."""
        made, recorder = copy.copy(self), self.tracer.recorder
        made.held = {"count": count}
        recorder.journal.own(made.held, namespace=True)
        made._order = recorder.apply(np.zeros, ((self.room,), np.dtype(np.int64)), {})
        self.store(made._order, slice(None, count), numbers)
        return made

    def copied(self) -> Items:
        """A list of the same lists."""
        return self.item(slice(None))

    def deeply_copied(self) -> Items:
        """A list of copies of the lists, which have rows of the same numbers."""
        recorder, whole = self.tracer.recorder, slice(None, self.length())
        made = self._another(self.length(), recorder.load(self._order, whole))
        made.memory = recorder.apply(np.ndarray.copy, (self.memory,), {})
        made.counts = recorder.apply(np.ndarray.copy, (self.counts,), {})
        made.pool = dict(self.pool)
        recorder.journal.own(made.pool, namespace=True)
        return made

    def made_at(self, place: Any) -> None:
        """Note nothing: the lists are made where the first such list is."""

    def rows(self) -> Symbol:
        """Refuse to be an array, which lists of different lengths are not."""
        self.refused("an array of lists that are not in one array, from")

    def lists(self) -> tuple[Symbol, Symbol]:
        """The rows of the lists, and how many numbers each has."""
        recorder = self.tracer.recorder
        order = recorder.load(self._order, slice(None, self.length()))
        return recorder.load(self.memory, order), recorder.load(self.counts, order)

    @property
    def python(self) -> bool:  # type: ignore[override]
        """Whether the numbers are Python's."""
        return self.type is None or bool(self.type.python)

    def put(self, k: Any, x: Any) -> None:
        """Put a list at a place."""
        row = x if isinstance(x, Row) and x.of.pool is self.pool else self._added(x)
        self.store(self._order, k, row.number)

    def move(self, source: slice, into: slice) -> None:
        """Copy the numbers of lists to other places, which may be some of their own."""
        recorder = self.tracer.recorder
        numbers = recorder.apply(np.ndarray.copy, (recorder.load(self._order, source),), {})
        self.store(self._order, into, numbers)

    def reverse(self) -> None:
        """Turn the order of the lists around."""
        recorder, whole = self.tracer.recorder, slice(None, self.length())
        numbers = recorder.apply(np.ndarray.copy, (recorder.load(self._order, whole),), {})
        self.store(self._order, whole, recorder.load(numbers, slice(None, None, -1)))

    def sort(self) -> None:
        """Refuse to sort lists."""
        self.refused("`sort` of lists in")

    def _added(self, x: Any) -> Row:
        """A list that is given a row."""
        recorder, used = self.tracer.recorder, self.pool["used"]
        after = binary_add(self.tracer, used, 1)
        self.check_fits(after, self.room, root(self.place))
        named = are_shared(self.tracer, [x])
        if named and not (type(x) is Stored and x.alone):
            self._ask(x)
        if type(x) is list and not x:
            numbers, count = None, 0
        else:
            numbers, t = rows_of(self.tracer, x)
            if numbers.type.ndim > 1:
                self.refused("lists of lists as items of")
            self.widen(t)
            count = recorder.length(numbers, 0)
        row = Row(self, used)
        row.check_room(count)
        self.store(self.counts, used, count)
        if numbers is not None:
            self.store(row.whole(), slice(None, count), numbers)
        recorder.journal.bind(self.pool, "used", after)
        if named:
            x.handed_to(row)
        return row

    def _ask(self, x: Any) -> None:
        """Begin the trace anew with a list in memory that has a name, and is to be one of these."""
        _, place = self.tracer.recorder.places.get(id(x), (None, None))
        if isinstance(x, Items) and not isinstance(x, Row):
            place = x.place and root(x.place)
        ask_stored(self.tracer, place, "adding to another list")
        raise UntraceableError(ALIASED, self.tracer.position.location())

    def widen(self, t: Number) -> None:
        """Begin the trace anew if the type of the numbers is too narrow."""
        wide = t if self.type is None else join(self.type, t)
        if wide is None:
            self.refused(f"numbers of different types ({self.type} and {t}) in lists of")
        if wide != self.type:
            raise ListGrows((root(self.place), "row"), wide)


class Row(Stored):
    """A list on a list of lists ``of``: its row has a ``number``."""

    resized = True

    def __init__(self, of: ListOfLists, number: Any) -> None:
        self.tracer = of.tracer
        self.of = of
        self.number = number
        self.place = (root(of.place), "row")
        self.type = of.type
        self.held = {}
        self._there = None
        self.room = of.long
        self._program = of.tracer.recorder.blocks[of.tracer.recorder.first_block]
        self._memory = of.tracer.recorder.load(of.memory, number)

    def length(self) -> Any:
        """The number of items."""
        return self.tracer.recorder.apply(
            int, (self.tracer.recorder.load(self.of.counts, self.number),), {}
        )

    def state(self) -> tuple[Any, ...]:
        """What is another object after each change of a list's length."""
        return (self.of.version[0],)

    def _counted(self, count: Any) -> None:
        self.of.version[0] = object()
        self.store(self.of.counts, self.number, count)

    def as_resized(self) -> None:
        """Do nothing: a row has room for more."""

    def check_room(self, count: Any) -> None:
        """Write the check that there is room for a number of items."""
        self.check_fits(count, self.room, (*root(self.place), "row"))

    def handed_to(self, row: Any) -> None:
        """Refuse to be on two lists of lists."""
        raise UntraceableError(ALIASED, self.tracer.position.location())

    def is_like(self, other: Any) -> bool:
        """Whether this one and another can be one."""
        return self.of.pool is other.of.pool

    def is_same(self, other: Items) -> Any:
        """Whether this list and another one are one: they are if they have one row."""
        if isinstance(other, Row) and other.of.pool is self.of.pool:
            return self.tracer.binary(operator.eq, self.number, other.number)
        return super().is_same(other)

    def parts(self, held: Any = None) -> tuple[Any, ...]:
        """The number of the row."""
        return (self.number,)

    def anew(self, parts: Any) -> Row:
        """Another list of the same list of lists."""
        return Row(self.of, parts[0])


def lists_apart(tracer: Tracer, items: Any, place: Any) -> ListOfLists:
    """A list of lists, made at a place."""
    made = ListOfLists(tracer, place, tracer.growing.get((place, "row")))
    if isinstance(items, Items):
        if items.shared:
            raise UntraceableError(ALIASED, tracer.position.location())
        items = [items.at(k) for k in range(tracer.values.force(items.length()))]
    for x in items:
        made.append(x)
    return made
