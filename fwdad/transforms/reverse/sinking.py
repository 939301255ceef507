"""Sinking of cotangent updates into the branches that return their values.

Where a value is used on one side of a branch only, the other side adds zero to its cotangent, which
costs a load and a store in every iteration: ``if x[i] > largest: largest = x[i]``.
"""

from __future__ import annotations

import operator
from collections import Counter

import numpy as np

from fwdad.ir.ops import Apply, Block, Branch, Op, Operand, Update, Value, is_array, values_in
from fwdad.ir.rewrite import blocks_of


def sink_updates(block: Block) -> None:
    """Sink updates into branches, in a reverse pass and the blocks inside it."""
    blocks = list(blocks_of(block))
    if not any(isinstance(op, Branch) for b in blocks for op in b.ops):
        return
    uses: Counter[Value] = Counter()
    for b in blocks:
        uses.update(v for op in b.ops for v in values_in(op.operands()))
        uses.update(values_in(b.results))
    for b in blocks:
        for op in list(b.ops):
            if isinstance(op, Branch):
                _sink(b, op, uses)


def _sink(block: Block, branch: Branch, uses: Counter[Value]) -> None:
    k = block.ops.index(branch)
    between: set[Value] = set(branch.outputs)
    for op in block.ops[k + 1 :]:
        if isinstance(op, Update):
            side = _side(branch, op, uses)
            if side is None or between.intersection(values_in([op.array, op.index])):
                return
            place = branch.outputs.index(op.value)
            moved = Update(op.array, op.index, op.function, side.results[place])
            moved.location = op.location
            side.ops.append(moved)
            block.ops.remove(op)
            for each in (branch.then, branch.other):
                del each.results[place]
            branch.outputs = branch.outputs[:place] + branch.outputs[place + 1 :]
        elif not _is_of_numbers(op):
            return
        between.update(op.outputs)


def _side(branch: Branch, op: Update, uses: Counter[Value]) -> Block | None:
    """The only side of a branch on which an update adds something; None if there is none."""
    v = op.value
    if op.function is not operator.add or v not in branch.outputs or uses[v] != 1:
        return None
    place = branch.outputs.index(v)
    then, other = branch.then, branch.other
    zero = [_is_zero(side.results[place]) for side in (then, other)]
    if is_array(v) or zero[0] == zero[1]:
        return None
    return other if zero[0] else then


def _is_zero(x: Operand) -> bool:
    return isinstance(x, (int, float, np.floating)) and x == 0


def _is_of_numbers(op: Op) -> bool:
    """Whether an operation uses no memory, so that an update can move across it."""
    pure = isinstance(op, Apply) and op.pure and not op.mutated
    return pure and not any(map(is_array, values_in(op.operands())))
