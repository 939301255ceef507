"""Loops whose first iteration makes an array of a number: ``s = 0.0``, then ``s = s + x**k``."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

X = np.array([0.1, 0.2, 0.3])
few, many = 2, 100


def a_global(x):
    s = 0.0
    for k in range(few):
        s = s + x ** (k + 1)
    return np.sum(s)


def a_long_one(x):
    s = 0.0
    for k in range(many):
        s = s + x ** (k + 1) / (k + 1)
    return np.sum(s)


def over_a_length(x):
    s = 0
    for i in range(len(x)):
        s = s + x * x[i]
    return np.sum(s)


def left_by_values(x):
    t, s = 0.0, 1
    for k in range(many):
        t = x * t + s
        s = s * 0.5
        if k > 3 and s < 1e-4:
            break
    return np.sum(t)


def over_rows(x):
    s = 0.0
    for row in np.outer(x, x)[:, None]:
        s = s + row
    return np.sum(s**2)


def one_behind_the_other(x):
    s = 0.0
    for a in x:
        s += a * x
    for k in range(1, few + 1):
        s = s * x + k
    return np.sum(s**2)


@pytest.mark.filterwarnings("ignore:.*this loop is unrolled")
@pytest.mark.parametrize("f", [
    a_global, a_long_one, over_a_length, left_by_values, over_rows, one_behind_the_other,
])  # fmt: skip
def test_derivatives(f):
    expected = fwdad.jacobian(f, X, mode="forward")
    assert_allclose(fwdad.jit(f, backend="numpy")(X), f(X), rtol=1e-13)
    for g in (fwdad.grad(f), fwdad.jacfwd(f)):
        assert_allclose(g(X), expected, rtol=1e-12)
        assert_allclose(fwdad.jit(g, backend="numpy")(X), expected, rtol=1e-12)
    nested = fwdad.jacobian(fwdad.jacfwd(f), X, mode="forward")
    assert_allclose(fwdad.jit(fwdad.hessian(f), backend="numpy")(X), nested, rtol=1e-10)


def test_how_often_it_runs(monkeypatch):
    """Not at all: then it is the number."""
    g = fwdad.jit(fwdad.value_and_grad(a_global), backend="numpy")
    for n in (2, 3, 0, 1, 70):
        monkeypatch.setitem(globals(), "few", n)
        y, gradient = g(X)
        assert_allclose(y, a_global(X), rtol=1e-13)
        assert_allclose(gradient, fwdad.jacobian(a_global, X, mode="forward"), rtol=1e-12)


def test_compiled():
    pytest.importorskip("numba")
    expected = fwdad.jacobian(a_long_one, X, mode="forward")
    assert_allclose(fwdad.jit(fwdad.grad(a_long_one))(X), expected, rtol=1e-12)
