"""First calls: each in a process of its own that has compiled one trivial function before.

Run as ``python -m benchmarks.jit_first TOOL ROW``, this module is that process.
"""

from __future__ import annotations

import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.jit_base import JitTool
from benchmarks.jit_problems import all_rows
from benchmarks.jit_tools import JIT_TOOLS
from benchmarks.peers import NotApplicableError
from benchmarks.table import duration

REPEATS = 3


@dataclass
class First:
    """Seconds from the program to its first derivative, and how many of them Numba compiled."""

    row: str
    tool: str
    status: str = "ok"
    seconds: float | None = None
    compiling: float | None = None

    def text(self) -> str:
        """The time, and for Numba's users what was not Numba's."""
        if self.seconds is None:
            return self.status
        if self.tool != "fwdad" or self.compiling is None:
            return duration(self.seconds)
        return f"{duration(self.seconds)} ({duration(self.seconds - self.compiling)} of fwdad's)"


def first_calls(
    names: Sequence[str], tools: Sequence[JitTool], progress: Callable[[str], None]
) -> list[First]:
    """Every tool on every row, one after the other; caches on disk are empty."""
    for folder in ("fwdad", "benchmarks"):  # as an installation does
        compileall.compile_dir(Path(__file__).parent.parent / folder, quiet=1)
    found = []
    for name in names:
        for tool in tools:
            if tool.name == "primal":
                continue
            if not tool.is_installed():
                found.append(First(name, tool.name, "not installed"))
                continue
            progress(f"first call: {name}, {tool.name}")
            runs = [_in_child(name, tool.name) for _ in range(REPEATS)]
            found.append(_median(runs))
    return found


def _median(runs: list[First]) -> First:
    """The run whose time is in the middle."""
    middle = statistics.median_low([run.seconds or 0.0 for run in runs])
    return next(run for run in runs if (run.seconds or 0.0) == middle)


def _in_child(row: str, tool: str) -> First:
    with tempfile.TemporaryDirectory() as folder:
        caches = {
            name: str(Path(folder) / name)
            for name in (
                "FWDAD_CACHE_DIR",
                "NUMBA_CACHE_DIR",
                "TORCHINDUCTOR_CACHE_DIR",
                "XDG_CACHE_HOME",
            )
        }
        done = subprocess.run(  # noqa: S603 (this module itself)
            [sys.executable, "-m", "benchmarks.jit_first", tool, row],
            env={**os.environ, **caches},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        print(f"  {row}, {tool}: {done.stderr[-600:]}", file=sys.stderr)
        return First(row, tool, "failed")
    return First(**json.loads(done.stdout.splitlines()[-1]))


def _child(tool: JitTool, name: str) -> First:
    row = next(row for row in all_rows() if row.name == name)
    found = First(name, tool.name)
    tool.warm()
    listener = _compile_listener() if "numba" in tool.needs else None
    start = time.perf_counter()
    try:
        tool.prepare(row).call()
    except NotApplicableError:
        found.status = "-"
        return found
    found.seconds = time.perf_counter() - start
    if listener is not None:
        found.compiling = _time_in(listener.buffer)
    return found


def _compile_listener() -> Any:
    from numba.core import event

    listener = event.RecordingListener()
    event.register("numba:compile", listener)
    return listener


def _time_in(recorded: Sequence[tuple[float, Any]]) -> float:
    """Seconds in which at least one function was being compiled: compilations are nested."""
    depth, since, total = 0, 0.0, 0.0
    for when, event in recorded:
        if event.is_start:
            since = when if depth == 0 else since
            depth += 1
        elif event.is_end:
            depth -= 1
            total += when - since if depth == 0 else 0.0
    return total


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(vars(_child(JIT_TOOLS[sys.argv[1]], sys.argv[2]))))
