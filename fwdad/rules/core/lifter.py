"""Rules' functions as they run on what other rules are about: duals, and symbols of tapes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fwdad.errors import PACKAGE

_LIFT: list[Callable[[Any], Any]] = []


def set_lifter(lift: Callable[[Any], Any]) -> None:
    """Let functions of rules be lifted; the builder, which knows how, stands above the rules."""
    _LIFT[:] = [lift]


def lifted(function: Any) -> Any:
    """A function of a rule, as it runs on duals of an enclosing call."""
    if isinstance(function, functools.partial):
        return functools.partial(lifted(function.func), *function.args, **function.keywords)
    return _LIFT[0](function)


def written_down(rule: Any, function: Any) -> Any:
    """A rule's body, or one of its partials, as it runs on the symbols of a tape.

    What a user's rule calls may have rules of its own, the very function among them: such a call
    stays one on the tape, so that derivatives of the derivative are by these rules as well.
    """
    return function if rule.origin.startswith(PACKAGE) else lifted(function)
