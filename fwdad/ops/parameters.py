"""What a function that is written in C does with each of its arguments."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any


class Role(enum.Enum):
    """What a function does with an argument."""

    ITEMS = "iterates over it"
    ROWS = "iterates over it, and over each of its items"
    TRUTHS = "iterates over it, and asks whether each item is true"
    FUNCTION = "calls it"
    TEST = "calls it, and asks whether the result is true"
    KEY = "calls it, and compares the results"
    OPTION = "needs its value: a number, or a choice"
    VALUE = "passes it on"
    LIST = "changes it, a list whose items it compares"


class Result(enum.Enum):
    """What a function returns."""

    LAZY = "an iterator, which reads an item when it is asked for one"
    ITERATOR = "an iterator over what has been read at once"
    VALUE = "anything else"


_CALLED = (Role.FUNCTION, Role.TEST, Role.KEY)


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a function: the first ones by name, and the role of all others.

    ``default`` is what it calls if no function is given.
    """

    named: Mapping[str, Role]
    others: Role = Role.VALUE
    result: Result = Result.VALUE
    default: Callable[..., Any] | None = None

    def converter(
        self, convert: Mapping[Role, Callable[[Any], Any]]
    ) -> Callable[[tuple[Any, ...], dict[str, Any]], tuple[Sequence[Any], dict[str, Any]]]:
        """A function that converts the arguments of a call, each as its role wants."""
        by_name = {name: self._converter(convert, role) for name, role in self.named.items()}
        by_position = tuple(by_name.values())
        other, option = convert[self.others], convert[Role.VALUE]
        called = {name: k for k, name in enumerate(self.named) if self.named[name] in _CALLED}
        absent = {name: f for name in called if (f := by_name[name](None)) is not None}
        before = max(called.values(), default=-1)
        first, length = (*by_position, other)[0], len(by_position)

        def converted(
            args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> tuple[Sequence[Any], dict[str, Any]]:
            if kwargs:
                kwargs = {key: by_name.get(key, option)(x) for key, x in kwargs.items()}
            if absent and len(args) <= before:
                kwargs = absent | kwargs
            if len(args) == 1:  # the commonest call
                return (first(args[0]),), kwargs
            turns = by_position if len(args) <= length else chain(by_position, repeat(other))
            return tuple(map(operator.call, turns, args)), kwargs

        return converted

    def _converter(
        self, convert: Mapping[Role, Callable[[Any], Any]], role: Role
    ) -> Callable[[Any], Any]:
        turn = convert[role]
        if role not in _CALLED or self.default is None:
            return turn
        return lambda f: turn(self.default if f is None else f)


UNKNOWN = Parameters({})
"""Those of most functions."""
