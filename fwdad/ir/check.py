"""The checker: whether a program is well formed, as every transform's output must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwdad.ir.ops import (
    Block,
    Branch,
    Call,
    Check,
    Load,
    Loop,
    Missing,
    Op,
    Operand,
    Program,
    Value,
    is_array,
    type_of_operand,
    values_in,
)
from fwdad.ir.types import ArrayType, Number, Size, covers


class MalformedTapeError(Exception):
    """A program violates an invariant of the IR: a defect of a transform, not of user code."""


def check_program(program: Program, *, assumed: bool = False) -> None:
    """Raise ``MalformedTapeError`` unless a program, with those it calls, is well formed.

    Values are defined once, before their uses, in the same or a surrounding block; a loop's test
    and body see each other's values. Results match outputs in number and type, written operands are
    arrays, conditions are booleans. ``assumed``: unstated lengths may be relied on.
    """
    _Checker(program, set(), assumed).run()


class _Checker:
    def __init__(self, program: Program, checked: set[int], assumed: bool) -> None:
        self.assumed = assumed
        self.program = program
        self.checked = checked
        self.defined: set[Value] = set()
        self.op: Op | None = None

    def run(self) -> None:
        self.checked.add(id(self.program))
        block, written = self.program.block, self.program.written
        if written and len(written) != len(block.params):
            self.fail(f"{len(block.params)} parameters, but {len(written)} entries in `written`")
        scope = self.define(block.params, set())
        self.block(block, scope)

    def fail(self, what: str) -> None:
        place = ""
        if self.op is not None:
            where = self.op.location
            place = f" at {type(self.op).__name__}" + (
                f" ({where.filename}:{where.line})" if where is not None else ""
            )
        raise MalformedTapeError(f"the tape of {self.program.name} is malformed{place}: {what}")

    # -- scopes

    def define(self, values: Any, scope: set[Value]) -> set[Value]:
        for v in values:
            if not isinstance(v, Value):
                self.fail(f"{v!r} is defined, but is not a Value")
            if v in self.defined:
                self.fail(f"{v!r} is defined twice")
            self.defined.add(v)
        return scope | set(values)

    def use(self, operand: Operand, scope: set[Value]) -> None:
        for v in values_in(operand):
            if v not in scope:
                late = "outside its block" if v in self.defined else "before it is defined"
                self.fail(f"{v!r} is used {late}")

    def block(self, block: Block, scope: set[Value]) -> set[Value]:
        """Check a block whose parameters are in scope; return the scope at its end."""
        scope = set(scope)
        for op in block.ops:
            outer, self.op = self.op, op
            for operand in op.operands():
                self.use(operand, scope)
            self.kind(op, scope)
            for v in op.writes():
                if not _is_memory(v):
                    self.fail(f"{v!r} is written, but is not an array")
            defined = [*op.outputs, op.exec_count] if isinstance(op, Loop) else op.outputs
            scope |= self.define(defined, set())
            self.op = outer
        self.use(block.results, scope)
        return scope

    # -- kinds of operations

    def kind(self, op: Op, scope: set[Value]) -> None:
        if isinstance(op, Branch):
            self.branch(op, scope)
        elif isinstance(op, Loop):
            self.loop(op, scope)
        elif isinstance(op, Check):
            self.condition(op.condition)
        elif isinstance(op, Call):
            self.called(op)
        elif isinstance(op, Load):
            if not _is_memory(op.array):
                self.fail(f"{op.array!r} is indexed, but is not an array")
            if len(op.outputs) != 1:
                self.fail(f"a Load must have one output, not {len(op.outputs)}")
            if op.view and not is_array(op.outputs[0]):
                self.fail("a view must be an array")

    def branch(self, op: Branch, scope: set[Value]) -> None:
        self.condition(op.condition)
        for side in (op.then, op.other):
            if side.params:
                self.fail("a side of a branch must have no parameters")
            self.block(side, scope)
            self.agree(op.outputs, side.results, "outputs", "results of a side")

    def loop(self, op: Loop, scope: set[Value]) -> None:
        if (op.span is None) == (op.test is None):
            self.fail("a loop must have either a range or a condition")
        if op.span is not None:
            if len(op.span) != 3:
                self.fail("a range must have a start, a stop and a step")
            if not op.body.params:
                self.fail(
                    "the body of a loop over a range must have the counter as its first parameter"
                )
        carried, results = op.carried, op.body.results
        inside = self.define(op.body.params, scope)
        if op.test is not None:
            if op.test.params:
                self.fail("the condition of a loop must have no parameters of its own")
            if len(op.test.results) != 1:
                self.fail(
                    f"the condition of a loop must have one result, not {len(op.test.results)}"
                )
            inside = self.block(op.test, inside)
            self.condition(op.test.results[0])
        self.block(op.body, inside)
        if op.leaves:
            if len(results) != len(carried) + 1:
                self.fail(
                    f"{len(carried)} carried values, but {len(results)} results with `leaves`"
                )
            self.condition(results[-1])
            results = results[:-1]
        self.agree(carried, op.initial, "carried values", "initial values")
        self.agree(carried, results, "carried values", "next values")
        self.agree(op.outputs, list(carried), "outputs", "carried values")

    def called(self, op: Call) -> None:
        inner = op.program
        if len(op.args) != len(inner.block.params):
            self.fail(f"{inner.name} has {len(inner.block.params)} parameters, not {len(op.args)}")
        if id(inner) not in self.checked:
            _Checker(inner, self.checked, self.assumed).run()

    # -- types

    def condition(self, x: Operand) -> None:
        t = type_of_operand(x)
        if not (isinstance(t, Number) or (isinstance(t, ArrayType) and not t.shape)):
            self.fail(f"the condition {x!r} is not a number")
        if isinstance(self.op, Loop) and not (isinstance(t, Number) and t.dtype.kind == "b"):
            self.fail(f"the condition {x!r} of a loop is not a bool")

    def agree(self, wide: Any, narrow: list[Operand], one: str, other: str) -> None:
        if len(wide) != len(narrow):
            self.fail(f"{len(wide)} {one}, but {len(narrow)} {other}")
        for v, x in zip(wide, narrow, strict=True):
            t = type_of_operand(x)
            if self.assumed and isinstance(t, ArrayType) and isinstance(v.type, ArrayType):
                pairs = zip(v.type.shape, t.shape, strict=False)
                known = (m if isinstance(n, Size) else n for m, n in pairs)
                t = ArrayType(t.dtype, (*known, *t.shape[v.type.ndim :]))
            if t is None or not covers(v.type, t):
                self.fail(f"{one} and {other} differ in type: {v.type} and {t or x!r}")


def _is_memory(x: Operand) -> bool:
    """Whether an operand is an array, or a placeholder for one in unreachable code."""
    return isinstance(x, (Value, Missing)) and isinstance(x.type, ArrayType)


Checked = Callable[[Program], bool]


def checked(run: Checked, program: Program) -> bool:
    """Run a pass on a well-formed program, and check its output; whether it changed anything."""
    changed = run(program)
    try:
        check_program(program)
    except MalformedTapeError as error:
        raise MalformedTapeError(f"after the pass {run.__name__}: {error}") from error
    return changed
