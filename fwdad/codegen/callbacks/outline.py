"""Outlining of the operations that have no compiled form: they become calls of programs.

Neighbours are one call. A loop that would do little but call becomes part of one, and so does a
branch behind a call.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from fwdad.codegen.loops.source import numba_source
from fwdad.codegen.loops.terms.number_terms import check_dtype
from fwdad.codegen.numba_support import CannotCompileError
from fwdad.codegen.numpy_backend.source import Source
from fwdad.errors import Location
from fwdad.ir.analysis.alias import written_parameters
from fwdad.ir.analysis.layout import Orders
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Effect,
    Load,
    Loop,
    Op,
    Program,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.ir.primitives.stacks import new_stack, pop, push, thin, top
from fwdad.ir.primitives.undef import missing_on_some_way
from fwdad.ir.rewrite import with_blocks
from fwdad.ir.types import Type
from fwdad.rules.core.registry import function_name
from fwdad.transforms.passes import called_from

# Costs under NumPy, and that of a call from compiled code; unit: an operation on a small array.
_NUMBER, _VIEW, _ARRAY, _LOOP = 0.06, 0.2, 1.0, 100.0
_CROSSING, _ARGUMENT = 2.0, 0.2
_ON_STACKS = (new_stack, push, pop, top, thin)  # in compiled code a stack is several variables


class Compilable(NamedTuple):
    """A source for Numba, and the types of its names."""

    source: Source
    types: dict[str, Type]

    def text(self) -> str:
        """What Numba compiles, and then what NumPy runs for it."""
        return "\n\n".join([self.source.text, *(c.source.text for c in self.source.callbacks)])


def compilable(program: Program, reported: Iterable[CannotCompileError] = ()) -> Compilable:
    """A program as source for Numba, with calls in place of what has no compiled form.

    ``reported`` is what Numba has said of lines for which source could be written. Raises
    :class:`CannotCompileError` if compiling the rest would not pay, or cannot be done.
    """
    programs = called_from(program)
    refused = {op: unlike(op) for each in programs for op in Orders(each).unlike()}
    for op, error in refused.items():
        if _stays(op):
            raise error
    errors = list(reported)
    for error in errors:
        refused.update((op, error) for op in _on_line(programs, error))
    if not refused and not errors:
        try:
            return Compilable(*numba_source(program))
        except CannotCompileError as error:
            errors.append(error)
    for each in programs:
        _test_each(each, refused)
    while True:
        if not refused:
            raise errors[0]
        made = _Outliner(program, refused).program(program)
        try:
            return Compilable(*numba_source(made))
        except CannotCompileError as error:  # where operations meet that could be compiled alone
            more = [op for op in _on_line(programs, error) if op not in refused]
            if not more:
                raise
            refused.update((op, error) for op in more)


def unlike(op: Op) -> CannotCompileError:
    """The reason why NumPy runs an operation that depends on layout or makes another one."""
    what = "an array that is not C-contiguous under NumPy, of which a view or a copy is taken"
    return CannotCompileError(what, op.location)


def _leaves(programs: Iterable[Program]) -> Iterator[Op]:
    """The operations that may be outlined by themselves."""
    for each in programs:
        for op in each.walk():
            if not (op.nests or _stays(op)):
                yield op


def _stays(op: Op) -> bool:
    """Whether an operation is compiled in any case: what a call might take are stacks."""
    return isinstance(op, Call) or (isinstance(op, Apply) and op.function in _ON_STACKS)


def _on_line(programs: Iterable[Program], error: CannotCompileError) -> list[Op]:
    """The operations of a line of the user's that cannot be compiled."""
    line = _line(error)
    return [op for op in _leaves(programs) if line is not None and _line(op) == line]


def _line(at: Op | CannotCompileError) -> tuple[str, int] | None:
    return None if at.location is None else (at.location.filename, at.location.line)


def _test_each(program: Program, refused: dict[Op, CannotCompileError]) -> None:
    """Note which operations of a program have no compiled form by themselves."""
    missing = missing_on_some_way(program)
    for op in _leaves([program]):
        if op not in refused:
            params = list(dict.fromkeys(_used(op)))
            alone = dataclasses.replace(
                program, block=Block(params, [op], list(op.outputs)), written=[], rows=False,
                together=[], absent=missing.intersection(params),
            )  # fmt: skip
            alone.written = written_parameters(alone)
            try:
                numba_source(alone)
            except CannotCompileError as error:
                what = f"output by {function_name(op.args[0])}" if isinstance(op, Effect) else ""
                refused[op] = CannotCompileError(what or error.what, _place(op))


def _place(op: Op) -> Location | None:
    """Where the user calls it; an operation of a reverse pass knows only its function."""
    return op.location or getattr(getattr(op, "function", None), "location", None)


class _Outliner:
    """Writes a program, and those that it calls, anew."""

    def __init__(self, program: Program, refused: dict[Op, CannotCompileError]) -> None:
        self.refused = dict(refused)
        self._new = {id(each): dataclasses.replace(each) for each in called_from(program)}
        self._users: dict[Value, set[Any]] = {}
        self._made = 0

    def program(self, program: Program) -> Program:
        """The program with calls; raises if compiling the rest would not pay."""
        programs = called_from(program)
        gains = [self._gain(each.block) for each in programs]
        if max(gains) <= 0:
            raise next(iter(self.refused.values()))
        for each in programs:
            self._users = _users(each.block)
            self._new[id(each)].block = self._block(each.block, each)
        return self._new[id(program)]

    def _gain(self, block: Block) -> float:
        """What is gained by compiling a block; notes what is not worth it, beside a call."""
        gain = 0.0
        between: list[Op] | None = None  # the operations since the last call
        for op in block.ops:
            inner = sum(map(self._gain, op.blocks()))
            beside = between is not None or not isinstance(op, Branch)  # else it may take no call
            if op.nests and inner <= 0 and beside and (why := self._within(op)) is not None:
                self.refused[op] = why
            if op not in self.refused:
                gain += _cost(op)
                if between is not None:
                    between.append(op)
                continue
            joined = sum(map(_cost, between or ()))
            if between is None or joined >= _CROSSING or any(x.nests or _stays(x) for x in between):
                joined = _CROSSING
            else:
                self.refused.update((x, self.refused[op]) for x in between)
            gain -= _ARGUMENT * len(op.outputs) + joined
            between = []
        return gain

    def _within(self, op: Op) -> CannotCompileError | None:
        """Why a loop or a branch would call; None if it would not, or holds a stack."""
        inside = [inner for block in op.blocks() for inner in walk(block)]
        if any(map(_stays, inside)):
            return None
        return next((self.refused[x] for x in inside if x in self.refused), None)

    def _block(self, block: Block, program: Program) -> Block:
        """A block with calls in place of what is left to NumPy."""
        ops: list[Op] = []
        run: list[Op] = []
        for op in block.ops:
            if op in self.refused:
                run.append(op)
                continue
            ops += self._called(run, program)
            run = []
            if isinstance(op, Call):
                op = dataclasses.replace(op, program=self._new[id(op.program)])
            ops.append(with_blocks(op, lambda inner: self._block(inner, program)))
        ops += self._called(run, program)
        return Block(list(block.params), ops, list(block.results))

    def _called(self, run: list[Op], program: Program) -> list[Op]:
        """A call of a program that does what some operations do; none of none."""
        if not run:
            return []
        params, outputs = self._border(run)
        for v in (*params, *outputs):
            check_dtype(v.type.dtype)
        self._made += 1
        inner = dataclasses.replace(
            program, name=f"called_{self._made}", block=Block(params, run, list(outputs)),
            written=[], rows=False, together=[],
            interpreted=tuple({str(e): e for e in map(self.refused.__getitem__, run)}.values()),
        )  # fmt: skip
        inner.written = written_parameters(inner)
        return [Call(inner, list(params), outputs=tuple(outputs), location=run[0].location)]

    def _border(self, run: list[Op]) -> tuple[list[Value], list[Value]]:
        """The values that operations use of the rest, and those that the rest uses of theirs."""
        inside = {inner for op in run for inner in _walk_op(op)}
        own = {v for op in inside for v in _defined(op)}
        own.update(p for op in inside for block in op.blocks() for p in block.params)
        used = dict.fromkeys(v for op in run for v in _used(op) if v not in own)
        defined = [v for op in run for v in _defined(op)]
        return list(used), [v for v in defined if not inside.issuperset(self._users.get(v, ()))]


def _walk_op(op: Op) -> Iterator[Op]:
    yield op
    for block in op.blocks():
        yield from walk(block)


def _defined(op: Op) -> list[Value]:
    return [*op.outputs, op.exec_count] if isinstance(op, Loop) else list(op.outputs)


def _used(op: Op) -> Iterator[Value]:
    """The values that an operation uses, with all that is inside it."""
    for inner in _walk_op(op):
        yield from values_in(inner.operands())
        for block in inner.blocks():
            yield from values_in(block.results)


def _users(block: Block) -> dict[Value, set[Any]]:
    """For each value the operations that use it, or whose blocks return it."""
    users: dict[Value, set[Any]] = {}
    for op in walk(block):
        for v in values_in([op.operands(), [b.results for b in op.blocks()]]):
            users.setdefault(v, set()).add(op)
    for v in values_in(block.results):
        users.setdefault(v, set()).add(None)
    return users


def _cost(op: Op) -> float:
    """Estimated cost of an operation under NumPy."""
    if isinstance(op, (Loop, Call)):
        return _LOOP
    if isinstance(op, Branch):
        return _NUMBER + max(sum(map(_cost, side.ops)) for side in op.blocks())
    if isinstance(op, Load) and op.view:
        return _VIEW
    touched = [*op.outputs, *values_in(op.operands())]
    return _ARRAY if any(is_array(v) for v in touched) else _NUMBER
