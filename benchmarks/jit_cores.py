"""All cores beside one: ``jit(parallel=True)``, and the same without, in a process of its own.

Run as ``python -m benchmarks.jit_cores``, this module is that process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.measure import paired_ratio, time_interleaved
from benchmarks.table import duration, three_digits

ELEMENTS = 1_000_000
STEPS = 100_000


@dataclass
class Cores:
    """One program with one thread and with all; ``rounds`` are seconds."""

    what: str
    threads: int
    one: list[float]
    all: list[float]

    def cells(self) -> list[str]:
        """The columns of the table."""
        times = [duration(float(np.median(x))) for x in (self.one, self.all)]
        return [self.what, *times, f"{three_digits(paired_ratio(self.one, self.all))}×"]


def elements(x: np.ndarray) -> np.ndarray:
    """A chain of elementwise operations."""
    return np.exp(np.sin(x)) / (2.0 + x * x)


def total(x: np.ndarray) -> float:
    """A fused reduction."""
    return np.sum(x * x / (1.0 + x) + np.sqrt(x))


def points(x: np.ndarray, steps: int) -> np.ndarray:
    """A loop whose iterations are independent: a logistic map for each element."""
    y = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        s = x[i]
        for _ in range(steps):
            s = 3.9 * s * (1.0 - s)
        y[i] = s
    return y


def forced(p: np.ndarray, steps: int) -> np.ndarray:
    """Euler steps of Lorenz' system, pushed in z by 61 parameters in turn."""
    x, y, z = p[0], p[1], p[2]
    for k in range(steps):
        x, y, z = (
            x + 1e-3 * (10.0 * (y - x)),
            y + 1e-3 * (x * (28.0 - z) - y),
            z + 1e-3 * (x * y - 2.6 * z + p[3 + k % 61]),
        )
    return np.array([x, y, z])


def _programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    import fwdad

    rng = np.random.default_rng(0)
    x = rng.random(ELEMENTS)

    def push(x: np.ndarray, v: np.ndarray) -> Any:
        return fwdad.jvp(elements, x, v)

    return {
        "elements: 1e6, two elementary functions": (elements, (x,)),
        "their derivative, 8 directions": (push, (x, rng.normal(size=(8, ELEMENTS)))),
        "reduction: a fused sum of 1e6": (total, (x,)),
        "loop: 1e5 elements, 100 steps each": (points, (x[:STEPS], 100)),
        "columns: 64 of 1e5 steps of Lorenz' system": (
            fwdad.jacfwd(forced),
            (rng.random(64), STEPS),
        ),
    }


def cores(rounds: int, seconds: float) -> list[Cores]:
    """Time everything in a process that has as many threads as there are cores."""
    done = subprocess.run(  # noqa: S603 (this module itself)
        [sys.executable, "-m", "benchmarks.jit_cores", str(rounds), str(seconds)],
        env={k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "OMP_PROC_BIND")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"  all cores: {done.stderr[-600:]}", file=sys.stderr)
        return []
    return [Cores(**found) for found in json.loads(done.stdout.splitlines()[-1])]


def _child(arguments: Sequence[str]) -> list[dict[str, Any]]:
    import numba

    import fwdad

    found = []
    for what, (f, given) in _programs().items():
        one, all_cores = fwdad.jit(f), fwdad.jit(f, parallel=True)
        answers = one(*given), all_cores(*given)
        for a, b in zip(*(y if isinstance(y, tuple) else (y,) for y in answers), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)
        calls = {"one": lambda f=one, a=given: f(*a), "all": lambda f=all_cores, a=given: f(*a)}
        times = time_interleaved(calls, int(arguments[0]), float(arguments[1]))
        made = Cores(what, numba.get_num_threads(), times["one"].rounds, times["all"].rounds)
        found.append(vars(made))
    return found


if __name__ == "__main__":
    print(json.dumps(_child(sys.argv[1:])))
