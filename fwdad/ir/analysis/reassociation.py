"""Sums of cotangents: the order of their summands is free.

The sums of a program keep their order, whoever runs it. Those of cotangents nobody has written
down. In a loop that carries one compiled code may add up several iterations at once; a product
with a matrix of equal rows is a sum. Only loops inside of loops are told so: an outermost loop may
be run from checkpoints, a few iterations at a time, and its bits are to be those that it has
without.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence

import numpy as np

from fwdad.ir.ops import Apply, Block, Op, Operand, Value, is_array, values_in, walk

_ADDITIONS = {operator.add, np.add}
PRODUCTS = {operator.matmul, np.matmul}
"""Products of matrices."""


def free_products(ops: Sequence[Op]) -> None:
    """Mark the products of matrices among operations that the reverse pass consists of.

    Parameters
    ----------
    ops : sequence of Op
        What reverse mode has written for one operation of the program.
    """
    for op in ops:
        if isinstance(op, Apply) and op.function in PRODUCTS:
            op.any_order = True


def hand_on(op: Apply, ops: Sequence[Op]) -> None:
    """Mark what an operation has become in another program, if its own order is free.

    Parameters
    ----------
    op : Apply
        The operation.
    ops : sequence of Op
        What was written for it: its value and its tangents.
    """
    if op.any_order:
        alike = PRODUCTS if op.function in PRODUCTS else _ADDITIONS
        for made in ops:
            if isinstance(made, Apply) and made.function in alike:
                made.any_order = True


def free_sums(body: Block) -> None:
    """Mark the additions to the numbers that a loop carries.

    Parameters
    ----------
    body : Block
        The loop's, backwards. All numbers that it carries are cotangents.
    """
    uses = _uses(body)
    made = {v: op for op in body.ops for v in op.outputs}
    for p, r in zip(body.params[1:], body.results, strict=True):
        for op in () if is_array(p) else _additions(p, r, made, uses):
            op.any_order = True


def adds_up(body: Block) -> bool:
    """Whether all that a loop changes, of what it carries, are sums of free order.

    Parameters
    ----------
    body : Block
        The loop's.
    """
    uses = _uses(body)
    made = {v: op for op in body.ops for v in op.outputs}
    for p, r in zip(body.params[1:], body.results, strict=True):
        if r is not p:
            found = _additions(p, r, made, uses)
            if not found or not all(op.any_order for op in found):
                return False
    return True


def _uses(body: Block) -> Counter[Value]:
    uses = Counter(v for op in walk(body) for v in values_in(op.operands()))
    inner = (b.results for op in walk(body) for b in op.blocks())
    uses.update(v for results in (body.results, *inner) for v in values_in(results))
    return uses


def _additions(p: Value, r: Operand, made: dict[Value, Op], uses: Counter[Value]) -> list[Apply]:
    """What leads from a number to its next value, if these are additions that nobody else sees."""
    found: list[Apply] = []
    while r is not p:
        op = made.get(r) if isinstance(r, Value) and uses[r] == 1 else None
        if not isinstance(op, Apply) or op.function is not operator.add:
            return []
        found.append(op)
        r = op.args[0]
    return found if uses[p] == 1 else []
