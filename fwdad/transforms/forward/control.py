"""Forward mode of control flow: lanes enter and leave blocks beside the primals."""

from __future__ import annotations

from typing import Any

from fwdad.errors import FwdadError
from fwdad.ir.analysis.alias import written_parameters
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import (
    Block,
    Branch,
    Call,
    Check,
    Effect,
    Loop,
    Missing,
    Operand,
    Program,
    Value,
    is_array,
)
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Number, Type
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import Lanes
from fwdad.tangents.placed import most_terms
from fwdad.tangents.zero import ZERO
from fwdad.transforms.forward.rules import Rules
from fwdad.transforms.forward.state import AgainError, Facts


class Control(Rules):
    """Pushes branches, loops and calls of programs forward."""

    def _check(self, op: Check) -> None:
        self._copy(op)

    def _effect(self, op: Effect) -> None:
        self._copy(op)

    def _branch(self, op: Branch) -> None:
        sides, found, scalings, lengths = [], [], [], []
        condition, mark = self._operand(op.condition), self.recorder.mark()
        for block in op.blocks():
            side = Block()
            outer, self.recorder.block = self.recorder.block, side
            self._block(block)
            found.append([self._activity(r) for r in block.results])
            scalings.append([self._scalings(r) for r in block.results])
            self.recorder.block = outer
            lengths.append(self.recorder.forget(mark))
            sides.append(side)
        kinds = [a or b for a, b in zip(*found, strict=True)]
        joint = [_joint_lanes(a, b, self.n) for a, b in zip(*scalings, strict=True)]
        for side, block, own, inside in zip(sides, op.blocks(), scalings, lengths, strict=True):
            side.results = [self._operand(r) for r in block.results]
            outer, self.recorder.block = self.recorder.block, side
            self.recorder.remember(inside)
            rows = zip(block.results, op.outputs, kinds, joint, own, strict=True)
            for r, v, kind, lanes, known in rows:
                if kind and lanes is not None and known is not None:
                    side.results += [self._scaling(known, held, v.type) for held in lanes]
                elif kind:
                    side.results.append(self.recorder.operand(self._lanes(r, v.type)))
            self.recorder.block = outer
            self.recorder.forget(mark)
        outputs = [self._fresh(v) for v in op.outputs]
        for v, kind, lanes in zip(op.outputs, kinds, joint, strict=True):
            name = f"{v.name}_dot" if v.name else None
            if kind and lanes is not None:
                numbers = [Value(Number(v.type.dtype, python=False), name) for _ in lanes]
                outputs += numbers
                terms = {h: Symbol(d, self.recorder) for h, d in zip(lanes, numbers, strict=True)}
                self.tangent[v] = Chunk.of(self.n, (), terms)
            elif kind:
                made = Value(self._lanes_type(v.type), name)
                outputs.append(made)
                self._hold(v, Symbol(made, self.recorder))
        self.recorder.block.ops.append(
            Branch(condition, *sides, outputs=tuple(outputs), location=op.location)
        )

    def _scalings(self, r: Operand) -> dict[Lanes, Any] | None:
        """The scalings of a number's unit directions; None if it has other lanes."""
        if isinstance(r, Missing) or (isinstance(r, Value) and is_array(r)):
            return None
        held = self.tangent_of(r)
        if held is ZERO:
            return {}
        own = {lanes: self._coefficient(d) for lanes, d in held.terms.items()}
        same = all(getattr(d, "dtype", r.type.dtype) == r.type.dtype for d in own.values())
        fit = same and held.dtype == r.type.dtype and all(lanes.placed for lanes in own)
        return own if fit else None

    def _scaling(self, known: dict[Lanes, Any], lanes: Lanes, t: Type) -> Operand:
        d = known[lanes]
        if getattr(getattr(d, "type", None), "python", True):
            d = self.recorder.apply_typed(t.dtype.type, (d,), Number(t.dtype, python=False))
        return self.recorder.operand(d)

    def _loop(self, op: Loop) -> None:
        active = [
            k
            for k, (p, a) in enumerate(zip(op.carried, op.initial, strict=True))
            if (id(op), k) in self.facts.carried or self._is_shadowed(p) or self._activity(a)
        ]
        span = self._operand(op.span) if op.span is not None else None
        initial = [self._operand(a) for a in op.initial]
        for k in active:
            lanes = self._lanes(op.initial[k], op.carried[k].type)
            initial.append(self.recorder.operand(lanes))
        body, test, mark = Block(), None, self.recorder.mark()
        body.params = [self._fresh(p) for p in op.body.params]
        absent = (isinstance(a, Missing) for a in op.initial)  # there is no array yet
        carried = body.params[len(body.params) - len(op.initial) :]
        self.recorder.unmeasure({p for p, none in zip(carried, absent, strict=True) if none})
        outer = self.recorder.block
        for k in active:
            p = op.carried[k]
            made = Value(self._lanes_type(p.type), f"{p.name}_dot" if p.name else None)
            body.params.append(made)
            self._hold(p, Symbol(made, self.recorder))
        if op.test is not None:
            inside = self.recorder.mark()
            test = self.recorder.block = Block()
            self._block(op.test)
            test.results = [self._operand(r) for r in op.test.results]
            self.recorder.forget(inside)
        self.recorder.block = body
        self._block(op.body)
        last = enumerate(op.body.results[: len(op.carried)])
        found = [k for k, r in last if k not in active and self._activity(r)]
        self._note(self.facts.carried, {(id(op), k) for k in found})
        next_lanes = [
            self.recorder.operand(self._lanes(op.body.results[k], op.carried[k].type))
            for k in active
        ]
        results = [self._operand(r) for r in op.body.results]
        leave = results[len(op.carried) :]
        body.results = [*results[: len(op.carried)], *next_lanes, *leave]
        self.recorder.block = outer
        self.recorder.forget(mark)
        outputs = [self._fresh(v) for v in op.outputs]
        count = self._fresh(op.exec_count)
        for k in (*active, *found):
            v = op.outputs[k]
            made = Value(self._lanes_type(v.type), f"{v.name}_dot" if v.name else None)
            outputs.append(made)
            self._hold(v, Symbol(made, self.recorder))
        self.recorder.block.ops.append(
            Loop(
                span, initial, body, test, op.leaves, count, op.checkpoint,
                op.sealed,
                outputs=tuple(outputs), location=op.location,
            )
        )  # fmt: skip

    def _call(self, op: Call) -> None:
        """Push a call forward: call the program that also computes the tangents."""
        pattern = tuple(self._activity(a) for a in op.args)
        if not any(pattern):
            self._copy(op)
            self._settled(op)
            return
        pushed, wide = self._pushed_program(op.program, pattern)
        given: list[Operand] = [self._operand(a) for a in op.args]
        for a, p, has_lanes, written in zip(
            op.args, op.program.block.params, wide, op.program.written, strict=True
        ):
            if has_lanes:
                if written and a not in self.shadow:
                    self._shadow_all(a)
                    if self.again:  # the call needs memory that is there from the start
                        raise AgainError
                given.append(self.recorder.operand(self._lanes(a, p.type)))
        outputs = [self._fresh(v) for v in op.outputs]
        lanes = [Value(self._lanes_type(v.type)) for v in op.outputs]
        self.recorder.block.ops.append(
            Call(pushed, given, outputs=(*outputs, *lanes), location=op.location)
        )
        for v, made in zip(op.outputs, lanes, strict=True):
            if v.type.dtype.kind in "fc":
                self._hold(v, Symbol(made, self.recorder))

    def _pushed_program(
        self, program: Program, pattern: tuple[bool, ...]
    ) -> tuple[Program, tuple[bool, ...]]:
        """A called program with tangents, and which of its parameters have lanes.

        These may be more than ``pattern`` says, where the program stores active values into an
        inactive array.
        """
        pattern = self.facts.wider.get((program, pattern), pattern)
        key = (program, self.n, pattern)
        if key in self.facts.programs:
            return self.facts.programs[key]
        made = Program(f"{program.name}_pushforward", Block(), program.filename, quiet=True)
        lanes = [w for w, active in zip(program.written, pattern, strict=True) if active]
        made.written = [*program.written, *lanes]  # until that is known
        known = set(self.facts.programs)
        self.facts.programs[key] = (made, pattern)  # what it finds where it calls itself
        recorder = Recorder()
        given: list[tuple[Symbol, Any]] = []
        lanes_params = []
        for p, active in zip(program.block.params, pattern, strict=True):
            symbol = Symbol(Value(p.type, p.name), recorder)
            recorder.measure(symbol.value)
            tangent: Any = ZERO
            if active:
                tangent = Symbol(Value(self._lanes_type(p.type), f"{p.name or 'x'}_dot"), recorder)
                lanes_params.append(tangent.value)
            given.append((symbol, tangent))
        facts = Facts()
        facts.programs, facts.wider = self.facts.programs, self.facts.wider
        try:
            primals, dots = self._push(recorder, program.block, given, facts)
        except FwdadError:
            self._give_up(known)
            raise
        wide = tuple(
            active or p in facts.shadowed
            for p, active in zip(program.block.params, pattern, strict=True)
        )
        if wide != pattern:
            self.facts.wider[program, pattern] = wide  # where it calls itself, too
            self._give_up(known)
            return self._pushed_program(program, wide)
        made.block = recorder.block
        made.block.params = [*(symbol.value for symbol, _ in given), *lanes_params]
        made.block.results = [recorder.operand(x) for x in (*primals, *dots)]
        made.written = [False] * len(made.block.params)
        while (written := written_parameters(made)) != made.written:
            made.written = written
        return made, pattern

    def _give_up(self, known: set[Any]) -> None:
        """Forget the programs begun since: they are incomplete, or call one that is."""
        for call in self.facts.programs.keys() - known:
            del self.facts.programs[call]

    def _push(self, recorder: Recorder, block: Block, given: Any, facts: Facts) -> Any:
        """Push another block forward; the most derived class defines this."""
        raise NotImplementedError


def _joint_lanes(a: Any, b: Any, n: int) -> list[Lanes] | None:
    """The unit directions of two paths if they are known, equal and few; else None.

    A direction that only one path has would be a zero coefficient on the other one, and zero times
    an infinite slope is NaN; zeros in dense lanes are masked before they are scaled.
    """
    if a is None or b is None or a.keys() != b.keys():
        return None
    return list(a) if 0 < len(a) <= most_terms(n) else None
