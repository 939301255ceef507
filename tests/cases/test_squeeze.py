"""``squeeze`` without an axis, where lengths are computed: of length 1, or another one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.array([0.6, -1.3, 0.8, 0.35, 1.1])


def a_column(x):
    q = np.outer(x[:3], np.cos(x[:3]))
    return np.sum(q * np.squeeze(q[:, :1]))


def a_row_that_is_written(x):
    q = np.outer(x[:3], np.cos(x[:3]))
    u = q[:1].squeeze()
    u[0] = x[0]
    return np.sum(np.sin(q))


def one_number(x):
    return np.squeeze(x[::2][:1]) * 2.0


def at_the_largest(x):
    n = int(np.argmax(x))
    return np.squeeze(x[n : n + 1]) * 2.0


def of_other_lengths(x):
    long, some = np.concatenate([x, x]), x[x > 0]
    return np.sum(np.squeeze(long[None]) ** 2) + np.sum(np.squeeze(some) ** 3)


@pytest.mark.parametrize("f", [
    a_column, a_row_that_is_written, one_number, at_the_largest, of_other_lengths,
])  # fmt: skip
def test_derivatives(f):
    expected = central_differences(f, X)
    for g in (fwdad.grad(f), fwdad.jacfwd(f)):
        assert_allclose(g(X), expected, rtol=1e-6, atol=1e-8)
        assert_allclose(fwdad.jit(g, backend="numpy")(X), expected, rtol=1e-6, atol=1e-8)
    assert_allclose(fwdad.jit(f, backend="numpy")(X), f(X))
    nested = fwdad.jacobian(fwdad.jacfwd(f), X, mode="forward")
    assert_allclose(fwdad.hessian(f)(X), nested, rtol=1e-10, atol=1e-12)


def test_a_length_of_one_that_comes_later():
    def f(x):
        return np.sum(np.squeeze(x[x > 0]) ** 2)

    g = fwdad.jit(fwdad.grad(f), backend="numpy")
    assert_allclose(g(X), 2 * X * (X > 0))
    assert_allclose(g(np.array([1.0, -1.0, -1.0])), [2.0, 0.0, 0.0])


def test_a_length_that_is_computed_in_a_loop():
    def f(x):
        q, s = np.outer(x[::2], x[::2]), 0.0
        for k in range(2):
            s = s + np.sum(np.squeeze(q[k : k + 1]) ** 2)
        return s

    assert_allclose(fwdad.grad(f)(X), central_differences(f, X), rtol=1e-6)
    with pytest.raises(fwdad.errors.UntraceableError, match="give it the `axis`"):
        fwdad.jit(fwdad.grad(f), backend="numpy")(X)
