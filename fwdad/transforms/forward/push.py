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

from fwdad.errors import FwdadError, UntraceableError, type_in_words
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import (
    Apply,
    Block,
    Program,
    Value,
    values_in,
    walk,
)
from fwdad.ir.rewrite import written_outside
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType
from fwdad.rules.core.registry import function_name
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from fwdad.transforms.forward.control import Control
from fwdad.transforms.forward.lanes import Basis, Seed, lanes_type
from fwdad.transforms.forward.state import AgainError, Facts


def push_forward(program: Program, n: int, seeds: list[Seed]) -> tuple[Program, list[np.ndarray]]:
    """A program that pushes n tangents through another one, and its constants.

    Parameters: those of ``program``, lanes of the parameters whose seed is True, constants.
    Results: those of ``program``, then the lanes of each. ``MissingRuleError`` if an active value
    meets a function without a rule, ``UntraceableError`` if a rule needs concrete values.
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
    given, lanes_params = [], []
    for p, seed in zip(program.block.params, seeds, strict=True):
        made = Symbol(Value(p.type, p.name), recorder)
        recorder.measure(made.value, absent=p in program.absent)
        tangent: Any = ZERO
        if seed is True:
            tangent = Symbol(Value(lanes_type(p.type, n), f"{p.name or 'x'}_dot"), recorder)
            lanes_params.append(tangent.value)
        elif isinstance(seed, Basis):
            tangent = seed
        given.append((made, tangent))
    primals, lanes = push_block(recorder, program.block, n, given, together=program.together)
    block = recorder.block
    params = [symbol.value for symbol, _ in given]
    block.results = [recorder.operand(x) for x in (*primals, *lanes)]
    used = {v for op in walk(block) for v in values_in(op.operands())}
    used |= {v for inner in _blocks(block) for v in values_in(inner.results)}
    constants = [(v, a) for v, a in constants if v in used]  # not those of rules given up
    block.params = [*params, *lanes_params, *(v for v, _ in constants)]
    made_program = Program(f"{program.name}_pushforward", block, program.filename)
    made_program.quiet, made_program.together = True, list(program.together)
    return made_program, [a for _, a in constants]


def _blocks(block: Block) -> list[Block]:
    """A block and the blocks inside it."""
    return [block, *(inner for op in walk(block) for inner in op.blocks())]


def push_block(
    recorder: Recorder,
    block: Block,
    n: int,
    given: list[tuple[Symbol, Any]],
    facts: Facts | None = None,
    *,
    together: Sequence[int] = (),
    stays: Callable[[Value], bool] | None = None,
) -> tuple[list[Any], list[Any]]:
    """Record a block with n tangents beside its values; return its results and their lanes.

    ``given`` has each parameter's value and tangent: lanes, a :class:`Basis`, or ``ZERO``. Values
    from outside are constants. ``together`` is as in :class:`Program`; ``stays`` selects the arrays
    outside that keep what the block writes into them. ``facts`` is filled in.
    """
    facts = facts or Facts()
    place, is_written, ops = recorder.place, recorder.is_written, len(recorder.block.ops)
    recorder.derives = True
    outer, mark = recorder.block, recorder.mark()
    try:
        for _ in range(1000):
            attempt = _Pushforward(recorder, block, n, facts, together)
            try:
                return attempt.run(given, stays=stays)
            except AgainError:
                pass
            except FwdadError:
                if not attempt.again:
                    raise
            recorder.block = outer
            del outer.ops[ops:]
            recorder.forget(mark)
    finally:
        recorder.place, recorder.is_written = place, is_written
    message = "the activity of the program's values does not settle"
    raise UntraceableError(message)


class _Pushforward(Control):
    """One attempt, with the facts known so far.

    Where a fact turns out to be missing, the attempt goes on as if it had been known, in order to
    find most of the missing facts at once; then everything is recorded again.
    """

    def run(
        self, given: list[tuple[Symbol, Any]], *, stays: Callable[[Value], bool] | None
    ) -> tuple[list[Any], list[Any]]:
        outer = self.recorder.place
        self.recorder.place = lambda: (self._op and self._op.location) or outer()
        for p, (symbol, tangent) in zip(self.block.params, given, strict=True):
            self.primal[p] = symbol
            self._origin[symbol.value] = p
            if type(tangent) is Symbol:
                self._give_lanes(p, tangent)
            elif isinstance(tangent, Basis):
                found = self._basis(p.type, tangent)
                if isinstance(found, Chunk):
                    self.tangent[p] = found
            if self._is_shadowed(p) and p not in self.shadow:
                self._begin_shadow(p)
        outside = written_outside(self.block)
        for v in outside:
            self._fresh_copy(v)
        copies = {v: self.primal[v].value for v in outside}
        first = len(self.recorder.block.ops)
        self._block(self.block)
        self._op = None
        if self.again:
            raise AgainError
        results = self.block.results
        found = [self._symbols(r) for r in results], [self._result_lanes(r) for r in results]
        if stays:
            self.recorder.leave_outside(copies, stays, first)
        return found

    def _fresh_copy(self, v: Value) -> None:
        copy = self.recorder.apply(np.ndarray.copy, (Symbol(v, self.recorder),), {})
        self.primal[v] = copy
        self._origin[copy.value] = v
        if self._is_shadowed(v):
            self._begin_shadow(v)

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self._op = op
            handle = getattr(self, f"_{type(op).__name__.lower()}", None)
            if handle is None:
                message = f"{type_in_words(op)} cannot be pushed forward"
                raise UntraceableError(message, op.location)
            try:
                handle(op)
            except UntraceableError as error:
                here = op.location
                if here is None or (error.filename, error.lineno) == (here.filename, here.line):
                    raise
                what = function_name(op.function) if isinstance(op, Apply) else type(op).__name__
                message = f"the frule of {what} cannot be written on a tape: {error.msg}"
                raise UntraceableError(message, op.location) from error

    def _push(self, recorder: Recorder, block: Block, given: Any, facts: Facts) -> Any:
        return push_block(recorder, block, self.n, given, facts)
