"""Reversal of branches as branches, which return the cotangents of numbers from outside."""

from __future__ import annotations

from fwdad.ir.ops import Block, Branch, Operand, Value, is_array
from fwdad.ir.symbol import Symbol
from fwdad.transforms.reverse.cotangents import Cotangents
from fwdad.transforms.reverse.region import Blocks, Region
from fwdad.transforms.reverse.spaces import Spaces
from fwdad.transforms.reverse.sweep import Sweep
from fwdad.transforms.reverse.view_cotangents import ViewCotangents


class Branches:
    """Reverses branches."""

    def __init__(
        self,
        sweep: Sweep,
        spaces: Spaces,
        view_cotangents: ViewCotangents,
        cotangents: Cotangents,
        blocks: Blocks,
    ) -> None:
        self.sweep = sweep
        self.recorder = sweep.recorder
        self.structure = sweep.structure
        self.activity = sweep.structure.activity
        self.spaces = spaces
        self.view_cotangents = view_cotangents
        self.cotangents = cotangents
        self.blocks = blocks

    def reverse(self, op: Branch) -> None:
        """Reverse a branch as a branch."""
        bars = [self._bar_of_output(v) for v in op.outputs]
        chosen_outputs = [v for k, v in enumerate(op.outputs) if self._is_chosen(op, k)]
        chosen = {v: self.view_cotangents.memory_of(v) for v in chosen_outputs}
        if all(b is None for b in bars) and not chosen and not self.structure.writes_inside(op):
            return
        sides = [Region(block, Block(), self.sweep.region, op) for block in (op.then, op.other)]
        numbers: dict[Value, None] = {}
        for side in sides:
            with self.sweep.writing(side), self.recorder.lengths.own_lengths():
                for r, v, bar in zip(side.source.results, op.outputs, bars, strict=False):
                    if bar is not None and isinstance(r, Value):
                        self.cotangents.add(r, bar, alike=True)
                    elif v in chosen and self._is_own(r, side.source):
                        self.cotangents.become(r, chosen[v])
                self.blocks.reverse(side)
            active_numbers = [v for v in side.bars if not is_array(v)]
            numbers.update(
                dict.fromkeys(
                    v for v in active_numbers if self.structure.home[v] is not side.source
                )
            )
        self._joined(op, sides, list(numbers))

    def _joined(self, op: Branch, sides: list[Region], numbers: list[Value]) -> None:
        """Record the branch, which returns the cotangents of numbers from outside."""
        for side in sides:
            with self.sweep.writing(side):
                bars = [self.cotangents.current(v) for v in numbers]
                side.block.results = [
                    self.recorder.operand(self.spaces.whole(v, x))
                    for v, x in zip(numbers, bars, strict=True)
                ]
        outputs = tuple(self.spaces.bar_value(v) for v in numbers)
        then, other = (side.block for side in sides)
        self.recorder.block.ops.append(
            Branch(op.condition, then, other, outputs=outputs, location=op.location)
        )
        for v, bar in zip(numbers, outputs, strict=True):
            self.sweep.region.bars[v] = Symbol(bar, self.recorder)

    def _bar_of_output(self, v: Value) -> object:
        """The cotangent of an output of a branch; None if it has none of its own."""
        if not self.activity.is_active(v):
            return None
        if is_array(v) and self.structure.is_memory(v):
            return None  # found through what it is chosen from
        return self.cotangents.take(v)

    def _is_chosen(self, op: Branch, k: int) -> bool:
        """Whether a branch returns memory that one of its sides may have allocated."""
        v = op.outputs[k]
        return (
            any(self._is_own(b.results[k], b) for b in (op.then, op.other))
            and self.activity.is_active(v)
            and self.structure.is_memory(v)
        )

    def _is_own(self, r: Operand, block: Block) -> bool:
        """Whether an array is made in a side of a branch."""
        return (
            isinstance(r, Value)
            and is_array(r)
            and self.structure.home.get(r) is block
            and self.activity.is_active(r)
        )
