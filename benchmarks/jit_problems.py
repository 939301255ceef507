"""The programs that are compiled, and the points at which they are differentiated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.peers import Row
from benchmarks.problems import Problem, array_problem, pollu_problem

INPUTS = 8  # different points in turn inside compiled code, so that nothing is hoisted


@dataclass(frozen=True)
class JitProblem(Problem):
    """A program with arguments that are not differentiated."""

    args: tuple[Any, ...] = ()

    @property
    def points(self) -> np.ndarray:
        """``INPUTS`` points near x, ``(INPUTS, *x.shape)``."""
        rng = np.random.default_rng(7)
        return self.x * (1 + 0.1 * rng.random((INPUTS, *self.x.shape)))


def with_points(problem: Problem) -> JitProblem:
    """A problem of ``benchmarks.problems`` with points around its own."""
    return JitProblem(problem.name, problem.x, problem.function, problem.functional)


# -- Robertson's kinetics: three species, nothing to do but multiply


def rober(y):
    """Rate of change of three concentrations (H. H. Robertson 1966)."""
    r1 = 0.04 * y[0]
    r2 = 1e4 * y[1] * y[2]
    r3 = 3e7 * y[1] * y[1]
    return np.array([-r1 + r2, r1 - r2 - r3, r3])


def rober_problem() -> JitProblem:
    """Robertson's kinetics on its way from the start to the equilibrium."""
    return JitProblem("rober", np.array([0.84, 1.6e-5, 0.16]), rober, rober)


# -- Burgers' equation on a line: three bands in a dense Jacobian

VISCOSITY = 0.01


def burgers(u):
    """Rate u' = −u u_x + ν u_xx by central differences on (0, 1), u = 0 at the ends."""
    n = u.size
    along = 0.5 * (n + 1)
    diffusion = VISCOSITY * (n + 1) ** 2
    u_t = np.empty_like(u)
    u_t[1:-1] = diffusion * (u[2:] - 2 * u[1:-1] + u[:-2]) - along * u[1:-1] * (u[2:] - u[:-2])
    u_t[0] = diffusion * (u[1] - 2 * u[0]) - along * u[0] * u[1]
    u_t[-1] = diffusion * (u[-2] - 2 * u[-1]) + along * u[-1] * u[-2]
    return u_t


def burgers_functional(u):
    """The same with a padded array."""
    n = u.shape[0]
    along = 0.5 * (n + 1)
    diffusion = VISCOSITY * (n + 1) ** 2
    end = np.zeros(1)
    wide = np.concatenate((end, u, end))
    return diffusion * (wide[2:] - 2 * u + wide[:-2]) - along * u * (wide[2:] - wide[:-2])


def burgers_problem(n: int) -> JitProblem:
    """Burgers' equation with n unknowns, at a wave."""
    s = np.arange(1, n + 1) / (n + 1)
    u = np.sin(2 * np.pi * s) + 0.5 * np.sin(np.pi * s)
    return JitProblem(f"burgers-{n}", u, burgers, burgers_functional)


# -- Lorenz: a long loop of few operations, with respect to the start and the parameters

STEP = 1e-5  # a million of them end where tangents have grown by 1e4, not by 1e4000


def lorenz_scalars(p, steps):
    """Explicit Euler steps of Lorenz' system, its state in three scalars."""
    x, y, z = p[0], p[1], p[2]
    sigma, rho, beta = p[3], p[4], p[5]
    for _ in range(steps):
        x_t = sigma * (y - x)
        y_t = x * (rho - z) - y
        z_t = x * y - beta * z
        x = x + STEP * x_t
        y = y + STEP * y_t
        z = z + STEP * z_t
    return np.array([x, y, z])


def lorenz_vector(p, steps):
    """Explicit Euler steps of Lorenz' system, its state in an array of three."""
    s = p[:3]
    sigma, rho, beta = p[3], p[4], p[5]
    for _ in range(steps):
        s_t = np.array([
            sigma * (s[1] - s[0]),
            s[0] * (rho - s[2]) - s[1],
            s[0] * s[1] - beta * s[2],
        ])  # fmt: skip
        s = s + STEP * s_t
    return s


def lorenz_problem(state: str, steps: int) -> JitProblem:
    """Lorenz' system from a point off its attractor."""
    f = {"scalars": lorenz_scalars, "vector": lorenz_vector}[state]
    p = np.array([1.0, 2.0, 20.0, 10.0, 28.0, 8.0 / 3.0])
    name = f"lorenz-{state}-{steps:.0e}".replace("e+0", "e")
    return JitProblem(name, p, f, f, args=(steps,))


# -- rows


def row(problem: Problem, lanes: int | None = None) -> Row:
    """A Jacobian, or N directional derivatives, of a problem."""
    problem = problem if isinstance(problem, JitProblem) else with_points(problem)
    what = "jacobian" if lanes is None else f"N={lanes}"
    return Row(f"{problem.name}/{what}", problem, lanes)


def all_rows() -> list[Row]:
    """Every row, in the order of the tables."""
    array, scalars = array_problem(100_000), lorenz_problem("scalars", 1_000_000)
    return [
        row(pollu_problem()),
        row(rober_problem()),
        row(burgers_problem(512)),
        row(array, 8),
        row(array, 32),
        row(scalars),
        row(scalars, 8),
        row(lorenz_problem("vector", 1_000_000)),
    ]


# rows that are short enough for a loop in compiled code to show what a call costs
SHORT = ("pollu/jacobian", "rober/jacobian", "burgers-512/jacobian")


def reference(of: Row) -> np.ndarray:
    """The derivative by complex steps, exact to rounding; the last axis is x's, or the first N.

    A loop of a million steps is run by Numba where there is one, which knows complex numbers.
    """
    problem = of.problem
    assert isinstance(problem, JitProblem)
    f = _complex_function(problem)
    basis = np.eye(problem.x.size) if of.lanes is None else of.directions
    columns = [np.imag(f(problem.x + 1e-200j * v, *problem.args)) / 1e-200 for v in basis]
    return np.stack(columns, axis=-1 if of.lanes is None else 0)


def _complex_function(problem: JitProblem) -> Any:
    if not problem.args:
        return problem.functional
    try:
        from numba import njit
    except ImportError:
        return problem.functional
    return njit(problem.functional)


def relative_error(answer: np.ndarray, expected: np.ndarray, of: Row) -> float:
    """The largest deviation; of a Jacobian, over the largest element of the same output.

    The rates of POLLU differ by 1e12, and a deviation of small ones is one too.
    """
    if answer.shape != expected.shape:
        return np.inf
    scale = np.abs(expected).max(axis=-1 if of.lanes is None else None, keepdims=True)
    error = float((np.abs(answer - expected) / scale).max())
    return error if np.isfinite(error) else np.inf


def tolerance(of: Row, tool: str) -> float:
    """How far a result may be off: a million steps add up rounding, one evaluation does not."""
    if tool == "scipy":
        return 1e-3
    return 1e-9 if isinstance(of.problem, JitProblem) and of.problem.args else 1e-12
