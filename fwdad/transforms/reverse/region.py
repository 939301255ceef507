"""Regions: the reversed blocks of a program."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from fwdad.ir.ops import Block, Loop, Op, Operand, Value
from fwdad.ir.symbol import Symbol


class Segment(NamedTuple):
    """What reverses one operation of a region's source block.

    ``position`` is that of the operation, ``op`` itself; ``bars`` are values of the source block
    that are cotangents as they are.
    """

    ops: list[Op]
    position: int
    op: Op | None
    bars: list[Value]


class Region:
    """The reverse of one block of the program, ``source``, which is recorded in ``block``.

    ``parent`` is the region of the surrounding block, ``owner`` the loop or branch that has
    ``source``.

    Attributes
    ----------
    bars : dict
        The cotangents so far of numbers and of arrays that are never written.
    owned : set of Value
        Those arrays whose cotangent is memory that may be added into.
    buffers : dict
        The cotangents of arrays that are memory, each in memory of its own.
    imports : dict
        In a loop: numbers from outside whose cotangents it carries, with their parameters.
    needed : set of Value
        What the recorded operations use of the source block.
    resolved : dict
        What replaces values of the source block here.
    heads : list of Op
        What precedes everything else when the region is closed.
    segments : list of Segment
        What has been recorded, by the operation that it reverses.
    inside : dict
        The regions of the blocks inside, by the id of the block that they are recorded in.
    """

    def __init__(
        self, source: Block, block: Block, parent: Region | None = None, owner: Op | None = None
    ) -> None:
        self.source = source
        self.block = block
        self.parent = parent
        self.owner = owner
        self.bars: dict[Value, Any] = {}
        self.owned: set[Value] = set()
        self.buffers: dict[Value, Symbol] = {}
        self.imports: dict[Value, Value] = {}
        self.needed: set[Value] = set()
        self.resolved: dict[Value, Operand] = {}
        self.heads: list[Op] = []
        self.segments: list[Segment] = []
        self.inside: dict[int, Region] = {}
        if parent is not None:
            parent.inside[id(block)] = self

    def close(self) -> None:
        """Put the operations that come first at the front."""
        self.block.ops[:0] = self.heads
        self.heads = []

    @property
    def is_loop(self) -> bool:
        """Whether it is the body of a loop."""
        return isinstance(self.owner, Loop)


class Blocks(Protocol):
    """What reverses blocks: those of loops and branches are reversed as the whole program is."""

    def reverse(self, region: Region) -> None:
        """Reverse the operations of a region's source block, into the region."""


def bar_dtype(v: Value) -> np.dtype[Any]:
    """The dtype of a value's cotangent."""
    return v.type.dtype
