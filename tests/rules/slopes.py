"""Derivatives to compare with: mpmath's, at forty digits."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

import fwdad
from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO


def slope(function: Any, *args: Any, argnum: int = 0, **options: Any) -> Any:
    """The derivative of a scalar function by its rule alone."""
    tangents = [ZERO] * len(args)
    tangents[argnum] = Chunk(np.ones(1, np.result_type(args[argnum], np.float64)))
    _, y_dot = call_rule(function, args, tangents, **options)
    if isinstance(y_dot, tuple):
        return tuple(t if t is ZERO else t.lanes[0] for t in y_dot)
    return y_dot.lanes[0]


def second_slope(function: Any, *args: Any, argnum: int = 0) -> Any:
    """The second derivative: the rule's own formula is differentiated."""

    def f(x: Any) -> Any:
        return function(*args[:argnum], x, *args[argnum + 1 :])

    return fwdad.derivative(lambda x: fwdad.derivative(f, x), args[argnum])


def mp_slope(reference: Any, *args: Any, argnum: int = 0, order: int = 1) -> Any:
    """The derivative of mpmath's function at the same floating-point numbers."""
    with mpmath.workdps(40):
        exact = [mpmath.mpmathify(a) for a in args]

        def f(x: Any) -> Any:
            return reference(*exact[:argnum], x, *exact[argnum + 1 :])

        y = mpmath.diff(f, exact[argnum], order)
        return complex(y) if isinstance(args[argnum], complex) else float(mpmath.re(y))
