"""Reversal of blocks, operation by operation, and of branches."""

from __future__ import annotations

from typing import Any

from fwdad.ir.ops import Block, Branch, Check, Effect, Loop, Missing, Operand, Value, is_array
from fwdad.ir.rewrite import defined_by
from fwdad.ir.symbol import Symbol
from fwdad.transforms.reverse.recursion import Recursion
from fwdad.transforms.reverse.region import Region, bar_dtype, zero_number


class Control(Recursion):
    """Reverses blocks and branches."""

    def reverse(self, region: Region) -> None:
        """Reverse the operations of a region's source block, into the region."""
        inside = [v for op in region.source.ops for v in defined_by(op)]
        absent: list[Value] = []  # what is no array yet in the first iteration
        if isinstance(region.owner, Loop):
            pairs = zip(region.owner.carried, region.owner.initial, strict=True)
            absent = [p for p, a in pairs if isinstance(a, Missing)]
        for v in (*(p for p in region.source.params if p not in absent), *inside):
            self.recorder.measure(v, anew=region.parent is not None)
        ops = list(region.source.ops)  # what keeps values is written beside them
        if region.parent is not None:  # the cotangents of its results may have read lengths
            self.settle(region, 0, len(ops))
        for op in reversed(ops):
            outer, self.op = self.op, op
            start = len(region.block.ops)
            getattr(self, f"_{type(op).__name__.lower()}")(op)
            self.settle(region, start, self.structure.position[op])
            self.op = outer

    def _check(self, _op: Check) -> None:
        """Nothing to do: what held in the forward pass holds."""

    def _effect(self, _op: Effect) -> None:
        """Nothing to do: output of the forward pass is not repeated."""

    def _of_own_dtype(self, v: Value, bar: Any) -> Any:
        """The cotangent of an array in the array's dtype: that of a real part may still be real."""
        if not is_array(v) or bar.dtype == bar_dtype(v):
            return bar
        made = self.zeros(v)
        self.recorder.store(made, Ellipsis, bar)
        return made

    def _branch(self, op: Branch) -> None:
        bars = [self._bar_of_output(v) for v in op.outputs]
        chosen = {v: self.memory_of(v) for k, v in enumerate(op.outputs) if self._is_chosen(op, k)}
        if all(b is None for b in bars) and not chosen and not self._matters(op):
            return
        sides = [Region(block, Block(), self.region, op) for block in (op.then, op.other)]
        numbers: dict[Value, None] = {}
        for side in sides:
            with self.writing(side), self.recorder.own_lengths():
                for r, v, bar in zip(side.source.results, op.outputs, bars, strict=False):
                    if bar is not None and isinstance(r, Value):
                        self.add(r, bar, alike=True)
                    elif v in chosen and self._is_own(r, side.source):
                        self.become(r, chosen[v])
                self.reverse(side)
            found = [v for v in side.bars if not is_array(v)]
            numbers.update(
                dict.fromkeys(v for v in found if self.structure.home[v] is not side.source)
            )
        self._joined(op, sides, list(numbers))

    def _joined(self, op: Branch, sides: list[Region], numbers: list[Value]) -> None:
        """Record the branch, which returns the cotangents of numbers from outside."""
        for side in sides:
            with self.writing(side):
                found = [self.current(v) for v in numbers]
                side.block.results = [
                    self.recorder.operand(zero_number(v) if x is None else x)
                    for v, x in zip(numbers, found, strict=True)
                ]
            side.close()
        outputs = tuple(self.bar_value(v) for v in numbers)
        then, other = (side.block for side in sides)
        self.recorder.block.ops.append(
            Branch(op.condition, then, other, outputs=outputs, location=op.location)
        )
        for v, made in zip(numbers, outputs, strict=True):
            self.region.bars[v] = Symbol(made, self.recorder)

    def _bar_of_output(self, v: Value) -> object:
        """The cotangent of an output of a branch; None if it has none of its own."""
        if not self.structure.is_active(v):
            return None
        if is_array(v) and self.structure.is_memory(v):
            return None  # found through what it is chosen from
        return self.take(v)

    def _is_chosen(self, op: Branch, k: int) -> bool:
        """Whether a branch returns memory that one of its sides may have allocated."""
        v = op.outputs[k]
        return (
            any(self._is_own(b.results[k], b) for b in (op.then, op.other))
            and self.structure.is_active(v)
            and self.structure.is_memory(v)
        )

    def _is_own(self, r: Operand, block: Block) -> bool:
        """Whether an array is made in a side of a branch."""
        return (
            isinstance(r, Value)
            and is_array(r)
            and self.structure.home.get(r) is block
            and self.structure.is_active(r)
        )
