r"""Factorisations of NumPy: ``cholesky``, ``qr``, ``svd``, ``svdvals``.

What is differentiated is the function that NumPy computes: where it reads one triangle only, the
other has no influence on the derivative.

Gauge. Singular vectors are fixed up to a common phase of each pair. Their tangents are the smallest
ones, uᴴ u̇ + vᴴ v̇ = 0. For real matrices that is how the computed vectors move; for complex ones
LAPACK's own choice of phase moves otherwise, and functions that do not depend on it are right.
Columns that complete a basis (``full_matrices=True``, ``mode="complete"``) change as
orthogonality requires.

Repeated values. The vectors of a repeated or zero singular value have no derivative: their tangent
is ``undefined`` and raises where it is used. Singular values have tangents always; at a repeated
one they are right for symmetric functions, and one that is zero to rounding has tangent zero, as
``abs`` at 0.

References
----------
Giles, M. B. (2008). Collected matrix derivative results for forward and reverse mode algorithmic
differentiation. https://doi.org/10.1007/978-3-540-68942-3_4

Walter, S. F. and Lehmann, L. (2013). Algorithmic differentiation of linear algebra functions with
application in optimum experimental design (extended version). https://arxiv.org/abs/1001.1654

Seeger, M., Hetzel, A., Dai, Z., Meissner, E. and Lawrence, N. D. (2017). Auto-differentiating
linear algebra. https://arxiv.org/abs/1710.08717

Wan, Z.-Q. and Zhang, S.-X. (2019). Automatic differentiation for complex valued SVD.
https://arxiv.org/abs/1909.02659
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.rules.core.define import frule
from fwdad.rules.core.lapack import cholesky_tangent, solve_lower
from fwdad.rules.spectra import inverse_gaps, is_repeated, matrix_diagonal, resolution
from fwdad.rules.triangles import adjoint, from_lower
from fwdad.tangents.symbolic import apply, array_of, defined, is_known
from fwdad.tangents.zero import undefined


@frule(np.linalg.cholesky)
def cholesky_frule(primals, tangents, *, upper=False):
    r"""Push tangents through ``numpy.linalg.cholesky``.

    .. math:: A = L L^H \;\Rightarrow\; \dot L = L\, \Phi(L^{-1} \dot A L^{-H})

    where Φ keeps the lower triangle and halves the diagonal. NumPy reads one triangle of A; the
    other has no influence.
    Cost: one factorisation; per lane n³ multiplications for L⁻¹ Ȧ L⁻ᴴ and n³/2 for the product.
    Source: Giles (2008), section 2.2.9 [forward mode]; Seeger et al. (2017), section 4.1.
    """
    (a,), (a_dot,) = primals, tangents
    y = np.linalg.cholesky(a, upper=upper)
    if upper:
        return y, adjoint(cholesky_tangent(adjoint(y), adjoint(a_dot)))
    return y, cholesky_tangent(y, a_dot)


@frule(np.linalg.qr, argnums=0)
def qr_frule(primals, tangents, mode="reduced"):
    r"""Push tangents through ``numpy.linalg.qr``.

    .. math::
        C = Q^H \dot A R^{-1}, \quad
        \Omega = \operatorname{tril}_{-1}(C) - \operatorname{tril}_{-1}(C)^H
               + i \operatorname{Im} \operatorname{diag}(C), \quad
        \dot Q = \dot A R^{-1} - Q (C - \Omega), \quad \dot R = Q^H \dot A - \Omega R

    For a wide matrix C is that of its leading square block. A matrix whose leading columns are
    linearly dependent has no unique Q, and ``mode="raw"`` shows Householder vectors: these
    tangents are undefined.
    Source: Walter and Lehmann (2013), section 3.3; for complex matrices the diagonal of R is
    real, which fixes the diagonal of Ω.
    """
    (a,), (a_dot,) = primals, tangents
    y = np.linalg.qr(a, mode)
    if mode not in ("reduced", "complete", "r"):
        reason = (
            f"numpy.linalg.qr(mode={mode!r}) returns LAPACK's intermediate vectors: use another "
            "mode"
        )
        return y, (undefined(reason), undefined(reason)) if isinstance(y, tuple) else undefined(
            reason
        )
    q, r = np.linalg.qr(a) if mode == "r" else y
    q_dot, r_dot = qr_tangents(a_dot, q, r, complete=mode == "complete")
    return y, r_dot if mode == "r" else (q_dot, r_dot)


def qr_tangents(a_dot: Any, q: Any, r: Any, *, complete: bool = True) -> tuple[Any, Any]:
    """The tangents of a QR decomposition; of a reduced one only, where it is not complete."""
    k = min(q.shape[-2], r.shape[-1]) if complete else q.shape[-1]
    q1, r1 = (q[..., :, :k], r[..., :k, :]) if complete else (q, r)
    pivots = np.abs(array_of(matrix_diagonal(r1)))
    reason = "Q of a matrix with linearly dependent columns is not unique"
    dependent = np.any(pivots <= resolution(pivots))
    if is_known(dependent) and dependent:
        return undefined(reason), undefined(reason)
    # B = Ȧ R⁻¹ of the leading columns, as (R⁻ᵀ Ȧᵀ)ᵀ
    square = defined(r1[..., :, :k], dependent, reason)
    transposed = solve_lower(np.swapaxes(square, -1, -2), np.swapaxes(a_dot[..., :, :k], -1, -2))
    b = np.swapaxes(transposed, -1, -2)
    c = adjoint(q1) @ b
    strict = np.tril(c, -1)
    omega = strict - adjoint(strict)
    raw = array_of(q)
    if raw.dtype.kind == "c":
        omega = omega + apply(np.eye, k, dtype=raw.real.dtype) * (1j * np.imag(c))
    r_dot = np.triu(adjoint(q1) @ a_dot - omega @ r1)
    extra = q.shape[-1] - k if complete else 0
    if extra:  # rows of zeros below
        r_dot = apply(np.eye, k + extra, k, dtype=raw.real.dtype) @ r_dot
    q_dot = b - q1 @ (c - omega)
    if extra:
        q2_dot = -(q1 @ (adjoint(q_dot) @ q[..., :, k:]))
        q_dot = np.concatenate([q_dot, q2_dot], axis=-1)
    return q_dot, r_dot


# -- singular values


def singular_tangents(a_dot: Any, u: Any, s: Any, vh: Any) -> Any:
    """Re uᴴ Ȧ v for each singular value, zero where the value is zero to rounding."""
    s_dot = np.real(np.sum(np.conjugate(u) * (a_dot @ adjoint(vh)), axis=-2))
    raw = array_of(s)
    zero = raw <= resolution(s)
    return s_dot if is_known(raw) and not np.any(zero) else np.where(~zero, s_dot, 0)


@frule(np.linalg.svdvals)
def svdvals_frule(primals, tangents):
    """Push tangents through ``numpy.linalg.svdvals``: ṡ = Re diag(Uᴴ Ȧ V)."""
    (x,), (x_dot,) = primals, tangents
    y = np.linalg.svdvals(x)
    return y, singular_tangents(x_dot, *np.linalg.svd(x, full_matrices=False))


@frule(np.linalg.svd, argnums=0)
def svd_frule(primals, tangents, full_matrices=True, compute_uv=True, hermitian=False):
    r"""Push tangents through ``numpy.linalg.svd``.

    .. math::
        P = U^H \dot A V, \quad \dot s = \operatorname{Re} \operatorname{diag} P, \quad
        F_{ij} = 1 / (s_j^2 - s_i^2), \\
        \dot U = U (F \circ (P S + S P^H) + D) + (I - U U^H) \dot A V S^{-1}, \\
        \dot V = V (F \circ (S P + P^H S) - D) + (I - V V^H) \dot A^H U S^{-1}

    with D = i Im diag(P) / 2s, which is zero for real matrices. Vectors of repeated or zero
    singular values are undefined. With ``hermitian=True`` NumPy goes through ``eigh`` of the lower
    triangle, and so does the derivative.
    Source: Giles (2008), section 3.2 [singular values]; Seeger et al. (2017), section 4.4, and
    Wan and Zhang (2019), equation 4, for complex vectors.
    """
    (a,), (a_dot,) = primals, tangents
    y = np.linalg.svd(a, full_matrices, compute_uv, hermitian)
    if hermitian:
        a_dot = from_lower(a_dot)
    if not compute_uv:
        return y, singular_tangents(a_dot, *np.linalg.svd(a, False, True, hermitian))
    u, s, vh = y
    return y, _svd_of_hermitian(a_dot, u, s, vh) if hermitian else svd_tangents(a_dot, u, s, vh)


def svd_tangents(a_dot: Any, u: Any, s: Any, vh: Any) -> tuple[Any, Any, Any]:
    """The tangents of a thin or full singular value decomposition."""
    k = s.shape[-1]
    u1, vh1 = u[..., :, :k], vh[..., :k, :]
    s_dot = singular_tangents(a_dot, u1, s, vh1)
    reason = "singular vectors of a repeated or zero singular value"
    alike = is_repeated(s) | np.any(array_of(s) <= resolution(s))
    if is_known(alike) and alike:
        return undefined(reason), s_dot, undefined(reason)
    s = defined(s, alike, reason)
    right, left = a_dot @ adjoint(vh1), adjoint(a_dot) @ u1  # Ȧ V and Ȧᴴ U
    p = adjoint(u1) @ right
    rows, columns = s[..., :, None], s[..., None, :]
    f = inverse_gaps(s) / (rows + columns)
    u_dot = u1 @ (f * (p * columns + rows * adjoint(p)))
    v1 = adjoint(vh1)
    v_dot = v1 @ (f * (rows * p + adjoint(p) * columns))
    if array_of(u).dtype.kind == "c":
        turn = (0.5j * np.imag(matrix_diagonal(p)) / s)[..., None, :]
        u_dot, v_dot = u_dot + u1 * turn, v_dot - v1 * turn
    u_dot = _with_complement(u_dot, right / columns, u, u1)
    v_dot = _with_complement(v_dot, left / columns, adjoint(vh), v1)
    return u_dot, s_dot, adjoint(v_dot)


def _with_complement(u_dot: Any, change: Any, u: Any, u1: Any) -> Any:
    """Add what leaves the span of u1, and the tangents of the columns that complete the basis."""
    k, m = u1.shape[-1], u1.shape[-2]
    if k == m:
        return u_dot
    u_dot = u_dot + change - u1 @ (adjoint(u1) @ change)
    if u.shape[-1] == k:
        return u_dot
    rest_dot = -(u1 @ (adjoint(change) @ u[..., :, k:]))
    return np.concatenate([u_dot, rest_dot], axis=-1)


def _svd_of_hermitian(a_dot: Any, u: Any, s: Any, vh: Any) -> Any:
    """A = U diag(w) Uᴴ with |w| = s; V is U with the signs of w."""
    sign = np.sign(np.real(np.sum(np.conjugate(u) * adjoint(vh), axis=-2)))
    w = s * sign
    m = adjoint(u) @ a_dot @ u
    s_dot = sign * np.real(matrix_diagonal(m))
    reason = "singular vectors of a repeated eigenvalue"
    repeated = is_repeated(w)
    if is_known(repeated) and repeated:
        return undefined(reason), s_dot, undefined(reason)
    u_dot = u @ (defined(inverse_gaps(w), repeated, reason) * m)
    return u_dot, s_dot, adjoint(u_dot * sign[..., None, :])
