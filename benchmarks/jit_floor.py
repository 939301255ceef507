"""The floor under compiled Jacobians: POLLU by hand, without the allocator, over its primal."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.jit_problems import INPUTS, with_points
from benchmarks.measure import time_interleaved
from benchmarks.problems import pollu_problem

_COUNT = 8192

FORMS = {"lanes": "SIMD lanes", "entries": "entries"}
"""The ways to write the Jacobian: columns together as SIMD values, and a formula for each entry."""


def floor_rounds(rounds: int, round_seconds: float) -> dict[str, list[float]]:
    """Seconds of one evaluation of "primal", "lanes" and "entries", in loops over other points.

    Results go into arrays that the caller holds. The functions are kept from being inlined, and
    a number of each result is read.
    """
    try:
        from benchmarks import hand_pollu as hand
    except ImportError:
        return {}
    points = with_points(pollu_problem()).points
    expected = hand.entries(points[0])
    if not np.allclose(hand.lanes(points[0]), expected, rtol=1e-13, atol=0):
        message = "the hand-written Jacobians of POLLU differ"
        raise AssertionError(message)
    calls = {
        name: _loop(f, points, np.zeros(shape))
        for name, f, shape in (
            ("primal", hand.primal_into, 20),
            ("lanes", hand.lanes_into, (20, 20)),
            ("entries", hand.entries_into, (20, 20)),
        )
    }
    timings = time_interleaved(calls, rounds, round_seconds)
    return {name: [s / _COUNT for s in timing.rounds] for name, timing in timings.items()}


def _loop(f: Any, points: np.ndarray, out: np.ndarray) -> Any:
    from numba import njit

    mask = INPUTS - 1

    @njit
    def loop(points, out):
        total = 0.0
        for i in range(_COUNT):
            f(points[i & mask], out)
            total += out.ravel()[i & 15]
        return total

    return lambda: loop(points, out)
