"""Memory from outside in which a function finds what its last derivative call has left there."""

from __future__ import annotations

from collections.abc import Iterable

from fwdad.errors import Location
from fwdad.reverse.structure import Structure, is_differentiable
from fwdad.tape.alias import windows
from fwdad.tape.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Load,
    Loop,
    Op,
    Operand,
    Store,
    Update,
    Value,
    values_in,
)


def read_before_written(
    block: Block, wrt: Iterable[Value], outside: Iterable[Value]
) -> tuple[Value, Location | None] | None:
    """Where a derivative is lost from one call to the next.

    That is where memory that a block stores active values in is read before the block has written
    there: at the next call it holds them as plain numbers. Elements are not told apart: who has
    written into an array on the way to a read, in each branch of it, is taken to have written what
    is read, and a loop is taken to run.

    Parameters
    ----------
    block : Block
        A function's.
    wrt : iterable of Value
        The parameters that are differentiated with respect to.
    outside : iterable of Value
        The arrays from outside that it writes.

    Returns
    -------
    tuple or None
        An array that is read so, and the place; None if there is none.
    """
    structure = Structure(block, wrt, {})
    watched = {v for v in outside if structure.is_active(v)}
    if not watched:
        return None
    found = _Reads(structure, watched)
    written: set[Value] = set()
    found.block(block, written)
    found.read(block.results, written, None)
    return found.first


class _Reads:
    """A walk through a block in its order, with the memory that is written by then."""

    def __init__(self, structure: Structure, watched: set[Value]) -> None:
        self.structure = structure
        self.watched = watched
        self.first: tuple[Value, Location | None] | None = None

    def block(self, block: Block, written: set[Value]) -> None:
        """Enter what a block reads; ``written`` grows by what it writes."""
        for op in block.ops:
            self._op(op, written)

    def _op(self, op: Op, written: set[Value]) -> None:
        if isinstance(op, Branch):
            sides = [set(written) for _ in op.blocks()]
            for inner, side in zip(op.blocks(), sides, strict=True):
                self.block(inner, side)
            written |= set.intersection(*sides)
            return
        if isinstance(op, Loop):
            for inner in op.blocks():
                self.block(inner, written)
            return
        self.read(self._uses(op), written, op.location)
        written |= self._memory(op.writes())

    def _uses(self, op: Op) -> list[Operand]:
        """What an operation reads to differentiate it; a view is read where it is used."""
        if isinstance(op, Store):
            return [op.value]
        if isinstance(op, Update):
            return [op.array, op.value]
        if isinstance(op, Load):
            return [] if op.view else [op.array]
        if isinstance(op, Apply):
            if not is_differentiable(op) or (not op.mutated and windows(op)):
                return []
            return op.operands()
        return op.operands() if isinstance(op, Call) else []

    def read(self, operands: Operand, written: set[Value], location: Location | None) -> None:
        """Enter what is read."""
        unwritten = self._memory(operands) - written
        if unwritten and self.first is None:
            self.first = (min(unwritten, key=repr), location)

    def _memory(self, operands: Operand) -> set[Value]:
        found = {r for v in values_in(operands) for r in self.structure.roots(v)}
        return found & self.watched
