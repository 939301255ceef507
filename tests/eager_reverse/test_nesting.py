"""Derivatives inside derivatives: forward and reverse over each other, in each order."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.eager_reverse import gradient
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain
from tests.eager_reverse.pulling import jacobian_of, record

X = np.array([0.7, -1.3, 2.1])
A = np.array([[2.0, 0.3, -0.4], [0.1, 1.5, 0.2], [-0.3, 0.4, 1.8]])


def elementwise(x):
    return np.sum(np.sin(x) * x[::-1] ** 2 + np.exp(-x[0] * x))


def linear_algebra(x):
    m = A + np.outer(x, x)
    return np.linalg.det(m) + x @ np.linalg.solve(m, x * x) + np.linalg.norm(x)


def stores(x):
    y = np.zeros(5)
    y[1:4] = x * x
    y[0] = y[1] * x[2]
    for i in range(4):
        y[i + 1] += y[i] * np.sin(y[i + 1])
    y[1:] *= y[:-1]
    y[[0, 1, 0]] += x
    return np.sum(y[::2] ** 2) + y[3]


def scalars(x):
    a, b, c = x[0], x[1], x[2]
    for _ in range(3):
        a, b, c = a + 0.1 * b * c, b - 0.1 * a * a, c / (1.0 + a * a)
    return a * b + max(b, c)


def gathers(x):
    y = np.array([x[0] * x[1], 2.0, np.sin(x[2])])
    return np.sum(np.stack([y, x])[:, [0, 2, 2]] ** 3) + np.concatenate([x, y])[1:4].prod()


PROGRAMS = [elementwise, linear_algebra, stores, scalars, gathers]


@pytest.fixture(params=PROGRAMS, ids=lambda f: f.__name__)
def f(request):
    return request.param


@pytest.fixture
def hessian(f):
    return fwdad.hessian(f, X)


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_forward_over_reverse(f, hessian, chunk):
    found = fwdad.jacobian(lambda x: gradient(f, x), X, chunk=chunk)
    assert_allclose(found, hessian, rtol=1e-9, atol=1e-10)
    v = np.array([0.3, 1.0, -0.5])
    y, y_dot = fwdad.jvp(lambda x: gradient(f, x), X, v)
    assert_allclose(y, fwdad.grad(f)(X), rtol=1e-12)
    assert_allclose(y_dot, hessian @ v, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_reverse_over_forward(f, hessian, width):
    outcome = record(lambda x: fwdad.grad(f)(x), X)
    assert_allclose(jacobian_of(outcome, X, width), hessian, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_reverse_over_reverse(f, hessian, width):
    outcome = record(lambda x: gradient(f, x), X)
    assert_allclose(jacobian_of(outcome, X, width), hessian, rtol=1e-9, atol=1e-10)
    (x_bar,) = outcome.pull([np.array([1.0, 2.0, -1.0])])
    assert_allclose(x_bar, hessian @ [1.0, 2.0, -1.0], rtol=1e-9, atol=1e-10)


def test_chunks_of_cotangents_inside_another_derivative(f, hessian):
    """Several cotangents at once, pulled back under an outer derivative."""

    def rows(x):
        outcome = record(lambda x: np.stack([f(x), x[0] * f(x)]), x)
        (x_bar,) = outcome.pull([Chunk(np.eye(2))])
        return x_bar.lanes

    found = fwdad.jacobian(rows, X)
    gradient_of_f = fwdad.grad(f)(X)
    assert_allclose(found[0], hessian, rtol=1e-9, atol=1e-10)
    e = np.array([1.0, 0, 0])
    want = X[0] * hessian + np.outer(gradient_of_f, e) + np.outer(e, gradient_of_f)
    assert_allclose(found[1], want, rtol=1e-9, atol=1e-9)


def test_three_levels(f):
    third = fwdad.jacobian(lambda x: fwdad.hessian(f, x), X)
    found = fwdad.jacobian(lambda x: jacobian_of(record(lambda x: gradient(f, x), x), x, 2), X)
    assert_allclose(found, third, rtol=1e-8, atol=1e-8)


def test_an_active_cotangent():
    """The pull is linear in its cotangent, and may be differentiated with respect to it."""
    outcome = record(np.sin, X)
    found = fwdad.jacobian(lambda y_bar: outcome.pull([y_bar])[0], np.ones(3))
    assert_allclose(found, np.diag(np.cos(X)), rtol=1e-14)


def test_an_outer_variable_is_constant_inside():
    def f(x):
        return x * gradient(lambda y: x + y, 1.0)

    assert fwdad.derivative(f, 1.0) == 1.0
    assert gradient(f, 1.0) == 1.0
    assert gradient(lambda x: x * fwdad.derivative(lambda y: x + y, 1.0), 1.0) == 1.0


def test_one_function_differentiated_inside_itself():
    def f(y, x=None):
        return y * gradient(lambda v: f(y, v), 1.0) if x is None else x + y

    assert gradient(f, 1.0) == 1.0


def test_an_inner_derivative_writes_into_memory_of_the_outer_one():
    """What the inner call writes stays, and the outer record knows."""

    def f(x):
        work = np.zeros(3)
        work[:] = x * x

        def inner(t):
            work[0] = work[0] * t + x[1] * t
            return np.sum(work) * t

        slope = fwdad.derivative(inner, 2.0)
        return slope * work[0] + work[1]

    def by_hand(x):
        # inner(t) = (x0² t + x1 t + x1² + x2²) t
        slope = 2 * 2.0 * (x[0] ** 2 + x[1]) + x[1] ** 2 + x[2] ** 2
        return slope * (2.0 * x[0] ** 2 + 2.0 * x[1]) + x[1] ** 2

    assert_allclose(gradient(f, X), fwdad.grad(by_hand)(X), rtol=1e-12)
    assert_allclose(
        fwdad.jacobian(lambda x: gradient(f, x), X), fwdad.hessian(by_hand, X), rtol=1e-9
    )


def test_a_derivative_that_steers_a_loop():
    """Newton's iteration with its own reverse derivative, differentiated forward."""

    def root(a):
        x = 1.0
        for _ in range(8):
            x = x - (x * x - a) / gradient(lambda x: x * x - a, x)
        return x

    assert_allclose(fwdad.derivative(root, 2.0), 0.5 / np.sqrt(2.0), rtol=1e-12)
    assert_allclose(gradient(root, 2.0), 0.5 / np.sqrt(2.0), rtol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
def test_reshape_keeps_its_order(order):
    """What a rule notes of a call outlives the inner call, whose writes are taken back."""
    x = np.arange(1.0, 7.0).reshape(2, 3)
    v = np.cos(x)

    def f(x):
        return np.sum(x.reshape(3, 2, order=order)[1] ** 3)

    def g(x):
        return np.sum(v * gradient(f, x))

    second = np.zeros((3, 2))
    second[1] = 6.0
    expected = second.reshape(2, 3, order=order) * x * v
    assert_allclose(gradient(g, x), expected, rtol=1e-13)
    assert_allclose(fwdad.jvp(lambda x: gradient(f, x), x, v)[1], expected, rtol=1e-13)


def test_a_factor_without_axes_that_is_written():
    """What f has written is taken back when it ends; the reverse pass reads it all the same."""
    x, v = np.array([0.31, 1.37, 0.83]), np.array([0.7, -0.4, 1.1])

    def f(x):
        y = np.array(x[0])
        y[()] = x[1] * 2.0
        return np.sum(y * x)

    second = np.array([[0.0, 2.0, 0.0], [2.0, 4.0, 2.0], [0.0, 2.0, 0.0]])
    assert_allclose(fwdad.jvp(lambda x: gradient(f, x), x, v)[1], second @ v, rtol=1e-13)
    assert_allclose(gradient(lambda x: np.dot(gradient(f, x), v), x), second @ v, rtol=1e-13)
    assert_allclose(gradient(lambda x: fwdad.jvp(f, x, v)[1], x), second @ v, rtol=1e-13)


def test_tangents_of_zero_cotangents_meet_partials_that_are_infinite():
    partials = np.array([np.nan, np.inf, 2.0])

    def square(x):
        return x**2

    @fwdad.frule(square)
    def square_frule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        assert np.all(np.isfinite(plain(x)))  # it looks at values, so that it runs as a whole
        return x**2, partials * np.einsum("p,p->p", x_dot, X)

    for mode in ("forward", "reverse"):
        assert_array_equal(fwdad.jacobian(square, X, mode=mode), np.diag(partials * X))
    assert_array_equal(fwdad.grad(lambda x: square(x)[2])(X), [0.0, 0.0, 2.0 * X[2]])
