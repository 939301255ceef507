"""Colourings of sparsity patterns: how many colours, by order and altogether, and the time.

python -m benchmarks.colouring
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.spatial import Delaunay

from benchmarks.table import duration, table, versions
from fwdad.colouring import ORDERS, colour


class Case(NamedTuple):
    """A pattern, and the kinds of colouring that are of interest."""

    name: str
    make: Callable[[], Any]
    kinds: tuple[str, ...] = ("columns", "star", "acyclic")


def banded(n: int, k: int) -> Any:
    return sp.diags_array([np.ones(n - abs(d)) for d in range(-k, k + 1)], offsets=range(-k, k + 1))


def laplacian(*shape: int) -> Any:
    """The nearest neighbours on a grid: that of Bratu's problem, too."""
    total = sp.csr_array((1, 1))
    for n in shape:
        total = sp.kronsum(banded(n, 1), total, format="csr")
    return sp.csr_array(total)


def nine_points(n: int) -> Any:
    return sp.csr_array(sp.kron(banded(n, 1), banded(n, 1)))


def arrow(n: int, width: int) -> Any:
    k = np.arange(n)
    rows = np.concatenate([k, *(np.full(n, w) for w in range(width)), *[k] * width])
    columns = np.concatenate([k, *[k] * width, *(np.full(n, w) for w in range(width))])
    return sp.csr_array((np.ones(rows.size), (rows, columns)), shape=(n, n))


def mesh(n: int, d: int) -> Any:
    """The vertices of a Delaunay mesh of random points, each with its neighbours."""
    simplices = Delaunay(np.random.default_rng(0).random((n, d))).simplices
    rows = np.repeat(np.arange(len(simplices)), d + 1)
    incidence = sp.csr_array((np.ones(rows.size), (rows, simplices.ravel())))
    return sp.csr_array(incidence.T @ incidence)


def scattered(n: int, each: int) -> Any:
    """Entries at random, and the diagonal."""
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(n), each), rng.integers(0, n, n * each)
    a = sp.csr_array((np.ones(rows.size), (rows, columns)), shape=(n, n))
    return sp.csr_array(a + a.T + sp.eye_array(n))


CASES = [
    Case("Bratu, 1000 × 1000", lambda: laplacian(1000, 1000)),
    Case("Rosenbrock, chained", lambda: banded(100_000, 1)),
    Case("banded, 4 beside", lambda: banded(100_000, 4)),
    Case("nine points, 300 × 300", lambda: nine_points(300)),
    Case("Laplacian, 50 × 50 × 50", lambda: laplacian(50, 50, 50)),
    Case("arrow", lambda: arrow(100_000, 1), ("both", "star", "acyclic")),
    Case("arrow, 3 wide", lambda: arrow(100_000, 3), ("both", "star", "acyclic")),
    Case("mesh of triangles", lambda: mesh(50_000, 2), ("columns", "both", "star", "acyclic")),
    Case("mesh of tetrahedra", lambda: mesh(20_000, 3)),
    Case("random, 2 a row", lambda: scattered(50_000, 2), ("columns", "both", "star", "acyclic")),
]


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the least time of three calls."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
    return result, min(seconds)


def by_asdex(pattern: Any, kind: str) -> str:
    """How many colours asdex has, and how long it takes."""
    try:
        import asdex
    except ImportError:
        return "not installed"
    entries = pattern.tocoo()
    places = (entries.row.astype(np.int32), entries.col.astype(np.int32))
    known = asdex.SparsityPattern.from_coo(*places, pattern.shape)
    if kind == "star":
        found, seconds = timed(lambda: asdex.hessian_coloring_from_sparsity(known))
    elif kind == "columns":
        find = asdex.jacobian_coloring_from_sparsity
        found, seconds = timed(lambda: find(known, mode="fwd"))
    else:
        return "-"
    return f"{found.num_colors}, {duration(seconds)}"


def main() -> None:
    rows = []
    for case in CASES:
        pattern = sp.csr_array(case.make())
        for kind in case.kinds:
            best, seconds = timed(lambda p=pattern, k=kind: colour(p, k))
            _, recovery = timed(lambda c=best: type(c)(*vars(c).values()).recovery)
            by_order = [str(colour(pattern, kind, order).count) for order in ORDERS]
            rows.append([
                f"{case.name}, {kind}", str(pattern.shape[0]), str(pattern.nnz), *by_order,
                f"{best.count}, {best.order}", duration(seconds), duration(recovery),
                by_asdex(pattern, kind),
            ])  # fmt: skip
            print(*rows[-1], sep=" | ", flush=True)
    orders = [name.replace("_", " ") for name in ORDERS]
    header = ["pattern", "n", "nonzeros", *orders, "best", "time", "recovery", "asdex"]
    print("\n" + table(header, rows))
    print(versions())


if __name__ == "__main__":
    main()
