"""Lists that are changed while the program runs: their items lie in arrays.

A list whose items are changed, or read, at places that are computed is a :class:`Stored`. So is one
that grows, and of which more is asked than :class:`Growing` does (to be shortened, to have an item
changed, to be read in between): its array has room for more. Its number of items is a number of the
tape, which also checks that there is room: a tape whose list becomes longer raises
:class:`NoRoomError`, and another one is made, where lists of that place have more.
"""

from __future__ import annotations

import copy
import operator
from collections import deque
from typing import Any, NoReturn

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.syntax.growing_lists.items import (
    OUT_OF_RANGE,
    Items,
    ListGrows,
    root,
)
from fwdad.frontend.syntax.lengths import binary_add
from fwdad.frontend.syntax.symbols import Maybe, Optional, Poison
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.other_way import OtherWayError
from fwdad.ir.symbol import Symbol, kind_in_words
from fwdad.ir.types import ArrayType, Number, join, number_type

_ROOM = 1024
_MORE = 16  # times
_EMPTY: dict[type, str] = {list: "pop from empty list", deque: "pop from an empty deque"}
_NOT_ASSIGNED = "list assignment index out of range"

rooms: dict[Any, int] = {}
"""For how many items a list that is made at a place has room, if that is not ``_ROOM``."""


class NoRoomError(OtherWayError):
    """A list that is made at a place becomes longer than its tape has room for."""

    def __init__(self, room: int, *place: Any) -> None:
        super().__init__(room, *place)
        rooms[place] = max(rooms.get(place, 0), _MORE * room)

    def __str__(self) -> str:
        return f"a list has more than {self.args[0]} items"


class Changing(Items):
    """What a list does by putting items into places of memory.

    ``held`` has the number of its items, shared with the columns of a list of tuples. Only lists of
    places that an earlier trace has found to be ``resized`` have ``room`` for more.
    """

    def __init__(self, tracer: Tracer, count: Any, place: Any, held: dict[str, Any] | None) -> None:
        self.tracer = tracer
        self.place = place
        self._program = tracer.recorder.blocks[tracer.recorder.first_block]
        self.resized = bool(tracer.growing.get((root(place), "resized")))
        self.room = count
        if self.resized:
            more = count + 1 if isinstance(count, int) else 0
            self.room = max(rooms.get(root(place), _ROOM), more)
        if held is None:
            held = {"count": count}
            tracer.recorder.journal.own(held, namespace=True)
        self.held = held

    most: int | None = None  # items, of a deque

    def store(self, memory: Symbol, k: Any, x: Any) -> None:
        """Store into an array of this list's."""
        recorder = self.tracer.recorder
        if recorder.blocks[recorder.first_block] is not self._program:
            self.refused("a recursive or differentiated function that changes")
        recorder.store(memory, k, x)

    def put(self, k: Any, x: Any) -> None:
        """Put an item at a place."""
        raise NotImplementedError

    def move(self, source: slice, into: slice) -> None:
        """Copy items to other places, which may be some of their own."""
        raise NotImplementedError

    def length(self) -> Any:
        """The number of items."""
        return self.held["count"]

    def handed_to(self, row: Any) -> None:
        """From here on this list is one of another list's."""
        self.tracer.recorder.journal.bind(self.held, "row", row)

    def state(self) -> tuple[Any, ...]:
        """What is another object after each change of the list's length."""
        return (self.held["count"],)

    def settled(self) -> None:
        """Do nothing: items are read where they are asked for."""

    def item(self, index: Any) -> Any:
        """The item at an index, or the items of a slice."""
        if isinstance(index, slice):
            return super().item(index)
        return self.at(self._index(index, OUT_OF_RANGE))

    def set_item(self, index: Any, x: Any) -> None:
        """Change the item at an index."""
        if isinstance(index, slice):
            self.refused("changing a slice of")
        self.put(self._index(index, _NOT_ASSIGNED), x)

    def delete(self, index: Any) -> None:
        """Remove the item at an index."""
        if isinstance(index, slice):
            self.refused("`del` of a slice of")
        self._close(self._index(index, _NOT_ASSIGNED))

    def append(self, x: Any) -> None:
        """Add an item at the end; a deque that is full loses its first one."""
        if self.most is not None:
            self.tracer.call(_shorten, (self, self.most, 0), {})
        count = self._with_room()
        self.put(count, x)
        self._counted(binary_add(self.tracer, count, 1))

    def append_left(self, x: Any) -> None:
        """Add an item at the front; a deque that is full loses its last one."""
        if self.most is not None:
            self.tracer.call(_shorten, (self, self.most, -1), {})
        self.insert(0, x)

    def insert(self, place: Any, x: Any) -> None:
        """Add an item before that at an index, which is cut to the length."""
        count = self._with_room()
        k = self.tracer.call(_cut, (place, count), {})
        after = binary_add(self.tracer, count, 1)
        self.move(slice(k, count), slice(binary_add(self.tracer, k, 1), after))
        self.put(k, x)
        self._counted(after)

    def pop(self, place: Any = -1) -> Any:
        """Remove the item at an index, and return it."""
        self.not_empty(_EMPTY[self.like], IndexError)
        k = self._index(place, "pop index out of range")
        found = self.at(k)
        if type(place) is Symbol or place != -1:
            self._close(k)
        else:
            self._counted(k)
        return found

    def clear(self) -> None:
        """Remove all items."""
        self._counted(0)

    def _close(self, k: Any) -> None:
        """Let the items behind a place move up."""
        count = self.length()
        last = binary_add(self.tracer, count, -1)
        self.move(slice(binary_add(self.tracer, k, 1), count), slice(k, last))
        self._counted(last)

    def _counted(self, count: Any) -> None:
        self.as_resized()
        self.tracer.recorder.journal.bind(self.held, "count", count)

    @property
    def own(self) -> dict[str, Any] | None:
        """The number of items, where it changes."""
        return self.held if self.resized and self.rebuilt else None

    def as_resized(self) -> None:
        """Begin the trace anew if this is the first change of the length of a list."""
        if self.place[-1] == "row":  # of a table, whose lists never change in length
            raise ListGrows((root(self.place), "apart"), item=True)
        if not self.resized:
            raise ListGrows((root(self.place), "resized"), item=True)

    def _with_room(self) -> Any:
        """The number of items, of which there may be one more."""
        self.as_resized()
        count = self.length()
        self.check_room(binary_add(self.tracer, count, 1))
        return count

    def check_room(self, count: Any) -> None:
        """Write the check that there is room for a number of items."""
        if not self.resized:
            return
        self.check_fits(count, self.room, root(self.place))

    def check_fits(self, count: Any, room: int, place: Any) -> None:
        """Write the check that a number of items is at most that for which a place has room."""
        recorder = self.tracer.recorder
        fits = self.tracer.truth(self.tracer.binary(operator.le, count, room))
        if type(fits) is not Symbol:
            if not fits:
                self.refused(f"more than {room} items, added one by one, in")
            return
        if recorder.ways is None:
            self.refused("adding an item, after `pop` or another change, to")
        recorder.ways.taken, recorder.ways.place = True, recorder.ways.place or recorder.place()
        recorder.check(fits, NoRoomError, (room, *place))

    def _index(self, index: Any, message: str) -> Any:
        """The place of the item at an index; its check raises ``IndexError``."""
        self.check_index(index, message)
        if type(index) is Symbol:
            return self.tracer.call(_from_start, (index, self.length()), {})
        return binary_add(self.tracer, self.length(), index) if index < 0 else index


class Stored(Changing):
    """A list of numbers of the type ``t``, None if it is not known before the first is added.

    ``memory`` is an array that begins with its items.
    """

    def __init__(
        self, tracer: Tracer, count: Any, place: Any, t: Any, held: Any = None, rows: Any = None
    ) -> None:
        super().__init__(tracer, count, place, held)
        self.type = t
        self._memory: Any = self._allocated(rows)
        self._there: Any = None
        if tracer.growing.get((root(place), "optional")):
            self._there = tracer.recorder.apply(np.zeros, ((self.room,), np.dtype(bool)), {})

    def _allocated(self, rows: Any) -> Symbol:
        """The memory, which may be the new array ``rows`` with its first items."""
        recorder = self.tracer.recorder
        dtype = np.dtype(float) if self.type is None else self.type.dtype
        if rows is not None and not self.resized and rows.dtype == dtype:
            return rows
        memory: Symbol = recorder.apply(np.zeros, ((self.room,), dtype), {})
        if rows is not None:
            self.check_room(self.held["count"])
            self.store(memory, slice(None, self.held["count"]), rows)
        return memory

    @property
    def python(self) -> bool:  # type: ignore[override]
        """Whether the items are Python's numbers."""
        return self.type is None or bool(self.type.python)

    @property
    def is_handed(self) -> bool:
        """Whether this list is on a list of lists."""
        return self.place[-1] == "row" or "row" in self.held

    @property
    def alone(self) -> bool:
        """Whether nothing else stands for this list."""
        return not (self.merged or self.is_handed)

    def _row(self) -> Any:
        """The list that this one has become, on a list of lists; or None."""
        row = self.held.get("row")
        if isinstance(row, (Maybe, Poison)):
            self.refused("using, where values decide whether it is on another list,")
        return row

    def whole(self) -> Symbol:
        """The memory, which begins with the items."""
        row = self._row()
        return self._memory if row is None else row.whole()

    def length(self) -> Any:
        """The number of items."""
        row = self._row()
        return super().length() if row is None else row.length()

    def state(self) -> tuple[Any, ...]:
        """What is another object after each change of the list's length."""
        row = self._row()
        return super().state() if row is None else row.state()

    def _counted(self, count: Any) -> None:
        row = self._row()
        if row is None:
            super()._counted(count)
        else:
            row._counted(count)

    def check_room(self, count: Any) -> None:
        """Write the check that there is room for a number of items."""
        row = self._row()
        if row is None:
            super().check_room(count)
        else:
            row.check_room(count)

    def rows(self) -> Symbol:
        """The items as they are now, as an array that nobody may write into."""
        if self.holds_none:
            self.refused("this use, where items may be None, of")
        return self._first(self.whole())

    def _first(self, memory: Symbol) -> Symbol:
        recorder = self.tracer.recorder
        part = recorder.load(memory, slice(None, self.length()))
        first: Symbol = recorder.apply(np.ndarray.copy, (part,), {})
        return first

    def array(self) -> Symbol:
        """``np.array`` of the list, which raises where NumPy makes objects of None."""
        if self._there is None:
            return super().array()
        recorder = self.tracer.recorder
        whole, there = self.with_none()
        all_there = recorder.apply(np.all, (there,), {})
        recorder.check(all_there, TypeError, ("an item of a list is None",))
        return whole

    def with_none(self) -> tuple[Symbol, Symbol]:
        """The items, and which of them are not None."""
        return self._first(self.whole()), self._first(self._there)

    @property
    def holds_none(self) -> bool:
        """Whether some items may be None."""
        return self._there is not None

    def at(self, place: Any) -> Any:
        """The item at an index that is in bounds."""
        if self._there is None:
            return self.value_at(place)
        there = self.tracer.recorder.load(self._there, place)
        return Optional(there, self.value_at(place))

    def value_at(self, place: Any) -> Any:
        """The item at an index that is in bounds, if it is not None."""
        return super().at(place)

    def stores_none(self, k: Any, x: Any) -> bool:
        """Note whether there is None at a place from now on; returns whether there is."""
        if x is None and self._there is None:
            raise ListGrows((root(self.place), "optional"), item=True)
        if self._there is not None:
            self.store(self._there, k, x is not None)
        return x is None

    def put(self, k: Any, x: Any) -> None:
        """Put an item at a place; the trace restarts if the known type is too narrow."""
        if self.stores_none(k, x):
            return
        x = self.operand(x)
        t = x.type if type(x) is Symbol else number_type(x)
        if isinstance(t, ArrayType) and self.type is None:
            lengths = self.tracer.recorder.lengths
            shape = tuple(lengths.known_length(x, n) for n in range(t.ndim))
            raise ListGrows(self.place, ArrayType(t.dtype, shape))
        wide = t if self.type is None or t is None else join(self.type, t)
        if not isinstance(wide, Number):
            self.refused(f"items of different types ({self.type} and {t}) in")
        if wide != self.type:
            raise ListGrows(self.place, wide)
        self.store(self.whole(), k, x)

    def move(self, source: slice, into: slice) -> None:
        """Copy items to other places, which may be some of their own."""
        recorder = self.tracer.recorder
        for memory in (self._there, self.whole()):
            if memory is not None:
                items = recorder.apply(np.ndarray.copy, (recorder.load(memory, source),), {})
                self.store(memory, into, items)

    def is_like(self, other: Any) -> bool:
        """Whether two lists can be one; the trace begins anew where they can be made such.

        As arrays that are never longer or shorter, any two can: who else has one of them sees what
        is stored in it. A number of items that changes has its own place.
        """
        if self._row() is not None or other._row() is not None:
            return False
        known = [x.type for x in (self, other) if x.type is not None]
        wide = join(known[0], known[-1]) if known else None
        if self.like is not other.like or self.most != other.most or (known and wide is None):
            return False
        for x in (self, other):
            if x.type != wide:
                raise ListGrows(x.place, wide)
        for x, y in ((self, other), (other, self)):
            if (x._there is None) is not (y._there is None):
                raise ListGrows((root((x if x._there is None else y).place), "optional"), item=True)
        for x, y in ((self, other), (other, self)):
            if y.resized and not x.resized:
                x.as_resized()
            if y.resized and x.room < y.room:
                rooms[root(x.place)] = y.room
                raise ListGrows((root(x.place), "resized"), item=True)
        return True

    def parts(self, held: Any = None) -> tuple[Any, ...]:
        """The memory, which items are None, and the number of items."""
        return self._memory, self._there, (held or self.held)["count"]

    def anew(self, parts: Any) -> Stored:
        """A list that is this one on one path."""
        made = copy.copy(self)
        made.merged = True
        made._memory, made._there, count = parts
        made.held = {"count": count}
        self.tracer.recorder.journal.own(made.held, namespace=True)
        return made

    def reverse(self) -> None:
        """Turn the order of the items around."""
        items = self.tracer.recorder.load(self.rows(), slice(None, None, -1))
        self.store(self.whole(), slice(None, self.length()), items)

    def sort(self) -> None:
        """Bring the items into order."""
        items = self.tracer.recorder.apply(np.sort, (self.rows(),), {})
        self.store(self.whole(), slice(None, self.length()), items)


def array_of(tracer: Tracer, items: list[Any]) -> tuple[Any, Any]:
    """A new array of the numbers on a list, or on the lists in it, and their type.

    None and None if there are none.
    """
    wide: Any = None
    for x in _numbers(tracer, items):
        t = x.type if type(x) is Symbol else number_type(x)
        wide = t if wide is None or t is None else join(wide, t)
        if not isinstance(wide, Number):
            refuse_item(tracer, x)
    if wide is None:
        return None, None
    dtype = {"dtype": wide.dtype}
    if mentions_symbols(items):
        return tracer.recorder.apply(np.array, (items,), dtype), wide
    known = np.array(items, wide.dtype)
    if len(set(map(repr, known.ravel().tolist()))) == 1:
        return tracer.recorder.apply(np.full, (known.shape, known.flat[0].item()), dtype), wide
    return tracer.recorder.apply(np.ndarray.copy, (tracer.recorder.as_symbol(known),), {}), wide


def _numbers(tracer: Tracer, items: list[Any]) -> list[Any]:
    """The numbers on a list of numbers, or on lists of one length in it."""
    if not any(type(x) is list for x in items):
        return items
    if any(type(x) is not list or len(x) != len(items[0]) for x in items):
        refuse_item(tracer, items)
    return [x for item in items for x in _numbers(tracer, item)]


def refuse_item(tracer: Tracer, x: Any) -> NoReturn:
    """Raise for what cannot be an item of a list in memory."""
    message = (
        f"{kind_in_words(x)} beside other items of a list that is changed at places that are known "
        "at run time only cannot be traced: use an array"
    )
    raise UntraceableError(message, tracer.position.location())


def _shorten(items: Any, most: int, place: int) -> None:
    if len(items) == most:
        items.pop(place)


def _from_start(index: Any, length: Any) -> Any:
    return index + length if index < 0 else index


def _cut(index: Any, length: Any) -> Any:
    """Where `insert` puts an item."""
    if index < 0:
        return max(index + length, 0)
    return min(index, length)
