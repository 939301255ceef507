"""Solvers of SciPy for dense and banded systems.

A solver that reads a triangle, a band or a diagonal only is differentiated as that: what it does
not read has no influence. The tangents are solved for with the same routine, all lanes as columns
of one system; that takes one factorisation besides the primal's, at every number of lanes.

Source of the formula ẋ = A⁻¹(ḃ − Ȧx): Giles, M. B. (2008), "Collected matrix derivative results for
forward and reverse mode algorithmic differentiation", section 2.3.1.
https://doi.org/10.1007/978-3-540-68942-3_4
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import MissingRuleError
from fwdad.rules.core.adjoints import Space, into
from fwdad.rules.core.by_name import (
    Lazy,
    apply_linear,
    refuse_symbols,
    transpose_by_name,
    untouched,
)
from fwdad.rules.core.define import call_rule, frule
from fwdad.rules.triangles import adjoint, from_lower
from fwdad.tangents.symbolic import apply
from fwdad.tangents.zero import ZERO, Zero, undefined

linalg = Lazy("scipy.linalg")
lapack = Lazy("scipy.linalg.lapack")

_ALIASES = {
    "sym": "symmetric",
    "her": "hermitian",
    "pos": "positive definite",
}


def as_read(a: Any, structure: str | None, lower: bool) -> Any:
    """The matrix (..., n, n) that a solver reads from a, given ``assume_a``; linear in a.

    ``lower`` says which triangle of a symmetric or Hermitian matrix is read.
    """
    if isinstance(a, Zero):
        return a
    read = _READ.get(_ALIASES.get(str(structure), str(structure)))
    return a if read is None else read(a, lower)


def _symmetric(a: Any, lower: bool) -> Any:
    read = apply(np.tri, a.shape[-1], dtype=bool)
    return np.where(read if lower else read.T, a, np.swapaxes(a, -1, -2))


def _hermitian(a: Any, lower: bool) -> Any:
    return from_lower(a if lower else adjoint(a))


_READ: dict[str, Any] = {
    "symmetric": _symmetric,
    "hermitian": _hermitian,
    "positive definite": _hermitian,
    "upper triangular": lambda a, _: np.triu(a),
    "lower triangular": lambda a, _: np.tril(a),
    "diagonal": lambda a, _: np.triu(np.tril(a)),
    "tridiagonal": lambda a, _: np.triu(np.tril(a, 1), -1),
}


def _array(a: Any) -> Any:
    return a if hasattr(a, "dtype") else np.asarray(a)


@frule("scipy.linalg.solve", argnums=("a", "b"))
def solve_frule(primals, tangents, **options):
    r"""Push tangents through ``scipy.linalg.solve``.

    .. math:: A X = B \;\Rightarrow\; \dot X = A^{-1}(\dot B - \dot A X)

    A being what ``assume_a``, ``lower`` and ``transposed`` make of the argument.
    """
    a, b = (_array(x) for x in primals)
    a_dot, b_dot = tangents
    options = untouched(options)
    x = linalg.solve(a, b, **options)
    a, a_dot = _operator(a, options), _operator(a_dot, options)
    if b.ndim == 1 and a.ndim > 2:
        return x, np.linalg.solve(a, b_dot[:, None] - a_dot @ x[..., None])[..., 0]
    return x, np.linalg.solve(a, b_dot - a_dot @ x)


def _operator(a: Any, options: dict[str, Any]) -> Any:
    a = as_read(a, options.get("assume_a"), options.get("lower", False))
    return np.swapaxes(a, -1, -2) if options.get("transposed") else a


@transpose_by_name("scipy.linalg.solve", argnum=1)
def solve_transpose_b(y_bar: Any, a: Any, b: Space, **options: Any) -> Any:
    """The adjoint of A⁻¹ is A⁻ᴴ."""
    a = adjoint(_operator(_array(a), options))
    if b.ndim == 1 and a.ndim > 2:
        return into(b, np.linalg.solve(a, y_bar[..., None])[..., 0])
    return into(b, np.linalg.solve(a, y_bar))


# -- triangular systems


@frule("scipy.linalg.solve_triangular", argnums=("a", "b"))
def solve_triangular_frule(primals, tangents, **options):
    r"""Push tangents through ``scipy.linalg.solve_triangular``.

    .. math:: T X = B \;\Rightarrow\; \dot X = T^{-1}(\dot B - \dot T X)

    Only the triangle counts; with ``unit_diagonal`` the diagonal does not either.
    """
    a, b = (_array(x) for x in primals)
    a_dot, b_dot = tangents
    options = untouched(options)
    x = linalg.solve_triangular(a, b, **options)
    t_dot = _triangle(a_dot, **options)
    vectors = b.ndim == 1 and a.ndim > 2
    change = (t_dot @ x[..., None])[..., 0] if vectors else t_dot @ x
    return x, apply_linear(
        linalg.solve_triangular,
        (a, b_dot - change),
        1,
        lambda columns: linalg.solve_triangular(a, columns, **options),
        **options,
    )


def _triangle(
    a: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, **_: Any
) -> Any:
    if isinstance(a, Zero):
        return a
    k = 1 if unit_diagonal else 0
    t = np.tril(a, -k) if lower else np.triu(a, k)
    if trans in (2, "C"):
        return adjoint(t)
    return np.swapaxes(t, -1, -2) if trans in (1, "T") else t


@transpose_by_name("scipy.linalg.solve_triangular", argnum=1)
def solve_triangular_transpose_b(
    y_bar: Any, a: Any, b: Space, trans: Any = 0, **options: Any
) -> Any:
    """The adjoint of op(T)⁻¹ is op(T)⁻ᴴ: the conjugate of the solver for the opposite ``trans``."""
    a = _array(a)
    if trans in (1, "T"):  # (Tᵀ)⁻ᴴ = conj(T)⁻¹
        a, opposite = np.conjugate(a), 0
    else:
        opposite = 2 if trans in (0, "N") else 0
    options = {**untouched(options), "trans": opposite}
    x_bar = apply_linear(
        linalg.solve_triangular,
        (a, y_bar),
        1,
        lambda columns: linalg.solve_triangular(a, columns, **options),
        **options,
    )
    return into(b, x_bar)


# -- banded systems: row u + i − j of ab holds the element (i, j)


def _cut_band(rows: Any, l_and_u: Any) -> Any:
    """Zero the corners of a band, which no solver reads."""
    if isinstance(rows, Zero):
        return rows
    _, upper = l_and_u
    count, n = rows.shape
    i = np.arange(count)[:, None] - upper + np.arange(n)
    return np.where((i >= 0) & (i < n), rows, 0)


def band_product(l_and_u: Any, ab: Any, x: Any) -> Any:
    """The product of a banded matrix with x; linear in either, one of them may be a tangent."""
    if isinstance(ab, Zero):
        return ab
    ab = _cut_band(ab, l_and_u)
    weighed = ab[:, :, None] * x if x.ndim == 2 else ab * x
    lower, upper = l_and_u
    n = ab.shape[1]
    # element i of the product gathers row r at column i + u − r
    i, r = np.arange(n)[:, None], np.arange(lower + upper + 1)
    column = i + upper - r
    inside = (column >= 0) & (column < n)
    gathered = weighed[r + 0 * i, np.clip(column, 0, n - 1)]
    inside = inside[..., None] if x.ndim == 2 else inside
    return np.sum(np.where(inside, gathered, 0), axis=1)


def adjoint_band(l_and_u: Any, ab: Any) -> tuple[tuple[int, int], Any]:
    """The conjugate transpose of a banded matrix, as a band."""
    lower, upper = l_and_u
    n = ab.shape[1]
    # row l + i − j of the result holds conj of the element (j, i): row u + j − i, column i
    r, j = np.arange(lower + upper + 1)[:, None], np.arange(n)
    i = r - lower + j
    inside = (i >= 0) & (i < n)
    gathered = ab[lower + upper - r + 0 * j, np.clip(i, 0, n - 1)]
    return (upper, lower), np.conjugate(np.where(inside, gathered, 0))


@frule("scipy.linalg.solve_banded")
def solve_banded_frule(primals, tangents, **options):
    r"""Push tangents through ``scipy.linalg.solve_banded``.

    .. math:: A X = B \;\Rightarrow\; \dot X = A^{-1}(\dot B - \dot A X)

    with ȦX formed along the band. Its corners, outside the matrix, have no influence.
    """
    l_and_u, ab, b = primals
    _, ab_dot, b_dot = tangents
    options = untouched(options)
    x = linalg.solve_banded(l_and_u, ab, b, **options)
    rhs = b_dot - band_product(l_and_u, ab_dot, x)
    return x, apply_linear(
        linalg.solve_banded,
        (l_and_u, ab, rhs),
        2,
        lambda columns: linalg.solve_banded(l_and_u, ab, columns, **options),
        **options,
    )


@transpose_by_name("scipy.linalg.solve_banded", argnum=2)
def solve_banded_transpose_b(y_bar: Any, l_and_u: Any, ab: Any, b: Space, **options: Any) -> Any:
    """Solve with the adjoint band."""
    options = untouched(options)
    turned, band = adjoint_band(l_and_u, _array(ab))
    x_bar = apply_linear(
        linalg.solve_banded,
        (turned, band, y_bar),
        2,
        lambda columns: linalg.solve_banded(turned, band, columns, **options),
        **options,
    )
    return into(b, x_bar)


# -- the same systems by LAPACK's own routines, whose band has rows for the factors above it


def _register_gbsv(name: str) -> None:
    dotted = f"scipy.linalg.lapack.{name}"

    @frule(
        dotted,
        argnums=("ab", "b"),
        signature="(kl, ku, ab, b, overwrite_ab=0, overwrite_b=0)",
    )
    def gbsv_frule(primals: Any, tangents: Any, *, kl: int, ku: int, **options: Any) -> Any:
        """Push tangents through the solution; those of the factors are not defined here."""
        (ab, b), (ab_dot, b_dot) = (map(_array, primals), tangents)
        refuse_symbols(ab)
        refuse_symbols(b)
        factors, pivots, x, info = getattr(lapack, name)(kl, ku, ab, b, **untouched(options))
        band_dot = ab_dot if isinstance(ab_dot, Zero) else ab_dot[kl:]
        x_dot: Any = undefined(f"{name} has found a singular matrix")
        if info == 0:
            rhs = b_dot - band_product((kl, ku), band_dot, x)
            _, x_dot = call_rule(
                linalg.solve_banded, ((kl, ku), ab[kl:], b), (ZERO, ZERO, rhs), check_finite=False
            )
        no_factors = undefined(f"the factors that {name} returns have no rule")
        return (factors, pivots, x, info), (no_factors, ZERO, x_dot, ZERO)


for _name in ("sgbsv", "dgbsv", "cgbsv", "zgbsv"):
    _register_gbsv(_name)


def _hermitian_band(ab: Any, lower: bool) -> tuple[tuple[int, int], Any]:
    """Both halves of a Hermitian band, of which one is stored; of its diagonal the real part."""
    width = ab.shape[0] - 1
    one_sided = (width, 0) if lower else (0, width)
    ab = _cut_band(ab, one_sided)
    strict = ab[1:] if lower else ab[:-1]
    diagonal = np.real(ab[:1] if lower else ab[-1:])
    # the strict half by itself is a band too, its diagonal zero
    nothing = 0.0 * diagonal
    half = np.concatenate([nothing, strict] if lower else [strict, nothing])
    _, other = adjoint_band(one_sided, half)
    parts = [other[:-1], diagonal, strict] if lower else [strict, diagonal, other[1:]]
    if any(part.dtype.kind == "c" for part in parts):
        parts[1] = parts[1] + 0j * parts[1]
    return (width, width), np.concatenate(parts)


@frule("scipy.linalg.solveh_banded", argnums=("ab", "b"))
def solveh_banded_frule(primals, tangents, lower=False, **options):
    r"""Push tangents through ``scipy.linalg.solveh_banded``.

    .. math:: A X = B \;\Rightarrow\; \dot X = A^{-1}(\dot B - \dot A X)

    with both halves of ȦX formed from the one that is stored.
    """
    ab, b = (_array(x) for x in primals)
    ab_dot, b_dot = tangents
    options = {**untouched(options), "lower": lower}
    x = linalg.solveh_banded(ab, b, **options)
    change = ab_dot
    if not isinstance(ab_dot, Zero):
        change = band_product(*_hermitian_band(ab_dot, lower), x)
    return x, apply_linear(
        linalg.solveh_banded,
        (ab, b_dot - change),
        1,
        lambda columns: linalg.solveh_banded(ab, columns, **options),
        **options,
    )


@transpose_by_name("scipy.linalg.solveh_banded", argnum=1)
def solveh_banded_transpose_b(y_bar: Any, ab: Any, b: Space, **options: Any) -> Any:
    """The inverse of a Hermitian matrix is Hermitian."""
    options = untouched(options)
    x_bar = apply_linear(
        linalg.solveh_banded,
        (ab, y_bar),
        1,
        lambda columns: linalg.solveh_banded(ab, columns, **options),
        **options,
    )
    return into(b, x_bar)


@frule("scipy.linalg.solve_sylvester")
def solve_sylvester_frule(primals, tangents):
    r"""Push tangents through ``scipy.linalg.solve_sylvester``.

    .. math:: A X + X B = Q \;\Rightarrow\; A \dot X + \dot X B = \dot Q - \dot A X - X \dot B

    Cost: a Sylvester equation per lane.
    """
    a, b, _ = primals
    a_dot, b_dot, q_dot = tangents
    x = linalg.solve_sylvester(*primals)
    return x, sylvester(a, b, q_dot - a_dot @ x - x @ b_dot)


def sylvester(a: Any, b: Any, q_dot: Any) -> Any:
    """Solve A Ẋ + Ẋ B = Q̇ for every lane."""
    return apply_linear(
        linalg.solve_sylvester,
        (a, b, q_dot),
        2,
        lambda lane: linalg.solve_sylvester(a, b, lane),
        by_lane=True,
    )


@transpose_by_name("scipy.linalg.solve_sylvester", argnum=2)
def solve_sylvester_transpose_q(y_bar: Any, a: Any, b: Any, q: Space) -> Any:
    """The adjoint of X -> AX + XB is Y -> AᴴY + YBᴴ."""
    return into(q, sylvester(adjoint(_array(a)), adjoint(_array(b)), y_bar))


@frule("scipy.linalg.solve_continuous_lyapunov")
def solve_continuous_lyapunov_frule(primals, tangents):
    r"""Push tangents through ``scipy.linalg.solve_continuous_lyapunov``.

    .. math:: A X + X A^H = Q
        \;\Rightarrow\; A \dot X + \dot X A^H = \dot Q - \dot A X - X \dot A^H

    Cost: a Sylvester equation per lane.
    """
    a, q = (_array(x) for x in primals)
    a_dot, q_dot = tangents
    x = linalg.solve_continuous_lyapunov(a, q)
    return x, sylvester(a, adjoint(a), q_dot - a_dot @ x - x @ adjoint(a_dot))


@transpose_by_name("scipy.linalg.solve_continuous_lyapunov", argnum=1)
def solve_continuous_lyapunov_transpose_q(y_bar: Any, a: Any, q: Space) -> Any:
    """The adjoint of X -> AX + XAᴴ is Y -> AᴴY + YA."""
    a = _array(a)
    return into(q, sylvester(adjoint(a), a, y_bar))


@frule("scipy.linalg.solve_discrete_lyapunov")
def solve_discrete_lyapunov_frule(primals, tangents, method=None):
    r"""Push tangents through ``scipy.linalg.solve_discrete_lyapunov``.

    .. math:: X - A X A^H = Q
        \;\Rightarrow\; \dot X - A \dot X A^H = \dot Q + \dot A X A^H + A X \dot A^H

    Cost: an equation of this kind per lane.
    """
    a, q = (_array(x) for x in primals)
    a_dot, q_dot = tangents
    x = linalg.solve_discrete_lyapunov(a, q, method=method)
    change = a_dot @ x @ adjoint(a) + a @ x @ adjoint(a_dot)
    return x, discrete_lyapunov(a, q_dot + change, method)


def discrete_lyapunov(a: Any, q_dot: Any, method: Any = None) -> Any:
    """Solve Ẋ - A Ẋ Aᴴ = Q̇ for every lane."""
    return apply_linear(
        linalg.solve_discrete_lyapunov,
        (a, q_dot),
        1,
        lambda lane: linalg.solve_discrete_lyapunov(a, lane, method=method),
        by_lane=True,
        method=method,
    )


@transpose_by_name("scipy.linalg.solve_discrete_lyapunov", argnum=1)
def solve_discrete_lyapunov_transpose_q(y_bar: Any, a: Any, q: Space, method: Any = None) -> Any:
    """The adjoint of X -> X - AXAᴴ is Y -> Y - AᴴYA."""
    return into(q, discrete_lyapunov(adjoint(_array(a)), y_bar, method))


# -- Riccati's equations, by the matrix of the closed loop A − BK: the gains K are optimal, so that
#    their own changes do not matter


@frule("scipy.linalg.solve_continuous_are")
def solve_continuous_are_frule(primals, tangents, e=None, s=None, balanced=True):
    r"""Push tangents through ``scipy.linalg.solve_continuous_are``.

    .. math:: A^H X + X A - K^H R K + Q = 0, \quad R K = B^H X + S^H, \quad C = A - B K
        \;\Rightarrow\; C^H \dot X + \dot X C = -\dot W, \quad
        \dot W = \dot Q + K^H \dot R K + (\dot A - \dot B K)^H X + X (\dot A - \dot B K)

    Cost: a Sylvester equation per lane.
    """
    _without_descriptor(e, "solve_continuous_are")
    a, b, q, r = (_array(x) for x in primals)
    a_dot, b_dot, q_dot, r_dot = tangents
    x = linalg.solve_continuous_are(a, b, q, r, s=s, balanced=balanced)
    carried = adjoint(b) @ x
    gains = np.linalg.solve(r, carried if s is None else carried + adjoint(_array(s)))
    closed, moved = a - b @ gains, x @ (a_dot - b_dot @ gains)
    change = q_dot + adjoint(gains) @ r_dot @ gains + moved + adjoint(moved)
    return x, sylvester(adjoint(closed), closed, -change)


@frule("scipy.linalg.solve_discrete_are")
def solve_discrete_are_frule(primals, tangents, e=None, s=None, balanced=True):
    r"""Push tangents through ``scipy.linalg.solve_discrete_are``.

    .. math:: A^H X A - X - K^H (R + B^H X B) K + Q = 0,
        \quad (R + B^H X B) K = B^H X A + S^H, \quad C = A - B K
        \;\Rightarrow\; \dot X - C^H \dot X C = \dot Q + K^H \dot R K
        + (\dot A - \dot B K)^H X C + C^H X (\dot A - \dot B K)

    Cost: a Lyapunov equation per lane.
    """
    _without_descriptor(e, "solve_discrete_are")
    a, b, q, r = (_array(x) for x in primals)
    a_dot, b_dot, q_dot, r_dot = tangents
    x = linalg.solve_discrete_are(a, b, q, r, s=s, balanced=balanced)
    carried = adjoint(b) @ x
    driven = carried @ a if s is None else carried @ a + adjoint(_array(s))
    gains = np.linalg.solve(r + carried @ b, driven)
    closed = a - b @ gains
    moved = adjoint(closed) @ x @ (a_dot - b_dot @ gains)
    change = q_dot + adjoint(gains) @ r_dot @ gains + moved + adjoint(moved)
    return x, discrete_lyapunov(adjoint(closed), change)


def _without_descriptor(e: Any, name: str) -> None:
    if e is not None:
        raise MissingRuleError(
            f"scipy.linalg.{name} with e has no derivative: multiply a and b by the inverse of e"
        )
