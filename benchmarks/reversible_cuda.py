"""Reversible functions as kernels on a GPU: ``python -m benchmarks.reversible_cuda``.

A million pendulums take 200 steps of the leapfrog method each, in doubles. What f returns and the
cotangents of its arguments are compared with JAX's first (forward mode over one instance of JAX's).
Arrays lie on the device; a time is that of a call and of waiting for the device.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numba import cuda

from fwdad.reversible import ancilla, compute, copy_out, cuda_kernel, reversible

INSTANCES = 1_000_000
STEPS = 200
STEP = 1e-3
ROUNDS = 5


@reversible
def pendulum(x: Any, v: Any, g: Any, h: Any, steps: Any) -> None:
    """Go ``steps`` steps of a time ``h``; g is gravity over length."""
    for _ in range(steps):
        x += h / 2 * v
        with compute():
            pull = ancilla(0.0)
            pull += np.sin(x)
            with copy_out():
                v -= h * g * pull
        x += h / 2 * v


def by_hand() -> tuple[Any, Any]:
    """The program and its adjoint, which runs the steps backwards, as kernels."""

    @cuda.jit
    def forwards(x_all, v_all, g_all, h, steps):
        i = cuda.grid(1)
        if i < x_all.shape[0]:
            x, v, g = x_all[i], v_all[i], g_all[i]
            for _ in range(steps):
                x += h / 2 * v
                v -= h * g * math.sin(x)
                x += h / 2 * v
            x_all[i], v_all[i] = x, v

    @cuda.jit
    def backwards(x_all, v_all, g_all, h, steps, x_bars, v_bars, g_bars):
        i = cuda.grid(1)
        if i < x_all.shape[0]:
            x, v, g = x_all[i], v_all[i], g_all[i]
            x_bar, v_bar, g_bar = x_bars[i], v_bars[i], 0.0
            for _ in range(steps):
                x -= h / 2 * v
                v_bar += h / 2 * x_bar
                s, c = math.sin(x), math.cos(x)
                v += h * g * s
                g_bar -= h * s * v_bar
                x_bar -= h * g * c * v_bar
                x -= h / 2 * v
                v_bar += h / 2 * x_bar
            x_bars[i], v_bars[i], g_bars[i] = x_bar, v_bar, g_bar

    return forwards, backwards


def median_time(call: Callable[[], Any]) -> float:
    """Seconds of a call, the median of rounds after one that compiles."""
    call()
    cuda.synchronize()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def show(tool: str, what: str, seconds: float, base: float) -> None:
    """Print a row of the table."""
    print(f"| {tool} | {what} | {seconds * 1e3:.3g} ms | {seconds / base:.2f}x |", flush=True)


def main() -> int:
    """Print the table."""
    if not cuda.is_available():
        print("no device of CUDA's")
        return 1
    rng = np.random.default_rng(0)
    x, v, g = rng.normal(size=INSTANCES), rng.normal(size=INSTANCES), rng.uniform(1, 2, INSTANCES)
    there = [cuda.to_device(a) for a in (x, v, g)]
    ones = [cuda.to_device(np.ones(INSTANCES)) for _ in range(2)]
    zeros = cuda.to_device(np.zeros(INSTANCES))
    forwards, backwards = by_hand()
    grid = (INSTANCES + 127) // 128, 128

    def copies(arrays: Any) -> list[Any]:
        given = [cuda.device_array_like(a) for a in arrays]
        for a, b in zip(given, arrays, strict=True):
            a.copy_to_device(b)
        return given

    def program_by_hand() -> Any:
        given = copies(there)
        forwards[grid](*given, STEP, STEPS)
        return given

    ends = program_by_hand()

    def adjoint_by_hand() -> Any:
        given = copies((*ends, *ones, zeros))
        backwards[grid](*given[:3], STEP, STEPS, *given[3:])
        return given[3:]

    base = median_time(program_by_hand)
    print("| tool | what | time | over the program by hand |\n| --- | --- | --- | --- |")
    show("by hand, Numba", "program", base, base)
    show("by hand, Numba", "adjoint", median_time(adjoint_by_hand), base)

    kernel = cuda_kernel(pendulum)
    new = kernel(*there, STEP, STEPS)
    bars = (*ones, None, None, None)
    pulled = [a.copy_to_host() for a in kernel.adjoint(new, bars)[:3]]
    for mine, other in zip(pulled, adjoint_by_hand(), strict=True):
        np.testing.assert_allclose(mine, other.copy_to_host(), rtol=1e-9, atol=1e-12)
    show("fwdad", "program", median_time(lambda: kernel(*there, STEP, STEPS)), base)
    show("fwdad", "inverse", median_time(lambda: kernel.inverse(*new)), base)
    show("fwdad", "adjoint", median_time(lambda: kernel.adjoint(new, bars)), base)
    undone = np.abs(kernel.inverse(*new)[0].copy_to_host() - x).max()
    with_jax(x, v, g, pulled, base)
    print(f"the inverse is off by {undone:.1e}")
    return 0


def with_jax(x: Any, v: Any, g: Any, pulled: list[Any], base: float) -> None:
    """Time JAX on the same device: the program and its gradient, compared with ours."""
    try:
        jax: Any = import_module("jax")
    except ImportError:
        print("JAX is not here")
        return
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy

    def step(state: Any, _: Any) -> Any:
        x, v, g = state
        x = x + STEP / 2 * v
        v = v - STEP * g * jnp.sin(x)
        return (x + STEP / 2 * v, v, g), None

    def run(x: Any, v: Any, g: Any) -> Any:
        return jax.lax.scan(step, (x, v, g), None, length=STEPS)[0][:2]

    def loss(x: Any, v: Any, g: Any) -> Any:
        a, b = run(x, v, g)
        return jnp.sum(a) + jnp.sum(b)

    given = [jax.device_put(a) for a in (x, v, g)]
    program, gradient = jax.jit(run), jax.jit(jax.grad(loss, argnums=(0, 1, 2)))
    where = f"JAX jit on {jax.devices()[0].platform}"
    show(where, "program", median_time(lambda: jax.block_until_ready(program(*given))), base)
    for mine, other in zip(pulled, gradient(*given), strict=True):
        np.testing.assert_allclose(mine, np.asarray(other), rtol=1e-8, atol=1e-10)
    seconds = median_time(lambda: jax.block_until_ready(gradient(*given)))
    beside = gradient.lower(*given).compile().memory_analysis().temp_size_in_bytes
    show(f"{where}, {beside / 1e9:.1f} GB beside", "program and gradient", seconds, base)


if __name__ == "__main__":
    sys.exit(main())
