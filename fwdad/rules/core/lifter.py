"""Lifting of rules' functions, so that they run on duals and on the symbols of a tape."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fwdad.errors import PACKAGE

_LIFT: list[Callable[[Any], Any]] = []


def set_lifter(lift: Callable[[Any], Any]) -> None:
    """Install the lifter; the builder, which provides it, is a layer above the rules."""
    _LIFT[:] = [lift]


def lifted(function: Any) -> Any:
    """A function of a rule, lifted to run on the duals of an enclosing call."""
    if isinstance(function, functools.partial):
        return functools.partial(lifted(function.func), *function.args, **function.keywords)
    return _LIFT[0](function)


def written_down(rule: Any, function: Any) -> Any:
    """A rule's body, or one of its partials, lifted to run on the symbols of a tape.

    A user's rule may call functions that have rules of their own, its own function among them: such
    a call stays one operation on the tape, so that higher derivatives use these rules as well.
    """
    return function if rule.origin.startswith(PACKAGE) else lifted(function)
