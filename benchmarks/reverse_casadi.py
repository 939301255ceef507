"""The scalar programs as CasADi has them: one step as an expression, and ``fold`` for the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi
import numpy as np
from casadi import SX, vertcat

Call = Callable[[], Any]


def recurrence(a: np.ndarray) -> Call:
    y, factor = SX.sym("y"), SX.sym("a")
    after = factor * y + casadi.sin(y)
    step = casadi.Function("step", [y, factor], [after])
    n = len(a) - 1
    ys = step.mapaccum("steps", n)
    given = casadi.MX.sym("a", 1, n)
    value = 1.0 + casadi.sum2(ys(1.0, given))
    call = _gradient(value, given, a[np.newaxis, 1:])

    def answer() -> tuple[float, np.ndarray]:
        value, gradient = call()
        return value, np.concatenate([[0.0], gradient])

    return answer


def lorenz(u: np.ndarray, steps: int) -> Call:
    s = SX.sym("s", 3)
    x, y, z = s[0], s[1], s[2]
    change = vertcat(10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z)
    step = casadi.Function("step", [s], [s + 1e-4 * change])
    start = casadi.MX.sym("u", 3)
    return _gradient(casadi.sum1(step.fold(steps)(start)), start, u)


def oscillator(p: np.ndarray, steps: int) -> Call:
    s, force_of = SX.sym("s", 3), SX.sym("p", 3)
    h = 1e-4

    def force(t: Any, x: Any, v: Any) -> Any:
        return -force_of[0] * v - force_of[1] * casadi.sin(x) + force_of[2] * casadi.cos(0.7 * t)

    k, x, v = s[0], s[1], s[2]
    t = k * h
    k1 = force(t, x, v)
    v2 = v + 0.5 * h * k1
    k2 = force(t + 0.5 * h, x + 0.5 * h * v, v2)
    v3 = v + 0.5 * h * k2
    k3 = force(t + 0.5 * h, x + 0.5 * h * v2, v3)
    v4 = v + h * k3
    k4 = force(t + h, x + h * v3, v4)
    x = x + h / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4)
    v = v + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    step = casadi.Function("step", [s, force_of], [vertcat(k + 1.0, x, v)])
    given = casadi.MX.sym("p", 5)
    same = casadi.repmat(given[:3], 1, steps)
    end = step.mapaccum("steps", steps)(vertcat(0.0, given[3], given[4]), same)[:, -1]
    return _gradient(end[1] + end[2], given, p)


def _gradient(value: Any, given: Any, at: np.ndarray) -> Call:
    made = casadi.Function("both", [given], [value, casadi.gradient(value, given)])

    def call() -> tuple[float, np.ndarray]:
        value, gradient = made(at)
        return float(value), np.asarray(gradient).reshape(-1)

    return call


PROGRAMS = {f.__name__: f for f in (recurrence, lorenz, oscillator)}
