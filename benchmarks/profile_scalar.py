"""Where the time of scalar code goes: cProfile of 1e4 scalar operations.

Run as ``python -m benchmarks.profile_scalar``: nanoseconds per operation without the profiler, for
the plain program, for one tangent and for eight, and then the functions that cost most.
"""

from __future__ import annotations

import argparse
import cProfile
import math
import pstats
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

OPERATIONS = 10_000


def arithmetic(x):
    """1e4 operators on scalars: a product, a sum, a quotient and a difference in turn."""
    a, b = x[0], x[1]
    for _ in range(OPERATIONS // 4):
        a = a * b
        a = a + 1.0
        a = a / 2.0
        a = a - b
    return a


def elements(x):
    """1e4 operations on elements of an array: two loads, a product, a sum and a store in turn."""
    y = np.zeros(100)
    for i in range(OPERATIONS // 5):
        k = i % 100
        y[k] = x[0] * x[1] + y[k]
    return y


def calls(x):
    """1e4 calls: a user's function, and the math module's sine in it."""

    def damp(value):
        return 0.5 * math.sin(value)

    a = x[0]
    for _ in range(OPERATIONS // 3):
        a = damp(a)
    return a


def seconds(call: Callable[[], Any], rounds: int = 5) -> float:
    """The median time of a call."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the times, then the profiles."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.profile_scalar", description=__doc__
    )
    parser.add_argument("--lines", type=int, default=15, help="functions to print (default 15)")
    parser.add_argument("--sort", default="tottime", help="tottime (default) or cumtime")
    options = parser.parse_args(arguments)
    import fwdad

    x = np.array([0.9, 1.01])
    rng = np.random.default_rng(0)
    for f in (arithmetic, elements, calls):
        one, eight = rng.normal(size=2), rng.normal(size=(8, 2))
        plain = seconds(lambda f=f: f(x))
        line = f"{f.__name__}: plain {1e9 * plain / OPERATIONS:.0f} ns an operation"
        for title, v in (("N = 1", one), ("N = 8", eight)):
            fwdad.jvp(f, x, v)
            taken = seconds(lambda f=f, v=v: fwdad.jvp(f, x, v))
            line += f", {title} {1e9 * taken / OPERATIONS:.0f} ns ({taken / plain:.0f}×)"
        print(line)
        profile = cProfile.Profile()
        profile.enable()
        fwdad.jvp(f, x, eight)
        profile.disable()
        pstats.Stats(profile).strip_dirs().sort_stats(options.sort).print_stats(options.lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
