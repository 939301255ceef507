"""Factorisations and solvers in loops: what is overwritten is read again."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.reverse_programs.problem import Arguments, Problem, random


def cholesky(a):
    a = a.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[j, :j]
            a[i, j] /= a[j, j]
        a[i, i] -= a[i, :i] @ a[i, :i]
        a[i, i] = math.sqrt(a[i, i])
    return np.sum(a)


def lu(a):
    a = a.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return np.sum(a)


def trisolv(l, b):
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - l[i, :i] @ x[:i]) / l[i, i]
    return np.sum(x)


def durbin(r):
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, len(r)):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + r[:k][::-1] @ y[:k]) / beta
        y[:k] += alpha * y[:k][::-1]
        y[k] = alpha
    return np.sum(y)


def gramschmidt(a):
    a = a.copy()
    n = a.shape[1]
    q = np.zeros_like(a)
    r = np.zeros((n, n))
    for k in range(n):
        r[k, k] = math.sqrt(a[:, k] @ a[:, k])
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, n):
            r[k, j] = q[:, k] @ a[:, j]
            a[:, j] -= q[:, k] * r[k, j]
    return np.sum(q) + np.sum(r)


def ludcmp(a, b):
    a = a.copy()
    n = len(b)
    for i in range(n):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            a[i, j] -= a[i, :i] @ a[:i, j]
    x = np.zeros_like(b)
    y = np.zeros_like(b)
    for i in range(n):
        y[i] = b[i] - a[i, :i] @ y[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return np.sum(x) + np.sum(y)


# -- arguments


def _dominant(n: int) -> np.ndarray:
    a = random(n, n) - 1.0
    return a @ a.T + n * np.eye(n)


def _trisolv(n: int) -> Arguments:
    return np.tril(random(n, n) - 1.0) + n * np.eye(n), random(n)


PROBLEMS = [
    Problem(cholesky, lambda n: (_dominant(n),), (5,), (100,), (350,)),
    Problem(lu, lambda n: (_dominant(n),), (5,), (120,), (280,)),
    Problem(ludcmp, lambda n: (_dominant(n), random(n)), (5,), (120,), (280,)),
    Problem(trisolv, _trisolv, (6,), (1000,), (4000,)),
    Problem(durbin, lambda n: (random(n) / n,), (6,), (800,), (3200,)),
    Problem(gramschmidt, lambda n: (random(n + 10, n),), (4,), (55,), (200,)),
]
