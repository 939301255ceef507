"""What is traced in the place of NumPy's functions, and the words that it is written in.

A source returns ``NotImplemented`` for arguments that it does not know; then NumPy's function is
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
    """Trace a function in the place of NumPy's."""
    return enter_into(SOURCES, functions)


def known(x: Any) -> Any:
    """A number that is needed when the program is traced: it is assumed from then on."""
    return x


def refuse(reason: str) -> None:
    """Refuse to trace what is written here; the reason is for the user."""
    raise NotImplementedError(reason)


def in_rank(axis: Any, rank: int) -> int:
    """An axis counted from the first, or NumPy's error."""
    axis = known(axis)
    if not -rank <= axis < rank:
        raise np.exceptions.AxisError(axis, rank)
    return axis % rank


def along(axis: int, part: Any) -> tuple[Any, ...]:
    """The index of a part along an axis."""
    return (slice(None),) * axis + (part,)
