"""Blocks of statements, and the jumps out of them."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Sequence
from typing import Any

from fwdad.frontend.syntax.control import branch
from fwdad.frontend.syntax.frame import FLOW
from fwdad.frontend.syntax.symbols import Maybe
from fwdad.frontend.syntax.tracer import Tracer


class Blocks:
    """Execution of statements one after the other, up to a jump."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.position = tracer.position

    def run_block(self, statements: Sequence[ast.stmt]) -> None:
        """Execute statements; after a possible jump the rest is under a branch."""
        for k, statement in enumerate(statements):
            self.tracer.run(statement)
            stopped = self.stopped()
            if stopped is True:
                return
            if stopped is not False:
                rest = statements[k + 1 :]
                if rest:
                    go_on = functools.partial(self.run_block, rest)
                    branch(self.recorder, stopped, self.has_returned, go_on)
                return

    def stopped(self) -> Any:
        """Whether a jump has been made in this frame: a bool, or a symbol of one."""
        return self.any_of([self.position.frame.locals.get(name, False) for name in FLOW])

    def has_returned(self) -> None:
        """Bind the returned value as present, on a path where only ``return`` can have jumped."""
        local_names = self.position.frame.locals
        if local_names["$break"] is False and local_names["$continue"] is False:
            value = local_names.get("$value")
            self.recorder.journal.bind(local_names, "$return", True)
            if isinstance(value, Maybe):
                self.recorder.journal.bind(local_names, "$value", value.value)

    def any_of(self, flags: list[Any]) -> Any:
        """Whether any of several flags is set: a bool, or a symbol of one."""
        if any(flag is True for flag in flags):
            return True
        symbolic = [flag for flag in flags if flag is not False]
        if not symbolic:
            return False
        return functools.reduce(
            lambda a, b: self.recorder.apply(operator.or_, (a, b), {}), symbolic
        )

    def run_If(self, node: ast.If) -> None:
        condition = self.tracer.test(node.test)
        self.position.at(node)
        branch(
            self.recorder,
            condition,
            lambda: self.run_block(node.body),
            lambda: self.run_block(node.orelse),
        )

    def run_Return(self, node: ast.Return) -> None:
        value = self.tracer.unread(node.value) if node.value is not None else None
        self.position.returns_at(node)
        self.recorder.journal.bind(self.position.frame.locals, "$value", value)
        self.recorder.journal.bind(self.position.frame.locals, "$return", True)

    def run_Break(self, node: ast.Break) -> None:
        self.recorder.journal.bind(self.position.frame.locals, "$break", True)

    def run_Continue(self, node: ast.Continue) -> None:
        self.recorder.journal.bind(self.position.frame.locals, "$continue", True)

    def run_Expr(self, node: ast.Expr) -> None:
        self.tracer.unread(node.value)

    def run_Pass(self, node: ast.Pass) -> None:
        """Do nothing."""

    def run_Global(self, node: ast.Global) -> None:
        """Skip a declaration."""

    def run_Nonlocal(self, node: ast.Nonlocal) -> None:
        """Skip a declaration."""
