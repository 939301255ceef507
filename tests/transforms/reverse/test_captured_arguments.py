"""What inner derivatives return, and arguments that f reads from outside, too: which memory.

Each program is run at once, on a tape, and differentiated; all must be one program.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.array([0.53, 0.87, 0.31])


def written(w, x):
    w[1:] *= np.sin(x)[:2]


def value_of_jvp(x):
    w = 1.0 * x
    y = fwdad.jvp(lambda p: p, w, x)[0]
    written(w, x)
    return y


def view_of_jvp(x):
    w = 1.0 * x
    y = fwdad.jvp(lambda p: p[::-1], w, x)[0]
    written(w, x)
    return y


def captured_of_vjp(x):
    w = 1.0 * x
    y = fwdad.vjp(lambda p: w, x)[0]
    written(w, x)
    return y


def beside_vjp(x):
    w = 1.0 * x
    y = fwdad.vjp(lambda p: (p, w), x, has_aux=True)[2]
    written(w, x)
    return y


def argument_beside_a_gradient(x):
    w = 1.0 * x
    y = fwdad.value_and_grad(lambda p, a: (p.sum(), a), has_aux=True)(x, w)[0][1]
    written(w, x)
    return y


def x_beside_a_gradient(x):
    w = 1.0 * x
    y = fwdad.value_and_grad(lambda p: (p.sum(), p), has_aux=True)(w)[0][1]
    written(w, x)
    return y


def captured_beside_a_gradient(x):
    w = 1.0 * x
    y = fwdad.value_and_grad(lambda p: (p.sum(), w), has_aux=True)(x)[0][1]
    written(w, x)
    return y


def captured_beside_what_is_recorded(x):
    w = 1.0 * x

    def f(p):
        exec("")  # no tape knows it
        return p.sum(), w

    y = fwdad.value_and_grad(f, has_aux=True)(x)[0][1]
    written(w, x)
    return y


def given_and_captured(x):
    w = 1.0 * x

    def f(p, a):
        w[:] = (p + x) * a
        return np.sum(a[0] ** 2 * p)

    y, pullback = fwdad.vjp(f, x, args=(w,))
    return pullback(1.0) * y + w


PROGRAMS = [
    value_of_jvp,
    view_of_jvp,
    captured_of_vjp,
    beside_vjp,
    argument_beside_a_gradient,
    x_beside_a_gradient,
    captured_beside_a_gradient,
    captured_beside_what_is_recorded,
    given_and_captured,
]

WAYS = {
    "one": lambda f: fwdad.jacobian(f, X, mode="forward", chunk=1),
    "two": lambda f: fwdad.jacobian(f, X, mode="forward", chunk=2),
    "three": lambda f: fwdad.jacobian(f, X, mode="forward", chunk=3),
    "reverse": lambda f: fwdad.jacrev(f)(X),
    "of jit": lambda f: fwdad.jacobian(fwdad.jit(f, backend="numpy"), X, mode="forward"),
    "jit": lambda f: fwdad.jit(fwdad.jacfwd(f), backend="numpy")(X),
}


def is_untraceable(f):
    return f is captured_beside_what_is_recorded


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", PROGRAMS)
def test_derivatives_are_those_of_the_values(f, way):
    if is_untraceable(f) and "jit" in way:
        with pytest.raises(fwdad.errors.UntraceableError):
            WAYS[way](f)
        return
    assert_allclose(WAYS[way](f), central_differences(f, X), atol=1e-8)


@pytest.mark.parametrize("f", [f for f in PROGRAMS if not is_untraceable(f)])
def test_values_are_the_same_on_a_tape(f):
    assert_allclose(fwdad.jit(f, backend="numpy")(X), f(X), rtol=1e-15)


def test_an_argument_that_is_captured_and_written():
    """Each way returns f's value, that of a call with the array itself."""
    w = X.copy()

    def f(x, a):
        w[:] = 2 * x * a
        return np.sum(a[0] ** 2 * x)

    expected = f(X, w)
    w[:] = X

    def through_a(x):  # with the arrays apart by hand
        return np.sum((2 * x * X)[0] ** 2 * x)

    by_hand = central_differences(through_a, X)
    y, pullback = fwdad.vjp(f, X, args=(w,))
    assert_allclose(y, expected, rtol=1e-15)
    for _ in range(2):
        assert_allclose(pullback(1.0), by_hand, rtol=1e-8)
    assert_allclose(w, X, rtol=0)
    assert_allclose(fwdad.grad(f)(X, w), by_hand, rtol=1e-8)
    w[:] = X
    y, jacobian = fwdad.linearize(f, X, args=(w,))
    assert_allclose(y, expected, rtol=1e-15)
    for product in (jacobian.matvec, jacobian.rmatvec):  # J runs f again, on a copy of w
        with pytest.raises(fwdad.errors.NondeterministicFunctionError, match="given and reads"):
            product(np.ones(3 if product == jacobian.matvec else 1))
    w[:] *= 3.0
    assert_allclose(pullback(1.0), by_hand, rtol=1e-8)
