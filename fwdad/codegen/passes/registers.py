"""Which values of a program are kept in SIMD registers: the N lanes of a scalar.

Such a value is an array of a known, small length that nobody writes into, made by a function of
lanes, by linear operations on such values, of a list of numbers that only such operations use, or
popped for these.
Code may always load one from an array, or write one into a new array; so what is chosen here
affects the speed, never the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.ir.ops import (
    Apply,
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
    values_in,
)
from fwdad.ir.primitives.stacks import pop
from fwdad.ir.types import ArrayType, Number
from fwdad.ops import Algebra, functions_with
from fwdad.tangents.scaling import scale_lanes
from fwdad.transforms.forward import load_lanes, unit_lanes, zero_lanes

MAX_LANES = 64


def _doing(algebra: Algebra) -> set[Any]:
    return set(functions_with(lambda record: record.algebra is algebra))


SUMS = {f: a.value for a in (Algebra.SUM, Algebra.DIFFERENCE) for f in _doing(a)}
PRODUCTS = _doing(Algebra.PRODUCT)
QUOTIENTS = _doing(Algebra.QUOTIENT)
NEGATIONS = _doing(Algebra.NEGATION)
LINEAR = {scale_lanes, *SUMS, *PRODUCTS, *QUOTIENTS, *NEGATIONS}
"""The functions that lanes have in registers, beside those that make them."""
GATHERING = {np.array, np.asarray}


def lane_count(operand: Operand) -> int | None:
    """The length of what could be lanes, or None."""
    if not is_array(operand):
        return None
    t = operand.type
    if t.ndim != 1 or t.dtype != np.dtype(float) or not isinstance(t.shape[0], int):
        return None
    return t.shape[0] if 1 <= t.shape[0] <= MAX_LANES else None


def width(value: Value) -> int:
    """How many lanes a value in registers has."""
    n = lane_count(value)
    assert n is not None
    return n


def is_real(operand: Operand) -> bool:
    """Whether an operand is a real number."""
    if isinstance(operand, Value):
        return isinstance(operand.type, Number) and operand.type.dtype.kind in "iuf"
    return isinstance(operand, (int, float, np.integer, np.floating)) and not isinstance(
        operand, bool
    )


def is_lane_index(index: tuple[Operand, ...]) -> bool:
    """Whether an index takes all lanes of one element."""
    return (
        len(index) > 0
        and isinstance(index[0], slice)
        and index[0] == slice(None)
        and all(_is_int(i) for i in index[1:])
    )


def _is_int(i: Operand) -> bool:
    if isinstance(i, Value):
        return isinstance(i.type, Number) and i.type.dtype.kind in "iu"
    return isinstance(i, (int, np.integer)) and not isinstance(i, bool)


def in_registers(program: Program, is_written: Callable[[Value], bool]) -> set[Value]:
    """The values that are kept in registers."""
    chosen: set[Value] = set()
    ops = list(program.walk())
    users = _users(program)
    while True:
        before = len(chosen)
        for op in ops:
            for value in _new(op, chosen) or _taken(op, chosen, users):
                if not is_written(value):
                    chosen.add(value)
        if len(chosen) == before:
            return chosen


def _new(op: Op, chosen: set[Value]) -> list[Value]:
    if isinstance(op, Branch):
        sides = zip(op.outputs, op.then.results, op.other.results, strict=True)
        return [v for v, a, b in sides if _merges(v, [a, b], chosen)]
    if isinstance(op, Loop):
        values: list[Value] = []
        rows = zip(op.carried, op.outputs, op.initial, op.body.results, strict=False)
        for param, out, first, last in rows:
            if param in chosen or _merges(param, [first, last], chosen):
                values.extend((param, out))
        return values
    if len(op.outputs) != 1 or op.outputs[0] in chosen or lane_count(op.outputs[0]) is None:
        return []
    return [op.outputs[0]] if _makes_lanes(op, chosen) else []


Users = dict[Value, list[Op | None]]
"""For each value the operations that it is an operand or a result of; None is the program."""


def _users(program: Program) -> Users:
    users: Users = {}
    for op in program.walk():
        used = op.operands()
        if op.nests:
            used = [*used, *(r for block in op.blocks() for r in block.results)]
        for v in values_in(used):
            users.setdefault(v, []).append(op)
    for v in values_in(program.block.results):
        users.setdefault(v, []).append(None)
    return users


def _taken(op: Op, chosen: set[Value], users: Users) -> list[Value]:
    """The lanes made of a list of numbers, or popped, unless they are needed as an array."""
    if not isinstance(op, Apply) or op.kwargs or not (op.function is pop or _gathers(op)):
        return []
    (value,) = op.outputs
    if value in chosen or lane_count(value) is None:
        return []
    users_of_value = users.get(value, [])
    as_lanes = [_takes_lanes(user, value, chosen) for user in users_of_value]
    stored = [_stores_lanes(user, value) for user in users_of_value]
    wanted = any(as_lanes) and all(a or b for a, b in zip(as_lanes, stored, strict=True))
    return [value] if wanted else []


def _gathers(op: Apply) -> bool:
    if op.function not in GATHERING or len(op.args) != 1:
        return False
    items = op.args[0]
    is_list = isinstance(items, (list, tuple))
    return is_list and lane_count(op.outputs[0]) == len(items) and all(map(is_real, items))


def _takes_lanes(user: Op | None, value: Value, chosen: set[Value]) -> bool:
    if isinstance(user, Apply):
        return user.function in LINEAR and user.outputs[0] in chosen
    if isinstance(user, Branch):
        rows = zip(user.outputs, user.then.results, user.other.results, strict=True)
        return all(out in chosen for out, *sides in rows if any(s is value for s in sides))
    if isinstance(user, Loop):
        if user.test is not None and any(v is value for v in values_in(user.test.results)):
            return False
        columns = zip(user.carried, user.initial, user.body.results, strict=False)
        return all(p in chosen for p, *ends in columns if any(s is value for s in ends))
    return False


def _stores_lanes(user: Op | None, value: Value) -> bool:
    if not isinstance(user, (Store, Update)) or user.value is not value:
        return False
    t, inside = user.array.type, any(v is value for v in values_in(user.index))
    return (
        is_lane_index(user.index)
        and not inside
        and isinstance(t, ArrayType)
        and t.ndim == len(user.index)
        and t.dtype == np.dtype(float)
        and t.shape[0] == lane_count(value)
    )


def _merges(value: Value, sources: list[Any], chosen: set[Value]) -> bool:
    n = lane_count(value)
    if n is None or value in chosen:
        return False
    return any(s in chosen for s in sources if isinstance(s, Value)) and all(
        isinstance(s, Missing) or lane_count(s) == n for s in sources
    )


def _makes_lanes(op: Op, chosen: set[Value]) -> bool:
    n = lane_count(op.outputs[0])
    if isinstance(op, Load):
        t = op.array.type
        return (
            op.view
            and is_lane_index(op.index)
            and isinstance(t, ArrayType)
            and t.ndim == len(op.index)
            and t.ndim > 1
            and t.shape[0] == n
        )
    if not isinstance(op, Apply) or op.kwargs:
        return False
    f, args = op.function, op.args
    if f is load_lanes:
        return is_array(args[0]) and args[0].type.ndim == len(args) and args[0].type.shape[0] == n
    if f is unit_lanes:
        return True
    if f is zero_lanes:
        return not is_array(args[1])
    if f is scale_lanes:
        return is_real(args[0]) and lane_count(args[1]) == n
    has_lanes = any(isinstance(a, Value) and a in chosen for a in args)
    if f in SUMS:
        return has_lanes and all(lane_count(a) == n for a in args)
    if f in PRODUCTS:
        return has_lanes and any(is_real(a) for a in args)
    if f in QUOTIENTS:
        return has_lanes and is_real(args[1])
    return has_lanes and f in NEGATIONS


def lane_memory(program: Program, chosen: set[Value]) -> set[Value]:
    """The arrays whose elements' lanes are read or written as one, and that are never reshaped.

    One lane has no neighbours: such arrays stay C-contiguous.
    """
    values: set[Value] = set()
    reshaped: set[Any] = set()
    for op in program.walk():
        if isinstance(op, (Store, Update)) and isinstance(op.value, Value) and op.value in chosen:
            if is_lane_index(op.index):
                values.add(op.array)
        elif isinstance(op, Apply) and op.function is load_lanes and op.outputs[0] in chosen:
            values.add(op.args[0])
        elif isinstance(op, Apply) and op.function in (np.reshape, np.ravel):
            reshaped.update(values_in(op.args))
    return {v for v in values - reshaped if v.type.shape[0] != 1}
