"""What it brings that importing fwdad makes ``malloc`` keep freed memory (``tangents/pages.py``).

Run as ``python -m benchmarks.pages``: page faults of a call, and its time over the primal's, each
row in processes of its own, as fwdad is and without that module.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any

from benchmarks.measure import paired_ratio, time_interleaved
from benchmarks.table import table, three_digits

ROWS = ("array-1e5/N=1", "array-1e5/N=8", "brusselator-512/jacobian", "matrix/N=1", "gp/jacobian")
CALLS = 10  # before faults are counted, and while they are
PROCESSES = 2


def faults_of(call: Callable[[], Any]) -> float:
    """Page faults of one call, when others went before."""
    for _ in range(CALLS):
        call()
    start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        call()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - start) / CALLS


def measure(name: str, *, kept: bool) -> tuple[float, float]:
    """Page faults of a call of one row, and its time over the primal's, in this process."""
    if not kept:
        sys.modules["fwdad.tangents.pages"] = types.ModuleType("pages")
    from benchmarks.peers import TOOLS
    from benchmarks.rows import all_rows

    (row,) = (row for row in all_rows() if row.name == name)
    f, x = row.problem.function, row.problem.x
    call = TOOLS["fwdad"].prepare(row)
    faults = faults_of(call)
    timings = time_interleaved({"fwdad": call, "primal": lambda: f(x)}, 9, 0.02)
    return faults, paired_ratio(timings["fwdad"].rounds, timings["primal"].rounds)


def in_child(name: str, *, kept: bool) -> tuple[float, float]:
    """As :func:`measure`, in a new process."""
    done = subprocess.run(  # noqa: S603 (this module itself)
        [sys.executable, "-m", "benchmarks.pages", name, "kept" if kept else "given back"],
        capture_output=True,
        text=True,
        check=True,
    )
    faults, ratio = json.loads(done.stdout)
    return faults, ratio


def main() -> None:
    """Print the table."""
    lines = []
    for name in ROWS:
        cells: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
        for _ in range(PROCESSES):
            for kept, found in cells.items():
                found.append(in_child(name, kept=kept))
        faults, ratios = (
            [statistics.median(run[k] for run in cells[kept]) for kept in (False, True)]
            for k in (0, 1)
        )
        texts = [f"{n:.0f}" for n in faults] + [f"{three_digits(r)}×" for r in ratios]
        lines.append([name, *texts])
    header = ["row", "faults, given back", "kept", "time, given back", "kept"]
    print(table(header, lines))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1], kept=sys.argv[2] == "kept")))
    else:
        main()
