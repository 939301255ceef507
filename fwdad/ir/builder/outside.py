"""Arrays outside that a program writes: it ran on copies, whose contents are left there."""

from __future__ import annotations

from collections.abc import Callable

from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Block, Branch, Check, Op, Value
from fwdad.ir.symbol import Symbol


def leave_outside(
    recorder: Recorder, copies: dict[Value, Value], stays: Callable[[Value], bool], first: int
) -> None:
    """Copy the contents of ``copies`` back to the arrays outside for which ``stays`` is true.

    The operations of the open block from ``first`` on have run on the copies. If one of them
    raises, the contents are copied back before.
    """
    left = {v: copy for v, copy in copies.items() if stays(v)}
    if left:
        ops = recorder.block.ops[first:]
        _before_exceptions(recorder, ops, left)
        recorder.block.ops[first:] = [*ops, *_stores(recorder, left)]


def _stores(recorder: Recorder, left: dict[Value, Value]) -> list[Op]:
    outer, recorder.block = recorder.block, Block()
    try:
        for v, copy in left.items():
            recorder.store(Symbol(v, recorder), Ellipsis, Symbol(copy, recorder))
        return recorder.block.ops
    finally:
        recorder.block = outer


def _before_exceptions(recorder: Recorder, ops: list[Op], left: dict[Value, Value]) -> None:
    moved: list[Op] = []
    for op in ops:
        for block in op.blocks():
            _before_exceptions(recorder, block.ops, left)
        if isinstance(op, Check) and isinstance(op.condition, Value):
            raised = Check(False, op.exception, op.arguments, location=op.location)
            other = Block([], [*_stores(recorder, left), raised])
            moved.append(Branch(op.condition, Block(), other, location=op.location))
        else:
            moved += _stores(recorder, left) if isinstance(op, Check) else []
            moved.append(op)
    ops[:] = moved
