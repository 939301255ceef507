"""Stores whose old content need not be restored, because a later restore overwrites it.

The reverse pass restores what a store overwrote before it restores what was overwritten earlier.
Restoring a store that writes a whole array hides all stores that follow it, up to the next of its
kind, except from what the reverse pass reads in between.
"""

from __future__ import annotations

from collections.abc import Iterable

from fwdad.ir.ops import Load, Op, Operand, Value
from fwdad.ir.primitives.scatter_add import target_of
from fwdad.transforms.reverse.indices import Read
from fwdad.transforms.reverse.structure import Structure


def hidden_stores(structure: Structure, stores: Iterable[Op], reads: Iterable[Read]) -> set[Op]:
    """The stores among those to be restored whose old content the reverse pass never reads."""
    places: dict[tuple[Value, int], list[int]] = {}
    for read in reads:
        at = read.position
        for b, holder in structure.chain(read.block):
            places.setdefault((read.place.root, id(b)), []).append(at)
            at = structure.position[holder] if holder is not None else 0
    candidates = list(stores)
    whole: dict[tuple[Value, int], list[int]] = {}
    for op in candidates:
        target = target_of(op)
        filled = None if target is None else _whole(structure, target.array, target.at)
        if filled is not None:
            block = structure.block_of[op]
            whole.setdefault((filled, id(block)), []).append(structure.position[op])
    return {op for op in candidates if _is_hidden(structure, op, whole, places)}


def _is_hidden(
    structure: Structure,
    op: Op,
    whole: dict[tuple[Value, int], list[int]],
    places: dict[tuple[Value, int], list[int]],
) -> bool:
    target = target_of(op)
    roots = set() if target is None else structure.roots(target.array)
    if len(roots) != 1:
        return False
    (root,) = roots
    at = structure.position[op]
    for block, holder in structure.chain(structure.block_of[op]):
        key = (root, id(block))
        for first in whole.get(key, ()):
            if first < at and not any(first < k <= at for k in places.get(key, ())):
                return True
        at = structure.position[holder] if holder is not None else 0
    return False


def _whole(structure: Structure, array: Value, index: tuple[Operand, ...]) -> Value | None:
    """The memory that a write covers completely; None if it may not."""
    while all(i is Ellipsis or i == slice(None) for i in index):
        if structure.roots(array) == {array}:
            return array
        op = structure.definition.get(array)
        if not isinstance(op, Load) or not op.view:
            return None
        array, index = op.array, op.index
    return None
