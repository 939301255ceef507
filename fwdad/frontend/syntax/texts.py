"""Texts that show unknown numbers, of which the known parts stay readable."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from fwdad.errors import Location
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.ir.symbol import UnknownText

_GAP = "…"
_OF_CHARACTERS = {
    *("capitalize", "casefold", "center", "expandtabs", "join", "ljust", "lower", "rjust"),
    *("swapcase", "title", "upper", "zfill"),
}
_CONVERSION = re.compile(r"%(?P<flags>[-#0 +]*\d*(?:\.\d+)?)(?P<kind>[a-zA-Z%])")


def joined(*parts: Any) -> str:
    """An f-string from texts, and from values with their conversion and format."""
    return "".join(
        part if isinstance(part, str) else format(_CONVERSIONS[part[1]](part[0]), part[2])
        for part in parts
    )


_CONVERSIONS: dict[int, Callable[[Any], Any]] = {-1: lambda x: x, 115: str, 114: repr, 97: ascii}


class _Unknown:
    """A placeholder for a number in ``str.format``, whose attributes and items are unknown, too."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, name: str) -> _Unknown:
        return self

    def __getitem__(self, key: Any) -> _Unknown:
        return self

    def __format__(self, spec: str) -> str:
        return self._text

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


def known_part(x: Any) -> str:
    """The part of a text that is known for a value."""
    if isinstance(x, UnknownText):
        return x.known()
    return _GAP if mentions_symbols(x) else str(x)


def formatted(
    text: str, args: tuple[Any, ...], kwargs: dict[str, Any], place: Location | None
) -> str:
    """``text.format(…)`` for unknown values."""
    known_args = [_Unknown(known_part(a)) if mentions_symbols(a) else a for a in args]
    named = {
        key: _Unknown(known_part(a)) if mentions_symbols(a) else a for key, a in kwargs.items()
    }
    recipe = None if kwargs else (str.format, text, *args)
    return UnknownText(place, known_part(text).format(*known_args, **named), recipe)


def interpolated(text: str, values: Any, place: Location | None) -> str:
    """``text % values`` for unknown values; the text of ``%(name)s`` and ``%*d`` is unknown."""
    left = list(values) if type(values) is tuple else [values]
    conversions = list(_CONVERSION.finditer(known_part(text)))
    taken = [c for c in conversions if c["kind"] != "%"]
    recipe = (_modulo, text, *left) if type(values) is tuple else (operator.mod, text, values)
    if len(taken) != len(left):
        return UnknownText(place, recipe=recipe)

    def say(found: re.Match[str]) -> str:
        if found["kind"] == "%":
            return "%"
        value = left.pop(0)
        return known_part(value) if mentions_symbols(value) else found[0] % (value,)

    return UnknownText(place, _CONVERSION.sub(say, known_part(text)), recipe)


def _modulo(text: str, *values: Any) -> str:
    return text % values


def text_of_method(text: str, name: str, args: Any, kwargs: Any, place: Location | None) -> str:
    """The result of a method of a text with unknown parts or arguments.

    ``UntraceableError`` if that is no text, or may be an empty one.
    """
    if name == "format":
        return formatted(text, args, kwargs, place)
    if name == "join" and type(args[0]) in (list, tuple) and not isinstance(text, UnknownText):
        return UnknownText(place, text.join(map(known_part, args[0])))
    if name in _OF_CHARACTERS or (name == "strip" and not args) or _is_replaced(text, name, args):
        return UnknownText(place)
    return UnknownText(place).refuse()


def _is_replaced(text: str, name: str, args: Any) -> bool:
    return name == "replace" and bool(text) and len(args) > 1 and bool(args[1])
