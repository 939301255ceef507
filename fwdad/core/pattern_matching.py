"""``match``: what a pattern reads of its subject, and whether it fits.

How a subject is read is up to a :class:`Reader`: on duals, through hooks; in a trace, on symbols.
A pattern is data, nested tuples of its kind and parts, so that lifted code can hold it as a
constant; expressions in it are numbered, and evaluated when the match comes to them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NoReturn, Protocol

_WHOLE = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Classes whose one positional sub-pattern is matched by the subject itself."""

ABSENT = object()
"""The value of an attribute or a key that the subject does not have."""


class Pattern:
    """A pattern as ``data``, its ``expressions``, and the ``names`` that it binds."""

    def __init__(self, pattern: ast.pattern) -> None:
        self.expressions: list[ast.expr] = []
        self.names: list[str] = []
        self.data = self._data(pattern)

    def _number(self, expression: ast.expr) -> int:
        self.expressions.append(expression)
        return len(self.expressions) - 1

    def _bound(self, name: str | None) -> str | None:
        if name is not None and name not in self.names:
            self.names.append(name)
        return name

    def _each(self, patterns: Iterable[ast.pattern]) -> tuple[Any, ...]:
        return tuple([self._data(p) for p in patterns])

    def _data(self, pattern: ast.pattern) -> tuple[Any, ...]:
        data: tuple[Any, ...]
        match pattern:
            case ast.MatchValue(value):
                data = "value", self._number(value)
            case ast.MatchSingleton(value):
                data = "singleton", value
            case ast.MatchOr(patterns):
                data = "or", self._each(patterns)
            case ast.MatchAs(inner, name):
                data = "as", inner and self._data(inner), self._bound(name)
            case ast.MatchSequence(patterns):
                stars = [k for k, p in enumerate(patterns) if isinstance(p, ast.MatchStar)]
                names = [p.name for p in patterns if isinstance(p, ast.MatchStar)]
                parts = self._each(p for p in patterns if not isinstance(p, ast.MatchStar))
                data = "sequence", parts, *stars, *map(self._bound, names)
            case ast.MatchMapping(keys, patterns, rest):
                numbers = tuple(map(self._number, keys))
                data = "mapping", numbers, self._each(patterns), self._bound(rest)
            case ast.MatchClass(cls, positional, names, keyword):
                number = self._number(cls)
                data = "class", number, self._each(positional), tuple(names), self._each(keyword)
            case _:
                message = f"unknown kind of match pattern: {type(pattern).__name__}"
                raise NotImplementedError(message)
        return data


class Reader(Protocol):
    """How subjects are read. Where a truth is returned, it may be a symbol of one."""

    def equal(self, x: Any, value: Any) -> Any:
        """The truth of ``x == value``."""

    def identical(self, x: Any, value: Any) -> Any:
        """The truth of ``x is value``, which is None, True or False."""

    def both(self, one: Any, other: Any) -> Any:
        """``one and other``, neither of which is False."""

    def either(self, one: Any, other: Any, *, binds: bool) -> Any:
        """``one or other``, where ``other`` is not False; ``binds`` if names depend on which."""

    def items(self, x: Any) -> list[Any] | None:
        """The items of a sequence; None for anything else."""

    def is_mapping(self, x: Any) -> bool:
        """Whether x is a mapping."""

    def length(self, x: Any) -> int:
        """The length of a mapping."""

    def key(self, value: Any) -> Any:
        """A value as a key."""

    def item(self, x: Any, key: Any) -> Any:
        """The value of a mapping for a key, or ``ABSENT``."""

    def others(self, x: Any, keys: Sequence[Any]) -> dict[Any, Any]:
        """A mapping without some keys, as a new dict."""

    def is_instance(self, x: Any, cls: Any) -> bool:
        """Whether x is an instance of a class."""

    def declared(self, cls: type) -> Any:
        """What a class has as its ``__match_args__``, or ``ABSENT``."""

    def attribute(self, x: Any, name: str) -> Any:
        """An attribute, or ``ABSENT``."""

    def new(self, items: list[Any]) -> list[Any]:
        """A new list."""

    def fail(self, exception: type[Exception], message: str) -> NoReturn:
        """Raise an exception of the program's."""


class Matcher:
    """Matches subjects with patterns; ``values`` are the expressions of the pattern."""

    def __init__(self, reader: Reader, values: Sequence[Callable[[], Any]]) -> None:
        self.reader = reader
        self.values = values

    def match(self, data: tuple[Any, ...], x: Any, names: dict[str, Any]) -> Any:
        """Whether a pattern fits: a bool, or a symbol of one. ``names`` gets what it binds."""
        kind, *parts = data
        return self._KINDS[kind](self, x, names, *parts)

    def _all(self, names: dict[str, Any], patterns: Any, xs: Any) -> Any:
        found: Any = True
        for pattern, x in zip(patterns, xs, strict=True):
            fits = self.match(pattern, x, names)
            if fits is False:
                return False
            found = self.reader.both(found, fits)
        return found

    def _match_value(self, x: Any, _names: dict[str, Any], number: int) -> Any:
        return self.reader.equal(x, self.values[number]())

    def _match_singleton(self, x: Any, _names: dict[str, Any], value: Any) -> Any:
        return self.reader.identical(x, value)

    def _match_as(self, x: Any, names: dict[str, Any], inner: Any, name: str | None) -> Any:
        fits = True if inner is None else self.match(inner, x, names)
        if name is not None:
            names[name] = x
        return fits

    def _match_or(self, x: Any, names: dict[str, Any], choices: tuple[Any, ...]) -> Any:
        found: Any = False
        for choice in choices:
            bound: dict[str, Any] = {}
            fits = self.match(choice, x, bound)
            if fits is False:
                continue
            names.update(bound)
            if fits is True and found is False:
                return True
            binds = bool(bound) and choice is not choices[-1]
            found = self.reader.either(found, fits, binds=binds)
        return found

    def _match_sequence(
        self,
        x: Any,
        names: dict[str, Any],
        parts: tuple[Any, ...],
        star: int | None = None,
        name: str | None = None,
    ) -> Any:
        items = self.reader.items(x)
        if items is None or len(items) < len(parts):
            return False
        if star is None:
            return len(items) == len(parts) and self._all(names, parts, items)
        end = len(items) - (len(parts) - star)
        if name is not None:
            names[name] = self.reader.new(items[star:end])
        return self._all(names, parts, items[:star] + items[end:])

    def _match_mapping(
        self, x: Any, names: dict[str, Any], keys: Any, parts: Any, rest: str | None
    ) -> Any:
        if not self.reader.is_mapping(x) or (keys and self.reader.length(x) < len(keys)):
            return False
        seen: list[Any] = []
        for number in keys:
            key = self.reader.key(self.values[number]())
            if key in seen:
                message = f"mapping pattern checks duplicate key ({key!r})"
                self.reader.fail(ValueError, message)
            seen.append(key)
        values = []
        for key in seen:
            values.append(self.reader.item(x, key))
            if values[-1] is ABSENT:
                return False
        fits = self._all(names, parts, values)
        if rest is not None and fits is not False:
            names[rest] = self.reader.others(x, seen)
        return fits

    def _match_class(
        self,
        x: Any,
        names: dict[str, Any],
        number: int,
        positional: tuple[Any, ...],
        attributes: tuple[str, ...],
        keyword: tuple[Any, ...],
    ) -> Any:
        cls = self.values[number]()
        if not self.reader.is_instance(x, cls):
            return False
        values = []
        if positional:
            declared = self.reader.declared(cls)
            whole = declared is ABSENT and issubclass(cls, _WHOLE)
            declared = () if declared is ABSENT else declared
            self._check_positional(cls, declared, len(positional), whole=whole)
            attributes = declared[: len(positional)] + attributes
            values = [x] if whole else []
        for k, name in enumerate(attributes):
            if name in attributes[:k]:
                message = f"{cls.__name__}() got multiple sub-patterns for attribute {name!r}"
                self.reader.fail(TypeError, message)
            values.append(self.reader.attribute(x, name))
            if values[-1] is ABSENT:
                return False
        return self._all(names, (*positional, *keyword), values)

    def _check_positional(self, cls: type, declared: Any, given: int, *, whole: bool) -> None:
        """Check the names behind positional sub-patterns, with Python's own messages."""
        if type(declared) is not tuple:
            of = type(declared).__name__
            message = f"{cls.__name__}.__match_args__ must be a tuple (got {of})"
            self.reader.fail(TypeError, message)
        accepted = 1 if whole else len(declared)
        if given > accepted:
            plural = "" if accepted == 1 else "s"
            message = (
                f"{cls.__name__}() accepts {accepted} positional sub-pattern{plural} "
                f"({given} given)"
            )
            self.reader.fail(TypeError, message)

    _KINDS: ClassVar[dict[str, Callable[..., Any]]] = {
        "value": _match_value,
        "singleton": _match_singleton,
        "as": _match_as,
        "or": _match_or,
        "sequence": _match_sequence,
        "mapping": _match_mapping,
        "class": _match_class,
    }
