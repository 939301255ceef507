"""Sparse Jacobians and Hessians beside asdex, CasADi and SciPy's differences, in one run.

python -m benchmarks.sparse [--large] [--only NAME] [--peers asdex casadi scipy]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize._numdiff import approx_derivative

import fwdad
from benchmarks.measure import paired_ratio, time_interleaved
from benchmarks.sparse_problems import LARGE, PROBLEMS, Problem
from benchmarks.table import duration, table, three_digits, versions

PEERS = ("asdex", "casadi", "scipy")


class Made(NamedTuple):
    """A derivative of a tool: the times of its parts, and a call that returns what it makes."""

    pattern: float
    colours: str
    first: float
    call: Callable[[], Any]
    matrix: Callable[[Any], Any]


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the time that it took."""
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def by_fwdad(problem: Problem, x: Any) -> Made:
    find = fwdad.hessian_sparsity if problem.hessian else fwdad.jacobian_sparsity
    derivative = fwdad.hessian if problem.hessian else fwdad.jacobian
    pattern, finding = timed(lambda: find(problem.f, x))
    colouring, colours = timed(lambda: problem.coloured(pattern))
    J = fwdad.jit(derivative(problem.f, sparse=colouring))
    _, first = timed(lambda: J(x))
    return Made(finding + colours, str(colouring.count), first, lambda: J(x), lambda J: J)


def by_asdex(problem: Problem, x: Any) -> Made:
    import asdex
    import jax

    jax.config.update("jax_enable_x64", True)
    at = jax.numpy.asarray(x.ravel())

    def f(u: Any) -> Any:
        value = problem.in_jax(u.reshape(x.shape))
        return value if problem.hessian else value.ravel()

    find = asdex.hessian_coloring if problem.hessian else asdex.jacobian_coloring
    make = asdex.hessian_from_coloring if problem.hessian else asdex.jacobian_from_coloring
    found, finding = timed(lambda: find(f, at))
    J = jax.jit(make(f, found))
    _, first = timed(lambda: jax.block_until_ready(J(at)))

    def matrix(made: Any) -> Any:
        i, j = np.asarray(made.indices).T
        return sp.coo_array((np.asarray(made.data), (i, j)), shape=made.shape)

    count = str(getattr(found, "num_colors", "?"))
    return Made(finding, count, first, lambda: jax.block_until_ready(J(at)), matrix)


def by_casadi(problem: Problem, x: Any) -> Made:
    import casadi

    if problem.in_casadi is None:
        raise NotImplementedError
    symbol = casadi.SX.sym("x", x.size)
    value = problem.in_casadi(casadi, symbol)

    def make() -> Any:
        if problem.hessian:
            derivative = casadi.hessian(value, symbol)[0]
        else:
            derivative = casadi.jacobian(value, symbol)
        return casadi.Function("J", [symbol], [derivative])

    J, finding = timed(make)
    pattern = J.sparsity_out(0)
    buffer, run = J.buffer()
    flat, data = np.ascontiguousarray(x.ravel()), np.zeros(pattern.nnz())
    buffer.set_arg(0, memoryview(flat))
    buffer.set_res(0, memoryview(data))

    def evaluate(_: Any = (J, buffer, flat, data)) -> None:  # `run` keeps none of them alive
        run()

    _, first = timed(evaluate)
    starts, rows = pattern.colind(), pattern.row()
    made = sp.csc_array((data, rows, starts), shape=pattern.shape)
    return Made(finding, "-", first, evaluate, lambda _: made)


def by_differences(problem: Problem, x: Any) -> Made:
    if problem.hessian:
        raise NotImplementedError

    def f(u: np.ndarray) -> np.ndarray:
        return np.ravel(problem.f(u.reshape(x.shape)))

    colouring = problem.coloured(fwdad.jacobian_sparsity(problem.f, x))
    sparsity = (colouring.pattern.astype(float), np.asarray(colouring.column_colours))

    def call() -> Any:
        return approx_derivative(f, x.ravel(), method="2-point", sparsity=sparsity)

    _, first = timed(call)
    return Made(0.0, f"{colouring.count}, given", first, call, lambda J: J)


TOOLS = {"fwdad": by_fwdad, "asdex": by_asdex, "casadi": by_casadi, "scipy": by_differences}
SHOWN = {"casadi": "CasADi", "scipy": "SciPy's differences"}


def is_right(problem: Problem, J: Any, x: Any, tolerance: float) -> bool:
    """Whether a product with a random vector is that of a difference in its direction."""
    v = np.random.default_rng(1).normal(size=x.shape)
    f = fwdad.grad(problem.f) if problem.hessian else problem.f
    wanted = (f(x + 1e-6 * v) - f(x - 1e-6 * v)).ravel() / 2e-6
    found = J @ v.ravel()
    return bool(np.max(np.abs(found - wanted)) < tolerance * np.max(np.abs(wanted)))


def measure(problem: Problem, tools: list[str]) -> list[list[str]]:
    """A row for each tool, all timed in turns."""
    x = np.random.default_rng(0).random(problem.shape)
    made: dict[str, Made] = {}
    failed: dict[str, str] = {}
    for tool in tools:
        try:
            made[tool] = TOOLS[tool](problem, x)
            tolerance = 1e-4 if tool == "scipy" else 1e-6
            if not is_right(problem, made[tool].matrix(made[tool].call()), x, tolerance):
                failed[tool] = "WRONG"
        except ImportError:
            failed[tool] = "not installed"
        except NotImplementedError:
            continue
        except Exception as error:
            failed[tool] = f"failed: {type(error).__name__}"
    primal = fwdad.jit(problem.f)
    calls = {tool: m.call for tool, m in made.items() if tool not in failed}
    timings = time_interleaved({"primal": lambda: primal(x), **calls}, 9, 0.02)
    rows = []
    for tool in [tool for tool in tools if tool in made or tool in failed]:
        shown = SHOWN.get(tool, tool)
        if tool in failed:
            rows.append([problem.name, shown, failed[tool], "", "", "", ""])
            continue
        m = made[tool]
        rows.append([
            problem.name, shown, duration(m.pattern) if m.pattern else "given", m.colours,
            duration(m.first), duration(timings[tool].median),
            three_digits(paired_ratio(timings[tool].rounds, timings["primal"].rounds)),
        ])  # fmt: skip
    return rows


def warm_up(tools: list[str]) -> None:
    """Take a trivial sparse Jacobian: no row has the loading of modules or a compiler in it."""
    fwdad.jit(fwdad.jacobian(np.sin, sparse=True))(np.ones(3))
    if "asdex" in tools:
        import asdex
        import jax

        jax.config.update("jax_enable_x64", True)
        sin, x = jax.numpy.sin, jax.numpy.ones(3)
        jax.jit(asdex.jacobian_from_coloring(sin, asdex.jacobian_coloring(sin, x)))(x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="with a million unknowns")
    parser.add_argument("--only", default="", help="problems whose names contain this")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    given = parser.parse_args()
    problems = [p for p in [*PROBLEMS, *(LARGE if given.large else [])] if given.only in p.name]
    rows = []
    warm_up(given.peers)
    for problem in problems:
        for row in measure(problem, ["fwdad", *given.peers]):
            rows.append(row)
            print(*row, sep=" | ", flush=True)
    header = ["problem", "tool", "pattern and colours", "colours", "first call", "warm call",
              "over our primal"]  # fmt: skip
    print("\n" + table(header, rows))
    print(versions())


if __name__ == "__main__":
    main()
