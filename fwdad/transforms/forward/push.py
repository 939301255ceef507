"""Forward mode on a tape: the same frules, recorded, with N tangents beside every value.

A tangent is a :class:`Chunk` whose lanes and scalings are symbols, so that scalings stay deferred:
a chain of elementwise operations becomes one product with the lanes. Tangents that enter or leave a
loop or branch are multiplied out. Arrays that active values are stored into have shadow lanes,
``(N, *shape)``, whose views mirror theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError, type_in_words
from fwdad.ir.analysis.alias import memory_of, written_parameters
from fwdad.ir.builder.outside import leave_outside
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Check,
    Effect,
    Load,
    Loop,
    Op,
    Program,
    Store,
    Update,
    Value,
    values_in,
    walk,
)
from fwdad.ir.rewrite import written_outside
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType, Number, Type
from fwdad.rules.core.registry import function_name
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO, Zero
from fwdad.transforms.activity import Activity
from fwdad.transforms.forward.calls import Calls
from fwdad.transforms.forward.control import Control
from fwdad.transforms.forward.indexing import Indexing
from fwdad.transforms.forward.known_indices import Contents
from fwdad.transforms.forward.lanes import Basis, Seed, lanes_type
from fwdad.transforms.forward.memory import Memory
from fwdad.transforms.forward.placing import NotPlacedError
from fwdad.transforms.forward.rules import Rules
from fwdad.transforms.forward.shadows import Shadows
from fwdad.transforms.forward.state import PushedPrograms, State
from fwdad.transforms.forward.tangents import Tangents
from fwdad.transforms.forward.views import ViewTangents


def push_forward(
    program: Program, n: int, seeds: list[Seed], *, linear: bool = False
) -> tuple[Program, list[np.ndarray]]:
    """A program that pushes n tangents through another one, and its constants.

    Parameters: those of ``program``, lanes of the parameters whose seed is True, constants.
    Results: those of ``program``, then the lanes of each. ``linear`` says that the program is
    linear in the seeded ones, its last; they are then no parameters, but zeros.
    ``MissingRuleError`` if an active value meets a function without a rule, ``UntraceableError`` if
    a rule needs concrete values.
    """
    recorder = Recorder()
    constants: list[tuple[Value, np.ndarray]] = []

    def capture(a: np.ndarray) -> Symbol:
        for value, held in constants:
            if held is a:
                return Symbol(value, recorder)
        value = Value(ArrayType(a.dtype, a.shape))
        constants.append((value, a))
        return Symbol(value, recorder)

    recorder.capture = capture
    given, params, lanes_params = [], [], []
    for p, seed in zip(program.block.params, seeds, strict=True):
        tangent: Any = seed if isinstance(seed, Basis) else ZERO
        if seed is True:
            tangent = Symbol(Value(lanes_type(p.type, n), f"{p.name or 'x'}_dot"), recorder)
            lanes_params.append(tangent.value)
        if linear and seed is True:
            made = _zeros(recorder, p.type, tangent)
        else:
            made = Symbol(Value(p.type, p.name), recorder)
            recorder.lengths.measure(made.value, absent=p in program.absent)
            params.append(made.value)
        given.append((made, tangent))
    primals, lanes = push_block(recorder, program.block, n, given, together=program.together)
    block = recorder.block
    block.results = [recorder.operand(x) for x in (*primals, *lanes)]
    used = {v for op in walk(block) for v in values_in(op.operands())}
    used |= {v for inner in _blocks(block) for v in values_in(inner.results)}
    constants = [(v, a) for v, a in constants if v in used]  # not those of rules given up
    block.params = [*params, *lanes_params, *(v for v, _ in constants)]
    made_program = Program(f"{program.name}_pushforward", block, program.filename)
    made_program.quiet, made_program.together = True, program.together[: len(params)]
    made_program.written = written_parameters(made_program)
    return made_program, [a for _, a in constants]


def _zeros(recorder: Recorder, t: Type, lanes: Symbol) -> Symbol:
    """Zeros of a type, in the shape of these lanes without their first axis."""
    if not isinstance(t, ArrayType):
        zero = t.dtype.type(0)
        return recorder.as_symbol(zero.item() if isinstance(t, Number) and t.python else zero)
    shape = tuple(recorder.length(lanes, axis) for axis in range(1, lanes.type.ndim))
    return recorder.as_symbol(recorder.apply(np.zeros, (shape, t.dtype), {}))


def _blocks(block: Block) -> list[Block]:
    """A block and the blocks inside it."""
    return [block, *(inner for op in walk(block) for inner in op.blocks())]


def push_block(
    recorder: Recorder,
    block: Block,
    n: int,
    given: list[tuple[Symbol, Any]],
    programs: PushedPrograms | None = None,
    *,
    together: Sequence[int] = (),
    stays: Callable[[Value], bool] | None = None,
    contents: Contents | None = None,
) -> tuple[list[Any], list[Any]]:
    """Record a block with n tangents beside its values; return its results and their lanes.

    ``given`` has each parameter's value and tangent: lanes, a :class:`Basis`, or ``ZERO``. Values
    from outside are constants. ``together`` is as in :class:`Program`; ``stays`` selects the arrays
    outside that keep what the block writes into them. ``programs`` are called programs that have
    been pushed forward, to which others are added. With ``contents``, of indices from outside,
    chunks, or views of memory with slots, are returned in place of lanes; where lanes would be
    written out, nothing is recorded, and ``NotPlacedError`` raised.
    """
    programs = {} if programs is None else programs
    memory = memory_of(Program("", block, together=list(together)))
    wrt = [p for p, (_, t) in zip(block.params, given, strict=True) if not isinstance(t, Zero)]
    activity, dense = Activity(block, wrt, memory), set[Value]()
    place, is_written, ops = recorder.place, recorder.is_written, len(recorder.block.ops)
    recorder.derives = True
    ways, recorder.ways = recorder.ways, None  # rules are for all values
    outer, mark = recorder.block, recorder.lengths.mark()
    try:
        while True:  # once more for each array whose tangent cannot be kept by places
            state = State(recorder, block, n, activity, dense, programs, contents=contents)
            try:
                return _Pushforward(state).run(given, stays=stays)
            except NotPlacedError as error:
                dense |= error.memory
                recorder.block = outer
                del outer.ops[ops:]
                recorder.lengths.forget(mark)
                if contents is not None:
                    raise
    finally:
        recorder.place, recorder.is_written, recorder.ways = place, is_written, ways


class _Pushforward:
    """Pushes a block forward."""

    def __init__(self, state: State) -> None:
        self.state = state
        recorder = self.recorder = state.recorder
        # the parts: each is given those above it that it uses
        recorder.is_written = state.is_written
        tangents = self.tangents = Tangents(state)
        shadows = self.shadows = Shadows(state, tangents)
        indexing = Indexing(state)
        view_tangents = ViewTangents(state, tangents, indexing)
        self.memory = Memory(state, tangents, shadows, indexing, view_tangents)
        self.rules = Rules(state, tangents, shadows, indexing, self.memory)
        self.control = Control(state, tangents, blocks=self)
        self.calls = Calls(state, tangents, shadows, push_block)

    def run(
        self, given: list[tuple[Symbol, Any]], *, stays: Callable[[Value], bool] | None
    ) -> tuple[list[Any], list[Any]]:
        """Record the block; return its results and their lanes."""
        recorder, state, block = self.recorder, self.state, self.state.block
        outer = recorder.place
        recorder.place = lambda: (state.op and state.op.location) or outer()
        for p, (symbol, tangent) in zip(block.params, given, strict=True):
            state.stand_for(p, symbol)
            if type(tangent) is Symbol:
                self.tangents.give_lanes(p, tangent)
            elif isinstance(tangent, Basis):
                found = self.tangents.basis(p.type, tangent)
                if isinstance(found, Chunk):
                    state.tangent[p] = found
            if state.is_shadowed(p) and p not in state.shadow:
                self.shadows.begin(p)
        copies = {v: self._fresh_copy(v) for v in written_outside(block)}
        first = len(recorder.block.ops)
        self.push(block)
        state.op = None
        primals = [state.symbols(r) for r in block.results]
        of_result = self.tangents.placed if state.placed else self.tangents.result_lanes
        lanes = [of_result(r) for r in block.results]
        if stays:
            leave_outside(recorder, copies, stays, first)
        return primals, lanes

    def _fresh_copy(self, v: Value) -> Value:
        """Let the block write into a copy of an array from outside."""
        copy = self.recorder.apply(np.ndarray.copy, (Symbol(v, self.recorder),), {})
        self.state.stand_for(v, copy)
        if self.state.is_shadowed(v):
            self.shadows.begin(v)
        return copy.value

    def push(self, block: Block) -> None:
        """Record a block's operations, and what they do to tangents."""
        for op in block.ops:
            self.state.op = op
            try:
                self._push(op)
            except UntraceableError as error:
                here = op.location
                if here is None or (error.filename, error.lineno) == (here.filename, here.line):
                    raise
                what = function_name(op.function) if isinstance(op, Apply) else type(op).__name__
                message = f"the frule of {what} cannot be written on a tape: {error.msg}"
                raise UntraceableError(message, op.location) from error

    def _push(self, op: Op) -> None:
        """Push one operation forward."""
        match op:
            case Check() | Effect():
                self.state.copy(op)
            case Apply():
                self.rules.push(op)
            case Load():
                self.memory.load(op)
            case Store():
                self.memory.store(op)
            case Update():
                self.memory.update(op)
            case Branch():
                self.control.branch(op)
            case Loop():
                self.control.loop(op)
            case Call():
                self.calls.push(op)
            case _:
                raise UntraceableError(f"{type_in_words(op)} cannot be pushed forward", op.location)
