"""One row of the tables of gradients: what every tool returns is checked, then timed in turns.

Run as ``python -m benchmarks.reverse_row``, this module is the process that a row has to itself: on
standard output it tells, line by line, what it begins, and at last what was measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

import fwdad
from benchmarks.measure import peak_resident, time_interleaved
from benchmarks.reverse_peers import (
    COMPILED,
    INTERPRETED,
    Call,
    NotWrittenError,
    bound,
    jax_call,
    numba_call,
    warm,
)
from benchmarks.reverse_programs import PROBLEMS
from benchmarks.reverse_programs.problem import Problem

FORWARD_TOLERANCE = 1e-12  # of the largest element: the same arithmetic in another order
DIRECTION_TOLERANCE = 1e-8  # at full size, along one direction
DIFFERENCE_TOLERANCE = 1e-7  # the same by fourth-order differences
SLOW = 2.0  # seconds; what takes longer is timed once


@dataclass
class Row:
    """What was measured of one program: seconds, round by round, and bytes."""

    name: str
    size: str
    rounds: dict[str, list[float]] = field(default_factory=dict)
    status: dict[str, str] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    peak: dict[str, int] = field(default_factory=dict)
    runs: str = ""


def problem_named(name: str) -> Problem:
    """One of the programs."""
    return next(p for p in PROBLEMS if p.name == name)


class Measured:
    """A row while it is measured.

    Parameters
    ----------
    problem : Problem
        The program.
    options : namespace
        Of the command line.
    """

    def __init__(self, problem: Problem, options: argparse.Namespace) -> None:
        self.problem = problem
        self.options = options
        self.compiled = fwdad.jit(problem.f)
        f = problem.derivative or fwdad.value_and_grad(problem.f, argnums=problem.argnums)
        self.gradient = f if options.table == "interpreted" else fwdad.jit(f)

    def run(self, size: str) -> Row:
        """Check, then time, at one of the sizes."""
        self.args = self.problem.arguments(size)
        self.row = Row(self.problem.name, size)
        self.calls: dict[str, Call] = {}
        if self.options.table == "first":
            self.attempt("fwdad", lambda: bound(self.gradient, self.args), lambda _: "")
            self.attempt("jax", lambda: jax_call(self.problem, self.args), self.is_same)
            return self.row
        if self.options.table == "interpreted":
            self.attempt("numpy", lambda: bound(self.problem.f, self.args), lambda _: "")
            peers = INTERPRETED
        else:
            self.attempt("numba", lambda: numba_call(self.problem.f, self.args), lambda _: "")
            self.attempt("jit", lambda: bound(self.compiled, self.args), self.same_value)
            peers = COMPILED
        self.attempt("fwdad", lambda: bound(self.gradient, self.args), self.is_gradient)
        if self.options.table != "interpreted" and "fwdad" in self.row.first:
            self.row.runs = fwdad.explain(self.gradient)
        if self.options.table == "memory":
            for name in ("jit", "fwdad"):
                if name in self.calls:
                    self.row.peak[name] = peak_resident(self.calls[name])
            if self.problem.derivative is None and "fwdad" in self.calls:
                f = fwdad.value_and_grad(self.problem.f, argnums=self.problem.argnums)
                self.row.peak["saved"] = fwdad.memory_report(f, *self.args).saved
            return self.row
        for name, make in peers.items():
            self.attempt(name, lambda make=make: make(self.problem, self.args), self.is_same)
        tell(begin=f"{self.row.size} timing")
        quick = {name: call for name, call in self.calls.items() if name not in self.row.rounds}
        timings = time_interleaved(quick, self.options.rounds, self.options.round_seconds)
        self.row.rounds.update({name: timing.rounds for name, timing in timings.items()})
        return self.row

    def attempt(self, name: str, make: Callable[[], Call], check: Callable[[Any], str]) -> None:
        """Make a tool's call, run it once, and keep it if it returns what it should."""
        if f"{self.row.size} {name}" in self.options.without:
            return
        tell(begin=f"{self.row.size} {name}")
        try:
            start = time.process_time()  # other jobs may run beside it
            call = make()
            answer = call()
            self.row.first[name] = time.process_time() - start
            if self.row.first[name] > SLOW:
                tell(begin=f"{self.row.size} {name}")
                start = time.process_time()
                answer = call()
                once = time.process_time() - start
                if once > SLOW:
                    self.row.rounds[name] = [once]
            wrong = check(answer)
        except NotWrittenError:
            return
        except Exception as error:
            self.row.status[name] = f"failed: {type(error).__name__}"
            print(f"  {self.row.name}, {name}: {error!r:.300}", file=sys.stderr)
            return
        if wrong:
            self.row.status[name] = wrong
            self.row.rounds.pop(name, None)
        else:
            self.calls[name] = call

    # -- is it right?

    def same_value(self, y: Any) -> str:
        """Compare a value with the program's by Numba, if Numba compiles it."""
        plain = self.calls.get("numba") or self.calls.get("numpy")
        return wrong_by(y, plain(), DIRECTION_TOLERANCE) if plain else ""

    def is_gradient(self, answer: Any) -> str:
        """Compare with forward mode where that is cheap, and along a direction at full size."""
        wrong = self.same_value(answer[0]) or self.wrong_when_tiny()
        return wrong or self.wrong_along(answer[1])

    def is_same(self, answer: Any) -> str:
        """Compare with fwdad's gradient, which was found right."""
        if "fwdad" not in self.calls:
            return "nothing to compare with"
        y, gradient = self.calls["fwdad"]()
        wrong = wrong_by(answer[0], y, DIRECTION_TOLERANCE)
        return wrong or wrong_by(answer[1], gradient, DIRECTION_TOLERANCE)

    def wrong_when_tiny(self) -> str:
        """Compare every element with forward mode's, one direction for each at a tiny size."""
        args = self.problem.arguments("tiny")
        found = self.gradient(*args)[1]
        if self.problem.times is not None:
            return self.wrong_blocks(found, args)
        found = found if isinstance(found, tuple) else (found,)
        for k, x_bar in zip(self.problem.active, found, strict=True):
            expected = fwdad.jacobian(self.along(args, (k,)), args[k], mode="forward")
            wrong = wrong_by(x_bar, expected, FORWARD_TOLERANCE)
            if wrong:
                return wrong
        return ""

    def wrong_blocks(self, found: Any, args: Sequence[Any]) -> str:
        """Compare the columns of a sparse Jacobian."""
        assert self.problem.times is not None
        for place, k in enumerate(self.problem.active):
            expected = fwdad.jacobian(self.along(args, (k,)), args[k], mode="forward")
            for index in np.ndindex(args[k].shape):
                units = [np.zeros_like(args[j]) for j in self.problem.active]
                units[place][index] = 1.0
                column = self.problem.times(found, units, args)
                error = float(np.max(np.abs(column - expected[(..., *index)])))
                if error > FORWARD_TOLERANCE * float(np.max(np.abs(expected))):
                    return f"WRONG by {error:.0e}"
        return ""

    def along(self, args: Sequence[Any], which: Sequence[int]) -> Callable[..., Any]:
        """The program as a function of some of its arguments."""

        def f(*active: Any) -> Any:
            given = list(args)
            for k, x in zip(which, active, strict=True):
                given[k] = x
            return self.problem.f(*given)

        return f

    def wrong_along(self, gradient: Any) -> str:
        """Compare in one random direction with differences, or else with forward mode.

        A long chaotic run has no differences.
        """
        rng = np.random.default_rng(0)
        args, active = self.args, self.problem.active
        directions = [rng.normal(size=args[k].shape) for k in active]
        if self.problem.times is not None:
            slope = self.problem.times(gradient, directions, args)
            scale = float(np.max(np.abs(slope)))
        else:
            bars = gradient if isinstance(gradient, tuple) else (gradient,)
            slope = sum(np.vdot(b, d) for b, d in zip(bars, directions, strict=True))
            scale = _norm(bars) * _norm(directions)

        def moved(h: float) -> Any:
            given = list(args)
            for k, d in zip(active, directions, strict=True):
                given[k] = args[k] + h * d
            return program(*given)

        program = self.problem.f if self.options.table == "interpreted" else self.compiled
        h = 1e-4
        one, two = moved(h) - moved(-h), moved(2 * h) - moved(-2 * h)
        error = float(np.max(np.abs(slope - (8.0 * one - two) / (12.0 * h))))
        if error <= DIFFERENCE_TOLERANCE * scale:
            return ""
        forward = fwdad.jit(
            lambda x, d, f, args: fwdad.jvp(lambda x: f(*x, *args), x, (d,), argnums=(0,))
        )
        first = tuple(range(len(active)))
        if active != first:
            return "WRONG by differences"
        rest = tuple(args[len(active) :])
        x = tuple(args[k] for k in active)
        _, y_dot = forward(x, tuple(directions), self.problem.f, rest)
        error = float(np.max(np.abs(slope - y_dot)))
        return "" if error <= DIRECTION_TOLERANCE * scale else f"WRONG by {error / scale:.0e}"


def wrong_by(found: Any, expected: Any, tolerance: float) -> str:
    """Empty, or by how much a result is wrong, as a part of its largest element."""
    if isinstance(expected, tuple):
        each = (wrong_by(a, b, tolerance) for a, b in zip(found, expected, strict=True))
        return next((wrong for wrong in each if wrong), "")
    found, expected = np.asarray(found), np.asarray(expected)
    error = float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))
    return "" if error <= tolerance else f"WRONG by {error:.0e}"


def _norm(arrays: Any) -> float:
    return float(np.sqrt(sum(np.vdot(a, a).real for a in arrays)))


def tell(**fact: Any) -> None:
    """Say something to the process that waits for this row."""
    print(json.dumps(fact), flush=True)


def main() -> None:
    """Measure the row that is named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reverse_row", description=__doc__)
    add = parser.add_argument
    add("name")
    add("--table", default="compiled", choices=["compiled", "interpreted", "memory", "first"])
    add("--size", nargs="+", default=["small"])
    add("--rounds", type=int, default=9)
    add("--round-seconds", type=float, default=0.02)
    add("--without", nargs="*", default=[])
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # Numba's about strided products
    warm([name for name in ("jax", "fwdad") if name not in options.without])
    measured = Measured(problem_named(options.name), options)
    for size in options.size:
        tell(row=asdict(measured.run(size)))


if __name__ == "__main__":
    main()
