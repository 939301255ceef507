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
    a call stays one operation on the tape, so that higher derivatives use these rules as well. So
    do the calls of SciPy's functions in the rules of `scipy.linalg`: unlike NumPy's, they know no
    symbols. Those of SciPy's other modules are run whole.
    """
    own = rule.origin.startswith(PACKAGE) and not _is_of_linalg(rule.function)
    return function if own else lifted(function)


def transposed(function: Any, body: Any) -> Any:
    """A transpose of a function, lifted likewise."""
    return lifted(body) if _is_of_linalg(function) else body


def _is_of_linalg(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith("scipy.linalg")
