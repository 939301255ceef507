"""Numbers read from arrays without axes, which are written afterwards; lanes in two precisions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.array([1.2, 0.7])


def read_and_written(x):
    y = np.array(x[1])
    s = y[()]
    y[()] = s * x[0]
    return s * y


def of_a_view(x):
    y = x.copy()
    s = y[1, ...][()]
    y[1] = s * x[0]
    return s * y[1]


def updated(x):
    y = np.array(x[1])
    y[()] = y * x[0]
    return np.sin(y)


def through_ellipsis(x):
    y = np.array(x[1])
    s, t = y[...], y.item()
    y[...] = s * x[0]
    return s * y + t


def through_flat(x):
    y = np.array(x[0])
    y.flat[0] = y * x[1]
    y[...] = y.flat[0] * x[0]
    return np.sin(y)


def in_a_loop(x):
    y, total = np.array(x[1]), 0.0
    for _ in range(3):
        s = y[()]
        y[()] = s * x[0]
        total += s * y
    return total


@pytest.mark.parametrize(
    "f", [read_and_written, of_a_view, updated, through_ellipsis, through_flat, in_a_loop]
)
def test_derivatives(f):
    gradient = central_differences(f, X)
    hessian = central_differences(fwdad.jacfwd(f), X)
    for transform in (fwdad.jacfwd, fwdad.jacrev, fwdad.grad):
        for found in (transform(f)(X), fwdad.jit(transform(f), backend="numpy")(X)):
            assert_allclose(found, gradient, rtol=1e-6)
    for second in (
        fwdad.hessian(f),
        fwdad.jacfwd(fwdad.jacfwd(f)),
        fwdad.jacrev(fwdad.jacrev(f)),
        fwdad.jacfwd(fwdad.grad(f)),
    ):
        for found in (second(X), fwdad.jit(second, backend="numpy")(X)):
            assert_allclose(found, hessian, rtol=1e-6, atol=1e-8)


def test_lanes_in_two_precisions():
    x = np.array([-0.7, -0.3, 0.2], np.float32)

    def f(x):
        t = fwdad.grad(lambda a, b: np.sum(a * a * b), argnums=1)(x, np.ones(3))
        return np.sum(np.sort(x) ** 2) + np.sum(t * t)

    expected = np.diag(2 + 12 * x.astype(float) ** 2)
    for found in (fwdad.hessian(f)(x), fwdad.jit(fwdad.hessian(f), backend="numpy")(x)):
        assert_allclose(found, expected, rtol=1e-6)
