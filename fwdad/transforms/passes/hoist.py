"""Loop-invariant code motion: what every iteration would compute alike moves before the loop.

A loop may have no iteration, so an operation moves unconditionally only if it can neither raise nor
warn. The others move if the loop is known to run; and for a loop over a range, calls of functions
and operations on arrays move under ``if start < stop``. In a program without warnings, operations
on numbers that might warn move unconditionally. What may raise moves only if nothing before it in
an iteration may, so that the same exception is raised in the same state. Allocations that are
written or returned stay, and so do reads of memory that the loop writes; except for an element that
has just been read or written before the loop, and that no index in the loop selects: it becomes a
number in a register, and its cotangent a carried value of the reverse pass.
"""

from __future__ import annotations

import operator

from fwdad.ir.analysis.alias import memory, memory_of
from fwdad.ir.analysis.effects import reads, risk, writes
from fwdad.ir.analysis.indices import Places, has_own_elements, is_apart_throughout
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Check,
    Effect,
    Load,
    Loop,
    Missing,
    Op,
    Program,
    Store,
    Update,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.ir.primitives.scatter_add import target_of
from fwdad.ir.primitives.undef import missing_on_some_way
from fwdad.ir.rewrite import Mapping, all_inside, all_used, key_of, substitute
from fwdad.ops import Risk
from fwdad.transforms.passes.carried import bounded, runs, surely_runs


def hoist(program: Program, *, loads: bool = False) -> bool:
    """Move loop-invariant code before its loop; return whether there was any.

    Elements of arrays that are written move under the condition if ``loads`` is set: a compiler
    moves them as well, but a reverse pass would keep them in each iteration.
    """
    if not any(isinstance(op, Loop) for op in program.walk()):
        return False
    return _Hoister(program, loads=loads).block(program.block)


class _Hoister:
    def __init__(self, program: Program, *, loads: bool) -> None:
        self._loads = loads
        self.roots = memory_of(program)
        ops = list(walk(program.block))
        self._written = set().union(*(memory(op.writes(), self.roots) for op in ops))
        arguments = [op.args for op in ops if isinstance(op, Call)]
        self._escaping = memory([*program.block.results, *arguments], self.roots)
        self._partial = missing_on_some_way(program)
        self._quiet = program.quiet
        self._program = program
        self._known: Places | None = None

    def block(self, block: Block) -> bool:
        """Hoist out of the loops of a block, inner ones first."""
        changed = False
        ops: list[Op] = []
        for op in block.ops:
            for inner in op.blocks():
                changed |= self.block(inner)
            if isinstance(op, Loop) and not op.sealed:
                moved = self._out_of(op, ops)
                changed |= bool(moved)
                ops.extend(moved)
            ops.append(op)
        block.ops = ops
        return changed

    def _out_of(self, loop: Loop, before: list[Op]) -> list[Op]:
        """Remove the invariant operations from a loop; return what must precede it."""
        plain, guarded = self._invariant(loop, before)
        surely = surely_runs(loop)
        if not surely:
            can_be = loop.test is None and bounded(loop)
            guarded = self._worthwhile(guarded) if can_be else []
        taken = {*plain, *guarded}
        for block in loop.blocks():
            block.ops = [op for op in block.ops if op not in taken]
        if surely or not guarded:
            return [*plain, *guarded]
        return [*plain, *self._guard(loop, guarded)]

    def _invariant(self, loop: Loop, before: list[Op]) -> tuple[list[Op], list[Op]]:
        """The operations that can move unconditionally, and those that need the loop to run."""
        changing = set().union(*(all_inside(b) for b in loop.blocks()))
        written = writes(loop, self.roots)
        plain: list[Op] = []
        guarded: list[Op] = []
        late: set[Value] = set()
        first = True  # so far nothing stays and may raise, or writes
        loads = True  # or only loads, which raise as another load does
        for block in loop.blocks():
            tested = block is loop.test
            for op in block.ops:
                used = all_used(op)
                risk_of_op = risk(op)
                if risk_of_op is Risk.WARNS and self._quiet and not _arrays(op):
                    risk_of_op = Risk.QUIET
                if used & self._partial:
                    risk_of_op = max(risk_of_op, Risk.WARNS)  # there only where the loop runs
                moves = (
                    isinstance(op, (Apply, Load, Branch))
                    and not changing & used
                    and self._may_move(op, written)
                )
                if not changing & (used | late) and self._is_held(op, loop, before):
                    plain.append(op)
                elif moves and risk_of_op is Risk.QUIET and not isinstance(op, Branch):
                    (guarded if late & used else plain).append(op)
                elif moves and (
                    risk_of_op <= Risk.WARNS or first or (loads and isinstance(op, Load))
                ):
                    guarded.append(op)
                else:
                    first = first and risk_of_op < Risk.SHAPES and not writes(op, self.roots)
                    loads = first or (loads and isinstance(op, Load))
                    continue
                if op in guarded:
                    late.update(op.outputs)
                changing.difference_update(op.outputs)
            if tested and loop.test is not None and not surely_runs(loop):
                first = loads = False  # the body does not run if the condition does not hold
        return plain, guarded

    def _may_move(self, op: Op, written: set[Value]) -> bool:
        """Whether an operation with invariant operands has the same result in all iterations."""
        if writes(op, self.roots) or reads(op, self.roots) & written:
            return False
        inner = [op, *(i for b in op.blocks() for i in walk(b))]
        if any(isinstance(i, (Check, Call, Effect, Loop)) for i in inner):
            return False
        arrays = [v for i in inner for v in i.outputs if is_array(v)]
        shared = self._written | self._escaping
        return not any(v in self.roots[v] and v in shared for v in arrays)

    def _is_held(self, op: Op, loop: Loop, before: list[Op]) -> bool:
        """Whether a load reads an element used before a loop, which the loop does not write."""
        if not isinstance(op, Load) or is_array(op.outputs[0]) or loop.checkpoint is not None:
            return False
        key = key_of(op.index)
        if not any(
            isinstance(o, (Load, Store, Update)) and o.array is op.array and key_of(o.index) == key
            for o in before
        ):
            return False
        known = self._known = self._known or Places(self._program)
        unaliased = self._program.own and op.array in self._program.block.params
        if not unaliased and not has_own_elements(op.array, known):
            return False
        for inner in (o for block in loop.blocks() for o in walk(block)):
            if not memory(inner.writes(), self.roots) & self.roots[op.array]:
                continue
            target = target_of(inner)
            if target is None or target.array is not op.array:
                return False
            if not is_apart_throughout(op, target.at, loop, known):
                return False
        return True

    def _worthwhile(self, ops: list[Op]) -> list[Op]:
        """Calls of functions, operations on arrays, what would be kept, and what they depend on."""
        wanted: set[Value] = set()
        chosen: list[Op] = []
        for op in reversed(ops):
            if _costs(op) or self._would_be_kept(op) or wanted.intersection(op.outputs):
                chosen.append(op)
                wanted |= all_used(op)
        return chosen[::-1]

    def _would_be_kept(self, op: Op) -> bool:
        """Whether an operation reads an element that is written elsewhere in the program."""
        is_item = self._loads and isinstance(op, Load) and not is_array(op.outputs[0])
        return is_item and bool(reads(op, self.roots) & self._written)

    def _guard(self, loop: Loop, ops: list[Op]) -> list[Op]:
        """Operations under a branch that is taken if the loop runs."""
        test, flag = runs(loop)
        used = {v for b in loop.blocks() for o in b.ops for v in all_used(o)}
        used |= {v for b in loop.blocks() for v in values_in(b.results)}
        results = [v for op in ops for v in op.outputs if v in used]
        outputs = tuple(Value(v.type, v.name) for v in results)
        sides = Block([], ops, list(results)), Block([], [], [Missing(v.type) for v in results])
        branch = Branch(flag, *sides, outputs=outputs)
        branch.location = loop.location
        self._partial.update(outputs)
        mapping: Mapping = dict(zip(results, outputs, strict=True))
        for block in loop.blocks():
            substitute(block, mapping)
        for new, old in zip(outputs, results, strict=True):
            if is_array(old):
                self.roots[new] = set(self.roots[old])
        return [test, branch]


def _costs(op: Op) -> bool:
    if isinstance(op, Branch):
        return any(_costs(i) for b in op.blocks() for i in b.ops)
    if not isinstance(op, Apply):
        return False
    plain = getattr(operator, getattr(op.function, "__name__", ""), None) is op.function
    return _arrays(op) or not (plain or isinstance(op.function, type))


def _arrays(op: Op) -> bool:
    return any(is_array(v) for v in values_in(op.operands()))
