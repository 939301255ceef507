"""Costs of a single step: one product, one fresh lambda, the factorisations of one call."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import lapack

from benchmarks import problems

LANES = 8


def _median_seconds(call: Callable[[], Any], number: int, rounds: int = 15) -> float:
    means = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(number):
            call()
        means.append((time.perf_counter() - start) / number)
    return statistics.median(means)


def chain(count: int) -> Callable[[Any], Any]:
    """A loop of products of two active arrays of four elements."""

    def products(z):
        x, y = z[0], z[1]
        for _ in range(count):
            x = x * y
        return x

    return products


def product_beyond_numpy() -> float:
    """Microseconds of an active × active product at N = 8 beyond its NumPy calls.

    The NumPy calls are those of the product rule, written out: ``y = a * b`` and
    ``a_dot * b + a * b_dot`` with lanes ``(8, 4)``. The fixed cost of a jvp is subtracted.
    """
    import fwdad

    z = np.array([[1.0, 1.01, 0.99, 1.02], [1.0, 1.001, 0.999, 1.0]])
    v = np.random.default_rng(0).normal(size=(LANES, *z.shape))
    short, long = chain(40), chain(240)
    difference = [
        _median_seconds(lambda: fwdad.jvp(long, z, v), 20, 3)
        - _median_seconds(lambda: fwdad.jvp(short, z, v), 20, 3)
        for _ in range(7)
    ]
    a, b, a_dot, b_dot = z[0], z[1], v[:, 0].copy(), v[:, 1].copy()

    def by_hand():
        return a * b, a_dot * b + a * b_dot

    return 1e6 * (statistics.median(difference) / 200 - _median_seconds(by_hand, 2000))


def fresh_lambda() -> float:
    """Microseconds that a new lambda at every call adds to a call, after the first."""
    import fwdad

    x, v = np.array([0.3, 0.4]), np.array([1.0, 0.5])

    def make(c):
        return lambda x: c * np.sin(x) + x * x

    same = make(0.0)
    fwdad.jvp(same, x, v)
    rates = iter(range(10**9))

    def fresh():
        return fwdad.jvp(make(float(next(rates))), x, v)

    def again():
        make(float(next(rates)))
        return fwdad.jvp(same, x, v)

    added = [_median_seconds(fresh, 200, 1) - _median_seconds(again, 200, 1) for _ in range(15)]
    return 1e6 * statistics.median(added)


FACTORISING = {
    "LU": {"solve", "inv", "lu", "lu_factor", "det", "slogdet", "getrf", "NumpyLapack.gesv"},
    "Cholesky": {"cholesky", "cho_factor"},
}


def factorisations(widths=(1, 4, 8, 32)) -> dict[str, int]:
    """LU and Cholesky factorisations that one jvp of the matrix program makes, by N.

    Counted are calls of the functions of ``numpy.linalg`` and ``scipy.linalg`` that factorise, of
    SciPy's ``getrf``, and of NumPy's own ``gesv``, which fwdad calls in the place of ``solve``.
    None at all would mean that they are counted in the wrong place.
    """
    import fwdad

    problem = problems.matrix_problem(20)
    counts = {}
    for n in widths:
        v = np.random.default_rng(n).normal(size=(n, *problem.x.shape))
        fwdad.jvp(problem.function, problem.x, v)  # what is tried out once is not counted
        seen = _factorising_calls(lambda v=v: fwdad.jvp(problem.function, problem.x, v))
        for kind, names in FACTORISING.items():
            counts[f"{kind}, N = {n}"] = sum(seen.count(name) for name in names)
    if min(counts.values()) == 0:
        message = f"a factorisation was made in a way that is not counted: {counts}"
        raise LookupError(message)
    return counts


def _factorising_calls(call: Callable[[], Any]) -> list[str]:
    seen = []

    def hook(frame: Any, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and Path(code.co_filename).parent.name == "linalg":
            seen.append(code.co_name)
        elif event == "call" and code.co_qualname in FACTORISING["LU"]:
            seen.append(code.co_qualname)

    def getrf(*args: Any, **kwargs: Any) -> Any:  # no Python function: the hook cannot see it
        seen.append("getrf")
        return original(*args, **kwargs)

    original = lapack.dgetrf
    lapack.dgetrf = getrf
    sys.setprofile(hook)
    try:
        call()
    finally:
        sys.setprofile(None)
        lapack.dgetrf = original
    return seen
