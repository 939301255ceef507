"""How fwdad's compiled time grows: ten times the elements, the steps or the directions."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from benchmarks.jit_problems import burgers_problem, lorenz_problem, row
from benchmarks.jit_tools import JIT_TOOLS, explained
from benchmarks.measure import paired_ratio, time_interleaved
from benchmarks.problems import array_problem
from benchmarks.table import three_digits


@dataclass
class Growth:
    """The time of one row over that of another that is a tenth of it."""

    what: str
    small: str
    large: str
    ratio: float | None
    runs: str = ""  # what runs the large one: growth under the interpreter says little

    def cells(self) -> list[str]:
        """The line of the table."""
        text = "failed" if self.ratio is None else f"{three_digits(self.ratio)}×"
        return [self.what, self.small, self.large, text, self.runs]


def growth(rounds: int, round_seconds: float) -> list[Growth]:
    """Measure every pair, each in turns."""
    found = []
    for what, small, large in (
        ("elements", row(array_problem(10_000), 8), row(array_problem(100_000), 8)),
        ("directions", row(array_problem(10_000), 8), row(array_problem(10_000), 80)),
        ("elements", row(burgers_problem(512), 8), row(burgers_problem(5120), 8)),
        ("directions", row(burgers_problem(512), 8), row(burgers_problem(512), 80)),
        (
            "steps",
            row(lorenz_problem("scalars", 100_000)),
            row(lorenz_problem("scalars", 1_000_000)),
        ),
        (
            "directions",
            row(lorenz_problem("scalars", 100_000), 3),
            row(lorenz_problem("scalars", 100_000), 30),
        ),
    ):
        runs = explained(large)
        try:
            calls = {r.name: JIT_TOOLS["fwdad"].prepare(r).call for r in (small, large)}
            timings = time_interleaved(calls, rounds, round_seconds)
            ratio = paired_ratio(timings[large.name].rounds, timings[small.name].rounds)
        except Exception as problem:
            print(f"  {large.name}: {problem!r:.300}", file=sys.stderr)
            ratio = None
        found.append(Growth(what, small.name, large.name, ratio, runs))
    return found
