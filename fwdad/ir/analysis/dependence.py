"""Dependence analysis: whether the iterations of a loop can run in any order, or in parallel."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from fwdad.ir.analysis.alias import Roots
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
    Store,
    Update,
    Value,
    is_array,
    values_in,
    walk,
)


def is_independent(loop: Loop, roots: Roots, arguments: Collection[Value]) -> bool:
    """Whether no iteration of a loop reads or writes what another one writes.

    Nothing is carried, and an array from outside that is written was allocated by the program and
    is indexed by the counter alone on one fixed axis. ``arguments`` are the program's, which may
    share elements. ``roots`` comes from :func:`fwdad.ir.analysis.alias.memory_of`.
    """
    if loop.span is None or loop.initial or loop.leaves or loop.checkpoint or loop.sealed:
        return False
    if not _counts_apart(loop.span):
        return False
    ops = list(walk(loop.body))
    if not all(_is_known(op) for op in ops):
        return False
    blocks = [loop.body, *(b for op in ops for b in op.blocks())]
    inside = {v for b in blocks for v in b.params} | {v for op in ops for v in op.outputs}
    shared = written_outside(loop, roots)
    if shared.intersection(arguments) or not all(map(is_array, shared)):
        return False
    places: dict[Value, int] = {}
    for op in ops:
        for array, place in _met(op, loop.body.params[0], inside):
            owners = roots.get(array, {array})
            if not owners & shared:
                continue
            if owners != {array} or place is None or places.setdefault(array, place) != place:
                return False
    left = [v for b in blocks for v in values_in(b.results)]
    return not any(is_array(v) and v not in inside and roots.get(v, {v}) & shared for v in left)


def written_outside(loop: Loop, roots: Roots) -> set[Value]:
    """The arrays from before a loop that it may write."""
    ops = list(walk(loop.body))
    blocks = [loop.body, *(b for op in ops for b in op.blocks())]
    inside = {v for b in blocks for v in b.params} | {v for op in ops for v in op.outputs}
    return {r for op in ops for v in op.writes() for r in roots.get(v, {v})} - inside


def _counts_apart(span: tuple[Operand, Operand, Operand]) -> bool:
    """Whether the numbers of a range index distinct elements of any axis: none is negative."""
    start, stop, step = span
    if not isinstance(step, (int, np.integer)):
        return False
    lowest = start if step > 0 else stop + 1 if isinstance(stop, (int, np.integer)) else None
    return isinstance(lowest, (int, np.integer)) and bool(step and lowest >= 0)


def _is_known(op: Op) -> bool:
    """Whether this module understands all effects of an operation."""
    if isinstance(op, Apply):  # a stack is memory, too
        return bool(op.outputs or op.mutated) and not isinstance(op, Effect)
    return isinstance(op, (Load, Store, Update, Check, Branch, Loop))


def _met(op: Op, counter: Value, inside: set[Value]) -> Iterator[tuple[Value, int | None]]:
    """The arrays from outside that an operation uses, each with the axis indexed by the counter."""
    if isinstance(op, (Load, Store, Update)) and op.array not in inside:
        yield op.array, axis_of(op.index, counter)
        rest = [op.index] if isinstance(op, Load) else [op.index, op.value]
    else:
        rest = op.operands()
    for v in values_in(rest):
        if is_array(v) and v not in inside:
            yield v, None


def axis_of(index: tuple[Operand, ...], counter: Value) -> int | None:
    """The axis of an array that is indexed by a counter itself, or None."""
    axis = 0
    for i in index:
        if i is counter:
            return axis
        if i is Ellipsis or is_array(i) or isinstance(i, (list, np.ndarray)):
            return None
        axis += i is not None
    return None


def loops_in(block: Block) -> bool:
    """Whether there is a loop in a block or inside it."""
    return any(isinstance(op, Loop) for op in walk(block))
