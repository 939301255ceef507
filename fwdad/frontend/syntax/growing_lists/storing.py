"""Lists that are made in memory: of numbers, of tuples of them, and of lists of them."""

from __future__ import annotations

from collections import deque
from typing import Any

from fwdad.frontend.syntax.growing_lists.changing import Changing, Stored, array_of
from fwdad.frontend.syntax.growing_lists.growing_tuples import Tuples
from fwdad.frontend.syntax.growing_lists.items import LISTS, Items, ListGrows, Shape, shape_of
from fwdad.frontend.syntax.growing_lists.lists_apart import lists_apart
from fwdad.frontend.syntax.growing_lists.stored_arrays import (
    StoredArrays,
    begin_with_arrays,
    item_type,
)
from fwdad.frontend.syntax.growing_lists.tables import may_be_table, table_of
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.types import ArrayType, Number, join


class StoredTuples(Changing, Tuples):
    """A list of tuples, of whose parts each has memory of its own."""

    rebuilt = False

    def __init__(
        self, tracer: Tracer, items: Any, place: Any, shape: Shape, held: Any = None
    ) -> None:
        self.kind = shape.kind
        if isinstance(items, Tuples):
            super().__init__(tracer, items.length(), place, held)
            parts: Any = items.columns
        else:
            super().__init__(tracer, len(items), place, held)
            rows = [self.parts_of(x, len(shape.parts)) for x in items]
            parts = [[row[k] for row in rows] for k in range(len(shape.parts))]
        self.columns: list[Any] = []
        self.columns += [
            stored_list(tracer, column, (place, k), part, self.held)
            for k, (column, part) in enumerate(zip(parts, shape.parts, strict=True))
        ]

    def put(self, k: Any, x: Any) -> None:
        """Put an item at a place."""
        for column, part in zip(self.columns, self.parts_of(x, len(self.columns)), strict=True):
            column.put(k, part)

    def move(self, source: slice, into: slice) -> None:
        """Copy items to other places, which may be some of their own."""
        for column in self.columns:
            column.move(source, into)

    def reverse(self) -> None:
        """Turn the order of the items around."""
        for column in self.columns:
            column.reverse()


def stored_list(tracer: Tracer, items: Any, place: Any, known: Any, held: Any = None) -> Changing:
    """A list that is changed when the program runs, made at ``place``.

    ``known`` is the type of its items, or the shape of tuples, where an earlier trace has found it.
    """
    known = tracer.growing.get(place) if known is None else known
    shape = shape_of_items(items)
    if known is None and shape is not None:
        raise ListGrows(place, shape)
    if known == LISTS:
        apart = tracer.growing.get((place, "apart")) or not may_be_table(items)
        return (lists_apart if apart else table_of)(tracer, items, place)
    if isinstance(known, ArrayType):
        return StoredArrays(tracer, items, place, known)
    if isinstance(known, Shape):
        return StoredTuples(tracer, items, place, known, held)
    first = next((x for x in items if x is not None), None) if type(items) is list else None
    if known is None:
        begin_with_arrays(tracer, place, first)
    if isinstance(items, Items):
        count, rows = items.length(), items.copied().array()
        if rows.type.ndim > 1:
            raise ListGrows(place, item_type(tracer, items.at(0)))
        wide: Any = Number(rows.dtype, python=items.python)
    elif type(None) in map(type, items):
        return _with_none(tracer, items, place, known, held)
    else:
        count = len(items)
        rows, wide = array_of(tracer, items)
    if known is not None:
        wide = known if wide is None else join(wide, known)
    if wide != known:
        raise ListGrows(place, wide)
    return Stored(tracer, count, place, known, held, rows)


def _with_none(tracer: Tracer, items: list[Any], place: Any, known: Any, held: Any) -> Stored:
    """A list of numbers some of which are None."""
    made = Stored(tracer, len(items), place, known, held)
    for k, x in enumerate(items):
        made.put(k, x)
    return made


def shape_of_items(items: Any) -> Shape | None:
    """The shape of the items of a list, None of numbers."""
    if isinstance(items, Tuples):
        return Shape(items.kind, tuple(map(shape_of_items, items.columns)))
    if isinstance(items, Items):
        return LISTS if items.inner else None
    if any(type(x) is list or isinstance(x, Items) for x in items):
        return LISTS
    return shape_of(items[0]) if items else None


def _shape(items: Any) -> Shape | None:
    """The shape of the items of a list, None of numbers."""
    if not isinstance(items, Tuples):
        return None
    return Shape(items.kind, tuple(map(_shape, items.columns)))


def stored_deque(tracer: Tracer, items: list[Any], place: Any, most: int | None) -> Changing:
    """A deque of at most ``most`` items."""
    made = stored_list(tracer, items, place, None)
    made.like, made.most = deque, most
    return made
