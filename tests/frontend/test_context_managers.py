"""Derivatives through what an ``ExitStack`` does when it is left."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences
from tests.frontend.exit_stacks import of_all
from tests.frontend.packages_of_text import package_of


@pytest.mark.slow_cases("below-numba")
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("x", [[0.5, -1.25, 2.0], [1.5, 0.6, 0.35]], ids=["above", "below"])
def test_derivatives(backend, x):
    if backend == "numba":
        pytest.importorskip("numba")
    x = np.array(x)
    expected = central_differences(of_all, x)
    for n in (1, 2, 3):
        columns = fwdad.jit(fwdad.jacfwd(of_all, chunk=n), backend=backend)(x)
        assert_allclose(columns, expected, rtol=1e-7, atol=1e-8)
    assert_allclose(fwdad.jit(fwdad.grad(of_all), backend=backend)(x), expected, rtol=1e-7)


def halved_where_it_can_be_divided(x):
    try:
        with np.errstate(divide="raise", invalid="raise", over="raise"):
            y = np.exp(x[:-1]) / x[1:]
            y = y + np.sum(y) / x[0]
    except FloatingPointError:
        y = x[:-1] * 0.5
    return np.sum(np.sin(y))


@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_errors_that_numpy_raises_are_seen_in_results(backend):
    f = halved_where_it_can_be_divided
    gradient = fwdad.jit(fwdad.grad(f), backend=backend)
    along = fwdad.jit(lambda x: fwdad.jvp(f, x, np.cos(x)), backend=backend)
    xs = [[0.5, 1.5, -2.0], [0.5, 0.0, 1.0], [1.5, 0.5, 2.0], [999.0, 0.5, 1.0], [0.0, 1.0, 2.0]]
    for x in map(np.array, xs):  # the second divides by zero, the fourth overflows
        expected = central_differences(f, x) if x.all() and x[0] < 9 else [0.5, 0.5, 0.0]
        if not (x.all() and x[0] < 9):
            expected = expected * np.append(np.cos(x[:-1] * 0.5), 0.0)
        assert_allclose(gradient(x), expected, rtol=1e-7, atol=1e-9)
        assert_allclose(along(x)[1], expected @ np.cos(x), rtol=1e-7, atol=1e-9)
    assert gradient.traces < 5


def test_errors_that_numpy_raises_reach_the_caller():
    manager = np.errstate(divide="raise")

    def f(x):
        with np.errstate(divide="raise"):
            return np.sum(1.0 / x)

    def named(x):
        with manager:
            return np.sum(1.0 / x)

    for g in (f, named):
        compiled = fwdad.jit(g)
        assert compiled(np.ones(3)) == 3.0
        with pytest.raises(FloatingPointError, match="divide by zero"):
            compiled(np.zeros(3))


_LOCKED = """
import threading

LOCK = threading.Lock()
HELD = threading.RLock()


def doubled(x):
    with LOCK, HELD:
        y = x * 2
    return y


def stored(x, out):
    with LOCK:
        out[:] = x * 2
    return out
"""


@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_a_lock_of_a_package(monkeypatch, backend):
    package = package_of(_LOCKED, "of_locks", monkeypatch)
    x = np.array([0.5, 1.5, -2.0])
    gradient = fwdad.jit(fwdad.grad(lambda x: np.sum(package.doubled(x) ** 2)), backend=backend)
    assert_allclose(gradient(x), 8 * x, rtol=1e-14)
    with package.LOCK:  # a tape takes none
        assert_allclose(gradient(2 * x), 16 * x, rtol=1e-14)
    with pytest.raises(fwdad.errors.UntraceableError, match="inside of a lock"):
        fwdad.jit(lambda x, out: np.sum(package.stored(x, out)))(x, np.zeros(3))
