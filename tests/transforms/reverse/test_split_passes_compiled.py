"""Forward and reverse pass under ``jit``: two compiled programs, stacks between them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.drivers.executable import Runner

pytest.importorskip("numba")

N = 18  # more than what becomes numbers
X = np.linspace(0.1, 1.0, N)
WEIGHTS = np.cos(np.arange(N) + 0.5)


def kept(x, n):
    """Numbers and arrays on stacks, an array that is restored, and views of it."""
    u = x * WEIGHTS
    inner = u[1:-1]
    for k in range(n):
        u[k] = u[k] * u[k - 1] + np.cos(u[k])
        z = u * x
        z[k] = z[k] ** 2
        inner += np.tanh(z[1:-1]) * z[k]
    return u * x


@pytest.fixture(scope="module")
def compiled():
    """The same function for all tests: it is compiled once."""
    return fwdad.jit(kept, backend="numba")


@pytest.fixture(scope="module")
def expected():
    return fwdad.jacobian(kept, X, args=(4,), mode="forward")


def pullback_of(f):
    point = X.copy()
    y, pullback = fwdad.vjp(f, point, args=(4,))
    assert_allclose(y, kept(X, 4), rtol=1e-14)
    assert_array_equal(point, X)
    point[:] = y[:] = 7.0
    return pullback


def test_again_and_for_many(compiled, expected):
    pullback = pullback_of(compiled)
    sweeps = pullback._kept.sweeps
    assert sweeps.forward.explain() == "Numba"
    assert {type(pullback._kept.values[k]) for k in sweeps.passes.stacks} == {tuple}
    assert {use.rank for use in sweeps.passes.stacks.values()} == {0, 1}
    for k in (0, 3, 0):
        assert_allclose(pullback(np.eye(N)[k]), expected[k], rtol=1e-12, atol=1e-14)
    assert_allclose(pullback(np.eye(N)[:3]), expected[:3], rtol=1e-12, atol=1e-14)
    assert "run by Numba" in fwdad.explain(fwdad.vjp, compiled, X, 4)


def test_under_derivatives(compiled, expected):
    """The lists of NumPy's programs are made of the stacks of compiled code."""
    pullback = pullback_of(compiled)
    u, v = np.random.default_rng(0).normal(size=(2, N))
    _, x_bar_dot = fwdad.jvp(pullback, u, v)
    assert_allclose(x_bar_dot, v @ expected, rtol=1e-11, atol=1e-13)


def test_a_reverse_pass_that_numba_refuses(compiled, expected, monkeypatch):
    pullback = pullback_of(compiled)
    monkeypatch.setattr(Runner, "serves", lambda *_: False)
    for k in (1, 4):
        assert_allclose(pullback(np.eye(N)[k]), expected[k], rtol=1e-12, atol=1e-14)


def test_gradient_of_a_function_under_jit():
    """Its backend runs the tape of the gradient."""
    f = fwdad.jit(lambda x: np.sum(np.sin(x) * x), backend="numba")
    gradient = fwdad.grad(f)
    assert_allclose(gradient(X), np.cos(X) * X + np.sin(X), rtol=1e-13)
    assert "run by Numba" in fwdad.explain(gradient, X)
