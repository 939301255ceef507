"""Gradients by reverse mode: time over the program's, beside other tools, in one run.

Run as ``python -m benchmarks.reverse``. The output is Markdown, as in ``benchmarks/README.md``.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.measure import MALLOC_ENVIRONMENT
from benchmarks.reverse_programs import PROBLEMS
from benchmarks.reverse_row import Row
from benchmarks.reverse_tables import report
from benchmarks.table import duration


def run_program(name: str, options: argparse.Namespace) -> list[Row]:
    """Measure a program in a process of its own; a tool that takes too long is left out."""
    without = [] if options.jax else ["jax", *(f"{size} jax" for size in options.size)]
    rows: dict[str, Row] = {}
    late: dict[str, str] = {}
    left = list(options.size)
    while left:
        found, begun, why = _attempt(name, left, options, without)
        for row in found:
            for step, reason in late.items():
                size, _, tool = step.partition(" ")
                if size == row.size:
                    row.status[tool] = reason
            rows[row.size] = row
            left.remove(row.size)
        if left and (begun in without or begun.endswith(("start", "timing"))):
            size = left.pop(0)
            rows[size] = Row(name, size, status={"fwdad": why})
        elif left:
            size, _, tool = begun.partition(" ")
            later = options.size[options.size.index(size) :]  # larger: no faster
            late.update({f"{each} {tool}": why for each in later})
            without.extend(f"{each} {tool}" for each in later)
    return list(rows.values())


def _attempt(
    name: str, sizes: Sequence[str], options: argparse.Namespace, without: Sequence[str]
) -> tuple[list[Row], str, str]:
    """The rows; what was under way when time was over or the process ended, and which it was."""
    command = [sys.executable, "-m", "benchmarks.reverse_row", name, "--table", options.table]
    command += ["--rounds", str(options.rounds), "--round-seconds", str(options.round_seconds)]
    command += ["--size", *sizes, "--without", *without]
    environment = {**os.environ, "FWDAD_CACHE_DIR": ""}  # first calls are first calls
    if options.table == "memory":
        environment.update(MALLOC_ENVIRONMENT)
    rows, begun, why = [], "start", f"over {duration(options.limit)}"
    with (
        subprocess.Popen(  # noqa: S603 (this package itself)
            command, stdout=subprocess.PIPE, env=environment
        ) as child,
        selectors.DefaultSelector() as selector,
    ):
        assert child.stdout is not None
        selector.register(child.stdout, selectors.EVENT_READ)
        while selector.select(options.limit):
            line = child.stdout.readline()
            if not line:
                why = "failed: the process ended"
                break
            told = json.loads(line)
            if "row" in told:
                rows.append(Row(**told["row"]))
            begun = told.get("begin", begun)
        child.kill()
    return rows, begun, why


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reverse", description=__doc__)
    add = parser.add_argument
    add("--rows", nargs="+", default=["*"], metavar="PATTERN", help="such as 'jacobi*'")
    add(
        "--table", default="compiled", choices=["compiled", "interpreted", "memory", "first"],
        help="interpreted: array programs without a compiler, beside autograd and torch; "
        "first: nothing but first calls",
    )  # fmt: skip
    add("--size", nargs="+", default=["small"], choices=["tiny", "small", "medium"])
    add("--jax", action="store_true", help="JAX beside it")
    add("--limit", type=float, default=120.0, help="seconds for each step of a row (default 120)")
    add("--json", metavar="FILE", help="write all that was measured, round by round, to FILE")
    add("--read", nargs="+", metavar="FILE", help="tables of what --json wrote, nothing is run")
    add("--rounds", type=int, default=9, help="turns of each tool (default 9)")
    add("--round-seconds", type=float, default=0.02, help="length of a turn (default 0.02)")
    add("--list", action="store_true", help="print the names of the rows")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the table; the exit status is 1 if fwdad failed or was wrong on a row."""
    options = parse(arguments)
    chosen = [p for p in PROBLEMS if any(fnmatch.fnmatch(p.name, r) for r in options.rows)]
    if options.table == "interpreted":
        chosen = [p for p in chosen if p.interpreted]
    if options.list or not chosen:
        print("\n".join(p.name for p in PROBLEMS))
        return 0 if options.list else 2
    rows: list[Row] = []
    for problem in [] if options.read else chosen:
        print(f"… {problem.name}", file=sys.stderr, flush=True)
        rows.extend(run_program(problem.name, options))
        if options.json:
            text = json.dumps([asdict(row) for row in rows], indent=1)
            Path(options.json).write_text(text, encoding="utf-8")
    for path in options.read or ():
        rows.extend(Row(**row) for row in json.loads(Path(path).read_text(encoding="utf-8")))
    print(report(rows, options.table))
    return int(any("fwdad" in row.status for row in rows))


if __name__ == "__main__":
    sys.exit(main())
