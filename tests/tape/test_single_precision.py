"""Python's numbers beside single precision do not widen tangents and cotangents on a tape."""

import numpy as np
import pytest

import fwdad

X = np.linspace(0.1, 1.0, 5, dtype=np.float32)


def f(x):
    y = np.exp(-0.5 * x) / (1.0 + x) ** 2
    y[1:] *= 0.25
    return y - 3.0 * x


@pytest.mark.parametrize("n", [1, 2, 3])
def test_forward(n):
    v = np.random.default_rng(0).normal(size=(n, 5)).astype(np.float32)
    y, y_dot = fwdad.jit(lambda x, v: fwdad.jvp(f, x, v), backend="numpy")(X, v)
    expected = fwdad.jvp(f, X, v)
    assert y.dtype == y_dot.dtype == expected[1].dtype == np.float32
    np.testing.assert_allclose(y_dot, expected[1], rtol=1e-5)


def test_backwards():
    gradient = fwdad.grad(lambda x: np.sum(f(x)))(X)
    assert gradient.dtype == np.float32
    exact = fwdad.grad(lambda x: np.sum(f(x)))(X.astype(float))
    np.testing.assert_allclose(gradient, exact, rtol=1e-5)
