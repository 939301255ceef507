"""What is recorded where a loop or a call runs again: numbers, branches, stacks of states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from fwdad.ir.analysis.alias import Roots
from fwdad.ir.ops import Apply, Block, Branch, Operand, Value
from fwdad.ir.primitives.stacks import pop, stack_type
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import INT, Type
from fwdad.transforms.reverse.cotangents import Cotangents
from fwdad.transforms.reverse.sweep import Sweep


class Inner(Protocol):
    """What reverses a block on its own, inside a reverse pass."""

    def pulled(
        self,
        block: Block,
        active: list[bool],
        roots: Roots,
        natural: list[Value],
        bars: list[Any],
        begin: Callable[[Cotangents, list[Operand]], None],
    ) -> list[Any]:
        """Record a block and its reverse pass; return its parameters' cotangents.

        The parameters are existing values, of which ``active`` carry derivatives; ``roots`` and
        ``natural`` are those of :class:`Structure` for them. ``bars`` are the results' cotangents.
        ``begin`` gets the block's cotangents and its results before anything is reversed.
        """


class Code:
    """Records numbers, branches, and the stacks of states."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.recorder = sweep.recorder

    def stack(self, of: Type, name: str | None) -> Value:
        """A stack of what is kept of each state."""
        return self.sweep.new_stack(stack_type(of), f"kept_{name}" if name else "kept")

    def latest(self, stack: Value, t: Type, function: Any) -> Symbol:
        """The latest value on a stack, which ``pop`` removes and ``top`` leaves there."""
        value = Value(t)
        mutated = (0,) if function is pop else ()
        self.recorder.emit(Apply(function, (stack,), mutated=mutated, outputs=(value,)))
        return Symbol(value, self.recorder)

    def number(self, f: Any, *args: Any, t: Type = INT) -> Any:
        """Record a function of numbers."""
        return self.recorder.apply_typed(f, args, t)

    def own(self, v: Operand) -> Any:
        """An array in memory of its own."""
        return self.recorder.apply(np.ndarray.copy, (Symbol(v, self.recorder),), {})

    def branch(
        self,
        condition: Symbol,
        types: list[Type],
        then: Callable[[], list[Any]],
        other: Callable[[], list[Any]] = list,
    ) -> list[Any]:
        """Record a branch whose sides return operands; return its outputs."""
        recorder, sides = self.recorder, []
        outer, mark = recorder.block, recorder.lengths.mark()
        for run in (then, other):
            recorder.block = Block()
            results = run()
            recorder.block.results = [recorder.operand(x) for x in results]
            sides.append(recorder.block)
            recorder.block = outer
            recorder.lengths.forget(mark)
        outputs = tuple(Value(t) for t in types)
        recorder.emit(Branch(condition.value, *sides, outputs=outputs))
        return [Symbol(v, recorder) for v in outputs]
