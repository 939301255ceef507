"""Unrolling of short loops that index small arrays by what changes in them.

Every index is then a constant, so that these arrays can become numbers. A loop is left as it is
unless they do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fwdad.ir.clone import Cloner
from fwdad.ir.ops import (
    Block,
    Load,
    Loop,
    Missing,
    Op,
    Operand,
    Program,
    Store,
    Update,
    Value,
    values_in,
    walk,
)
from fwdad.ir.rewrite import Mapping, all_inside, give_name, substitute
from fwdad.ir.types import ArrayType, Dimension, Size
from fwdad.transforms.passes.fold import fold
from fwdad.transforms.passes.lengths import share_lengths
from fwdad.transforms.passes.small.elements import SMALL, is_small

_MOST = 400  # operations that a loop may be written out as
_ROUNDS = 8  # of lengths that are found by those of other views


def unroll(program: Program, chosen: Callable[[Program], set[Value]]) -> None:
    """Unroll the loops whose small arrays become numbers then.

    ``chosen`` returns the arrays of a program that would become numbers.
    """
    loops = set(_candidates(program.block, _indexed))
    while loops:
        cloner = Cloner({})
        block = Block(program.block.params, [cloner.op(op) for op in program.block.ops])
        block.results = [cloner.operand(r) for r in program.block.results]
        copies = {op: old for op, old in cloner.origin.items() if old in loops}
        inside = set().union(*(all_inside(op.body) for op in copies if isinstance(op, Loop)))
        indexed = {old: _indexed(op) - inside for op, old in copies.items()}
        trial = Program(program.name, block)
        _write_out(trial, set(copies), _indexed)
        taken = chosen(trial)
        fit = {old for old, arrays in indexed.items() if arrays <= taken}
        if fit == loops:
            _write_out(program, set(loops), _indexed)
            return
        loops = fit


def unroll_short(program: Program) -> None:
    """Unroll all loops with few iterations, where indices that a loop changes must be known."""
    _write_out(program, set(_candidates(program.block, _is_any)), _is_any)


def _candidates(block: Block, is_wanted: Callable[[Op], Any]) -> dict[Op, int]:
    """Wanted loops with few iterations, and how many operations each would be unrolled to."""
    sizes: dict[Op, int] = {}

    def survey(block: Block) -> int:  # how many operations it is written out as
        total = 0
        for op in block.ops:
            inner = sum(survey(b) for b in op.blocks())
            if isinstance(op, Loop) and _is_short(op) and is_wanted(op):
                assert op.span is not None
                written = inner * len(range(*op.span))
                if written <= _MOST:
                    sizes[op] = written
                    inner = written
            total += 1 + inner
        return total

    survey(block)
    return sizes


def _is_any(_: Op) -> bool:
    return True


def _is_short(op: Loop) -> bool:
    plain = op.test is None and not op.leaves and op.checkpoint is None and not op.sealed
    if not plain or op.span is None or not all(type(x) is int for x in op.span) or not op.span[2]:
        return False
    if any(isinstance(x, Missing) for x in op.initial) or _sizes(set(op.carried)):
        return False
    return len(range(*op.span)) <= SMALL


def _indexed(op: Op) -> set[Value]:
    """The small arrays that a loop's body indexes by a value defined in it."""
    assert isinstance(op, Loop)
    values = all_inside(op.body)
    return {
        inner.array
        for inner in walk(op.body)
        if isinstance(inner, (Load, Store, Update)) and is_small(inner.array.type)
        if values.intersection(values_in(inner.index))
    }


def _write_out(program: Program, loops: set[Op], is_wanted: Callable[[Op], Any]) -> None:
    while loops:
        writer = _Writer(program.block, loops)
        writer.block(program.block)
        substitute(program.block, writer.mapping)
        give_name(writer.mapping)
        fold(program)
        for _ in range(_ROUNDS):  # lengths of views that change in a loop never settle
            if not share_lengths(program):
                break
            fold(program)
        candidates = _candidates(program.block, is_wanted)  # a range inside may be known now
        new = {op: size for op, size in candidates.items() if op in writer.inside}
        loops = set(new) if sum(new.values()) <= _MOST else set()


class _Writer:
    """Unrolls loops, from the inside to the outside.

    ``mapping`` replaces the loops' results; ``inside`` are the loops in the unrolled iterations.
    """

    def __init__(self, whole: Block, loops: set[Op]) -> None:
        self._whole = whole
        self._loops = loops
        self.mapping: Mapping = {}
        self.inside: set[Op] = set()

    def block(self, block: Block) -> None:
        """Unroll the loops of a block."""
        ops: list[Op] = []
        for op in block.ops:
            for inner in op.blocks():
                self.block(inner)
            if op in self._loops:
                assert isinstance(op, Loop)
                ops.extend(self._iterations(op))
            else:
                ops.append(op)
        block.ops = ops

    def _iterations(self, op: Loop) -> list[Op]:
        assert op.span is not None
        substitute(op.body, self.mapping)  # what loops inside it returned
        lengths = self._lengths_of(op)
        counters = range(*op.span)
        state = list(op.initial)
        ops: list[Op] = []
        for k in counters:
            given = dict(zip(op.body.params, [k, *state], strict=True))
            iteration = _Iteration(given, {d: Size() for d in lengths})
            ops.extend(iteration.op(inner) for inner in op.body.ops)
            state = [iteration.operand(r) for r in op.body.results]
        self.mapping.update(zip(op.outputs, state, strict=True))
        self.mapping[op.exec_count] = len(counters)
        self.inside.update(op for op in walk(Block(ops=ops)) if isinstance(op, Loop))
        return ops

    def _lengths_of(self, op: Loop) -> set[Size]:
        """The lengths that are new in a body: those that nothing outside it has."""
        inside = all_inside(op.body)
        outside = all_inside(self._whole) - inside
        for held in walk(self._whole):
            outside.update(values_in(held.operands()))
        return _sizes(inside) - _sizes(outside - inside)


class _Iteration(Cloner):
    """Clones a body for one iteration; lengths that are new in the body get new Sizes."""

    def __init__(self, mapping: dict[Value, Operand], lengths: dict[Size, Size]) -> None:
        super().__init__(mapping)
        self._lengths = lengths

    def fresh(self, value: Value) -> Value:
        """A value of the clone, with lengths of its own."""
        clone = super().fresh(value)
        t = clone.type
        if isinstance(t, ArrayType):
            clone.type = ArrayType(t.dtype, tuple(map(self._length, t.shape)))
        elif t.size is not None:
            clone.type = replace(t, size=self._length(t.size))
        return clone

    def _length(self, d: Any) -> Any:
        return self._lengths.get(d, d)


def _sizes(values: set[Value]) -> set[Size]:
    dimensions: set[Dimension | None] = set()
    for v in values:
        dimensions.update(v.type.shape if isinstance(v.type, ArrayType) else (v.type.size,))
    return {d for d in dimensions if isinstance(d, Size)}
