"""Gradients of reversible programs: time over the objective in plain Numba, and memory.

Run as ``python -m benchmarks.reversible [--rows PATTERN] [--hessian] [--memory]``. The output is
Markdown, as in ``benchmarks/README.md``.
"""

from __future__ import annotations

import argparse
import fnmatch
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import scipy.sparse

import fwdad
from benchmarks import reversible_primals as plain
from benchmarks.measure import paired_ratio, peak_traced, time_interleaved
from benchmarks.table import duration, size, table
from fwdad.examples.reversible import bundle, orbits, sparse
from fwdad.examples.reversible import embedding as layouts
from fwdad.examples.reversible import mixture as mixtures
from fwdad.reversible import reversible

TARGETS = {
    "bundle": 6.0,
    "sparse dot": 2.5,
    "sparse product": 3.5,
    "mixture": 4.0,
    "embedding": 3.5,
}


@dataclass
class Case:
    """A gradient, its objective, and how to see that the gradient is right."""

    name: str
    primal: Callable[[], Any]
    gradient: Callable[[], Any]
    right: Callable[[], bool]
    target: float


def unchecked(f: Any) -> Any:
    """The same program without run-time checks, as the published figures are without."""
    return reversible(f.__wrapped__, check=False)


def columns(a: Any) -> tuple[Any, ...]:
    """A matrix's entries, their rows, and where columns start."""
    a = scipy.sparse.csc_array(a)
    a.sort_indices()
    return a.data, a.indices.astype(np.int64), a.indptr.astype(np.int64)


def cases() -> Iterator[Callable[[], Case]]:
    """The programs with a published figure."""
    yield bundle_adjustment
    yield sparse_dot
    yield sparse_product
    yield mixture
    for k in (2, 6, 10):
        yield lambda k=k: embedding(k)


def bundle_adjustment() -> Case:
    """49 cameras, 7,776 points, 31,843 observations: ADBench's first size; all 2 x 15 blocks."""
    args = bundle.observations(49, 7776, 31843, np.random.default_rng(0))
    one = unchecked(bundle.reprojection)
    primal = numba.njit(plain.bundle_adjustment)
    blocks = fwdad.jit(lambda *args: bundle.jacobian(*args, one))

    def right() -> bool:
        v = [np.cos(np.arange(a.size)).reshape(a.shape) for a in args[:3]]
        h = 1e-4
        at = {s: primal(*(a + s * h * u for a, u in zip(args, v, strict=False)), *args[3:])
              for s in (-2, -1, 1, 2)}  # fmt: skip
        expected = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * h)
        own = np.hstack([v[0][args[3][:, 0]], v[1][args[3][:, 1]], v[2][:, None]])
        found = np.einsum("krp,kp->kr", blocks(*args), own)
        return bool(np.all(np.abs(found - expected) <= 1e-7 * (1 + np.abs(expected))))

    return Case(
        "bundle adjustment", lambda: primal(*args), lambda: blocks(*args), right, TARGETS["bundle"]
    )


def sparse_dot() -> Case:
    """Two matrices of 1000 x 1000, 5 % of their entries."""
    rng = np.random.default_rng(0)
    a, b = (scipy.sparse.random_array((1000, 1000), density=0.05, rng=rng) for _ in range(2))
    args = (*columns(a), *columns(b))
    primal = numba.njit(plain.sparse_dot)
    gradient = fwdad.jit(fwdad.grad(unchecked(sparse.sparse_dot), argnums=(1, 4)))

    def right() -> bool:
        by_a = scipy.sparse.csc_array((gradient(0.0, *args)[0], *args[1:3]), shape=(1000, 1000))
        there = scipy.sparse.csc_array((np.ones(len(args[0])), *args[1:3]), shape=(1000, 1000))
        return bool(abs(by_a - there.multiply(b)).max() == 0)

    return Case(
        "sparse dot", lambda: primal(*args), lambda: gradient(0.0, *args), right,
        TARGETS["sparse dot"],
    )  # fmt: skip


def sparse_product() -> Case:
    """A complex matrix of 1000 x 1000, 5 % of its entries, times a vector."""
    rng = np.random.default_rng(0)
    a = scipy.sparse.random_array((1000, 1000), density=0.05, rng=rng)
    data, rows, starts = columns(a * (1.0 + 0.5j))
    x = rng.normal(size=1000) + 1j * rng.normal(size=1000)
    y = np.zeros(1000, complex)
    primal = numba.njit(plain.sparse_product)
    f = unchecked(sparse.sparse_product)

    def loss(data: Any, x: Any, y: Any, rows: Any, starts: Any) -> Any:
        return np.sum(f(y, data, rows, starts, x)[0].real)

    gradient = fwdad.jit(fwdad.grad(loss, argnums=(0, 1)))

    def right() -> bool:
        by_x = gradient(data, x, y, rows, starts)[1]
        return bool(np.allclose(by_x, np.conj((a.T * (1.0 + 0.5j)) @ np.ones(1000)), rtol=1e-12))

    return Case(
        "sparse product", lambda: primal(y, data, rows, starts, x),
        lambda: gradient(data, x, y, rows, starts), right, TARGETS["sparse product"],
    )  # fmt: skip


def mixture() -> Case:
    """D = 10, K = 25, 1000 points: ADBench's size."""
    rng = np.random.default_rng(0)
    d, count = 10, 25
    args = (
        rng.normal(size=count),
        rng.normal(size=(count, d)),
        0.3 * rng.normal(size=(count, d + d * (d - 1) // 2)),
        rng.normal(size=(1000, d)),
    )
    primal = numba.njit(plain.mixture)
    gradient = fwdad.jit(fwdad.grad(unchecked(mixtures.mixture), argnums=(1, 2, 3)))

    def right() -> bool:
        v = [rng.normal(size=a.shape) for a in args[:3]]
        found = sum(np.sum(g * u) for g, u in zip(gradient(0.0, *args), v, strict=True))
        h = 1e-5
        ahead, behind = (
            primal(*(a + s * u for a, u in zip(args[:3], v, strict=True)), args[3]) for s in (h, -h)
        )
        return bool(abs(found - (ahead - behind) / (2 * h)) <= 1e-6 * abs(found))

    return Case(
        "mixture", lambda: primal(*args), lambda: gradient(0.0, *args), right, TARGETS["mixture"]
    )


def embedding(k: int) -> Case:
    """The Petersen graph in k dimensions."""
    edges, others = layouts.petersen()
    x = np.random.default_rng(0).normal(size=(10, k))
    primal = numba.njit(plain.embedding)
    gradient = fwdad.jit(fwdad.grad(unchecked(layouts.embedding), argnums=1))

    def right() -> bool:
        forward = fwdad.jacobian(plain.embedding, x, args=(edges, others))
        return bool(np.allclose(gradient(0.0, x, edges, others), forward, rtol=1e-9, atol=1e-10))

    return Case(
        f"embedding k={k}", lambda: primal(x, edges, others),
        lambda: gradient(0.0, x, edges, others), right, TARGETS["embedding"],
    )  # fmt: skip


def gradients(pattern: str) -> str:
    """The table of gradients."""
    rows = []
    for make in cases():
        case = make()
        if not fnmatch.fnmatch(case.name, pattern):
            continue
        right = case.right()
        calls = {"primal": case.primal, "gradient": case.gradient}
        timed = time_interleaved(calls, 15, 0.02)
        ratio = paired_ratio(timed["gradient"].rounds, timed["primal"].rounds)
        rows.append([
            case.name, duration(timed["primal"].median), duration(timed["gradient"].median),
            f"{ratio:.2f}×", f"{case.target} ×", "right" if right else "WRONG",
        ])  # fmt: skip
    return table(["program", "Numba", "gradient", "ratio", "to reach", "checked"], rows)


def hessians() -> str:
    """Forward over reverse beside forward over forward, both compiled, k = 2."""
    edges, others = layouts.petersen()
    x = np.random.default_rng(0).normal(size=(10, 2))
    f = unchecked(layouts.embedding)
    over_reverse = fwdad.jit(fwdad.jacfwd(fwdad.grad(lambda x: f(0.0, x, edges, others)[0])))
    over_forward = fwdad.jit(
        fwdad.jacfwd(fwdad.jacfwd(lambda x: plain.embedding(x, edges, others)))
    )
    off = np.max(np.abs(over_reverse(x) - over_forward(x)))
    calls = {"reverse": lambda: over_reverse(x), "forward": lambda: over_forward(x)}
    timed = time_interleaved(calls, 15, 0.02)
    ratio = paired_ratio(timed["forward"].rounds, timed["reverse"].rounds)
    row = [
        duration(timed["reverse"].median), duration(timed["forward"].median), f"{ratio:.1f}×",
        f"{off:.1e}",
    ]  # fmt: skip
    return table(["forward over reverse", "forward over forward", "faster", "differ by"], [row])


def memory() -> str:
    """The peak of a gradient of leapfrog steps, compiled and not."""
    x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.5]])
    v = np.array([[0.0, -0.01], [0.0, 1.0], [-0.6, 0.0]])
    m = np.array([1.0, 1e-3, 2e-3])

    def loss(v: Any, steps: int) -> Any:
        return orbits.leapfrog(x, v, m, 1e-3, steps)[0][1, 0]

    gradient = fwdad.jit(fwdad.grad(loss))
    for _ in range(20):  # what Python and NumPy keep for later calls is allocated
        peak_traced(lambda: gradient(v, 10))
    counts = (1000, 10_000, 100_000)
    peaks = [peak_traced(lambda steps=steps: gradient(v, steps)) for steps in counts]
    rows = []
    for steps, peak in zip(counts, peaks, strict=True):
        timed = time_interleaved({"gradient": lambda steps=steps: gradient(v, steps)}, 3, 0.01)
        rows.append(
            [str(steps), size(peak), duration(timed["gradient"].median), *_jax(x, v, m, steps)]
        )
    return table(["steps", "peak", "time", "JAX's peak", "JAX's time"], rows)


def _jax(x: Any, v: Any, m: Any, steps: int) -> list[str]:
    """The same by ``jax.grad`` of a ``lax.scan``; its memory is what the compiled program asks."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return ["not installed", ""]
    jax.config.update("jax_enable_x64", True)
    off = ~np.eye(len(m), dtype=bool)

    def pull(x: Any) -> Any:
        away = x[None] - x[:, None]
        square = jnp.sum(away**2, axis=-1) + ~off
        return jnp.sum((m[None] * off / square**1.5)[..., None] * away, axis=1)

    def step(state: Any, _: Any) -> Any:
        x, v = state
        v = v + 0.5e-3 * pull(x)
        x = x + 1e-3 * v
        return (x, v + 0.5e-3 * pull(x)), None

    def loss(v: Any) -> Any:
        return jax.lax.scan(step, (jnp.asarray(x), v), None, length=steps)[0][0][1, 0]

    compiled = jax.jit(jax.grad(loss)).lower(v).compile()
    given = jax.device_put(v)
    timed = time_interleaved({"jax": lambda: compiled(given).block_until_ready()}, 3, 0.01)
    analysis = compiled.memory_analysis()
    return [size(analysis.temp_size_in_bytes), duration(timed["jax"].median)]


def main() -> None:
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="*", metavar="PATTERN")
    parser.add_argument("--hessian", action="store_true")
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    if options.hessian:
        print(hessians())
    elif options.memory:
        print(memory())
    else:
        print(gradients(options.rows))


if __name__ == "__main__":
    main()
