"""Derivatives of a function under ``jit`` that are asked for at once, beside ``jit`` of them.

``python -m benchmarks.at_once`` prints a table: one call of ``jvp(jit(f), x, v)``, of ``jit`` of a
function that calls ``jvp(f, x, v)``, and the median of their ratios.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import fwdad
from benchmarks.measure import paired_ratio, time_interleaved


def chain(x: np.ndarray) -> Any:
    """Rosenbrock's function, in a loop."""
    total = 0.0
    for i in range(len(x) - 1):
        total += 100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
    return total


def field(x: np.ndarray) -> np.ndarray:
    """Twenty steps of a nonlinear diffusion, written in place."""
    y = x.copy()
    for _ in range(20):
        y[1:-1] = y[1:-1] + 0.1 * (y[2:] - 2 * y[1:-1] + y[:-2]) - 0.01 * y[1:-1] ** 3
    return y


def sums(x: np.ndarray) -> np.ndarray:
    """Three numbers of a field."""
    y = field(x)
    return np.array([np.sum(y), np.max(y * y), y @ x])


def number(t: float) -> Any:
    """A chain of sines of one number."""
    for _ in range(5):
        t = np.sin(t) * t
    return t


@dataclass
class Model:
    """What a layer is made of."""

    weights: np.ndarray
    bias: np.ndarray


def layer(model: Model, x: np.ndarray) -> np.ndarray:
    """A layer of a network."""
    return np.tanh(model.weights @ x + model.bias)


def weighted(weights: np.ndarray, x: np.ndarray) -> Any:
    """A sum of squares with weights."""
    return np.sum(weights * x**2)


def of_dict(parts: dict[str, np.ndarray]) -> Any:
    """The same of a dict."""
    return np.sum(parts["w"] * parts["x"] ** 2)


def of_list(parts: list[np.ndarray]) -> Any:
    """The same of a list."""
    return np.sum(parts[0] * parts[1] ** 2)


Pair = tuple[Callable[[], Any], Callable[[], Any]]


def rows(n: int) -> dict[str, Pair]:
    """For each row what is asked for at once, and what ``jit`` of the same runs."""
    rng = np.random.default_rng(0)
    x, v, directions = np.linspace(0.5, 1.5, n), np.ones(n), rng.random((4, n))
    model, inputs = Model(rng.random((5, n)), rng.random(5)), rng.random(n)
    dot = Model(rng.random((5, n)), rng.random(5))
    fast_chain, fast_field, fast_number, fast_layer = map(fwdad.jit, (chain, field, number, layer))
    fast_sums, rows_of_field = fwdad.jit(sums), fwdad.jacrev(fast_field)

    def under_jit(evaluate: Callable[..., Any], *args: Any) -> Callable[[], Any]:
        fast = fwdad.jit(evaluate)
        return lambda: fast(*args)

    operator, gradient = fwdad.linearize(fast_field, x)[1], fwdad.grad(fast_chain)
    both_at_once = fwdad.grad(fwdad.jit(weighted), (0, 1))
    dict_at_once, list_at_once = fwdad.grad(fwdad.jit(of_dict)), fwdad.grad(fwdad.jit(of_list))
    parts, items = {"w": v, "x": x}, [v, x]
    return {
        "jvp of a chain": (
            lambda: fwdad.jvp(fast_chain, x, v),
            under_jit(lambda x, v: fwdad.jvp(chain, x, v), x, v),
        ),
        "jvp of a field, 4 directions": (
            lambda: fwdad.jvp(fast_field, x, directions),
            under_jit(lambda x, v: fwdad.jvp(field, x, v), x, directions),
        ),
        "jacobian of a field": (
            lambda: fwdad.jacobian(fast_field, x),
            under_jit(lambda x: fwdad.jacobian(field, x), x),
        ),
        "jacobian by rows of a field": (
            lambda: rows_of_field(x),
            under_jit(fwdad.jacrev(field), x),
        ),
        "jacobian of three sums": (
            lambda: fwdad.jacobian(fast_sums, x),
            under_jit(lambda x: fwdad.jacobian(sums, x), x),
        ),
        "derivative of a number": (
            lambda: fwdad.derivative(fast_number, 1.5),
            under_jit(lambda t: fwdad.derivative(number, t), 1.5),
        ),
        "grad of a chain": (lambda: gradient(x), under_jit(fwdad.grad(chain), x)),
        "grad by two arguments": (
            lambda: both_at_once(v, x),
            under_jit(fwdad.grad(weighted, (0, 1)), v, x),
        ),
        "grad by a dict": (lambda: dict_at_once(parts), under_jit(fwdad.grad(of_dict), parts)),
        "grad by a list": (lambda: list_at_once(items), under_jit(fwdad.grad(of_list), items)),
        "hvp of a chain": (
            lambda: fwdad.hvp(fast_chain, x, v),
            under_jit(lambda x, v: fwdad.hvp(chain, x, v), x, v),
        ),
        "hessian of a chain": (
            lambda: fwdad.hessian(fast_chain, x),
            under_jit(lambda x: fwdad.hessian(chain, x), x),
        ),
        "vjp of a field": (
            lambda: fwdad.vjp(fast_field, x)[1](v),
            under_jit(lambda x, v: fwdad.vjp(field, x)[1](v), x, v),
        ),
        "vjp of a field, 4 cotangents": (
            lambda: fwdad.vjp(fast_field, x)[1](directions),
            under_jit(lambda x, v: fwdad.vjp(field, x)[1](v), x, directions),
        ),
        "linearize: matvec of a field": (
            lambda: operator.matvec(v),
            under_jit(lambda x, v: fwdad.jvp(field, x, v)[1], x, v),
        ),
        "jvp by a dataclass": (
            lambda: fwdad.jvp(fast_layer, model, dot, args=(inputs,)),
            under_jit(lambda m, d, x: fwdad.jvp(layer, m, d, args=(x,)), model, dot, inputs),
        ),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--lengths", type=int, nargs="+", default=[6, 50, 120, 5000])
    given = parser.parse_args()
    print("| row | length | at once | `jit` of it | ratio |\n|---|---|---|---|---|")
    for n in given.lengths:
        for name, (at_once, compiled) in rows(n).items():
            if n > 1000 and name.startswith(("hessian", "jacobian", "derivative")):
                continue  # of 25 million elements, or of no array
            found = time_interleaved({"a": at_once, "b": compiled}, given.rounds, 0.02)
            ratio = paired_ratio(found["a"].rounds, found["b"].rounds)
            times = (f"{1e6 * found[key].median:.3g} µs" for key in "ab")
            print(f"| {name} | {n} | {' | '.join(times)} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
