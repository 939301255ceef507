"""Reversal of stacks: in a program that has been reversed before, residuals carry derivatives."""

from __future__ import annotations

from typing import Any

from fwdad.ir.ops import Apply, Value, type_of_operand
from fwdad.ir.primitives.stacks import pop, push, stack_type, thin, top
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType, Number
from fwdad.transforms.reverse.cotangents import Cotangents
from fwdad.transforms.reverse.spaces import Spaces
from fwdad.transforms.reverse.sweep import Sweep


class BarStacks:
    """Reverses stack operations: for each stack, there is one of cotangents."""

    def __init__(self, sweep: Sweep, spaces: Spaces, cotangents: Cotangents) -> None:
        self.sweep = sweep
        self.recorder = sweep.recorder
        self.structure = sweep.structure
        self.spaces = spaces
        self.cotangents = cotangents
        self._of: dict[Value, Value] = {}

    def of(self, stack: Value) -> Symbol:
        """The stack of the cotangents of the values on a stack."""
        if stack not in self._of:
            name = f"{stack.name or 'saved'}_bar"
            self._of[stack] = self.sweep.new_stack(stack_type(stack.type), name)
        return Symbol(self._of[stack], self.recorder)

    def give(self, bar_stacks: dict[Value, Value]) -> None:
        """Use given stacks for the cotangents of the values on some stacks."""
        self._of.update(bar_stacks)

    def reverse(self, op: Apply) -> None:
        """Reverse a stack operation: pushing becomes popping of cotangents, and vice versa."""
        stack = op.args[0]
        if not self.structure.activity.is_active(stack):
            return
        bars = self.of(stack)
        if op.function is thin:
            self.sweep.fail(
                "a loop whose length is not known runs from checkpoints: run it forwards"
            )
        elif op.function in (pop, top):
            (v,) = op.outputs
            y_bar = self.cotangents.take(v)
            if op.function is top:
                if y_bar is None:
                    return
                y_bar = self._popped(bars, v.type) + y_bar
            self.recorder.mutate(push, (bars, self.spaces.whole(v, y_bar)), {})
        else:
            x = op.args[1]
            self.cotangents.add(x, self._popped(bars, type_of_operand(x)))

    def _popped(self, bars: Symbol, t: Any) -> Symbol:
        """The latest cotangent, popped from a stack."""
        taken = Value(t if isinstance(t, ArrayType) else Number(t.dtype, python=False))
        self.recorder.emit(Apply(pop, (bars.value,), mutated=(0,), outputs=(taken,)))
        return Symbol(taken, self.recorder)
