"""Copies for names that are views of written arrays, different ones in each iteration.

``x = s[k]`` in a loop that stores into ``s``: the carried ``x`` is other memory in each iteration.
Where nothing is written between the end of an iteration and the reads of ``x``, a copy is as good
as the view, and a copy is an array like any other.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fwdad.ir.analysis.alias import Roots, memory_of
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Load,
    Loop,
    Op,
    Program,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.ir.rewrite import blocks_of


def copy_views(block: Block) -> None:
    """Let loops carry copies of views of written memory, where that is unobservable.

    Rewrites the block, which must be the caller's own.
    """
    roots = memory_of(Program("", block))
    written = _written(walk(block), roots)
    for home in list(blocks_of(block)):
        for op in [op for op in home.ops if isinstance(op, Loop)]:
            for k, p in enumerate(op.carried):
                if not is_array(p) or not roots[p] & written:
                    continue
                if _is_view(op.body.results[k], op, roots) and _Reads(op, k, roots).well(home):
                    _copy(home, op, k, roots)


def _is_view(r: object, op: Loop, roots: Roots) -> bool:
    return isinstance(r, Value) and r not in op.carried and r not in roots.get(r, {r})


def _copy(home: Block, op: Loop, k: int, roots: Roots) -> None:
    """Carry a copy from iteration to iteration, and into the first one if it starts with a view."""
    op.body.results[k] = _copied(op.body, len(op.body.ops), op.body.results[k], op)
    if _is_view(op.initial[k], op, roots):
        op.initial[k] = _copied(home, home.ops.index(op), op.initial[k], op)


def _copied(block: Block, position: int, v: Value, op: Loop) -> Value:
    copy = Value(v.type, v.name)
    call = Apply(np.ndarray.copy, (v,), outputs=(copy,), location=op.location)
    block.ops.insert(position, call)
    return copy


class _Reads:
    """The uses of the k-th value that a loop carries, an array."""

    def __init__(self, op: Loop, k: int, roots: Roots) -> None:
        self.op = op
        self.roots = roots
        self.memory = roots[op.carried[k]]
        self.views = {op.carried[k], op.outputs[k]}  # and the views of these, as they are found

    def well(self, home: Block) -> bool:
        """Whether it is only read, and always before its memory is written."""
        after = home.ops[home.ops.index(self.op) + 1 :]
        bodies = [(self.op.body.ops, self.op.body.results), (after, home.results)]
        return all(
            self._scan(ops, stale=False) and not self.views.intersection(values_in(results))
            for ops, results in bodies
        )

    def _scan(self, ops: list[Op], *, stale: bool) -> bool:
        for op in ops:
            if self.views.intersection(values_in(op.operands())):
                if stale or isinstance(op, (Loop, Branch, Call)):
                    return False
                if self.views.intersection(op.writes()):
                    return False
                self._enter(op)
            writes = bool(_written([op, *_inside(op)], self.roots) & self.memory)
            for block in op.blocks():  # an iteration comes after the others' writes
                if not self._scan(block.ops, stale=stale or (writes and isinstance(op, Loop))):
                    return False
                if self.views.intersection(values_in(block.results)):
                    return False
            stale = stale or writes
        return True

    def _enter(self, op: Op) -> None:
        """Note that views of a view are views."""
        if isinstance(op, Load) and op.view:
            self.views.update(op.outputs)
        elif isinstance(op, Apply):
            self.views.update(v for v in op.outputs if self.roots.get(v, {v}) != {v})


def _inside(op: Op) -> list[Op]:
    return [inner for block in op.blocks() for inner in walk(block)]


def _written(ops: Iterable[Op], roots: Roots) -> set[Value]:
    return {root for op in ops for v in op.writes() for root in roots.get(v, {v})}
