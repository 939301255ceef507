"""Restores: what the reverse pass writes only for stores whose old content it reads.

Which stores these are is known when the whole reverse pass has been written. So it is written for
all, and taken out for the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from fwdad.ir.ops import Block, Op
from fwdad.transforms.reverse.sweep import Sweep


class Restore(NamedTuple):
    """Operations of a block that are needed if one of some stores is to be restored."""

    stores: frozenset[Op]
    block: Block
    ops: list[Op]


class Restores:
    """The operations of a reverse pass that restore what stores have overwritten."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self._written: list[Restore] = []
        self._by_op: dict[Op, frozenset[Op]] = {}

    @contextmanager
    def only_for(self, stores: Iterable[Op]) -> Iterator[None]:
        """What is recorded inside restores what any of some stores has overwritten."""
        block = self.sweep.recorder.block
        start = len(block.ops)
        yield
        restore = Restore(frozenset(stores), block, block.ops[start:])
        self._written.append(restore)
        self._by_op.update(dict.fromkeys(restore.ops, restore.stores))

    def stores_of(self, op: Op) -> frozenset[Op] | None:
        """The stores that an operation of the reverse pass restores; None if it is always there."""
        return self._by_op.get(op)

    def take_out(self, restored: set[Op]) -> None:
        """Remove the restores of all other stores."""
        unnecessary = [r for r in self._written if not r.stores & restored]
        gone = {op for r in unnecessary for op in r.ops}
        for block in {id(r.block): r.block for r in unnecessary}.values():
            block.ops[:] = [op for op in block.ops if op not in gone]
