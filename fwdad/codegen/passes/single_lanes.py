"""A single lane in a register is a number: the tangent of a number along one direction.

``jvp`` and ``hvp`` along one direction have lanes of length one. As numbers they are subject to all
that is done to loops of numbers, vectors and stacks of numbers among it.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence

import numpy as np

from fwdad.codegen.passes.registers import GATHERING, in_registers, is_lane_index, lane_count, width
from fwdad.ir.analysis.alias import memory, memory_of
from fwdad.ir.clone import copied
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Load,
    Loop,
    Missing,
    Op,
    Operand,
    Program,
    Store,
    Update,
    Value,
    is_array,
    map_values,
    values_in,
)
from fwdad.ir.primitives.stacks import new_stack, pop, push, thin, top
from fwdad.ir.types import ArrayType, Number
from fwdad.transforms.forward import load_lanes, unit_lanes, zero_lanes

_FLOAT64 = np.dtype(float)
_NUMBER = Number(_FLOAT64, python=False)
_ARRAY = ArrayType(_FLOAT64, (1,))
_ZERO = np.float64(0.0)


def with_single_lanes_as_numbers(program: Program) -> Program:
    """A program whose single lanes in registers are numbers; itself if it has none."""
    if not _single_lanes(program)[0]:
        return program
    program = copied(program)
    numbers, zeros = _single_lanes(program)
    for v in numbers:
        v.type = _NUMBER
    rewriting = _Rewriting(numbers, zeros, _stacks_of_numbers(program, numbers))
    rewriting.block(program.block)
    return program


def _single_lanes(program: Program) -> tuple[set[Value], set[Value]]:
    """The single lanes in registers, and the arrays of one zero that are never written."""
    roots = memory_of(program)
    written = memory([op.writes() for op in program.walk()], roots)

    def is_written(v: Value) -> bool:
        return not written.isdisjoint(roots[v])

    zeros = {
        op.outputs[0] for op in program.walk()
        if isinstance(op, Apply) and op.function is np.zeros and lane_count(op.outputs[0]) == 1
    }  # fmt: skip
    chosen = {v for v in in_registers(program, is_written) if width(v) == 1}
    return chosen, {v for v in zeros if not is_written(v)}


def _stacks_of_numbers(program: Program, numbers: set[Value]) -> set[Value]:
    """The stacks that nothing but these numbers is pushed onto, and popped from."""
    made: set[Value] = set()
    mixed = {*values_in(program.block.results)}  # what another program pops from
    for op in program.walk():
        if not isinstance(op, Apply):
            mixed.update(values_in(op.operands()))
        elif op.function is new_stack:
            made.add(op.outputs[0])
        elif op.function in (push, pop, top):
            stack, *pushed = op.args
            if not all(isinstance(v, Value) and v in numbers for v in (*pushed, *op.outputs)):
                mixed.add(stack)
        elif op.function is not thin:
            mixed.update(values_in(op.operands()))
    return made - mixed


class _Rewriting:
    """Replaces lanes by numbers, which other operations are given as arrays again."""

    def __init__(self, numbers: set[Value], zeros: set[Value], stacks: set[Value]) -> None:
        self.numbers = numbers
        self.zeros = zeros
        self.stacks = stacks
        self.ops: list[Op] = []

    def block(self, block: Block, into: Sequence[Value] = ()) -> None:
        """Rewrite a block, whose results are numbers where what they become are."""
        outer, self.ops = self.ops, []
        for op in block.ops:
            self._op(op)
        block.results = [self._merged(r, v) for r, v in itertools.zip_longest(block.results, into)]
        block.ops, self.ops = self.ops, outer

    def _merged(self, operand: Operand, into: Value | None) -> Operand:
        """An operand as a number, if it becomes one, else as an array."""
        if into in self.numbers:
            return self._number(operand)
        return map_values(lambda v: self._array(v) if v in self.numbers else v, operand)

    def _op(self, op: Op) -> None:
        if isinstance(op, Loop):
            carried = op.carried
            op.initial = [self._merged(x, p) for x, p in zip(op.initial, carried, strict=True)]
            if op.test is not None:
                self.block(op.test)
            self.block(op.body, carried)
        elif isinstance(op, Branch):
            self.block(op.then, op.outputs)
            self.block(op.other, op.outputs)
        elif isinstance(op, (Store, Update)) and self._stores_number(op):
            op.index = (0, *op.index[1:])
        elif (
            isinstance(op, Apply) and op.function in (push, pop, top) and op.args[0] in self.stacks
        ):
            pass
        elif len(op.outputs) == 1 and op.outputs[0] in self.numbers:
            self._definition(op)
            return
        elif not self.numbers.isdisjoint(values_in(op.operands())):
            arrays = {v: self._array(v) for v in values_in(op.operands()) if v in self.numbers}
            op.replace(lambda v: arrays.get(v, v))
        self.ops.append(op)

    def _stores_number(self, op: Store | Update) -> bool:
        t = op.array.type
        return (
            isinstance(op.value, Value)
            and op.value in self.numbers
            and op.array not in self.numbers
            and t.dtype == _FLOAT64
            and isinstance(t, ArrayType)
            and t.ndim == len(op.index)
            and t.shape[0] == 1
            and is_lane_index(op.index)
            and self.numbers.isdisjoint(values_in(op.index))
        )

    def _definition(self, op: Op) -> None:
        """Write what makes a lane as what makes a number."""
        (out,) = op.outputs
        if isinstance(op, Load):
            self._emit(Load(op.array, (0, *op.index[1:]), view=False, outputs=(out,)), op)
            return
        assert isinstance(op, Apply)
        f, args = op.function, op.args
        if f is load_lanes:
            self._emit(Load(args[0], (0, *args[1:]), view=False, outputs=(out,)), op)
        elif f is zero_lanes:
            self._emit(Apply(np.float64, (_ZERO,), outputs=(out,)), op)
        elif f is unit_lanes:
            first = Value(Number(np.dtype(bool), python=True))
            self._emit(Apply(operator.eq, (args[1], 0), outputs=(first,)), op)
            self._emit(Apply(np.float64, (first,), outputs=(out,)), op)
        elif f in GATHERING:
            self._emit(Apply(np.float64, (args[0][0],), outputs=(out,)), op)
        elif f in (pop, top):
            array = Value(_ARRAY)
            self._emit(Apply(f, args, outputs=(array,)), op)
            self._emit(Load(array, (0,), view=False, outputs=(out,)), op)
        else:  # linear
            given = tuple(self._number(a) for a in args)
            self._emit(Apply(f, given, outputs=(out,)), op)

    def _emit(self, op: Op, like: Op | None = None) -> None:
        op.location = like.location if like is not None else None
        self.ops.append(op)

    def _number(self, operand: Operand) -> Operand:
        """An operand as a number: a lane, an array of one, or a number."""
        if isinstance(operand, Missing):
            return Missing(_NUMBER)
        if isinstance(operand, np.ndarray):
            return np.float64(operand[0])
        if not is_array(operand):
            return operand
        if operand in self.zeros:
            return _ZERO
        number = Value(_NUMBER)
        self._emit(Load(operand, (0,), view=False, outputs=(number,)))
        return number

    def _array(self, number: Value) -> Value:
        array = Value(_ARRAY)
        self._emit(Apply(np.full, ((1,), number), outputs=(array,)))
        return array
