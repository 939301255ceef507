"""A Jacobian by 1, 2, 4 and 8 workers, what a task costs, and what a large run would take.

python -m benchmarks.scaling [--rounds 3] [--only threads]
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np

import fwdad
from benchmarks.table import duration, machine, size, table, versions

STEPS, N = 60, 1024
WORKERS = (1, 2, 4, 8)
KINDS = ("dask as it comes", "dask", "processes", "threads", "threads, jit(f)")
CHUNK = 32
ASKED: dict[str, Any] = {"chunk": CHUNK, "mode": "forward"}
EMPTY = 64
# Dask tells its workers' malloc to give memory back at once, and each array then comes page by page
MALLOC = {
    "MALLOC_TRIM_THRESHOLD_": str(2**26),
    "MALLOC_MMAP_THRESHOLD_": str(2**25 - 2**13),
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
AS_IT_COMES = {**MALLOC, "MALLOC_TRIM_THRESHOLD_": "65536"}
del AS_IT_COMES["MALLOC_MMAP_THRESHOLD_"]


def diffusion(u: Any) -> Any:
    """Steps of a nonlinear diffusion on a ring."""
    for _ in range(STEPS):
        u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1)) * np.exp(-u * u)
    return u


def trivial(u: Any) -> Any:
    """Next to nothing: what is left is what a task costs."""
    return u * 2.0


@contextlib.contextmanager
def pools(kind: str, workers: int) -> Iterator[Any]:
    """An executor of a kind."""
    if kind.startswith("threads"):
        with ThreadPoolExecutor(workers) as made:
            yield made
    elif kind == "processes":
        context = multiprocessing.get_context("forkserver")
        with ProcessPoolExecutor(workers, mp_context=context) as made:
            yield made
    else:
        import dask
        import distributed

        malloc = MALLOC if kind == "dask" else AS_IT_COMES
        dask.config.set({"distributed.nanny.pre-spawn-environ": malloc})
        before = dict(os.environ)  # into which Dask puts what it gives to its workers, for good
        try:
            with (
                distributed.LocalCluster(
                    n_workers=workers, threads_per_worker=1, dashboard_address=None
                ) as cluster,
                distributed.Client(cluster) as made,
            ):
                yield made
        finally:
            os.environ.clear()
            os.environ.update(before)


def once(call: Any) -> float:
    """The time of a call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def timed(call: Any, rounds: int) -> float:
    """The median time of some calls, after one that warms up."""
    call()
    return statistics.median(once(call) for _ in range(rounds))


def rows_of(kind: str, expected: Any, rounds: int) -> list[list[str]]:
    """The lines of a kind of executor."""
    u, small = np.linspace(0.0, 1.0, N), np.ones(EMPTY)
    f = fwdad.jit(diffusion) if kind.endswith("jit(f)") else diffusion
    found = []
    for workers in WORKERS if kind != "dask as it comes" else WORKERS[:1]:
        with pools(kind, workers) as executor:
            J = fwdad.jacobian(f, u, **ASKED, executor=executor)
            np.testing.assert_allclose(J, expected, rtol=1e-13, atol=1e-13)
            pairs = []
            for _ in range(rounds):  # both in one round: the machine's load is that of both
                alone = once(lambda: fwdad.jacobian(f, u, **ASKED))
                took = once(lambda: fwdad.jacobian(f, u, **ASKED, executor=executor))
                pairs.append((alone, took))
            empty = timed(
                lambda: fwdad.jacobian(trivial, small, chunk=1, mode="forward", executor=executor),
                rounds,
            )
        alone, took = (statistics.median(column) for column in zip(*pairs, strict=True))
        gain = statistics.median(a / t for a, t in pairs)
        times = [duration(alone), duration(took), f"{gain:.2f}"]
        found.append([kind, str(workers), *times, duration(empty / EMPTY)])
    return found


def whole(_: int) -> float:
    """How long the whole Jacobian takes one process."""
    u = np.linspace(0.0, 1.0, N)
    return timed(lambda: fwdad.jacobian(diffusion, u, **ASKED), 1)


def constants(rounds: int) -> list[list[str]]:
    """What the arithmetic of a large run rests on."""
    block = fwdad.jacobian(trivial, np.ones(2048), mode="forward", chunk=None)
    nbytes = block.nbytes
    found = []
    gains = []
    with pools("processes", 2) as executor:
        for _ in range(rounds):
            (one,) = executor.map(whole, [0])
            gains.append(2 * one / max(executor.map(whole, [0, 1])))
    gain = statistics.median(gains)
    found.append(["two processes with nothing in common, beside one", f"{gain:.2f}"])
    with tempfile.TemporaryDirectory(dir=os.environ.get("SCALING_DIR")) as folder:
        start = time.perf_counter()
        fwdad.jacobian(
            trivial, np.ones(2048), chunk=128, mode="forward", checkpoint_to=f"{folder}/J"
        )
        took = time.perf_counter() - start
        found.append(["checkpoint, 16 blocks of 2 MB", f"{size(nbytes / took)}/s"])
    with pools("processes", 1) as executor:
        big = np.ones(2048)

        def call() -> Any:
            return fwdad.jacobian(trivial, big, chunk=128, mode="forward", executor=executor)

        found.append(["blocks from a process", f"{size(nbytes / timed(call, rounds))}/s"])
    with pools("dask", 1) as client:
        futures = client.map(abs, range(500), pure=False)
        client.gather(futures)
        start = time.perf_counter()
        client.gather(client.map(abs, range(2000), pure=False))
        each = (time.perf_counter() - start) / 2000
        found.append(["Dask's scheduler, client and worker, for an empty task", duration(each)])

        def call_by_dask() -> Any:
            return fwdad.jacobian(trivial, big, chunk=128, mode="forward", executor=client)

        took = timed(call_by_dask, rounds)
        found.append(["blocks from a worker of Dask", f"{size(nbytes / took)}/s"])
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=KINDS)
    options = parser.parse_args()
    rounds = options.rounds
    print({**machine(), **versions()}, f"load {os.getloadavg()[0]:.1f}\n")
    u = np.linspace(0.0, 1.0, N)
    expected = fwdad.jacobian(diffusion, u, **ASKED)
    rows: list[list[str]] = []
    for kind in KINDS if options.only is None else [options.only]:
        try:
            rows += rows_of(kind, expected, rounds)
        except ImportError as error:
            rows.append([kind, "", f"not installed: {error.name}", "", "", ""])
    header = ["executor", "workers", "alone", "with it", "speed-up", "an empty task"]
    print(table(header, rows), "\n", flush=True)
    if options.only is None:
        print(table(["constant", "measured"], constants(rounds)), flush=True)
    print(f"\nload {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
