"""``fwdad.scipy`` beside SciPy with differences and with derivatives written by hand.

python -m benchmarks.scipy_door
"""

from __future__ import annotations

import argparse
import functools
import math
import statistics
import subprocess
import sys
import time
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate
import scipy.optimize

import fwdad
import fwdad.scipy
from benchmarks.measure import paired_ratio
from benchmarks.table import duration, table, three_digits
from fwdad.scipy import choice


class Program(NamedTuple):
    """A solve: the function, the solver of SciPy and ours, what is by hand, and the solution."""

    name: str
    f: Callable[..., Any]
    solver: str
    solve: Callable[..., Any]
    by_hand: dict[str, Any]
    solution: Callable[[Any], Any]
    exact: Any
    tolerance: float


# -- curve_fit: NIST's Thurber


def thurber(x, b1, b2, b3, b4, b5, b6, b7):
    return (b1 + x * (b2 + x * (b3 + x * b4))) / (1 + x * (b5 + x * (b6 + x * b7)))


def thurber_jac(x, b1, b2, b3, b4, b5, b6, b7):
    below = 1 / (1 + x * (b5 + x * (b6 + x * b7)))
    y = (b1 + x * (b2 + x * (b3 + x * b4))) * below
    powers = np.stack([np.ones_like(x), x, x**2, x**3], axis=1) * below[:, None]
    return np.concatenate([powers, -y[:, None] * powers[:, 1:]], axis=1)


THURBER = np.array([1288.14, 1491.08, 583.238, 75.4166, 0.966295, 0.397973, 0.0497273])
POINTS = np.linspace(-3.067, 2.2, 2000)

# -- minimize: Rosenbrock's valley of 500 unknowns, by products with the Hessian


def valley(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def gradient_by_hand(x):
    return scipy.optimize.rosen_der(x)


# -- solve_ivp: HIRES


def hires(_t, y):
    rate = 280 * y[5] * y[7]
    return np.array(
        [
            -1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007,
            1.71 * y[0] - 8.75 * y[1],
            -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4],
            8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3],
            -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6],
            -rate + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6],
            rate - 1.81 * y[6],
            -rate + 1.81 * y[6],
        ]
    )


def hires_jac(_t, y):
    a, b = 280 * y[7], 280 * y[5]
    return np.array(
        [
            [-1.71, 0.43, 8.32, 0, 0, 0, 0, 0],
            [1.71, -8.75, 0, 0, 0, 0, 0, 0],
            [0, 0, -10.03, 0.43, 0.035, 0, 0, 0],
            [0, 8.32, 1.71, -1.12, 0, 0, 0, 0],
            [0, 0, 0, 0, -1.745, 0.43, 0.43, 0],
            [0, 0, 0, 0.69, 1.71, -0.43 - a, 0.69, -b],
            [0, 0, 0, 0, 0, a, -1.81, b],
            [0, 0, 0, 0, 0, -a, 1.81, -b],
        ]
    )


HIRES_END = [
    0.7371312573325668e-3, 0.1442485726316185e-3, 0.5888729740967575e-4, 0.1175651343283149e-2,
    0.2386356198831331e-2, 0.6238968252742796e-2, 0.2849998395185769e-2, 0.2850001604814231e-2,
]  # fmt: skip

# -- root and solve_bvp: Bratu's problem u'' + exp(u) = 0, u(0) = u(1) = 0


def bratu(u):
    residual = np.exp(u) / (u.size + 1) ** 2 - 2 * u
    residual[1:] += u[:-1]
    residual[:-1] += u[1:]
    return residual


def bratu_jac(u):
    n = u.size
    return np.diag(np.exp(u) / (n + 1) ** 2 - 2) + np.eye(n, k=1) + np.eye(n, k=-1)


def bratu_rhs(_x, y):
    return np.array([y[1], -np.exp(y[0])])


def bratu_rhs_jac(x, y):
    return np.array([[0 * x, 0 * x + 1], [-np.exp(y[0]), 0 * x]])


def ends(ya, yb):
    return np.array([ya[0], yb[0]])


def ends_jac(_ya, _yb):
    return np.array([[1.0, 0], [0, 0]]), np.array([[0, 0], [1.0, 0]])


MIDDLE = 0.140539214400472

PROGRAMS = [
    Program(
        "`curve_fit`: Thurber, 7 parameters, 2000 points", thurber, "curve_fit",
        lambda solver, f, **d: solver(
            f, POINTS, thurber(POINTS, *THURBER), [1000, 1000, 400, 40, 0.7, 0.3, 0.03],
            xtol=1e-12, ftol=1e-12, **d,
        ),
        {"jac": thurber_jac}, lambda found: found[0], THURBER, 1e-6,
    ),
    Program(
        "`minimize`, trust-krylov: Rosenbrock, 500 unknowns", valley, "minimize",
        lambda solver, f, **d: solver(f, np.full(500, 1.2), method="trust-krylov", **d),
        {"jac": gradient_by_hand, "hessp": scipy.optimize.rosen_hess_prod},
        lambda found: found.x, np.ones(500), 1e-3,
    ),
    Program(
        "`minimize`, L-BFGS-B: Rosenbrock, 100 unknowns", valley, "minimize",
        lambda solver, f, **d: solver(
            f, np.full(100, 1.2), method="L-BFGS-B", options={"maxfun": 10**6}, **d
        ),
        {"jac": gradient_by_hand}, lambda found: found.x, np.ones(100), 1e-2,
    ),
    Program(
        "`solve_ivp`, Radau: HIRES, 8 unknowns", hires, "solve_ivp",
        lambda solver, f, **d: solver(
            f, (0, 321.8122), [1, 0, 0, 0, 0, 0, 0, 0.0057], "Radau", rtol=1e-7, atol=1e-10, **d
        ),
        {"jac": hires_jac}, lambda found: found.y[:, -1], HIRES_END, 1e-3,
    ),
    Program(
        "`root`, hybr: Bratu, 199 unknowns", bratu, "root",
        lambda solver, f, **d: solver(f, np.zeros(199), **d),
        {"jac": bratu_jac}, lambda found: found.x[99], MIDDLE, 1e-4,
    ),
    Program(
        "`solve_bvp`: Bratu", bratu_rhs, "solve_bvp",
        lambda solver, f, **d: solver(
            f, ends, np.linspace(0, 1, 5), np.zeros((2, 5)), tol=1e-8, **d
        ),
        {"fun_jac": bratu_rhs_jac, "bc_jac": ends_jac},
        lambda found: found.sol(0.5)[0], MIDDLE, 1e-7,
    ),
]  # fmt: skip


def of_scipy(name: str) -> Callable[..., Any]:
    return getattr(scipy.integrate if name.startswith("solve") else scipy.optimize, name)


def cpu_seconds(call: Callable[[], Any], number: int = 1) -> float:
    """Processor time of a call: everything here runs on one thread."""
    begin = time.process_time()
    for _ in range(number):
        call()
    return (time.process_time() - begin) / number


def at_price(price: float, solve: Callable[[], Any]) -> Callable[[], Any]:
    """A solve whose derivatives are compiled when their calls have taken so long."""

    def run() -> Any:
        with choice.assuming(compiling=price):
            return solve()

    return run


def first_calls() -> str:
    """What compiling costs, which ``fwdad.scipy.choice.Assumed`` stands for."""
    code = (
        "import time, fwdad; a = time.process_time(); import numba; print(time.process_time() - a)"
    )
    command = [sys.executable, "-c", code]
    imported = [float(subprocess.check_output(command)) for _ in range(3)]  # noqa: S603
    rows = [["importing Numba", "", duration(min(imported))]]
    for name, made, at in (
        (
            "Jacobian of `thurber`",
            fwdad.jacfwd(thurber, tuple(range(1, 8)), stack=True),
            (POINTS, *THURBER),
        ),
        ("gradient of Rosenbrock's valley", fwdad.grad(valley), (np.full(100, 1.2),)),
        ("Jacobian of `hires`", fwdad.jacfwd(hires, 1), (0.0, np.ones(8))),
        ("Jacobian of `bratu`", fwdad.jacfwd(bratu), (np.zeros(199),)),
        ("Hessian of the valley", fwdad.jacfwd(fwdad.grad(valley)), (np.full(20, 1.2),)),
    ):
        seconds = [cpu_seconds(lambda f=f, at=at: f(*at)) for f in (made, fwdad.jit(made))]
        rows.append([name, *map(duration, seconds)])
    return table(["first derivative", "as it is", "traced and compiled"], rows)


def measured(program: Program, rounds: int) -> list[str]:
    """One row: the time of each solve, and as a multiple of that with derivatives by hand."""
    ours, scipys = getattr(fwdad.scipy, program.solver), of_scipy(program.solver)
    solve = program.solve
    calls = {
        "by hand": functools.partial(solve, scipys, program.f, **program.by_hand),
        "as it is": at_price(math.inf, functools.partial(solve, ours, program.f)),
        "under jit": functools.partial(solve, ours, fwdad.jit(program.f)),
    }
    if "hessp" not in program.by_hand:  # SciPy takes no differences there
        calls["differences"] = functools.partial(solve, scipys, program.f)
    # another function, whose derivatives are not those that are kept for this one
    compiled = types.FunctionType(program.f.__code__, program.f.__globals__, program.f.__name__)
    calls["compiled"] = at_price(0.0, functools.partial(solve, ours, compiled))
    for name, call in calls.items():
        found = program.solution(call())
        close = np.allclose(found, program.exact, rtol=program.tolerance, atol=program.tolerance)
        assert close, (program.name, name, found)
    numbers = {name: max(1, int(0.05 / cpu_seconds(call))) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(cpu_seconds(call, numbers[name]))
    row = [program.name, duration(statistics.median(times["by hand"]))]
    for name in ("differences", "as it is", "compiled", "under jit"):
        known = name in times
        ratio = paired_ratio(times[name], times["by hand"]) if known else 0.0
        row.append(f"{three_digits(ratio)} ×" if known else "-")
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(first_calls(), end="\n\n", flush=True)
    header = ["", "by hand", "differences", "fwdad.scipy", "compiled", "`fwdad.jit(f)`"]
    print(table(header, [measured(program, options.rounds) for program in PROGRAMS]))


if __name__ == "__main__":
    main()
