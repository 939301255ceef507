"""The problems of ``benchmarks.sparse``, for NumPy, for asdex and for CasADi."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fwdad.colouring import colour


class Problem(NamedTuple):
    """A function of an array, where, and the same for other tools."""

    name: str
    f: Callable[[Any], Any]
    shape: tuple[int, ...]
    in_jax: Callable[[Any], Any]
    hessian: bool = False
    in_casadi: Callable[[Any, Any], Any] | None = None

    @property
    def kind(self) -> str:
        """What has colours."""
        return "star" if self.hessian else "columns"

    def coloured(self, pattern: Any) -> Any:
        """The pattern with colours."""
        return colour(pattern, self.kind)


def burgers(u: Any) -> Any:
    """Burgers' equation, central differences; its ends stay."""
    out = np.zeros_like(u)
    out[1:-1] = 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) - u[1:-1] * (u[2:] - u[:-2])
    return out


def burgers_in_jax(u: Any) -> Any:
    import jax.numpy as jnp

    inner = 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) - u[1:-1] * (u[2:] - u[:-2])
    return jnp.pad(inner, 1)


def burgers_in_casadi(casadi: Any, u: Any) -> Any:
    n = u.numel()
    left, middle, right = u[: n - 2], u[1 : n - 1], u[2:]
    inner = 0.1 * (right - 2 * middle + left) - middle * (right - left)
    return casadi.vertcat(0, inner, 0)


def bratu(u: Any) -> Any:
    """Bratu's problem on a square, zero at its border."""
    wide = np.pad(u, 1)
    around = wide[2:, 1:-1] + wide[:-2, 1:-1] + wide[1:-1, 2:] + wide[1:-1, :-2]
    return around - 4 * u + 0.3 * np.exp(u)


def bratu_in_jax(u: Any) -> Any:
    import jax.numpy as jnp

    wide = jnp.pad(u, 1)
    around = wide[2:, 1:-1] + wide[:-2, 1:-1] + wide[1:-1, 2:] + wide[1:-1, :-2]
    return around - 4 * u + 0.3 * jnp.exp(u)


def bratu_in_casadi(casadi: Any, x: Any) -> Any:
    n = round(x.numel() ** 0.5)
    u = casadi.reshape(x, n, n).T
    row, column = casadi.SX(1, n), casadi.SX(n, 1)
    around = casadi.vertcat(u[1:, :], row) + casadi.vertcat(row, u[:-1, :])
    around += casadi.horzcat(u[:, 1:], column) + casadi.horzcat(column, u[:, :-1])
    return casadi.vec((around - 4 * u + 0.3 * casadi.exp(u)).T)


def brusselator(w: Any) -> Any:
    """The Brusselator on a torus, two unknowns at each point."""
    u, v = w
    out = np.empty_like(w)
    for k, a in ((0, u), (1, v)):
        around = np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1)
        out[k] = 10.0 * (around - 4 * a)
    reaction = u * u * v
    out[0] += 1.0 + reaction - 4.4 * u
    out[1] += 3.4 * u - reaction
    return out


def brusselator_in_jax(w: Any) -> Any:
    import jax.numpy as jnp

    u, v = w
    reaction = u * u * v
    rates = 1.0 + reaction - 4.4 * u, 3.4 * u - reaction
    out = []
    for a, rate in zip((u, v), rates, strict=True):
        around = jnp.roll(a, 1, 0) + jnp.roll(a, -1, 0) + jnp.roll(a, 1, 1) + jnp.roll(a, -1, 1)
        out.append(10.0 * (around - 4 * a) + rate)
    return jnp.stack(out)


def brusselator_in_casadi(casadi: Any, x: Any) -> Any:
    n = round((x.numel() / 2) ** 0.5)
    u, v = (casadi.reshape(x[k * n * n : (k + 1) * n * n], n, n).T for k in range(2))
    reaction = u * u * v
    rates = 1.0 + reaction - 4.4 * u, 3.4 * u - reaction
    out = []
    for a, rate in zip((u, v), rates, strict=True):
        around = casadi.vertcat(a[1:, :], a[0, :]) + casadi.vertcat(a[-1, :], a[:-1, :])
        around += casadi.horzcat(a[:, 1:], a[:, 0]) + casadi.horzcat(a[:, -1], a[:, :-1])
        out.append(casadi.vec((10.0 * (around - 4 * a) + rate).T))
    return casadi.vertcat(*out)


def rosenbrock(x: Any) -> Any:
    """Rosenbrock's function, chained: a number."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def rosenbrock_in_jax(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def rosenbrock_in_casadi(casadi: Any, x: Any) -> Any:
    n = x.numel()
    first, second = x[: n - 1], x[1:]
    return casadi.sum1(100 * (second - first**2) ** 2 + (1 - first) ** 2)


BUSES = 5000
_RNG = np.random.default_rng(7)
FROM = np.concatenate([np.arange(BUSES - 1), _RNG.integers(0, BUSES - 40, 2500)])
TO = np.concatenate([np.arange(1, BUSES), FROM[BUSES - 1 :] + _RNG.integers(2, 40, 2500)])
CONDUCTANCE, SUSCEPTANCE = _RNG.uniform(0.5, 2, FROM.size), _RNG.uniform(4, 12, FROM.size)
ACTIVE, REACTIVE = _RNG.normal(size=(2, FROM.size))


def power_flow(x: Any) -> Any:
    """The Lagrangian of an optimal power flow: angles and voltages at buses, flows on lines."""
    angle, voltage = x[:BUSES], x[BUSES:]
    difference = angle[FROM] - angle[TO]
    product = voltage[FROM] * voltage[TO]
    c, s = np.cos(difference), np.sin(difference)
    active = product * (CONDUCTANCE * c + SUSCEPTANCE * s)
    reactive = product * (CONDUCTANCE * s - SUSCEPTANCE * c)
    cost = np.sum((voltage - 1) ** 2) + np.sum((active - 0.1) ** 2)
    return cost + np.dot(ACTIVE, active) + np.dot(REACTIVE, reactive)


def power_flow_in_jax(x: Any) -> Any:
    import jax.numpy as jnp

    angle, voltage = x[:BUSES], x[BUSES:]
    difference = angle[FROM] - angle[TO]
    product = voltage[FROM] * voltage[TO]
    c, s = jnp.cos(difference), jnp.sin(difference)
    active = product * (CONDUCTANCE * c + SUSCEPTANCE * s)
    reactive = product * (CONDUCTANCE * s - SUSCEPTANCE * c)
    cost = jnp.sum((voltage - 1) ** 2) + jnp.sum((active - 0.1) ** 2)
    return cost + jnp.dot(ACTIVE, active) + jnp.dot(REACTIVE, reactive)


def power_flow_in_casadi(casadi: Any, x: Any) -> Any:
    angle, voltage = x[:BUSES], x[BUSES:]
    begin, end = FROM.tolist(), TO.tolist()
    difference = angle[begin] - angle[end]
    product = voltage[begin] * voltage[end]
    c, s = casadi.cos(difference), casadi.sin(difference)
    active = product * (CONDUCTANCE * c + SUSCEPTANCE * s)
    reactive = product * (CONDUCTANCE * s - SUSCEPTANCE * c)
    cost = casadi.sumsqr(voltage - 1) + casadi.sumsqr(active - 0.1)
    return cost + casadi.dot(ACTIVE, active) + casadi.dot(REACTIVE, reactive)


PROBLEMS = [
    Problem("Burgers, 4096", burgers, (4096,), burgers_in_jax, in_casadi=burgers_in_casadi),
    Problem("Bratu, 100 × 100", bratu, (100, 100), bratu_in_jax, in_casadi=bratu_in_casadi),
    Problem(
        "Brusselator, 100 × 100 × 2", brusselator, (2, 100, 100), brusselator_in_jax,
        in_casadi=brusselator_in_casadi,
    ),
    Problem(
        "Rosenbrock's Hessian, 10⁵", rosenbrock, (100_000,), rosenbrock_in_jax, hessian=True,
        in_casadi=rosenbrock_in_casadi,
    ),
    Problem(
        "power flow's Hessian, 10⁴", power_flow, (2 * BUSES,), power_flow_in_jax, hessian=True,
        in_casadi=power_flow_in_casadi,
    ),
]  # fmt: skip
LARGE = [Problem("Bratu, 1000 × 1000", bratu, (1000, 1000), bratu_in_jax)]
