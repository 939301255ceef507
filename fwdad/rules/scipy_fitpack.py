r"""FITPACK's splines in SciPy, and least squares: ``splrep``, ``UnivariateSpline`` and others.

With fixed knots the coefficients are linear in the data:

.. math:: c = (B^T W^2 B)^{-1} B^T W^2 y

So they are where the data are interpolated (s = 0), where the knots are given, and where s is so
large that a polynomial satisfies it: its knots are the ends. Of other smoothing splines the knots
and the smoothing depend on the data by way of a search; that is refused. One step of iterative
refinement makes up for the condition of the normal equations, which is that of B, squared.

Source of the refinement: Björck, Å. (1987). Stability analysis of the method of seminormal
equations for linear least squares problems. Linear Algebra and its Applications 88-89, 31-48.
https://doi.org/10.1016/0024-3795(87)90101-7
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import MissingRuleError
from fwdad.rules.core.adjoints import Space, into, transpose
from fwdad.rules.core.by_name import Lazy, apply_linear, refuse_symbols
from fwdad.rules.core.define import call_rule, frule
from fwdad.rules.core.registry import when_imported
from fwdad.rules.scipy_splines import combined, intervals, near, splines
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import ZERO, Zero, undefined

bsplines = Lazy("scipy.interpolate._bsplines")
fitpack2 = Lazy("scipy.interpolate._fitpack2")
linalg = Lazy("scipy.linalg")
sparse = Lazy("scipy.sparse")


def _refuse(name: str, *tangents: Any) -> None:
    if not all(isinstance(t, Zero) for t in tangents):
        raise MissingRuleError(
            f"{name} has a rule for the derivative with respect to the data only: those with "
            "respect to places, knots and weights are not there. make_interp_spline has those "
            "with respect to places"
        )


# -- least squares with fixed knots


def fitted(y: Any, x: Any, t: Any, w: Any, k: int, adjoint: bool = False) -> Any:
    """The coefficients of the spline that fits the columns of y best; or the adjoint of that."""
    n, order = len(t) - k - 1, k + 1
    if n < order or len(x) < n:
        raise ValueError(f"{len(x)} points and {len(t)} knots have no spline of degree {k}")
    left = intervals(t, k, x)
    b, _ = splines(t, x, left, k)
    starts = np.arange(0, len(x) * order + 1, order)
    matrix = sparse.csr_array((b.ravel(), near(left, k).ravel(), starts), shape=(len(x), n))
    if len(x) == n:  # it interpolates
        square = matrix.T if adjoint else matrix
        band = np.zeros((2 * k + 1, n))
        for d in range(-k, k + 1):
            band[k - d, max(d, 0) : n + min(d, 0)] = square.diagonal(d)
        return linalg.solve_banded((k, k), band, y)
    weights = np.reshape(np.square(w), (-1,) + (1,) * (y.ndim - 1))
    normal = matrix.T @ sparse.diags_array(np.square(w)) @ matrix
    half = np.zeros((order, n))
    for d in range(order):
        half[d, : n - d] = normal.diagonal(d)
    factor = linalg.cholesky_banded(half, lower=True), True

    def solve(z: Any) -> Any:
        return linalg.cho_solve_banded(factor, z)

    if adjoint:
        first = weights * (matrix @ solve(y))
        return first + weights * (matrix @ solve(y - matrix.T @ first))
    first = solve(matrix.T @ (weights * y))
    return first + solve(matrix.T @ (weights * (y - matrix @ first)))


def _fit_lanes(y_dot: Any, y: Any, *given: Any) -> Any:
    return apply_linear(fitted, (y_dot, *given), 0, lambda z: fitted(z, *given), y=y)


@frule(fitted, argnums=("y",))
def fitted_frule(primals, tangents, *, x, t, w, k, adjoint=False):
    """Fit all lanes at once, with one factorisation."""
    (y,), (y_dot,) = primals, tangents
    given = x, t, w, k, adjoint
    c = fitted(y, *given)
    return c, _fit_lanes(y_dot, c, *given)


@transpose(fitted)
def fitted_transpose(
    c_bar: Any, y: Space, x: Any, t: Any, w: Any, k: int, adjoint: bool = False
) -> Any:
    """The adjoint; that of the adjoint is the fit."""
    refuse_symbols(c_bar)
    return into(y, _fit_lanes(c_bar, None, x, t, w, k, not adjoint))


@frule("scipy.interpolate._bsplines._lsq_solve_qr", argnums=("x", "y", "t", "w"))
def lsq_solve_qr_frule(primals, tangents, *, k, periodic=False):
    """Push tangents through what ``make_lsq_spline`` calls: of its results, the coefficients."""
    for primal in primals:
        refuse_symbols(primal)
    (x, y, t, w), (x_dot, y_dot, t_dot, w_dot) = primals, tangents
    _refuse("make_lsq_spline", x_dot, t_dot, w_dot)
    if periodic and not isinstance(y_dot, Zero):
        raise MissingRuleError("no rule for fits with periodic splines")
    results = bsplines._lsq_solve_qr(x, y, t, k, w, **({"periodic": True} if periodic else {}))  # noqa: SLF001
    if isinstance(y_dot, Zero):
        return results, (ZERO,) * len(results)
    c, c_dot = call_rule(fitted, (y, x, t, w, k), (y_dot,))
    fp_dot = _residual_tangent(y, y_dot, x, w[:, None], t, c, k)
    others = undefined("of a fit, only the coefficients and the residual have a rule")
    return results, (others, others, c_dot, fp_dot, others)[: len(results)]


def _residual_tangent(y: Any, y_dot: Any, x: Any, w: Any, t: Any, c: Any, k: int) -> Any:
    """The tangent of the sum of squares, which does not depend on the coefficients at its least."""
    left = intervals(t, k, x)
    b, _ = splines(t, x, left, k)
    residual = y - np.einsum("pa,pa...->p...", b, c[near(left, k)])
    return 2.0 * np.sum((w**2 * residual) * y_dot)


# -- curves

_SEARCHED, _INTERPOLATES, _POLYNOMIAL = 0, -1, -2  # FITPACK's codes; above them are errors


def _searches(name: str) -> str:
    return (
        f"{name} with s > 0 chooses knots and smoothing by the data, and has no derivative here: "
        "use make_smoothing_spline(x, y, lam=...), make_lsq_spline with knots of your own, or s=0"
    )


def _curve(
    name: str, y: Any, y_dot: Any, x: Any, w: Any, t: Any, c: Any, k: int, ier: int, given: bool
) -> tuple[Any, Any]:
    """The tangents of the coefficients, with what stands behind them, and of the residual."""
    if isinstance(y_dot, Zero):
        return ZERO, ZERO
    if ier > _SEARCHED and given:
        return undefined("FITPACK has found no spline"), np.nan * np.sum(y_dot)
    if not given and ier not in (_INTERPOLATES, _POLYNOMIAL):
        raise MissingRuleError(_searches(name))
    w = np.ones(len(x)) if w is None else plain(w)
    x, t = plain(x), plain(t)
    fit, fit_dot = call_rule(fitted, (y, x, t, w, k), (y_dot,))
    fp_dot = _residual_tangent(y, y_dot, x, w, t, fit, k)
    return np.pad(fit_dot, (0, len(plain(c)) - len(t) + k + 1)), fp_dot


def of_fitpack(name: str, **options: Any) -> Any:
    """As ``frule``, for a function of a module that has other names in other versions of SciPy."""

    def decorate(body: Any) -> Any:
        def register(module: Any) -> None:
            if hasattr(module, name):
                frule(getattr(module, name), **options)(body)

        when_imported("scipy.interpolate._fitpack2.dfitpack", register)
        return body

    return decorate


@of_fitpack(
    "curfit",
    argnums=("x", "y", "w", "t", "wrk", "iwrk", "xb", "xe"),
    signature="(iopt, x, y, w, t, wrk, iwrk, xb=None, xe=None, k=3, s=0.0)",
    mutates=(3, 4, 5),
)
def curfit_frule(primals: Any, tangents: Any, *, iopt: int, k: int, **options: Any) -> Any:
    """Push tangents through what ``splrep`` calls."""
    for primal in primals:
        refuse_symbols(primal)
    x, y, w, t, wrk, iwrk, *ends = primals
    x_dot, y_dot, w_dot, _, _, _, *ends_dot = tangents
    _refuse("splrep", x_dot, w_dot, *ends_dot)
    new = [np.copy(p) for p in (t, wrk, iwrk)]
    n, c, fp, ier = fitpack2.dfitpack.curfit(iopt, x, y, w, *new, *ends, k=k, **options)
    c_dot, fp_dot = _curve("splrep", y, y_dot, x, w, new[0][:n], c, k, ier, iopt == -1)
    return ((n, c, fp, ier), *new), ((ZERO, c_dot, fp_dot, ZERO), ZERO, ZERO, ZERO)


def _of_class(primals: Any, tangents: Any, name: str, *others: Any, **options: Any) -> Any:
    """Push tangents through what makes the data of a ``UnivariateSpline``."""
    for primal in primals:
        refuse_symbols(primal)
    (x, y, w), (x_dot, y_dot, w_dot) = primals, tangents
    _refuse("a spline of FITPACK", x_dot, w_dot)
    data = getattr(fitpack2.dfitpack, name)(x, y, *others, w=w, **options)
    k, n, t, c, ier = (data[i] for i in (5, 7, 8, 9, -1))
    given = name == "fpcurfm1"
    c_dot, fp_dot = _curve("UnivariateSpline", y, y_dot, x, w, t[:n], c, k, ier, given)
    dots = [ZERO] * len(data)
    dots[1], dots[9], dots[10] = y_dot, c_dot, fp_dot
    return data, tuple(dots)


@of_fitpack(
    "fpcurf0",
    argnums=("x", "y", "w"),
    signature="(x, y, k, w=None, xb=None, xe=None, s=None, nest=None)",
)
def fpcurf0_frule(primals: Any, tangents: Any, *, k: int, **options: Any) -> Any:
    """Push tangents through what ``UnivariateSpline`` calls."""
    return _of_class(primals, tangents, "fpcurf0", k, **options)


@of_fitpack(
    "fpcurfm1",
    argnums=("x", "y", "w"),
    signature="(x, y, k, t, w=None, xb=None, xe=None, overwrite_t=1)",
)
def fpcurfm1_frule(primals: Any, tangents: Any, *, k: int, t: Any, **options: Any) -> Any:
    """Push tangents through what ``LSQUnivariateSpline`` calls."""
    return _of_class(primals, tangents, "fpcurfm1", k, t, **{**options, "overwrite_t": 0})


@of_fitpack(
    "fpcurf1",
    argnums=("x", "y", "w", "xb", "xe", "s", "t", "c", "fp", "fpint"),
    signature="(x, y, w, xb, xe, k, s, n, t, c, fp, fpint, nrdata, ier)",
)
def fpcurf1_frule(primals: Any, tangents: Any, **options: Any) -> Any:
    """Go on with the search for knots that ``fpcurf0`` has begun."""
    for primal in primals:
        refuse_symbols(primal)
    if not all(isinstance(t, Zero) for t in tangents):
        raise MissingRuleError(_searches("UnivariateSpline"))
    names = ("x", "y", "w", "xb", "xe", "s", "t", "c", "fp", "fpint")
    given = {**options, **dict(zip(names, primals, strict=True))}
    own = {name: np.copy(a) if isinstance(a, np.ndarray) else a for name, a in given.items()}
    results = fitpack2.dfitpack.fpcurf1(**own)  # it would overwrite arrays
    return results, (ZERO,) * len(results)


@of_fitpack("fpchec", argnums=("x", "t"), signature="(x, t, k)")
def fpchec_frule(primals: Any, _tangents: Any, *, k: int) -> Any:
    """Whether knots fit to places, as a number without a tangent."""
    for primal in primals:
        refuse_symbols(primal)
    return fitpack2.dfitpack.fpchec(*primals, k), ZERO


# -- values of curves


def _values(primals: Any, tangents: Any, y: Any, k: int, nu: int, e: int) -> Any:
    (t, c, x), (t_dot, c_dot, x_dot) = primals, tangents
    x = np.atleast_1d(x)
    n = len(t) - k - 1
    outside = (plain(x) < plain(t)[k]) | (plain(x) > plain(t)[n])
    if e == 3 and nu == 0:  # the value at the end, whose derivatives go on
        x, x_dot = _clipped(x, x_dot, t, t_dot, k)
    left = intervals(t, k, x)
    b, b_dot = splines(t, x, left, k, nu, t_dot, x_dot)
    y_dot = combined(b, b_dot, c[:, None], c_dot[:, None], near(left, k))
    y_dot = ZERO if isinstance(y_dot, Zero) else y_dot[:, 0]
    return y, (_kept(y_dot, ~outside) if e == 1 else y_dot, ZERO)


@of_fitpack("splev", argnums=("t", "c", "x"), signature="(t, c, k, x, e=0)")
def splev_frule(primals: Any, tangents: Any, *, k: int, e: int = 0) -> Any:
    """Push tangents through the values at some points."""
    for primal in primals:
        refuse_symbols(primal)
    t, c, x = primals
    return _values(primals, tangents, fitpack2.dfitpack.splev(t, c, k, x, e), k, 0, e)


@of_fitpack("splder", argnums=("t", "c", "x"), signature="(t, c, k, x, nu=1, e=0)")
def splder_frule(primals: Any, tangents: Any, *, k: int, nu: int = 1, e: int = 0) -> Any:
    """Push tangents through derivatives at some points."""
    for primal in primals:
        refuse_symbols(primal)
    t, c, x = primals
    return _values(primals, tangents, fitpack2.dfitpack.splder(t, c, k, x, nu, e), k, nu, e)


@of_fitpack("spalde", argnums=("t", "c", "x"), signature="(t, c, k1, x)")
def spalde_frule(primals: Any, tangents: Any, *, k1: int) -> Any:
    """Push tangents through all derivatives at a point."""
    for primal in primals:
        refuse_symbols(primal)
    t, c, x = primals
    y = fitpack2.dfitpack.spalde(t, c, k1, x)
    orders = [_values(primals, tangents, None, k1 - 1, nu, 0)[1][0] for nu in range(k1)]
    y_dot = _stacked(orders)
    return y, (y_dot if isinstance(y_dot, Zero) else y_dot[:, 0], ZERO)


@of_fitpack("splint", argnums=("t", "c", "a", "b"), signature="(t, c, k, a, b)")
def splint_frule(primals: Any, tangents: Any, *, k: int) -> Any:
    """Push tangents through an integral: of the coefficients, and of the bounds by values."""
    for primal in primals:
        refuse_symbols(primal)
    (t, c, a, b), (t_dot, c_dot, a_dot, b_dot) = primals, tangents
    y, weights = fitpack2.dfitpack.splint(t, c, k, a, b)
    n = len(t) - k - 1
    ends = np.array([a, b]) * 1.0
    ends, ends_dot = _clipped(ends, _stacked((a_dot, b_dot)), t, t_dot, k)  # it is zero beyond
    # the antiderivative has the widths of the splines as its coefficients
    longer = np.concatenate([t[:1], t, t[-1:]])
    left = intervals(longer, k + 1, ends)
    longer_dot = ZERO
    if not isinstance(t_dot, Zero):
        longer_dot = np.concatenate([t_dot[:1], t_dot, t_dot[-1:]])
    at_ends, at_ends_dot = splines(longer, ends, left, k + 1, 0, longer_dot, ends_dot)
    places = np.eye(n + 1)[near(left, k + 1)]
    tail, tail_dot = (_tails(part, places) for part in (at_ends, at_ends_dot))
    widths, widths_dot = (part[k + 1 :] - part[:n] for part in (t, t_dot))
    weights_dot = (tail * widths_dot + widths * tail_dot) / (k + 1)
    y_dot = weights[:n] @ c_dot[:n]
    if isinstance(weights_dot, Zero):
        return (y, weights), (y_dot, ZERO)
    y_dot = y_dot + c[:n] @ weights_dot
    return (y, weights), (y_dot, np.pad(weights_dot, (0, len(t) - n)))


def _tails(at_ends: Any, places: Any) -> Any:
    """Of the values at both ends, the differences of the sums from each spline on."""
    if isinstance(at_ends, Zero):
        return ZERO
    each = np.einsum("pa,pan->pn", at_ends, places)
    return np.cumsum((each[1] - each[0])[:0:-1])[::-1]


def _stacked(dots: Any) -> Any:
    """Tangents of equal shape as one; ``ZERO`` if each of them is."""
    some = [dot for dot in dots if not isinstance(dot, Zero)]
    if not some:
        return ZERO
    return np.stack([0.0 * some[0] if isinstance(dot, Zero) else dot for dot in dots])


def _clipped(x: Any, x_dot: Any, t: Any, t_dot: Any, k: int) -> tuple[Any, Any]:
    """Points that are moved to the ends where they lie beyond them."""
    x = np.atleast_1d(x)
    first, last = t[k], t[len(t) - k - 1]
    below, above = plain(x) < plain(first), plain(x) > plain(last)
    x_dot = _kept(x_dot, ~(below | above))
    if not isinstance(t_dot, Zero):
        x_dot = x_dot + np.where(below, t_dot[k], 0.0) + np.where(above, t_dot[len(t) - k - 1], 0.0)
    return np.clip(x, first, last), x_dot


def _kept(x_dot: Any, where: Any) -> Any:
    """A tangent where something holds, and zero elsewhere."""
    return x_dot if isinstance(x_dot, Zero) or np.all(where) else np.where(where, x_dot, 0.0)


# -- surfaces


@of_fitpack(
    "regrid_smth",
    argnums=("x", "y", "z"),
    signature=("(x, y, z, xb=None, xe=None, yb=None, ye=None, kx=3, ky=3, s=0.0, maxit=None)"),
)
def regrid_smth_frule(primals: Any, tangents: Any, *, kx: int, ky: int, **options: Any) -> Any:
    """Push tangents through what ``RectBivariateSpline`` calls: fits along both axes."""
    for primal in primals:
        refuse_symbols(primal)
    (x, y, z), (x_dot, y_dot, z_dot) = primals, tangents
    _refuse("RectBivariateSpline", x_dot, y_dot)
    given = {name: option for name, option in options.items() if option is not None}
    results = fitpack2.dfitpack.regrid_smth(x, y, z, kx=kx, ky=ky, **given)
    nx, tx, ny, ty, c, _, ier = results
    if isinstance(z_dot, Zero):
        return results, (ZERO,) * len(results)
    if ier not in (_INTERPOLATES, _POLYNOMIAL):
        raise MissingRuleError(
            "RectBivariateSpline with s > 0 chooses knots and smoothing by the data, and has "
            "no derivative here: use s=0"
        )
    z, z_dot = np.reshape(z, (len(x), len(y))), np.reshape(z_dot, (len(x), len(y)))
    fit, fit_dot = z, z_dot
    sides = [(plain(x), plain(tx)[:nx], kx), (plain(y), plain(ty)[:ny], ky)]
    for points, t, k in sides:
        problem = fit, points, t, np.ones(len(points)), k
        fit, fit_dot = (part.T for part in call_rule(fitted, problem, (fit_dot,)))
    values = fit
    for points, t, k in sides:
        left = intervals(t, k, points)
        b, _ = splines(t, points, left, k)
        values = np.einsum("pa,pam->mp", b, values[near(left, k)])
    fp_dot = 2.0 * np.sum((z - values) * z_dot)
    c_dot = np.ravel(fit_dot)
    c_dot = np.pad(c_dot, (0, len(plain(c)) - c_dot.shape[0]))
    return results, (ZERO, ZERO, ZERO, ZERO, c_dot, fp_dot, ZERO)


def _factors(primals: Any, tangents: Any, kx: int, ky: int, nux: int, nuy: int) -> Any:
    """The splines along both axes, which of them these are, and the coefficients as a matrix."""
    (tx, ty, c, x, y), (tx_dot, ty_dot, c_dot, x_dot, y_dot) = primals, tangents
    x, x_dot = _clipped(x, x_dot, tx, tx_dot, kx)
    y, y_dot = _clipped(y, y_dot, ty, ty_dot, ky)
    at_x, at_y = intervals(tx, kx, x), intervals(ty, ky, y)
    of_x = splines(tx, x, at_x, kx, nux, tx_dot, x_dot)
    of_y = splines(ty, y, at_y, ky, nuy, ty_dot, y_dot)
    shape = len(tx) - kx - 1, len(ty) - ky - 1
    c_dot = c_dot if isinstance(c_dot, Zero) else np.reshape(c_dot, shape)
    return of_x, of_y, near(at_x, kx), near(at_y, ky), np.reshape(c, shape), c_dot


def _on_grid(primals: Any, tangents: Any, *orders: int) -> Any:
    of_x, of_y, x_places, y_places, c, c_dot = _factors(primals, tangents, *orders)
    (bx, bx_dot), (by, by_dot) = of_x, of_y
    along = np.einsum("pa,pam->pm", bx, c[x_places])
    along_dot = combined(bx, bx_dot, c, c_dot, x_places)
    z_dot = combined(by, by_dot, along.T, _turned(along_dot), y_places)
    return _turned(z_dot)


def _at_points(primals: Any, tangents: Any, *orders: int) -> Any:
    of_x, of_y, x_places, y_places, c, c_dot = _factors(primals, tangents, *orders)
    places = x_places[:, :, None], y_places[:, None, :]
    (bx, bx_dot), (by, by_dot), z_dot = of_x, of_y, ZERO
    for terms in ((bx_dot, by, c), (bx, by_dot, c), (bx, by, c_dot)):
        if not any(isinstance(term, Zero) for term in terms):
            z_dot = z_dot + np.einsum("pa,pb,pab->p", *terms[:2], terms[2][places])
    return z_dot


def _register_values(name: str, orders: str, tangent: Any) -> None:
    @of_fitpack(
        name,
        argnums=("tx", "ty", "c", "x", "y"),
        signature=f"(tx, ty, c, kx, ky, {orders}x, y)",
    )
    def body(primals: Any, tangents: Any, *, kx: int, ky: int, nux: int = 0, nuy: int = 0) -> Any:
        """Push tangents through the values of a surface, or its derivatives."""
        for primal in primals:
            refuse_symbols(primal)
        tx, ty, c, x, y = primals
        asked = (nux, nuy) if orders else ()
        results = getattr(fitpack2.dfitpack, name)(tx, ty, c, kx, ky, *asked, x, y)
        return results, (tangent(primals, tangents, kx, ky, nux, nuy), ZERO)


for _names, _tangent in ((("bispev", "parder"), _on_grid), (("bispeu", "pardeu"), _at_points)):
    for _name, _orders in zip(_names, ("", "nux, nuy, "), strict=True):
        _register_values(_name, _orders, _tangent)


def _turned(x_dot: Any) -> Any:
    """A transpose, of ``ZERO`` too."""
    return x_dot if isinstance(x_dot, Zero) else x_dot.T
