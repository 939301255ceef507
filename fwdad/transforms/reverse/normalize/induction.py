"""Induction variables: an int that each iteration of a loop adds to is an affine function of it.

``k += 1`` in a loop over a range is a value that the loop carries, and whose values the reverse
pass would keep; ``k0 + (i - start)`` is computed anywhere, and analyses of indices see through it.
"""

from __future__ import annotations

import operator
from typing import Any

from fwdad.ir.ops import Apply, Block, Loop, Op, Operand, Value, type_of_operand
from fwdad.ir.primitives.ranges import range_length
from fwdad.ir.rewrite import all_inside, substitute
from fwdad.ir.types import INT


def write_affine(block: Block) -> None:
    """Replace induction variables of loops over ranges."""
    ops: list[Op] = []
    outputs: dict[Value, Any] = {}
    for op in block.ops:
        for inner in op.blocks():
            write_affine(inner)
        if isinstance(op, Loop) and op.span is not None and not op.leaves and not op.sealed:
            before, found = _of_loop(op)
            ops += before
            outputs.update(found)
        ops.append(op)
    block.ops = ops
    if outputs:
        substitute(block, outputs)


def _of_loop(loop: Loop) -> tuple[list[Op], dict[Value, Any]]:
    """What must precede a loop, and what its outputs are that are induction variables."""
    assert loop.span is not None
    start, stop, step = loop.span
    if step not in (1, -1) or type_of_operand(start) != INT or type_of_operand(stop) != INT:
        return [], {}
    counter = loop.body.params[0]
    inside = all_inside(loop.body)
    before, heads = _Written(loop), _Written(loop)
    instead: dict[Value, Any] = {}
    outputs: dict[Value, Any] = {}
    for k, p in enumerate(loop.carried):
        by = _increment(loop, k, inside)
        if by is None:
            continue
        first, last = loop.initial[k], before.apply(range_length, start, stop, step)
        outputs[loop.outputs[k]] = before.sum(first, before.product(last, by))
        if step == -1:
            by = before.apply(operator.neg, by) if isinstance(by, Value) else -by
        # what is the same in all iterations is computed before
        offset = before.difference(first, before.product(start, by))
        instead[p] = heads.sum(heads.product(counter, by), offset)
    if instead:
        substitute(loop.body, instead)
        loop.body.ops[:0] = heads.ops
    return before.ops, outputs


def _increment(loop: Loop, k: int, inside: set[Value]) -> Operand:
    """What each iteration adds to a carried int; None if it does anything else."""
    p, result = loop.carried[k], loop.body.results[k]
    if p.type != INT or not isinstance(result, Value) or type_of_operand(loop.initial[k]) != INT:
        return None
    op = next((o for o in loop.body.ops if result in o.outputs), None)
    if not isinstance(op, Apply) or op.kwargs or p not in op.args:
        return None
    if op.function is operator.sub and op.args[0] is p and type(op.args[1]) is int:
        return -op.args[1]
    others = [a for a in op.args if a is not p]
    if op.function is not operator.add or len(others) != 1 or others[0] in inside:
        return None
    return others[0] if type_of_operand(others[0]) == INT else None


class _Written:
    """Operations on ints, without those that change nothing."""

    def __init__(self, at: Loop) -> None:
        self.ops: list[Op] = []
        self._at = at

    def apply(self, function: Any, *args: Operand) -> Value:
        """A call."""
        value = Value(INT)
        self.ops.append(Apply(function, args, outputs=(value,), location=self._at.location))
        return value

    def product(self, a: Any, b: Any) -> Any:
        """``a * b``."""
        if not (isinstance(a, Value) or isinstance(b, Value)):
            return a * b
        return a if b == 1 else self.apply(operator.mul, a, b)

    def sum(self, a: Any, b: Any) -> Any:
        """``a + b``."""
        if not (isinstance(a, Value) or isinstance(b, Value)):
            return a + b
        return self.apply(operator.add, a, b) if a != 0 and b != 0 else (b if a == 0 else a)

    def difference(self, a: Any, b: Any) -> Any:
        """``a - b``."""
        if not (isinstance(a, Value) or isinstance(b, Value)):
            return a - b
        return a if b == 0 else self.apply(operator.sub, a, b)
