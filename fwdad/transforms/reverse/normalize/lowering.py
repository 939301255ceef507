"""Lowering of operations to simpler ones before a program is reversed.

``a[ix] += b`` with an index array becomes a load, a computation and a store, whose last write
counts where an index repeats; so does ``a @= b``. Values that a loop's body uses from its test are
computed in the body, too, since a test is not reversed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.clone import Cloner
from fwdad.ir.ops import Block, Loop, Op, Update, Value, is_array, map_values, values_in
from fwdad.ir.rewrite import all_used, defined_by, substitute
from fwdad.ir.symbol import Symbol
from fwdad.rules.core.registry import find_rule
from fwdad.transforms.forward.rule_table import ruled_function


def lower(recorder: Recorder, block: Block) -> None:
    """Lower the updates in a block that have no reverse pass of their own, in place."""
    lowered: list[Op] = []
    for op in block.ops:
        for inner in op.blocks():
            lower(recorder, inner)
        if isinstance(op, Loop) and op.test is not None:
            _complete(op.test, op.body)
        if isinstance(op, Update) and _is_lowered(op):
            lowered.extend(_lowered(recorder, op))
        else:
            lowered.append(op)
    block.ops[:] = lowered


def _complete(test: Block, body: Block) -> None:
    """Compute the values that a body uses from its test at the body's beginning, as its own."""
    cloner = Cloner({})
    again = [cloner.op(op) for op in _needed(test, body)]
    if again:
        substitute(body, cloner.mapping)
        body.ops[:0] = again


def _needed(test: Block, body: Block) -> list[Op]:
    """The operations of a test whose values are used in a body."""
    wanted = {v for op in body.ops for v in all_used(op)} | set(values_in(body.results))
    needed: list[Op] = []
    for op in reversed(test.ops):
        if wanted.intersection(defined_by(op)):
            needed.append(op)
            wanted |= all_used(op)
    return needed[::-1]


def _is_lowered(op: Update) -> bool:
    rule = find_rule(ruled_function(op))
    return rule is None or rule.kind != "elementwise" or any(map(is_index_array, op.index))


def is_index_array(i: Any) -> bool:
    """Whether a part of an index is an array of integers, which may repeat an element."""
    if isinstance(i, Value):
        return is_array(i) and i.type.dtype.kind in "iu"
    return isinstance(i, (list, np.ndarray)) and np.asarray(i).dtype.kind != "b"


def _lowered(recorder: Recorder, op: Update) -> list[Op]:
    outer, recorder.block = recorder.block, Block()
    place, recorder.place = recorder.place, lambda: op.location
    mark = recorder.lengths.mark()
    try:
        a = Symbol(op.array, recorder)
        at, value = (map_values(lambda v: Symbol(v, recorder), o) for o in (op.index, op.value))
        new = recorder.apply(op.function, (recorder.load(a, at), value), {})
        recorder.store(a, at, new)
        return recorder.block.ops
    finally:
        recorder.block, recorder.place = outer, place
        recorder.lengths.forget(mark)
