"""Branches, loops and other blocks of a reversible program as source."""

from __future__ import annotations

import ast
from collections.abc import Callable

from fwdad.reversible.arguments.kinds import Numeric
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
    Unchecked,
    While,
    walk,
)
from fwdad.reversible.lowering.expressions import Expressions
from fwdad.reversible.lowering.runtime_checks import RuntimeChecks
from fwdad.reversible.lowering.source import Source

WriteBlock = Callable[[Block], None]


class Control:
    """Writes the statements that contain blocks.

    ``write`` is what writes a block, forwards or backwards; ``updated_in`` returns the variables
    that a block updates.
    """

    def __init__(
        self,
        source: Source,
        expressions: Expressions,
        checks: RuntimeChecks,
        updated_in: Callable[[Block], set[str]],
    ) -> None:
        self.source = source
        self.expressions = expressions
        self.checks = checks
        self.updated_in = updated_in

    def branch(self, s: If, pre: ast.expr, post: ast.expr, write: WriteBlock) -> None:
        """A branch, and whether the other condition agrees afterwards."""
        sure = not self.source.checked or self.checks.stays(pre, post, [*s.body, *s.orelse])
        way = self.expressions.code(pre)
        if not sure:
            name = self.source.names.fresh("way")
            self.source.line(f"{name} = {way}")
            way = name
        self.source.line(f"if {way}:")
        with self.source.indented():
            write(s.body)
        if s.orelse:
            self.source.line("else:")
            with self.source.indented():
                write(s.orelse)
        if not sure:
            after = self.source.names.fresh("after")
            self.source.line(f"{after} = {self.expressions.code(post)}")
            self.source.line(f"if {after} != {way}:")
            what = f"the condition '{text(post)}' after the branch"
            self.checks.raise_it(s, what, text(post), way, after)

    def loop(self, s: While, pre: ast.expr, post: ast.expr, write: WriteBlock) -> None:
        """A loop, and whether its other condition is false before and true after each turn."""
        if self.source.checked:
            self.source.line(f"if {self.expressions.code(post)}:")
            what = f"the condition '{text(post)}' before the loop"
            self.checks.raise_it(s, what, text(post), "False", "True")
        self.source.line(f"while {self.expressions.code(pre)}:")
        with self.source.indented():
            write(s.body)
            if self.source.checked:
                self.source.line(f"if not ({self.expressions.code(post)}):")
                what = f"the condition '{text(post)}' after a turn of the loop"
                self.checks.raise_it(s, what, text(post), "True", "False")

    def repeat(self, s: For, write: WriteBlock, *, backwards: bool) -> None:
        """A loop over a range."""
        start, stop = self.expressions.code(s.start), self.expressions.code(s.stop)
        moving = s.moving and self.source.checked
        if moving:
            names = self.source.names.fresh("start"), self.source.names.fresh("stop")
            self.source.line(f"{names[0]}, {names[1]} = {start}, {stop}")
            over = _range(*names, s.step, backwards=backwards)
        else:
            over = _range(start, stop, s.step, backwards=backwards)
        self.source.line(f"for {s.variable.name} in {over}:")
        self.source.env[s.variable.name] = Numeric("int64")
        with self.source.indented(), self.checks.keeping(s.variable.name):
            write(s.body)
        self.source.env.pop(s.variable.name, None)
        if moving:
            for name, end in zip(names, (start, stop), strict=True):
                if name and not end.lstrip("-").isdigit():
                    self.source.line(f"if {end} != {name}:")
                    self.checks.raise_it(s, f"'{end}', an end of the loop's range", end, name, end)

    def define(self, s: Define, write: WriteBlock) -> None:
        """Give a value a name, for a block."""
        self.source.line(f"{s.variable.name} = {self.expressions.code(s.value)}")
        self.source.env[s.variable.name] = self.source.kinds[s.variable]
        with self.checks.keeping(s.variable.name, s.value):
            write(s.body)

    def compute(self, s: Compute, write: WriteBlock) -> None:
        """Run a block, another inside of it, and undo the first, forwards."""
        write(s.body)
        write(s.inside)
        if self.is_private(s):
            for name in own_variables(s.body):
                self.source.env.pop(name, None)
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

    def unchecked(self, s: Unchecked, write: WriteBlock) -> None:
        """A block without run-time checks."""
        with self.source.unchecked():
            write(s.body)

    def require(self, s: Require) -> None:
        """Raise if something does not hold."""
        if self.source.checked:
            self.source.line(f"if not ({self.expressions.code(s.test)}):")
            self.checks.raise_it(
                s, s.what, s.variable, repr(s.expected), self.expressions.code(s.found), s.error
            )


def own_variables(block: Block) -> set[str]:
    """The ancillas that begin in a block."""
    return {s.variable.name for s in walk(block) if isinstance(s, Allocate)}


def _range(start: str, stop: str, step: int, *, backwards: bool) -> str:
    if not backwards:
        return (
            f"range({stop})"
            if (start, step) == ("0", 1)
            else (f"range({start}, {stop})" if step == 1 else f"range({start}, {stop}, {step})")
        )
    before = "-1" if start == "0" else f"{start} - 1"
    after = f"{start} + 1"
    if step == 1:
        return f"range({stop} - 1, {before}, -1)"
    if step == -1:
        return f"range({stop} + 1, {after})"
    sign, end = (1, before) if step > 0 else (-1, after)
    last = f"({stop} - ({start}) - {sign}) // {step} * {step}"
    return f"range({start} + {last}, {end}, {-step})"
