"""The rows of the table, and the derivative that each tool's result is compared with."""

from __future__ import annotations

import numpy as np

from benchmarks import problems
from benchmarks.peers import Row

ARRAY_LANES = (1, 4, 8, 16, 32)
MATRIX_LANES = (1, 4, 8, 32)


def all_rows() -> list[Row]:
    """Every row, in the order of the table."""
    rows = []
    for problem in (
        problems.pollu_problem(),
        problems.pollu_stored_problem(),
        problems.brusselator_problem(64),
        problems.brusselator_problem(512),
    ):
        rows += [Row(f"{problem.name}/jvp", problem, 1), Row(f"{problem.name}/jacobian", problem)]
    for problem in (problems.array_problem(1_000), problems.array_problem(100_000)):
        rows += [Row(f"{problem.name}/N={n}", problem, n) for n in ARRAY_LANES]
    matrix = problems.matrix_problem(200)
    rows += [Row(f"{matrix.name}/N={n}", matrix, n) for n in MATRIX_LANES]
    return [*rows, Row("gp/jacobian", problems.gaussian_process_problem(200))]


def reference(row: Row) -> np.ndarray:
    """The derivative without automatic differentiation.

    Complex steps where the program is analytic (exact to rounding), else central differences
    of fourth order. As ``peers.derivative_of`` gives a tool's.
    """
    f, x = row.problem.functional, row.problem.x
    basis = np.eye(x.size).reshape(x.size, *x.shape) if row.lanes is None else row.directions
    if row.problem.analytic:
        columns = [np.imag(f(x + 1e-200j * v)) / 1e-200 for v in basis]
    else:
        h = 1e-3 / np.abs(basis).max()
        columns = [
            (8 * (f(x + h * v) - f(x - h * v)) - (f(x + 2 * h * v) - f(x - 2 * h * v))) / (12 * h)
            for v in basis
        ]
    if row.lanes is None:
        return np.stack(columns, axis=-1)
    return np.stack(columns)


def relative_error(answer: np.ndarray, expected: np.ndarray) -> float:
    """The largest deviation over the largest element; infinite if the shape is another one."""
    if answer.shape != expected.shape:
        return np.inf
    error = np.abs(answer - expected).max() / np.abs(expected).max()
    return float(error) if np.isfinite(error) else np.inf


def tolerance(row: Row, tool: str) -> float:
    """How far a result may be off: what differences can reach, or the reference."""
    if tool == "scipy":
        return 1e-4
    return 1e-12 if row.problem.analytic else 1e-7
