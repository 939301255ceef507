"""Memory from outside in which a function may find what its last derivative call left there."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from fwdad.errors import Location
from fwdad.ir.analysis.alias import aliased_arguments
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    ElementWrite,
    Load,
    Loop,
    Op,
    Operand,
    Store,
    Update,
    Value,
    values_in,
)
from fwdad.ir.types import Size
from fwdad.transforms.activity import is_differentiable
from fwdad.transforms.reverse.structure import Structure


def read_before_written(
    block: Block, wrt: Iterable[Value], outside: Iterable[Value]
) -> tuple[Value, Location | None] | None:
    """The first array in ``outside``, and where, whose derivative is lost between calls; or None.

    Memory in which a block stores active values is read before the block has written there: at the
    next call it holds plain numbers. Elements are distinguished where their indices are constants;
    otherwise a write on the way to a read, in each branch, counts as a write of what is read, and a
    loop is assumed to run.
    """
    structure = Structure(block, wrt)
    watched = {v for v in outside if structure.activity.is_active(v)}
    if not watched:
        return None
    reads = _Reads(structure, watched)
    written: _Written = set()
    reads.block(block, written)
    reads.read(block.results, written, None)
    return reads.first


_Element = tuple[Value, tuple[int, ...]]
_Written = set[Value | _Element]
"""Arrays that are written, as far as that is known, and elements of others."""


def _holds(written: _Written, place: Value | _Element) -> bool:
    return place in written or (isinstance(place, tuple) and place[0] in written)


def _is_partly(written: _Written, array: Value) -> bool:
    """Whether only some elements of an array are written."""
    lengths = [d.hint or 0 if isinstance(d, Size) else d for d in array.type.shape]
    if array in written:
        return False
    return 0 < sum(isinstance(p, tuple) and p[0] is array for p in written) < math.prod(lengths)


class _Reads:
    """A walk through a block in order, with the memory that is written by then."""

    def __init__(self, structure: Structure, watched: set[Value]) -> None:
        self.structure = structure
        self.watched = watched
        self.copies: dict[Value, Value] = {}  # those that a derivative inside works on: of which
        self.first: tuple[Value, Location | None] | None = None

    def block(self, block: Block, written: _Written) -> None:
        """Visit what a block reads; ``written`` grows by what it writes."""
        for op in block.ops:
            self._op(op, written)

    def _op(self, op: Op, written: _Written) -> None:
        if isinstance(op, Branch):
            sides = [set(written) for _ in op.blocks()]
            for inner, side in zip(op.blocks(), sides, strict=True):
                self.block(inner, side)
            written |= {p for p in set.union(*sides) if all(_holds(side, p) for side in sides)}
            return
        if isinstance(op, Loop):
            for inner in op.blocks():
                self.block(inner, written)
            return
        if isinstance(op, Apply) and op.function is np.ndarray.copy and op.args[0] in self.watched:
            (copy,) = op.outputs
            self.copies[copy] = op.args[0]
            self.watched.add(copy)
            if op.args[0] in written:
                written.add(copy)
            return
        element = self._element(op)
        if isinstance(op, (Load, Update)) and element is not None:
            if not _holds(written, element):
                self._found(op.array, op.location)
        else:
            self.read(self._uses(op), written, op.location)
        if element is None:
            written |= self._memory(op.writes())
        elif op.writes():
            written.add(element)

    def _element(self, op: Op) -> _Element | None:
        """The element that an operation reads or writes, if its index is known."""
        if not isinstance(op, (Load, ElementWrite)) or op.array not in self.watched:
            return None
        at = tuple(i for i in op.index if type(i) is int and i >= 0)  # from the end: any other's
        return (op.array, at) if len(at) == len(op.index) == op.array.type.ndim else None

    def _uses(self, op: Op) -> list[Operand]:
        """The operands whose content matters for the derivative; views are visited where used."""
        if isinstance(op, Store):
            is_restored = isinstance(op.value, Value) and self.copies.get(op.value) is op.array
            return [] if is_restored else [op.value]
        if isinstance(op, Update):
            return [op.array, op.value]
        if isinstance(op, Load):
            return [] if op.view else [op.array]
        if isinstance(op, Apply):
            if not is_differentiable(op) or (not op.mutated and aliased_arguments(op)):
                return []
            return op.operands()
        return op.operands() if isinstance(op, Call) else []

    def read(self, operands: Operand, written: _Written, location: Location | None) -> None:
        """Visit what is read."""
        begun = {p if isinstance(p, Value) else p[0] for p in written}
        partly = {v for v in values_in(operands) if v in self.watched and _is_partly(written, v)}
        for array in sorted((self._memory(operands) - begun) | partly, key=repr):
            self._found(array, location)

    def _found(self, array: Value, location: Location | None) -> None:
        self.first = self.first or (array, location)

    def _memory(self, operands: Operand) -> set[Value]:
        roots = {r for v in values_in(operands) for r in self.structure.roots(v)}
        return roots & self.watched
