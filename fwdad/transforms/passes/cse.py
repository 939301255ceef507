"""Common subexpression elimination.

An expression is available in its block and in the blocks inside it, until memory that it reads may
have been written. Carried values are new in every iteration, so nothing is shared between
iterations. Arrays that are written, and second arrays for the caller, stay separate.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable

from fwdad.ir.analysis.alias import memory, memory_of
from fwdad.ir.analysis.effects import reads, writes
from fwdad.ir.builder.shape_env import length_of
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Check,
    Effect,
    Load,
    Loop,
    Op,
    Operand,
    Program,
    Value,
    is_array,
    map_values,
    walk,
)
from fwdad.ir.rewrite import Mapping, give_name, key_of
from fwdad.ir.types import Size


def cse(program: Program) -> bool:
    """Eliminate common subexpressions; return whether there were any."""
    numbering = _Numbering(program)
    numbering.block(program.block)
    give_name(numbering.mapping)
    return numbering.changed


class _Numbering:
    def __init__(self, program: Program) -> None:
        self.roots = memory_of(program)
        self.mapping: Mapping = {}
        self.changed = False
        ops = list(walk(program.block))
        self._written = memory([op.writes() for op in ops], self.roots)
        arguments = [op.args for op in ops if isinstance(op, Call)]
        self._escaping = memory([*program.block.results, *arguments], self.roots)
        self._known: list[dict[Hashable, tuple[Value, ...]]] = []  # a table for each open block
        self._version: dict[Value, int] = {}  # of the content of memory
        self._count = itertools.count(1)

    def block(self, block: Block) -> None:
        """Number one block."""
        self._known.append({})
        self._ops(block)
        self._known.pop()

    def _ops(self, block: Block) -> None:
        ops = []
        for op in block.ops:
            if self.mapping:
                op.replace(self._current)
            if self._is_known(op):
                self.changed = True
                continue
            ops.append(op)
            if isinstance(op, Branch):
                self._branch(op)
            elif isinstance(op, Loop):
                self._loop(op)
            else:
                self._change(writes(op, self.roots))
        block.ops = ops
        if self.mapping:
            block.results = [map_values(self._current, r) for r in block.results]

    def _current(self, value: Value) -> Operand:
        return self.mapping.get(value, value)

    def _change(self, written: set[Value]) -> None:
        for root in written:
            self._version[root] = next(self._count)

    def _branch(self, op: Branch) -> None:
        before = dict(self._version)
        for side in op.blocks():
            self._version = dict(before)
            self.block(side)
        self._version = before
        self._change(writes(op, self.roots))

    def _loop(self, op: Loop) -> None:
        written = writes(op, self.roots)
        self._change(written)
        self._known.append({})  # the condition runs right before the body
        if op.test is not None:
            self._ops(op.test)
        self._ops(op.body)
        self._known.pop()
        self._change(written)

    def _is_known(self, op: Op) -> bool:
        """Whether an operation repeats an available one, whose outputs then replace its own."""
        key = self._key(op)
        if key is None:
            return False
        available = next((table[key] for table in reversed(self._known) if key in table), None)
        if available is None or not all(map(self._mergeable, available, op.outputs)):
            if not self._written.intersection(op.outputs):
                self._known[-1][key] = op.outputs
            return False
        self.mapping.update(zip(op.outputs, available, strict=True))
        return True

    def _mergeable(self, first: Value, second: Value) -> bool:
        """Whether two arrays of equal content may be one; views of one array always may."""
        if not is_array(first) or first not in self.roots[first]:
            return True
        if first in self._written or second in self._written:
            return False
        return not (first in self._escaping and second in self._escaping)

    def _key(self, op: Op) -> Hashable:
        if isinstance(op, Effect):
            return None
        if isinstance(op, Check):
            return (Check, key_of(op.condition))
        if isinstance(op, Apply) and not op.mutated:
            if op.function is length_of:
                return self._length(op)
            try:
                hash(op.function)
            except TypeError:
                return None
            options = key_of(op.kwargs) if op.kwargs else None
            inputs: Hashable = (op.function, key_of(op.args), options, len(op.outputs))
        elif isinstance(op, Load):
            inputs = (op.view, key_of(op.array), key_of(op.index))
        else:
            return None
        content = frozenset((r, self._version.get(r, 0)) for r in reads(op, self.roots))
        return (type(op), inputs, content)

    def _length(self, op: Apply) -> Hashable:
        """The key of a length: by ``Size`` for lengths of inputs, otherwise by array and axis."""
        array, axis = op.args
        size = array.type.shape[axis]
        if isinstance(size, Size) and size.origin is not None:
            return ("length", size.number)
        return ("length", key_of(array), axis)
