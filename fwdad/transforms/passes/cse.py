"""Common subexpression elimination.

An expression is available in its block and in the blocks inside it, until memory that it reads may
have been written. Carried values are new in every iteration, so nothing is shared between
iterations. Arrays that are written, and second arrays for the caller, stay separate. What one side
of a branch hands on is available on that side of a later branch on the same condition: the reverse
pass of a branch is one.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

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
from fwdad.ir.types import FLOAT, Number, Size

_NAMESAKES: dict[Any, Any] = {
    np.sin: math.sin, np.cos: math.cos, np.sinh: math.sinh, np.cosh: math.cosh, np.exp: math.exp,
}  # fmt: skip
"""Those of NumPy's functions that slopes are made of, and what has the same value of a number."""
_OF_MATH = frozenset(_NAMESAKES.values())
_FLOAT64 = Number(np.dtype(np.float64), python=False)


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
        self._branches: list[dict[Operand, list[Branch]]] = []  # by condition, for each open block
        self._numbers: dict[Value, Value] = {}  # and what they are converted from
        self._version: dict[Value, int] = {}  # of the content of memory
        self._count = itertools.count(1)

    def block(self, block: Block, known: dict[Hashable, tuple[Value, ...]] | None = None) -> None:
        """Number one block, in which some expressions are ``known`` from the start."""
        self._open(known)
        self._ops(block)
        self._close()

    def _open(self, known: dict[Hashable, tuple[Value, ...]] | None = None) -> None:
        self._known.append({} if known is None else known)
        self._branches.append(defaultdict(list))

    def _close(self) -> None:
        self._known.pop()
        self._branches.pop()

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
        earlier = [b for table in self._branches for b in table.get(op.condition, ())]
        for k, side in enumerate(op.blocks()):
            self._version = dict(before)
            self.block(side, {key: v for b in earlier for key, v in self._handed_on(b, k)})
        self._version = before
        self._change(writes(op, self.roots))
        if isinstance(op.condition, Value):
            self._branches[-1][op.condition].append(op)

    def _handed_on(self, op: Branch, side: int) -> Iterator[tuple[Hashable, tuple[Value, ...]]]:
        """The keys of the numbers that one side of a branch computes and hands on."""
        block = op.blocks()[side]
        outputs = {r: v for r, v in zip(block.results, op.outputs, strict=True)
                   if isinstance(r, Value) and not is_array(r)}  # fmt: skip
        for inner in block.ops:
            if isinstance(inner, Apply) and outputs.keys() >= set(inner.outputs):
                args = map_values(lambda v: outputs.get(v, v), inner.args)
                key = self._key(replace(inner, args=args))
                made = tuple(outputs[v] for v in inner.outputs)
                if key is None:  # of a function without a hash, too
                    continue
                yield key, made
                if inner.function in _OF_MATH:
                    yield self._of_number(replace(inner, args=args)), made

    def _loop(self, op: Loop) -> None:
        written = writes(op, self.roots)
        self._change(written)
        self._open()  # the condition runs right before the body
        if op.test is not None:
            self._ops(op.test)
        self._ops(op.body)
        self._close()
        self._change(written)

    def _is_known(self, op: Op) -> bool:
        """Whether an operation repeats an available one, whose outputs then replace its own."""
        key = self._key(op)
        if key is None:
            return False
        available = self._available(key)
        if available is None and isinstance(op, Apply):
            self._convert(op)
        if available is None or not all(map(self._mergeable, available, op.outputs)):
            if not self._written.intersection(op.outputs):
                self._known[-1][key] = op.outputs
            if isinstance(op, Apply):
                self._note_number(op)
            return False
        self.mapping.update(zip(op.outputs, available, strict=True))
        return True

    def _available(self, key: Hashable) -> tuple[Value, ...] | None:
        return next((table[key] for table in reversed(self._known) if key in table), None)

    def _note_number(self, op: Apply) -> None:
        """Note what is the same number, and what :mod:`math` computes of it."""
        if op.function in (float, np.float64) and isinstance(op.args[0], Value):
            x = op.args[0]
            if x.type in (FLOAT, _FLOAT64):
                self._numbers[op.outputs[0]] = self._numbers.get(x, x)
        elif op.function in _OF_MATH:
            self._known[-1][self._of_number(op)] = op.outputs

    def _convert(self, op: Apply) -> None:
        """Make a call the conversion of what :mod:`math` has computed already."""
        namesake = _NAMESAKES.get(op.function) if isinstance(op.function, np.ufunc) else None
        if namesake is None or op.kwargs or op.outputs[0].type != _FLOAT64:
            return
        found = self._available(self._of_number(replace(op, function=namesake)))
        if found is not None:
            op.function, op.args, self.changed = np.float64, found, True

    def _of_number(self, op: Apply) -> Hashable:
        """The key of a function of :mod:`math`, of Python's and NumPy's numbers alike."""
        (x,) = op.args
        return (op.function, key_of(self._numbers.get(x, x) if isinstance(x, Value) else x))

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
