"""Lifting of rules' functions, so that they run on duals and on the symbols of a tape."""

from __future__ import annotations

import functools
import types
from typing import Any

from fwdad.eager.lifting.lift import lift
from fwdad.errors import PACKAGE


def lifted(function: Any) -> Any:
    """A function of a rule, lifted to run on the duals of an enclosing call."""
    if isinstance(function, functools.partial):
        return functools.partial(lifted(function.func), *function.args, **function.keywords)
    if not isinstance(function, types.FunctionType):
        return function
    return lift(function) or function


def written_down(rule: Any, function: Any) -> Any:
    """A rule's body, or one of its partials, lifted to run on the symbols of a tape.

    A user's rule may call functions that have rules of their own, its own function among them: such
    a call stays one operation on the tape, so that higher derivatives use these rules as well.
    """
    return function if rule.origin.startswith(PACKAGE) else lifted(function)
