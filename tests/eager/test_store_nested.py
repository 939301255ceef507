"""Constants that overwrite active memory inside several derivatives."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.eager_reverse import gradient
from tests.differences import central_differences, difference_along

X = np.array([0.4, -0.7, 1.1])


def one_element(x):
    y = np.zeros(3)
    y[:] = x**3
    y[0] = 0.0
    return np.sum(y * x)


def a_view(x):
    y = x**4
    y[::2] = [1.0, 2.0]
    return np.sum(y * x) + y[1] ** 2


def what_is_constant_in_the_outer_call(x):
    """An outer constant is stored over values that both calls differentiate."""
    y = x**4
    y[1:] = X[1:]
    return np.sum(y**2)


@pytest.mark.every(2, first=1)
@pytest.mark.parametrize("f", [one_element, a_view, what_is_constant_in_the_outer_call])
@pytest.mark.parametrize("chunk", [1, 2, None])
def test_second_and_third_derivatives(f, chunk):
    """Against central differences of the derivative below."""

    def gradient(x):
        return fwdad.jacobian(f, x, chunk=chunk, mode="forward")

    def hessian(x):
        return fwdad.jacobian(gradient, x, chunk=chunk, mode="forward")

    assert_allclose(gradient(X), central_differences(f, X), rtol=1e-8, atol=1e-8)
    assert_allclose(hessian(X), central_differences(gradient, X), rtol=1e-7, atol=1e-7)
    third = fwdad.jacobian(hessian, X, chunk=chunk, mode="forward")
    assert_allclose(third, central_differences(hessian, X), rtol=1e-6, atol=1e-6)


# -- what rules see of memory, and what they keep of it

V, W = np.array([1.0, 0.5, -0.7]), np.array([0.3, 1.0, 2.0])
Y = np.array([1.2, 0.3, 0.8])


def filled(x):
    a = np.empty(3)
    a[:] = x
    return a


def changed(x):
    a = x * 1.0
    a[1] = x[0]
    return a


OF_TWO = {
    "product": lambda a, b: np.sum(a * b * b),
    "columns": lambda a, b: np.sum(a[:, None] * b * b),
    "power": lambda a, b: np.sum((1 + a**2) ** b),
    "solve": lambda a, b: np.sum(np.linalg.solve(np.outer(a, a) + 5 * np.eye(3), b * b)),
    "dist": lambda a, b: math.dist(a, b),
    "prod": lambda a, b: math.prod(a) * math.prod([*b, *a]),
    "cumprod": lambda a, b: np.cumprod(a) @ (b * b),
    "einsum": lambda a, b: np.einsum("i,j,i->j", a, b, b) @ W,
    "where": lambda a, b: np.sum(np.where(a > b, a * b, a / (2 + b))),
}


@pytest.mark.parametrize("make", [filled, changed])
@pytest.mark.parametrize("name", OF_TWO)
def test_memory_of_two_levels(name, make):
    """One array carries the inner tangents, another the outer ones, and both are overwritten."""
    f = OF_TWO[name]

    def g(x, y):
        a, b = make(y), make(x)
        s = f(a, b) + f(b, a)
        a[:], b[:] = 9.0, 7.0
        return s

    def forward(x):
        return fwdad.jvp(lambda y: g(x, y), Y, V)[1]

    def backward(x):
        return gradient(lambda y: g(x, y), Y) @ V

    expected = difference_along(forward, X, W)
    for inner in (forward, backward):
        assert_allclose(fwdad.jvp(inner, X, W)[1], expected, rtol=1e-6)
        assert_allclose(gradient(inner, X) @ W, expected, rtol=1e-6)


def test_product_of_two_ranks_keeps_what_is_overwritten():
    """The shorter factor is the scaling of the other's lanes: a view of memory of the program."""

    def f(x):
        a = np.ones((2, 3))
        a[0] = x
        b = a * a[0]
        a[0] = 0.0
        a *= b[0]
        return np.sum(b) + np.sum(a)

    def slope(x):
        return fwdad.jvp(f, x, V)[1]

    expected = 4 * V @ V  # of 2 Σ x² + Σ x
    assert_allclose(fwdad.jvp(slope, X, V)[1], expected, rtol=1e-12)
    assert_allclose(gradient(slope, X), 4 * V, rtol=1e-12)


# -- a rule that takes derivatives itself


def residual(z, p):
    r = np.empty(3)
    r[:] = z**3
    r += z * p
    return r - 1


def root(p):
    z = np.ones(3)
    for _ in range(30):
        z -= residual(z, p) / (3 * z**2 + p)
    return z


@fwdad.frule(root)
def root_frule(primals, tangents):
    (p,), (p_dot,) = primals, tangents
    z = root(p)
    by_z = fwdad.jacobian(lambda z: residual(z, p), z)
    by_p = fwdad.jacobian(lambda p: residual(z, p), p)
    return z, -np.linalg.solve(by_z, by_p) @ p_dot


@pytest.mark.parametrize("overwritten", [False, True])
def test_rule_that_takes_derivatives_of_what_is_stored_in_memory(overwritten):
    def f(x):
        a = np.empty(3)
        a[:] = x * x
        z = root(a)
        if overwritten:
            a[:] = 3.0
        return np.sum(z**2)

    def slope(x):
        return fwdad.jacobian(f, x, mode="forward")

    expected, second = central_differences(f, X), difference_along(slope, X, V)
    assert_allclose(slope(X), expected, rtol=1e-7)
    assert_allclose(fwdad.grad(f)(X), expected, rtol=1e-7)
    assert_allclose(fwdad.jvp(slope, X, V)[1], second, rtol=1e-7)
    assert_allclose(fwdad.hvp(f, X, V), second, rtol=1e-7)
