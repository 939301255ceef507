r"""B-splines of SciPy: ``BSpline``, ``make_interp_spline``, ``make_smoothing_spline`` and others.

.. math:: s(x) = \sum_i c_i B_{i,k}(x), \qquad
    B_{i,d} = \frac{x - t_i}{t_{i+d} - t_i} B_{i,d-1}
    + \frac{t_{i+d+1} - x}{t_{i+d+1} - t_{i+1}} B_{i+1,d-1}

Where x lies in [tₗ, tₗ₊₁), only the k + 1 splines from l - k on are not zero. Their derivatives
with respect to x and to the knots are those of the recursion, by the product rule: no width there
is zero, however many knots coincide. At a knot, the derivative is that of the piece that begins
there. The compiled functions of SciPy have rules here; all else is differentiated through SciPy's
source.

Source of the recursion: de Boor, C. (1972). On calculating with B-splines. Journal of Approximation
Theory 6(1), 50-62. https://doi.org/10.1016/0021-9045(72)90080-9
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.rules.core.by_name import Lazy, refuse_symbols
from fwdad.rules.core.define import frule, locally_constant
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import ZERO, Zero

dierckx = Lazy("scipy.interpolate._dierckx")
bspl = Lazy("scipy.interpolate._bspl")  # what it was called before SciPy 1.15


def intervals(t: Any, k: int, x: Any) -> np.ndarray:
    """The interval [tₗ, tₗ₊₁) that each point lies in; the outer ones go on beyond the ends."""
    t = plain(t)
    return np.clip(np.searchsorted(t, plain(x), "right") - 1, k, len(t) - k - 2)


def splines(
    t: Any, x: Any, left: Any, k: int, nu: int = 0, t_dot: Any = ZERO, x_dot: Any = ZERO
) -> tuple[Any, Any]:
    """The splines that are not zero, shape (points, k + 1), or derivatives of them; the tangents.

    ``left`` is the interval of each point, and ``nu`` the order of the derivative.
    """
    values, dots = [np.ones(len(left))], [ZERO]
    if nu > k:
        return np.zeros((len(left), k + 1)), ZERO
    for d in range(1, k + 1):
        new: list[Any] = [0.0] * (d + 1)
        new_dots: list[Any] = [ZERO] * (d + 1)
        for n, (value, dot) in enumerate(zip(values, dots, strict=True)):
            first, last = left + n + 1 - d, left + n + 1
            begin, end = t[first], t[last]
            width = np.where(begin == end, np.inf, end - begin)  # as SciPy, which leaves them out
            begin_dot, end_dot = t_dot[first], t_dot[last]
            w = value / width
            w_dot = (dot - w * (end_dot - begin_dot)) / width
            if d > k - nu:
                new[n], new[n + 1] = new[n] - d * w, d * w
                new_dots[n], new_dots[n + 1] = new_dots[n] - d * w_dot, d * w_dot
            else:
                new[n], new[n + 1] = new[n] + w * (end - x), w * (x - begin)
                new_dots[n] = new_dots[n] + w_dot * (end - x) + w * (end_dot - x_dot)
                new_dots[n + 1] = w_dot * (x - begin) + w * (x_dot - begin_dot)
        values, dots = new, new_dots
    dot = ZERO if isinstance(dots[0], Zero) else np.stack(dots, axis=-1)
    return np.stack(values, axis=-1), dot


def near(left: Any, k: int) -> np.ndarray:
    """The numbers of the splines that are not zero, a row for each point."""
    return left[:, None] + np.arange(-k, 1)


def combined(b: Any, b_dot: Any, c: Any, c_dot: Any, places: Any) -> Any:
    """The tangent of sums of splines times their coefficients, shape (n, m)."""
    y_dot: Any = ZERO
    if not isinstance(c_dot, Zero):
        y_dot = y_dot + np.einsum("pa,pam->pm", b, c_dot[places])
    if not isinstance(b_dot, Zero):
        y_dot = y_dot + np.einsum("pa,pam->pm", b_dot, c[places])
    return y_dot


# -- values of splines


def _tangent(primals: Any, tangents: Any, y: Any, k: int, nu: int) -> Any:
    (t, c, xp), (t_dot, c_dot, xp_dot) = primals, tangents
    nowhere = np.isnan(plain(xp))
    if np.any(nowhere):  # not to be multiplied by cotangents that are zero
        xp = np.where(nowhere, plain(t)[k], xp)
    left = intervals(t, k, xp)
    b, b_dot = splines(t, xp, left, k, nu, t_dot, xp_dot)
    y_dot = combined(b, b_dot, c, c_dot, near(left, k))
    missing = np.isnan(plain(y))  # beyond the ends, without extrapolation
    if isinstance(y_dot, Zero) or not np.any(missing):
        return y_dot
    return np.where(missing, np.nan, 1.0) * y_dot


@frule(
    "scipy.interpolate._dierckx.evaluate_spline",
    argnums=("t", "c", "xp"),
    signature="(t, c, k, xp, nu, extrapolate)",
)
def evaluate_spline_frule(primals, tangents, *, k, nu, extrapolate):
    """Push tangents through the values at some points, or their derivatives; see the module."""
    for primal in primals:
        refuse_symbols(primal)
    t, c, xp = primals
    y = dierckx.evaluate_spline(t, c, k, xp, nu, extrapolate)
    return y, _tangent(primals, tangents, y, k, nu)


@frule(
    "scipy.interpolate._bspl.evaluate_spline",
    argnums=("t", "c", "xp", "out"),
    signature="(t, c, k, xp, nu, extrapolate, out)",
    mutates=(3,),
)
def evaluate_spline_into_frule(primals, tangents, *, k, nu, extrapolate):
    """Push tangents through the same function of SciPy before 1.15, which writes its result."""
    for primal in primals:
        refuse_symbols(primal)
    t, c, xp, out = primals
    y = np.empty_like(out)
    bspl.evaluate_spline(t, c, k, xp, nu, extrapolate, y)
    return (None, y), (ZERO, _tangent(primals[:3], tangents[:3], y, k, nu))


# -- matrices of values of splines


@frule(
    "scipy.interpolate._dierckx.evaluate_all_bspl",
    argnums=("t", "xval"),
    signature="(t, k, xval, m, nu=0)",
)
def evaluate_all_bspl_frule(primals, tangents, *, k, m, nu=0):
    """Push tangents through the splines that are not zero at a point."""
    for primal in primals:
        refuse_symbols(primal)
    (t, xval), (t_dot, x_dot) = primals, tangents
    y = dierckx.evaluate_all_bspl(t, k, xval, m, nu)
    _, dot = splines(t, xval, np.array([m]), k, nu, t_dot, x_dot)
    return y, dot[0]


def _banded(b_dot: Any, left: Any, k: int, offset: int, ab_dot: Any, shape: Any) -> Any:
    """The tangent of a matrix in LAPACK's bands, transposed, some rows of which were written."""
    column, band = np.indices(shape)
    row = band + column - 2 * k - offset
    point = np.clip(row, 0, len(left) - 1)
    which = column - left[point] + k
    written = (point == row) & (which >= 0) & (which <= k)
    dot: Any = 0.0
    if not isinstance(b_dot, Zero):
        dot = b_dot[point, np.clip(which, 0, k)]
    elif isinstance(ab_dot, Zero):
        return ZERO
    return np.where(written, dot, 0.0 if isinstance(ab_dot, Zero) else ab_dot)


@frule(
    "scipy.interpolate._dierckx._coloc",
    argnums=("x", "t", "ab"),
    signature="(x, t, k, ab, offset)",
    mutates=(2,),
)
def coloc_frule(primals, tangents, *, k, offset):
    """Push tangents through the matrix of the splines at some points; see ``_banded``."""
    for primal in primals:
        refuse_symbols(primal)
    (x, t, ab), (x_dot, t_dot, ab_dot) = primals, tangents
    new = np.array(ab, order="C")
    dierckx._coloc(x, t, k, new, offset)  # noqa: SLF001  (what make_interp_spline calls)
    left = intervals(t, k, x)
    _, b_dot = splines(t, x, left, k, 0, t_dot, x_dot)
    return (None, new), (ZERO, _banded(b_dot, left, k, offset, ab_dot, new.shape))


@frule(
    "scipy.interpolate._dierckx.data_matrix",
    argnums=("x", "t", "w"),
    signature="(x, t, k, w, extrapolate=False)",
)
def data_matrix_frule(primals, tangents, *, k, extrapolate=False):
    """Push tangents through the splines at some points times weights, a row for each point."""
    for primal in primals:
        refuse_symbols(primal)
    (x, t, w), (x_dot, t_dot, w_dot) = primals, tangents
    y = dierckx.data_matrix(x, t, k, w, extrapolate)
    b, b_dot = splines(t, x, intervals(t, k, x), k, 0, t_dot, x_dot)
    return y, (b_dot * w[:, None] + b * w_dot[:, None], ZERO, ZERO)


locally_constant("scipy.interpolate._dierckx.find_interval")
