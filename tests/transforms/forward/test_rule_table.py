"""Rules whose functions call functions with rules: these rules hold in the next derivative, too.

Each rule differs from the derivative of its source, so that nobody can take one for the other.
"""

import types

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

X = 0.7


def skewed(x):
    return np.sin(x) * x


def d_skewed(x):
    return 2.0 * np.sin(x) + x


@fwdad.frule(skewed)
def _skewed(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return skewed(x), x_dot * d_skewed(x)


def by_itself(x):
    return fwdad.jvp(skewed, x, 1.0)[0]


library = types.SimpleNamespace(skewed=skewed)


def outside(x):
    return x**2


@fwdad.frule(outside)
def _outside(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return x**2, x_dot * library.skewed(x)


def _helper(x):
    return 2.0 * skewed(x)


def by_helper(x):
    return x**3


@fwdad.frule(by_helper)
def _by_helper(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return x**3, x_dot * _helper(x)


def by_partial(x):
    return np.cos(x)


fwdad.elementwise(by_partial, lambda x, y: skewed(x) + 0.0 * y)


def of_list(xs):
    return xs[0] * xs[1]


@fwdad.frule(of_list)
def _of_list(primals, tangents):
    (xs,), (dots,) = primals, tangents
    return xs[0] * xs[1], dots[0] * 3.0 + dots[1] * 5.0


def by_list(x):
    return x**2


@fwdad.frule(by_list)
def _by_list(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return x**2, x_dot * of_list([x, x])


def kept(x):
    """It writes into an array, in a loop."""
    y = np.zeros(3)
    for i in range(3):
        y[i] = skewed(x * (i + 1.0))
    return y @ y


# the function, and its first and second derivatives by the rules
SECOND = {
    outside: lambda x: d_skewed(x),
    by_helper: lambda x: 2.0 * d_skewed(x),
    by_partial: lambda x: d_skewed(x),
    by_list: lambda x: 8.0,
}


@pytest.mark.parametrize("wrap", [lambda f: f, fwdad.jit], ids=["plain", "jit"])
def test_a_value_by_a_rule_keeps_the_rule(wrap):
    for transform in (fwdad.grad, fwdad.jacfwd, fwdad.jacrev):
        assert_allclose(wrap(transform(by_itself))(X), d_skewed(X), rtol=1e-14)
    assert_allclose(fwdad.derivative(by_itself, X), d_skewed(X), rtol=1e-14)


@pytest.mark.parametrize("f", SECOND, ids=lambda f: f.__name__)
def test_second_derivatives_are_by_the_inner_rule(f):
    wanted = SECOND[f](X)
    assert_allclose(fwdad.derivative(lambda x: fwdad.derivative(f, x), X), wanted, rtol=1e-14)
    assert_allclose(fwdad.grad(fwdad.grad(f))(X), wanted, rtol=1e-14)
    assert_allclose(fwdad.jit(fwdad.grad(fwdad.grad(f)))(X), wanted, rtol=1e-14)
    assert_allclose(fwdad.grad(lambda x: fwdad.jvp(f, x, 1.0)[1])(X), wanted, rtol=1e-14)
    assert_allclose(fwdad.hvp(lambda x: f(x[0]), np.array([X]), np.ones(1)), [wanted], rtol=1e-14)

    def loss(x):
        return np.sum(np.array([f(v) for v in x]))

    assert_allclose(fwdad.hessian(loss, np.array([X, 0.3])), np.diag([wanted, SECOND[f](0.3)]))


def test_in_loops_and_stores():
    places = np.arange(1.0, 4.0)
    wanted = np.sum(2.0 * skewed(places * X) * d_skewed(places * X) * places)
    assert_allclose(fwdad.derivative(kept, X), wanted, rtol=1e-14)
    assert_allclose(fwdad.grad(kept)(X), wanted, rtol=1e-14)

    def again(x):
        return fwdad.jvp(kept, x, 1.0)[0]

    assert_allclose(fwdad.grad(again)(X), wanted, rtol=1e-14)
    assert_allclose(fwdad.jit(fwdad.grad(again))(X), wanted, rtol=1e-14)
