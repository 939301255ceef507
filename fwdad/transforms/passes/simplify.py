"""Simplification of branches: known conditions, and neighbours with the same condition.

Inside a side of a branch its condition is known, and after a check it holds. A branch on a known
condition is inlined. An output that is one operand on both sides, or whose other side is
``Missing``, is that operand. An early ``return`` leaves several branches on one condition behind:
these are merged where nothing between them prevents it.
"""

from __future__ import annotations

import functools
import itertools
import operator

import numpy as np

from fwdad.ir.analysis.alias import Roots, memory_of
from fwdad.ir.analysis.effects import footprint, risk
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Check,
    Loop,
    Missing,
    Op,
    Operand,
    Program,
    Value,
    is_array,
    map_values,
    may_be,
    values_in,
)
from fwdad.ir.primitives.stacks import turn
from fwdad.ir.rewrite import (
    Mapping,
    all_used,
    blocks_of,
    defined_by,
    definitions,
    give_name,
    key_of,
    substitute,
)
from fwdad.ir.types import BOOL, Number
from fwdad.ops import Risk
from fwdad.transforms.passes.carried import simplify_carried

Known = dict[Value, bool]


def simplify(program: Program) -> bool:
    """Simplify branches, checks and what loops carry; return whether anything changed."""
    if not any(map(_may_gain, program.walk())):
        return False
    conditions = _Conditions(program)
    conditions.block(program.block, {})
    give_name(conditions.mapping)
    merged = _merge_branches(program)
    carried = simplify_carried(program)
    return conditions.changed or merged or carried


def _may_gain(op: Op) -> bool:
    """Whether an operation may give this pass something to do: in most programs none does."""
    if isinstance(op, Apply):
        return op.function is operator.not_
    return op.nests or isinstance(op, Check)


# -- what is known of conditions


class _Conditions:
    """Walks a program in execution order, with what is known on each path."""

    def __init__(self, program: Program) -> None:
        self.mapping: Mapping = {}
        self.changed = False
        self._definitions = definitions(program)
        self._derived: dict[Value, list[tuple[Value, bool]]] = {}
        for v, op in self._definitions.items():
            x, same = self._source(v, op)
            if x is not None:
                self._derived.setdefault(x, []).append((v, same))

    @staticmethod
    def _source(_: Value, op: Op) -> tuple[Value | None, bool]:
        """The value whose truth, or its opposite, a value has; and whether it is the same."""
        if isinstance(op, Apply) and op.function in (bool, operator.not_) and len(op.args) == 1:
            (x,) = op.args
            if isinstance(x, Value) and isinstance(x.type, Number):
                return x, op.function is bool
        return None, True

    def _learn(self, known: Known, value: Operand, truth: bool) -> None:
        """Note what a value's truth implies for others."""
        if not isinstance(value, Value) or value in known:
            return
        known[value] = truth
        for derived, same in self._derived.get(value, ()):
            self._learn(known, derived, truth == same)
        op = self._definitions.get(value)
        if op is None:
            return
        x, same = self._source(value, op)
        if x is not None:
            self._learn(known, x, truth == same)
        if isinstance(op, Apply) and value.type == BOOL:
            if op.function is (operator.and_ if truth else operator.or_):
                for part in op.args:
                    self._learn(known, part, truth)

    def block(self, block: Block, known: Known) -> None:
        """Simplify a block, adding to ``known`` what the block's checks imply."""
        ops, block.ops = block.ops, []
        for k, op in enumerate(ops):
            self._op(op, block, known)
            if isinstance(op, Check) and self._decided(op.condition, known) is False:
                self._cut(ops[k + 1 :], block)
                break
        results = [self._constant(r, known) for r in block.results]
        self.changed |= any(a is not b for a, b in zip(results, block.results, strict=True))
        block.results = results

    def _cut(self, rest: list[Op], block: Block) -> None:
        """Remove what follows a check that fails."""
        lost = {v for op in rest for v in defined_by(op)}
        results = [_nothing(r) if lost.intersection(values_in(r)) else r for r in block.results]
        self.changed |= bool(rest)
        block.results = results

    def _constant(self, operand: Operand, known: Known) -> Operand:
        def found(v: Value) -> Operand:
            new = self.mapping.get(v, v)
            if isinstance(new, Value) and new.type == BOOL and new in known:
                return known[new]
            return new

        return map_values(found, operand) if self.mapping or known else operand

    def _op(self, op: Op, block: Block, known: Known) -> None:
        if self.mapping or known:
            op.replace(lambda v: self._constant(v, known))
        if isinstance(op, Apply) and op.function is operator.not_:
            twice = self._twice_negated(op)
            if twice is not None:
                self.mapping[op.outputs[0]] = twice
                self.changed = True
                return
        if isinstance(op, Check):
            if self._decided(op.condition, known) is True:
                self.changed = True
                return
            self._learn(known, op.condition, truth=True)
        elif isinstance(op, Branch):
            self._branch(op, block, known)
            return
        elif isinstance(op, Loop):
            if self._never_runs(op):
                self.mapping.update(zip(op.outputs, op.initial, strict=True))
                self.mapping[op.exec_count] = 0
                self.changed = True
                return
            self._loop(op, known)
        block.ops.append(op)

    def _twice_negated(self, op: Apply) -> Operand:
        (x,) = op.args
        inner = self._definitions.get(x) if isinstance(x, Value) else None
        if isinstance(inner, Apply) and inner.function is operator.not_:
            (y,) = inner.args
            if isinstance(y, Value) and y.type == BOOL:
                return y
        return None

    def _decided(self, condition: Operand, known: Known) -> bool | None:
        if isinstance(condition, Value):
            return known.get(condition)
        return bool(condition)

    def _branch(self, op: Branch, block: Block, known: Known) -> None:
        self._normalise(op)
        decided = self._decided(op.condition, known)
        if decided is not None:
            side = op.then if decided else op.other
            self.changed = True
            for inner in side.ops:
                self._op(inner, block, known)
            results = [self._constant(r, known) for r in side.results]
            self.mapping.update(zip(op.outputs, results, strict=True))
            return
        for side, truth in ((op.then, True), (op.other, False)):
            inside = dict(known)
            self._learn(inside, op.condition, truth)
            self.block(side, inside)
        self._outputs(op, block)

    def _normalise(self, op: Branch) -> None:
        """Strip ``bool`` and ``not`` from the condition."""
        while isinstance(op.condition, Value) and op.condition in self._definitions:
            x, same = self._source(op.condition, self._definitions[op.condition])
            if x is None:
                return
            op.condition = self.mapping.get(x, x)
            if not same:
                op.then, op.other = op.other, op.then
            self.changed = True

    def _outputs(self, op: Branch, block: Block) -> None:
        """Remove the outputs that need no branch."""
        inside = {v for side in op.blocks() for o in side.ops for v in defined_by(o)}
        numbers: list[int] = []
        late: list[Op] = []
        for k, output in enumerate(op.outputs):
            a, b = op.then.results[k], op.other.results[k]
            one = _only(a, b, inside)
            if one is not None and may_be(output, one):
                self.mapping[output] = one
            elif output.type == BOOL and isinstance(a, bool) and isinstance(b, bool):
                function = bool if a else operator.not_  # they differ
                late.append(Apply(function, (op.condition,), outputs=(output,)))
                late[-1].location = op.location
                self._definitions[output] = late[-1]
            else:
                numbers.append(k)
        if len(numbers) < len(op.outputs):
            self.changed = True
            op.outputs = tuple(op.outputs[k] for k in numbers)
            for side in op.blocks():
                side.results = [side.results[k] for k in numbers]
        block.ops.extend(late)
        if op.outputs or op.then.ops or op.other.ops:
            block.ops.append(op)
        else:
            self.changed = True

    def _loop(self, op: Loop, known: Known) -> None:
        inside = dict(known)
        if op.test is not None:
            self.block(op.test, inside)
            self._learn(inside, op.test.results[0], truth=True)
        self.block(op.body, inside)
        if op.leaves:
            self._leave(op)
        if op.leaves and op.body.results[-1] is False:
            op.leaves = False
            op.body.results.pop()
            self.changed = True
        if op.leaves:
            self._end_in_branch(op.body)

    def _end_in_branch(self, body: Block) -> None:
        """Move the branch on the leave condition to the end of a body."""
        at = [k for k, o in enumerate(body.ops)
              if isinstance(o, Branch) and o.condition is body.results[-1]]  # fmt: skip
        if not at:
            return
        branch, later = body.ops[at[-1]], body.ops[at[-1] + 1 :]
        if later and all(_is_plain(o) and not all_used(o).intersection(branch.outputs)
                         for o in later):  # fmt: skip
            body.ops[at[-1] :] = [*later, branch]
            self.changed = True

    def _leave(self, op: Loop) -> None:
        """Strip ``bool`` from the leave condition."""
        last = op.body.results[-1]
        definition = self._definitions.get(last) if isinstance(last, Value) else None
        if isinstance(definition, Apply) and definition.function is bool:
            (x,) = definition.args
            if isinstance(x, Value) and isinstance(x.type, Number) and x.type.dtype.kind == "b":
                op.body.results[-1] = x
                self.changed = True

    def _never_runs(self, op: Loop) -> bool:
        if op.test is not None:
            return not op.test.ops and op.test.results[0] is False
        assert op.span is not None
        constant = all(isinstance(x, int) for x in op.span) and op.span[2] != 0
        return constant and not range(*op.span)


def _only(a: Operand, b: Operand, inside: set[Value]) -> Operand | None:
    """The operand that a branch returns on both sides, if it is defined before the branch."""
    if isinstance(a, Missing):
        a = b
    elif not isinstance(b, Missing) and key_of(a) != key_of(b):
        return None
    return None if isinstance(a, Value) and a in inside else a


def _is_plain(op: Op) -> bool:
    """Whether an operation is arithmetic of numbers that cannot fail."""
    plain = isinstance(op, Apply) and risk(op) is Risk.QUIET
    return plain and not any(is_array(v) for v in all_used(op))


def _nothing(value: Value) -> Operand:
    """Stands for a value that is never reached; False for booleans, which loops need."""
    if isinstance(value.type, Number) and value.type.dtype.kind == "b":
        return False if value.type.python else np.False_
    return Missing(value.type)


# -- neighbours on one condition


def _merge_branches(program: Program) -> bool:
    roots = memory_of(program)
    changed = False
    for block in blocks_of(program.block):
        changed |= _merge_in(block, roots)
    return changed


def _merge_in(block: Block, roots: Roots) -> bool:
    conditions = [op.condition for op in block.ops if isinstance(op, Branch)]
    if len(set(conditions)) == len(conditions):
        return False
    changed = False
    last: dict[Operand, tuple[Branch, int]] = {}  # on a condition, with a bit that stands for it
    own_bits = (1 << k for k in itertools.count())
    behind: dict[Value, int] = {}  # the bits of the branches that a value is computed from
    position = 0
    while position < len(block.ops):
        op = block.ops[position]
        used = all_used(op)
        bits = _bits(used, behind)
        if isinstance(op, Branch) and isinstance(op.condition, Value):
            earlier, bit = last.get(op.condition, (None, 0))
            if earlier is not None and not _bits(used.difference(earlier.outputs), behind) & bit:
                start = block.ops.index(earlier)
                moved = _around(earlier, block.ops[start + 1 : position], op, roots)
                if moved is not None:
                    before, after = moved
                    merged = _merged(earlier, op)
                    block.ops[start : position + 1] = [*before, merged, *after]
                    last[op.condition] = merged, bit
                    behind.update(dict.fromkeys(op.outputs, bits | bit))
                    changed = True
                    continue
            last[op.condition] = op, next(own_bits)
            bits |= last[op.condition][1]
        elif isinstance(op, Apply) and op.function is turn:
            last.clear()  # the program is cut here
        behind.update(dict.fromkeys(defined_by(op), bits))
        position += 1
    return changed


def _bits(values: set[Value], behind: dict[Value, int]) -> int:
    return functools.reduce(operator.or_, (behind.get(v, 0) for v in values), 0)


def _around(
    first: Branch, between: list[Op], second: Branch, roots: Roots
) -> tuple[list[Op], list[Op]] | None:
    """Sort operations between two branches into before and after both; None if impossible."""
    before: list[Op] = []
    after: list[Op] = []
    late = set(first.outputs)  # what is there after the first branch only
    done_late, done_by_second = footprint(first, roots), footprint(second, roots)
    wanted = all_used(second)
    for op in between:
        done = footprint(op, roots)
        if late.isdisjoint(all_used(op)) and done_late.commutes(done):
            before.append(op)
        elif wanted.isdisjoint(defined_by(op)) and done.commutes(done_by_second):
            after.append(op)
            late.update(defined_by(op))
            done_late.include(done)
        else:
            return None
    return before, after


def _merged(first: Branch, second: Branch) -> Branch:
    """One branch that does what both do."""
    sides = []
    for one, two in zip(first.blocks(), second.blocks(), strict=True):
        substitute(two, dict(zip(first.outputs, one.results, strict=True)))
        sides.append(Block([], [*one.ops, *two.ops], [*one.results, *two.results]))
    branch = Branch(first.condition, *sides, outputs=(*first.outputs, *second.outputs))
    branch.location = first.location
    return branch
