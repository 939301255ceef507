"""Recursion that ends on values: programs that call themselves, and their tangents."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UntraceableError
from fwdad.frontend.calls import inline
from fwdad.ir.ops import Call
from tests.differences import central_differences, difference_along


def factorial(n, x):
    if n <= 0:
        return 1.0
    return x * factorial(n - 1, x)


def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def tree_walk(x, i):
    if i >= len(x):
        return 1.0
    return np.sin(x[i]) * tree_walk(x, 2 * i + 1) + x[i] * tree_walk(x, 2 * i + 2)


def stored_from_the_end(x):
    y = np.zeros_like(x)

    def go(i):
        if i < 0:
            return 0.0
        y[i] = x[i] ** 2 + (y[i + 1] if i + 1 < len(x) else 0.0)
        return go(i - 1)

    go(len(x) - 1)
    return y


def swapped_halves(x, low, high):
    """Reverses x between low and high, in place."""
    if high - low < 1:
        return 0
    kept = x[low]
    x[low] = x[high]
    x[high] = kept
    return swapped_halves(x, low + 1, high - 1)


def reversed_in_place(x):
    swapped_halves(x, 0, len(x) - 1)
    x *= np.arange(1.0, len(x) + 1)
    return x


X = np.array([0.3, 1.1, -0.7, 2.0, 0.9])

PROGRAMS = [
    (lambda x: factorial(4, x), 1.3),
    (lambda x: tree_walk(x, 0), X),
    (stored_from_the_end, X),
    (reversed_in_place, X),
]


def own(x):
    return x.copy() if isinstance(x, np.ndarray) else x


@pytest.mark.parametrize(("f", "x"), PROGRAMS)
def test_a_tape_calls_itself_and_agrees_with_python(f, x):
    tape = fwdad.trace(f, own(x))
    assert_allclose(tape(own(x)), f(own(x)), rtol=1e-15)


@pytest.mark.parametrize(("f", "x"), PROGRAMS[1:])
def test_one_tape_for_every_depth(f, x):
    tape = fwdad.trace(f, own(x))
    assert tape.count(Call) >= 1
    longer = np.linspace(-1.0, 1.0, 9)
    assert_allclose(tape(own(longer)), f(own(longer)), rtol=1e-14)


@pytest.mark.parametrize(("f", "x"), PROGRAMS)
@pytest.mark.parametrize("chunk", [1, 2, 3, None])
def test_tangents_travel_through_recursion(f, x, chunk):
    found = fwdad.jacobian(fwdad.jit(f, backend="numpy"), x, chunk=chunk)
    assert_allclose(found, fwdad.jacobian(f, x), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("f", "x"), PROGRAMS)
def test_a_jacobian_is_one_program(f, x):
    J = fwdad.jit(lambda x: fwdad.jacobian(f, x), backend="numpy")
    assert_allclose(J(own(x)), fwdad.jacobian(f, x), rtol=1e-12, atol=1e-14)


def test_integers_that_decide_the_depth():
    tape = fwdad.trace(ackermann, 1, 1)
    for m, n in ((0, 3), (1, 4), (2, 3)):
        assert tape(m, n) == ackermann(m, n)


def test_a_differentiated_depth_of_zero():
    f = fwdad.jit(factorial, backend="numpy")
    assert f(3, 2.0) == 8.0
    for n, slope in ((0, 0.0), (1, 1.0), (4, 32.0)):
        assert_array_equal(fwdad.derivative(lambda x, n=n: f(n, x), 2.0), slope)


def equilibrium(p):
    """Newton's method that calls itself until it has converged."""
    a, b = np.array([[1.0, 0.0, 1.0, 2.0], [0.0, 1.0, 1.0, 1.0]]), p[:2]
    shift = np.array([0.0, 0.0, np.log(p[2]), p[3]])

    def solve(lam, depth=0):
        n = np.exp(a.T @ lam + shift)
        missing = a @ n - b
        if np.abs(missing).max() < 1e-13 or depth > 25:
            return n, depth
        step = np.linalg.solve((a * n) @ a.T, -missing)
        return solve(lam + step / max(1.0, np.abs(step).max() / 1.5), depth + 1)

    n, _ = solve(np.array([-1.0, -1.0]))
    return n @ np.array([1.0, 2.0, 3.0, 4.0]) + n[3] ** 2


def test_a_gradient_that_recurs_is_pushed_forward_on_a_tape(caplog):
    p, v = np.array([1.0, 0.5, 2.0, 0.7]), np.array([1.0, -0.4, 0.3, 0.8])
    gradient = fwdad.jacfwd(equilibrium)
    expected = difference_along(gradient, p, v)
    with caplog.at_level("WARNING", logger="fwdad.fallbacks"):
        found = fwdad.hvp(equilibrium, p, v)
    assert np.allclose(found, expected, rtol=1e-6)
    assert not caplog.records


class _Countdown:
    def __init__(self, left):
        self.left = left

    def shrink(self, x):
        self.left -= 1
        return x if self.left == 0 else self.shrink(np.sin(x) * 1.1)


def ends_by_an_attribute(x):
    return _Countdown(9).shrink(x)


def ends_by_a_name_outside(x):
    left = 7

    def shrink(y):
        nonlocal left
        left -= 1
        return y if left == 0 else shrink(y * y)

    return shrink(x)


def ends_by_a_list(x):
    done = []

    def shrink(y):
        done.append(y)
        return y if len(done) == 6 else shrink(y * 0.9 + np.cos(y))

    return shrink(x)


def ends_by_an_argument(x):
    def shrink(y, *rest, **options):
        if not rest:
            return y * options["scale"]
        return shrink(y * rest[0], *rest[1:], **options)

    return shrink(x, 1.0, x, 2.0, x, scale=3.0)


@pytest.mark.parametrize(
    "f", [ends_by_an_attribute, ends_by_a_name_outside, ends_by_a_list, ends_by_an_argument]
)
def test_an_end_that_the_trace_sees(f):
    for x in (0.7, 1.3):
        assert_allclose(fwdad.jit(f)(x), f(x), rtol=1e-14)
        h = 1e-30
        assert_allclose(fwdad.jit(fwdad.grad(f))(x), f(x + h * 1j).imag / h, rtol=1e-12)


def test_a_call_like_the_one_around_it_has_no_end(monkeypatch):
    """It is seen in the second call inside of the first: 16 of them are not traced for it."""
    monkeypatch.setattr(inline, "INLINED_AT_MOST", 10**6)
    monkeypatch.setattr(inline, "_INSIDE_AT_MOST", 10**6)

    def f(x):
        def inner(y, options):
            return y if y < 1.0 else 1.0 + inner(y / 2, options)

        return inner(x, [1, "text", {"a": 2.0}])

    assert fwdad.jit(f)(10.0) == f(10.0)
    assert fwdad.jit(fwdad.grad(f))(10.0) == 2.0**-4


def levels(derivative):
    """A function of its own derivatives of an order that a value gives."""

    def f(x, k):
        if k == 0:
            return np.sum(x**3)
        return np.sum(np.sin(derivative(f, x, k - 1)))

    return f


def in_a_loop(x, k):
    def f(x, k):
        y = np.sum(np.sin(x * (k + 1.0)))
        for _ in range(k):
            y = y + np.sum(fwdad.grad(f)(x, k - 1))
        return y

    return f(x, k)


@pytest.mark.parametrize(
    "derivative",
    [
        lambda f, x, k: fwdad.grad(f)(x, k),
        lambda f, x, k: fwdad.vjp(f, x, args=(k,))[1](1.0),
        lambda f, x, k: fwdad.jvp(lambda x: f(x, k), x, np.cos(x))[1],
    ],
)
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_derivatives_of_a_function_inside_itself(derivative, backend):
    """They are those of the way that the example takes; the program of f is not yet known there."""
    if backend == "numba":
        pytest.importorskip("numba")
    f = levels(derivative)
    value, gradient = fwdad.jit(f, backend=backend), fwdad.jit(fwdad.grad(f), backend=backend)
    for k in (0, 1, 2):
        assert_allclose(value(X, k), f(X, k), rtol=1e-12)
        expected = central_differences(lambda x, k=k: f(x, k), X)
        assert_allclose(fwdad.grad(f)(X, k), expected, rtol=1e-7, atol=1e-7)
        assert_allclose(gradient(X, k), expected, rtol=1e-7, atol=1e-7)


def test_derivatives_of_every_order_are_refused():
    with pytest.raises(UntraceableError, match="inside of a call of itself"):
        fwdad.jit(in_a_loop, backend="numpy")(X, 2)
    expected = central_differences(lambda x: in_a_loop(x, 2), X)
    assert_allclose(fwdad.grad(in_a_loop)(X, 2), expected, rtol=1e-7, atol=1e-7)
