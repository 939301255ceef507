r"""Cofactors of regular and singular matrices: the gradient of the determinant.

The cofactors of a well-conditioned matrix are det(A) A⁻ᵀ. Near a singular matrix that formula is
0 · ∞, although the cofactors themselves are polynomials. There A is brought to the coordinates of
its singular vectors (which are constants: any pair of unitary matrices would do), split into a
block that is well-conditioned and one of the few small singular values,

.. math:: U^H A V = \begin{pmatrix} P & Q \\ R & T \end{pmatrix}, \qquad S = T - R P^{-1} Q,

and with X = P⁻¹Q, Y = RP⁻¹

.. math::
    \operatorname{adj}\begin{pmatrix} P & Q \\ R & T \end{pmatrix} = \det P \begin{pmatrix}
    \det(S) P^{-1} + X \operatorname{adj}(S) Y & -X \operatorname{adj}(S) \\
    -\operatorname{adj}(S) Y & \operatorname{adj}(S) \end{pmatrix}.

adj(S) and det(S) are evaluated as polynomials. Nothing is divided by a small number, so that the
result, and its own derivatives, are right at any rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.ops.record import also
from fwdad.tangents.plain import plain

WELL_CONDITIONED = 1e4
"""Up to this condition number det(A) A⁻ᵀ is used: it loses four digits at most."""

MAX_BLOCK = 8
"""The largest block whose adjugate is evaluated as a polynomial."""


def cofactors(a: Any, determinant: Any) -> Any:
    """The matrix of cofactors, or of each matrix in a stack: d det(A) = sum(cofactors(A) * dA).

    ``determinant`` is ``numpy.linalg.det(a)``. Of a matrix whose rank is at most n - 9, the
    cofactors are taken to be identically zero: they and their first seven derivatives are.
    """
    raw = np.asarray(plain(a))
    if raw.size == 0:
        return np.zeros(raw.shape)
    inverse, size = _inverse(raw)
    if size < WELL_CONDITIONED or not np.all(np.isfinite(raw)):
        inverse = inverse if raw is a else np.linalg.inv(a)
        if raw.ndim > 2:
            determinant = determinant[..., None, None]
        return determinant * np.swapaxes(inverse, -1, -2)
    if raw.ndim == 2:
        return _cofactors_by_blocks(a)
    matrices = np.reshape(a, (-1, *raw.shape[-2:]))
    return np.stack([_cofactors_by_blocks(m) for m in matrices]).reshape(raw.shape)


def condition(a: np.ndarray) -> float:
    """The largest 1-norm condition number in a stack; infinite for a singular matrix."""
    return _inverse(a)[1]


def _inverse(a: np.ndarray) -> tuple[Any, float]:
    try:
        inverse = np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return None, np.inf
    with np.errstate(all="ignore"):
        sizes = [np.max(np.sum(np.abs(m), axis=-2), axis=-1) for m in (a, inverse)]
        worst = float(np.max(sizes[0] * sizes[1]))
    return inverse, worst if np.isfinite(worst) else np.inf


def _cofactors_by_blocks(a: Any) -> Any:
    raw = np.asarray(plain(a))
    n = len(raw)
    u, s, vh = np.linalg.svd(raw.astype(np.result_type(raw, np.float64)))
    small = int(np.count_nonzero(s <= s[0] / WELL_CONDITIONED))
    if small > MAX_BLOCK:
        if s[-MAX_BLOCK - 1] <= n * np.finfo(s.dtype).eps * s[0]:
            return np.zeros(raw.shape, raw.dtype)
        small = MAX_BLOCK
    b = np.conjugate(u.T) @ a @ np.conjugate(vh.T)
    adjugate = _adjugate_by_blocks(b, n - small)
    adjugate = np.conjugate(vh.T) @ adjugate @ np.conjugate(u.T)
    turned = np.linalg.det(u) * np.linalg.det(vh) * adjugate.T
    return turned if raw.dtype.char not in "fF" else turned.astype(raw.dtype)


def _adjugate_by_blocks(b: Any, k: int) -> Any:
    """The adjugate of a matrix whose leading k × k block is regular."""
    if k == 0:
        return _adjugate_as_polynomial(b)[0]
    p_inverse = np.linalg.inv(b[:k, :k])
    x, y = p_inverse @ b[:k, k:], b[k:, :k] @ p_inverse
    adjugate, determinant = _adjugate_as_polynomial(b[k:, k:] - b[k:, :k] @ x)
    top = np.concatenate([determinant * p_inverse + x @ adjugate @ y, -(x @ adjugate)], axis=1)
    bottom = np.concatenate([-(adjugate @ y), adjugate], axis=1)
    return np.linalg.det(b[:k, :k]) * np.concatenate([top, bottom], axis=0)


def _adjugate_as_polynomial(s: Any) -> tuple[Any, Any]:
    """The adjugate and the determinant by the Faddeev–LeVerrier recursion (s is small)."""
    r = s.shape[-1]
    adjugate, determinant = np.eye(r), 1.0
    for k in range(1, r + 1):
        product = s @ adjugate
        coefficient = -np.trace(product) / k
        if k == r:
            determinant = (-1) ** r * coefficient
        else:
            adjugate = product + coefficient * np.eye(r)
    return (-1) ** (r - 1) * adjugate if r else adjugate, determinant


also(cofactors, pure=True)
