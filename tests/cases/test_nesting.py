"""Derivatives of derivatives: one tag for each call, whatever the functions and the widths."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad import derivative, grad, hessian, hvp, jacobian, jvp
from tests.differences import central_differences, difference_along

CHUNKS = [1, 2, 3, None]


# -- perturbation confusion


def test_inner_derivative_of_a_sum():
    assert derivative(lambda x: x * derivative(lambda y: x + y, 1.0), 1.0) == 1.0


def test_one_function_differentiated_inside_itself():
    """A tag for each function (rather than each call) returns 2."""

    def f(y, x=None):
        return y * derivative(f, 1.0, args=(y,)) if x is None else x + y

    assert derivative(f, 1.0) == 1.0


def test_outer_variable_is_constant_inside():
    assert derivative(lambda x: derivative(lambda y: x, 1.0), 2.0) == 0.0
    assert derivative(lambda x: derivative(lambda y: x * x, 1.0) + x, 2.0) == 1.0


def test_inner_derivative_with_respect_to_the_outer_variable():
    assert derivative(lambda x: derivative(lambda y: y * y * x, x), 3.0) == 12.0
    assert derivative(lambda x: x * derivative(lambda y: y * x, x * x) ** 2, 2.0) == 12.0


def test_inner_value_kept_in_a_variable():
    """The inner call's duals have ended; its result carries the outer tangent only."""

    def f(x):
        kept = derivative(lambda y: np.sin(y) * x, x)
        return kept * derivative(lambda y: y * kept, 1.0)

    exact = difference_along(lambda x: (np.cos(x) * x) ** 2, 0.7)
    assert derivative(f, 0.7) == pytest.approx(exact, rel=1e-10)


def test_curried_differential_operator():
    """Manzyuk et al.'s function that returns functions: D(f)(a)(g) shifts g."""

    def shift(s):
        return lambda g: lambda x: g(x + s)

    def apply_twice(s):
        return shift(s)(shift(s)(np.exp))(1.0)

    assert derivative(apply_twice, 0.0) == pytest.approx(2 * math.e, rel=1e-15)
    nested = derivative(lambda s: derivative(lambda r: shift(s)(shift(r)(np.exp))(1.0), 0.0), 0.0)
    assert nested == pytest.approx(math.e, rel=1e-15)


@pytest.mark.parametrize("outer", CHUNKS)
@pytest.mark.parametrize("inner", CHUNKS)
def test_widths_of_two_levels_do_not_mix(inner, outer):
    x = np.array([0.5, -1.0, 2.0])

    def f(x):
        inside = jacobian(lambda y: np.sin(y) * x * y[0], x * 2.0, chunk=inner)
        return inside @ x

    def by_hand(x):
        y = 2 * x
        inside = np.diag(np.cos(y) * x * y[0])
        inside[:, 0] += np.sin(y) * x
        return inside @ x

    assert_allclose(f(x), by_hand(x), rtol=1e-14)
    expected = central_differences(by_hand, x)
    assert_allclose(jacobian(f, x, chunk=outer), expected, rtol=1e-8, atol=1e-9)


# -- orders


def test_three_levels():
    third = derivative(lambda x: derivative(lambda y: derivative(lambda z: z**4, y), x), 1.5)
    assert third == pytest.approx(24 * 1.5, rel=1e-15)
    mixed = derivative(
        lambda x: derivative(lambda y: derivative(lambda z: x**2 * y**3 * z**4 + x * z, 1.2), 0.5),
        2.0,
    )
    assert mixed == pytest.approx(2 * 2.0 * 3 * 0.5**2 * 4 * 1.2**3, rel=1e-14)
    cosine = derivative(lambda x: derivative(lambda y: derivative(math.sin, y), x), 0.3)
    assert cosine == pytest.approx(-math.cos(0.3), rel=1e-15)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_third_derivative_tensor(chunk):
    def f(x):
        return x[0] ** 2 * x[1] * np.exp(x[2])

    x = np.array([0.5, 1.5, -0.4])
    tensor = jacobian(jacobian_of(jacobian_of(f, chunk), chunk), x, chunk=chunk)
    e = np.exp(x[2])
    assert tensor.shape == (3, 3, 3)
    assert_allclose(tensor[0, 0], [0.0, 2 * e, 2 * x[1] * e], rtol=1e-14)
    assert_allclose(
        tensor[2, 2], [2 * x[0] * x[1] * e, x[0] ** 2 * e, x[0] ** 2 * x[1] * e], rtol=1e-14
    )
    assert_allclose(tensor, tensor.transpose(2, 0, 1), rtol=1e-14)
    assert_allclose(tensor, tensor.transpose(1, 0, 2), rtol=1e-14)


def jacobian_of(f, chunk):
    return fwdad.jacfwd(f, chunk=chunk)


@pytest.mark.parametrize("order", range(5))
def test_derivative_beyond_the_degree_vanishes(order):
    """The (n+1)-th derivative of x**n at 0 is 0, and the n-th is n!."""
    f = lambda x: x**order  # noqa: E731
    for _ in range(order):
        f = fwdad.jacfwd(f)
    assert f(0.0) == math.factorial(order)
    assert fwdad.jacfwd(f)(0.0) == 0.0
    assert fwdad.jacfwd(fwdad.jacfwd(f))(np.float64(0.0)) == 0.0


@pytest.mark.parametrize("chunk", CHUNKS)
def test_jacobian_of_the_gradient_of_a_quadratic_form(chunk, rng):
    a = rng.normal(size=(4, 4))

    def q(x):
        return x @ a @ x

    for x in (rng.normal(size=4), np.zeros(4)):
        assert_allclose(jacobian(grad(q, chunk=chunk), x, chunk=chunk), a + a.T, rtol=1e-13)
        assert_allclose(hessian(q, x, chunk=chunk), a + a.T, rtol=1e-13)
        v = rng.normal(size=4)
        assert_allclose(hvp(q, x, v), (a + a.T) @ v, rtol=1e-12)
        directional = jvp(lambda x: jvp(q, x, v)[1], x, v)[1]
        assert directional == pytest.approx(v @ (a + a.T) @ v, rel=1e-12)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_product_at_zero(chunk, rng):
    """d/dx of sum(x * (a @ b)) at x = 0: a zero primal is not a zero tangent."""
    a, b = rng.normal(size=(2, 3)), rng.normal(size=3)

    def f(x):
        return np.sum(x * (a @ b))

    assert_allclose(grad(f, chunk=chunk)(np.zeros(2)), a @ b, rtol=1e-15)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_hessian_with_stores_in_place(chunk):
    """Second order through buffers, views and a loop."""

    def f(x):
        y = np.zeros((2, 3))
        y[0] = x
        row = y[1]
        for i in range(3):
            row[i] += y[0, i - 1] * np.sin(x[i])
            y *= 1.5
        return np.sum(y**2 * y[::-1])

    x = np.array([0.4, -0.9, 1.3])
    gradient = grad(f, chunk=chunk)
    assert_allclose(gradient(x), central_differences(f, x), rtol=1e-8)
    expected = central_differences(gradient, x)
    assert_allclose(hessian(f, x, chunk=chunk), expected, rtol=1e-7, atol=1e-8)
    assert_allclose(hvp(f, x, np.ones(3)), expected @ np.ones(3), rtol=1e-7)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_hessian_of_linear_algebra(chunk):
    base = np.array([[3.0, 0.5, 0.2], [0.5, 2.0, 0.1], [0.2, 0.1, 1.5]])

    def f(x):
        a = base + np.diag(x) + np.outer(x, x)
        return (
            np.linalg.slogdet(a)[1]
            + x @ np.linalg.solve(a, x)
            + np.linalg.norm(x) * np.linalg.inv(a)[0, 1]
        )

    x = np.array([0.4, 0.9, -0.3])
    gradient = grad(f)
    assert_allclose(gradient(x), central_differences(f, x), rtol=1e-8)
    assert_allclose(
        hessian(f, x, chunk=chunk), central_differences(gradient, x), rtol=1e-7, atol=1e-8
    )


# -- a derivative inside a program


def test_newton_iteration_with_its_own_derivative(rng):
    """The inner Jacobian drives a solve; the outer derivative goes through all of it."""

    def solve(p):
        def residual(u):
            return np.array([u[0] ** 2 + p[0] * u[1] - 2.0, u[1] ** 3 - p[1] * u[0]])

        u = np.array([1.0, 1.0])
        for _ in range(8):
            u = u - np.linalg.solve(jacobian(residual, u), residual(u))
        return u

    p = np.array([0.8, 1.3])
    u = solve(p)
    of_u = np.array([[2 * u[0], p[0]], [-p[1], 3 * u[1] ** 2]])
    of_p = np.array([[u[1], 0.0], [0.0, -u[0]]])
    for chunk in (1, 2):
        assert_allclose(jacobian(solve, p, chunk=chunk), -np.linalg.solve(of_u, of_p), rtol=1e-12)


def test_value_of_the_inner_call_is_active_outside():
    def f(x):
        y, y_dot = jvp(lambda z: z**2 * x, x, 1.0)
        value, gradient = fwdad.value_and_grad(lambda z: np.sum(z * x))(np.ones(2))
        return y * y_dot + value * gradient[1]

    # y = x^3, y_dot = 2 x^2, value = 2x, gradient = x
    assert derivative(f, 1.1) == pytest.approx(10 * 1.1**4 + 4 * 1.1, rel=1e-14)


def test_store_of_an_outer_dual_into_an_inner_buffer():
    def f(x):
        buffer = np.zeros(3)

        def inner(y):
            buffer[0] = x  # an outer dual, written by the inner call
            buffer[1] = y * x
            return buffer[0] * buffer[1]

        slope = derivative(inner, 2.0)  # x^2
        return slope + buffer.sum()  # x + 2 x stays in it

    assert derivative(f, 3.0) == 9.0


def test_buffer_of_the_outer_call_holds_its_tangent_inside():
    def f(x):
        buffer = np.zeros(2)
        buffer[0] = x * x
        slope = derivative(lambda y: y * buffer[0], 1.0)
        buffer[1] = slope
        return buffer[0] * buffer[1]

    assert derivative(f, 1.5) == pytest.approx(4 * 1.5**3, rel=1e-15)


def test_gradient_of_a_gradient_norm():
    def f(x):
        return np.sum(x**3) * x[0]

    def energy(x):
        return np.sum(grad(f)(x) ** 2)

    x = np.array([0.5, 1.5])

    def by_hand(x):
        g = 3 * x**2 * x[0]
        g[0] += np.sum(x**3)
        return np.sum(g**2)

    for chunk in (1, 2):
        assert_allclose(grad(energy, chunk=chunk)(x), central_differences(by_hand, x), rtol=1e-9)


def test_stop_gradient_at_each_level():
    def f(x):
        return x * fwdad.stop_gradient(x)

    assert derivative(f, 3.0) == 3.0
    assert derivative(lambda x: derivative(f, x), 3.0) == 0.0
    assert (
        derivative(lambda x: derivative(lambda y: y * fwdad.stop_gradient(x) * x, 1.0), 3.0) == 3.0
    )
    assert_array_equal(
        jacobian(lambda x: fwdad.stop_gradient(x) * x, np.array([2.0, 5.0])), np.diag([2.0, 5.0])
    )


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_transformers_of_transformers_keep_the_signature(chunk):
    def f(x, scale, *, power=2):
        return np.sum(scale * x**power)

    x = np.array([1.0, 2.0, 3.0])
    second = fwdad.jacfwd(grad(f, chunk=chunk), chunk=chunk)
    assert_array_equal(second(x, 2.0, power=3), np.diag(12 * x))
    cross = fwdad.jacfwd(grad(f), argnums=1)
    assert_array_equal(cross(x, 2.0), 2 * x)
    assert second.__name__
    assert fwdad.jacfwd(f).__wrapped__ is f
