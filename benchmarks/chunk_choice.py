"""Time and memory of a Jacobian as a function of the chunk: the grounds of ``chunk="auto"``.

Run as ``python -m benchmarks.chunk_choice``. Each line is one program with K inputs and n outputs.
The width that "auto" chose is read off the run itself: f is run once per chunk.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import problems
from benchmarks.measure import peak_traced, time_interleaved
from benchmarks.memory import wide_program
from benchmarks.table import duration, size, table

CHUNKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Program:
    """A function R^K → R^n at a point."""

    title: str
    function: Callable[[Any], Any]
    x: np.ndarray

    @property
    def widths(self) -> list[int]:
        """The chunk sizes to try: from 64 runs of the function to all directions at once."""
        return [n for n in CHUNKS if self.x.size / 64 <= n < self.x.size] + [self.x.size]


def heat(steps: int) -> Callable[[Any], Any]:
    """A time loop with slices and assignment in place: many small NumPy calls."""

    def march(u):
        u = u.copy()
        for _ in range(steps):
            u[1:-1] += 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
            u -= 0.01 * u**3
        return u

    return march


def reduction(x):
    """K inputs to one output: the Jacobian is a gradient."""
    return np.sum(np.tanh(x[1:] * x[:-1]) ** 2)


def programs() -> list[Program]:
    """The (K, n) at which the rule is judged."""
    wide_64, x_64 = wide_program(64)
    wide_512, x_512 = wide_program(512)
    transcendental = problems.transcendental
    stored, gp = problems.pollu_stored_problem(), problems.gaussian_process_problem(200)
    found = [Program("POLLU, scalars", stored.function, stored.x)]
    for n in (64, 512, 2048):
        y = problems.brusselator_problem(n)
        found.append(Program("Brusselator", y.function, y.x))
    found += [
        Program("array function", transcendental, np.linspace(-1.0, 1.0, n)) for n in (100, 1000)
    ]
    return [
        *found,
        Program("heat equation, 50 steps", heat(50), np.linspace(0.0, 1.0, 300)),
        Program("one output", reduction, np.linspace(0.0, 1.0, 4000)),
        Program("tanh(W x)", wide_64, x_64),
        Program("tanh(W x)", wide_512, x_512),
        Program("Gaussian process", gp.function, gp.x),
    ]


def calls_made(program: Program) -> int:
    """How often ``chunk="auto"`` runs the function: ⌈K / N⌉ times for the N that it chose."""
    import fwdad

    made = 0

    def counted(x):
        return program.function(x)

    # The count is kept where a derivative call does not put things back: in the profiler's hook.
    def place(code: Any) -> tuple[str, str, int]:
        return code.co_name, code.co_filename, code.co_firstlineno

    def hook(frame: Any, event: str, _argument: Any) -> None:
        nonlocal made
        made += event == "call" and place(frame.f_code) == place(counted.__code__)

    sys.setprofile(hook)
    try:
        fwdad.jacobian(counted, program.x)
    finally:
        sys.setprofile(None)
    return made


def sweep(program: Program, rounds: int, round_seconds: float) -> list[list[str]]:
    """One table line per chunk size, and one for what "auto" did."""
    import fwdad

    f, x = program.function, program.x
    y = np.asarray(f(x))
    calls: dict[str, Callable[[], Any]] = {"primal": lambda: f(x)}
    for n in program.widths:
        calls[str(n)] = lambda n=n: fwdad.jacobian(f, x, chunk=n)
    calls["auto"] = lambda: fwdad.jacobian(f, x)
    timings = time_interleaved(calls, rounds, round_seconds)
    primal = timings.pop("primal").median
    best = min(timing.median for timing in timings.values())
    runs = calls_made(program)
    lines = []
    for name, timing in timings.items():
        beyond = peak_traced(calls[name]) - 8 * y.size * x.size
        lines.append([
            program.title if name == str(program.widths[0]) else "",
            f"{x.size} → {y.size}" if name == str(program.widths[0]) else "",
            name if name != "auto" else f"auto ({runs} {'run' if runs == 1 else 'runs'})",
            duration(timing.median),
            f"{timing.median / primal / x.size:.2f}",
            f"{timing.median / best:.2f}",
            size(max(beyond, 0)),
        ])  # fmt: skip
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chunk_choice", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--round-seconds", type=float, default=0.02)
    parser.add_argument("--programs", nargs="+", default=[""], help="parts of the titles")
    options = parser.parse_args(arguments)
    header = ["program", "K → n", "chunk", "time", "primals a column", "÷ the best", "peak − J"]
    lines = []
    for program in programs():
        if any(part.lower() in program.title.lower() for part in options.programs):
            print(f"… {program.title}, {program.x.size}", file=sys.stderr, flush=True)
            lines += sweep(program, options.rounds, options.round_seconds)
    print(table(header, lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
