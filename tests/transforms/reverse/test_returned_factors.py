"""A side of a branch, or an iteration, whose cotangent is a number of the forward pass as it is."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.array([0.5, 1.25, 2.0, 3.5, -0.75, 0.3])
V = np.arange(6.0) - 2.0


def product_on_one_side(x):
    s = x[0] * 2 + x[1]
    if x[0] < 100:
        return s * x[2]
    return x[4] * 3


def product_on_the_other_side(x):
    s = x[0] * 2 + x[1]
    return x[4] * 3 if x[0] > 100 else np.exp(x[2]) * s


def in_sides_of_sides(x):
    s = x[0] * x[1]
    if x[0] < 100:
        if x[1] > 0:
            return s * np.sin(x[2])
        return s
    return x[4] * 3


def in_a_loop(x):
    s = x[0] * 1.0
    for k in range(len(x)):
        if x[k] > 0:
            s = s * np.cos(x[k])
    return s


def left_in_a_loop(x):
    s = x[0] * x[3]
    for k in range(len(x)):
        if x[k] > 1:
            return s * x[k] ** 2
    return s


def of_arrays(x):
    w = x * x
    if x[0] < 100:
        return w @ np.sin(x)
    return x[1]


PROGRAMS = [product_on_one_side, product_on_the_other_side, in_sides_of_sides, in_a_loop,
            left_in_a_loop, of_arrays]  # fmt: skip


@pytest.mark.every(2, of="numba", first=1)
@pytest.mark.every(3, of="numba")
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients_and_gradients_of_gradients(f, backend):
    expected = central_differences(f, X)
    found = fwdad.jit(fwdad.grad(f), backend=backend)(X)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    curvature = central_differences(lambda x: fwdad.jacobian(f, x), X)
    twice = fwdad.jit(fwdad.grad(lambda x: fwdad.grad(f)(x) @ V), backend=backend)(X)
    assert_allclose(twice, curvature @ V, rtol=1e-5, atol=1e-5)
