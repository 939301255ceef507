"""The operations of a record, each of which passes its cotangent to what it read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fwdad.eager.duals.array import Array
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.memory.shadow import owner_of
from fwdad.eager_reverse.tangent import Node
from fwdad.rules.core.containers import rebuild, walk
from fwdad.rules.core.recording import Operation, transpose_one
from fwdad.tangents.lanes import is_basic
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import Zero

Terms = dict[Node, Any]


class Combination:
    """``node = sum_k d_k * node_k``."""

    __slots__ = ("node", "terms")

    def __init__(self, node: Node, terms: Terms) -> None:
        self.node = node
        self.terms = terms

    def pull(self, sweep: Any) -> None:
        """Scale the cotangent and add it to each node of the sum."""
        bar = sweep.take(self.node)
        if bar is not None:
            sweep.spread(self.terms, bar)

    def held(self) -> Iterable[Any]:
        """The objects whose memory it keeps: the sum and its scalings."""
        return [self.terms, *self.terms.values()]


class Gathered:
    """``node = array([a, b, ...])`` of numbers; an item without a tangent is None."""

    __slots__ = ("node", "rows")

    def __init__(self, node: Node, rows: list[Terms | None]) -> None:
        self.node = node
        self.rows = rows

    def pull(self, sweep: Any) -> None:
        """Pass each element's cotangent to its number."""
        bar = sweep.take(self.node)
        if bar is None:
            return
        for terms, part in zip(self.rows, sweep.elements(bar), strict=True):
            if terms is not None:
                sweep.spread(terms, part)

    def held(self) -> Iterable[Any]:
        """The objects whose memory it keeps: the sums and their scalings."""
        rows = [terms for terms in self.rows if terms is not None]
        return [self.rows, *rows, *(d for terms in rows for d in terms.values())]


class Indexed:
    """``node = source[index]``; backward, it adds to some elements of the source only."""

    __slots__ = ("index", "node", "source", "unique")

    def __init__(self, node: Node, source: Node, index: tuple[Any, ...]) -> None:
        self.node = node
        self.source = source
        self.index = own_index(index)
        self.unique = is_unique(self.index)

    def pull(self, sweep: Any) -> None:
        """Add the cotangent at the elements that were read."""
        bar = sweep.take(self.node)
        if bar is not None:
            sweep.add_at(sweep.own(self.source), self.index, bar, self.unique)

    def held(self) -> Iterable[Any]:
        """The objects whose memory it keeps: the index."""
        return [self.index, *self.index]


class Call:
    """A linear primitive or a function of the closed list, run backward by its transposes."""

    __slots__ = ("node", "operation")

    def __init__(self, node: Node, operation: Operation) -> None:
        self.node = node
        self.operation = operation

    def pull(self, sweep: Any) -> None:
        """Run the transposes."""
        bar = sweep.take(self.node)
        if bar is None:
            return
        y_bar = sweep.as_argument(bar, self.operation)
        for source, x_bar in transpose_one(self.operation, y_bar, sweep.lift):
            if not isinstance(x_bar, Zero):
                ((node, _),) = source.terms.items()
                sweep.add(node, sweep.from_argument(x_bar, node, self.operation.function))

    def arrays(self) -> list[Any]:
        """The arrays that the transposes read, among them duals of enclosing calls."""
        arguments = (self.operation.primals, self.operation.options)
        return [v for _, v in walk(arguments) if type(v) is Array or isinstance(v, np.ndarray)]

    def copy_from(self, owner: Any, copies: dict[int, Any]) -> None:
        """Replace views of a memory that is about to be written by copies."""

        def copied(_path: Any, v: Any) -> Any:
            if type(v) is not Array and not isinstance(v, np.ndarray):
                return v
            if owner_of(plain(v)) is not owner:
                return v
            if id(v) not in copies:
                copies[id(v)] = (v, own_copy(v))
            return copies[id(v)][1]

        operation = self.operation
        operation.primals = rebuild(operation.primals, copied)
        operation.options = rebuild(operation.options, copied)

    def held(self) -> Iterable[Any]:
        """The objects whose memory it keeps: the primals."""
        return [self.operation, *self.arrays()]


def own_copy(v: Any) -> Any:
    """A copy with the tangents of enclosing calls, but not those of the recorded call."""
    return Array(own_copy(v.p), v.t, v.tag) if type(v) is Array else v.copy()


def own_index(index: tuple[Any, ...]) -> tuple[Any, ...]:
    """An index that nobody else can change."""
    return tuple([_own_part(i) for i in index])


def _own_part(i: Any) -> Any:
    if type(i) is int or type(i) is slice or i is None or i is Ellipsis:
        return i
    if isinstance(i, np.ndarray):
        return i.copy()
    if isinstance(i, (list, tuple)):
        part = np.array(i)
        return part if part.size else part.astype(np.intp)
    return i


def is_unique(index: tuple[Any, ...]) -> bool:
    """Whether no element can be selected twice: a basic index, or one with masks only."""
    if is_basic(index):
        return True
    return all(
        i.dtype.kind == "b" if isinstance(i, np.ndarray) else not isinstance(i, Scalar)
        for i in index
    )
