"""New arrays that are stored whole into an argument: they are computed in its memory.

It is a pass for programs that return nothing but what they write, such as a gradient with ``out``:
the argument, which is C-contiguous then, holds anything until the end, so that a program that
raises leaves it half-written.
"""

from __future__ import annotations

import numpy as np

from fwdad.ir.analysis.alias import memory, memory_of
from fwdad.ir.analysis.effects import reads, writes
from fwdad.ir.ops import Apply, Op, Program, Store, Value, is_array
from fwdad.ir.rewrite import substitute

_FILLS = {np.empty: None, np.zeros: 0.0, np.ones: 1.0}


def compute_in_destination(program: Program) -> bool:
    """Let such arrays be the arguments; whether there were any."""
    found = [_take_over(program, op) for op in list(program.block.ops) if isinstance(op, Store)]
    return any(found)


def _take_over(program: Program, store: Store) -> bool:
    target, value = store.array, store.value
    if store.index not in ((), (Ellipsis,)) or target not in program.block.params:
        return False
    if not (isinstance(value, Value) and is_array(value)) or value.type != target.type:
        return False
    ops, roots = program.block.ops, memory_of(program)
    start = next((k for k, op in enumerate(ops) if value in op.outputs), None)
    if start is None or roots.get(value, {value}) != {value} or not _fills(ops[start]):
        return False
    end = ops.index(store)
    own, given = {value}, memory(target, roots)
    before = any((reads(op, roots) | writes(op, roots)) & given for op in ops[start:end])
    after = any((reads(op, roots) | writes(op, roots)) & own for op in ops[end + 1 :])
    if before or after or memory(program.block.results, roots) & own:
        return False
    fill = _FILLS[ops[start].function]  # type: ignore[attr-defined]
    stored = [] if fill is None else [Store(target, (Ellipsis,), fill, location=store.location)]
    ops[start : end + 1] = [*stored, *ops[start + 1 : end]]
    substitute(program.block, {value: target})
    return True


def _fills(op: Op) -> bool:
    """Whether an operation makes a new array of one number, C-contiguous, of float64s."""
    if not isinstance(op, Apply) or op.function not in _FILLS:
        return False
    return "order" not in op.kwargs and op.outputs[0].type.dtype.kind in "fc"
