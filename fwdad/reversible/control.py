"""Branches, loops and other blocks of a reversible program as source."""

from __future__ import annotations

import ast

from fwdad.reversible.calls import Calls
from fwdad.reversible.invert import inverted_block
from fwdad.reversible.kinds import Numeric
from fwdad.reversible.liveness import all_reads
from fwdad.reversible.places import text
from fwdad.reversible.program import (
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


class Control(Calls):
    """Writes blocks, and the statements that contain some."""

    def block(self, block: Block) -> None:
        """Write a block."""
        for s in block:
            self.statement(s)

    def statement(self, s: Statement) -> None:
        """Write a statement."""
        self.comment(s)
        self.check_apart(s)
        getattr(self, f"_write_{type(s).__name__.lower()}")(s)

    def _write_if(self, s: If) -> None:
        self.branch(s, s.pre, s.post, s.body, s.orelse)

    def branch(self, s: If, pre: ast.expr, post: ast.expr, body: Block, orelse: Block) -> None:
        """A branch, and whether the other condition agrees afterwards."""
        sure = not self.checked or self.stays(pre, post, [*s.body, *s.orelse])
        way = self.code(pre)
        if not sure:
            name = self.names.fresh("way")
            self.line(f"{name} = {way}")
            way = name
        self.line(f"if {way}:")
        with self.indented():
            self.block(body)
        if orelse:
            self.line("else:")
            with self.indented():
                self.block(orelse)
        if not sure:
            after = self.names.fresh("after")
            self.line(f"{after} = {self.code(post)}")
            self.line(f"if {after} != {way}:")
            what = f"the condition '{text(post)}' after the branch"
            self.raise_it(s, what, text(post), way, after)

    def _write_while(self, s: While) -> None:
        self.loop(s, s.pre, s.post, s.body)

    def loop(self, s: While, pre: ast.expr, post: ast.expr, body: Block) -> None:
        """A loop, and whether its other condition is false before and true after each turn."""
        if self.checked:
            self.line(f"if {self.code(post)}:")
            what = f"the condition '{text(post)}' before the loop"
            self.raise_it(s, what, text(post), "False", "True")
        self.line(f"while {self.code(pre)}:")
        with self.indented():
            self.block(body)
            if self.checked:
                self.line(f"if not ({self.code(post)}):")
                what = f"the condition '{text(post)}' after a turn of the loop"
                self.raise_it(s, what, text(post), "True", "False")

    def _write_for(self, s: For) -> None:
        self.repeat(s, s.body, backwards=s.backwards)

    def repeat(self, s: For, body: Block, *, backwards: bool) -> None:
        """A loop over a range."""
        start, stop = self.code(s.start), self.code(s.stop)
        moving = s.moving and self.checked
        if moving:
            names = self.names.fresh("start"), self.names.fresh("stop")
            self.line(f"{names[0]}, {names[1]} = {start}, {stop}")
            over = _range(*names, s.step, backwards=backwards)
        else:
            over = _range(start, stop, s.step, backwards=backwards)
        self.line(f"for {s.variable.name} in {over}:")
        self.env[s.variable.name] = Numeric("int64")
        with self.indented(), self.keeping(s.variable.name):
            self.block(body)
        self.env.pop(s.variable.name, None)
        if moving:
            for name, end in zip(names, (start, stop), strict=True):
                if name and not end.lstrip("-").isdigit():
                    self.line(f"if {end} != {name}:")
                    self.raise_it(s, f"'{end}', an end of the loop's range", end, name, end)

    def _write_define(self, s: Define) -> None:
        self.define(s)
        with self.keeping(s.variable.name, s.value):
            self.block(s.body)

    def define(self, s: Define) -> None:
        """Give a value a name."""
        self.line(f"{s.variable.name} = {self.code(s.value)}")
        self.env[s.variable.name] = self.kinds[s.variable]

    def _write_compute(self, s: Compute) -> None:
        self.block(s.body)
        self.block(s.inside)
        if self.is_private(s):
            for name in own_variables(s.body):
                self.env.pop(name, None)
        else:
            self.block(inverted_block(s.body))

    def is_private(self, s: Compute) -> bool:
        """Whether undoing a block is invisible: it writes only its ancillas, and nothing else does.

        What it reads must stay as well: otherwise undoing it fails, which must be visible.
        """
        own = own_variables(s.body)
        inside = self.written(s.inside)
        read = all_reads(s.body, self.numeric | own)
        return self.written(s.body) <= own and not inside & (own | read)

    def _write_unchecked(self, s: Unchecked) -> None:
        before, self.checked = self.checked, False
        self.block(s.body)
        self.checked = before

    def _write_require(self, s: Require) -> None:
        if self.checked:
            self.line(f"if not ({self.code(s.test)}):")
            self.raise_it(s, s.what, s.variable, repr(s.expected), self.code(s.found), s.error)


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
