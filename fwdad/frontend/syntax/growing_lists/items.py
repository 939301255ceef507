"""A list whose items are the rows of an array: what all lists of a tape that are arrays can do."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.frontend.syntax.raising import AlwaysRaises, TraceControl
from fwdad.frontend.syntax.symbols import Mergeable, Refusing
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol, kind_in_words
from fwdad.ir.types import Number, number_type

INSTEAD = "use an array of the full length, or read the list where it no longer grows"
OUT_OF_RANGE = "list index out of range"


class ListGrows(TraceControl):
    """A list has different lengths on different paths, or items of a wider type than known.

    The trace restarts.
    It is made at ``place``. ``item`` is the items' type, if it is known; at ``(place, "front")`` it
    says whether the list grows there, at ``(place, "stored")`` what is asked of it that takes a
    list in memory.
    """

    def __init__(self, place: Any, item: Any = None) -> None:
        super().__init__(place)
        self.place = place
        self.found = place, item


@dataclass(frozen=True)
class Shape:
    """The structure of items that are tuples of class ``kind``.

    ``parts`` has the shape of each part that is a tuple itself, else None.
    """

    kind: type
    parts: tuple[Shape | None, ...]


LISTS = Shape(list, ())
"""The shape of items that are lists."""


def shape_of(x: Any) -> Shape | None:
    """The shape of a tuple with items, which may be a named one; None for anything else."""
    if not isinstance(x, tuple) or not x or not (type(x) is tuple or hasattr(x, "_fields")):
        return None
    return Shape(type(x), tuple(map(shape_of, x)))


class Items(Refusing, Mergeable):
    """A list whose items are those of the array ``rows``, which nobody may change.

    They are numbers, ``python``'s or NumPy's, or lists of these (``inner``), or ``arrays``.
    """

    arrays = inner = False
    shared = False  # whether the lists that are its items may have other names
    like: type = list
    place: Any = None  # where it is made, if it grows
    type: Any = None  # that of its items, if it is to be known

    def __init__(
        self,
        tracer: Tracer,
        rows: Symbol,
        *,
        python: bool,
        arrays: bool = False,
        inner: bool = False,
    ) -> None:
        self.tracer = tracer
        self._rows = rows
        self.python = python
        self.arrays, self.inner = arrays, inner

    def is_like(self, other: Items) -> bool:
        """Whether this one and another of its class can be one."""
        kinds = [(x.python, x.arrays, x.inner) for x in (self, other)]
        return kinds[0] == kinds[1]

    def made_at(self, place: Any) -> None:
        """Note where this list is made."""
        self.place = place

    def parts(self, held: Any = None) -> tuple[Any, ...]:
        """The items as an array."""
        return (self._rows,)

    def anew(self, parts: Any) -> Items:
        """A list of other items of the same kind."""
        made = self._like(*parts)
        made.place, made.merged = self.place, True
        return made

    merged = False  # whether it stands for one list or another

    @property
    def holds_none(self) -> bool:
        """Whether some items may be None."""
        return False

    @property
    def alone(self) -> bool:
        """Whether nothing else stands for this list."""
        return not self.merged

    def is_same(self, other: Items) -> Any:
        """Whether this list and another one that stands for a list are one."""
        if not (self.alone and other.alone):
            self.refused("`is` where values may decide, of")
        return False

    def refused(self, what: str) -> NoReturn:
        """Raise for a use of the list that a tape does not support."""
        name = self.like.__name__
        message = f"{what} a {name} that grows at run time cannot be traced: {INSTEAD}"
        raise UntraceableError(message, self.tracer.position.location())

    def _refused(self, *_args: Any) -> NoReturn:
        """Refuse Python itself and code in C, which would mistake this for another object."""
        self.refused("this use of")

    __bool__ = __len__ = __iter__ = __getitem__ = __contains__ = _refused
    __eq__ = __ne__ = __lt__ = __add__ = __radd__ = __mul__ = __rmul__ = _refused
    __array__ = __str__ = __repr__ = __format__ = _refused
    __hash__ = object.__hash__

    def changed(self, what: str) -> NoReturn:
        """Begin the trace anew with this list in memory; refuse what cannot be."""
        ask_stored(self.tracer, self.place and root(self.place), what)
        self.refused(what)

    def rows(self) -> Symbol:
        """The items, as an array that nobody may write into."""
        return self._rows

    def length(self) -> Any:
        """The number of items."""
        return self.tracer.recorder.length(self._rows, 0)

    def item(self, index: Any) -> Any:
        """The item at an index, or the items of a slice."""
        tracer = self.tracer
        if isinstance(index, slice):
            return self._like(tracer.recorder.load(self.rows(), index))
        self.check_index(index, OUT_OF_RANGE)
        return self.at(index)

    def check_index(self, index: Any, message: str) -> None:
        """Write the check that an index is in bounds."""
        tracer = self.tracer
        t = index.type if type(index) is Symbol else number_type(index)
        if not isinstance(t, Number) or t.dtype.kind not in "biu":
            self.refused("a non-integer index into")
        length = self.length()
        for function, a, b in ((operator.ge, index, tracer.binary(operator.sub, 0, length)),
                               (operator.lt, index, length)):  # fmt: skip
            fits = tracer.truth(tracer.binary(function, a, b))
            if type(fits) is Symbol:
                tracer.recorder.check(fits, IndexError, (message,))
            elif not fits:
                raise AlwaysRaises(IndexError, (message,))

    def whole(self) -> Symbol:
        """An array that begins with the items, which nobody may write into."""
        return self.rows()

    def at(self, place: Any) -> Any:
        """The item at an index that is in bounds."""
        row = self.tracer.subscript(self.whole(), (place, ...) if self.arrays else place)
        if self.inner:
            items = Items(self.tracer, row, python=self.python, inner=row.type.ndim > 1)
            items.place = self.place and (root(self.place), "row")
            return items
        return _in_python(self.tracer, row) if self.python else row

    def _like(self, rows: Symbol) -> Items:
        """A list of other items of the kind of this one's."""
        made = Items(self.tracer, rows, python=self.python, arrays=self.arrays, inner=self.inner)
        made.shared = self.inner
        return made

    def not_empty(self, message: str, error: type[Exception] = ValueError) -> None:
        """Write the check that an empty list raises ``error``."""
        some = self.tracer.binary(operator.gt, self.length(), 0)
        if type(some) is Symbol:
            self.tracer.recorder.check(some, error, (message,))
        elif not some:
            raise AlwaysRaises(error, (message,))

    def settled(self) -> None:
        """Read all items here, outside of a loop that reads them one by one."""
        self.rows()

    def state(self) -> tuple[Any, ...]:
        """What is another object after each change of the list."""
        return ()

    def copied(self) -> Items:
        """A list of the same items."""
        return self._like(self.rows())

    def deeply_copied(self) -> Items:
        """A list of copies of the items."""
        return self.copied()

    def append(self, _x: Any) -> None:
        """Add an item at the end."""
        self.changed("appending to")

    def insert(self, _place: Any, _x: Any) -> None:
        """Add an item before that at an index."""
        self.changed("`insert` into")

    def pop(self, _place: Any = -1) -> Any:
        """Remove the item at an index."""
        self.changed("`pop` of")

    def set_item(self, _index: Any, _x: Any) -> None:
        """Change an item."""
        self.changed("changing an item of")

    def delete(self, _index: Any) -> None:
        """Remove an item."""
        self.changed("`del` of an item of")

    def clear(self) -> None:
        """Remove all items."""
        self.changed("`clear` of")

    def reverse(self) -> None:
        """Turn the order of the items around."""
        self.changed("`reverse` of")

    def sort(self) -> None:
        """Bring the items into order."""
        self.changed("`sort` of")

    def operand(self, x: Any) -> Any:
        """An item as a number or an array; raises for anything else."""
        if isinstance(x, np.ndarray):
            x = self.tracer.recorder.as_symbol(x)
        if type(x) is not Symbol and number_type(x) is None:
            shape = shape_of(x) if self.type is None else None
            if type(x) is list or isinstance(x, Items):
                self.tracer.growing[root(self.place), "apart"] = True
                shape = LISTS if self.type is None else None
            if shape is not None:
                raise ListGrows(self.place, shape)
            self.refused(f"{kind_in_words(x)} as an item of")
        return x

    def array(self) -> Symbol:
        """``np.array`` of the list."""
        symbol: Symbol = self.tracer.recorder.apply(np.ndarray.copy, (self.rows(),), {})
        return symbol


ONE_BODY = object()
ONE_BY_ONE = object()
"""How the list that is made at a place is filled."""


def ask_stored(tracer: Tracer, place: Any, what: str) -> None:
    """Begin the trace anew with lists of a place in memory, unless this was given up."""
    if place is None or tracer.growing.get((place, "stored")):
        return
    if tracer.growing.setdefault((place, "how"), ONE_BODY) is ONE_BODY:
        raise ListGrows((place, "stored"), what)


def root(place: Any) -> Any:
    """The place of a list, of that of a part of its items."""
    while isinstance(place[0], tuple):
        place = place[0]
    return place


def _in_python(tracer: Tracer, x: Symbol) -> Any:
    """A number from an array as one of Python's."""
    kinds: dict[str, Any] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
    return tracer.recorder.apply(kinds[x.dtype.kind], (x,), {})
