"""Derivatives at many points beside ``jax.vmap``, in one run.

python -m benchmarks.batch [--only NAME] [--rounds N] [--threads]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import fwdad
from benchmarks.measure import paired_ratio, time_interleaved
from benchmarks.table import duration, table, three_digits, versions

RNG = np.random.default_rng(0)


class Problem(NamedTuple):
    """A function of one point in both tools, and the arguments of all points."""

    name: str
    f: Callable[..., Any]
    in_jax: Callable[[Any], Callable[..., Any]]
    args: tuple[Any, ...]
    in_axes: Any = 0
    derivative: str = "grad"


def huber(x: float) -> float:
    """A branch, which a tool that maps arrays computes both sides of."""
    if abs(x) < 1.0:
        return 0.5 * x * x
    return abs(x) - 0.5


def huber_in_jax(jax: Any) -> Any:
    def f(x: Any) -> Any:
        return jax.lax.cond(
            abs(x) < 1.0, lambda x: 0.5 * x * x, lambda x: jax.numpy.abs(x) - 0.5, x
        )

    return f


def kepler(mean: float) -> float:
    """Newton's iteration until it has converged: points need different numbers of steps."""
    angle = mean
    step = 1.0
    while abs(step) > 1e-12:
        step = (angle - 0.7 * np.sin(angle) - mean) / (1.0 - 0.7 * np.cos(angle))
        angle = angle - step
    return angle


def kepler_in_jax(jax: Any) -> Any:
    jnp = jax.numpy

    def f(mean: Any) -> Any:
        def body(state: Any) -> Any:
            angle, _ = state
            step = (angle - 0.7 * jnp.sin(angle) - mean) / (1.0 - 0.7 * jnp.cos(angle))
            return angle - step, step

        return jax.lax.while_loop(lambda s: abs(s[1]) > 1e-12, body, (mean, 1.0))[0]

    return f


def rosenbrock(x: Any) -> Any:
    """Slices of ten variables."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def rosenbrock_in_jax(jax: Any) -> Any:
    def f(x: Any) -> Any:
        return jax.numpy.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    return f


def reaction(c: Any) -> Any:
    """Robertson's problem, whose Jacobian a collocation asks for at every node."""
    a, b = 0.04 * c[0], 1e4 * c[1] * c[2]
    d = 3e7 * c[1] ** 2
    return np.array([b - a, a - b - d, d])


def reaction_in_jax(jax: Any) -> Any:
    def f(c: Any) -> Any:
        a, b = 0.04 * c[0], 1e4 * c[1] * c[2]
        d = 3e7 * c[1] ** 2
        return jax.numpy.array([b - a, a - b - d, d])

    return f


def network(weights: Any, x: Any, y: float) -> Any:
    """The loss of one sample by a network of two layers: the products of one vector."""
    first, second = weights[: 32 * 64].reshape(64, 32), weights[32 * 64 :]
    return (second @ np.tanh(first @ x) - y) ** 2


def network_in_jax(jax: Any) -> Any:
    def f(weights: Any, x: Any, y: Any) -> Any:
        first, second = weights[: 32 * 64].reshape(64, 32), weights[32 * 64 :]
        return (second @ jax.numpy.tanh(first @ x) - y) ** 2

    return f


def lorenz(start: Any) -> Any:
    """An ensemble of ODEs: 100 steps of the classical method of Runge and Kutta."""

    def slope(s: Any) -> Any:
        return np.array([
            10.0 * (s[1] - s[0]), s[0] * (28.0 - s[2]) - s[1], s[0] * s[1] - 8.0 / 3.0 * s[2],
        ])  # fmt: skip

    h, s = 0.01, start
    for _ in range(100):
        k1 = slope(s)
        k2 = slope(s + 0.5 * h * k1)
        k3 = slope(s + 0.5 * h * k2)
        k4 = slope(s + h * k3)
        s = s + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return np.sum(s**2)


def lorenz_in_jax(jax: Any) -> Any:
    jnp = jax.numpy

    def slope(s: Any) -> Any:
        return jnp.array([
            10.0 * (s[1] - s[0]), s[0] * (28.0 - s[2]) - s[1], s[0] * s[1] - 8.0 / 3.0 * s[2],
        ])  # fmt: skip

    def f(start: Any) -> Any:
        def step(s: Any, _: Any) -> Any:
            h = 0.01
            k1 = slope(s)
            k2 = slope(s + 0.5 * h * k1)
            k3 = slope(s + 0.5 * h * k2)
            k4 = slope(s + h * k3)
            return s + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4), None

        return jnp.sum(jax.lax.scan(step, start, None, length=100)[0] ** 2)

    return f


PROBLEMS = [
    Problem("Huber's loss", huber, huber_in_jax, (RNG.normal(size=10_000) * 2,)),
    Problem("Kepler's equation", kepler, kepler_in_jax, (RNG.uniform(0, 6, 10_000),), 0, "jacfwd"),
    Problem("Rosenbrock 10", rosenbrock, rosenbrock_in_jax, (RNG.normal(size=(1_000, 10)),)),
    Problem("Robertson", reaction, reaction_in_jax, (RNG.random((1_000, 3)),), 0, "jacfwd"),
    Problem("network", network, network_in_jax,
            (RNG.normal(size=33 * 64), RNG.normal(size=(256, 32)), RNG.normal(size=256)),
            (None, 0, 0)),
    Problem("Lorenz ensemble", lorenz, lorenz_in_jax, (RNG.normal(size=(200, 3)),)),
]  # fmt: skip


def by_jax(problem: Problem) -> Callable[[], Any]:
    """JAX's derivatives, ready when the call returns."""
    import jax

    jax.config.update("jax_enable_x64", True)
    transform = getattr(jax, problem.derivative)
    f = jax.jit(jax.vmap(transform(problem.in_jax(jax)), in_axes=problem.in_axes))
    args = [jax.numpy.asarray(a) for a in problem.args]
    return lambda: jax.block_until_ready(f(*args))


def measure(problem: Problem, rounds: int) -> list[str]:
    """A row of the table."""
    mapped = fwdad.jit(fwdad.vmap(problem.f, in_axes=problem.in_axes))
    transform = getattr(fwdad, problem.derivative)
    derivatives = fwdad.jit(fwdad.vmap(transform(problem.f), in_axes=problem.in_axes))
    calls = {
        "program": lambda: mapped(*problem.args),
        "fwdad": lambda: derivatives(*problem.args),
    }
    try:
        calls["jax"] = by_jax(problem)
    except ImportError:
        wanted, ratio = None, "not installed"
    else:
        wanted, ratio = np.asarray(calls["jax"]()), ""
    if wanted is not None and not np.allclose(calls["fwdad"](), wanted, rtol=1e-8, atol=1e-10):
        return [problem.name, "WRONG", "", "", "", ""]
    timings = time_interleaved(calls, rounds, 0.02)
    fwdad_rounds = timings["fwdad"].rounds
    if "jax" in timings:
        ratio = three_digits(paired_ratio(timings["jax"].rounds, fwdad_rounds))
    return [
        problem.name, duration(timings["program"].median), duration(timings["fwdad"].median),
        three_digits(paired_ratio(fwdad_rounds, timings["program"].rounds)),
        duration(timings["jax"].median) if "jax" in timings else "", ratio,
    ]  # fmt: skip


def measure_threads(problem: Problem, rounds: int) -> list[str]:
    """A row of the table of threads: 50 times as many points."""
    axes = problem.in_axes if isinstance(problem.in_axes, tuple) else [0] * len(problem.args)
    pairs = zip(problem.args, axes, strict=True)
    args = [a if axis is None else np.concatenate([a] * 50) for a, axis in pairs]
    mapped = fwdad.vmap(getattr(fwdad, problem.derivative)(problem.f), in_axes=problem.in_axes)
    one, all_threads = fwdad.jit(mapped), fwdad.jit(mapped, parallel=True)
    if not np.array_equal(one(*args), all_threads(*args)):
        return [problem.name, "WRONG", "", "", ""]
    calls = {"one": lambda: one(*args), "all": lambda: all_threads(*args)}
    timings = time_interleaved(calls, rounds, 0.02)
    return [
        problem.name, f"{len(args[-1]):,}", duration(timings["one"].median),
        duration(timings["all"].median),
        three_digits(paired_ratio(timings["one"].rounds, timings["all"].rounds)),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="problems whose names contain this")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", action="store_true", help="one thread beside all")
    given = parser.parse_args()
    header = ["problem", "program", "derivatives", "ratio", "JAX", "JAX over ours"]
    if given.threads:
        header = ["problem", "points", "one thread", "all threads", "ratio"]
    row = measure_threads if given.threads else measure
    rows = [row(p, given.rounds) for p in PROBLEMS if given.only in p.name]
    print(table(header, rows))
    print(versions())


if __name__ == "__main__":
    main()
