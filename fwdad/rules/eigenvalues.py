r"""Eigenvalues and eigenvectors of NumPy: ``eigh``, ``eigvalsh``, ``eig``, ``eigvals``.

Gauge. Eigenvectors are fixed up to a factor of modulus one by their equation. The tangents of those
of ``eigh`` are the smallest ones: vᴴ v̇ = 0. For real matrices that is how the computed vectors
move; for complex ones LAPACK's own choice of phase moves otherwise, so functions of single
components of complex vectors may differ from differences, and functions that do not depend on the
phase are right. ``eig`` follows LAPACK: unit length, largest component real.

Repeated values. The eigenvectors of a repeated eigenvalue have no derivative: their tangent is
``undefined`` and raises where it is used. Eigenvalues have tangents always; at a repeated one they
are right for symmetric functions, such as their sum.

References
----------
Magnus, J. R. (1985). On differentiating eigenvalues and eigenvectors. Econometric Theory 1(2),
179–191. https://www.jstor.org/stable/3532409

Giles, M. B. (2008). Collected matrix derivative results for forward and reverse mode algorithmic
differentiation. https://doi.org/10.1007/978-3-540-68942-3_4

Seeger, M., Hetzel, A., Dai, Z., Meissner, E. and Lawrence, N. D. (2017). Auto-differentiating
linear algebra. https://arxiv.org/abs/1710.08717
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.rules.core.define import frule
from fwdad.rules.spectra import inverse_gaps, is_repeated, matrix_diagonal
from fwdad.rules.triangles import adjoint, from_lower
from fwdad.tangents.adjugate import condition
from fwdad.tangents.plain import plain
from fwdad.tangents.symbolic import defined, is_known
from fwdad.tangents.zero import undefined


@frule(np.linalg.eigh, argnums=0)
def eigh_frule(primals, tangents, UPLO="L"):
    r"""Push tangents through ``numpy.linalg.eigh``.

    .. math:: M = V^H \dot A V, \quad \dot w_j = M_{jj}, \quad
        \dot V = V (F \circ M), \; F_{ij} = 1 / (w_j - w_i)

    Source: Magnus (1985), theorem 1; Giles (2008), section 3.1; Seeger et al. (2017), section 4.3.
    """
    (a,), (a_dot,) = primals, tangents
    y = np.linalg.eigh(a, UPLO=UPLO)
    return y, eigh_tangents(_read_triangle(a_dot, UPLO), *y)


def eigh_tangents(a_dot: Any, w: Any, v: Any) -> tuple[Any, Any]:
    """The tangents of all eigenvalues and eigenvectors of a Hermitian matrix."""
    m = adjoint(v) @ a_dot @ v
    w_dot = np.real(matrix_diagonal(m))
    reason = "eigenvectors of a repeated eigenvalue"
    repeated = is_repeated(w)
    if is_known(repeated) and repeated:
        return w_dot, undefined(reason)
    return w_dot, v @ (defined(inverse_gaps(w), repeated, reason) * m)


def _read_triangle(a_dot: Any, uplo: str) -> Any:
    return from_lower(adjoint(a_dot) if uplo.upper() == "U" else a_dot)


@frule(np.linalg.eigvalsh, argnums=0)
def eigvalsh_frule(primals, tangents, UPLO="L"):
    """Push tangents through ``numpy.linalg.eigvalsh``: ẇ = diag(Vᴴ Ȧ V).

    Cost: one ``eigh`` besides the primal, for the eigenvectors.
    Source: Magnus (1985), theorem 1.
    """
    (a,), (a_dot,) = primals, tangents
    y = np.linalg.eigvalsh(a, UPLO=UPLO)
    v = np.linalg.eigh(a, UPLO=UPLO)[1]
    a_dot = _read_triangle(a_dot, UPLO)
    return y, np.real(np.sum(np.conjugate(v) * (a_dot @ v), axis=-2))


@frule(np.linalg.eig)
def eig_frule(primals, tangents):
    r"""Push tangents through ``numpy.linalg.eig``.

    .. math:: M = V^{-1} \dot A V, \quad \dot w_j = M_{jj}, \quad
        \dot V = V (F \circ M + D), \; F_{ij} = 1 / (w_j - w_i)

    The diagonal D keeps LAPACK's normalisation: columns of unit length whose largest component is
    real. Where the matrix is defective, eigenvalues have no derivative either.
    Source: Magnus (1985), theorem 2; Giles (2008), section 3.1.
    """
    (a,), (a_dot,) = primals, tangents
    y = np.linalg.eig(a)
    return y, eig_tangents(a_dot, *y)


def eig_tangents(a_dot: Any, w: Any, v: Any) -> tuple[Any, Any]:
    """The tangents of eigenvalues and of LAPACK's normalised eigenvectors."""
    if condition(np.asarray(plain(v))) > 1 / np.finfo(np.asarray(plain(w)).dtype).eps:
        reason = "eigenvalues of a defective matrix are not differentiable"
        return undefined(reason), undefined(reason)
    m = np.linalg.solve(v, a_dot @ v)
    w_dot = matrix_diagonal(m)
    if is_repeated(w):
        return w_dot, undefined("eigenvectors of a repeated eigenvalue")
    v_dot = v @ (inverse_gaps(w) * m)
    real = np.asarray(plain(v)).dtype.kind != "c"
    if real:  # SciPy's eigenvalues are complex even then
        v_dot = np.real(v_dot)
    # V̇ + V diag(d): Re d undoes the change of length, Im d that of the largest component's phase
    length = np.real(np.sum(np.conjugate(v) * v_dot, axis=-2, keepdims=True))
    if real:
        return w_dot, v_dot - v * length
    largest = np.argmax(np.abs(np.asarray(plain(v))), axis=-2)[..., None, :]
    pivot = np.real(np.take_along_axis(v, largest, axis=-2))
    phase = np.imag(np.take_along_axis(v_dot, largest, axis=-2)) / pivot
    return w_dot, v_dot - v * (length + 1j * phase)


@frule(np.linalg.eigvals)
def eigvals_frule(primals, tangents):
    """Push tangents through ``numpy.linalg.eigvals``: ẇ = diag(V⁻¹ Ȧ V).

    Cost: one ``eig`` besides the primal, for the eigenvectors.
    Source: Magnus (1985), theorem 2.
    """
    (a,), (a_dot,) = primals, tangents
    y = np.linalg.eigvals(a)
    w, v = np.linalg.eig(a)
    if condition(np.asarray(plain(v))) > 1 / np.finfo(np.asarray(plain(w)).dtype).eps:
        return y, undefined("eigenvalues of a defective matrix are not differentiable")
    w_dot = matrix_diagonal(np.linalg.solve(v, a_dot @ v))
    order = _matched(np.asarray(plain(y)), np.asarray(plain(w)))
    if order is not None:
        w_dot = np.take_along_axis(w_dot, order, axis=-1)
    return y, np.real(w_dot) if np.asarray(plain(y)).dtype.kind != "c" else w_dot


def _matched(y: np.ndarray, w: np.ndarray) -> np.ndarray | None:
    """The index in w of each of the values y: the same values, possibly in another order.

    LAPACK takes another path when it computes no vectors.
    """
    if np.all(np.abs(y - w) <= 0.25 * _nearest(y)):
        return None
    order = np.empty(y.shape, np.intp)
    for index in np.ndindex(y.shape[:-1]):
        free = list(range(y.shape[-1]))
        for k, value in enumerate(y[index]):
            chosen = free.pop(int(np.argmin(np.abs(w[index][free] - value))))
            order[index][k] = chosen
    return order


def _nearest(y: np.ndarray) -> np.ndarray:
    """The distance of each value to the nearest other one."""
    if y.shape[-1] < 2:
        return np.full(y.shape, np.inf)
    gaps = np.abs(y[..., None, :] - y[..., :, None])
    return np.min(np.where(np.eye(y.shape[-1], dtype=bool), np.inf, gaps), axis=-1)
