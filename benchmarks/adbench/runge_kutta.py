"""``ode``: Runge–Kutta steps of a chain of equations, ``y_i' = x_i y_(i-1)`` with ``y_0' = x_0``.

The speed test of CppAD (Bell, "CppAD: a package for differentiation of C++ algorithms"), and of
GradBench: the last component at the end, by all factors x.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.adbench.problem import Arguments, Problem


def _slope(x, y):
    return x * np.concatenate((np.ones(1), y[:-1]))


def arrays(x, steps):
    y = np.zeros(len(x))
    h = 1.0 / steps
    for _ in range(steps):
        k1 = _slope(x, y)
        k2 = _slope(x, y + 0.5 * h * k1)
        k3 = _slope(x, y + 0.5 * h * k2)
        k4 = _slope(x, y + h * k3)
        y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return y[-1]


def _store_slope(out, x, y):
    out[0] = x[0]
    for i in range(1, len(x)):
        out[i] = x[i] * y[i - 1]


def loops(x, steps):
    n = len(x)
    y, z = np.zeros(n), np.zeros(n)
    k1, k2, k3, k4 = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    h = 1.0 / steps
    for _ in range(steps):
        _store_slope(k1, x, y)
        for i in range(n):
            z[i] = y[i] + 0.5 * h * k1[i]
        _store_slope(k2, x, z)
        for i in range(n):
            z[i] = y[i] + 0.5 * h * k2[i]
        _store_slope(k3, x, z)
        for i in range(n):
            z[i] = y[i] + h * k3[i]
        _store_slope(k4, x, z)
        for i in range(n):
            y[i] += h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i])
    return y[n - 1]


def for_jax(jax: Any) -> Any:
    """The same for JAX, its steps by ``fori_loop`` over a known number."""
    jnp = jax.numpy

    def value(x, steps):
        h = 1.0 / steps

        def slope(y):
            return x * jnp.concatenate((jnp.ones(1), y[:-1]))

        def step(_, y):
            k1 = slope(y)
            k2 = slope(y + 0.5 * h * k1)
            k3 = slope(y + 0.5 * h * k2)
            k4 = slope(y + h * k3)
            return y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

        return jax.lax.fori_loop(0, steps, step, jnp.zeros(len(x)))[-1]

    return value


def for_torch(torch: Any) -> Any:
    """The same for PyTorch."""

    def value(x, steps):
        h = 1.0 / steps
        one = torch.ones(1, dtype=x.dtype)

        def slope(y):
            return x * torch.cat((one, y[:-1]))

        y = torch.zeros(len(x), dtype=x.dtype)
        for _ in range(steps):
            k1 = slope(y)
            k2 = slope(y + 0.5 * h * k1)
            k3 = slope(y + 0.5 * h * k2)
            k4 = slope(y + h * k3)
            y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return y[-1]

    return value


def make(n: int, steps: int) -> Arguments:
    """Factors about one."""
    return np.random.default_rng(3).uniform(0.5, 1.5, n), steps


PROBLEM = Problem("ode", arrays, loops, make, (3, 4), (100, 1000), (0,), 3.5, for_jax, for_torch)
