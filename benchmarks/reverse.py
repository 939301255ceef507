"""Compiled gradients by reverse mode: time over the compiled program's, in one run.

Run as ``python -m benchmarks.reverse``. The output is Markdown, as in ``benchmarks/README.md``.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import fwdad
from benchmarks import reverse_jax
from benchmarks.measure import paired_ratio, time_interleaved
from benchmarks.reverse_hand import HAND
from benchmarks.reverse_programs import PROBLEMS, Problem
from benchmarks.table import duration, machine, table, three_digits, versions

Call = Callable[[], Any]
FORWARD_TOLERANCE = 1e-12  # of the largest element: the same arithmetic in another order
DIRECTION_TOLERANCE = 1e-8  # at full size, along one direction
PRIMALS = ("numba", "jit")
TITLES = {
    "fwdad": "gradient",
    "hand": "adjoint by hand",
    "jax": "JAX jit",
}


@dataclass
class Row:
    """What was measured of one program: seconds, round by round."""

    name: str
    rounds: dict[str, list[float]] = field(default_factory=dict)
    status: dict[str, str] = field(default_factory=dict)
    runs: str = ""

    def primal(self) -> str:
        """The faster of the compiled programs."""
        medians = {name: float(np.median(self.rounds[name])) for name in PRIMALS
                   if name in self.rounds}  # fmt: skip
        return min(medians, key=lambda name: medians[name])

    def ratio(self, name: str, of: str) -> float:
        """The median ratio of two calls; NaN where one was not timed."""
        if name not in self.rounds or of not in self.rounds:
            return math.nan
        return paired_ratio(self.rounds[name], self.rounds[of])


def check_tiny(problem: Problem, gradient: Any) -> str:
    """Compare a gradient with forward mode at the size where forward mode is cheap."""
    x, *others = problem.arguments("tiny")
    expected = fwdad.jacobian(problem.f, x, args=tuple(others), mode="forward")
    return wrong_by(gradient(x, *others)[1], expected, FORWARD_TOLERANCE)


def wrong_by(found: Any, expected: Any, tolerance: float) -> str:
    """Empty, or by how much an answer is wrong, as a part of its largest element."""
    error = float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))
    return "" if error <= tolerance else f"WRONG by {error:.0e}"


def run_row(problem: Problem, options: argparse.Namespace) -> Row:
    """Check what every tool answers, then time the tools in turns."""
    row = Row(problem.name)
    args = problem.arguments(options.size)
    calls: dict[str, Call] = {}

    def attempt(name: str, make: Callable[[], Call], check: Callable[[Any], str]) -> None:
        try:
            call = make()
            row.status[name] = check(call())
        except Exception as error:
            row.status[name] = f"failed: {type(error).__name__}"
            print(f"  {row.name}, {name}: {error!r:.300}", file=sys.stderr)
            return
        if not row.status[name]:
            calls[name] = call

    gradient = fwdad.jit(fwdad.value_and_grad(problem.f))
    value = problem.f(*args) if options.size == "small" else None
    expected: list[Any] = []

    def same_value(y: Any) -> str:
        return "" if value is None else wrong_by(y, value, DIRECTION_TOLERANCE)

    def is_gradient(answer: Any) -> str:
        wrong = same_value(answer[0]) or check_tiny(problem, gradient)
        return wrong or along_direction(problem, args, answer[1])

    def is_same(answer: Any) -> str:
        if not expected:
            return "nothing to compare with"
        return same_value(answer[0]) or wrong_by(answer[1], expected[0], DIRECTION_TOLERANCE)

    attempt("numba", lambda: numba_call(problem.f, args), same_value)
    attempt("jit", lambda: bound(fwdad.jit(problem.f), args), same_value)
    attempt("fwdad", lambda: bound(gradient, args), is_gradient)
    if "fwdad" in calls:
        expected.append(calls["fwdad"]()[1])
    row.runs = fwdad.explain(gradient)
    for name, make in peers(problem, args, options).items():
        attempt(name, make, is_same)
    timings = time_interleaved(calls, options.rounds, options.round_seconds)
    row.rounds = {name: timing.rounds for name, timing in timings.items()}
    return row


def peers(
    problem: Problem, args: Sequence[Any], options: argparse.Namespace
) -> dict[str, Callable[[], Call]]:
    """What is written for this program: the adjoint by hand, and JAX's."""
    found: dict[str, Callable[[], Call]] = {}
    if problem.name in HAND:
        found["hand"] = lambda: numba_call(HAND[problem.name], args)
    made = reverse_jax.programs() if options.jax else {}
    if problem.name in made:
        found["jax"] = lambda: jax_call(made[problem.name], args)
    return found


def along_direction(problem: Problem, args: Sequence[Any], gradient: Any) -> str:
    """Compare with compiled forward mode in one random direction."""
    x, *others = args
    direction = np.random.default_rng(0).normal(size=x.shape)
    forward = fwdad.jit(lambda x, d, others: fwdad.jvp(lambda x: problem.f(x, *others), x, d))
    _, y_dot = forward(x, direction, tuple(others))
    scale = np.linalg.norm(gradient) * np.linalg.norm(direction)
    error = abs(np.vdot(gradient, direction) - y_dot) / scale
    return "" if error <= DIRECTION_TOLERANCE else f"WRONG by {error:.0e} along a direction"


def bound(f: Any, args: Sequence[Any]) -> Call:
    return lambda: f(*args)


def numba_call(f: Any, args: Sequence[Any]) -> Call:
    from numba import njit

    return bound(njit(f), args)


def jax_call(f: Any, args: Sequence[Any]) -> Call:
    import jax

    jax.config.update("jax_enable_x64", True)
    fixed = tuple(k for k, a in enumerate(args) if isinstance(a, int))
    gradient = jax.jit(jax.value_and_grad(f), static_argnums=fixed)
    given = [a if k in fixed else jax.numpy.asarray(a) for k, a in enumerate(args)]
    return lambda: jax.block_until_ready(gradient(*given))


# -- tables


def report(rows: list[Row], options: argparse.Namespace) -> str:
    """Everything as Markdown."""
    facts = {**machine(), **versions(), "size": options.size}
    body, ratios = [], []
    for row in rows:
        if not any(name in row.rounds for name in PRIMALS):
            body.append([row.name, "failed", "", *(row.status.get(n, "-") for n in TITLES)])
            continue
        of = row.primal()
        own = duration(float(np.median(row.rounds[of])))
        numba = row.status.get("numba") or three_digits(row.ratio("jit", "numba")) + "×"
        cells = [row.name, f"{own} ({of})", numba]
        for name in TITLES:
            if name not in row.rounds:
                cells.append(row.status.get(name, "-"))
                continue
            ratio = row.ratio(name, of)
            beside = "" if name == "fwdad" else f" ({three_digits(row.ratio(name, 'fwdad'))}× ours)"
            cells.append(f"{three_digits(ratio)}×{beside}")
            if name == "fwdad":
                ratios.append(ratio)
        body.append(cells)
    header = ["program", "compiled program", "`jit` over Numba", *TITLES.values()]
    parts = ["\n".join(f"- {key}: {value}" for key, value in facts.items()), table(header, body)]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        parts.append(
            f"Gradient over the faster compiled program: geometric mean {three_digits(mean)}"
            f" over {len(ratios)} programs, at most {three_digits(max(ratios))}."
        )
    partly = [f"- {row.name}: {row.runs}" for row in rows if "NumPy" in row.runs]
    if partly:
        parts.append("Not, or not wholly, compiled:\n\n" + "\n".join(partly))
    return "\n\n".join(parts)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reverse", description=__doc__)
    add = parser.add_argument
    add("--rows", nargs="+", default=["*"], metavar="PATTERN", help="such as 'jacobi*'")
    add("--size", default="small", choices=["tiny", "small", "medium"], help="default: small")
    add("--jax", action="store_true", help="JAX beside it, where its version is written")
    add("--json", metavar="FILE", help="write all that was measured, round by round, to FILE")
    add("--rounds", type=int, default=9, help="turns of each tool (default 9)")
    add("--round-seconds", type=float, default=0.02, help="length of a turn (default 0.02)")
    add("--list", action="store_true", help="print the names of the rows")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the table; the exit status is 1 if fwdad failed or was wrong on a row."""
    options = parse(arguments)
    chosen = [p for p in PROBLEMS if any(fnmatch.fnmatch(p.name, r) for r in options.rows)]
    if options.list or not chosen:
        print("\n".join(p.name for p in PROBLEMS))
        return 0 if options.list else 2
    warnings.simplefilter("ignore")  # Numba's about strided products
    rows = []
    for problem in chosen:
        print(f"… {problem.name}", file=sys.stderr, flush=True)
        rows.append(run_row(problem, options))
    print(report(rows, options))
    if options.json:
        Path(options.json).write_text(
            json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8"
        )
    return int(any("fwdad" not in row.rounds for row in rows))


if __name__ == "__main__":
    sys.exit(main())
