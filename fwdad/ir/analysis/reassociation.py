"""Sums of cotangents, whose order of summation is free.

The sums of a program keep their order on every backend; cotangents are sums that the user has not
written. In a loop that carries one, compiled code may add several iterations at once; a product
with a matrix of equal rows is a sum. Only loops inside loops are marked: an outermost loop may be
run from checkpoints, a few iterations at a time, and must give the same bits as without.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence

from fwdad.ir.analysis.def_use import count_uses
from fwdad.ir.ops import Apply, Block, Op, Operand, Value, is_array
from fwdad.ops import Algebra, record_of


def is_product(op: Apply) -> bool:
    """Whether a call is a product of matrices."""
    return record_of(op.function).algebra is Algebra.MATRIX_PRODUCT


def free_products(ops: Sequence[Op]) -> None:
    """Mark the matrix products among operations that reverse mode has written."""
    for op in ops:
        if isinstance(op, Apply) and is_product(op):
            op.any_order = True


def hand_on(op: Apply, ops: Sequence[Op]) -> None:
    """Mark what another program computes in place of an operation, if its own order is free."""
    if op.any_order:
        algebra = Algebra.MATRIX_PRODUCT if is_product(op) else Algebra.SUM
        for made in ops:
            if isinstance(made, Apply) and record_of(made.function).algebra is algebra:
                made.any_order = True


def free_sums(body: Block) -> None:
    """Mark the additions to the numbers that a reversed loop carries, all of them cotangents."""
    uses = count_uses(body)
    made = {v: op for op in body.ops for v in op.outputs}
    for p, r in zip(body.params[1:], body.results, strict=True):
        for op in () if is_array(p) else _additions(p, r, made, uses):
            op.any_order = True


def adds_up(body: Block) -> bool:
    """Whether everything that a loop changes, of what it carries, is a sum of free order."""
    uses = count_uses(body)
    made = {v: op for op in body.ops for v in op.outputs}
    for p, r in zip(body.params[1:], body.results, strict=True):
        if r is not p:
            found = _additions(p, r, made, uses)
            if not found or not all(op.any_order for op in found):
                return False
    return True


def _additions(p: Value, r: Operand, made: dict[Value, Op], uses: Counter[Value]) -> list[Apply]:
    """The additions from a carried number to its next value; empty if others use a partial sum."""
    ops: list[Apply] = []
    while r is not p:
        op = made.get(r) if isinstance(r, Value) and uses[r] == 1 else None
        if not isinstance(op, Apply) or op.function is not operator.add:
            return []
        ops.append(op)
        r = op.args[0]
    return ops if uses[p] == 1 else []
