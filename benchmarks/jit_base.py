"""What a compiling tool is, and the loop in compiled code that calls it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.jit_problems import INPUTS, SHORT, JitProblem
from benchmarks.peers import NotApplicableError, Row

Call = Callable[[], Any]


@dataclass(frozen=True)
class Prepared:
    """The calls of one tool on one row."""

    call: Call  # returns the Jacobian, or (y, y_dot)
    primal: Call | None = None  # the tool's own program without a derivative
    read: Callable[[Any], Any] = lambda answer: answer  # what is not part of the time


@dataclass(frozen=True)
class Inside:
    """A loop in compiled code over ``INPUTS`` points: ``loop(count)`` evaluates ``count`` times."""

    loop: Callable[[int], Any]
    count: int


@dataclass(frozen=True)
class JitTool:
    """A way to compile derivatives."""

    name: str
    title: str
    needs: tuple[str, ...]  # packages that must be importable
    prepare: Callable[[Row], Prepared]
    inside: Callable[[Row], Inside] | None = None
    warm: Callable[[], Any] = lambda: None  # what a process has done before first calls are timed

    def is_installed(self) -> bool:
        """Whether its packages can be imported."""
        try:
            for name in self.needs:
                importlib.import_module(name)
        except ImportError:
            return False
        return True


def problem_of(row: Row) -> JitProblem:
    """The row's problem, with its arguments that are not differentiated."""
    assert isinstance(row.problem, JitProblem)
    return row.problem


def loop_count(row: Row) -> int:
    """How many evaluations a loop makes: about a millisecond of them."""
    return 64 if row.problem.name.startswith("burgers") else 8192


def numba_loop(f: Callable[..., Any], row: Row, more: tuple[Any, ...] = ()) -> Inside:
    """A compiled loop around ``f(point, *more)``, which returns an array."""
    from numba import njit

    if row.name not in SHORT:
        raise NotApplicableError
    points, mask = problem_of(row).points, INPUTS - 1
    matrix = f(points[0], *more).ndim == 2

    @njit
    def loop(points, count, more):
        total = 0.0
        for i in range(count):
            y = f(points[i & mask], *more)
            # a result that nobody reads may vanish; no `ravel`, which copies some layouts
            total += y[i & 1, 1] if matrix else y[i & 1]
        return total

    return Inside(lambda count: loop(points, count, more), loop_count(row))


def warm_numba() -> None:
    from numba import njit

    njit(lambda x: x + 1)(1.0)
