"""Adjoint code by hand, for Numba: what a gradient can cost.

Each returns ``(value, gradient with respect to the first argument)`` of the program of its name.
"""

import math

import numpy as np


def recurrence(a):
    n = len(a)
    y = np.ones_like(a)
    for i in range(1, n):
        y[i] = a[i] * y[i - 1] + math.sin(y[i - 1])
    total = np.sum(y)
    a_bar = np.zeros_like(a)
    y_bar = 1.0
    for i in range(n - 1, 0, -1):
        a_bar[i] = y_bar * y[i - 1]
        y_bar = 1.0 + y_bar * (a[i] + math.cos(y[i - 1]))
    return total, a_bar


def lorenz(u, steps):
    kept = np.empty((steps, 3))
    x, y, z = u[0], u[1], u[2]
    for t in range(steps):
        kept[t, 0], kept[t, 1], kept[t, 2] = x, y, z
        dx = 10.0 * (y - x)
        dy = x * (28.0 - z) - y
        dz = x * y - 8.0 / 3.0 * z
        x = x + 1e-4 * dx
        y = y + 1e-4 * dy
        z = z + 1e-4 * dz
    x_bar = y_bar = z_bar = 1.0
    for t in range(steps - 1, -1, -1):
        a, b, c = kept[t, 0], kept[t, 1], kept[t, 2]
        dx, dy, dz = 1e-4 * x_bar, 1e-4 * y_bar, 1e-4 * z_bar
        x_bar += dy * (28.0 - c) + dz * b - 10.0 * dx
        y_bar += 10.0 * dx - dy + dz * a
        z_bar -= dy * a + 8.0 / 3.0 * dz
    return x + y + z, np.array([x_bar, y_bar, z_bar])


def lu(a):  # noqa: C901  (loops, as they are)
    n = a.shape[0]
    f = a.copy()
    for i in range(n):
        for j in range(i):
            for k in range(j):
                f[i, j] -= f[i, k] * f[k, j]
            f[i, j] /= f[j, j]
        for k in range(i):
            for j in range(i, n):
                f[i, j] -= f[i, k] * f[k, j]
    bar = np.ones((n, n))
    for i in range(n - 1, -1, -1):
        for k in range(i - 1, -1, -1):
            s = 0.0
            for j in range(i, n):
                s += bar[i, j] * f[k, j]
                bar[k, j] -= bar[i, j] * f[i, k]
            bar[i, k] -= s
        for j in range(i - 1, -1, -1):
            bar[i, j] /= f[j, j]
            bar[j, j] -= bar[i, j] * f[i, j]
            for k in range(j):
                bar[i, k] -= bar[i, j] * f[k, j]
                bar[k, j] -= bar[i, j] * f[i, k]
    return np.sum(f), bar


def gemm(a, b, c, alpha, beta):
    y = alpha * a @ b + c * beta
    return np.sum(y), np.ascontiguousarray((alpha * np.ones_like(y)) @ b.T)


HAND = {f.__name__: f for f in (recurrence, lorenz, lu, gemm)}
