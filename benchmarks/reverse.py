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
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.measure import MALLOC_ENVIRONMENT
from benchmarks.reverse_programs import PROBLEMS
from benchmarks.reverse_row import Row
from benchmarks.reverse_tables import report
from benchmarks.table import duration


def run_row(name: str, options: argparse.Namespace) -> Row:
    """Measure a row in a process of its own; a tool that takes too long is left out."""
    without = [] if options.jax else ["jax"]
    late: dict[str, str] = {}
    while True:
        row, begun, why = _attempt(name, options, without)
        if row is None and (begun in without or begun in {"start", "timing"}):
            row = Row(name, status={"fwdad": why})
        if row is not None:
            row.status.update(late)
            return row
        late[begun] = why
        without.append(begun)


def _attempt(
    name: str, options: argparse.Namespace, without: Sequence[str]
) -> tuple[Row | None, str, str]:
    """A row; or what was under way for too long or when the process ended, and which of the two."""
    flags = {
        "--table": options.table, "--size": options.size, "--rounds": str(options.rounds),
        "--round-seconds": str(options.round_seconds),
    }  # fmt: skip
    command = [sys.executable, "-m", "benchmarks.reverse_row", name]
    command += [word for pair in flags.items() for word in pair]
    environment = {**os.environ, "FWDAD_CACHE_DIR": ""}  # first calls are first calls
    if options.table == "memory":
        environment.update(MALLOC_ENVIRONMENT)
    begun, why = "start", f"over {duration(options.limit)}"
    with (
        subprocess.Popen(  # noqa: S603 (this package itself)
            [*command, "--without", *without], stdout=subprocess.PIPE, env=environment
        ) as child,
        selectors.DefaultSelector() as selector,
    ):
        assert child.stdout is not None
        selector.register(child.stdout, selectors.EVENT_READ)
        deadline = time.monotonic() + options.limit
        while selector.select(max(0.0, deadline - time.monotonic())):
            line = child.stdout.readline()
            if not line:
                why = "failed: the process ended"
                break
            told = json.loads(line)
            if "row" in told:
                return Row(**told["row"]), begun, ""
            begun = told["begin"]
            deadline = time.monotonic() + options.limit
        child.kill()
    return None, begun, why


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reverse", description=__doc__)
    add = parser.add_argument
    add("--rows", nargs="+", default=["*"], metavar="PATTERN", help="such as 'jacobi*'")
    add(
        "--table", default="compiled", choices=["compiled", "interpreted", "memory"],
        help="interpreted: array programs without a compiler, beside autograd and torch",
    )  # fmt: skip
    add("--size", default="small", choices=["tiny", "small", "medium"], help="default: small")
    add("--jax", action="store_true", help="JAX beside it")
    add("--limit", type=float, default=120.0, help="seconds for each step of a row (default 120)")
    add("--json", metavar="FILE", help="write all that was measured, round by round, to FILE")
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
    rows = []
    for problem in chosen:
        print(f"… {problem.name}", file=sys.stderr, flush=True)
        rows.append(run_row(problem.name, options))
    print(report(rows, options.table, options.size))
    if options.json:
        Path(options.json).write_text(
            json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8"
        )
    return int(any("fwdad" in row.status for row in rows))


if __name__ == "__main__":
    sys.exit(main())
