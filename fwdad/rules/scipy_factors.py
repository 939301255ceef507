"""Factorisations of SciPy that are kept, and the solvers that use them.

``lu_factor`` with ``lu_solve``, ``cho_factor`` with ``cho_solve``, and ``lu``. The factors arrive
as tuples, so their tangents do, too; pivots are integers and have none.

References
----------
de Hoog, F. R., Anderssen, R. S. and Lukas, M. A. (2011). Differentiation of matrix functionals
using triangular factorization. Mathematics of Computation 80(275), 1585–1600.
https://doi.org/10.1090/S0025-5718-2011-02451-8

Giles, M. B. (2008). Collected matrix derivative results for forward and reverse mode algorithmic
differentiation. https://doi.org/10.1007/978-3-540-68942-3_4
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fwdad.ops.record import also
from fwdad.rules.core.adjoints import Space, into
from fwdad.rules.core.by_name import Lazy, apply_linear, takes_factors, transpose_by_name, untouched
from fwdad.rules.core.define import frule
from fwdad.rules.core.lapack import cholesky_tangent, solve_lower
from fwdad.rules.triangles import adjoint
from fwdad.tangents.symbolic import apply, array_of
from fwdad.tangents.zero import ZERO, Zero

linalg = Lazy("scipy.linalg")


# -- LU


def _unit_lower(lu: Any) -> Any:
    """The unit lower triangle of a square matrix that holds both factors."""
    return np.tril(lu, -1) + apply(np.eye, lu.shape[-1], dtype=lu.dtype)


def _right_divided(x_dot: Any, u: Any) -> Any:
    """X U⁻¹ for an upper triangle."""
    return np.swapaxes(solve_lower(np.swapaxes(u, -1, -2), np.swapaxes(x_dot, -1, -2)), -1, -2)


def lu_tangents(pa_dot: Any, lower: Any, upper: Any) -> tuple[Any, Any]:
    r"""The tangents of both factors of P A = L U, the pivots being locally constant.

    .. math:: M = L^{-1} P \dot A U^{-1}, \quad \dot L = L \operatorname{tril}_{-1} M, \quad
        \dot U = \operatorname{triu}(M)\, U

    for the leading square block; the rest of a tall L or of a wide U follows from the product rule.
    Source: de Hoog et al. (2011), section 3.
    """
    m, n = pa_dot.shape[-2:]
    k = min(m, n)
    l1, u1 = lower[..., :k, :], upper[..., :, :k]
    middle = _right_divided(solve_lower(l1, pa_dot[..., :k, :k]), u1)
    l_dot, u_dot = l1 @ np.tril(middle, -1), np.triu(middle) @ u1
    if m > k:
        change = pa_dot[..., k:, :] - lower[..., k:, :] @ u_dot
        l_dot = np.concatenate([l_dot, _right_divided(change, u1)], axis=-2)
    if n > k:
        change = pa_dot[..., :, k:] - l_dot @ upper[..., :, k:]
        u_dot = np.concatenate([u_dot, solve_lower(l1, change)], axis=-1)
    return l_dot, u_dot


def row_order(pivots: np.ndarray, n: int) -> np.ndarray:
    """The rows in their new order, from LAPACK's list of exchanges, or each list of a stack."""
    order = np.empty((*pivots.shape[:-1], n), np.intp)
    order[...] = np.arange(n)
    for index in np.ndindex(pivots.shape[:-1]):
        own = order[index]
        for i, p in enumerate(pivots[index]):
            own[i], own[p] = own[p], own[i]
    return order


also(row_order, pure=True)


@frule("scipy.linalg.lu_factor", argnums="a")
def lu_factor_frule(primals, tangents, **options):
    """Push tangents through ``scipy.linalg.lu_factor``: those of L and U, in one matrix.

    Source: de Hoog et al. (2011), section 3; see ``lu_tangents``.
    """
    (a,), (a_dot,) = primals, tangents
    y = linalg.lu_factor(a, **untouched(options))
    if isinstance(a_dot, Zero):
        return y, (ZERO, ZERO)
    lu, pivots = y
    raw = array_of(pivots)
    m, n = a_dot.shape[-2:]
    rows = apply(row_order, raw, m)[..., None]
    k = min(m, n)
    wide = np.broadcast_to(rows, (*raw.shape[:-1], m, n))
    pa_dot = np.take_along_axis(a_dot, wide, axis=-2)
    lower = np.tril(lu[..., :, :k], -1) + apply(np.eye, m, k, dtype=lu.dtype)
    l_dot, u_dot = lu_tangents(pa_dot, lower, np.triu(lu[..., :k, :]))
    return y, (_side_by_side(l_dot, u_dot), ZERO)


def _side_by_side(l_dot: Any, u_dot: Any) -> Any:
    """Add the tangents of a strict lower and of an upper trapezium, padded to one shape."""
    m, n = l_dot.shape[-2], u_dot.shape[-1]
    k = l_dot.shape[-1]
    if n > k:
        l_dot = np.concatenate([l_dot, 0 * u_dot[..., :, k:]], axis=-1)
    if m > k:
        u_dot = np.concatenate([u_dot, 0 * l_dot[..., k:, :]], axis=-2)
    return l_dot + u_dot


@frule("scipy.linalg.lu", argnums="a")
def lu_frule(primals, tangents, permute_l=False, p_indices=False, **options):
    """Push tangents through ``scipy.linalg.lu``; the permutation is locally constant.

    Source: de Hoog et al. (2011), section 3; see ``lu_tangents``.
    """
    (a,), (a_dot,) = primals, tangents
    options = untouched(options)
    y = linalg.lu(a, permute_l=permute_l, p_indices=p_indices, **options)
    if isinstance(a_dot, Zero):
        return y, (ZERO,) * len(y)
    order, lower, upper = (
        linalg.lu(a, p_indices=True, **options) if permute_l or not p_indices else y
    )
    # A = L[order] U, so that row order[i] of the factors' product is row i of A
    order = array_of(order)
    m, n = a_dot.shape[-2:]
    back = np.argsort(order, axis=-1)[..., None]
    pa_dot = np.take_along_axis(a_dot, np.broadcast_to(back, (*order.shape[:-1], m, n)), axis=-2)
    l_dot, u_dot = lu_tangents(pa_dot, lower, upper)
    if not permute_l:
        return y, (ZERO, l_dot, u_dot)
    rows = np.broadcast_to(order[..., None], l_dot.shape)
    return y, (np.take_along_axis(l_dot, rows, axis=-2), u_dot)


def _solved(solve: Any, factors: Any, b_dot: Any, options: dict[str, Any]) -> Any:
    """Solve for all lanes of right-hand sides at once, by factors that are given."""
    return apply_linear(
        solve, (factors, b_dot), 1, lambda columns: solve(factors, columns, **options), **options
    )


@frule("scipy.linalg.lu_solve", argnums=("lu_and_piv", "b"))
def lu_solve_frule(primals, tangents, trans=0, **options):
    r"""Push tangents through ``scipy.linalg.lu_solve``.

    .. math:: \dot x = A^{-1} (\dot b - \dot A x), \quad
        P \dot A x = \dot L (U x) + L (\dot U x)

    and likewise with Aᵀ or Aᴴ for ``trans`` 1 or 2.
    Cost: no factorisation at all; two triangular solves per lane.
    """
    (lu, pivots), b = primals
    factors_dot, b_dot = tangents
    lu_dot = factors_dot if isinstance(factors_dot, Zero) else factors_dot[0]
    options = {**untouched(options), "trans": trans}
    x = linalg.lu_solve((lu, pivots), b, **options)
    if not isinstance(lu_dot, Zero):
        b_dot = b_dot - _lu_change(lu, lu_dot, pivots, x, trans)
    return x, _solved(linalg.lu_solve, (lu, pivots), b_dot, options)


takes_factors("scipy.linalg.lu_solve")


def _lu_change(lu: Any, lu_dot: Any, pivots: Any, x: Any, trans: int) -> Any:
    """The product of op(A)'s tangent with x."""
    order = apply(row_order, array_of(pivots), lu.shape[0])
    lower, upper = _unit_lower(lu), np.triu(lu)
    l_dot, u_dot = np.tril(lu_dot, -1), np.triu(lu_dot)
    if trans == 0:
        return (l_dot @ (upper @ x) + lower @ (u_dot @ x))[np.argsort(order)]
    turn = adjoint if trans == 2 else lambda t: np.swapaxes(t, -1, -2)
    x = x[order]
    return turn(u_dot) @ (turn(lower) @ x) + turn(upper) @ (turn(l_dot) @ x)


@transpose_by_name("scipy.linalg.lu_solve", argnum=1)
def lu_solve_transpose_b(
    y_bar: Any, lu_and_piv: Any, b: Space, trans: int = 0, **options: Any
) -> Any:
    """The adjoint of A⁻¹ is A⁻ᴴ, that of A⁻ᴴ is A⁻¹, and that of A⁻ᵀ is conj(A)⁻¹."""
    lu, pivots = lu_and_piv
    options = {**untouched(options), "trans": 2 if trans == 0 else 0}
    if trans == 1:
        lu = np.conjugate(lu)
    return into(b, _solved(linalg.lu_solve, (lu, pivots), y_bar, options))


# -- Cholesky


@frule("scipy.linalg.cho_factor", argnums="a")
def cho_factor_frule(primals, tangents, lower=False, **options):
    """Push tangents through ``scipy.linalg.cho_factor``.

    The other triangle of the matrix that it returns is that of its argument, untouched, and so is
    the tangent's; since SciPy 1.18 both are zero.
    Source: Giles (2008), section 2.2.9; see ``numpy.linalg.cholesky``.
    """
    (a,), (a_dot,) = primals, tangents
    y = linalg.cho_factor(a, lower=lower, **untouched(options))
    if isinstance(a_dot, Zero):
        return y, (ZERO, ZERO)
    c = y[0]
    if lower:
        factor_dot = cholesky_tangent(np.tril(c), a_dot)
        read = apply(np.tri, c.shape[-1], dtype=bool)
    else:
        factor_dot = adjoint(cholesky_tangent(adjoint(np.triu(c)), adjoint(a_dot)))
        read = apply(np.tri, c.shape[-1], dtype=bool).T
    other_dot: Any = a_dot if _keeps_other_triangle() else ZERO
    return y, (np.where(read, factor_dot, other_dot), ZERO)


@functools.cache
def _keeps_other_triangle() -> bool:
    (c, _) = linalg.cho_factor(np.array([[1.0, 0.0], [0.5, 1.0]]))
    return bool(c[1, 0])


@frule("scipy.linalg.cho_solve", argnums=("c_and_lower", "b"))
def cho_solve_frule(primals, tangents, **options):
    r"""Push tangents through ``scipy.linalg.cho_solve``.

    .. math:: \dot x = A^{-1} (\dot b - \dot A x), \quad
        \dot A x = \dot L (L^H x) + L (\dot L^H x)

    Cost: no factorisation at all; two triangular solves per lane.
    """
    (c, lower), b = primals
    factors_dot, b_dot = tangents
    c_dot = factors_dot if isinstance(factors_dot, Zero) else factors_dot[0]
    options = untouched(options)
    x = linalg.cho_solve((c, lower), b, **options)
    if not isinstance(c_dot, Zero):
        factor = np.tril(c) if lower else adjoint(np.triu(c))
        factor_dot = np.tril(c_dot) if lower else adjoint(np.triu(c_dot))
        b_dot = b_dot - factor_dot @ (adjoint(factor) @ x) - factor @ (adjoint(factor_dot) @ x)
    return x, _solved(linalg.cho_solve, (c, lower), b_dot, options)


takes_factors("scipy.linalg.cho_solve")


@transpose_by_name("scipy.linalg.cho_solve", argnum=1)
def cho_solve_transpose_b(y_bar: Any, c_and_lower: Any, b: Space, **options: Any) -> Any:
    """The inverse of a Hermitian matrix is Hermitian."""
    return into(b, _solved(linalg.cho_solve, c_and_lower, y_bar, untouched(options)))
