"""Branches, loops and other blocks of a reversible program in Python."""

from __future__ import annotations

import ast
from collections.abc import Callable

from fwdad.reversible.arguments.kinds import Numeric
from fwdad.reversible.language import nodes
from fwdad.reversible.language.invert import inverted_block
from fwdad.reversible.language.liveness import all_reads
from fwdad.reversible.language.places import text
from fwdad.reversible.language.program import (
    Allocate,
    Block,
    Compute,
    Define,
    For,
    If,
    Require,
    Statement,
    Unchecked,
    While,
    walk,
)
from fwdad.reversible.lowering.expressions import Expressions
from fwdad.reversible.lowering.function_builder import FunctionBuilder
from fwdad.reversible.lowering.runtime_checks import RuntimeChecks

WriteBlock = Callable[[Block], None]

_ONE = ast.Constant(1)


class Control:
    """Writes the statements that contain blocks.

    ``write`` is what writes a block, forwards or backwards; ``updated_in`` returns the variables
    that a block updates.
    """

    def __init__(
        self,
        builder: FunctionBuilder,
        expressions: Expressions,
        checks: RuntimeChecks,
        updated_in: Callable[[Block], set[str]],
    ) -> None:
        self.builder = builder
        self.expressions = expressions
        self.checks = checks
        self.updated_in = updated_in

    def statement(self, s: Statement, write: WriteBlock) -> None:
        """A statement that contains blocks of which each is written once, or a requirement."""
        if isinstance(s, If):
            self._branch(s, write)
        elif isinstance(s, While):
            self._loop(s, write)
        elif isinstance(s, For):
            self._repeat(s, write)
        elif isinstance(s, Define):
            self._define(s, write)
        elif isinstance(s, Unchecked):
            with self.builder.unchecked():
                write(s.body)
        elif isinstance(s, Require):
            self._require(s)
        else:
            raise TypeError(type(s))

    def _branch(self, s: If, write: WriteBlock) -> None:
        """A branch, and whether the other condition agrees afterwards."""
        pre, post = s.pre, s.post
        sure = not self.builder.checked or self.checks.stays(pre, post, [*s.body, *s.orelse])
        taken = self.expressions.lowered(pre)
        if not sure:
            condition, taken = taken, self.builder.fresh("taken")
            self.builder.assign(taken, condition)
        with self.builder.block() as body:
            write(s.body)
        orelse: list[ast.stmt] = []
        if s.orelse:
            with self.builder.block() as orelse:
                write(s.orelse)
        self.builder.begin(s)
        self.builder.add(ast.If(taken, body, orelse))
        if not sure:
            after = self.builder.fresh("after")
            self.builder.assign(after, self.expressions.lowered(post))
            what = f"the condition '{text(post)}' after the branch"
            failed = nodes.compare(after, "!=", taken)
            self.checks.raise_if(failed, s, what, text(post), taken, after)

    def _loop(self, s: While, write: WriteBlock) -> None:
        """A loop, and whether its other condition is false before and true after each turn."""
        condition, test = self.expressions.lowered(s.pre), self.expressions.lowered(s.post)
        tested = text(s.post)
        true, false = ast.Constant(True), ast.Constant(False)
        if self.builder.checked:
            what = f"the condition '{tested}' before the loop"
            self.checks.raise_if(test, s, what, tested, false, true)
        with self.builder.block() as body:
            write(s.body)
            if self.builder.checked:
                self.builder.begin(s)
                what = f"the condition '{tested}' after a turn of the loop"
                self.checks.raise_if(nodes.negated(test), s, what, tested, true, false)
        self.builder.begin(s)
        self.builder.add(ast.While(condition, body, []))

    def _repeat(self, s: For, write: WriteBlock) -> None:
        """A loop over a range."""
        ends = start, stop = self.expressions.lowered(s.start), self.expressions.lowered(s.stop)
        moving = s.moving and self.builder.checked
        if moving:
            start, stop = self.builder.fresh("start"), self.builder.fresh("stop")
            self.builder.assign(nodes.tuple_of([start, stop]), nodes.tuple_of(ends))
        bounds = (_backward_range if s.backwards else _range)(start, stop, s.step)
        self.builder.env[s.variable.name] = Numeric("int64")
        with self.builder.block() as body, self.checks.keeping(s.variable.name):
            write(s.body)
        self.builder.env.pop(s.variable.name, None)
        self.builder.begin(s)
        counter = nodes.name(s.variable.name)
        self.builder.add(ast.For(counter, nodes.call("range", *bounds), body, [], lineno=1))
        if moving:
            for before, now in zip((start, stop), ends, strict=True):
                if nodes.number_in(now) is None:
                    what = f"'{text(now)}', an end of the loop's range"
                    moved = nodes.compare(now, "!=", before)
                    self.checks.raise_if(moved, s, what, text(now), before, now)

    def _define(self, s: Define, write: WriteBlock) -> None:
        """Give a value a name, for a block."""
        self.builder.assign(nodes.name(s.variable.name), self.expressions.lowered(s.value))
        self.builder.env[s.variable.name] = self.builder.kinds[s.variable]
        with self.checks.keeping(s.variable.name, s.value):
            write(s.body)

    def compute(self, s: Compute, write: WriteBlock) -> None:
        """Run a block, another inside of it, and undo the first, forwards."""
        write(s.body)
        write(s.inside)
        if self.is_private(s):
            for name in own_variables(s.body):
                self.builder.env.pop(name, None)
        else:
            write(inverted_block(s.body))

    def is_private(self, s: Compute) -> bool:
        """Whether undoing a block is invisible: it writes only its ancillas, and nothing else does.

        What it reads must stay as well: otherwise undoing it fails, which must be visible.
        """
        own = own_variables(s.body)
        inside = self.updated_in(s.inside)
        read = all_reads(s.body, self.expressions.numeric | own)
        return self.updated_in(s.body) <= own and not inside & (own | read)

    def _require(self, s: Require) -> None:
        """Raise if something does not hold."""
        if self.builder.checked:
            lowered = self.expressions.lowered
            failed, expected = nodes.negated(lowered(s.test)), ast.Constant(s.expected)
            self.checks.raise_if(
                failed, s, s.what, s.variable, expected, lowered(s.actual), s.error
            )


def own_variables(block: Block) -> set[str]:
    """The ancillas that begin in a block."""
    return {s.variable.name for s in walk(block) if isinstance(s, Allocate)}


def _range(start: ast.expr, stop: ast.expr, step: int) -> list[ast.expr]:
    """The arguments of a range."""
    if step != 1:
        return [start, stop, nodes.constant(step)]
    return [stop] if nodes.number_in(start) == 0 else [start, stop]


def _backward_range(start: ast.expr, stop: ast.expr, step: int) -> list[ast.expr]:
    """The arguments of the same range in the opposite order."""
    at_zero = nodes.number_in(start) == 0
    before = nodes.constant(-1) if at_zero else nodes.binary(start, "-", _ONE)
    after = nodes.binary(start, "+", _ONE)
    if step == 1:
        return [nodes.binary(stop, "-", _ONE), before, nodes.constant(-1)]
    if step == -1:
        return [nodes.binary(stop, "+", _ONE), after]
    sign, end = ("-", before) if step > 0 else ("+", after)
    by = nodes.constant(step)
    length = nodes.binary(nodes.binary(stop, "-", start), sign, _ONE)
    last = nodes.binary(nodes.binary(length, "//", by), "*", by)
    return [nodes.binary(start, "+", last), end, nodes.constant(-step)]
