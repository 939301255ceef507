"""Reversible stacks: traces whose length depends on values."""

import numpy as np
import pytest

import fwdad
from fwdad import InvertibilityError, Stack, ancilla, cond, free, pop, push


@fwdad.reversible
def halved(s, x, n):
    while cond(x > 1.0, n > 0):
        t = ancilla(0.0)
        t += 0.25 * x * x / (1.0 + x)
        x -= t
        push(s, t)
        free(t, 0.0)
        n += 1


@fwdad.reversible
def turned(x, y):
    s = ancilla(Stack(4))
    for k in range(len(x)):
        x[k] += y[k] * y[k]
        push(s, x[k])
    for k in range(len(x)):
        pop(s, x[k])
    free(s, Stack(4))


@fwdad.reversible
def pops(s, v):
    pop(s, v)


@fwdad.reversible
def pushes(s, v):
    push(s, v)


X = np.array([0.3, 1.2, -0.7])
Y = np.array([1.3, 0.2, 0.5])


def test_a_trace_of_unknown_length():
    s, x, n = halved(Stack(50), 7.0, 0)
    assert n == len(s) > 2
    back, x0, n0 = (~halved)(s, x, n)
    assert (len(back), n0) == (0, 0)
    np.testing.assert_allclose(x0, 7.0, rtol=1e-14)
    assert not np.any(back.values)

    def plain(x):
        first = None
        while x > 1.0:
            t = 0.25 * x * x / (1.0 + x)
            x = x - t
            first = t if first is None else first
        return x + first**2

    def exact(x):
        s, x, _ = halved(Stack(50), x, 0)
        return x + s.values[0] ** 2

    for g in (fwdad.grad, fwdad.jacfwd):
        np.testing.assert_allclose(g(exact)(7.0), fwdad.derivative(plain, 7.0), rtol=1e-12)


def test_numbers_come_back_in_the_opposite_order():
    x, y = turned(X, Y)
    np.testing.assert_allclose(x, (X + Y * Y)[::-1], rtol=1e-15)
    np.testing.assert_allclose((~turned)(x, y)[0], X, rtol=1e-14)

    def f(x, y):
        return np.sum(np.arange(1.0, 4.0) * np.sin(turned(x, y)[0]))

    def plain(x, y):
        return np.sum(np.arange(1.0, 4.0) * np.sin((x + y * y)[::-1]))

    expected = fwdad.jacfwd(plain, argnums=(0, 1))(X, Y)
    for g in (fwdad.grad(f, argnums=(0, 1)), fwdad.jit(fwdad.grad(f, argnums=(0, 1)))):
        np.testing.assert_allclose(g(X, Y), expected, rtol=1e-13)


def test_what_breaks_a_stack_raises():
    full = pushes(Stack(1), 2.0)[0]
    for run, args, variable in (
        (pushes, (full, 1.0), "s"),
        (pops, (Stack(1), 0.0), "s"),
        (pops, (full, 1.0), "v"),
        (fwdad.jit(pops, backend="numpy"), (full, 1.0), "v"),
    ):
        with pytest.raises(InvertibilityError) as caught:
            run(*args)
        assert caught.value.variable == variable
    assert pops(full, 0.0)[1] == 2.0
