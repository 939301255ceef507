"""Recurrences and integrators: numbers, carried from step to step."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.reverse_programs.problem import Arguments, Problem, normal, random


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


def oscillator(p, steps):
    """A driven pendulum with friction, by the classical Runge-Kutta method."""
    friction, strength, drive = p[0], p[1], p[2]

    def force(t, x, v):
        return -friction * v - strength * math.sin(x) + drive * math.cos(0.7 * t)

    x, v = p[3], p[4]
    h = 1e-4
    for k in range(steps):
        t = k * h
        k1 = force(t, x, v)
        v2 = v + 0.5 * h * k1
        k2 = force(t + 0.5 * h, x + 0.5 * h * v, v2)
        v3 = v + 0.5 * h * k2
        k3 = force(t + 0.5 * h, x + 0.5 * h * v2, v3)
        v4 = v + h * k3
        k4 = force(t + h, x + h * v3, v4)
        x += h / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4)
        v += h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return x + v


# -- arguments


def _lorenz(steps: int) -> Arguments:
    return np.array([1.0, 2.0, 20.0]), steps


def _oscillator(steps: int) -> Arguments:
    return np.array([0.1, 1.0, 0.3, 1.0, 0.0]), steps


def _bodies(n: int, steps: int) -> Arguments:
    x, v = normal(2, n, 3)
    return x, 0.1 * v, random(n), steps


PROBLEMS = [
    Problem(recurrence, lambda n: (random(n) - 0.6,), (9,), (100_000,), (1_000_000,)),
    Problem(lorenz, _lorenz, (20,), (100_000,), (1_000_000,)),
    Problem(oscillator, _oscillator, (20,), (10_000,), (1_000_000,)),
    Problem(n_body, _bodies, (4, 3), (16, 200), (50, 500)),
]
