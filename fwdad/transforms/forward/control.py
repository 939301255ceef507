"""Forward mode of control flow: lanes enter and leave blocks beside the primals."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Protocol

from fwdad.ir.ops import (
    Block,
    Branch,
    Loop,
    Missing,
    Operand,
    Value,
    is_array,
)
from fwdad.ir.rewrite import all_used
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Number, Type
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import Lanes
from fwdad.tangents.placed import most_terms
from fwdad.tangents.zero import ZERO
from fwdad.transforms.forward.state import State
from fwdad.transforms.forward.tangents import Tangents


class Blocks(Protocol):
    """What pushes blocks forward: those of loops and branches, as the whole program."""

    def push(self, block: Block) -> None:
        """Record a block's operations, and what they do to tangents."""


class Control:
    """Pushes branches and loops forward."""

    def __init__(self, state: State, tangents: Tangents, blocks: Blocks) -> None:
        self.state = state
        self.tangents = tangents
        self.blocks = blocks
        self.recorder = state.recorder
        self.n = state.n
        self._replaced: list[dict[Value, Any]] = [{}]  # tangents of values from around each block

    @contextlib.contextmanager
    def _inside(self) -> Iterator[None]:
        """Undo, after a block, what was multiplied out in it: what is behind may not see that."""
        self._replaced.append({})
        try:
            yield
        finally:
            self.state.tangent.update(self._replaced.pop())

    def branch(self, op: Branch) -> None:
        """Push a branch forward: each side returns its lanes, too."""
        sides, found, scalings, lengths = [], [], [], []
        condition, mark = self.state.operand(op.condition), self.recorder.lengths.mark()
        for block in op.blocks():
            side = Block()
            outer, self.recorder.block = self.recorder.block, side
            with self._inside():
                self.blocks.push(block)
            found.append([self.state.is_active(r) for r in block.results])
            scalings.append([self._scalings(r) for r in block.results])
            self.recorder.block = outer
            lengths.append(self.recorder.lengths.forget(mark))
            sides.append(side)
        kinds = [a or b for a, b in zip(*found, strict=True)]
        joint = [_joint_lanes(a, b, self.n) for a, b in zip(*scalings, strict=True)]
        for side, block, own, inside in zip(sides, op.blocks(), scalings, lengths, strict=True):
            side.results = [self.state.operand(r) for r in block.results]
            outer, self.recorder.block = self.recorder.block, side
            self.recorder.lengths.remember(inside)
            rows = zip(block.results, op.outputs, kinds, joint, own, strict=True)
            for r, v, kind, lanes, known in rows:
                if kind and lanes is not None and known is not None:
                    side.results += [self._scaling(known, held, v.type) for held in lanes]
                elif kind:
                    side.results.append(self.recorder.operand(self.tangents.lanes(r, v.type)))
            self.recorder.block = outer
            self.recorder.lengths.forget(mark)
        outputs = [self.state.fresh(v) for v in op.outputs]
        for v, kind, lanes in zip(op.outputs, kinds, joint, strict=True):
            name = f"{v.name}_dot" if v.name else None
            if kind and lanes is not None:
                numbers = [Value(Number(v.type.dtype, python=False), name) for _ in lanes]
                outputs += numbers
                terms = {h: Symbol(d, self.recorder) for h, d in zip(lanes, numbers, strict=True)}
                self.state.tangent[v] = Chunk.of(self.n, (), terms)
            elif kind:
                value = Value(self.state.lanes_type(v.type), name)
                outputs.append(value)
                self.tangents.give_lanes(v, Symbol(value, self.recorder))
        self.recorder.block.ops.append(
            Branch(condition, *sides, outputs=tuple(outputs), location=op.location)
        )

    def _scalings(self, r: Operand) -> dict[Lanes, Any] | None:
        """The scalings of a number's unit directions; None if it has other lanes."""
        if isinstance(r, Missing) or (isinstance(r, Value) and is_array(r)):
            return None
        tangent = self.tangents.of(r)
        if tangent is ZERO:
            return {}
        scalings = {lanes: self.tangents.coefficient(d) for lanes, d in tangent.terms.items()}
        same = all(getattr(d, "dtype", r.type.dtype) == r.type.dtype for d in scalings.values())
        fit = same and tangent.dtype == r.type.dtype and all(lanes.placed for lanes in scalings)
        return scalings if fit else None

    def _scaling(self, known: dict[Lanes, Any], lanes: Lanes, t: Type) -> Operand:
        d = known[lanes]
        if getattr(getattr(d, "type", None), "python", True):
            d = self.recorder.apply_typed(t.dtype.type, (d,), Number(t.dtype, python=False))
        return self.recorder.operand(d)

    def loop(self, op: Loop) -> None:
        """Push a loop forward: it carries the lanes of what is active, too."""
        self._multiply_out(op)
        active = [
            k
            for k, (p, a) in enumerate(zip(op.carried, op.initial, strict=True))
            if self.state.activity.is_active(p) or self.state.is_active(a)
        ]
        span = self.state.operand(op.span) if op.span is not None else None
        initial = [self.state.operand(a) for a in op.initial]
        for k in active:
            lanes = self.tangents.lanes(op.initial[k], op.carried[k].type)
            initial.append(self.recorder.operand(lanes))
        body, test, mark = Block(), None, self.recorder.lengths.mark()
        body.params = [self.state.fresh(p) for p in op.body.params]
        outer = self.recorder.block
        for k in active:
            p = op.carried[k]
            value = Value(self.state.lanes_type(p.type), f"{p.name}_dot" if p.name else None)
            body.params.append(value)
            self.tangents.give_lanes(p, Symbol(value, self.recorder))
        if op.test is not None:
            inside = self.recorder.lengths.mark()
            test = self.recorder.block = Block()
            with self._inside():
                self.blocks.push(op.test)
            test.results = [self.state.operand(r) for r in op.test.results]
            self.recorder.lengths.forget(inside)
        self.recorder.block = body
        with self._inside():
            self.blocks.push(op.body)
        for k, r in enumerate(op.body.results[: len(op.carried)]):
            if k not in active:
                self.state.refuse_unpredicted(r)
        next_lanes = [
            self.recorder.operand(self.tangents.lanes(op.body.results[k], op.carried[k].type))
            for k in active
        ]
        results = [self.state.operand(r) for r in op.body.results]
        leave = results[len(op.carried) :]
        body.results = [*results[: len(op.carried)], *next_lanes, *leave]
        self.recorder.block = outer
        self.recorder.lengths.forget(mark)
        outputs = [self.state.fresh(v) for v in op.outputs]
        count = self.state.fresh(op.exec_count)
        for k in active:
            v = op.outputs[k]
            value = Value(self.state.lanes_type(v.type), f"{v.name}_dot" if v.name else None)
            outputs.append(value)
            self.tangents.give_lanes(v, Symbol(value, self.recorder))
        self.recorder.block.ops.append(
            Loop(
                span, initial, body, test, op.leaves, count, op.checkpoint,
                op.sealed,
                outputs=tuple(outputs), location=op.location,
            )
        )  # fmt: skip

    def _multiply_out(self, op: Loop) -> None:
        """Multiply out, once, what the iterations of a loop would each multiply out anew."""
        used = all_used(op)
        for v, tangent in [item for item in self.state.tangent.items() if item[0] in used]:
            if not isinstance(tangent, Chunk) or not tangent.shape:
                continue
            whole = all(not lanes.placed and lanes.lane < 0 for lanes in tangent.terms)
            if whole and any(d is not None for d in tangent.terms.values()):
                lanes = Lanes(self.tangents.multiplied(tangent))
                self._replaced[-1].setdefault(v, tangent)
                self.state.tangent[v] = Chunk.of(self.n, tangent.shape, {lanes: None})


def _joint_lanes(a: Any, b: Any, n: int) -> list[Lanes] | None:
    """The unit directions of two paths if they are known, equal and few; else None.

    A direction that only one path has would be a zero coefficient on the other one, and zero times
    an infinite slope is NaN; zeros in dense lanes are masked before they are scaled.
    """
    if a is None or b is None or a.keys() != b.keys():
        return None
    return list(a) if 0 < len(a) <= most_terms(n) else None
