"""Products with derivatives of the reverse mode's programs: ``jvp`` and ``hvp``, compiled.

``python -m benchmarks.directions`` prints a table: the compiled program, its ``jvp`` along one
direction over it, and its ``hvp`` over its gradient, as medians of ratios of rounds. Both are
checked against differences along the direction.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import fwdad
from benchmarks.measure import paired_ratio, time_interleaved
from benchmarks.reverse_programs import PROBLEMS
from benchmarks.reverse_programs.problem import Problem, normal
from benchmarks.table import duration, three_digits

STEP = 1e-5
TOLERANCE = 1e-5  # of the largest element, at the tiny size


class Calls:
    """A program with its derivatives as functions of one argument, the direction and the others."""

    def __init__(self, problem: Problem) -> None:
        (self.at,) = problem.active[:1]

        def of_first(x: Any, *others: Any) -> Any:
            y = problem.f(*others[: self.at], x, *others[self.at :])
            return np.sum(y) if np.ndim(y) else y  # of residuals, whose Jacobian is asked for

        def gradient(x: Any, *others: Any) -> Any:
            return fwdad.grad(lambda x: of_first(x, *others))(x)

        def jvp(x: Any, v: Any, *others: Any) -> Any:
            return fwdad.jvp(lambda x: of_first(x, *others), x, v)[1]

        def hvp(x: Any, v: Any, *others: Any) -> Any:
            return fwdad.hvp(lambda x: of_first(x, *others), x, v)

        self.program, self.gradient = fwdad.jit(of_first), fwdad.jit(gradient)
        self.jvp, self.hvp = fwdad.jit(jvp), fwdad.jit(hvp)

    def arguments(self, problem: Problem, size: str) -> tuple[Any, Any, tuple[Any, ...]]:
        """The differentiated argument, a direction, and the other arguments."""
        given = list(problem.arguments(size))
        x = given.pop(self.at)
        return x, normal(*np.shape(x)), tuple(given)


def error(calls: Calls, problem: Problem) -> float:
    """How far ``jvp`` and ``hvp`` are from central differences, relative to the largest element."""
    x, v, others = calls.arguments(problem, "tiny")

    def difference(f: Callable[..., Any]) -> Any:
        return (f(x + STEP * v, *others) - f(x - STEP * v, *others)) / (2 * STEP)

    found = [
        (calls.jvp(x, v, *others), difference(calls.program)),
        (calls.hvp(x, v, *others), difference(calls.gradient)),
    ]
    scale = [max(np.max(np.abs(d)), np.max(np.abs(calls.gradient(x, *others)))) for _, d in found]
    return max(
        float(np.max(np.abs(np.asarray(a) - b)) / s) for (a, b), s in zip(found, scale, strict=True)
    )


def line(problem: Problem, options: argparse.Namespace) -> str:
    """One row of the table."""
    calls = Calls(problem)
    off = error(calls, problem)
    if off > TOLERANCE:
        return f"| {problem.name} | WRONG by {off:.0e} | | | |"
    x, v, others = calls.arguments(problem, options.size)
    timings = time_interleaved(
        {
            "program": lambda: calls.program(x, *others),
            "gradient": lambda: calls.gradient(x, *others),
            "jvp": lambda: calls.jvp(x, v, *others),
            "hvp": lambda: calls.hvp(x, v, *others),
        },
        options.rounds,
        0.01,
    )
    rounds = {name: timing.rounds for name, timing in timings.items()}
    cells = [
        duration(float(np.median(rounds["program"]))),
        three_digits(paired_ratio(rounds["jvp"], rounds["program"])),
        three_digits(paired_ratio(rounds["gradient"], rounds["program"])),
        three_digits(paired_ratio(rounds["hvp"], rounds["gradient"])),
    ]
    return f"| {problem.name} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--size", default="small")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    print("| program | compiled | jvp / program | gradient / program | hvp / gradient |")
    print("|---|---|---|---|---|")
    for problem in PROBLEMS:
        if problem.derivative is None and (not options.names or problem.name in options.names):
            print(line(problem, options), flush=True)


if __name__ == "__main__":
    main()
