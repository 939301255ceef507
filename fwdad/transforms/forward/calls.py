"""Forward mode of calls of programs, which are pushed once for each pattern of activity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwdad.errors import FwdadError
from fwdad.ir.analysis.alias import written_parameters
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Block, Call, Operand, Program, Value
from fwdad.ir.symbol import Symbol
from fwdad.tangents.zero import ZERO
from fwdad.transforms.forward.shadows import Shadows
from fwdad.transforms.forward.state import PushedPrograms, State
from fwdad.transforms.forward.tangents import Tangents

Given = list[tuple[Symbol, Any]]
PushBlock = Callable[[Recorder, Block, int, Given, PushedPrograms], tuple[list[Any], list[Any]]]


class Calls:
    """Pushes calls of programs forward; ``push_block`` pushes their blocks."""

    def __init__(
        self, state: State, tangents: Tangents, shadows: Shadows, push_block: PushBlock
    ) -> None:
        self.state = state
        self.tangents = tangents
        self.shadows = shadows
        self.push_block = push_block
        self.recorder = state.recorder
        self.n = state.n

    def push(self, op: Call) -> None:
        """Push a call forward: call the program that also computes the tangents."""
        pattern = tuple(self.state.is_active(a) for a in op.args)
        if not any(pattern):
            self.state.copy(op)
            self.shadows.begin_outputs(op)
            return
        active = self.state.activity.called.active_parameters(op.program, pattern)
        pushed = self._pushed_program(op.program, active)
        given: list[Operand] = [self.state.operand(a) for a in op.args]
        for a, p, has_lanes in zip(op.args, op.program.block.params, active, strict=True):
            if has_lanes:
                given.append(self.recorder.operand(self.tangents.lanes(a, p.type)))
        outputs = [self.state.fresh(v) for v in op.outputs]
        lanes = [Value(self.state.lanes_type(v.type)) for v in op.outputs]
        self.recorder.block.ops.append(
            Call(pushed, given, outputs=(*outputs, *lanes), location=op.location)
        )
        for v, made in zip(op.outputs, lanes, strict=True):
            if v.type.dtype.kind in "fc":
                self.tangents.give_lanes(v, Symbol(made, self.recorder))

    def _pushed_program(self, program: Program, active: tuple[bool, ...]) -> Program:
        """A called program with tangents, ``active`` says of which of its parameters."""
        key, programs = (program, self.n, active), self.state.programs
        if key in programs:
            return programs[key]
        made = Program(f"{program.name}_pushforward", Block(), program.filename, quiet=True)
        lanes = [w for w, is_on in zip(program.written, active, strict=True) if is_on]
        made.written = [*program.written, *lanes]  # until that is known
        known = set(programs)
        programs[key] = made  # what it finds where it calls itself
        recorder = Recorder()
        given: list[tuple[Symbol, Any]] = []
        lanes_params = []
        for p, is_on in zip(program.block.params, active, strict=True):
            symbol = Symbol(Value(p.type, p.name), recorder)
            recorder.lengths.measure(symbol.value)
            tangent: Any = ZERO
            if is_on:
                tangent = Symbol(
                    Value(self.state.lanes_type(p.type), f"{p.name or 'x'}_dot"), recorder
                )
                lanes_params.append(tangent.value)
            given.append((symbol, tangent))
        try:
            primals, dots = self.push_block(recorder, program.block, self.n, given, programs)
        except FwdadError:
            self._give_up(known)
            raise
        made.block = recorder.block
        made.block.params = [*(symbol.value for symbol, _ in given), *lanes_params]
        made.block.results = [recorder.operand(x) for x in (*primals, *dots)]
        made.written = [False] * len(made.block.params)
        while (written := written_parameters(made)) != made.written:
            made.written = written
        return made

    def _give_up(self, known: set[Any]) -> None:
        """Forget the programs begun since: they are incomplete, or call one that is."""
        for call in self.state.programs.keys() - known:
            del self.state.programs[call]
