"""``match``: structure and types are known at tracing time, values are compared at run time."""

from __future__ import annotations

import ast
import operator
from typing import Any

from fwdad.errors import UntraceableError
from fwdad.frontend.calls.tables import BUILTINS
from fwdad.frontend.syntax.blocks import Blocks
from fwdad.frontend.syntax.conditions import Conditions
from fwdad.frontend.syntax.control import branch
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.scopes import Scopes
from fwdad.frontend.syntax.symbols import Optional
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol

_WHOLE = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)


class Matching:
    """Execution of ``match``."""

    def __init__(
        self, tracer: Tracer, scopes: Scopes, conditions: Conditions, blocks: Blocks
    ) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.scopes = scopes
        self.conditions = conditions
        self.blocks = blocks

    def run_Match(self, node: ast.Match) -> None:
        self._cases(self.tracer.evaluate(node.subject), node.cases)

    def _cases(self, x: Any, cases: list[ast.match_case]) -> None:
        if not cases:
            return
        case, *later = cases
        matcher = Matcher(self.tracer, self.conditions)
        fits = matcher.match(case.pattern, x)

        def run() -> None:
            for name, value in matcher.names.items():
                self.scopes.bind_name(name, value)
            if case.guard is None:
                self.blocks.run_block(case.body)
                return
            guard = self.tracer.truth(self.tracer.evaluate(case.guard))
            branch(
                self.recorder,
                guard,
                lambda: self.blocks.run_block(case.body),
                lambda: self._cases(x, later),
            )

        branch(self.recorder, fits, run, lambda: self._cases(x, later))


class Matcher:
    """A match of one subject against one pattern; ``names`` are those that the pattern binds."""

    def __init__(self, tracer: Tracer, conditions: Conditions) -> None:
        self.tracer = tracer
        self.conditions = conditions
        self.names: dict[str, Any] = {}

    def match(self, pattern: ast.pattern, x: Any) -> Any:
        """Whether a pattern fits: a bool, or a symbol of one."""
        if isinstance(x, Optional) and not isinstance(pattern, ast.MatchAs):
            if isinstance(pattern, ast.MatchSingleton) and pattern.value is None:
                return self.conditions.compare(ast.Is(), x, None)
            message = "`match` of a value that may be None cannot be traced: test `is None` first"
            raise UntraceableError(message, self.tracer.position.place_of(pattern))
        return getattr(self, f"_{type(pattern).__name__}")(pattern, x)

    def _all(self, pairs: list[tuple[ast.pattern, Any]]) -> Any:
        all_match: Any = True
        for pattern, x in pairs:
            fits = self.match(pattern, x)
            if fits is False:
                return False
            if fits is not True:
                both = (all_match, fits)
                all_match = fits if all_match is True else self._apply(operator.and_, both)
        return all_match

    def _apply(self, function: Any, args: tuple[Any, ...]) -> Any:
        return self.tracer.recorder.apply(function, args, {})

    def _MatchValue(self, pattern: ast.MatchValue, x: Any) -> Any:
        value = self.tracer.evaluate(pattern.value)
        return self.tracer.truth(self.tracer.binary(operator.eq, x, value))

    def _MatchSingleton(self, pattern: ast.MatchSingleton, x: Any) -> Any:
        return self.conditions.compare(ast.Is(), x, pattern.value)

    def _MatchAs(self, pattern: ast.MatchAs, x: Any) -> Any:
        fits = True if pattern.pattern is None else self.match(pattern.pattern, x)
        if pattern.name is not None:
            self.names[pattern.name] = x
        return fits

    def _MatchOr(self, pattern: ast.MatchOr, x: Any) -> Any:
        some_match: Any = False
        before = dict(self.names)
        for k, one in enumerate(pattern.patterns):
            fits = self.match(one, x)
            if fits is True and some_match is False:
                return True
            if fits is False:
                self.names = dict(before)
                continue
            if self.names != before and k + 1 < len(pattern.patterns):
                message = (
                    "alternatives of a pattern that bind names and compare values cannot be "
                    "traced: use `if`"
                )
                raise UntraceableError(message, self.tracer.position.place_of(pattern))
            some_match = (
                fits if some_match is False else self._apply(operator.or_, (some_match, fits))
            )
        return some_match

    def _MatchSequence(self, pattern: ast.MatchSequence, x: Any) -> Any:
        if not isinstance(x, (tuple, list)):
            return False
        patterns = pattern.patterns
        starred = [k for k, p in enumerate(patterns) if isinstance(p, ast.MatchStar)]
        if not starred:
            return len(x) == len(patterns) and self._all(list(zip(patterns, x, strict=True)))
        (k,) = starred
        after = len(patterns) - k - 1
        if len(x) < len(patterns) - 1:
            return False
        star = patterns[k]
        assert isinstance(star, ast.MatchStar)
        if star.name is not None:
            rest = list(x[k : len(x) - after])
            self.names[star.name] = self.tracer.recorder.journal.fresh(rest)
        heads, tails = (
            zip(patterns[:k], x, strict=False),
            zip(patterns[k + 1 :], x[len(x) - after :], strict=True),
        )
        return self._all([*heads, *tails])

    def _MatchMapping(self, pattern: ast.MatchMapping, x: Any) -> Any:
        if not isinstance(x, dict):
            return False
        keys = [self.tracer.values.known(self.tracer.evaluate(key)) for key in pattern.keys]
        if any(key not in x for key in keys):
            return False
        if pattern.rest is not None:
            rest = {key: item for key, item in x.items() if key not in keys}
            self.names[pattern.rest] = self.tracer.recorder.journal.fresh(rest)
        return self._all([(p, x[key]) for p, key in zip(pattern.patterns, keys, strict=True)])

    def _MatchClass(self, pattern: ast.MatchClass, x: Any) -> Any:
        cls = self.tracer.evaluate(pattern.cls)
        if not BUILTINS[isinstance](self.tracer, x, cls):
            return False
        if pattern.patterns and cls in _WHOLE:
            return self.match(pattern.patterns[0], x)
        names = [*getattr(cls, "__match_args__", ())[: len(pattern.patterns)], *pattern.kwd_attrs]
        patterns = [*pattern.patterns, *pattern.kwd_patterns]
        if len(names) < len(patterns):
            message = f"{cls.__name__}() accepts fewer positional sub-patterns"
            raise AlwaysRaises(TypeError, (message,))
        if type(x) is not Symbol and any(not hasattr(x, name) for name in names):
            return False
        pairs = [(p, self.tracer.attribute(x, n)) for p, n in zip(patterns, names, strict=True)]
        return self._all(pairs)
