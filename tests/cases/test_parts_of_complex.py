"""Stores into the real and imaginary parts of complex arrays whose tangents are real so far."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences
from tests.eager_reverse.pulling import jacobian_of, record

X = np.array([0.4, 0.7, 0.9])


def turned(x):
    z = x + 0.5j
    u = z[::-1].imag
    u[0] = x[-1] * 0.5
    return np.sum(np.abs(z) ** 2)


def in_place(x):
    z = x + 0.5j
    y = z.imag
    y[0] = x[0] * 1.0
    y *= x
    return np.sum(np.sin(z).real)


def both(x):
    z = np.zeros(3, complex)
    z[:] = x
    z.imag[1:] = x[1:] * x[0]
    z.imag = z.imag + 0.5
    z.real[0] += z.imag[2]
    return np.sum(np.sin(z).real) + np.sum(np.abs(z))


def by_the_whole(x):
    z = x + 0.5j
    y = z.imag
    z[0] = x[1] * 1j
    return np.sum(y * x)


def parts_of_parts(x):
    z = x + 0.5j
    y = z.imag
    z.imag.sort()
    return np.sum(np.real(y) * x) + np.sum(np.imag(y)) + np.sum(np.sort(y)[:2] * np.cumsum(y)[1:])


@pytest.mark.parametrize("f", [turned, in_place, both, by_the_whole, parts_of_parts])
def test_stores(f):
    expected = central_differences(f, X)
    for chunk in (1, 2, 3):
        assert_allclose(fwdad.jacobian(f, X, mode="forward", chunk=chunk), expected, atol=1e-7)
    assert_allclose(fwdad.jvp(f, X, np.eye(3))[0], f(X))
    assert_allclose(fwdad.grad(f)(X), expected, atol=1e-7)
    assert_allclose(jacobian_of(record(f, X), X, 2), expected, atol=1e-7)
    assert_allclose(fwdad.jit(fwdad.grad(f), backend="numpy")(X), expected, atol=1e-7)
    nested = fwdad.jacfwd(fwdad.jacfwd(f))(X)
    assert_allclose(nested, central_differences(fwdad.grad(f), X), atol=1e-6)
