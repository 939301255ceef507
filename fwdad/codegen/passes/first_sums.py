"""Zeros to a slice of which something is added first: it is stored there, and the rest is zero.

A reverse pass adds the cotangents of slices to new zeros. The first sum is written over zeros that
have been written before, and read again: memory is touched three times where once is enough.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from fwdad.ir.analysis.alias import Roots, memory, memory_of
from fwdad.ir.analysis.effects import reads, writes
from fwdad.ir.ops import Apply, Block, Op, Operand, Program, Store, Update, Value, values_in, walk
from fwdad.ir.rewrite import with_blocks, with_ops
from fwdad.ops import Layout, record_of


def with_first_sums_stored(program: Program) -> Program:
    """A program that stores what it would add to zeros; itself if it adds none first."""
    updates = any(isinstance(op, Update) and op.function is operator.add for op in program.walk())
    if not updates:
        return program
    roots = memory_of(program)
    block = _of_block(program.block, roots)
    return program if block is program.block else dataclasses.replace(program, block=block)


def _of_block(block: Block, roots: Roots) -> Block:
    ops = [with_blocks(op, lambda inner: _of_block(inner, roots)) for op in block.ops]
    instead: dict[Op, list[Op]] = {}
    for k, op in enumerate(ops):
        v = _filled_with_zeros(op)
        first = None if v is None else _first_to_meet(v, ops[k + 1 :], roots)
        if not isinstance(first, Update) or first.array is not v or not _adds(first):
            continue
        instead[op] = _without_zeros(op)
        instead[first] = [*_rest(first), *_stored(first)]
    return with_ops(block, [new for op in ops for new in instead.get(op, [op])])


def _filled_with_zeros(op: Op) -> Value | None:
    """The array of floats that an operation makes, or fills, with zeros."""
    v: Any = None
    if isinstance(op, Store) and op.index == (Ellipsis,) and op.value == 0.0:
        v = op.array if type(op.value) is float else None
    elif isinstance(op, Apply) and len(op.outputs) == 1 and "order" not in op.kwargs:
        record = record_of(op.function)
        if op.function is np.zeros and record.layout is Layout.C:
            v = op.outputs[0]
    return v if v is not None and v.type.dtype.kind == "f" and v.type.ndim else None


def _first_to_meet(v: Value, ops: list[Op], roots: Roots) -> Op | None:
    """The first operation that has to do with an array, or with its memory."""
    own = memory(v, roots)
    for op in ops:
        inside = [op, *(i for block in op.blocks() for i in walk(block))] if op.nests else [op]
        if any(v in values_in(i.operands()) for i in inside):
            return op
        if (reads(op, roots) | writes(op, roots)) & own:
            return op
    return None


def _adds(op: Update) -> bool:
    """Whether something of an array's dtype is added to a slice of it along some axes."""
    t = op.array.type
    whole = [i for i in op.index if not (isinstance(i, slice) and i.step is None)]
    value: Any = op.value
    same = value.type.dtype == t.dtype if isinstance(value, Value) else type(value) is float
    sliced = any(i != slice(None) for i in op.index)
    return op.function is operator.add and not whole and sliced and same


def _without_zeros(op: Op) -> list[Op]:
    return [dataclasses.replace(op, function=np.empty)] if isinstance(op, Apply) else []


def _rest(op: Update) -> Iterator[Op]:
    """Store zeros where nothing is added: before and behind the slice along each axis."""
    for k, i in enumerate(op.index):
        sides = [slice(None, i.start)] if i.start is not None else []
        sides += [slice(i.stop, None)] if i.stop is not None else []
        for side in sides:
            yield Store(op.array, (*op.index[:k], side), 0.0, location=op.location)


def _stored(op: Update) -> Iterator[Op]:
    """Store what would be added to zeros: a zero has the sign that the sum has."""
    total: Operand = op.value
    if isinstance(total, Value):
        total = Value(total.type)
        yield Apply(operator.add, (op.value, 0.0), outputs=(total,), location=op.location)
    else:
        total += 0.0
    yield Store(op.array, op.index, total, location=op.location)
