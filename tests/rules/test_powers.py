"""Powers whose exponent is differentiated too, at exponents that rules treat apart."""

import math
import operator

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

POWERS = [operator.pow, np.power, np.float_power, math.pow]
BASE = 1.7


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0, 3.0, -1.0])
@pytest.mark.parametrize("power", POWERS)
def test_second_derivatives(power, exponent):
    """d2/dx dy x**y = x**(y - 1) (1 + y log x), whichever derivative is taken first."""
    log, made = math.log(BASE), BASE**exponent
    mixed = BASE ** (exponent - 1) * (1 + exponent * log)
    expected = [
        [exponent * (exponent - 1) * BASE ** (exponent - 2), mixed],
        [mixed, made * log * log],
    ]

    def f(v):
        return power(v[0], v[1])

    def slope(x, y):
        return fwdad.derivative(lambda x: power(x, y), x)

    def rate(x, y):
        return fwdad.derivative(lambda y: power(x, y), y)

    v = np.array([BASE, exponent])
    for found in (
        fwdad.hessian(f, v),
        fwdad.jacobian(fwdad.jacfwd(f), v),
        fwdad.jacobian(fwdad.grad(f), v),
        fwdad.jit(fwdad.jacfwd(fwdad.jacfwd(f)), backend="numpy")(v),
        fwdad.jit(fwdad.jacfwd(fwdad.grad(f)), backend="numpy")(v),
    ):
        assert_allclose(found, expected, rtol=1e-13, atol=1e-15)
    assert_allclose(fwdad.derivative(lambda y: slope(BASE, y), exponent), mixed, rtol=1e-13)
    assert_allclose(fwdad.derivative(lambda x: rate(x, exponent), BASE), mixed, rtol=1e-13)


@pytest.mark.parametrize("power", POWERS[:3])
def test_second_derivatives_of_arrays(power):
    x = np.array([0.3, 1.7, 2.0, 0.9, 1.1])
    y = np.array([0.0, 2.0, 0.5, 1.0, 0.0])
    mixed = x ** (y - 1) * (1 + y * np.log(x))

    def slope(y):
        return fwdad.jvp(lambda x: power(x, y), x, np.ones(5))[1]

    for ask in (slope, fwdad.jit(slope, backend="numpy")):
        assert_allclose(fwdad.jacobian(ask, y), np.diag(mixed), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("x", [math.inf, -math.inf, 0.0])
def test_an_exponent_of_zero_has_a_flat_power(x):
    def f(x, y):
        return x**y

    assert fwdad.derivative(f, x, args=(0.0,)) == 0.0
    assert fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x, 0.0) == 0.0
    assert fwdad.grad(f)(x, 0.0) == 0.0
    assert fwdad.jacobian(f, np.array([x]), args=(np.zeros(1),)) == 0.0
