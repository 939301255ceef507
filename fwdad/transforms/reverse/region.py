"""Regions: the blocks in which a program's blocks are run backwards."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.ir.ops import Block, Branch, Loop, Op, Operand, Value
from fwdad.ir.symbol import Symbol


class Region:
    """One block of the program, backwards.

    Parameters
    ----------
    source : Block
        The block of the program.
    block : Block
        Where its reverse is written.
    parent : Region or None
        The region of the block around it.
    owner : Loop, Branch or None
        The operation of the program that the block is in.

    Attributes
    ----------
    bars : dict
        The cotangents, so far, of numbers and of arrays that are never written.
    owned : set of Value
        Those arrays whose cotangent is memory that may be added into.
    buffers : dict
        The cotangents of arrays that are memory, in memory of their own.
    imports : dict
        In a loop: numbers from outside whose cotangents it carries, and the parameters for them.
    resolved : dict
        What stands here for values of the source block.
    heads : list of Op
        What is written in front of everything else, when the region is closed.
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
        self.resolved: dict[Value, Operand] = {}
        self.heads: list[Op] = []

    def close(self) -> None:
        """Put what was kept for the front there."""
        self.block.ops[:0] = self.heads
        self.heads = []

    @property
    def is_loop(self) -> bool:
        """Whether it is run again and again."""
        return isinstance(self.owner, Loop)

    @property
    def is_side(self) -> bool:
        """Whether it is a side of a branch."""
        return isinstance(self.owner, Branch)


def zero_number(v: Value) -> Any:
    """The cotangent of a number that nothing depends on."""
    return bar_dtype(v).type(0)


def bar_dtype(v: Value) -> np.dtype[Any]:
    """The dtype of a value's cotangent."""
    return v.type.dtype
