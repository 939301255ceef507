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
from fwdad.ops.record import Layout, record_of


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
    if start is None or roots.get(value, {value}) != {value}:
        return False
    fill = _fill(ops[start], target)
    if fill is None:
        return False
    end = ops.index(store)
    own, given = {value}, memory(target, roots)
    before = any((reads(op, roots) | writes(op, roots)) & given for op in ops[start:end])
    after = any((reads(op, roots) | writes(op, roots)) & own for op in ops[end + 1 :])
    if before or after or memory(program.block.results, roots) & own:
        return False
    ops[start : end + 1] = [*fill, *ops[start + 1 : end]]
    substitute(program.block, {value: target})
    return True


def _fill(op: Op, target: Value) -> list[Op] | None:
    """Write into the target what an operation fills a new C-contiguous array with; None if not."""
    if not isinstance(op, Apply) or "order" in op.kwargs or target.type.dtype.kind not in "fc":
        return None
    if op.function is np.empty:
        return []
    record = record_of(op.function)
    if record.fill is None or record.layout is not Layout.C:
        return None
    return [Store(target, (Ellipsis,), float(record.fill), location=op.location)]
