"""Exceptions that ``suppress`` swallows where values decide whether they are raised."""

import contextlib

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad


class TroubleError(Exception):
    pass


def checked(y, m):
    if y > m:
        raise TroubleError(y)
    return y * 2


def the_rest_of_a_block(x):
    s = x
    with contextlib.suppress(TroubleError):
        s = s + 1
        s = checked(s, 1.5)
        s = s * 3
    return s


def in_a_loop(x):
    s = 0.0
    for k in range(5):
        with contextlib.suppress(TroubleError, ValueError):
            s += checked(x * k, 2.0)
    return s


def two_in_one_statement(x):
    with contextlib.suppress(KeyError) as n, contextlib.suppress(TroubleError):
        return checked(x, 1.0) + {"a": 1.0}["a"] + (n is None)
    return x * 7


def what_python_raises(x):
    d_ = {}
    with contextlib.suppress(KeyError):
        d_["z"] += x
    with contextlib.suppress(ZeroDivisionError):
        x = x + 1 / (x - x)
    return x * 2


def left_by_break(x):
    for k in range(3):
        with contextlib.suppress(TroubleError):
            if checked(x * (k + 1), 2.5) > 2:
                break
            x = x + 0.1
    return x + k


class Scope:
    """Whose exception has to be given an amount."""

    def __init__(self):
        self.left = 0.0

    def __enter__(self):
        return self

    def __exit__(self, kind, error, place):
        self.left += 0.5


class CostlyError(Exception):
    def __init__(self, amount):
        super().__init__(amount)
        self.amount = amount


def own_manager(x):
    scope = Scope()
    try:
        with scope:
            if x > 1.0:
                raise CostlyError(x - 1.0)
            x = x * 3.0
    except CostlyError as error:
        x = error.amount
    return x + scope.left


@pytest.mark.parametrize(
    "f",
    [
        the_rest_of_a_block, in_a_loop, two_in_one_statement, what_python_raises, left_by_break,
        own_manager,
    ],
)  # fmt: skip
def test_values_and_slopes(f):
    value, slopes = fwdad.jit(f), [fwdad.jit(d(f)) for d in (fwdad.grad, fwdad.jacfwd)]
    for x in (0.31, 0.9, 1.7):
        expected = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
        assert_allclose(value(x), f(x), rtol=1e-13)
        for slope in (*slopes, fwdad.grad(f)):
            assert_allclose(slope(x), expected, rtol=1e-8, atol=1e-9)


def test_a_list_that_is_none_before_a_loop():
    def f(x):
        best, signs = np.inf, None
        for sign in (1.0, -1.0):
            cost = abs(x + sign)
            if cost < best:
                best, signs = cost, [sign, 2.0 * sign]
        return sum(s * x * b for s, b in zip(signs, (1.0, 0.5)))

    g = fwdad.jit(fwdad.grad(f))
    for x in (0.7, -0.4, 2.0):
        assert_allclose(g(x), fwdad.grad(f)(x))
        assert_allclose(g(x), (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rtol=1e-8)


def test_what_always_raises_is_found_by_the_passes():
    def f(x):
        s, t, k = x, 0.5, 2
        q = [0.3, x, 1.2]
        if s > t and k % 2:
            q = [*q[1:], x * 0.5]
        else:
            raise TroubleError(q[1])
        return q[0] * q[1]

    for transform in (fwdad.grad, fwdad.value_and_grad, fwdad.jacrev, fwdad.hessian):
        for x in (0.8, 0.3):
            with pytest.raises(TroubleError):
                fwdad.jit(transform(f))(x)
