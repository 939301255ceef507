"""New arrays in the Numba source: where they are allocated, and the order of their axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.codegen.loops.buffer_hoisting import OpenLoop, temporaries
from fwdad.codegen.loops.draft import Draft
from fwdad.codegen.loops.loop_lines import LoopLines
from fwdad.codegen.loops.memory import Memory
from fwdad.codegen.loops.notation import dtype_text, subscript
from fwdad.codegen.loops.terms.number_terms import literal, numpy_number
from fwdad.codegen.passes.axis_order import Axes, axes_of_memory
from fwdad.codegen.passes.registers import lane_memory
from fwdad.ir.notation import tuple_text
from fwdad.ir.ops import Block, Branch, Call, Loop, Op, Value, is_array, walk


@dataclass
class Slot:
    """A place on ``stack`` for an array that ``block`` pushes.

    ``take`` writes what is needed before, and returns source for the array.
    """

    stack: Value
    block: Block
    lengths: list[str]
    take: Callable[[], str]


class NewArrays:
    """Writes definitions of arrays that are then filled.

    ``open`` are the loops being written, outermost first; ``axes`` the orders of axes that were
    chosen; arrays that are ``loose`` have types that leave their layout open. Nothing is left of
    ``temporaries`` when an iteration ends; those with ``slots`` are pushed, too, and may be made
    on the stack: ``placed`` are those that are, with it.
    """

    def __init__(self, draft: Draft, lanes: set[Value], memory: Memory, loops: LoopLines) -> None:
        program = draft.program
        self.code, self.names, self.helpers = draft.code, draft.names, draft.helpers
        self.memory = memory
        self.loops = loops
        self.open: list[OpenLoop] = []
        self.axes = axes_of_memory(program, memory.of, memory.known)
        self.loose = merged_arrays(program.block) - lanes
        self._lane_memory = lane_memory(program, lanes)
        self.temporaries = temporaries(program, memory.of)
        self.slots: dict[Value, Slot] = {}
        self.placed: set[tuple[Value, Value]] = set()

    def new(
        self,
        value: Value,
        lengths: Sequence[str],
        op: Op | None = None,
        *,
        zeros: bool = False,
        compared: bool = False,
        name: str = "",
    ) -> None:
        """Define an array to be filled; one local to an iteration is allocated before the loop.

        Its lengths are checked here, unless the caller has ``compared`` them. It has the value's
        name if none is given.
        """
        name, dtype = name or self.names.name(value), value.type.dtype
        place, shape = self._workspace(value)
        if place is None:
            array = self.zeros(value, lengths) if zeros else self.empty(lengths, dtype, value)
            self.code.line(f"{name} = {array}", op)
            return
        if isinstance(place, Slot):
            self.code.line(f"{name} = {place.take()}", op)
            self.placed.add((value, place.stack))
        else:
            place.made.append(f"{name} = {self.empty(shape, dtype, value)}")
        for axis, (n, known) in enumerate(zip(lengths, shape, strict=False)):
            if n != known and not compared:  # so that no element has to be checked
                self.code.line(f"{self.helpers.use('equal_length')}({name}.shape[{axis}], {n})", op)
        if zeros:
            with self.loops.nest(shape, inner=True) as index:
                self.code.line(
                    f"{name}[{subscript(index)}] = {literal(0, numpy_number(dtype))}", op
                )

    def offer(self, value: Value, slot: Slot) -> None:
        """Let an array be made where it will be pushed, if nothing else is ever written there."""
        is_made_there = self.memory.known.home.get(value) is slot.block
        if (
            is_made_there
            and value in self.temporaries
            and self.is_in_order(value)
            and not self.memory.is_written(value)
        ):
            self.slots.setdefault(value, slot)

    def _workspace(self, value: Value) -> tuple[OpenLoop | Slot | None, list[str]]:
        """The outermost loop before which an array can be allocated, and its lengths there.

        Or its place on a stack, in the block that pushes it.
        """
        slot, here = self.slots.get(value), self.open[-1] if self.open else None
        if slot and here and here.body is slot.block and self.code.indent == here.indent + 1:
            return slot, slot.lengths
        if value in self.temporaries and value not in self._lane_memory:
            for loop in self.open:
                shape = loop.shape(value)
                if shape is not None:
                    return loop, shape
        return None, []

    def begin(self, stacks: Sequence[Value], lines: Sequence[str], op: Op) -> None:
        """Write lines that allocate some stacks: before the loops, if nothing is left on them."""
        if self.open and self.temporaries.issuperset(stacks):
            self.open[0].made += lines
            return
        for line in lines:
            self.code.line(line, op)

    def has_workspace(self, value: Value) -> bool:
        """Whether an array is allocated before the loop that computes it."""
        return self._workspace(value)[0] is not None

    def empty(
        self, lengths: Sequence[str], dtype: np.dtype[Any], value: Value | None = None
    ) -> str:
        """Source for a new array, in the axis order that was chosen for a value."""
        return self._made("empty", value, lengths, dtype)

    def zeros(self, value: Value, lengths: Sequence[str]) -> str:
        """Source for an array of zeros."""
        return self._made("zeros", value, lengths, value.type.dtype)

    def _made(
        self, function: str, value: Value | None, lengths: Sequence[str], dtype: np.dtype[Any]
    ) -> str:
        order = None if value is None else self._order(value)
        memory_lengths = list(lengths) if order is None else [lengths[k] for k in order]
        text = f"np.{function}({tuple_text(memory_lengths)}, {dtype_text(dtype)})"
        if order is None:
            return text
        if len(order) == 2:
            return f"{text}.T"
        return f"{text}.transpose({tuple_text([str(order.index(k)) for k in range(len(order))])})"

    def _order(self, value: Value) -> Axes | None:
        """The axis order of an array; lanes that are read and written as one are neighbours."""
        if value in self._lane_memory and value.type.ndim > 1:
            return (*range(1, value.type.ndim), 0)
        return self.axes.get(value)

    def is_in_order(self, value: Value) -> bool:
        """Whether an array's memory was allocated in C order."""
        return all(self._order(v) is None for v in self.memory.roots(value))


def merged_arrays(block: Block) -> set[Value]:
    """Arrays that stand for one of several, and results of calls: their layout is left open."""
    values: set[Value] = set()
    for op in walk(block):
        if isinstance(op, (Branch, Loop, Call)):
            values.update(v for v in op.outputs if is_array(v))
        if isinstance(op, Loop):
            values.update(v for v in op.carried if is_array(v))
    return values
