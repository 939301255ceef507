"""Sums of outer products under NumPy: one product of matrices, where it means the same."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad


def two_products(a, x, y):
    return np.sum(np.sin(a @ x)) + np.sum(np.cos(y @ a))


def three_products(a, x, y):
    return np.sum((a @ x) ** 2) + np.sum((y @ a) ** 3) + np.sum(a @ np.cos(x))


def one_product(a, x, y):
    return np.sum(a @ x) + np.sum(y)


def overwritten(a, x, y):
    """The vectors of one product change before the other product is added."""
    total = np.sum(np.sin(a @ x))
    z = x.copy()
    for i in range(3):
        z[0] += np.sum(np.cos(y @ a)) + i
        total = total + np.sum(np.sin(a @ z))
    return total


def outer_sum(u, v):
    return u[:, None] * v + v[:, None] * u


@pytest.mark.parametrize("shape", [(4, 3), (3, 3), (2, 5), (1, 4), (3, 1), (1, 1)], ids=str)
@pytest.mark.parametrize("f", [two_products, three_products, one_product, overwritten])
def test_gradients_are_those_of_forward_mode(f, shape):
    rng = np.random.default_rng(1)
    a, x, y = rng.normal(size=shape), rng.normal(size=shape[1]), rng.normal(size=shape[0])
    expected = fwdad.jacobian(lambda a: f(a, x, y), a, mode="forward")
    assert_allclose(fwdad.grad(f)(a, x, y), expected, rtol=1e-13, atol=1e-13)


def test_the_sum_is_one_operation_in_derivatives_only():
    a, x, y = np.ones((4, 3)), np.ones(3), np.ones(4)
    assert "sum_of_outer" in fwdad.show(fwdad.grad(two_products), a, x, y)
    assert fwdad.show(fwdad.grad(three_products), a, x, y).count("sum_of_outer") == 1
    assert "sum_of_outer" not in fwdad.show(fwdad.grad(one_product), a, x, y)
    assert "sum_of_outer" not in fwdad.show(outer_sum, x, x)
    compiled = fwdad.show(fwdad.grad(two_products), a, x, y, backend="numba")
    assert "sum_of_outer" not in compiled
