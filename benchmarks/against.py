"""Two checkouts beside each other, in turns: ``python -m benchmarks.against ../other``.

Each round starts a process for each of the two, which takes the least of five times of each piece
of work; the medians of the rounds are compared. So it is seen what a change costs: the other
checkout is that of its parent.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parents[1]


def work() -> dict[str, Callable[[], Any]]:
    """What is timed: eager derivatives, those of the user's rules, and kept tapes."""
    import fwdad
    from benchmarks import problems

    def saturated(x: Any) -> Any:
        return np.tanh(x)

    @fwdad.frule(saturated)
    def _push(primals: Any, tangents: Any) -> Any:
        y = np.tanh(primals[0])
        return y, tangents[0] * (1 - y**2)

    def by_rules(x: Any) -> Any:
        for _ in range(20):
            x = saturated(x)
        return np.sum(x)

    def numbers(x: Any) -> Any:
        t = 0.0
        for i in range(len(x) - 1):
            t = t + 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
        return t

    def calls(x: Any) -> Any:
        both = np.concatenate([np.sort(x), np.cumsum(x)])
        return np.sum(both * np.where(x[0] > 0, 1.0, 2.0))

    kept: list[Any] = []

    def with_history(x: Any) -> Any:
        value = numbers(x)
        kept.append(value)
        return value

    x = np.linspace(0.1, 1.0, 8)
    of = {
        "POLLU": problems.pollu_problem(),
        "POLLU, stored": problems.pollu_stored_problem(),
        "Brusselator, 50": problems.brusselator_problem(50),
        "array, 1e3": problems.array_problem(1000),
        "matrix, 20": problems.matrix_problem(20),
    }
    jacobians: dict[str, Callable[[], Any]] = {
        name: (lambda p=p: fwdad.jacobian(p.function, p.x, mode="forward"))
        for name, p in of.items()
    }
    return jacobians | {
        "numbers, jvp": lambda: fwdad.jvp(numbers, x, x),
        "calls of NumPy, jvp": lambda: fwdad.jvp(calls, x, x),
        "a user's rule, 20 times, jvp": lambda: fwdad.jvp(by_rules, x, x),
        "a user's rule, 20 times, grad": lambda: fwdad.grad(by_rules)(x),
        "numbers, grad": lambda: fwdad.grad(numbers)(x),
        "numbers, jvp, a history kept": lambda: fwdad.jvp(with_history, x, x),
    }


def measured() -> dict[str, float]:
    """Seconds of each, in this process."""
    found = {}
    for name, call in work().items():
        for _ in range(3):
            call()
        start = time.perf_counter()
        call()
        number = max(1, int(0.05 / (time.perf_counter() - start)))
        times = []
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(number):
                call()
            times.append((time.perf_counter() - start) / number)
        found[name] = min(times)
    return found


def run(checkout: Path) -> dict[str, float]:
    """The same in a process with another checkout's package."""
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); from benchmarks import against"
    code = f"{code}; import json; print(json.dumps(against.measured()))"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    program = f"import sys; sys.path.insert(0, {str(checkout)!r}); import fwdad; {code}"
    done = subprocess.run(  # noqa: S603  (our own code)
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    parser.add_argument("other", type=Path, help="the folder of another checkout")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    times: dict[str, list[tuple[float, float]]] = collections.defaultdict(list)
    for _ in range(options.rounds):
        other, own = run(options.other.resolve()), run(HERE)
        for name, seconds in own.items():
            times[name].append((other[name], seconds))
    print("| work | other, µs | this, µs | ratio |\n|---|---|---|---|")
    for name, pairs in times.items():
        before, after = (statistics.median(side) for side in zip(*pairs, strict=True))
        print(f"| {name} | {before * 1e6:.1f} | {after * 1e6:.1f} | {after / before:.2f} |")


if __name__ == "__main__":
    main()
