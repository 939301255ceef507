"""Lists of tuples that grow while the program runs, with each part on a list of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.core.containers import of_class
from fwdad.frontend.syntax.growing_lists.items import Items
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol, kind_in_words


class Tuples(Items):
    """A list of tuples of class ``kind`` and one length.

    ``columns`` are lists of the first parts, of the second parts and so on, all of one length.
    """

    def __init__(self, tracer: Tracer, kind: type[Any], columns: list[Items]) -> None:
        self.tracer = tracer
        self.kind = kind
        self.columns = columns

    def is_like(self, other: Any) -> bool:
        """Whether this one and another can be one."""
        return self.kind is other.kind and len(self.columns) == len(other.columns)

    def parts(self, held: Any = None) -> tuple[Any, ...]:
        """The columns."""
        return tuple(self.columns)

    def anew(self, parts: Any) -> Tuples:
        """A list of other items of the same kind."""
        made = Tuples(self.tracer, self.kind, list(parts))
        made.merged = True
        return made

    def made_at(self, place: Any) -> None:
        """Note where this list is made."""
        self.place = place
        for k, column in enumerate(self.columns):
            column.made_at((place, k))

    def parts_of(self, x: Any, n: int) -> Any:
        """The parts of an item, which must be a tuple of n."""
        if not isinstance(x, tuple) or type(x) is not self.kind or len(x) != n:
            alike = f" of {len(x)}" if isinstance(x, tuple) else ""
            both = f"{kind_in_words(x)}{alike} beside a tuple of {n}"
            self.refused(f"items of different structure ({both}) in")
        return x

    def made(self, parts: Any) -> Any:
        """An item from its parts."""
        return of_class(self.kind, parts)

    def append(self, x: Any) -> None:
        """Add an item at the end."""
        for column, part in zip(self.columns, self.parts_of(x, len(self.columns)), strict=True):
            column.append(part)

    def insert(self, place: Any, x: Any) -> None:
        """Add an item at the front."""
        for column, part in zip(self.columns, self.parts_of(x, len(self.columns)), strict=True):
            column.insert(place, part)

    def pop(self, place: Any = -1) -> Any:
        """Take off the item at an end."""
        return self.made([column.pop(place) for column in self.columns])

    def set_item(self, index: Any, x: Any) -> None:
        """Change the item at an index."""
        for column, part in zip(self.columns, self.parts_of(x, len(self.columns)), strict=True):
            column.set_item(index, part)

    def delete(self, index: Any) -> None:
        """Remove the item at an index."""
        for column in self.columns:
            column.delete(index)

    def clear(self) -> None:
        """Remove all items."""
        for column in self.columns:
            column.clear()

    def reverse(self) -> None:
        """Turn the order of the items around."""
        for column in self.columns:
            column.reverse()

    def sort(self) -> None:
        """Refuse to sort tuples."""
        self.refused("`sort` of tuples in")

    # -- reading

    def length(self) -> Any:
        """The number of items."""
        return self.columns[0].length()

    def item(self, index: Any) -> Any:
        """The item at an index, or the items of a slice."""
        items = [column.item(index) for column in self.columns]
        if isinstance(index, slice):
            return Tuples(self.tracer, self.kind, items)
        return self.made(items)

    def at(self, place: Any) -> Any:
        """The item at an index that is in bounds."""
        return self.made([column.at(place) for column in self.columns])

    def settled(self) -> None:
        """Read all items here, outside of a loop that reads them one by one."""
        for column in self.columns:
            column.settled()

    def state(self) -> tuple[Any, ...]:
        """What is another object after each change of the list."""
        return tuple(part for column in self.columns for part in column.state())

    def copied(self) -> Items:
        """A list of the same items."""
        return Tuples(self.tracer, self.kind, [column.copied() for column in self.columns])

    def rows(self) -> Symbol:
        """The items, each as a row of an array that nobody may write into."""
        parts = [column.rows() for column in self.columns]
        if len({p.type.ndim for p in parts}) > 1:
            self.refused(
                "an array of tuples of numbers and arrays, which do not form rows, made from"
            )
        symbol: Symbol = self.tracer.recorder.apply(np.stack, (parts,), {"axis": 1})
        return symbol
