"""``gmm``: the log-likelihood of a mixture of Gaussians under a Wishart prior.

``factors`` holds of each component the logarithms of its inverse factor's diagonal, and then what
is below the diagonal, column by column.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import logsumexp, multigammaln

from benchmarks.adbench.problem import Arguments, Problem


def arrays(alphas, means, factors, x, gamma, m):
    n, d = x.shape
    k = len(alphas)
    diagonals = np.exp(factors[:, :d])
    sums = np.sum(factors[:, :d], axis=1)
    lower = np.zeros((k, d, d))
    at = d
    for column in range(d - 1):
        lower[:, column + 1 :, column] = factors[:, at : at + d - 1 - column]
        at += d - 1 - column
    centred = x[:, np.newaxis] - means
    scaled = diagonals * centred + np.einsum("kij,nkj->nki", lower, centred)
    terms = alphas + sums - 0.5 * np.sum(scaled**2, axis=2)
    fit = np.sum(logsumexp(terms, axis=1)) - n * logsumexp(alphas)
    squares = np.sum(diagonals**2, axis=1) + np.sum(factors[:, d:] ** 2, axis=1)
    prior = np.sum(0.5 * gamma**2 * squares - m * sums)
    freedom = d + m + 1
    constant = freedom * d * (math.log(gamma) - 0.5 * math.log(2.0))
    constant -= multigammaln(0.5 * freedom, d)
    return fit - 0.5 * n * d * math.log(2.0 * math.pi) + prior - k * constant


def loops(alphas, means, factors, x, gamma, m):  # noqa: C901  (as its users write it)
    n, d = x.shape
    k = len(alphas)
    diagonals = np.exp(factors[:, :d])
    sums = np.zeros(k)
    squares = 0.0
    for c in range(k):
        for i in range(d):
            sums[c] += factors[c, i]
            squares += diagonals[c, i] ** 2
        for i in range(d, factors.shape[1]):
            squares += factors[c, i] ** 2
    terms = np.zeros(k)
    centred = np.zeros(d)
    scaled = np.zeros(d)
    fit = 0.0
    for p in range(n):
        for c in range(k):
            for i in range(d):
                centred[i] = x[p, i] - means[c, i]
                scaled[i] = diagonals[c, i] * centred[i]
            at = d
            for column in range(d - 1):
                for i in range(column + 1, d):
                    scaled[i] += factors[c, at] * centred[column]
                    at += 1
            square = 0.0
            for i in range(d):
                square += scaled[i] ** 2
            terms[c] = alphas[c] + sums[c] - 0.5 * square
        fit += _log_of_sum(terms)
    fit -= n * _log_of_sum(alphas)
    prior = 0.5 * gamma**2 * squares
    for c in range(k):
        prior -= m * sums[c]
    freedom = d + m + 1
    constant = freedom * d * (math.log(gamma) - 0.5 * math.log(2.0))
    constant -= multigammaln(0.5 * freedom, d)
    return fit - 0.5 * n * d * math.log(2.0 * math.pi) + prior - k * constant


def _log_of_sum(terms):
    largest = terms[0]
    for i in range(1, len(terms)):
        largest = max(largest, terms[i])
    total = 0.0
    for i in range(len(terms)):
        total += math.exp(terms[i] - largest)
    return largest + math.log(total)


def for_jax(jax: Any) -> Any:
    """The same for JAX."""
    jnp = jax.numpy

    def value(alphas, means, factors, x, gamma, m):
        n, d = x.shape
        k = len(alphas)
        diagonals = jnp.exp(factors[:, :d])
        sums = jnp.sum(factors[:, :d], axis=1)
        columns, rows = np.triu_indices(d, 1)
        lower = jnp.zeros((k, d, d)).at[:, rows, columns].set(factors[:, d:])
        centred = x[:, None] - means
        scaled = diagonals * centred + jnp.einsum("kij,nkj->nki", lower, centred)
        terms = alphas + sums - 0.5 * jnp.sum(scaled**2, axis=2)
        log_of_sum = jax.scipy.special.logsumexp
        fit = jnp.sum(log_of_sum(terms, axis=1)) - n * log_of_sum(alphas)
        squares = jnp.sum(diagonals**2, axis=1) + jnp.sum(factors[:, d:] ** 2, axis=1)
        prior = jnp.sum(0.5 * gamma**2 * squares - m * sums)
        freedom = d + m + 1
        constant = freedom * d * (math.log(gamma) - 0.5 * math.log(2.0))
        constant -= multigammaln(0.5 * freedom, d)
        return fit - 0.5 * n * d * math.log(2.0 * math.pi) + prior - k * constant

    return value


def for_torch(torch: Any) -> Any:
    """The same for PyTorch."""

    def value(alphas, means, factors, x, gamma, m):
        n, d = x.shape
        k = len(alphas)
        diagonals = torch.exp(factors[:, :d])
        sums = torch.sum(factors[:, :d], dim=1)
        columns, rows = np.triu_indices(d, 1)
        lower = torch.zeros((k, d, d), dtype=x.dtype)
        lower[:, rows, columns] = factors[:, d:]
        centred = x[:, None] - means
        scaled = diagonals * centred + torch.einsum("kij,nkj->nki", lower, centred)
        terms = alphas + sums - 0.5 * torch.sum(scaled**2, dim=2)
        fit = torch.sum(torch.logsumexp(terms, dim=1)) - n * torch.logsumexp(alphas, dim=0)
        squares = torch.sum(diagonals**2, dim=1) + torch.sum(factors[:, d:] ** 2, dim=1)
        prior = torch.sum(0.5 * gamma**2 * squares - m * sums)
        freedom = d + m + 1
        constant = freedom * d * (math.log(gamma) - 0.5 * math.log(2.0))
        constant -= multigammaln(0.5 * freedom, d)
        return fit - 0.5 * n * d * math.log(2.0 * math.pi) + prior - k * constant

    return value


def make(n: int, d: int, k: int) -> Arguments:
    """Random parameters and points."""
    rng = np.random.default_rng(3)
    return (
        rng.normal(size=k), rng.normal(size=(k, d)), 0.3 * rng.normal(size=(k, d * (d + 1) // 2)),
        rng.normal(size=(n, d)), 1.0, 0,
    )  # fmt: skip


PROBLEM = Problem(
    "gmm", arrays, loops, make, (5, 3, 2), (1000, 10, 25), (0, 1, 2), 2.5, for_jax, for_torch
)
