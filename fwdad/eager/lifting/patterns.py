"""Patterns of ``match``, each of which becomes a guard that calls hooks."""

from __future__ import annotations

import ast
from typing import Any

from fwdad.core.pattern_matching import Pattern
from fwdad.eager.lifting.lifter import Lifter
from fwdad.eager.lifting.nodes import constant, function_of, hook, name_of


class Patterns:
    """Lifts ``match``."""

    def __init__(self, lifter: Lifter) -> None:
        self.lifter = lifter
        self.scopes = lifter.scopes

    def visit_Match(self, node: ast.Match) -> Any:
        node.subject = self.lifter.visit(node.subject)
        for case in node.cases:
            self._case(case)
        return node

    def _case(self, case: ast.match_case) -> None:
        """Turn a pattern into a guard that calls hooks, so that Python itself reads nothing."""
        pattern = case.pattern
        guard = None if case.guard is None else self.lifter.visit(case.guard)
        if not (isinstance(pattern, ast.MatchAs) and pattern.pattern is None):
            subject = self.scopes.kept_temporary()
            tests = self._tests(pattern, subject)
            case.pattern = ast.copy_location(ast.MatchAs(None, subject), pattern)
            if guard is not None:
                tests.append(guard)
            guard = (
                tests[0]
                if len(tests) == 1
                else ast.copy_location(ast.BoolOp(ast.And(), tests), pattern)
            )
        case.guard = guard
        case.body = self.lifter.block(case.body)

    def _tests(self, pattern: ast.pattern, subject: str) -> list[ast.expr]:
        read = name_of(subject, ast.Load(), pattern)
        if isinstance(pattern, ast.MatchValue):
            return [hook("eq", pattern, read, self.lifter.visit(pattern.value))]
        parts = Pattern(pattern)
        data = constant(parts.data, pattern)
        values = [self._later(value) for value in parts.expressions]
        asked = hook("matches", pattern, read, data, *values)
        found = self.scopes.kept_temporary()
        kept = ast.NamedExpr(name_of(found, ast.Store(), pattern), asked)
        nothing = constant(None, pattern)
        tests: list[ast.expr] = [
            ast.copy_location(
                ast.Compare(ast.copy_location(kept, pattern), [ast.IsNot()], [nothing]), pattern
            )
        ]
        if parts.names:
            bound: list[ast.expr] = []
            for name in parts.names:
                item = ast.Subscript(
                    name_of(found, ast.Load(), pattern),
                    constant(name, pattern),
                    ast.Load(),
                )
                value = ast.copy_location(item, pattern)
                target = name_of(name, ast.Store(), pattern)
                bound.append(ast.copy_location(ast.NamedExpr(target, value), pattern))
            tests.append(ast.copy_location(ast.List(bound, ast.Load()), pattern))
        return tests

    def _later(self, value: ast.expr) -> ast.expr:
        """An expression of a pattern, as a function that is called when the match comes to it."""
        if self.scopes.in_class:  # a lambda has no class variables
            return hook("constantly", value, self.lifter.visit(value))
        return function_of([], self.lifter.visit(value), value)
