"""Inverses, determinants, decompositions and norms of SciPy.

The formulas, their sources and their gauges are those of NumPy's functions of the same names (see
``linear_systems.py``, ``decompositions.py``, ``eigenvalues.py``); this file adds SciPy's options.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import MissingRuleError
from fwdad.rules.core.by_name import Lazy, untouched
from fwdad.rules.core.define import frule, locally_constant
from fwdad.rules.core.lapack import cholesky_tangent
from fwdad.rules.decompositions import qr_tangents, singular_tangents, svd_tangents
from fwdad.rules.eigenvalues import eig_tangents
from fwdad.rules.linear_systems import (
    det_tangent,
    lstsq_tangents,
    options_given,
    pinv_tangent,
)
from fwdad.rules.norms import norm_tangent
from fwdad.rules.scipy_solvers import as_read
from fwdad.rules.spectra import resolution
from fwdad.rules.triangles import adjoint, from_lower
from fwdad.tangents.plain import plain
from fwdad.tangents.symbolic import apply, array_of, defined, is_known
from fwdad.tangents.zero import ZERO, Zero, undefined

linalg = Lazy("scipy.linalg")

locally_constant("scipy.linalg.bandwidth", "scipy.linalg.issymmetric", "scipy.linalg.ishermitian")


def _array(a: Any) -> Any:
    return a if hasattr(a, "dtype") else np.asarray(a)


@frule("scipy.linalg.inv", argnums="a")
def inv_frule(primals, tangents, **options):
    """Push tangents through ``scipy.linalg.inv``: Ẋ = −X Ȧ X (Giles 2008, section 2.2.3)."""
    (a,), (a_dot,) = primals, tangents
    x = linalg.inv(a, **untouched(options))
    a_dot = as_read(a_dot, options.get("assume_a"), options.get("lower", False))
    return x, -(x @ a_dot @ x)


@frule("scipy.linalg.det", argnums="a")
def det_frule(primals, tangents, **options):
    """Push tangents through ``scipy.linalg.det``, of singular matrices too: tr(adj(A) Ȧ)."""
    a, (a_dot,) = _array(primals[0]), tangents
    y = linalg.det(a, **untouched(options))
    return y, det_tangent(a, a_dot, y)


@frule("scipy.linalg.pinv", argnums="a")
def pinv_frule(primals, tangents, **options):
    """Push tangents through ``scipy.linalg.pinv`` (Golub and Pereyra 1973, equation 4.12)."""
    a, (a_dot,) = _array(primals[0]), tangents
    y = linalg.pinv(a, **options)
    cut = not {"rtol", "atol"}.isdisjoint(options_given(options))
    if isinstance(y, tuple):
        return y, (pinv_tangent(a, a_dot, y[0], cut=cut), ZERO)
    return y, pinv_tangent(a, a_dot, y, cut=cut)


@frule("scipy.linalg.pinvh", argnums="a")
def pinvh_frule(primals, tangents, lower=True, **options):
    """Push tangents through ``scipy.linalg.pinvh`` (Golub and Pereyra 1973, equation 4.12)."""
    a, (a_dot,) = _array(primals[0]), tangents
    y = linalg.pinvh(a, lower=lower, **options)
    x = y[0] if isinstance(y, tuple) else y
    if not isinstance(a_dot, Zero):
        a, a_dot = (from_lower(t if lower else adjoint(t)) for t in (a, a_dot))
    cut = not {"rtol", "atol"}.isdisjoint(options_given(options))
    x_dot = pinv_tangent(a, a_dot, x, cut=cut)
    return y, (x_dot, ZERO) if isinstance(y, tuple) else x_dot


@frule("scipy.linalg.lstsq", argnums=("a", "b"))
def lstsq_frule(primals, tangents, **options):
    """Push tangents through ``scipy.linalg.lstsq`` (Golub and Pereyra 1973, times b)."""
    a, b = (_array(t) for t in primals)
    a_dot, b_dot = tangents
    y = linalg.lstsq(a, b, **untouched(options))
    x, residuals, rank, s = y
    if s is None:  # LAPACK's gelsy computes no singular values
        s = linalg.svdvals(a)
        x_dot, residuals_dot, _ = lstsq_tangents(a, b, a_dot, b_dot, x, residuals, rank, s)
        return y, (x_dot, residuals_dot, ZERO, ZERO)
    x_dot, residuals_dot, s_dot = lstsq_tangents(a, b, a_dot, b_dot, x, residuals, rank, s)
    return y, (x_dot, residuals_dot, ZERO, s_dot)


@frule("scipy.linalg.norm", argnums="a")
def norm_frule(primals, tangents, ord=None, axis=None, keepdims=False, check_finite=True):  # noqa: A002
    """Push tangents through ``scipy.linalg.norm``."""
    (a,), (a_dot,) = primals, tangents
    y = linalg.norm(a, ord, axis, keepdims, check_finite)
    return y, norm_tangent(a, a_dot, y, ord, axis, keepdims)


@frule("scipy.linalg.cholesky", argnums="a")
def cholesky_frule(primals, tangents, lower=False, **options):
    """Push tangents through ``scipy.linalg.cholesky`` (Giles 2008, section 2.2.9)."""
    (a,), (a_dot,) = primals, tangents
    y = linalg.cholesky(a, lower=lower, **untouched(options))
    if lower:
        return y, cholesky_tangent(y, a_dot)
    return y, adjoint(cholesky_tangent(adjoint(y), adjoint(a_dot)))


@frule("scipy.linalg.qr", argnums="a")
def qr_frule(primals, tangents, mode="full", pivoting=False, **options):
    """Push tangents through ``scipy.linalg.qr`` (Walter and Lehmann 2013, section 3.3).

    With ``pivoting`` the columns are taken in their new order, which is locally constant.
    """
    a, (a_dot,) = _array(primals[0]), tangents
    options = untouched(options)
    y = linalg.qr(a, mode=mode, pivoting=pivoting, **options)
    if mode == "raw":
        part = undefined(
            "scipy.linalg.qr(mode='raw') returns LAPACK's intermediate vectors: use another mode"
        )
        return y, ((part, part), part, *((ZERO,) if pivoting else ()))
    if isinstance(a_dot, Zero):
        return y, (ZERO,) * len(y)
    parts = linalg.qr(a, mode="economic", pivoting=pivoting, **options) if mode == "r" else y
    if pivoting:
        order = array_of(parts[2])
        a_dot = np.take_along_axis(
            a_dot, np.broadcast_to(order[..., None, :], a_dot.shape), axis=-1
        )
    q_dot, r_dot = qr_tangents(a_dot, parts[0], parts[1])
    if mode == "r":
        r, reduced = (np.shape(plain(t))[-2] for t in (y[0], parts[1]))
        if r > reduced and not isinstance(r_dot, Zero):
            r_dot = np.eye(r, reduced, dtype=array_of(y[0]).real.dtype) @ r_dot
        return y, (r_dot, *((ZERO,) if pivoting else ()))
    return y, (q_dot, r_dot, *((ZERO,) if pivoting else ()))


@frule("scipy.linalg.svd", argnums="a")
def svd_frule(primals, tangents, full_matrices=True, compute_uv=True, **options):
    """Push tangents through ``scipy.linalg.svd`` (Giles 2008, section 3.2; Wan and Zhang 2019)."""
    a, (a_dot,) = _array(primals[0]), tangents
    options = untouched(options)
    y = linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv, **options)
    if not compute_uv:
        return y, singular_tangents(a_dot, *linalg.svd(a, full_matrices=False, **options))
    return y, svd_tangents(a_dot, *y)


@frule("scipy.linalg.svdvals", argnums="a")
def svdvals_frule(primals, tangents, **options):
    """Push tangents through ``scipy.linalg.svdvals``: ṡ = Re diag(Uᴴ Ȧ V)."""
    a, (a_dot,) = _array(primals[0]), tangents
    options = untouched(options)
    y = linalg.svdvals(a, **options)
    return y, singular_tangents(a_dot, *linalg.svd(a, full_matrices=False, **options))


@frule("scipy.linalg.eig", argnums="a")
def eig_frule(primals, tangents, b=None, left=False, right=True, **options):
    """Push tangents through ``scipy.linalg.eig`` (Magnus 1985, theorem 2).

    Only of one matrix, and with right eigenvectors or none.
    """
    a, (a_dot,) = _array(primals[0]), tangents
    options = untouched(options)
    if b is not None or left or options.get("homogeneous_eigvals"):
        raise MissingRuleError(
            "scipy.linalg.eig with b=, left= or homogeneous_eigvals= has no frule. For symmetric "
            "pairs use scipy.linalg.eigh; otherwise scipy.linalg.eig(numpy.linalg.solve(b, a))"
        )
    y = linalg.eig(a, right=right, **options)
    w, v = linalg.eig(a, **options) if not right else y
    w_dot, v_dot = eig_tangents(a_dot, w, v)
    return y, (w_dot, v_dot) if right else w_dot


@frule("scipy.linalg.eigh", argnums=("a", "b"))
def eigh_frule(primals, tangents, lower=True, eigvals_only=False, **options):
    r"""Push tangents through ``scipy.linalg.eigh``, the generalised problem too.

    .. math::
        A v_j = w_j B v_j, \; V^H B V = I: \quad N_{ij} = v_i^H (\dot A - w_j \dot B) v_j, \\
        \dot w_j = N_{jj}, \quad
        \dot v_j = \sum_{i \ne j} \frac{N_{ij}}{w_j - w_i} v_i - \tfrac12 (v_j^H \dot B v_j) v_j

    With a subset of the eigenvalues the sum still runs over all of them.
    Source: Magnus (1985), theorem 1, for B = I; the normalisation vᴴ B v = 1 gives the last term.
    """
    a, b = (None if t is None else _array(t) for t in primals)
    a_dot, b_dot = tangents
    options = untouched(options)
    y = linalg.eigh(a, b, lower=lower, eigvals_only=eigvals_only, **options)
    if options.get("type", 1) != 1:
        message = "scipy.linalg.eigh(type=2 or 3) has no frule: rewrite the problem as type 1"
        raise MissingRuleError(message)
    a_dot, b_dot = (_read(t, lower) for t in (a_dot, b_dot))
    everything = {k: v for k, v in options.items() if not k.startswith("subset") and k != "driver"}
    is_all = all(options.get(f"subset_by_{by}") is None for by in ("index", "value"))
    whole = is_all and not eigvals_only
    w_all, v_all = y if whole else linalg.eigh(a, b, lower=lower, **everything)
    chosen = slice(None) if is_all else _chosen(w_all, y if eigvals_only else y[0], options)
    w, v = (w_all[chosen], v_all[:, chosen]) if eigvals_only else y
    is_own = apply(np.eye, w_all.shape[0], dtype=bool)[:, chosen]
    change = a_dot @ v - b_dot @ (v * w)
    w_dot = np.real(np.sum(np.conjugate(v) * change, axis=0))
    if eigvals_only:
        return y, w_dot
    gaps = w[None, :] - w_all[:, None]
    reason = "eigenvectors of a repeated eigenvalue"
    repeated = np.any(~is_own & (np.abs(array_of(gaps)) <= resolution(w_all)))
    if is_known(repeated) and repeated:
        return y, (w_dot, undefined(reason))
    weights = np.where(is_own, 0, 1 / np.where(is_own, 1, gaps))
    v_dot = v_all @ (defined(weights, repeated, reason) * (adjoint(v_all) @ change))
    if not isinstance(b_dot, Zero):
        v_dot = v_dot - 0.5 * v * np.real(np.sum(np.conjugate(v) * (b_dot @ v), axis=0))
    return y, (w_dot, v_dot)


def _read(t: Any, lower: bool) -> Any:
    if isinstance(t, Zero):
        return t
    return from_lower(t if lower else adjoint(t))


def _chosen(w_all: Any, w: Any, options: dict[str, Any]) -> np.ndarray:
    """The indices of a subset of consecutive eigenvalues among all of them."""
    if options.get("subset_by_index") is not None:
        first, last = options["subset_by_index"]
        return np.arange(first, last + 1)
    w_all, w = (np.asarray(plain(t)) for t in (w_all, w))
    starts = range(len(w_all) - len(w) + 1)
    first = min(starts, key=lambda k: float(np.sum(np.abs(w_all[k : k + len(w)] - w))))
    return np.arange(first, first + len(w))
