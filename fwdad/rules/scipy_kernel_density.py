r"""Gaussian kernel estimates, the compiled part of ``scipy.stats.gaussian_kde``.

With data points :math:`x_i` of d coordinates, values :math:`v_{ik}`, places :math:`\xi_j`, and
the Cholesky factor L of the kernel's covariance,

.. math::
    y_{jk} = \sum_i w_{ij} v_{ik}, \quad
    w_{ij} = \frac{e^{-|u_{ij}|^2/2}}{(2\pi)^{d/2} \det L}, \quad u_{ij} = L^{-1} (x_i - \xi_j).

The terms :math:`s = w v` change by their logarithms: with :math:`g = L^{-T} u`,

.. math::
    \dot s/s = \dot v/v - g^T (\dot x_i - \dot\xi_j - \dot L u) - \operatorname{tr} L^{-1} \dot L.

The logarithm of an estimate has the same tangent, of terms that are divided by the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # its submodules load when they are first used

from fwdad.rules.arithmetic import fit
from fwdad.rules.core.by_name import refuse_symbols
from fwdad.rules.core.define import frule
from fwdad.rules.core.registry import when_imported
from fwdad.tangents.zero import ZERO, Zero

_SIGNATURE = "(points, values, xi, cho_cov, dtype, _=0)"


def _tangent(primals: Any, tangents: Any, log_divisor: Any) -> Any:
    points, values, xi, factor = primals
    points_dot, values_dot, xi_dot, factor_dot = tangents
    inverse = scipy.linalg.solve_triangular(factor, np.eye(len(factor)), lower=True)
    u = np.matmul(points[:, None, :] - xi, inverse.T)
    g = np.matmul(u, inverse)
    diagonal = np.diagonal(factor)
    log_weights = -0.5 * np.sum(u * u, axis=-1) - np.sum(np.log(math.sqrt(2 * math.pi) * diagonal))
    weights = np.exp(log_weights[:, :, None] - log_divisor)
    terms = weights * values[:, None, :]
    y_dot = ZERO
    if not isinstance(values_dot, Zero):
        y_dot = y_dot + np.einsum("ijk,ik->jk", weights, values_dot)
    if not isinstance(points_dot, Zero):
        y_dot = y_dot - np.einsum("ijk,ijd,id->jk", terms, g, points_dot)
    if not isinstance(xi_dot, Zero):
        y_dot = y_dot + np.einsum("ijk,ijd,jd->jk", terms, g, xi_dot)
    if not isinstance(factor_dot, Zero):
        by_factor = np.einsum("ijk,ijd,ije->jkde", terms, g, u)
        by_factor = by_factor - np.sum(terms, axis=0)[:, :, None, None] * np.diag(1 / diagonal)
        y_dot = y_dot + np.einsum("jkde,de->jk", np.tril(by_factor), factor_dot)
    return y_dot


def _register(function: Any, logs: bool) -> None:
    """Register the rule of a compiled function for one type of numbers."""

    @frule(function, argnums=("points", "values", "xi", "cho_cov"), signature=_SIGNATURE)
    def body(primals: Any, tangents: Any, **options: Any) -> Any:
        for primal in primals:
            refuse_symbols(primal)
        y = function(*primals, **options)
        if all(isinstance(t, Zero) for t in tangents):
            return y, ZERO
        return y, fit(_tangent(primals, tangents, y if logs else 0.0), y)


def _register_all(logs: bool) -> Callable[[Any], None]:
    def register(fused: Any) -> None:
        for name in fused.__signatures__:
            _register(fused[name], logs)

    return register


when_imported("scipy.stats._stats.gaussian_kernel_estimate", _register_all(logs=False))
when_imported("scipy.stats._stats.gaussian_kernel_estimate_log", _register_all(logs=True))
