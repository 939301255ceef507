"""What the array function's derivative costs when its NumPy calls are written by hand.

Run as ``python -m benchmarks.array_floor``: times over the primal's, of fwdad, of the same NumPy
calls by hand, with the slopes of sine and cosine by ``cos`` and ``sin`` and by ``tan``, and of the
latter in blocks that stay in a core's cache.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import fwdad
from benchmarks.measure import paired_ratio, time_interleaved
from benchmarks.problems import array_problem, transcendental
from benchmarks.table import duration, table, three_digits

BLOCK = 8192
SIZES, LANES = (1_000, 100_000), (1, 8, 32)

Pair = tuple[np.ndarray, np.ndarray]  # a value, and its slope by x


def _bell(x: np.ndarray) -> Pair:
    """``tanh(x) * exp(-x * x)``."""
    t = np.tanh(x)
    sech = 1 / np.cosh(x)
    opposite = -x
    e = np.exp(opposite * x)
    return t * e, sech * sech * e + t * (e * (x * -1.0 + opposite))


def _wave(x: np.ndarray, *, by_tan: bool) -> Pair:
    """``log1p(x * x) * sin(3 * x)``."""
    square, triple = x * x, 3 * x
    l, s = np.log1p(square), np.sin(triple)
    slope = s / np.tan(triple) if by_tan else np.cos(triple)
    return l * s, (x + x) * (1 / (1 + square)) * s + slope * 3.0 * l


def _line(x: np.ndarray, *, by_tan: bool) -> Pair:
    """``cos(x) * x``."""
    c = np.cos(x)
    return c * x, (-c * np.tan(x) if by_tan else -np.sin(x)) * x + c


def by_hand(x: np.ndarray, v: np.ndarray, *, by_tan: bool) -> tuple[np.ndarray, np.ndarray]:
    """The value, and N tangents as one product with the slope of all of it."""
    y, d = _bell(x)
    for value, slope in (_wave(x, by_tan=by_tan), _line(x, by_tan=by_tan)):
        y += value
        d += slope
    if not math.isfinite(np.vdot(d, d)):
        raise FloatingPointError
    return y, v * d


def in_blocks(x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same, a block of elements at a time."""
    y, y_dot = np.empty(x.shape), np.empty(v.shape)
    for start in range(0, x.size, BLOCK):
        part = slice(start, start + BLOCK)
        y[part], y_dot[:, part] = by_hand(x[part], v[:, part], by_tan=True)
    return y, y_dot


def main() -> None:
    """Print the table."""
    lines = []
    for n in SIZES:
        x = array_problem(n).x
        for lanes in LANES:
            v = np.random.default_rng(lanes).normal(size=(lanes, n))
            calls: dict[str, Callable[..., Any]] = {
                "fwdad": functools.partial(fwdad.jvp, transcendental),
                "by hand": functools.partial(by_hand, by_tan=False),
                "by hand, tan": functools.partial(by_hand, by_tan=True),
                "in blocks": in_blocks,
            }
            for call in calls.values():
                for ours, wanted in zip(call(x, v), fwdad.jvp(transcendental, x, v), strict=True):
                    np.testing.assert_allclose(ours, wanted, rtol=1e-12, atol=1e-12)
            timed: dict[str, Callable[[], Any]] = {"primal": lambda x=x: transcendental(x)}
            timed |= {name: functools.partial(call, x, v) for name, call in calls.items()}
            timings = time_interleaved(timed, 15, 0.02)
            primal = timings["primal"]
            ratios = [paired_ratio(timings[name].rounds, primal.rounds) for name in calls]
            texts = [f"{three_digits(ratio)}×" for ratio in ratios]
            lines.append([f"n = {n}, N = {lanes}", duration(primal.median), *texts])
    header = ["", "primal", "fwdad", "by hand", "by hand, tan", f"in blocks of {BLOCK}"]
    print(table(header, lines))


if __name__ == "__main__":
    main()
