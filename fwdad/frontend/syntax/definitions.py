"""Definitions of functions inside a traced function."""

from __future__ import annotations

import ast
from typing import Any

from fwdad.frontend.syntax.frame import Closure, Frame
from fwdad.frontend.syntax.tracer import Tracer


class Definitions:
    """Making of closures."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.position = tracer.position

    def run_FunctionDef(self, node: ast.FunctionDef) -> None:
        made: Any = self._closure(node)
        for decorator in reversed(node.decorator_list):
            made = self.tracer.call(self.tracer.evaluate(decorator), (made,), {})
        self.recorder.journal.bind(self.position.frame.locals, node.name, made)

    def eval_Lambda(self, node: ast.Lambda) -> Any:
        return self._closure(node)

    def _closure(self, node: Any) -> Closure:
        """A function that is defined here."""
        a = node.args
        frame: Frame | None = self.position.frame
        while frame is not None:
            frame.captured = True
            frame = frame.outer
        closure = Closure(
            node,
            self.position.frame,
            tuple(self.tracer.evaluate(d) for d in a.defaults),
            {
                p.arg: self.tracer.evaluate(d)
                for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)
                if d is not None
            },
        )
        self.recorder.journal.own(closure.held, namespace=True)
        return closure
