"""Which elements a load and a later store may have in common, by their indices.

In a loop that counts up, a later store at ``i + b`` does not overlap a load at ``i + a`` if a < b.
"""

from __future__ import annotations

from typing import NamedTuple

from fwdad.ir.analysis.indices import Interval, are_apart, bound, intervals
from fwdad.ir.ops import Block, Load, Op, Value
from fwdad.ir.primitives.scatter_add import Target
from fwdad.transforms.reverse.structure import Structure


class Place(NamedTuple):
    """Memory that is read: its owner, and which part of which array, as far as is known."""

    root: Value
    array: Value | None
    part: list[Interval] | None


class Read(NamedTuple):
    """Memory that the reverse pass reads.

    ``block`` and ``position`` are what is being reversed when it is read; ``stores`` are those of
    which one must be restored for it to be read at all, if it is read in order to restore.
    """

    place: Place
    block: Block
    position: int
    stores: frozenset[Op] | None = None


def place_of(v: Value, structure: Structure) -> list[Place]:
    """The memory that an array of the program is a view of, and where."""
    roots = structure.roots(v) & structure.written
    op = structure.definition.get(v)
    if isinstance(op, Load) and op.view:
        at = intervals(op.index, op.array.type.ndim, structure)
        return [Place(root, op.array, at) for root in roots]
    return [Place(root, None, None) for root in roots]


def may_meet(
    read: list[Interval] | None,
    read_block: Block,
    store: Op,
    target: Target,
    structure: Structure,
    *,
    after: bool,
) -> bool:
    """Whether a store may write an element after it was read in ``read_block``.

    ``read`` has an interval for each axis, or is None if they are unknown; ``target`` is in the
    same array. ``after``: the store follows the read within one iteration of their common loops.
    """
    written = intervals(target.at, target.array.type.ndim, structure)
    if read is None or written is None or len(read) != len(written):
        return True
    own = structure.loops_around(read_block)
    others = structure.loops_around(structure.block_of[store])
    common = [a for a, b in zip(own, others, strict=False) if a is b]
    for loop in common:
        if loop.span is None or not isinstance(loop.span[2], int) or loop.span[2] == 0:
            return True
        counter = loop.body.params[0]
        verdict = _along(counter, loop.span[2], read, written, structure)
        if verdict is True:
            return False
        if verdict is None:
            return True
    # in the same iteration of all loops that both are in
    return after and not are_apart(read, written)


def _along(
    counter: Value,
    step: int,
    read: list[Interval],
    written: list[Interval],
    structure: Structure,
) -> bool | None:
    """Over the iterations of one loop: True if never, False if only within one, None if unknown."""
    verdict: bool | None = None
    for r, w in zip(read, written, strict=True):
        # later stores are higher: what was read ends at r.high, what is written begins at w.low
        end, begin = (r.high, w.low) if step > 0 else (w.high, r.low)
        end = bound(end, structure, lambda v: v is counter, least=False)
        begin = bound(begin, structure, lambda v: v is counter, least=True)
        if end is not None and begin is not None and end.base is begin.base is counter:
            if end.offset <= begin.offset:
                return True
        if r == w and _single(r, counter):
            verdict = False
    return verdict


def _single(r: Interval, counter: Value) -> bool:
    """Whether an interval is a single position that moves with a counter."""
    if r.low is None or r.high is None:
        return False
    return r.low.base is r.high.base is counter and r.high.offset - r.low.offset == 1
