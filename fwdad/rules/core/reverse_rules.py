"""Rules for reverse mode: what a function returns, and how its cotangents are pulled back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from fwdad.rules.core.binding import Binder
from fwdad.rules.core.registry import Rule, function_name, when_writes

ReverseBody = Callable[..., tuple[Any, Callable[[Any], Any]]]
B = TypeVar("B", bound=ReverseBody)


@dataclass(frozen=True, eq=False)
class ReverseRule:
    """One function's reverse rule: ``body(primals, **options) -> (y, pullback)``.

    ``mutates`` are the positions of the primals that the function writes into.
    """

    function: Any
    body: ReverseBody
    binder: Binder
    origin: str
    mutates: tuple[int, ...] = ()

    @property
    def place(self) -> str:
        """The rule, with its file and line: for messages."""
        code = getattr(self.body, "__code__", None)
        at = self.origin if code is None else f"{code.co_filename}:{code.co_firstlineno}"
        return f"the rrule of {function_name(self.function)} ({at})"


RRULES: dict[Any, ReverseRule] = {}


def give_to_contents(rule: Rule) -> None:
    """Give the function that returns new contents the rrule of the one that writes them."""
    backward = RRULES.get(rule.function)
    if backward is not None and rule.pure is not None:
        RRULES[rule.pure] = replace(backward, function=rule.pure, mutates=())


when_writes(give_to_contents)
