"""Compiled derivatives: time over the compiled primal's and over hand-written Numba, in one run.

Run as ``python -m benchmarks.jit``. The output is Markdown, as in ``benchmarks/README.md``.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.jit_base import JitTool
from benchmarks.jit_cores import cores
from benchmarks.jit_first import first_calls
from benchmarks.jit_floor import FORMS, floor_rounds
from benchmarks.jit_growth import growth
from benchmarks.jit_problems import all_rows, reference, relative_error, tolerance
from benchmarks.jit_targets import jit_targets, speed_of
from benchmarks.jit_tools import JIT_TOOLS, explained
from benchmarks.measure import paired_ratio, time_interleaved
from benchmarks.peers import NotApplicableError, Row, derivative_of
from benchmarks.table import machine, table, three_digits, versions

OWN = "own primal of "  # prefix of the name under which a tool's own primal is timed


@dataclass
class Cell:
    """What one tool made of one row; ``rounds`` are seconds of one evaluation."""

    row: str
    tool: str
    status: str = "ok"
    rounds: list[float] | None = None
    own: list[float] | None = None  # the tool's own compiled primal
    error: float | None = None


def prepare(tool: JitTool, row: Row, expected: Any) -> tuple[Cell, dict[str, Callable[[], Any]]]:
    """Make a tool's calls and check its result, or say why there are none."""
    cell = Cell(row.name, tool.name)
    if not tool.is_installed():
        cell.status = "not installed"
        return cell, {}
    try:
        made = tool.prepare(row)
        if tool.name != "primal":  # its result is that of hand-written derivatives, checked there
            answer = derivative_of(made.read(made.call()), row)
            cell.error = relative_error(answer, expected, row)
        if made.primal is not None:
            made.primal()
    except NotApplicableError:
        cell.status = "-"
        return cell, {}
    except Exception as problem:
        failed(cell, problem)
        return cell, {}
    if cell.error is not None and cell.error > tolerance(row, tool.name):
        cell.status = f"WRONG by {cell.error:.0e}"
        return cell, {}
    calls = {tool.name: made.call}
    if made.primal is not None:
        calls[OWN + tool.name] = made.primal
    return cell, calls


def failed(cell: Cell, problem: Exception) -> None:
    """Print what a tool raised, and keep its class."""
    cell.status = f"failed: {type(problem).__name__}"
    print(f"  {cell.row}, {cell.tool}: {problem!r:.300}", file=sys.stderr)


def run_row(row: Row, tools: Sequence[JitTool], options: argparse.Namespace) -> list[Cell]:
    """Time every tool on one row, in turns, called from Python."""
    expected = reference(row)
    cells, calls = [], {}
    for tool in tools:
        progress(f"{row.name}, {tool.name}")
        cell, found = prepare(tool, row, expected)
        cells.append(cell)
        calls.update(found)
    timings = time_interleaved(calls, options.rounds, options.round_seconds)
    for cell in cells:
        if cell.tool in timings:
            cell.rounds = timings[cell.tool].rounds
        if OWN + cell.tool in timings:
            cell.own = timings[OWN + cell.tool].rounds
    return cells


def run_inside(
    row: Row, tools: Sequence[JitTool], cells: list[Cell], options: argparse.Namespace
) -> list[Cell]:
    """Time the tools whose results were right in loops of compiled code."""
    right = {cell.tool for cell in cells if cell.rounds}
    found: list[Cell] = []
    calls: dict[str, Callable[[], Any]] = {}
    counts = {}
    for tool in tools:
        if tool.inside is None or tool.name not in right:
            continue
        cell = Cell(row.name, tool.name)
        try:
            made = tool.inside(row)
            made.loop(made.count)
        except NotApplicableError:
            continue
        except Exception as problem:
            failed(cell, problem)
        else:
            calls[tool.name] = lambda made=made: made.loop(made.count)
            counts[tool.name] = made.count
        found.append(cell)
    timings = time_interleaved(calls, options.rounds, options.round_seconds)
    for cell in found:
        if cell.tool in timings:
            cell.rounds = [s / counts[cell.tool] for s in timings[cell.tool].rounds]
    return found


def progress(text: str) -> None:
    """Tell who waits, apart from the tables."""
    print(f"… {text}", file=sys.stderr, flush=True)


# -- tables


def time_text(cell: Cell | None, among: dict[str, Cell]) -> str:
    """The time, and its ratios to the primal and the derivative written by hand for Numba."""
    if cell is None:
        return "-"
    if cell.rounds is None:
        return cell.status
    ratios = []
    for name in ("primal", "hand"):
        other = among.get(name)
        has = other is not None and other.rounds is not None and cell.tool != name
        wanted = has and not (cell.tool == "primal" and name == "hand")
        ratios.append(
            f"{three_digits(paired_ratio(cell.rounds, other.rounds))}×"
            if wanted and other is not None and other.rounds is not None
            else "·"
        )
    return f"{speed_of(cell.rounds)} ({', '.join(ratios)})"


def own_text(cell: Cell | None, _among: dict[str, Cell]) -> str:
    """The time over that of the tool's own compiled program."""
    if cell is None or cell.rounds is None or cell.own is None:
        return "-"
    return f"{three_digits(paired_ratio(cell.rounds, cell.own))}×"


def time_table(
    cells: list[Cell],
    tools: Sequence[JitTool],
    text: Callable[[Cell | None, dict[str, Cell]], str],
) -> str:
    """One line a row, one column a tool."""
    by_row: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        by_row.setdefault(cell.row, {})[cell.tool] = cell
    shown = [tool for tool in tools if any(tool.name in among for among in by_row.values())]
    body = [
        [name, *(text(among.get(tool.name), among) for tool in shown)]
        for name, among in by_row.items()
    ]
    return table(["row", *(tool.title for tool in shown)], body)


def report(found: dict[str, Any], tools: Sequence[JitTool]) -> str:
    """Everything as Markdown."""
    parts = ["\n".join(f"- {key}: {value}" for key, value in found["machine"].items())]

    def add(title: str, body: str) -> None:
        parts.extend([f"### {title}", body])

    others = [tool for tool in tools if tool.name != "primal"]
    ratios = "(× the Numba primal by hand, × the derivative by hand with SIMD lanes)"
    if found["cells"]:
        add(f"One call from Python {ratios}", time_table(found["cells"], tools, time_text))
        add(
            "The same, × the tool's own compiled primal",
            time_table(found["cells"], others, own_text),
        )
    if found["inside"]:
        add(f"Inside compiled code {ratios}", time_table(found["inside"], tools, time_text))
    if found["floor"]:
        floor = found["floor"]
        body = [
            [
                FORMS.get(name, "primal"),
                speed_of(rounds),
                f"{three_digits(paired_ratio(rounds, floor['primal']))}×",
            ]
            for name, rounds in floor.items()
        ]
        add("The floor: POLLU by hand, over 8 points", table(["form", "time", "× primal"], body))
    if found["first"]:
        names = list(dict.fromkeys(first.tool for first in found["first"]))
        by = {(first.row, first.tool): first.text() for first in found["first"]}
        rows = list(dict.fromkeys(first.row for first in found["first"]))
        body = [[row, *(by.get((row, name), "-") for name in names)] for row in rows]
        titles = [JIT_TOOLS[name].title for name in names]
        add("First call: tracing and compiling", table(["row", *titles], body))
    if found["cores"]:
        n, body = found["cores"][0].threads, [c.cells() for c in found["cores"]]
        header = ["what", "one thread", f"{n} threads", "gain"]
        add("`parallel=True`: all cores beside one", table(header, body))
    if found["growth"]:
        body = [g.cells() for g in found["growth"]]
        add("Growth of fwdad's time", table(["ten times", "from", "to", "time", "what runs"], body))
    if found["explained"]:
        add(
            "What runs", table(["row", "`fwdad.explain`"], [*map(list, found["explained"].items())])
        )
    header = ["figure", "to reach", "measured", ""]
    add("Figures to reach", table(header, [target.cells() for target in found["targets"]]))
    return "\n\n".join(parts)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.jit", description=__doc__)
    add = parser.add_argument
    peers = [name for name in JIT_TOOLS if name not in {"primal", "fwdad"}]
    parts = ["python", "inside", "floor", "first", "cores", "growth"]
    add("--rows", nargs="+", default=["*"], metavar="PATTERN", help="such as 'lorenz-*'")
    add("--peers", nargs="*", default=peers, metavar="PEER", choices=peers,
        help=f"of {', '.join(peers)}; no name: fwdad and the primal alone")  # fmt: skip
    add("--parts", nargs="+", default=parts, choices=parts, help=f"of {', '.join(parts)}")
    add("--json", metavar="FILE", help="write all that was measured, round by round, to FILE")
    add("--rounds", type=int, default=15, help="turns of each tool (default 15)")
    add("--round-seconds", type=float, default=0.02, help="length of a turn (default 0.02)")
    add("--list", action="store_true", help="print the names of the rows")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tables; the exit status is 1 if fwdad failed or was wrong on a row."""
    options = parse(arguments)
    rows = [r for r in all_rows() if any(fnmatch.fnmatch(r.name, p) for p in options.rows)]
    if options.list or not rows:
        print("\n".join(row.name for row in all_rows()))
        return 0 if options.list else 2
    tools = [tool for name, tool in JIT_TOOLS.items()
             if name in {"primal", "fwdad", *options.peers}]  # fmt: skip
    warnings.simplefilter("ignore")  # what a peer warns of is not what is measured
    found: dict[str, Any] = {"machine": {**machine(), **versions()}}
    found.update(cells=[], inside=[], floor={}, first=[], cores=[], growth=[], explained={})
    for row in rows if {"python", "inside"} & {*options.parts} else []:
        cells = run_row(row, tools, options)
        found["cells"] += cells
        if "inside" in options.parts:
            found["inside"] += run_inside(row, tools, cells, options)
        found["explained"][row.name] = explained(row)
    if "floor" in options.parts:
        progress("the floor")
        found["floor"] = floor_rounds(options.rounds, options.round_seconds)
    if "first" in options.parts:
        found["first"] = first_calls([row.name for row in rows], tools, progress)
    if "cores" in options.parts:
        progress("all cores")
        found["cores"] = cores(options.rounds, options.round_seconds)
    if "growth" in options.parts:
        progress("growth")
        found["growth"] = growth(options.rounds, options.round_seconds)
    found["targets"] = jit_targets(found)
    print(report(found, tools))
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1, default=asdict), encoding="utf-8")
    return int(any(cell.tool == "fwdad" and cell.rounds is None for cell in found["cells"]))


if __name__ == "__main__":
    sys.exit(main())
