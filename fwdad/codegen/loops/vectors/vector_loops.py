"""Loops of the reverse pass that LLVM can vectorise, for the Numba source.

Such a loop has nothing but operations on numbers and elements, and carries nothing but sums of
cotangents, whose order is free. Products with a cotangent from outside are tested without a branch
there: LLVM vectorises loops without branches.
"""

from __future__ import annotations

from fwdad.ir.analysis.reassociation import adds_up
from fwdad.ir.ops import Apply, Load, Loop, Op, Store, Update, Value, is_array, values_in
from fwdad.ir.primitives.stacks import pop, push
from fwdad.tangents.scaling import scale_lanes


def runs_in_vectors(loop: Loop) -> bool:
    """Whether a loop is of this kind."""
    if loop.span is None or loop.leaves or not adds_up(loop.body):
        return False
    inside = {*loop.body.params, *(v for op in loop.body.ops for v in op.outputs)}
    return all(_fits(op, inside) for op in loop.body.ops)


def _fits(op: Op, inside: set[Value]) -> bool:
    """Whether an operation is on numbers; a product must be with a cotangent from outside."""
    if any(map(is_array, op.outputs)):
        return False
    if isinstance(op, Apply):
        if op.function is scale_lanes and inside.intersection(values_in(op.args[1])):
            return False
        return not op.mutated or op.function in (push, pop)
    if isinstance(op, (Store, Update)):
        return not is_array(op.value) and not any(isinstance(i, slice) for i in op.index)
    return isinstance(op, Load)
