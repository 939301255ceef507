"""``match`` in lifted code: what a pattern reads of its subject goes through the hooks.

Python itself reads the attributes that a class pattern names, and so would run a user's property
without the dispatcher. The lifter therefore calls :func:`matches`, with the pattern as data.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from fwdad.core.pattern_matching import ABSENT, Matcher
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.hooks.attributes import attr
from fwdad.eager.hooks.iteration import iterate
from fwdad.eager.hooks.method_calls import method
from fwdad.eager.hooks.operators import OPERATORS
from fwdad.eager.hooks.subscripts import getitem
from fwdad.tangents.plain import plain


def matches(
    subject: Any, pattern: tuple[Any, ...], *values: Callable[[], Any]
) -> dict[str, Any] | None:
    """The names that one ``case`` binds for a subject; None if its pattern does not match.

    ``values`` compute the expressions in the pattern.
    """
    names: dict[str, Any] = {}
    return names if Matcher(_READER, values).match(pattern, subject, names) else None


class _Reader:
    """Reads subjects through the hooks."""

    def equal(self, x: Any, value: Any) -> bool:
        return bool(OPERATORS[operator.eq](x, value))

    def identical(self, x: Any, value: Any) -> bool:
        return x is value

    def both(self, one: bool, other: bool) -> bool:
        return one and other

    def either(self, one: bool, other: bool, *, binds: bool) -> bool:
        del binds
        return one or other

    def items(self, x: Any) -> list[Any] | None:
        # an array is a sequence since NumPy 2.5, and then a dual array is one as well
        match plain(x) if isinstance_dual(x) else x:
            case [*_]:
                return list(iterate(x))
        return None

    def is_mapping(self, x: Any) -> bool:
        match x:
            case {}:
                return True
        return False

    def length(self, x: Any) -> int:
        length: int = call(len, x)
        return length

    def key(self, value: Any) -> Any:
        return value

    def item(self, x: Any, key: Any) -> Any:
        return method(x, "get", key, ABSENT)

    def others(self, x: Any, keys: Sequence[Any]) -> dict[Any, Any]:
        names = [k for k in iterate(x) if k not in keys]
        return {k: getitem(x, k) for k in names}

    def declared(self, cls: type) -> Any:
        return getattr(cls, "__match_args__", ABSENT)

    def is_instance(self, x: Any, cls: Any) -> bool:
        match x:
            case cls():  # and Python's own error if it is no class
                return True
        return False

    def attribute(self, x: Any, name: str) -> Any:
        try:
            return attr(x, name)
        except AttributeError:
            return ABSENT

    def new(self, items: list[Any]) -> list[Any]:
        return items

    def fail(self, exception: type[Exception], message: str) -> NoReturn:
        raise exception(message)


_READER = _Reader()


def constantly(value: Any) -> Callable[[], Any]:
    """A function that returns a value that is already known."""
    return lambda: value
