"""A second process: POLLU's Jacobian from the disk, beside a hand-written Numba function's.

Run as ``python -m benchmarks.cache``. Each measurement is a process of its own that has imported
Numba and has compiled one trivial function; the two ways take turns, and the best counts.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.table import duration

REPEATS = 9
GOAL = 1.3


def _hand() -> dict[str, float]:
    """Numba's own cache: index, data, and the call that reads them."""
    from numba import njit

    from benchmarks import hand_pollu
    from benchmarks.problems import pollu_problem

    x = pollu_problem().x
    start = time.perf_counter()
    njit(cache=True)(hand_pollu.lanes.py_func)(x)
    return {"load and call": time.perf_counter() - start}


def _fwdad() -> dict[str, float]:
    """The stages of a first call: the tape, its sources, and all that the cache adds."""
    import fwdad
    from benchmarks.problems import pollu_problem
    from fwdad.codegen import call_entry, numba_compile
    from fwdad.frontend.trace import trace
    from fwdad.transforms.passes import optimise

    problem = pollu_problem()
    start = time.perf_counter()
    tape = trace(fwdad.jacfwd(problem.function), problem.x)
    optimise(tape.program)
    traced = time.perf_counter()
    writing = 0.0

    def timed(write: Any) -> Any:
        def call(*args: Any) -> Any:
            nonlocal writing
            begun = time.perf_counter()
            made = write(*args)
            writing += time.perf_counter() - begun
            return made

        return call

    call_entry.numba_source = timed(call_entry.numba_source)
    numba_compile.defined = timed(numba_compile.defined)  # the source as a Python function
    call_entry.compile_program(tape.program).call(problem.x)
    called = time.perf_counter()
    return {
        "tracing": traced - start,
        "source": writing,
        "load and call": called - traced - writing,
    }


def _whole() -> dict[str, float]:
    """The first call of the public function, all stages in one."""
    import fwdad
    from benchmarks.problems import pollu_problem

    problem = pollu_problem()
    start = time.perf_counter()
    fwdad.jit(fwdad.jacfwd(problem.function))(problem.x)
    return {"first call": time.perf_counter() - start}


WAYS = {"hand": _hand, "fwdad": _fwdad, "whole": _whole}


def _child(way: str) -> None:
    from numba import njit

    njit(lambda x: x + 1)(1.0)
    print(json.dumps(WAYS[way]()))


def _run(way: str, folder: str) -> dict[str, float]:
    start = time.perf_counter()
    caches = {
        "FWDAD_CACHE_DIR": f"{folder}/fwdad",
        "NUMBA_CACHE_DIR": f"{folder}/numba",
        "XDG_CONFIG_HOME": f"{folder}/config",  # where the key is that signs fwdad's
    }
    done = subprocess.run(  # noqa: S603 (this module itself)
        [sys.executable, "-m", "benchmarks.cache", way],
        env={**os.environ, **caches},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds = time.perf_counter() - start
    return json.loads(done.stdout.splitlines()[-1]) | {"process": seconds}


def main() -> None:
    """Fill both caches, then measure."""
    with tempfile.TemporaryDirectory() as folder:
        cold = {way: _run(way, folder) for way in ("hand", "whole")}
        assert any(Path(folder, "numba").rglob("*.nbc"))
        assert any(Path(folder, "fwdad").iterdir())
        found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
        for _ in range(REPEATS):
            for way in WAYS:
                found[way].append(_run(way, folder))

    def best(way: str, stage: str) -> float:
        return min(made[stage] for made in found[way])

    def median(way: str, stage: str) -> float:
        return statistics.median(made[stage] for made in found[way])

    print("| POLLU Jacobian, first call in a process | best | median |")
    print("| --- | --- | --- |")
    for title, way, stage in (
        ("hand-written, `cache=True`: load and call", "hand", "load and call"),
        ("fwdad: tracing", "fwdad", "tracing"),
        ("fwdad: generating source", "fwdad", "source"),
        ("fwdad: digest, load and call", "fwdad", "load and call"),
        ("fwdad: all of a first call, and importing the backend", "whole", "first call"),
    ):
        print(f"| {title} | {duration(best(way, stage))} | {duration(median(way, stage))} |")
    for way, title in (("hand", "hand-written"), ("whole", "fwdad")):
        process = f"{duration(best(way, 'process'))} | {duration(median(way, 'process'))}"
        print(f"| {title}: the whole process, with all imports | {process} |")
        print(f"| {title}: the same with an empty cache | {duration(cold[way]['process'])} | |")
    ratio = best("fwdad", "load and call") / best("hand", "load and call")
    verdict = "pass" if ratio <= GOAL else "**FAIL**"
    print(f"\nload and call, fwdad / hand-written: {ratio:.2f} × (to reach ≤ {GOAL} ×): {verdict}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _child(sys.argv[1])
    else:
        main()
