"""What is said in simpler operations before a program is run backwards.

``a[ix] += b`` through an array of indices reads, computes and stores, and of an index that comes
twice the last store counts: so it is written. ``a @= b`` likewise. What a loop's body has from the
condition it computes itself: a condition is not run backwards.
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
from fwdad.transforms.forward.rule_table import RULE_OF


def lower(recorder: Recorder, block: Block) -> None:
    """Write the updates in a block that have no reverse pass of their own as loads and stores.

    Parameters
    ----------
    recorder : Recorder
        Finds the types of what is computed.
    block : Block
        Changed in place.
    """
    made: list[Op] = []
    for op in block.ops:
        for inner in op.blocks():
            lower(recorder, inner)
        if isinstance(op, Loop) and op.test is not None:
            _complete(op.test, op.body)
        if isinstance(op, Update) and _is_lowered(op):
            made.extend(_lowered(recorder, op))
        else:
            made.append(op)
    block.ops[:] = made


def _complete(test: Block, body: Block) -> None:
    """Compute what a body has from the condition at the body's beginning, in its own values."""
    cloner = Cloner({})
    again = [cloner.op(op) for op in _needed(test, body)]
    if again:
        substitute(body, cloner.mapping)
        body.ops[:0] = again


def _needed(test: Block, body: Block) -> list[Op]:
    """The operations of a condition whose values are used in a body."""
    wanted = {v for op in body.ops for v in all_used(op)} | set(values_in(body.results))
    found: list[Op] = []
    for op in reversed(test.ops):
        if wanted.intersection(defined_by(op)):
            found.append(op)
            wanted |= all_used(op)
    return found[::-1]


def _is_lowered(op: Update) -> bool:
    rule = find_rule(RULE_OF.get(op.function, op.function))
    return rule is None or rule.kind != "elementwise" or any(map(is_index_array, op.index))


def is_index_array(i: Any) -> bool:
    """Whether a part of an index is an array of integers, which may name an element twice."""
    if isinstance(i, Value):
        return is_array(i) and i.type.dtype.kind in "iu"
    return isinstance(i, (list, np.ndarray)) and np.asarray(i).dtype.kind != "b"


def _lowered(recorder: Recorder, op: Update) -> list[Op]:
    outer, recorder.block = recorder.block, Block()
    place, recorder.place = recorder.place, lambda: op.location
    mark = recorder.mark()
    try:
        a = Symbol(op.array, recorder)
        at, value = (map_values(lambda v: Symbol(v, recorder), o) for o in (op.index, op.value))
        new = recorder.apply(op.function, (recorder.load(a, at), value), {})
        recorder.store(a, at, new)
        return recorder.block.ops
    finally:
        recorder.block, recorder.place = outer, place
        recorder.forget(mark)
