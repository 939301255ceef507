"""Products of matrices and vectors: in loops over slices, and by BLAS."""

from __future__ import annotations

import numpy as np

from benchmarks.reverse_programs.problem import Arguments, Problem, normal, random

# -- in loops


def trmm(a, b, alpha):
    b = b.copy()
    m, n = b.shape
    for i in range(m):
        for j in range(n):
            b[i, j] += a[i + 1 :, i] @ b[i + 1 :, j]
    b *= alpha
    return np.sum(b)


def syrk(a, c, alpha, beta):
    c = c.copy()
    for i in range(a.shape[0]):
        c[i, : i + 1] *= beta
        for k in range(a.shape[1]):
            c[i, : i + 1] += alpha * a[i, k] * a[: i + 1, k]
    return np.sum(c)


def syr2k(a, b, c, alpha, beta):
    c = c.copy()
    for i in range(a.shape[0]):
        c[i, : i + 1] *= beta
        for k in range(a.shape[1]):
            c[i, : i + 1] += alpha * b[i, k] * a[: i + 1, k] + alpha * a[i, k] * b[: i + 1, k]
    return np.sum(c)


def symm(a, b, c, alpha, beta):
    c = beta * c
    m, n = c.shape
    inner = np.empty(n)
    for i in range(m):
        for j in range(n):
            c[:i, j] += alpha * b[i, j] * a[i, :i]
            inner[j] = b[:i, j] @ a[i, :i]
        c[i, :] += alpha * b[i, :] * a[i, i] + alpha * inner
    return np.sum(c)


def doitgen(a, c4):
    a = a.copy()
    for r in range(a.shape[0]):
        for q in range(a.shape[1]):
            a[r, q] = a[r, q] @ c4
    return np.sum(a)


# -- by BLAS


def gemm(a, b, c, alpha, beta):
    return np.sum(alpha * a @ b + c * beta)


def atax(a, x):
    return np.sum((a @ x) @ a)


def bicg(a, p, r):
    return np.sum(r @ a) + np.sum(a @ p)


def mvt(a, x1, x2, y1, y2):
    x1 = x1 + a @ y1
    x2 = x2 + y2 @ a
    return np.sum(x1) + np.sum(x2)


def gesummv(a, b, x, alpha, beta):
    return np.sum(alpha * a @ x + beta * b @ x)


def k2mm(a, b, c, d, alpha, beta):
    return np.sum(alpha * a @ b @ c + beta * d)


def k3mm(a, b, c, d):
    return np.sum((a @ b) @ (c @ d))


def gemver(a, u1, v1, u2, v2, x, y, w, z, alpha, beta):
    a = a + np.outer(u1, v1) + np.outer(u2, v2)
    x = x + beta * y @ a + z
    w = w + alpha * a @ x
    return np.sum(a) + np.sum(x) + np.sum(w)


# -- statistics


def floyd_warshall(path):
    """The sum of all shortest paths of a graph."""
    path = path.copy()
    for k in range(len(path)):
        path[:] = np.minimum(path, np.add.outer(path[:, k], path[k]))
    return np.sum(path)


def covariance(data):
    n, m = data.shape
    data = data - np.sum(data, axis=0) / n
    out = np.zeros((m, m))
    for i in range(m):
        out[i, i:] = data[:, i] @ data[:, i:] / (n - 1.0)
        out[i:, i] = out[i, i:]
    return np.sum(out)


def correlation(data, weights):
    n, m = data.shape
    data = data - np.sum(data, axis=0) / n
    deviation = np.sqrt(np.sum(data**2, axis=0) / n)
    data = data / (np.sqrt(n) * np.where(deviation <= 0.1, 1.0, deviation))
    out = np.eye(m)
    for i in range(m - 1):
        out[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
        out[i + 1 :, i] = out[i, i + 1 :]
    return np.sum(weights * out)


# -- arguments


def _matrices(count: int, *numbers: float):
    return lambda n: (*random(count, n, n), *numbers)


def _bicg(n: int) -> Arguments:
    return random(n, n + 7), random(n + 7), random(n)


def _gesummv(n: int) -> Arguments:
    return (*random(2, n, n), random(n), 1.5, 1.2)


def _gemver(n: int) -> Arguments:
    return (random(n, n), *random(8, n), 1.5, 1.2)


def _correlation(n: int) -> Arguments:
    return normal(n + 20, n), normal(n, n)


PROBLEMS = [
    Problem(trmm, lambda n: (random(n, n), random(n, n + 5), 1.5), (5,), (65,), (220,)),
    Problem(syrk, lambda n: (random(n, n + 5), random(n, n), 1.5, 1.2), (5,), (80,), (280,)),
    Problem(syr2k, lambda n: (*random(2, n, n + 5), random(n, n), 1.5, 1.2), (5,), (70,), (240,)),
    Problem(symm, lambda n: (random(n, n), *random(2, n, n + 5), 1.5, 1.2), (5,), (60,), (200,)),
    Problem(doitgen, lambda n: (random(n, n + 2, n), random(n, n)), (4,), (40,), (110,)),
    Problem(gemm, _matrices(3, 1.5, 1.2), (5,), (300,), (1000,), interpreted=True),
    Problem(k2mm, _matrices(4, 1.5, 1.2), (5,), (250,), (800,), interpreted=True),
    Problem(k3mm, _matrices(4), (5,), (220,), (700,), interpreted=True),
    Problem(
        atax, lambda n: (random(n, n + 7), random(n + 7)), (5,), (1200,), (4500,), interpreted=True
    ),
    Problem(bicg, _bicg, (5,), (1200,), (4500,), interpreted=True),
    Problem(mvt, lambda n: (random(n, n), *random(4, n)), (5,), (1200,), (4500,), interpreted=True),
    Problem(gemver, _gemver, (5,), (600,), (3000,), interpreted=True),
    Problem(gesummv, _gesummv, (5,), (800,), (3500,), interpreted=True),
    Problem(covariance, lambda n: (random(n + 20, n),), (4,), (150,), (500,), interpreted=True),
    Problem(correlation, _correlation, (4,), (150,), (500,), interpreted=True),
    Problem(floyd_warshall, lambda n: (random(n, n),), (6,), (80,), (300,), interpreted=True),
]
