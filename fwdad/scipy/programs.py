"""Functions around the user's that are differentiated as if the user had written them.

Like rules, they may meet duals, and are lifted or traced with the function inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def number_of(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose value is the one number in an array or list of f's."""

    def number(x: Any, *args: Any) -> Any:
        return np.ravel(np.asarray(f(x, *args)))[0]

    return number


def second_of(f: Callable[..., Any]) -> Callable[..., Any]:
    """The second of the two values of f, which SciPy calls with ``jac=True``."""

    def second(x: Any, *args: Any) -> Any:
        return np.asarray(f(x, *args)[1])

    return second


def weighted(f: Callable[..., Any], extra: tuple[Any, ...]) -> Callable[..., Any]:
    """The sum of the values of f, each times its multiplier."""

    def total(x: Any, multipliers: Any) -> Any:
        return np.dot(multipliers, np.ravel(np.asarray(f(x, *extra))))

    return total


def with_extra(f: Callable[..., Any], extra: tuple[Any, ...]) -> Callable[..., Any]:
    """The function f with its further arguments bound."""

    def bound(x: Any) -> Any:
        return f(x, *extra)

    return bound
