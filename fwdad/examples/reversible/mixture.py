"""The log-likelihood of a mixture of normal distributions, as ADBench states it.

Šrajer, Kukelova and Fitzgibbon, "A benchmark of selected algorithmic differentiation tools on some
problems in computer vision and machine learning" (2018, doi:10.1080/10556788.2018.1435651),
section 4.1, constants and the terms of the prior that do not depend on the parameters left out.
"""

from __future__ import annotations

import numpy as np

from fwdad.reversible import ancilla, compute, copy_out, reversible


@reversible
def mixture(loss, alphas, means, factors, x):
    """Add the log-likelihood.

    Parameters
    ----------
    loss : float
        Added to.
    alphas : array, shape (K,)
        Logarithms of the weights, up to a constant.
    means : array, shape (K, d)
        The centres.
    factors : array, shape (K, d + d (d - 1) / 2)
        The inverse factors of the covariances: logarithms of the diagonal, then the lower triangle
        by columns.
    x : array, shape (n, d)
        The points.
    """
    d = x.shape[1]
    count = len(alphas)
    with compute():
        logs = ancilla(np.zeros(count))
        diagonal = ancilla(np.zeros((count, d)))
        for k in range(count):
            for j in range(d):
                logs[k] += factors[k, j]
                diagonal[k, j] += np.exp(factors[k, j])
        with copy_out():
            for i in range(len(x)):
                point(loss, alphas, means, factors, logs, diagonal, x[i])
            loss -= len(x) * (np.log(np.sum(np.exp(alphas - np.max(alphas)))) + np.max(alphas))
            for k in range(count):
                for j in range(d):
                    loss -= 0.5 * diagonal[k, j] ** 2
                for j in range(d, factors.shape[1]):
                    loss -= 0.5 * factors[k, j] ** 2


@reversible
def point(loss, alphas, means, factors, logs, diagonal, x):
    """Add what one point contributes."""
    d = len(x)
    with compute():
        terms = ancilla(np.zeros(len(alphas)))
        for k in range(len(alphas)):
            with compute():
                square = ancilla(0.0)
                away = ancilla(np.zeros(d))
                scaled = ancilla(np.zeros(d))
                for a in range(d):
                    away[a] += x[a] - means[k, a]
                for a in range(d):
                    scaled[a] += diagonal[k, a] * away[a]
                for b in range(d):
                    before = d + b * (2 * d - b - 1) // 2 - b - 1
                    for a in range(b + 1, d):
                        scaled[a] += factors[k, before + a] * away[b]
                for a in range(d):
                    square += scaled[a] ** 2
                with copy_out():
                    terms[k] += alphas[k] + logs[k] - 0.5 * square
        with copy_out():
            loss += np.log(np.sum(np.exp(terms - np.max(terms)))) + np.max(terms)
