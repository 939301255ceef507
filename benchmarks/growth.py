"""How first calls grow with the length of a program: tracing, writing and compiling.

Run as ``python -m benchmarks.growth``: straight programs of 500 to 4,000 operations of several
kinds, their gradients and their directional derivatives. ``--lengths``, ``--kinds`` and
``--transforms`` select; ``--write`` leaves out the compiler. Each program has a process of its own;
time is processor time, with empty caches.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import util
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.table import table, three_digits

LENGTHS = (500, 1000, 2000, 4000)
PHASES = ("trace", "write", "compile")
PATIENCE = 900  # seconds for one process


def scalars(n: int) -> list[str]:
    """A chain of numbers, each of which is used once or twice."""
    lines = ["def f(x):", "    s = x[0]"]
    for k in range(n // 6):
        lines.append(f"    a{k} = np.sin(s + x[{k % 7}]) * x[{k * 3 % 7}]")
        lines.append(f"    s = s + a{k} / (1.0 + a{k} * a{k})")
    return [*lines, "    return s"]


def arrays(n: int) -> list[str]:
    """Arrays of three to eight numbers, with slices and stores in place."""
    lines = ["def f(x):", "    a, b = np.zeros(8), np.ones(8)"]
    for k in range(n // 14):
        i, j = k % 5, k * 3 % 5
        lines.append(f"    a[{i}:{i + 3}] = b[{j}:{j + 3}] * x[:3] + {k % 11}.5")
        lines.append(f"    c{k} = np.sin(a[{j}:{j + 3}]) * x[1:4]")
        lines.append(f"    b[{(i + 1) % 5}:{(i + 1) % 5 + 3}] += 0.1 * c{k}")
        lines.append(f"    a[{k % 8}] = b[{(k + 3) % 8}] * x[{k % 7}]")
    return [*lines, "    return a.sum() + b.sum()"]


def matrices(n: int) -> list[str]:
    """A Kalman filter and its smoother, without loops: products of 3 by 3 matrices."""
    steps = n // 24
    lines = [
        "def f(x):", "    F = np.eye(3) + 0.1 * np.outer(x[:3], x[1:4])",
        "    Q, h, r = 0.1 * np.eye(3), x[2:5], 0.5 + x[5] ** 2", "    m0, P0 = x[:3], np.eye(3)",
    ]  # fmt: skip
    for k in range(steps):
        lines.append(f"    p{k + 1} = F @ m{k}")
        lines.append(f"    R{k + 1} = F @ P{k} @ F.T + Q")
        lines.append(f"    g{k} = R{k + 1} @ h / (h @ R{k + 1} @ h + r)")
        lines.append(f"    m{k + 1} = p{k + 1} + g{k} * ({k % 7}.5 - h @ p{k + 1})")
        lines.append(f"    P{k + 1} = R{k + 1} - np.outer(g{k}, h) @ R{k + 1}")
    lines.append(f"    s{steps} = m{steps}")
    back = [
        f"    s{k} = m{k} + P{k} @ F.T @ np.linalg.solve(R{k + 1}, s{k + 1} - p{k + 1})"
        for k in reversed(range(steps))
    ]
    return [*lines, *back, "    return np.sum(s0 * s0)"]


def branches(n: int) -> list[str]:
    """Numbers, with a branch for every six operations."""
    lines = ["def f(x):", "    s = x[0]"]
    for k in range(n // 8):
        lines.append(f"    if s > {k % 7}.25:")
        lines.append(f"        s = s * x[{k % 7}] + 0.5")
        lines.append("    else:")
        lines.append(f"        s = np.sin(s) + x[{(k + 2) % 7}]")
        lines.append(f"    s = s * 0.9 + x[{k % 5}] * {k % 3}.125")
    return [*lines, "    return s"]


def calls(n: int) -> list[str]:
    """Many calls of one short function."""
    lines = ["def g(s, x):", "    t = np.sin(s) * x", "    return t + 0.5 * s", "", ""]
    lines += ["def f(x):", "    s = x[0]"]
    lines += [f"    s = g(s, x[{k % 7}])" for k in range(n // 5)]
    return [*lines, "    return s"]


def lists(n: int) -> list[str]:
    """A comprehension of many items, of which values choose some; five operations an item."""
    return [
        "def g(t, c):", "    s = np.sin(t * c)", "    return s * t + 0.5 * s", "", "", "def f(x):",
        f"    items = [g(x[k % 8], k + 1.0) for k in range({n // 5})]",
        "    chosen = [v * v for v in items if v > 0.1]",
        "    return np.sum(np.array(items) ** 2) + sum(chosen)",
    ]  # fmt: skip


KINDS: dict[str, Callable[[int], list[str]]] = {
    "scalars": scalars,
    "arrays": arrays,
    "matrices": matrices,
    "branches": branches,
    "calls": calls,
    "lists": lists,
}
TRANSFORMS = ("f", "grad", "jvp")
X = np.linspace(0.2, 0.9, 8)


@dataclass
class Growth:
    """Seconds of each phase for one program, and the operations of its tape."""

    kind: str
    transform: str
    length: int
    operations: int = 0
    trace: float = math.nan
    write: float = math.nan
    compile: float = math.nan


def loaded(kind: str, n: int, folder: Path) -> Callable[..., Any]:
    """The program of a kind, from a file of its own."""
    path = folder / f"{kind}_{n}.py"
    text = "\n".join(["import numpy as np", "", "", *KINDS[kind](n)]) + "\n"
    path.write_text(text, encoding="utf-8")
    spec = util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    f: Callable[..., Any] = module.f
    return f


@contextmanager
def clocked(seconds: dict[str, float], owner: Any, name: str, phase: str) -> Iterator[None]:
    """Add the processor time of a function's calls to a phase."""
    inner = getattr(owner, name)

    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.process_time()
        try:
            return inner(*args, **kwargs)
        finally:
            seconds[phase] += time.process_time() - start

    with mock.patch.object(owner, name, timed):
        yield


class _WrittenError(Exception):
    """The source is written, and is not to be compiled."""


def measured(kind: str, transform: str, n: int, *, compiles: bool) -> Growth:
    """The phases of one first call, in this process."""
    import fwdad
    from fwdad.codegen import call_entry
    from fwdad.drivers import jitted_function

    def called(f: Callable[..., Any]) -> Any:
        if transform == "jvp":
            return fwdad.jit(lambda x, v: fwdad.jvp(f, x, v))(X, X)
        return fwdad.jit(f if transform == "f" else fwdad.grad(f))(X)

    def refuse(*_: Any) -> None:
        raise _WrittenError

    operations: list[int] = []
    trace_optimised = jitted_function.trace_optimised

    def counted(*args: Any, **kwargs: Any) -> Any:
        tape = trace_optimised(*args, **kwargs)
        operations.append(tape.program.count())
        return tape

    seconds = dict.fromkeys(PHASES, 0.0)
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(jitted_function, "trace_optimised", counted),
    ):
        called(loaded("scalars", 12, Path(folder)))  # what is imported and compiled once
        operations.clear()
        f = loaded(kind, n, Path(folder))
        with (
            clocked(seconds, jitted_function, "trace_optimised", "trace"),
            clocked(seconds, call_entry, "compilable", "write"),
            clocked(seconds, call_entry.Machine, "compile", "compile"),
        ):
            if compiles:
                called(f)
            else:
                with mock.patch.object(call_entry._Entry, "_begin", refuse):  # noqa: SLF001
                    try:
                        called(f)
                    except _WrittenError:
                        seconds["compile"] = math.nan
    return Growth(kind, transform, n, operations[-1], **seconds)


def in_child(kind: str, transform: str, n: int, *, compiles: bool) -> Growth:
    """The phases of one first call, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        caches = dict.fromkeys(("FWDAD_CACHE_DIR", "NUMBA_CACHE_DIR"), folder)
        command = [sys.executable, "-m", "benchmarks.growth", "--child", kind, transform, str(n)]
        try:
            done = subprocess.run(  # noqa: S603  (this module itself)
                command if compiles else [*command, "--write"],
                env={**os.environ, **caches},
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            return Growth(kind, transform, n)
    if done.returncode:
        print(f"  {kind}, {transform}, {n}: {done.stderr[-600:]}", file=sys.stderr)
        return Growth(kind, transform, n)
    return Growth(**json.loads(done.stdout.splitlines()[-1]))


def exponent(lengths: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of seconds over lengths on logarithmic axes: 1 is linear."""
    known = [(n, s) for n, s in zip(lengths, seconds, strict=True) if s > 0]
    if len(known) < 2:
        return math.nan
    slope, _ = np.polyfit(*np.log(np.array(known).T), 1)
    return float(slope)


def lines_of(found: Sequence[Growth]) -> list[list[str]]:
    """A line for each kind, transform and phase."""
    lines = []
    for key in dict.fromkeys((g.kind, g.transform) for g in found):
        rows = [g for g in found if (g.kind, g.transform) == key]
        for phase in PHASES:
            seconds = [getattr(g, phase) for g in rows]
            if all(math.isnan(s) for s in seconds):
                continue
            slope = exponent([g.length for g in rows], seconds)
            texts = ["-" if math.isnan(s) else three_digits(s) for s in seconds]
            lines.append([*key, phase, *texts, f"{slope:.2f}"])
    return lines


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--transforms", nargs="+", default=list(TRANSFORMS), choices=TRANSFORMS)
    parser.add_argument("--lengths", nargs="+", type=int, default=list(LENGTHS))
    parser.add_argument("--write", action="store_true", help="without the compiler")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        kind, transform, n = options.child
        print(json.dumps(asdict(measured(kind, transform, int(n), compiles=not options.write))))
        return
    found = []
    for kind in options.kinds:
        for transform in options.transforms:
            for n in options.lengths:
                found.append(in_child(kind, transform, n, compiles=not options.write))
                print(f"  {found[-1]}", file=sys.stderr)
    header = ["program", "of", "phase", *(f"{n} ops" for n in options.lengths), "exponent"]
    print(table(header, lines_of(found)))


if __name__ == "__main__":
    main()
