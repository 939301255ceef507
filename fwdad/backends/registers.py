"""Which values of a program live in SIMD registers: the N lanes of a scalar.

Such a value is an array of a known, small length that nobody writes into, made by a function of
lanes or by linear operations on such values. Code may always load one from an array, or write one
into a new array; so what is chosen here decides the speed, never the answer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.tangents.chunk import scale_lanes
from fwdad.tape.forward import load_lanes, unit_lanes, zero_lanes
from fwdad.tape.ops import (
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
)
from fwdad.tape.types import ArrayType, Number

MAX_LANES = 64

SUMS = {operator.add: "+", operator.sub: "-", np.add: "+", np.subtract: "-"}
PRODUCTS = {operator.mul, np.multiply}
QUOTIENTS = {operator.truediv, np.true_divide, np.divide}
NEGATIONS = {operator.neg, np.negative}


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
    """The values that live in registers.

    Parameters
    ----------
    program : Program
        What is compiled.
    is_written : callable
        Whether anything is ever written into the memory of an array.
    """
    chosen: set[Value] = set()
    ops = list(program.walk())
    while True:
        before = len(chosen)
        for op in ops:
            for value in _new(op, chosen):
                if not is_written(value):
                    chosen.add(value)
        if len(chosen) == before:
            return chosen


def _new(op: Op, chosen: set[Value]) -> list[Value]:
    if isinstance(op, Branch):
        sides = zip(op.outputs, op.then.results, op.other.results, strict=True)
        return [v for v, a, b in sides if _merges(v, [a, b], chosen)]
    if isinstance(op, Loop):
        found: list[Value] = []
        rows = zip(op.carried, op.outputs, op.initial, op.body.results, strict=False)
        for param, out, first, last in rows:
            if param in chosen or _merges(param, [first, last], chosen):
                found.extend((param, out))
        return found
    if len(op.outputs) != 1 or op.outputs[0] in chosen or lane_count(op.outputs[0]) is None:
        return []
    return [op.outputs[0]] if _makes_lanes(op, chosen) else []


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
    held = any(isinstance(a, Value) and a in chosen for a in args)
    if f in SUMS:
        return held and all(lane_count(a) == n for a in args)
    if f in PRODUCTS:
        return held and any(is_real(a) for a in args)
    if f in QUOTIENTS:
        return held and is_real(args[1])
    return held and f in NEGATIONS


def lane_memory(program: Program, chosen: set[Value]) -> set[Value]:
    """The arrays whose elements' lanes are read or written as one.

    Parameters
    ----------
    program : Program
        What is compiled.
    chosen : set of Value
        The values in registers.
    """
    found: set[Value] = set()
    for op in program.walk():
        if isinstance(op, (Store, Update)) and isinstance(op.value, Value) and op.value in chosen:
            if is_lane_index(op.index):
                found.add(op.array)
        elif isinstance(op, Apply) and op.function is load_lanes and op.outputs[0] in chosen:
            found.add(op.args[0])
    return found
