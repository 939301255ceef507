"""Peak memory: of each tool on each row, and as a function of the chunk and of the columns.

``tracemalloc`` counts what Python and NumPy allocate. JAX and PyTorch allocate in C++; for them a
child process that gives freed memory back at once reports the growth of its resident set.
Run as ``python -m benchmarks.memory TOOL ROW...``, this module is that child.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np

from benchmarks.measure import CAN_RESET_RSS, MALLOC_ENVIRONMENT, peak_resident, peak_traced
from benchmarks.peers import TOOLS
from benchmarks.rows import all_rows


def resident_in_child(tool: str, rows: list[str]) -> dict[str, int]:
    """Peak bytes of a tool on the rows that it can run, or nothing where it cannot be measured."""
    if not CAN_RESET_RSS:
        return {}
    done = subprocess.run(  # noqa: S603 (this module itself)
        [sys.executable, "-m", "benchmarks.memory", tool, *rows],
        env={**os.environ, **MALLOC_ENVIRONMENT},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"memory of {tool} was not measured:\n{done.stderr}", file=sys.stderr)
        return {}
    return json.loads(done.stdout.splitlines()[-1])


def _child(tool: str, names: list[str]) -> None:
    rows = {row.name: row for row in all_rows()}
    print(json.dumps({name: peak_resident(TOOLS[tool].prepare(rows[name])) for name in names}))


OUTPUTS = 20_000


def wide_program(columns: int) -> tuple[Any, np.ndarray]:
    """R^columns → R^20000: the output is large, the Jacobian larger, the input small."""
    weights = np.random.default_rng(1).normal(size=(OUTPUTS, columns)) / np.sqrt(columns)

    def wide(x):
        return np.tanh(weights @ x) * np.cos(weights[:, 0] * x[0])

    return wide, np.linspace(0.0, 1.0, columns)


def jacobian_peaks(chunks=(8, 16, 32), columns=(64, 256)) -> dict[tuple[int, int], int]:
    """Peak bytes of ``jacobian`` beyond the Jacobian itself, by chunk and number of columns."""
    import fwdad

    peaks = {}
    for k in columns:
        f, x = wide_program(k)
        for n in chunks:
            peak = peak_traced(lambda f=f, x=x, n=n: fwdad.jacobian(f, x, chunk=n))
            peaks[n, k] = peak - 8 * OUTPUTS * k
    return peaks


if __name__ == "__main__":
    _child(sys.argv[1], sys.argv[2:])
