"""Array phis: the array that a name stands for, where loops and branches permute arrays.

An array that is written is memory: its cotangent is memory, too, and the reverse pass restores the
array itself. Where a loop permutes names (``a, b = b, a``), the program gets a number for each such
name that identifies its array. The reverse pass selects arrays, and their cotangents, by these
numbers.
"""

from __future__ import annotations

from typing import Any

from fwdad.ir.analysis.alias import aliased_arguments
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Load,
    Loop,
    Op,
    Operand,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.ir.rewrite import all_used, blocks_of
from fwdad.ir.types import INT
from fwdad.transforms.reverse.structure import Structure


class Choices:
    """The numbers that identify the arrays of phis.

    Changes the program: loops carry the numbers, and branches return them. ``structure`` learns
    where they are defined.

    Attributes
    ----------
    number : dict
        For each array that is a phi, its number.
    meant : dict
        For each such array, the arrays that it may be, by number.
    threaded : dict
        For each loop, the positions of carried arrays that the reverse pass carries themselves:
        each is one of the previous iteration's, or a new one, and has no other name.
    """

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.number: dict[Value, Operand] = {}
        self.meant: dict[Value, dict[int, Value]] = {}
        self._count: dict[Value, int] = {}
        self._slots: dict[Value, tuple[Loop, int]] = {}
        loops = [op for b in blocks_of(structure.top) for op in b.ops if isinstance(op, Loop)]
        self.threaded = {loop: threaded(loop, structure) for loop in loops}
        for loop in loops:
            for k in written(loop, structure) - self.threaded[loop]:
                self._slots[loop.carried[k]] = self._slots[loop.outputs[k]] = (loop, k)
        self._branches = [
            (op, v)
            for b in blocks_of(structure.top)
            for op in b.ops
            if isinstance(op, Branch)
            for v in op.outputs
            if is_array(v) and structure.is_memory(v)
        ]
        self._merged: dict[Value, tuple[Value, Value]] = {}
        self._settle()
        nested = [v for v in self._merged if sides_of(v, structure) is None]
        for v, (loop, k) in list(self._slots.items()):
            if v in loop.carried:
                self._open(loop, k)
        for v, (loop, k) in list(self._slots.items()):
            if v in loop.carried:
                self._carry(loop, k)
        for v in nested:
            self._number(v)
        for v in (*self._slots, *nested):
            self.meant[v] = {self._number_of(o): o for o in self._origins(v)}

    def _settle(self) -> None:
        """Leave out what may be an array made inside its loop."""
        while True:
            self._merge()
            gone = [
                loop
                for v, (loop, _) in self._slots.items()
                if not all(self._encloses(o, loop) for o in self._origins(v))
            ]
            if not gone:
                return
            self._slots = {v: slot for v, slot in self._slots.items() if slot[0] not in gone}

    def _merge(self) -> None:
        """Find the branches that select among arrays defined before them."""
        self._merged = {}
        while True:
            merged = {
                v: (then, other)
                for op, v in self._branches
                if v not in self._merged
                and self._is_from_outside(then := op.then.results[op.outputs.index(v)], op.then)
                and self._is_from_outside(other := op.other.results[op.outputs.index(v)], op.other)
            }
            if not merged:
                return
            self._merged.update(merged)

    def _is_from_outside(self, r: Operand, side: Block) -> bool:
        if not isinstance(r, Value):
            return False
        return self.structure.home.get(r) is not side or r in self._merged or r in self._slots

    def _encloses(self, v: Value, loop: Op) -> bool:
        home = self.structure.home.get(v)
        block = self.structure.block_of[loop]
        return any(b is home for b, _ in self.structure.chain(block))

    def _origins(self, v: Value, seen: set[Value] | None = None) -> list[Value]:
        """The arrays that an array may be, in the order of discovery."""
        seen = set() if seen is None else seen
        if v in seen:
            return []
        seen.add(v)
        sources: list[Operand]
        if v in self._slots:
            loop, k = self._slots[v]
            sources = [loop.initial[k], loop.body.results[k]]
        elif v in self._merged:
            sources = list(self._merged[v])
        else:
            return [v]
        origins: dict[Value, None] = {}
        for r in sources:
            if isinstance(r, Value):
                origins.update(dict.fromkeys(self._origins(r, seen)))
        return list(origins)

    def _number_of(self, origin: Value) -> int:
        return self._count.setdefault(origin, len(self._count))

    def _open(self, loop: Loop, k: int) -> None:
        param, output = Value(INT), Value(INT)
        self.structure.home[param] = loop.body
        self.structure.define(output, loop)
        at = len(loop.carried)
        self.number[loop.carried[k]], self.number[loop.outputs[k]] = param, output
        loop.initial.append(None)
        loop.body.params.append(param)
        loop.body.results.insert(at, None)
        loop.outputs = (*loop.outputs, output)

    def _carry(self, loop: Loop, k: int) -> None:
        at = loop.carried.index(self.number[loop.carried[k]])
        loop.initial[at] = self._number(loop.initial[k])
        loop.body.results[at] = self._number(loop.body.results[k])

    def _number(self, v: Any) -> Operand:
        """The number of an array, as an operand."""
        if v in self.number:
            return self.number[v]
        if v not in self._merged:
            return self._number_of(v)
        branch: Any = self.structure.definition[v]
        number = Value(INT)
        self.structure.define(number, branch)
        self.number[v] = number
        sides = (branch.then, branch.other)
        for block, r in zip(sides, self._merged[v], strict=True):
            block.results.append(self._number(r))
        branch.outputs = (*branch.outputs, number)
        return number


def sides_of(v: Value, structure: Structure) -> tuple[Value, Value] | None:
    """The arrays that a branch selects from, if they are defined before it; else None."""
    branch = structure.definition.get(v)
    if not isinstance(branch, Branch):
        return None
    at = branch.outputs.index(v)
    then, other = branch.then.results[at], branch.other.results[at]
    for r, side in ((then, branch.then), (other, branch.other)):
        if not isinstance(r, Value) or structure.home.get(r) is side:
            return None
    return then, other


def written(loop: Loop, structure: Structure) -> set[int]:
    """The positions of carried values that are memory."""
    return {
        k
        for k, p in enumerate(loop.carried)
        if is_array(p) and (structure.is_memory(p) or structure.is_memory(loop.outputs[k]))
    }


def threaded(loop: Loop, structure: Structure) -> set[int]:
    """The positions of arrays that are the previous iteration's, or new, and have no other name."""
    carried = loop.carried
    results = loop.body.results
    positions = {k for k in written(loop, structure) if _is_simple(loop, k, structure)}
    while True:
        others = {
            v
            for k, r in enumerate(results[: len(carried)])
            if k not in positions and is_array(r)
            for v in _means(r, structure)
        }
        kept = {
            k
            for k in positions
            if (results[k] not in carried or carried.index(results[k]) in positions)
            and carried[k] not in others
        }
        if kept == positions:
            return positions
        positions = kept


def _means(v: Value, structure: Structure) -> set[Value]:
    """An array, and those that branches and loops make it from."""
    arrays, work = set(), [v]
    while work:
        v = work.pop()
        if v in arrays:
            continue
        arrays.add(v)
        op = structure.definition.get(v)
        if isinstance(op, Branch) and v in op.outputs:
            at = op.outputs.index(v)
            work += [r for r in (op.then.results[at], op.other.results[at]) if is_array(r)]
        elif isinstance(op, Loop) and v in op.outputs:
            at = op.outputs.index(v)
            work += [r for r in (op.initial[at], op.body.results[at]) if is_array(r)]
    return arrays


def _is_simple(loop: Loop, k: int, structure: Structure) -> bool:
    r, first = loop.body.results[k], loop.initial[k]
    others = [x for j, x in enumerate(loop.body.results[: len(loop.carried)]) if j != k]
    return (
        isinstance(r, Value)
        and isinstance(first, Value)
        and structure.home.get(r) is loop.body
        and structure.home.get(first) is structure.block_of[loop]
        and (r in loop.carried or structure.roots(r) == {r})
        and not any(x is r for x in others)
        and is_sole(first, structure)
        and has_no_other_name(loop, first, structure)
    )


def has_no_other_name(loop: Loop, first: Value, structure: Structure) -> bool:
    """Whether an array that a loop begins with is only reached by the name that it carries."""
    starts = [x for x in values_in(loop.initial) if x is not first]
    return (
        loop.initial.count(first) == 1
        and not any(structure.roots(x) & structure.roots(first) for x in starts)
        and not _has_other_names(loop, first, structure)
    )


def is_sole(first: Value, structure: Structure) -> bool:
    """Whether an array has memory of its own: made by a call, or left by a loop that owns it."""
    op = structure.definition.get(first)
    if isinstance(op, Loop) and first in op.outputs:
        return op.outputs.index(first) in threaded(op, structure)
    return structure.roots(first) == {first}


def _has_other_names(loop: Loop, first: Value, structure: Structure) -> bool:
    """Whether a loop's initial array is used after it, or inside, under another name."""
    block = structure.block_of[loop]
    names = {first}
    size = 0
    while size < len(names):
        size = len(names)
        for op in walk(block):
            if op is not loop:
                names.update(_renamed(op, names))
    later: list[Op] = [*block.ops[block.ops.index(loop) + 1 :], *loop.body.ops]
    used: set[Value] = set(values_in(block.results))
    for op in later:
        used |= all_used(op)
    for inner in loop.blocks():
        used.update(values_in(inner.results))
    return bool(used & names)


def _renamed(op: Op, names: set[Value]) -> list[Value]:
    """The values that an operation defines and that may be the same memory."""
    if isinstance(op, Load):
        return list(op.outputs) if op.view and op.array in names else []
    if isinstance(op, Apply):
        seen = names.intersection(values_in(aliased_arguments(op)))
        return [v for v in op.outputs if is_array(v)] if seen else []
    sources: list[list[Operand]] = []
    slots: list[list[Value]] = []
    if isinstance(op, Branch):
        sources = [list(pair) for pair in zip(op.then.results, op.other.results, strict=True)]
        slots = [[v] for v in op.outputs]
    elif isinstance(op, Loop):
        sources = [list(pair) for pair in zip(op.initial, op.body.results, strict=False)]
        slots = [list(pair) for pair in zip(op.carried, op.outputs, strict=True)]
    return [
        v
        for slot, given in zip(slots, sources, strict=True)
        if names.intersection(values_in(given))
        for v in slot
        if is_array(v)
    ]
