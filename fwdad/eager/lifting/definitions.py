"""Functions and classes that are defined inside a lifted function."""

from __future__ import annotations

import ast
from typing import Any

from fwdad.eager.lifting.lifter import Lifter
from fwdad.eager.lifting.nodes import constant, forget, hook, name_of


class Definitions:
    """Lifts definitions."""

    def __init__(self, lifter: Lifter) -> None:
        self.lifter = lifter
        self.scopes = lifter.scopes

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Any:
        node.decorator_list = [
            hook("decorate", d, self.lifter.visit(d)) for d in node.decorator_list
        ]
        return self.function(node)

    def function(self, node: Any) -> Any:
        """A function without its decorators."""
        node.args = self.lifter.visit(node.args)
        with self.scopes.function(_declared_in(node)):
            node.body = self.lifter.block(node.body)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        node.args = self.lifter.visit(node.args)
        with self.scopes.function():
            node.body = self.lifter.visit(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        with self.scopes.class_body(node.name) as names:
            self.lifter.generic_visit(node)
        if names:  # which a branch may have left unbound
            start = 0 if ast.get_docstring(node, clean=False) is None else 1
            bind: list[ast.expr] = [name_of(n, ast.Store(), node) for n in names]
            unbound: ast.stmt = ast.Assign(bind, constant(None, node))
            node.body.insert(start, ast.copy_location(unbound, node))
            node.body += [forget(n, node) for n in names]
        return node


def _declared_in(node: ast.AST) -> set[str]:
    """The names that a function, or one inside it, declares global or nonlocal."""
    statements = (s for s in ast.walk(node) if isinstance(s, (ast.Global, ast.Nonlocal)))
    return {name for s in statements for name in s.names}
