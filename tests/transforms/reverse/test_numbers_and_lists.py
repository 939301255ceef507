"""Rules of numbers and of constant lists hold for the values of a tape."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.array([0.7, -0.4, 1.1, 0.3])


def difference(x):
    return np.subtract.reduce(x)


def clipped(x):
    return np.clip(difference(x), -1, 5) * 2


def lists(x):
    y = (
        np.convolve(x, [1, 2, 1], "same")
        + np.correlate([1.0, 2.0, 3.0, 1.0, 2.0, 1.0], x, "full")[:4]
    )
    return np.sum(y**2)


def folds(x):
    pairs = np.reshape(x, (2, 2))
    y = np.logaddexp.accumulate(pairs, axis=1) * np.hypot.accumulate(pairs, axis=0)
    return np.sum(y) + np.divide.reduce(x[:2])


def products(x):
    square = np.reshape(x, (2, 2))
    columns = np.linalg.vecdot(square, square.T, axis=0)
    turned = np.linalg.cross(np.outer(x[:3], x), np.outer(x[1:], x) ** 2, axis=0)
    return np.vecdot(x, x[::-1]) * columns[0] + np.sum(turned**2)


def diagonals(x):
    m = np.outer(x, x**2)
    return np.linalg.trace(m, offset=1) * np.sum(np.linalg.diagonal(m, offset=-1) ** 2)


def parts(x):
    z = complex(x[0], x[1])
    return (z * z).imag + z.imag


def raised(x):
    return np.sum(np.expand_dims(difference(x), (0, 1)) * x[0])


PROGRAMS = [clipped, lists, folds, products, diagonals, parts, raised]


@pytest.mark.parametrize("f", PROGRAMS)
def test_backwards(f):
    """A rule that raises on symbols would be run whole, and told: the test would fail."""
    expected = fwdad.jacobian(f, X, mode="forward")
    assert_allclose(fwdad.grad(f)(X), expected, rtol=1e-13, atol=1e-14)
    assert_allclose(fwdad.vjp(f, X)[1](1.0), expected, rtol=1e-13, atol=1e-14)
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(X), expected, rtol=1e-13)
    assert "the tape of" in fwdad.explain(fwdad.grad(f), X)
    assert_allclose(expected, central_differences(f, X), rtol=1e-7, atol=1e-8)


def test_compiled():
    pytest.importorskip("numba")
    g = fwdad.jit(fwdad.grad(raised))
    assert_allclose(g(X), fwdad.jacobian(raised, X, mode="forward"), rtol=1e-13)
