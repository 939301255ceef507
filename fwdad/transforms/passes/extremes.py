"""Replacement of loops that search for the largest or smallest element of a row by one call.

The reverse pass of such a loop would pop its comparisons from a stack, one by one, to find the last
iteration that took an element. The position of that element says the same.
"""

from __future__ import annotations

import operator
from typing import NamedTuple

from fwdad.ir.analysis.def_use import count_uses
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Load,
    Loop,
    Op,
    Operand,
    Program,
    Value,
    type_of_operand,
    values_in,
)
from fwdad.ir.primitives.running_extremes import place_of_extreme, place_of_larger, place_of_smaller
from fwdad.ir.rewrite import all_inside, replace_ops
from fwdad.ir.types import BOOL, INT, Number

_FEWEST = 16  # iterations of a known number: fewer are written out where they gain from it
_SIGNS = {operator.gt: ">", operator.lt: "<", operator.ge: ">=", operator.le: "<="}
_TURNED = {">": "<", "<": ">", ">=": "<=", "<=": ">="}
_OF_FIRST = {">": place_of_larger, "<": place_of_smaller}


class Found(NamedTuple):
    """A ``loop`` that searches for an extreme.

    ``axis`` is the index that is the counter. The side ``taken`` of ``branch`` takes the element:
    if ``comparison`` holds for it and the best so far, which is ``begin`` at first.
    """

    loop: Loop
    load: Load
    axis: int
    branch: Branch
    taken: bool
    comparison: str
    begin: Operand


def find_extremes(program: Program) -> bool:
    """Replace the loops of a program that search for an extreme; return whether there were any."""
    if not any(isinstance(op, Loop) and _is_short(op) for op in program.walk()):
        return False
    uses = count_uses(program.block)

    def instead(op: Op) -> list[Op] | None:
        found = _match(op) if isinstance(op, Loop) and not uses[op.exec_count] else None
        return None if found is None else _replaced(found)

    return replace_ops(program.block, instead)


def _is_short(op: Loop) -> bool:
    """Whether a body is a load, a comparison and a branch."""
    return [type(inner) for inner in op.body.ops] == [Load, Apply, Branch]


def _match(op: Loop) -> Found | None:
    if not _is_short(op) or op.leaves or op.checkpoint is not None or not _counts_up(op):
        return None
    load, test, branch = op.body.ops
    assert isinstance(load, Load)
    assert isinstance(test, Apply)
    assert isinstance(branch, Branch)
    counter, (item,) = op.body.params[0], load.outputs
    axis = _axis(op, load)
    if axis is None or test.function not in _SIGNS or len(test.args) != 2:
        return None
    if branch.condition is not test.outputs[0] or branch.then.ops or branch.other.ops:
        return None
    known = [k for k, p in enumerate(op.carried) if any(p is a for a in test.args)]
    if len(known) != 1 or item not in test.args:
        return None
    best, begin = op.carried[known[0]], op.initial[known[0]]
    if not _is_like(best, item) or not _is_like(begin, item):
        return None
    inside = all_inside(op.body) - {item, counter}
    if op.body.results[known[0]] not in branch.outputs:
        return None
    of_best = branch.outputs.index(op.body.results[known[0]])
    taken = branch.then.results[of_best] is item
    if not taken and branch.other.results[of_best] is not item:
        return None
    for p, r in zip(op.carried, op.body.results, strict=True):
        if r not in branch.outputs:
            return None
        place = branch.outputs.index(r)
        ways = branch.then.results[place], branch.other.results[place]
        new, old = ways if taken else ways[::-1]
        if old is not p or inside.intersection(values_in(new)):
            return None
    sign = _SIGNS[test.function]
    comparison = sign if test.args[0] is item else _TURNED[sign]
    return Found(op, load, axis, branch, taken, comparison if taken else f"not {comparison}", begin)


def _counts_up(op: Loop) -> bool:
    """Whether a loop counts up by ones from a non-negative number, with enough iterations."""
    if op.span is None:
        return False
    start, stop, step = op.span
    if type(step) is not int or step != 1 or type(start) is not int or start < 0:
        return False
    if type(stop) is int:
        return stop - start >= _FEWEST
    return isinstance(stop, Value) and stop.type == INT


def _axis(op: Loop, load: Load) -> int | None:
    """The axis that the counter indexes, if the other indices are defined before the loop."""
    counter, inside = op.body.params[0], all_inside(op.body)
    if len(load.index) != load.array.type.ndim or load.array in inside:
        return None
    axes = [k for k, i in enumerate(load.index) if i is counter]
    others = [i for i in load.index if i is not counter]
    kinds = list(map(type_of_operand, others))
    ints = all(isinstance(t, Number) and t.dtype.kind == "i" for t in kinds)
    if len(axes) != 1 or not ints or inside.intersection(values_in(others)):
        return None
    return axes[0]


def _is_like(x: Operand, item: Value) -> bool:
    """Whether a number has the dtype of the elements, which are real."""
    t = type_of_operand(x)
    is_real = item.type.dtype.kind in "iuf"
    return isinstance(t, Number) and t.dtype == item.type.dtype and is_real


def _replaced(found: Found) -> list[Op]:
    """The operations that replace a loop: the position of the extreme, and a branch on it."""
    op = found.loop
    assert op.span is not None
    load, (start, stop, _), counter = found.load, op.span, op.body.params[0]
    others = tuple(i for k, i in enumerate(load.index) if k != found.axis)
    place, is_found = Value(INT, counter.name), Value(BOOL)
    arguments = (load.array, found.begin, start, stop, found.axis)
    if found.comparison in _OF_FIRST:
        asked = Apply(_OF_FIRST[found.comparison], (*arguments, *others))
    else:
        asked = Apply(place_of_extreme, (*arguments, found.comparison, *others))
    asked.outputs = (place,)
    test = Apply(operator.ge, (place, 0), outputs=(is_found,))
    index = tuple(place if k == found.axis else i for k, i in enumerate(load.index))
    (old,) = load.outputs
    item = Value(old.type, old.name)
    read = Load(load.array, index, view=False, outputs=(item,))
    new = {old: item, counter: place}
    results = []
    for r in op.body.results:
        side = found.branch.then if found.taken else found.branch.other
        then = side.results[found.branch.outputs.index(r)]
        results.append(new.get(then, then) if isinstance(then, Value) else then)
    branch = Branch(is_found, Block([], [read], results), Block([], [], list(op.initial)))
    branch.outputs = op.outputs
    for made in (asked, test, read, branch):
        made.location = op.location if made is not read else load.location
    return [asked, test, branch]
