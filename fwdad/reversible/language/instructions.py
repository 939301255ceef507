"""Instructions: statements with an inverse that somebody registered."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.errors import DuplicateRuleError

_INSTRUCTIONS: dict[Any, Instruction] = {}


@dataclass(eq=False)
class Instruction:
    """A registered pair of functions that undo one another.

    Both take all arguments and return the new values of the first ``updated`` ones. Without
    ``adjoint`` it is derived from the rules of what ``forward`` calls.
    """

    forward: Callable[..., Any]
    inverse: Callable[..., Any]
    adjoint: Callable[..., Any] | None
    arity: int
    updated: int


def instruction_of(f: Any) -> Instruction | None:
    """The instruction that a function was registered as."""
    try:
        return _INSTRUCTIONS.get(f)
    except TypeError:
        return None


def register_instruction(
    forward: Callable[..., Any],
    inverse: Callable[..., Any],
    adjoint: Callable[..., Any] | None = None,
    *,
    updated: int | None = None,
) -> Callable[..., Any]:
    """Make a function a statement of reversible programs: ``f(a, b, c)`` updates a and b.

    Parameters
    ----------
    forward : callable
        ``forward(*args)`` returns the new values of the arguments that it updates, one alone as
        it is, several as a tuple. It writes into nothing.
    inverse : callable
        ``inverse(*args)`` returns the values from before.
    adjoint : callable, optional
        ``adjoint(*args, *bars)`` for the arguments before the statement and the cotangents of what
        it updates, after it: returns the cotangents of all arguments, ``None`` for an argument that
        has none. Without it they are derived from the rules of what ``forward`` calls.
    updated : int, optional
        How many arguments it updates, the first ones; all by default.

    Returns
    -------
    callable
        ``forward``. ``(~f)(a, b, c)`` is the statement that undoes it.

    Raises
    ------
    DuplicateRuleError
        If it is registered already.
    """
    if instruction_of(forward) is not None:
        message = f"{forward.__name__} is already registered as an instruction"
        raise DuplicateRuleError(message)
    arity = len(inspect.signature(forward).parameters)
    count = arity if updated is None else updated
    _INSTRUCTIONS[forward] = Instruction(forward, inverse, adjoint, arity, count)
    return forward


def rotate(a: Any, b: Any, theta: Any) -> Any:
    """Rotate the point (a, b) by an angle, in radians, anticlockwise.

    Parameters
    ----------
    a, b : float or array
        Updated when it is a statement of a reversible program.
    theta : float
        Only read.

    Returns
    -------
    tuple
        The new a and b, where it is called by Python.
    """
    c, s = np.cos(theta), np.sin(theta)
    return a * c - b * s, a * s + b * c


def _rotate_back(a: Any, b: Any, theta: Any) -> Any:
    c, s = np.cos(theta), np.sin(theta)
    return a * c + b * s, b * c - a * s


register_instruction(rotate, _rotate_back, updated=2)
