"""Calls that are run again in the reverse pass: each is a block, a loop that runs once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.frontend.calls.recursion import calls_unfinished
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.trees import flatten, is_leaf
from fwdad.ir.analysis.alias import Roots, memory_of
from fwdad.ir.builder.heap_journal import set_content
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import (
    Apply,
    Block,
    Checkpoint,
    Loop,
    Missing,
    Program,
    Value,
    is_array,
    walk,
)
from fwdad.ir.rewrite import all_inside
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import INT


def sealed(recorder: Recorder, checkpoint: Checkpoint, run: Callable[[], Any]) -> Any:
    """Trace a call into a block of its own; one that makes or changes containers is in line.

    ``run`` traces the call and returns its value.
    """
    block, here = Block(), recorder.place()
    with recorder.region(block) as region:
        raised = None
        y = None
        try:
            y = run()
        except AlwaysRaises as error:
            raised = error
        changes = region.changes()
        region.undo()
    leaves, tree = flatten(y if _is_plain(y) else ())
    inline = raised is not None or changes or not _is_plain(y) or calls_unfinished(block)
    if inline or _returns_memory(block, leaves):
        recorder.adopt(block.ops)
        for o, _, now in changes:
            recorder.journal.touch(o)
            set_content(o, now)
        if raised is not None:
            raise raised
        return y
    places = [k for k, x in enumerate(leaves) if type(x) is Symbol]
    types = [leaves[k].type for k in places]
    block.params = [Value(INT), *(Value(t) for t in types)]
    block.results = [_copied(leaves[k].value, block) for k in places]
    outputs = tuple(Value(t, leaves[k].value.name) for k, t in zip(places, types, strict=True))
    recorder.emit(
        Loop(
            (0, 1, 1), [Missing(t) for t in types], block, checkpoint=checkpoint, sealed=True,
            outputs=outputs, location=here,
        )
    )  # fmt: skip
    for k, v in zip(places, outputs, strict=True):
        leaves[k] = Symbol(v, recorder)
    return tree(leaves)


def _is_plain(y: Any) -> bool:
    """Whether a value is numbers and arrays, or tuples of them, so that its structure is fixed."""
    return is_leaf(y) or (isinstance(y, tuple) and all(_is_plain(item) for item in y))


def _written(block: Block) -> tuple[Roots, set[Value]]:
    """The memory that arrays of a block may view, and the memory that it writes."""
    roots = memory_of(Program("", block))
    return roots, {r for op in walk(block) for v in op.writes() for r in roots.get(v, {v})}


def _returns_memory(block: Block, leaves: list[Any]) -> bool:
    """Whether a call returns an array from outside that it writes into."""
    roots, written = _written(block)
    inside = all_inside(block)
    outer_values = [x.value for x in leaves if type(x) is Symbol and x.is_array]
    return any((roots.get(v, {v}) & written) - inside for v in outer_values)


def _copied(v: Value, block: Block) -> Value:
    """The result of a call, or a copy if it is an array that the call has written."""
    roots, written = _written(block)
    if not is_array(v) or not roots.get(v, {v}) & written:
        return v
    value = Value(v.type, v.name)
    block.ops.append(Apply(np.ndarray.copy, (v,), outputs=(value,)))
    return value
