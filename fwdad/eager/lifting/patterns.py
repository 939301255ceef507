"""Patterns of ``match``, each of which becomes a guard that calls hooks."""

from __future__ import annotations

import ast
from typing import Any

from fwdad.core.pattern_matching import Pattern
from fwdad.eager.lifting.expressions import ExpressionLifter


class PatternLifter(ExpressionLifter):
    """A transformer of ``match`` statements and expressions."""

    def visit_Match(self, node: ast.Match) -> Any:
        node.subject = self.visit(node.subject)
        for case in node.cases:
            self._case(case)
        return node

    def _case(self, case: ast.match_case) -> None:
        """Turn a pattern into a guard that calls hooks, so that Python itself reads nothing."""
        pattern = case.pattern
        guard = None if case.guard is None else self.visit(case.guard)
        if not (isinstance(pattern, ast.MatchAs) and pattern.pattern is None):
            subject = self._kept_temporary()
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
        case.body = self._block(case.body)

    def _tests(self, pattern: ast.pattern, subject: str) -> list[ast.expr]:
        read = self._name(subject, ast.Load(), pattern)
        if isinstance(pattern, ast.MatchValue):
            return [self._hook("eq", pattern, read, self.visit(pattern.value))]
        parts = Pattern(pattern)
        data = self._constant(parts.data, pattern)
        values = [self._later(value) for value in parts.expressions]
        asked = self._hook("matches", pattern, read, data, *values)
        found = self._kept_temporary()
        kept = ast.NamedExpr(self._name(found, ast.Store(), pattern), asked)
        nothing = self._constant(None, pattern)
        tests: list[ast.expr] = [
            ast.copy_location(
                ast.Compare(ast.copy_location(kept, pattern), [ast.IsNot()], [nothing]), pattern
            )
        ]
        if parts.names:
            bound: list[ast.expr] = []
            for name in parts.names:
                item = ast.Subscript(
                    self._name(found, ast.Load(), pattern),
                    self._constant(name, pattern),
                    ast.Load(),
                )
                value = ast.copy_location(item, pattern)
                target = self._name(name, ast.Store(), pattern)
                bound.append(ast.copy_location(ast.NamedExpr(target, value), pattern))
            tests.append(ast.copy_location(ast.List(bound, ast.Load()), pattern))
        return tests

    def _later(self, value: ast.expr) -> ast.expr:
        """An expression of a pattern, as a function that is called when the match comes to it."""
        if self._scopes and self._scopes[-1] is not None:  # a lambda has no class variables
            return self._hook("constantly", value, self.visit(value))
        nothing = ast.arguments([], [], None, [], [], None, [])
        return ast.copy_location(ast.Lambda(nothing, self.visit(value)), value)
