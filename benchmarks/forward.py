"""Forward mode: time and peak memory over the primal's, beside the peers, in one run.

Run as ``python -m benchmarks.forward``. The output is Markdown, as in ``benchmarks/README.md``.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import (
    RESIDENT_RESOLUTION,
    Timing,
    paired_ratio,
    peak_traced,
    time_interleaved,
)
from benchmarks.memory import jacobian_peaks, resident_in_child
from benchmarks.micro import factorisations, fresh_lambda, product_beyond_numpy
from benchmarks.peers import TOOLS, NotApplicableError, Row, Tool, derivative_of
from benchmarks.rows import all_rows, reference, relative_error, tolerance
from benchmarks.table import duration, machine, size, table, three_digits, versions
from benchmarks.targets import Target, targets


@dataclass
class Cell:
    """What one tool made of one row."""

    row: str
    tool: str
    status: str = "ok"
    seconds: float | None = None
    rounds: list[float] | None = None
    first: float | None = None
    peak: int | None = None
    error: float | None = None

    def time_text(self, primal: Cell) -> str:
        """The time, and its ratio to the program itself."""
        if self.seconds is None or primal.seconds is None:
            return self.status
        if self is primal:
            return duration(self.seconds)
        ratio = paired_ratio(self.rounds or [], primal.rounds or [])
        return f"{duration(self.seconds)} ({three_digits(ratio)}×)"

    def peak_text(self, primal: Cell) -> str:
        """The peak memory, and its ratio to the program itself."""
        if self.peak is None:
            return "-"
        if self.tool in TOOLS and not TOOLS[self.tool].traced and self.peak < RESIDENT_RESOLUTION:
            return f"< {size(RESIDENT_RESOLUTION)}"
        if self is primal or not primal.peak:
            return size(self.peak)
        return f"{size(self.peak)} ({three_digits(self.peak / primal.peak)}×)"

    def first_text(self) -> str:
        """The time of the first call."""
        return "-" if self.first is None else duration(self.first)


def prepare(tool: Tool, row: Row, expected: Any) -> tuple[Cell, Callable[[], Any] | None, float]:
    """Make a tool's call and check its result, or say why there is none.

    Also gives the seconds of the first call, in which whatever is traced or compiled is.
    """
    cell = Cell(row.name, tool.name)
    if not tool.is_installed():
        cell.status = "not installed"
        return cell, None, 0.0
    try:
        start = time.perf_counter()
        call = tool.prepare(row)
        answer = call()
        first = time.perf_counter() - start
        cell.error = relative_error(derivative_of(answer, row), expected)
    except NotApplicableError:
        cell.status = "-"
        return cell, None, 0.0
    except Exception as problem:
        cell.status = f"failed: {type(problem).__name__}"
        print(f"  {row.name}, {tool.name}: {problem!r:.300}", file=sys.stderr)
        return cell, None, 0.0
    if cell.error > tolerance(row, tool.name):
        cell.status = f"WRONG by {cell.error:.0e}"
        return cell, None, first
    return cell, call, first


def run_row(row: Row, tools: Sequence[Tool], options: argparse.Namespace) -> list[Cell]:
    """Time every tool on one row, in turns, and then measure their memory."""
    f, x = row.problem.function, row.problem.x
    primal = Cell(row.name, "primal")
    expected = reference(row)
    cells, calls = [primal], {"primal": lambda: f(x)}
    firsts = {}
    for tool in tools:
        cell, call, first = prepare(tool, row, expected)
        cells.append(cell)
        if call is not None:
            calls[tool.name] = call
            firsts[tool.name] = first
    timings: dict[str, Timing] = time_interleaved(calls, options.rounds, options.round_seconds)
    for cell in cells:
        if cell.tool in timings:
            timing = timings[cell.tool]
            cell.seconds, cell.rounds = timing.median, timing.rounds
            cell.first = firsts.get(cell.tool)
    if options.memory:
        traced = {"primal"} | {tool.name for tool in tools if tool.traced}
        for cell in cells:
            if cell.tool in calls and cell.tool in traced:
                cell.peak = peak_traced(calls[cell.tool])
    return cells


def add_resident(cells: list[Cell], tools: Sequence[Tool]) -> None:
    """Fill in the memory of the tools that tracemalloc cannot see."""
    for tool in tools:
        mine = {c.row: c for c in cells if c.tool == tool.name and c.seconds is not None}
        if tool.traced or not mine:
            continue
        progress(f"memory of {tool.title}")
        for row, peak in resident_in_child(tool.name, list(mine)).items():
            mine[row].peak = peak


def run_micro(*, memory: bool) -> dict[str, Any]:
    """The costs of single steps and the growth of memory; what fails is left out, and said."""
    found: dict[str, Any] = {"failed": []}

    def measured(name: str, measure: Callable[[], Any]) -> Any:
        try:
            return measure()
        except Exception as problem:
            found["failed"].append(f"{name}: {type(problem).__name__}")
            print(f"  {name}: {problem!r:.300}", file=sys.stderr)
            return None

    found["product"] = measured("product", product_beyond_numpy)
    found["fresh lambda"] = measured("fresh lambda", fresh_lambda)
    counts = measured("factorisations", factorisations)
    if counts is not None:
        found["factorisations by N"] = counts
        found["factorisations"] = max(counts.values())
    peaks = measured("memory of jacobian", jacobian_peaks) if memory else None
    if peaks is not None:
        found["peaks"] = {f"chunk {n}, {k} columns": peak for (n, k), peak in peaks.items()}
        found["memory by N"] = peaks[32, 256] / peaks[8, 256]
        found["memory by columns"] = peaks[8, 256] / peaks[8, 64]
    return found


def progress(text: str) -> None:
    """Tell who waits, apart from the tables."""
    print(f"… {text}", file=sys.stderr, flush=True)


def report(
    where: dict[str, str],
    cells: list[Cell],
    tools: Sequence[Tool],
    micro: dict[str, Any],
    found: list[Target],
) -> str:
    """Everything as Markdown."""
    names = ["primal", *(tool.name for tool in tools)]
    titles = ["row", "NumPy primal", *(tool.title for tool in tools)]
    by_row: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        by_row.setdefault(cell.row, {})[cell.tool] = cell
    parts = ["\n".join(f"- {key}: {value}" for key, value in where.items())]

    def add(
        title: str, text: Callable[[Cell, Cell], str], header: list[str], among: list[str]
    ) -> None:
        body = [
            [row, *(text(tools_of[name], tools_of["primal"]) for name in among)]
            for row, tools_of in by_row.items()
        ]
        parts.extend([f"### {title}", table(header, body)])

    if cells:
        add("Time (× the primal's)", lambda c, p: c.time_text(p), titles, names)
        if any(cell.peak is not None for cell in cells):
            add("Peak memory (× the primal's)", lambda c, p: c.peak_text(p), titles, names)
        first = "First call, with whatever is lifted, traced or compiled in it"
        add(first, lambda c, _: c.first_text(), [titles[0], *titles[2:]], names[1:])
    if micro.get("peaks"):
        lines = [[name, size(peak)] for name, peak in micro["peaks"].items()]
        heading = "### Peak memory of `jacobian(f, x, chunk=N)` beyond J, 20000 outputs"
        parts += [heading, table(["", "peak"], lines)]
    header = ["figure", "to reach", "measured", ""]
    parts += ["### Figures to reach", table(header, [target.cells() for target in found])]
    if micro.get("failed"):
        parts.append("Failed: " + ", ".join(micro["failed"]))
    return "\n\n".join(parts)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forward", description=__doc__)
    add = parser.add_argument
    peers = [name for name in TOOLS if name != "fwdad"]
    add("--rows", nargs="+", default=["*"], metavar="PATTERN", help="such as 'array-1e3/*'")
    add("--peers", nargs="*", default=peers, metavar="PEER", choices=peers,
        help=f"of {', '.join(peers)}; no name: fwdad alone")  # fmt: skip
    add("--json", metavar="FILE", help="write all that was measured, round by round, to FILE")
    add("--rounds", type=int, default=9, help="turns of each tool; the median is shown (default 9)")
    add("--round-seconds", type=float, default=0.02, help="length of a turn (default 0.02)")
    add("--no-memory", dest="memory", action="store_false", help="measure time only")
    add("--no-micro", dest="micro", action="store_false", help="leave out the single steps")
    add("--list", action="store_true", help="print the names of the rows")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the table; the exit status is 1 if fwdad failed or was wrong on a row."""
    options = parse(arguments)
    rows = [r for r in all_rows() if any(fnmatch.fnmatch(r.name, p) for p in options.rows)]
    if options.list or not rows:
        print("\n".join(row.name for row in all_rows()))
        return 0 if options.list else 2
    tools = [TOOLS["fwdad"], *(TOOLS[name] for name in options.peers)]
    where = {**machine(), **versions()}
    warnings.simplefilter("ignore")  # what a peer warns of is not what is measured
    cells: list[Cell] = []
    for row in rows:
        progress(row.name)
        cells += run_row(row, tools, options)
    if options.memory:
        add_resident(cells, tools)
    micro: dict[str, Any] = {}
    if options.micro:
        progress("single steps")
        micro = run_micro(memory=options.memory)
    rounds = {(cell.row, cell.tool): cell.rounds for cell in cells if cell.rounds}
    found = targets(rounds, micro)
    print(report(where, cells, tools, micro, found))
    if options.json:
        everything = {
            "machine": where,
            "cells": [asdict(cell) for cell in cells],
            "micro": micro,
            "targets": [{**asdict(t), "verdict": t.verdict} for t in found],
        }
        Path(options.json).write_text(json.dumps(everything, indent=1), encoding="utf-8")
    return int(any(cell.tool == "fwdad" and cell.seconds is None for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
