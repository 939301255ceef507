"""Programs without the tests that keep zeros zero, which say in the end whether these were needed.

``scale_lanes(d, t)`` is the product, but zero where t is: ``0 · ∞`` would be NaN. In a loop over
numbers the test takes longer than the product, and it hardly ever finds anything. So the products
are plain ones wherever a NaN could not get lost on its way to a result, and the program raises
:class:`LostZeroError` if there is a NaN in such a result: then no test can be left out. If there
is none, no product was NaN that counts, and the others are what they are with tests.

A NaN stays one in sums, products and quotients, and in what is linear (``tangents.laws``), where it
may be left out only as a zero would be. It may get lost in comparisons, conversions, and functions
such as a maximum: what leads there keeps its tests.
"""

from __future__ import annotations

import dataclasses
import operator
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from fwdad.codegen.passes.registers import LINEAR
from fwdad.ir.analysis.alias import Roots, alone_by_checks, memory_of
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Check,
    Effect,
    Load,
    Loop,
    Op,
    Operand,
    Program,
    Store,
    Update,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.ir.primitives.broadcast_sums import sum_to
from fwdad.ir.primitives.identity import identity
from fwdad.ir.primitives.scatter_add import is_scatter
from fwdad.ir.primitives.stacks import new_stack, pop, push, top
from fwdad.ir.rewrite import with_blocks, with_ops
from fwdad.ir.types import BOOL, INT, ArrayType
from fwdad.ops import record_of
from fwdad.tangents.chunk import LAWS
from fwdad.tangents.scaling import scale_lanes
from fwdad.transforms.forward import load_lanes, place_lanes, unit_lanes, zero_lanes

_KEEP_NAN = {
    identity, sum_to, push, pop, top, load_lanes, place_lanes, unit_lanes, zero_lanes,
}  # fmt: skip
_NOT_IN_ALL = {np.interp, np.linalg.solve}
"""Linear in some of their arguments, and in others anything."""
_FLOAT = np.dtype(np.float64)


class LostZeroError(Exception):
    """A result is NaN, which it might not be if a zero had stayed zero.

    It never leaves the library, so it looks for no place in the user's code.
    """


def without_tests(program: Program) -> Program | None:
    """A program that multiplies without tests in its loops; None if it would not be another one.

    It can be run again, with tests: it puts nothing out, and writes into no argument but those that
    are for results alone.
    """
    inside = [op for loop in program.walk() if isinstance(loop, Loop) for op in walk(loop.body)]
    if not any(map(_is_tested, inside)):
        return None
    for_results = alone_by_checks(program).intersection(values_in(program.block.results))
    written = {p for p, w in zip(program.block.params, program.written, strict=False) if w}
    if not written <= for_results or any(isinstance(op, Effect) for op in program.walk()):
        return None
    flow = _Flow(program)
    chosen = {op for op in program.walk() if _is_tested(op) and flow.keeps_nan(op.outputs[0])}
    if chosen.isdisjoint(inside):
        return None
    reached = flow.reached_from(op.outputs[0] for op in chosen)
    results = values_in(list(program.block.results))
    looked_at = [r for r in results if not reached.isdisjoint(flow.cells(r))]
    block = _untested(program.block, chosen)
    ops = [*block.ops, *_unless_nan(dict.fromkeys(looked_at))]
    return dataclasses.replace(program, block=dataclasses.replace(block, ops=ops))


def _is_tested(op: Op) -> bool:
    """Whether an operation multiplies real numbers with a test."""
    if not isinstance(op, Apply) or op.function is not scale_lanes or len(op.args) != 2:
        return False
    return all(getattr(v, "type", None) is None or v.type.dtype == _FLOAT
               for v in (*op.outputs, *op.args))  # fmt: skip


def _untested(block: Block, chosen: set[Op]) -> Block:
    """A block with plain products in place of those that were chosen."""
    ops = [
        Apply(operator.mul, op.args, outputs=op.outputs, location=op.location)
        if isinstance(op, Apply) and op in chosen
        else with_blocks(op, lambda inner: _untested(inner, chosen))
        for op in block.ops
    ]
    return with_ops(block, ops)


def _unless_nan(results: Iterable[Value]) -> list[Op]:
    """Operations that raise if there is a NaN in a result."""
    ops: list[Op] = []
    for r in results:
        found = Value(BOOL)
        if is_array(r):  # they are counted, which LLVM does in vectors; `np.any` stops at the first
            each, count = Value(ArrayType(BOOL.dtype, r.type.shape)), Value(INT)
            ops.append(Apply(np.isnan, (r,), outputs=(each,)))
            ops.append(Apply(np.sum, (each,), outputs=(count,)))
            ops.append(Apply(operator.ne, (count, 0), outputs=(found,)))
        else:
            ops.append(Apply(np.isnan, (r,), outputs=(found,)))
        holds = Value(BOOL)
        ops += [Apply(operator.not_, (found,), outputs=(holds,)), Check(holds, LostZeroError)]
    return ops


class _Flow:
    """Where the numbers of a program go: from cell to cell, which are numbers and memory."""

    def __init__(self, program: Program) -> None:
        self._roots: Roots = memory_of(program)
        self._to: dict[Value, set[Value]] = defaultdict(set)
        self._from: dict[Value, set[Value]] = defaultdict(set)
        self._lost: set[Value] = set()  # where a NaN may get lost
        self._block(program.block)
        stacks = {v for op in program.walk() if isinstance(op, Apply) and op.function is new_stack
                  for v in op.outputs}  # fmt: skip
        for r in values_in(program.block.results):
            if r.type.dtype != _FLOAT or not stacks.isdisjoint(self.cells(r)):
                self._lose(r)
        self._lost = _closure(self._lost, self._from)

    def cells(self, v: Value) -> set[Value]:
        """Where a value is: the memory of an array, or the number itself."""
        return self._roots.get(v, {v}) if is_array(v) else {v}

    def keeps_nan(self, v: Value) -> bool:
        """Whether a NaN in a value is one in each result that depends on it."""
        return self._lost.isdisjoint(self.cells(v))

    def reached_from(self, values: Iterable[Value]) -> set[Value]:
        """The cells that numbers of some values go to."""
        return _closure({cell for v in values for cell in self.cells(v)}, self._to)

    def _flows(self, sources: Operand, targets: Operand) -> None:
        ends = {cell for v in values_in(targets) for cell in self.cells(v)}
        for v in values_in(sources):
            for cell in self.cells(v):
                self._to[cell] |= ends
                for end in ends:
                    self._from[end].add(cell)

    def _lose(self, operand: Operand) -> None:
        self._lost.update(cell for v in values_in(operand) for cell in self.cells(v))

    def _block(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, Apply):
                self._apply(op)
            elif isinstance(op, Load):
                self._flows(op.array, list(op.outputs))
                self._lose(op.index)
            elif isinstance(op, (Store, Update)):
                self._lose(op.index)
                self._flows(op.value, op.array)
                if isinstance(op, Update) and op.function not in LINEAR:
                    self._lose([op.array, op.value])
            elif isinstance(op, Branch):
                self._lose(op.condition)
                for side in op.blocks():
                    self._block(side)
                    self._between(side.results, op.outputs)
            elif isinstance(op, Loop):
                self._loop(op)
            else:
                self._lose([op.operands(), list(op.outputs)])
            if isinstance(op, (Apply, Load)):
                self._convert(op)

    def _apply(self, op: Apply) -> None:
        if not _keeps_nan(op):
            self._lose(op.operands_read())
        elif op.function is np.where:  # of a number as condition, which NaN is true for
            self._lose(op.args[0])
        into = [*op.outputs, *op.writes()]
        self._flows(op.operands_read(), into)

    def _convert(self, op: Apply | Load) -> None:
        """What becomes an int or a bool is lost, but not of what only the shape is read."""
        if any(v.type.dtype.kind not in "fc" for v in op.outputs):
            read = op.operands_read() if isinstance(op, Apply) else op.operands()
            self._lose(read)

    def _loop(self, op: Loop) -> None:
        self._lose(op.span)
        if op.test is not None:
            self._block(op.test)
            self._lose(op.test.results)
        self._block(op.body)
        self._between(op.initial, op.carried)
        self._between(op.body.results, op.carried)
        self._between(op.carried, op.outputs)
        self._lose(op.body.results[len(op.carried) :])  # whether to leave the loop

    def _between(self, sources: Iterable[Operand], targets: Iterable[Value]) -> None:
        for source, target in zip(sources, targets, strict=False):
            self._flows(source, target)


def _keeps_nan(op: Apply) -> bool:
    """Whether a NaN in an operand is one in what an operation returns, or might have been zero."""
    if op.function in _KEEP_NAN or op.function in LINEAR or is_scatter(op):
        return True
    try:
        record = record_of(op.function)
        function = record.stands_for or op.function
        hash(function)
    except TypeError:
        return False
    return record.gathers or (function in LAWS and function not in _NOT_IN_ALL)


def _closure(cells: set[Value], edges: dict[Value, set[Value]]) -> set[Value]:
    found, left = set(cells), list(cells)
    while left:
        new = edges.get(left.pop(), set()) - found
        found |= new
        left += new
    return found


__all__ = ["LostZeroError", "without_tests"]
