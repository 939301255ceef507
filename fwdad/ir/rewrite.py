"""Replacement of values, and queries of definitions and uses."""

from __future__ import annotations

import dataclasses
import operator
import struct
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from fwdad.ir.analysis.alias import memory_of
from fwdad.ir.ops import (
    Apply,
    Block,
    Loop,
    Missing,
    Op,
    Operand,
    Program,
    Value,
    map_values,
    values_in,
    walk,
)
from fwdad.ir.types import Type

Mapping = dict[Value, Operand]


def substitute(block: Block, mapping: Mapping) -> None:
    """Replace values by operands in a block and the blocks inside it."""

    def found(value: Value) -> Operand:
        return map_values(found, mapping[value]) if value in mapping else value

    if mapping:
        _substitute(block, found)


def _substitute(block: Block, found: Any) -> None:
    for op in block.ops:
        op.replace(found)
        if op.nests:
            for inner in op.blocks():
                _substitute(inner, found)
    block.results = [map_values(found, r) for r in block.results]


def give_name(mapping: Mapping) -> None:
    """Pass the users' names on to the values that replace theirs."""
    for old, new in mapping.items():
        if isinstance(new, Value) and new.name is None:
            new.name = old.name


def blocks_of(block: Block) -> Iterator[Block]:
    """A block and all blocks inside it."""
    yield block
    for op in block.ops:
        if op.nests:
            for inner in op.blocks():
                yield from blocks_of(inner)


def replace_ops(block: Block, instead: Callable[[Op], Sequence[Op] | None]) -> bool:
    """Replace operations of a block, then of the blocks inside it; whether any was.

    ``instead`` returns what replaces an operation, or None if that stays.
    """
    changed = False
    for b in blocks_of(block):
        ops: list[Op] = []
        for op in b.ops:
            new = instead(op)
            changed |= new is not None
            ops += [op] if new is None else new
        b.ops = ops
    return changed


def with_blocks(op: Op, new: Callable[[Block], Block]) -> Op:
    """An operation with other blocks; itself if ``new`` returns the same ones."""
    changed: dict[str, Any] = {
        name: made
        for name, old in vars(op).items()
        if isinstance(old, Block) and (made := new(old)) is not old
    }
    return dataclasses.replace(op, **changed) if changed else op


def with_ops(block: Block, ops: list[Op]) -> Block:
    """A block with other operations; itself if these are its own."""
    same = len(ops) == len(block.ops) and all(map(operator.is_, ops, block.ops))
    return block if same else dataclasses.replace(block, ops=ops)


def give_types(block: Block, type_of: Callable[[Type], Type]) -> bool:
    """Replace the types of all values and placeholders in a block; whether any changed.

    ``type_of`` returns the same object for a type that stays.
    """
    changed = False

    def now(operand: Operand) -> Operand:
        return Missing(type_of(operand.type)) if isinstance(operand, Missing) else operand

    for b in blocks_of(block):
        for v in (*b.params, *(v for op in b.ops for v in defined_by(op))):
            t = type_of(v.type)
            changed |= t is not v.type
            v.type = t
        for op in b.ops:
            if isinstance(op, Loop):
                op.initial = [now(x) for x in op.initial]
        b.results = [now(r) for r in b.results]
    return changed


def defined_by(op: Op) -> tuple[Value, ...]:
    """The values that an operation defines in its block."""
    return (*op.outputs, op.exec_count) if isinstance(op, Loop) else op.outputs


def definitions(program: Program) -> dict[Value, Op]:
    """The operation that defines each value; parameters of blocks have none."""
    return {v: op for block in blocks_of(program.block) for op in block.ops for v in defined_by(op)}


def all_inside(block: Block) -> set[Value]:
    """All values that a block and the blocks inside it define, including parameters."""
    return {
        v
        for b in blocks_of(block)
        for v in (*b.params, *(v for op in b.ops for v in defined_by(op)))
    }


def written_outside(block: Block) -> list[Value]:
    """The arrays from outside that a block writes, in a fixed order."""
    written = [v for op in walk(block) for v in op.writes()]
    if not written:
        return []
    memory = memory_of(Program("", block))
    inside = all_inside(block)
    values: dict[Value, None] = {}
    for v in written:
        values.update(dict.fromkeys(sorted(memory.get(v, {v}) - inside, key=repr)))
    return list(values)


def all_used(op: Op) -> set[Value]:
    """The values that an operation and its blocks use, but do not define."""
    values = set(values_in(op.operands()))
    for block in op.blocks():
        for inner in block.ops:
            values |= all_used(inner)
        values |= set(values_in(block.results))
    for block in op.blocks():
        values -= set(block.params)
        values -= {v for inner in block.ops for v in defined_by(inner)}
    return values


def key_of(operand: Operand) -> Hashable:
    """A key, equal for operands that are the same in every run: constants by type and bits."""
    if isinstance(operand, Value):
        return operand
    if isinstance(operand, (tuple, list)):
        return (type(operand), *(key_of(x) for x in operand))
    if isinstance(operand, slice):
        return (slice, key_of(operand.start), key_of(operand.stop), key_of(operand.step))
    if isinstance(operand, dict):
        return (dict, *((name, key_of(operand[name])) for name in sorted(operand)))
    if isinstance(operand, float) and type(operand) is float:
        return (float, struct.pack("d", operand))
    if type(operand) is complex:
        return (complex, struct.pack("dd", operand.real, operand.imag))
    if isinstance(operand, np.generic):
        return (type(operand), operand.tobytes())
    if isinstance(operand, Missing):
        return (Missing, operand.type)
    try:
        hash(operand)
    except TypeError:
        return ("object", id(operand))
    return (type(operand), operand)


def repeats(op: Apply, function: Any, args: Operand, kwargs: Operand) -> bool:
    """Whether a call would return the one result of ``op``."""
    alike = op.function is function and len(op.outputs) == 1
    return alike and key_of([args, kwargs]) == key_of([op.args, op.kwargs])
