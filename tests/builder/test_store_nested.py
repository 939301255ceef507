"""Constants that overwrite active memory inside several derivatives."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

X = np.array([0.4, -0.7, 1.1])


def one_element(x):
    y = np.zeros(3)
    y[:] = x**3
    y[0] = 0.0
    return np.sum(y * x)


def a_window(x):
    y = x**4
    y[::2] = [1.0, 2.0]
    return np.sum(y * x) + y[1] ** 2


def what_is_constant_in_the_outer_call(x):
    """An outer constant is stored over values that both calls differentiate."""
    y = x**4
    y[1:] = X[1:]
    return np.sum(y**2)


@pytest.mark.parametrize("f", [one_element, a_window, what_is_constant_in_the_outer_call])
@pytest.mark.parametrize("chunk", [1, 2, None])
def test_second_and_third_derivatives(f, chunk):
    """Against central differences of the derivative below."""

    def gradient(x):
        return fwdad.jacobian(f, x, chunk=chunk, mode="forward")

    def hessian(x):
        return fwdad.jacobian(gradient, x, chunk=chunk, mode="forward")

    def differences(g):
        return np.stack([(g(X + e) - g(X - e)) / 2e-5 for e in 1e-5 * np.eye(3)], axis=-1)

    assert_allclose(gradient(X), differences(f), rtol=1e-8, atol=1e-8)
    assert_allclose(hessian(X), differences(gradient), rtol=1e-7, atol=1e-7)
    third = fwdad.jacobian(hessian, X, chunk=chunk, mode="forward")
    assert_allclose(third, differences(hessian), rtol=1e-6, atol=1e-6)
