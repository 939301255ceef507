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

from fwdad.ir.analysis.alias import Roots, alone_by_checks, memory, memory_of
from fwdad.ir.analysis.effects import reads, writes
from fwdad.ir.ops import Apply, Block, Op, Operand, Program, Store, Update, Value, values_in, walk
from fwdad.ir.rewrite import with_blocks, with_ops
from fwdad.ops import Layout, record_of

_FAR = 200  # operations; those between are looked at


def with_first_sums_stored(program: Program) -> Program:
    """A program that stores what it would add to zeros; itself if it adds none first."""
    updates = any(isinstance(op, Update) and op.function is operator.add for op in program.walk())
    if not updates:
        return program
    params = set(program.block.params) - alone_by_checks(program)  # those are for the result alone
    block = _of_block(program.block, memory_of(program), params)
    return program if block is program.block else dataclasses.replace(program, block=block)


def _of_block(block: Block, roots: Roots, params: set[Value]) -> Block:
    ops = [with_blocks(op, lambda inner: _of_block(inner, roots, params)) for op in block.ops]
    filled = {k: v for k, op in enumerate(ops) if (v := _filled_with_zeros(op)) is not None}
    meeting = _meeting(ops, set(filled.values())) if filled else {}
    instead: dict[Op, list[Op]] = {}
    for k, v in filled.items():
        j = next((j for j in meeting.get(v, ()) if j > k), k)
        first = ops[j]
        if not isinstance(first, Update) or first.array is not v or not _adds(first):
            continue
        if isinstance(ops[k], Store) and not _may_be_later(v, ops[k + 1 : j + 1], roots, params):
            continue
        instead[ops[k]] = _without_zeros(ops[k])
        instead[first] = [*_rest(first), *_stored(first)]
    return with_ops(block, [new for op in ops for new in instead.get(op, [op])])


def _meeting(ops: list[Op], values: set[Value]) -> dict[Value, list[int]]:
    """The places of the operations that have some values as operands, or inside."""
    places: dict[Value, list[int]] = {}
    for j, op in enumerate(ops):
        inside = [op, *(i for block in op.blocks() for i in walk(block))] if op.nests else [op]
        met = [[i.operands(), *(b.results for b in i.blocks() if i.nests)] for i in inside]
        for v in values.intersection(values_in(met)):
            places.setdefault(v, []).append(j)
    return places


def _filled_with_zeros(op: Op) -> Value | None:
    """The array of floats that an operation makes, or fills, with zeros."""
    v: Any = None
    if isinstance(op, Store) and op.index == (Ellipsis,):
        v = op.array if type(op.value) is float and op.value == 0.0 else None
    elif isinstance(op, Apply) and len(op.outputs) == 1 and "order" not in op.kwargs:
        record = record_of(op.function)
        if op.function is np.zeros and record.layout is Layout.C:
            v = op.outputs[0]
    return v if v is not None and v.type.dtype.kind == "f" and v.type.ndim else None


def _may_be_later(v: Value, ops: list[Op], roots: Roots, params: set[Value]) -> bool:
    """Whether an array may be filled later, by the last of some operations, which adds to it.

    No view of it may be read or written until then, nor may its memory be an argument's: if one of
    the operations raises, the caller sees what was filled.
    """
    own = memory(v, roots)
    *between, last = ops
    if own & params or len(between) > _FAR:
        return False
    assert isinstance(last, Update)
    seen = any((reads(op, roots) | writes(op, roots)) & own for op in between)
    return not seen and not memory(last.value, roots) & own


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
