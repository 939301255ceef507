"""Derivatives of ADBench's problems beside the compiled programs, JAX and PyTorch: a table.

``python -m benchmarks.adbench --rounds 9``; each problem has a process of its own. Results are
checked against differences in one direction at the small size, and against each other.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import fwdad
from benchmarks.adbench.problem import Arguments, Problem
from benchmarks.measure import time_interleaved

NAMES = {"gmm": "mixture", "ba": "bundle", "ht": "hand", "lstm": "recurrent", "ode": "runge_kutta"}
Derivative = Callable[..., Any]


def ours(
    problem: Problem, style: int, *, fixed: bool = False
) -> tuple[Callable[..., Any], Derivative]:
    """The program and its derivative, both compiled; for all lengths, or for ``fixed`` ones."""
    f = (problem.arrays, problem.loops)[style]
    derivative: Derivative
    if problem.derivatives:
        derivative = problem.derivatives[style]
    elif problem.jacobian:

        def derivative(*args: Any) -> Any:
            return fwdad.jacobian(f, args[0], args=args[1:])
    else:
        derivative = fwdad.value_and_grad(f, argnums=problem.argnums)
    return fwdad.jit(f, static_shapes=fixed), fwdad.jit(derivative, static_shapes=fixed)


def _as_arrays(make: Callable[[Any], Any], args: Arguments) -> Arguments:
    """Arguments with a peer's arrays in place of NumPy's."""

    def one(a: Any) -> Any:
        if dataclasses.is_dataclass(a):
            return type(a)(**{f.name: one(getattr(a, f.name)) for f in dataclasses.fields(a)})
        return make(a) if isinstance(a, np.ndarray) else a

    return tuple(map(one, args))


def of_jax(problem: Problem, args: Arguments) -> Callable[[], Any]:
    """One call of JAX's derivative, its result ready."""
    jax: Any = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    f = problem.for_jax(jax)
    given = _as_arrays(jax.numpy.asarray, args)
    active = [given[k] for k in problem.argnums]

    def of_active(*values: Any) -> Any:
        held = list(given) if not problem.jacobian else [*args]
        for k, x in zip(problem.argnums, values, strict=True):
            held[k] = x
        return f(*held)

    if problem.derivatives:
        run = jax.jit(f)
        return lambda: jax.block_until_ready(run(*given))
    if problem.jacobian:
        run = jax.jit(jax.jacfwd(of_active))
    else:
        run = jax.jit(jax.value_and_grad(of_active, tuple(range(len(active)))))
    return lambda: jax.block_until_ready(run(*active))


def of_torch(problem: Problem, args: Arguments) -> Callable[[], Any]:
    """One call of PyTorch's derivative."""
    torch: Any = importlib.import_module("torch")
    f = problem.for_torch(torch)
    given = _as_arrays(torch.as_tensor, args)
    if problem.derivatives:
        return lambda: f(*given)
    if problem.jacobian:
        return lambda: torch.func.jacfwd(lambda x: f(x, *given[1:]))(given[0])
    active = [given[k].requires_grad_() for k in problem.argnums]

    def run() -> Any:
        y = f(*given)
        return y, torch.autograd.grad(y, active)

    return run


def _flat(found: Any, problem: Problem) -> np.ndarray:
    """A derivative as one row of numbers."""
    if not (problem.jacobian or problem.derivatives):
        found = found[1]
    parts = found if isinstance(found, (tuple, list)) else (found,)
    return np.concatenate(
        [np.ravel(np.asarray(p.detach() if hasattr(p, "detach") else p)) for p in parts]
    )


def check(problem: Problem) -> None:
    """Compare both styles and both peers at the small size, and the program with differences."""
    args = problem.make(*problem.tiny)
    ways = itertools.product(range(2), (False, True))
    found = [_flat(ours(problem, k, fixed=fixed)[1](*args), problem) for k, fixed in ways]
    peers = {"jax": of_jax, "torch": of_torch}
    found += [_flat(call(problem, args)(), problem) for call in peers.values()]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-9, atol=1e-9)
    if problem.derivatives:
        return
    rng, h = np.random.default_rng(0), 1e-5
    along = [rng.normal(size=args[k].shape) for k in problem.argnums]

    def moved(step: float) -> Any:
        given = list(args)
        for k, v in zip(problem.argnums, along, strict=True):
            given[k] = args[k] + step * v
        return problem.arrays(*given)

    slope = (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h)
    flat = np.concatenate([v.ravel() for v in along])
    if problem.jacobian:
        np.testing.assert_allclose(
            found[0].reshape(-1, flat.size) @ flat, np.ravel(slope), rtol=1e-7, atol=1e-8
        )
    else:
        np.testing.assert_allclose(found[0] @ flat, slope, rtol=1e-7)


def _first(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def measure(problem: Problem, rounds: int) -> list[str]:
    """The lines of one problem's table."""
    args = problem.make(*problem.size)
    calls: dict[str, Callable[[], Any]] = {}
    for fixed in (False, True):
        for style, written in enumerate(("arrays", "loops")):
            f, derivative = ours(problem, style, fixed=fixed)
            name = f"{written} | {'fixed' if fixed else 'any'}"
            calls[f"f {name}"] = functools.partial(f, *args)
            calls[name] = functools.partial(derivative, *args)
    calls |= {"jax": of_jax(problem, args), "torch": of_torch(problem, args)}
    first = {name: _first(call) for name, call in calls.items()}
    timed = time_interleaved(calls, rounds, 0.2)
    lines = []
    for lengths in ("any", "fixed"):
        names = [f"{written} | {lengths}" for written in ("arrays", "loops")]
        primal = min(timed[f"f {name}"].median for name in names)
        for name in names:
            t = timed[name].median
            lines.append(
                f"| {problem.name} | {name} | {1e3 * primal:.3g} ms | {1e3 * t:.3g} ms | "
                f"{t / primal:.2f} | {problem.bound} | {1e3 * timed['jax'].median:.3g} ms | "
                f"{1e3 * timed['torch'].median:.3g} ms | {first[name]:.2f} s | "
                f"{first['jax']:.2f} s |"
            )
    return lines


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=NAMES)
    given = parser.parse_args()
    if given.only is None:
        print(
            "| problem | written in | lengths | program | derivative | ratio | bound | JAX | "
            "PyTorch | first call | JAX's |\n|---|---|---|---|---|---|---|---|---|---|---|",
            flush=True,
        )
        for name in NAMES:
            command = [sys.executable, "-m", "benchmarks.adbench", "--only", name]
            command += ["--rounds", str(given.rounds)]
            with tempfile.TemporaryDirectory() as empty:  # a first call compiles
                environment = {**os.environ, "FWDAD_CACHE_DIR": empty}
                subprocess.run(command, check=True, env=environment)  # noqa: S603  (this module)
        return
    problem = importlib.import_module(f"benchmarks.adbench.{NAMES[given.only]}").PROBLEM
    lines = measure(problem, given.rounds)  # first, so that a first call compiles
    check(problem)
    print("\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
