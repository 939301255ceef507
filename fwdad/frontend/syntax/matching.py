"""``match``: structure and types are known at tracing time, values are compared at run time."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Sequence
from typing import Any, NoReturn

from fwdad.core.pattern_matching import ABSENT, Matcher, Pattern
from fwdad.errors import UntraceableError
from fwdad.frontend.calls.tables import BUILTINS
from fwdad.frontend.slots import class_attribute
from fwdad.frontend.syntax.blocks import Blocks
from fwdad.frontend.syntax.conditions import Conditions
from fwdad.frontend.syntax.control import branch
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.scopes import Scopes
from fwdad.frontend.syntax.symbols import Optional
from fwdad.frontend.syntax.tracer import Tracer


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
        pattern = Pattern(case.pattern)
        values = [functools.partial(self.tracer.evaluate, e) for e in pattern.expressions]
        names: dict[str, Any] = {}
        reader = Reader(self.tracer, self.conditions, case.pattern)
        fits = Matcher(reader, values).match(pattern.data, x, names)

        def run() -> None:
            for name, value in names.items():
                self.scopes.bind_name(name, value)
            if case.guard is None:
                self.blocks.run_block(case.body)
                return
            guard = self.tracer.test(case.guard)
            branch(
                self.recorder,
                guard,
                lambda: self.blocks.run_block(case.body),
                lambda: self._cases(x, later),
            )

        branch(self.recorder, fits, run, lambda: self._cases(x, later))


class Reader:
    """Reads the subject of a ``case``, whose values are symbols."""

    def __init__(self, tracer: Tracer, conditions: Conditions, pattern: ast.pattern) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.conditions = conditions
        self.pattern = pattern

    def _refusal(self, message: str) -> UntraceableError:
        return UntraceableError(message, self.tracer.position.place_of(self.pattern))

    def _certain(self, x: Any) -> Any:
        if isinstance(x, Optional):
            message = "`match` of a value that may be None cannot be traced: test `is None` first"
            raise self._refusal(message)
        return x

    def equal(self, x: Any, value: Any) -> Any:
        return self.tracer.truth(self.tracer.binary(operator.eq, self._certain(x), value))

    def identical(self, x: Any, value: Any) -> Any:
        return self.conditions.compare(ast.Is(), x if value is None else self._certain(x), value)

    def both(self, one: Any, other: Any) -> Any:
        if one is True or other is True:
            return other if one is True else one
        return self.recorder.apply(operator.and_, (one, other), {})

    def either(self, one: Any, other: Any, *, binds: bool) -> Any:
        if binds:
            message = (
                "alternatives of a pattern that bind names and compare values cannot be "
                "traced: use `if`"
            )
            raise self._refusal(message)
        return other if one is False else self.recorder.apply(operator.or_, (one, other), {})

    def items(self, x: Any) -> list[Any] | None:
        return list(x) if isinstance(self._certain(x), (tuple, list)) else None

    def is_mapping(self, x: Any) -> bool:
        return isinstance(self._certain(x), dict)

    def length(self, x: Any) -> int:
        return len(x)

    def key(self, value: Any) -> Any:
        return self.tracer.values.known(value)

    def item(self, x: Any, key: Any) -> Any:
        return dict.get(x, key, ABSENT)

    def others(self, x: Any, keys: Sequence[Any]) -> dict[Any, Any]:
        others = {key: item for key, item in x.items() if key not in keys}
        return self.recorder.journal.fresh(others)

    def is_instance(self, x: Any, cls: Any) -> bool:
        found: bool = BUILTINS[isinstance](self.tracer, self._certain(x), cls)
        return found

    def declared(self, cls: type) -> Any:
        name = "__match_args__"
        self.tracer.outside.guard_class(cls, name, class_attribute(cls, name))
        return getattr(cls, name, ABSENT)

    def attribute(self, x: Any, name: str) -> Any:
        return BUILTINS[getattr](self.tracer, x, name, ABSENT)

    def new(self, items: list[Any]) -> list[Any]:
        return self.recorder.journal.fresh(items)

    def fail(self, exception: type[Exception], message: str) -> NoReturn:
        raise AlwaysRaises(exception, (message,))
