"""Patterns of ``match``, each of which becomes a guard that calls hooks."""

from __future__ import annotations

import ast
from typing import Any

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
        names: list[str] = []
        data = self._pattern_data(pattern, names)
        asked = self._hook("matches", pattern, read, data)
        found = self._kept_temporary()
        kept = ast.NamedExpr(self._name(found, ast.Store(), pattern), asked)
        nothing = self._constant(None, pattern)
        tests: list[ast.expr] = [
            ast.copy_location(
                ast.Compare(ast.copy_location(kept, pattern), [ast.IsNot()], [nothing]), pattern
            )
        ]
        if names:
            bound: list[ast.expr] = []
            for name in dict.fromkeys(names):
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

    def _pattern_data(self, pattern: ast.pattern, names: list[str]) -> ast.expr:
        """A pattern as the tuple that :mod:`fwdad.eager.calls.matching` reads."""

        def data(kind: str, *parts: Any) -> ast.expr:
            return tuple_of([self._constant(kind, pattern), *(literal(p) for p in parts)])

        def tuple_of(items: list[ast.expr]) -> ast.expr:
            return ast.copy_location(ast.Tuple(items, ast.Load()), pattern)

        def literal(part: Any) -> ast.expr:
            return part if isinstance(part, ast.expr) else self._constant(part, pattern)

        def inner(parts: list[ast.pattern]) -> list[ast.expr]:
            return [self._pattern_data(p, names) for p in parts]

        def later(value: ast.expr) -> ast.expr:
            if self._scopes and self._scopes[-1] is not None:  # a lambda has no class variables
                return self._hook("constantly", pattern, self.visit(value))
            nothing = ast.arguments([], [], None, [], [], None, [])
            return ast.copy_location(ast.Lambda(nothing, self.visit(value)), pattern)

        def bind(name: str | None) -> str | None:
            if name is not None:
                names.append(name)
            return name

        match pattern:
            case ast.MatchValue():
                return data("value", later(pattern.value))
            case ast.MatchSingleton():
                return data("singleton", pattern.value)
            case ast.MatchOr():
                return data("or", *inner(pattern.patterns))
            case ast.MatchAs():
                held = None if pattern.pattern is None else inner([pattern.pattern])[0]
                return data("as", held, bind(pattern.name))
            case ast.MatchSequence():
                star, rest = -1, None
                parts = []
                for k, part in enumerate(pattern.patterns):
                    if isinstance(part, ast.MatchStar):
                        star, rest = k, bind(part.name)
                    else:
                        parts.extend(inner([part]))
                return data("sequence", star, rest, *parts)
            case ast.MatchMapping():
                keys = tuple_of([later(k) for k in pattern.keys])
                return data("mapping", keys, tuple_of(inner(pattern.patterns)), bind(pattern.rest))
            case ast.MatchClass():
                attributes = tuple_of([self._constant(n, pattern) for n in pattern.kwd_attrs])
                return data(
                    "class",
                    later(pattern.cls),
                    tuple_of(inner(pattern.patterns)),
                    attributes,
                    tuple_of(inner(pattern.kwd_patterns)),
                )
        message = f"unknown kind of match pattern: {type(pattern).__name__}"
        raise NotImplementedError(message)
