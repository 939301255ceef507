r"""Piecewise polynomials of SciPy: ``CubicSpline``, ``PchipInterpolator``, ``PPoly`` and others.

.. math:: p(t) = \sum_j c_{j,i} (t - x_i)^{k-1-j}, \quad x_i \le t < x_{i+1}

Each value is linear in the coefficients of the piece that t lies in, and depends on t and on where
the piece begins by the polynomial's own derivative. Where pieces meet, the derivative is that of
the piece that begins there. The three functions are SciPy's compiled ones, which write into the
array that they get; all else is differentiated through SciPy's source.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fwdad.errors import MissingRuleError
from fwdad.rules.core.by_name import Lazy, refuse_symbols
from fwdad.rules.core.define import frule
from fwdad.tangents.laws.listing import dense
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import ZERO, Zero

ppoly = Lazy("scipy.interpolate._ppoly")


def _direction(x: Any) -> int:
    """1 where breakpoints ascend, -1 where they descend."""
    x = plain(x)
    return 1 if x[-1] >= x[0] else -1


def _pieces(x: Any, at: Any) -> np.ndarray:
    """The piece that each point lies in; the outer ones go on beyond the ends."""
    x, at = _direction(x) * plain(x), _direction(x) * plain(at)
    return np.clip(np.searchsorted(x, at, "right") - 1, 0, len(x) - 2)


def _powers(s: Any, k: int, order: int) -> list[Any]:
    """The derivative of that order of each power of s, the highest first; None where it is zero."""
    return [
        math.perm(p, order) * s ** (p - order) if p >= order else None for p in range(k - 1, -1, -1)
    ]


def _values(c: Any, x: Any, at: Any, order: int, extrapolate: bool, like: Any) -> Any:
    out = np.empty_like(like)
    ppoly.evaluate(c, x, at, order, extrapolate, out)
    return out


def _defined(y: Any, y_dot: Any) -> Any:
    """A tangent that is NaN where the value is: beyond the ends, without extrapolation."""
    missing = np.isnan(plain(y))
    if isinstance(y_dot, Zero) or not np.any(missing):
        return y_dot
    return np.where(missing, np.nan, 1.0) * y_dot


@frule(
    "scipy.interpolate._ppoly.evaluate",
    argnums=("c", "x", "xp", "out"),
    signature="(c, x, xp, dx, extrapolate, out)",
    mutates=(3,),
)
def evaluate_frule(primals, tangents, *, dx, extrapolate):
    """Push tangents through the values at some points; see the module."""
    for primal in primals:
        refuse_symbols(primal)
    c, x, xp, out = primals
    c_dot, x_dot, xp_dot, _ = tangents
    given = x, xp, dx, extrapolate
    y, y_dot = _values(c, *given, out), ZERO
    piece = _pieces(x, xp)
    if not isinstance(c_dot, Zero):
        for j, power in enumerate(_powers(xp - x[piece], c.shape[0], dx)):
            if power is not None:
                y_dot = y_dot + power[:, None] * c_dot[j, piece]
    if not (isinstance(xp_dot, Zero) and isinstance(x_dot, Zero)):
        slope = _values(c, x, xp, dx + 1, extrapolate, out)
        y_dot = y_dot + slope * (xp_dot - x_dot[piece])[:, None]
    return (None, y), (ZERO, _defined(y, y_dot))


@frule(
    "scipy.interpolate._ppoly.integrate",
    argnums=("c", "x", "a", "b", "out"),
    signature="(c, x, a, b, extrapolate, out)",
    mutates=(4,),
)
def integrate_frule(primals, tangents, *, extrapolate):
    """Push tangents through an integral: of the coefficients, and of the bounds by the values."""
    for primal in primals:
        refuse_symbols(primal)
    c, x, a, b, out = primals
    c_dot, x_dot, a_dot, b_dot, _ = tangents
    if not isinstance(x_dot, Zero):
        raise MissingRuleError(
            "no rule for integrals of piecewise polynomials whose breakpoints carry a derivative"
        )
    y = np.empty_like(out)
    ppoly.integrate(c, x, a, b, extrapolate, y)
    ends = np.array([a, b]) * 1.0
    y_dot = ZERO
    if not isinstance(c_dot, Zero):
        first, last = (np.min(ends), np.max(ends))[:: _direction(x)]
        starts, stops = x[:-1], x[1:]
        if extrapolate:  # the outer pieces go on
            further = (np.minimum, np.maximum)[:: _direction(x)]
            starts = np.concatenate([further[0](starts[:1], first), starts[1:]])
            stops = np.concatenate([stops[:-1], further[1](stops[-1:], last)])
        low, high = (first, last)[:: _direction(x)]
        lower, upper = np.clip(starts, low, high), np.clip(stops, low, high)
        for j in range(c.shape[0]):
            p = c.shape[0] - j
            weights = ((upper - x[:-1]) ** p - (lower - x[:-1]) ** p) * (_direction(x) / p)
            y_dot = y_dot + np.sum(weights[:, None] * c_dot[j], axis=0)
    values = _values(c, x, ends, 0, extrapolate, np.empty((2, *out.shape), out.dtype))
    y_dot = y_dot + values[1] * b_dot - values[0] * a_dot
    return (None, y), (ZERO, _defined(y, y_dot))


@frule(
    "scipy.interpolate._ppoly.fix_continuity",
    argnums=("c", "x"),
    signature="(c, x, order)",
    mutates=(0,),
)
def fix_continuity_frule(primals, tangents, *, order):
    """Push tangents through what makes a piece begin as the one before it ends."""
    for primal in primals:
        refuse_symbols(primal)
    c, x = primals
    c_dot, x_dot = tangents
    new = c.copy()
    ppoly.fix_continuity(new, x, order)
    if isinstance(c_dot, Zero) and isinstance(x_dot, Zero):
        return (None, new), (ZERO, ZERO)
    n = x_dot.n if isinstance(c_dot, Zero) else c_dot.n
    c_dot = dense(c_dot, c, n)
    h, h_dot = (x[1:-1] - x[:-2])[:, None], (x_dot[1:-1] - x_dot[:-2])[:, None]
    k = c.shape[0]
    rows = [c_dot[k - 1 - p] for p in range(k)]  # by the power of their coefficients
    for of in range(order, -1, -1):
        step = 0.0 * rows[of][:-1]
        for p in range(of + 1, k):
            q, times = p - of, math.comb(p, of)
            step = step + times * h**q * rows[p][:-1]
            step = step + (times * q) * new[k - 1 - p, :-1] * h ** (q - 1) * h_dot
        steps = np.concatenate([0.0 * step[:1], np.cumsum(step, axis=0)])
        rows[of] = rows[of][:1] + steps
    return (None, new), (ZERO, np.stack(rows[::-1]))
