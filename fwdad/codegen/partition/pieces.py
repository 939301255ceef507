"""Partitioning of a program that Numba cannot compile as a whole, where it cannot.

Adjacent operations that have a compiled form become programs of their own: the pieces. What is left
calls them, and runs under NumPy. Loops and branches that hold something without a compiled form are
left, too, with pieces inside.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fwdad.codegen.loops.source import numba_source
from fwdad.codegen.loops.stack_memory import handed_on
from fwdad.codegen.loops.terms.number_terms import check_dtype
from fwdad.codegen.numba_support import CannotCompileError
from fwdad.ir.analysis.alias import memory, memory_of, written_parameters
from fwdad.ir.analysis.layout import Orders
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Load,
    Loop,
    Op,
    Program,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.ir.primitives.stacks import new_stack, pop, top
from fwdad.ir.primitives.undef import missing_on_some_way

# Costs under NumPy, and that of entering compiled code, in units of one operation on a small array.
_NUMBER, _VIEW, _ARRAY, _LOOP = 0.06, 0.2, 1.0, 100.0
_CROSSING, _ARGUMENT = 2.0, 0.2


@dataclass
class Cut:
    """A program in pieces.

    ``program`` does what the whole does and calls the pieces; ``left`` says why the rest has no
    compiled form.
    """

    program: Program
    pieces: list[Program]
    left: list[CannotCompileError] = field(default_factory=list)


def cut(program: Program, refused: Iterable[CannotCompileError] = ()) -> Cut:
    """Cut a program where it cannot be compiled; there are no pieces if none is worth its calls.

    The program is not changed, and shares operations and values with the result. ``refused`` is
    what Numba has reported of lines for which source could be written.
    """
    stacking = (new_stack, pop, top)
    if (
        program.together
        or handed_on(program)
        or any(isinstance(op, Apply) and op.function in stacking for op in program.walk())
    ):
        # a stack is several variables in compiled code: it cannot cross the border of a piece; nor
        # can aliased memory
        return Cut(program, [], list(refused))
    cutter = _Cutter(program, refused)
    block = cutter.block(program.block)
    glue = dataclasses.replace(program, block=block)
    return Cut(glue, cutter.pieces, cutter.left)


class _Cutter:
    def __init__(self, program: Program, refused: Iterable[CannotCompileError]) -> None:
        self.program = program
        self.name = program.name if program.name.isidentifier() else "traced"
        self.users = _users(program.block)
        self._roots = memory_of(program)
        self._missing = missing_on_some_way(program)
        self._writing = {op for op in program.walk() if any(True for _ in op.writes())}
        self.pieces: list[Program] = []
        self.left: list[CannotCompileError] = []
        self._reported = {_line(e): e for e in refused if e.location is not None}
        self._unlike = Orders(program).unlike()

    def block(self, block: Block) -> Block:
        """The same block with calls of pieces."""
        ops: list[Op] = []
        run: list[Op] = []
        for op in block.ops:
            why = self._refuses(op)
            if why is None:
                run.append(op)
                continue
            ops.extend(self._joined(run))
            run = []
            ops.append(self._left(op, why))
        ops.extend(self._joined(run))
        return Block(list(block.params), ops, list(block.results))

    def _refuses(self, op: Op) -> CannotCompileError | None:
        """Why an operation by itself has no compiled form, or None."""
        for inner in _walk_op(op):
            if inner in self._unlike:
                return unlike(inner)
            if inner.location is not None and not inner.blocks():
                reported = self._reported.get((inner.location.filename, inner.location.line))
                if reported is not None:
                    return reported
        try:
            self._program([op], "one")
        except CannotCompileError as error:
            return error
        return None

    def _left(self, op: Op, why: CannotCompileError) -> Op:
        """An operation that runs under NumPy; blocks inside it are cut recursively."""
        before = len(self.left)
        if isinstance(op, Branch):
            op = dataclasses.replace(op, then=self.block(op.then), other=self.block(op.other))
        elif isinstance(op, Loop):
            test = None if op.test is None else self.block(op.test)
            op = dataclasses.replace(op, test=test, body=self.block(op.body))
        if len(self.left) == before and str(why) not in map(str, self.left):
            self.left.append(why)
        return op

    def _joined(self, run: list[Op]) -> list[Op]:
        """Operations that can be compiled, as a call of a piece if that pays."""
        params, outputs = self._border(run)
        cost = sum(map(_cost, run))
        if cost < _CROSSING + _ARGUMENT * (len(params) + len(outputs)):
            return run
        try:
            piece = self._program(run, f"{self.name}_piece_{len(self.pieces) + 1}")
        except CannotCompileError as error:
            if len(run) == 1:
                return [self._left(run[0], error)]
            half = len(run) // 2
            return [*self._joined(run[:half]), *self._joined(run[half:])]
        self.pieces.append(piece)
        return [Call(piece, list(params), outputs=tuple(outputs))]

    def _program(self, run: list[Op], name: str) -> Program:
        """A program of some operations; raises if it has no compiled form."""
        params, outputs = self._border(run)
        for v in (*params, *outputs):
            check_dtype(v.type.dtype)
        piece = dataclasses.replace(
            self.program,
            name=name,
            block=Block(params, list(run), list(outputs)),
            written=[],
            rows=False,
        )
        piece.written = written_parameters(piece)
        piece.shared = self._shared(run)
        piece.absent = self._missing.intersection(params)
        numba_source(piece)
        return piece

    def _shared(self, run: list[Op]) -> set[Value]:
        """The arrays of some operations whose memory the others write: these cannot be copied."""
        inside = {inner for op in run for inner in _walk_op(op)}
        written = memory([v for op in self._writing - inside for v in op.writes()], self._roots)
        if not written:
            return set()
        values_of_run = {v for op in run for v in (*_used(op), *_defined(op))}
        values_of_run.update(v for op in inside for v in _defined(op))
        values_of_run.update(p for op in inside for block in op.blocks() for p in block.params)
        return {v for v in values_of_run if is_array(v) and self._roots.get(v, {v}) & written}

    def _border(self, run: list[Op]) -> tuple[list[Value], list[Value]]:
        """The values that operations use of the rest, and those that the rest uses of theirs."""
        inside = {inner for op in run for inner in _walk_op(op)}
        defined = [v for op in run for v in _defined(op)]
        defined_inside = {v for op in inside for v in _defined(op)}
        defined_inside.update(p for op in inside for block in op.blocks() for p in block.params)
        used = {v: None for op in run for v in _used(op) if v not in defined_inside}
        return list(used), [v for v in defined if not inside.issuperset(self.users.get(v, ()))]


def unlike(op: Op) -> CannotCompileError:
    """The reason why an operation runs under NumPy if it depends on layout or makes another one."""
    what = "an array that is not C-contiguous under NumPy, of which a view or a copy is taken"
    return CannotCompileError(what, op.location)


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


def _line(error: CannotCompileError) -> tuple[str, int]:
    assert error.location is not None
    return error.location.filename, error.location.line


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
