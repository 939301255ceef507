"""Derivatives on a tape of functions that write into arrays which are not differentiated."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

X = np.array([1.0, 2.0, 3.0])
M = np.array([[0.3, -0.4, 0.9]])


def whole(x, m):
    x[:] = m[0] ** 2
    return x * x


def through_a_view(x, m):
    v = x[::-1]
    v[...] = np.sin(m[0])
    return x


def by_out(x, m):
    np.multiply(m[0], x, out=x[::-1])
    return x


def with_constants(x, m):
    x[0] *= 3.0
    return x * m[0]


def in_a_loop(x, m):
    for k in range(2):
        x[k + 1] += x[k] * m[0, k]
    return x[1:] * m[0, 1:]


DERIVATIVES = {
    "jacfwd": lambda f: lambda x, m: fwdad.jacfwd(f, argnums=1)(x, m),
    "jacrev": lambda f: lambda x, m: fwdad.jacrev(f, argnums=1)(x, m),
    "jvp": lambda f: lambda x, m: fwdad.jvp(lambda m: f(x, m), m, np.cos(m))[1],
    "jacfwd of grad": lambda f: (
        lambda x, m: fwdad.jacfwd(
            fwdad.grad(lambda x, m: np.sum(f(x, m) ** 2), argnums=1), argnums=1
        )(x, m)
    ),
}


@pytest.mark.parametrize("derive", DERIVATIVES)
@pytest.mark.parametrize(
    "f", [whole, through_a_view, by_out, with_constants, in_a_loop], ids=lambda f: f.__name__
)
def test_arguments_are_as_before_and_captured_arrays_as_f_leaves_them(f, derive):
    def beside(x, m):
        return DERIVATIVES[derive](f)(x, m), x * 1.0

    left = X.copy()
    if derive == "jvp":  # of a function that captures x; the others are given it
        f(left, M)
    x = X.copy()
    expected, after = beside(x, M)
    assert_array_equal(after, left)
    assert_array_equal(x, left)
    x = X.copy()
    found, after = fwdad.jit(beside, backend="numpy")(x, M)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    assert_array_equal(after, left)
    assert_array_equal(x, left)


def test_the_derivatives_themselves():
    found = fwdad.jit(fwdad.jacfwd(by_out, argnums=1), backend="numpy")(X.copy(), M)
    assert_array_equal(found[:, 0], np.diag(X)[::-1])
