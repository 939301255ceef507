"""Programs whose gradients are timed: loops and updates in place, as a NumPy user writes them.

Most are of the PolyBench family, written from their definitions. Each answers one number: the sum
of its output arrays, weighted where the gradient of the plain sum vanishes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Arguments = tuple[Any, ...]
# -- stencils


def jacobi_1d(a, steps):
    a = a.copy()
    b = a.copy()
    for _ in range(steps):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])
    return np.sum(a)


def jacobi_2d(a, steps):
    a = a.copy()
    b = a.copy()
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        )
        a[1:-1, 1:-1] = 0.2 * (
            b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1]
        )
    return np.sum(a)


def seidel_2d(a, steps):
    a = a.copy()
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = (
                    a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1]
                    + a[i, j - 1] + a[i, j] + a[i, j + 1]
                    + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
                ) / 9.0  # fmt: skip
    return np.sum(a)


def heat_3d(a, steps):
    a = a.copy()
    b = a.copy()
    for _ in range(steps):
        b[1:-1, 1:-1, 1:-1] = (
            0.125 * (a[2:, 1:-1, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1])
            + 0.125 * (a[1:-1, 2:, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, :-2, 1:-1])
            + 0.125 * (a[1:-1, 1:-1, 2:] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, 1:-1, :-2])
            + a[1:-1, 1:-1, 1:-1]
        )
        a[1:-1, 1:-1, 1:-1] = (
            0.125 * (b[2:, 1:-1, 1:-1] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[:-2, 1:-1, 1:-1])
            + 0.125 * (b[1:-1, 2:, 1:-1] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[1:-1, :-2, 1:-1])
            + 0.125 * (b[1:-1, 1:-1, 2:] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[1:-1, 1:-1, :-2])
            + b[1:-1, 1:-1, 1:-1]
        )
    return np.sum(a)


def fdtd_2d(ex, ey, hz, source):
    ex, ey, hz = ex.copy(), ey.copy(), hz.copy()
    for t in range(len(source)):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return np.sum(ex) + np.sum(ey) + np.sum(hz)


# -- linear algebra in loops


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


# -- linear algebra by BLAS


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


# -- others


def recurrence(a):
    y = np.ones_like(a)
    for i in range(1, len(a)):
        y[i] = a[i] * y[i - 1] + math.sin(y[i - 1])
    return np.sum(y)


def lorenz(u, steps):
    x, y, z = u[0], u[1], u[2]
    for _ in range(steps):
        dx = 10.0 * (y - x)
        dy = x * (28.0 - z) - y
        dz = x * y - 8.0 / 3.0 * z
        x = x + 1e-4 * dx
        y = y + 1e-4 * dy
        z = z + 1e-4 * dz
    return x + y + z


def n_body(x, v, m, steps):
    x, v = x.copy(), v.copy()
    n = len(m)
    for _ in range(steps):
        for i in range(n):
            for j in range(i):
                d0 = x[i, 0] - x[j, 0]
                d1 = x[i, 1] - x[j, 1]
                d2 = x[i, 2] - x[j, 2]
                r2 = d0 * d0 + d1 * d1 + d2 * d2 + 0.01
                f = 0.001 / (r2 * math.sqrt(r2))
                v[i, 0] -= d0 * f * m[j]
                v[i, 1] -= d1 * f * m[j]
                v[i, 2] -= d2 * f * m[j]
                v[j, 0] += d0 * f * m[i]
                v[j, 1] += d1 * f * m[i]
                v[j, 2] += d2 * f * m[i]
        x += 0.001 * v
    return np.sum(x * x)


def softmax(x, weights):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return np.sum(weights * (e / np.sum(e, axis=-1, keepdims=True)))


def mlp(w1, b1, w2, b2, w3, b3, x, weights):
    x = np.maximum(x @ w1 + b1, 0.0)
    x = np.maximum(x @ w2 + b2, 0.0)
    x = x @ w3 + b3
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return np.sum(weights * (e / np.sum(e, axis=-1, keepdims=True)))


def mixture(means, alphas, diagonals, lower, x):
    """The log-likelihood of a Gaussian mixture; inverse factors with diagonals exp(d)."""
    count, d = x.shape
    components = len(alphas)
    total = 0.0
    terms = np.zeros(components)
    for i in range(count):
        for k in range(components):
            s = 0.0
            for r in range(d):
                q = math.exp(diagonals[k, r]) * (x[i, r] - means[k, r])
                for c in range(r):
                    q += lower[k, r, c] * (x[i, c] - means[k, c])
                s += q * q
            terms[k] = alphas[k] + np.sum(diagonals[k]) - 0.5 * s
        m = np.max(terms)
        total += m + math.log(np.sum(np.exp(terms - m)))
    return total - count * math.log(np.sum(np.exp(alphas)))


# -- arguments


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).uniform(0.5, 1.5, shape)


def _dominant(n: int) -> np.ndarray:
    a = _random(n, n) - 1.0
    return a @ a.T + n * np.eye(n)


def _fdtd(n: int, steps: int) -> Arguments:
    a = _random(3, n, n + 3)
    return a[0], a[1], a[2], np.arange(float(steps))


def _trisolv(n: int) -> Arguments:
    return np.tril(_random(n, n) - 1.0) + n * np.eye(n), _random(n)


def _bodies(n: int, steps: int) -> Arguments:
    values = np.random.default_rng(3).normal(size=(2, n, 3))
    return values[0], 0.1 * values[1], _random(n), steps


def _softmax(rows: int, columns: int) -> Arguments:
    values = np.random.default_rng(3).normal(size=(2, rows, columns))
    return values[0], values[1]


def _mlp(n: int, inputs: int, hidden: int, outputs: int) -> Arguments:
    draw = np.random.default_rng(3).normal
    w1, w2, w3 = ((inputs, hidden), (hidden, hidden), (hidden, outputs))
    return (
        draw(size=w1) / math.sqrt(inputs), draw(size=hidden), draw(size=w2) / math.sqrt(hidden),
        draw(size=hidden), draw(size=w3), draw(size=outputs), draw(size=(n, inputs)),
        draw(size=(n, outputs)),
    )  # fmt: skip


def _mixture(count: int, d: int, components: int) -> Arguments:
    draw = np.random.default_rng(3).normal
    return (
        draw(size=(components, d)), draw(size=components), 0.3 * draw(size=(components, d)),
        0.3 * draw(size=(components, d, d)), draw(size=(count, d)),
    )  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """One program with its arguments at three sizes.

    ``tiny`` is where answers are checked; ``small`` takes a millisecond or so under Numba.
    """

    f: Callable[..., Any]
    make: Callable[..., Arguments]
    tiny: tuple[int, ...]
    small: tuple[int, ...]
    medium: tuple[int, ...]

    @property
    def name(self) -> str:
        """The program's name."""
        return self.f.__name__

    def arguments(self, which: str) -> Arguments:
        """The arguments at one of the sizes; the first is differentiated."""
        return self.make(*getattr(self, which))


PROBLEMS = [
    Problem(jacobi_1d, lambda n, s: (_random(n), s), (9, 3), (2000, 200), (8000, 800)),
    Problem(jacobi_2d, lambda n, s: (_random(n, n), s), (6, 3), (90, 50), (250, 200)),
    Problem(seidel_2d, lambda n, s: (_random(n, n), s), (6, 3), (80, 15), (250, 40)),
    Problem(heat_3d, lambda n, s: (_random(n, n, n), s), (5, 2), (20, 20), (50, 50)),
    Problem(fdtd_2d, _fdtd, (5, 3), (80, 30), (250, 100)),
    Problem(cholesky, lambda n: (_dominant(n),), (5,), (100,), (350,)),
    Problem(lu, lambda n: (_dominant(n),), (5,), (120,), (280,)),
    Problem(trisolv, _trisolv, (6,), (1000,), (4000,)),
    Problem(durbin, lambda n: (_random(n) / n,), (6,), (800,), (3200,)),
    Problem(gramschmidt, lambda n: (_random(n + 10, n),), (4,), (55,), (200,)),
    Problem(trmm, lambda n: (_random(n, n), _random(n, n + 5), 1.5), (5,), (65,), (220,)),
    Problem(syrk, lambda n: (_random(n, n + 5), _random(n, n), 1.5, 1.2), (5,), (80,), (280,)),
    Problem(gemm, lambda n: (*_random(3, n, n), 1.5, 1.2), (5,), (300,), (1000,)),
    Problem(atax, lambda n: (_random(n, n + 7), _random(n + 7)), (5,), (1200,), (4500,)),
    Problem(
        bicg, lambda n: (_random(n, n + 7), _random(n + 7), _random(n)), (5,), (1200,), (4500,)
    ),
    Problem(mvt, lambda n: (_random(n, n), *_random(4, n)), (5,), (1200,), (4500,)),
    Problem(gesummv, lambda n: (*_random(2, n, n), _random(n), 1.5, 1.2), (5,), (800,), (3500,)),
    Problem(recurrence, lambda n: (_random(n) - 0.6,), (9,), (100_000,), (1_000_000,)),
    Problem(lorenz, lambda s: (np.array([1.0, 2.0, 20.0]), s), (20,), (100_000,), (1_000_000,)),
    Problem(n_body, _bodies, (4, 3), (16, 200), (50, 500)),
    Problem(softmax, _softmax, (4, 5), (500, 300), (4000, 500)),
    Problem(mlp, _mlp, (4, 3, 5, 6), (64, 100, 100, 10), (512, 400, 400, 10)),
    Problem(mixture, _mixture, (7, 3, 4), (60, 10, 25), (1000, 10, 25)),
]
