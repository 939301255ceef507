"""The table of what is traced in place of NumPy's functions, and helpers for these sources.

A source returns ``NotImplemented`` for arguments that it does not support; then NumPy's function is
one operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.register_into import enter_into

SOURCES: dict[Any, Callable[..., Any]] = {}
"""Functions of NumPy, and what is traced in their place."""


def stands_for(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Trace a function in place of NumPy's."""
    return enter_into(SOURCES, functions)


def known(x: Any) -> Any:
    """A number that is needed at tracing time, and is assumed from then on."""
    return x


def refuse(reason: str) -> None:
    """Refuse to trace a source, with a reason for the user."""
    raise NotImplementedError(reason)


def in_rank(axis: Any, rank: int) -> int:
    """An axis counted from the first; NumPy's error if it is out of bounds."""
    axis = known(axis)
    if not -rank <= axis < rank:
        raise np.exceptions.AxisError(axis, rank)
    return axis % rank


def in_order_of(like: Any, y: Any) -> Any:
    """An array, and in the memory order of another one of its shape."""
    if y.ndim < 2:
        return y
    made = np.empty_like(like, dtype=y.dtype)
    made[...] = y
    return made


def along(axis: int, part: Any) -> tuple[Any, ...]:
    """The index of a part along an axis."""
    return (slice(None),) * axis + (part,)
