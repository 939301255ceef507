"""Sparse Jacobians and Hessians: pattern, colouring, first and warm calls, over the primal.

python -m benchmarks.sparse [--large]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize._numdiff import approx_derivative

import fwdad
from benchmarks.measure import paired_ratio, time_interleaved
from benchmarks.table import duration, table, three_digits, versions
from fwdad.colouring import Colouring, colour


def burgers(u: Any) -> Any:
    """Burgers' equation, central differences; its ends stay."""
    out = np.zeros_like(u)
    out[1:-1] = 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) - u[1:-1] * (u[2:] - u[:-2])
    return out


def bratu(u: Any) -> Any:
    """Bratu's problem on a square, zero at its border."""
    wide = np.pad(u, 1)
    around = wide[2:, 1:-1] + wide[:-2, 1:-1] + wide[1:-1, 2:] + wide[1:-1, :-2]
    return around - 4 * u + 0.3 * np.exp(u)


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


def rosenbrock(x: Any) -> Any:
    """Rosenbrock's function, chained: a number."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


class Case(NamedTuple):
    """A function, where, and whether its Hessian is meant."""

    name: str
    f: Callable[[Any], Any]
    shape: tuple[int, ...]
    hessian: bool = False


CASES = [
    Case("Burgers, 4096", burgers, (4096,)),
    Case("Bratu, 100 × 100", bratu, (100, 100)),
    Case("Brusselator, 100 × 100 × 2", brusselator, (2, 100, 100)),
    Case("Rosenbrock's Hessian, 10⁵", rosenbrock, (100_000,), hessian=True),
]
LARGE = [Case("Bratu, 1000 × 1000", bratu, (1000, 1000))]


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the time that it took."""
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def check(case: Case, J: Any, x: Any) -> None:
    """Compare a product with a random vector to a difference in its direction."""
    v = np.random.default_rng(1).normal(size=x.shape)
    f = fwdad.grad(case.f) if case.hessian else case.f
    wanted = (f(x + 1e-6 * v) - f(x - 1e-6 * v)).ravel() / 2e-6
    scale = np.max(np.abs(wanted))
    assert np.max(np.abs(J @ v.ravel() - wanted)) < 1e-6 * scale, case.name


def by_differences(case: Case, x: Any, colouring: Colouring) -> Callable[[], Any] | None:
    """SciPy's differences with the same pattern and the same groups of columns."""
    if case.hessian:
        return None

    def f(u: np.ndarray) -> np.ndarray:
        return np.ravel(case.f(u.reshape(x.shape)))

    pattern = colouring.pattern.astype(float)
    sparsity = (pattern, np.asarray(colouring.column_colours))
    return lambda: approx_derivative(f, x.ravel(), method="2-point", sparsity=sparsity)


def measure(case: Case) -> list[str]:
    x = np.random.default_rng(0).random(case.shape)
    find = fwdad.hessian_sparsity if case.hessian else fwdad.jacobian_sparsity
    pattern, finding = timed(lambda: find(case.f, x))
    colouring, colours = timed(lambda: colour(pattern, "star" if case.hessian else "columns"))
    derivative = fwdad.hessian if case.hessian else fwdad.jacobian
    J = fwdad.jit(lambda x: derivative(case.f, x, sparse=colouring))
    made, first = timed(lambda: J(x))
    check(case, made, x)
    primal = fwdad.jit(case.f)
    calls = {
        "primal": lambda: primal(x),
        "compiled": lambda: J(x),
        "interpreted": lambda: derivative(case.f, x, sparse=colouring, check=False),
    }
    differences = by_differences(case, x, colouring)
    if differences is not None:
        calls["differences"] = differences
    timings = time_interleaved(calls, rounds=7, round_seconds=0.02)
    compiled = timings["compiled"]
    ratio = paired_ratio(compiled.rounds, timings["primal"].rounds)
    return [
        case.name, duration(finding), duration(colours), str(colouring.count), duration(first),
        duration(timings["primal"].median), duration(compiled.median), three_digits(ratio),
        duration(timings["interpreted"].median),
        duration(timings["differences"].median) if differences is not None else "-",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="with a million unknowns")
    rows = []
    for case in [*CASES, *(LARGE if parser.parse_args().large else [])]:
        rows.append(measure(case))
        print(*rows[-1], sep=" | ", flush=True)
    header = ["problem", "pattern", "colouring", "colours", "first call", "primal", "compiled",
              "over the primal", "interpreted", "SciPy's differences"]  # fmt: skip
    print("\n" + table(header, rows))
    print(versions())


if __name__ == "__main__":
    main()
