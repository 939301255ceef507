"""Reversible stacks: traces whose length depends on values."""

import numpy as np
import pytest

import fwdad
from fwdad.errors import CapacityError, InvertibilityError
from fwdad.reversible import (
    Dict,
    Stack,
    ancilla,
    compute,
    cond,
    copy_out,
    free,
    insert,
    pop,
    push,
    reversible,
)


@reversible
def halved(s, x, n):
    while cond(x > 1.0, n > 0):
        t = ancilla(0.0)
        t += 0.25 * x * x / (1.0 + x)
        x -= t
        push(s, t)
        free(t, 0.0)
        n += 1


@reversible
def turned(x, y):
    s = ancilla(Stack(4))
    for k in range(len(x)):
        x[k] += y[k] * y[k]
        push(s, x[k])
    for k in range(len(x)):
        pop(s, x[k])
    free(s, Stack(4))


@reversible
def pops(s, v):
    pop(s, v)


@reversible
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


# -- growing


@reversible
def many(s, n):
    for i in range(n):
        t = ancilla(0.0)
        t += i + 1
        push(s, t)
        free(t, 0.0)


@reversible
def kept(y, x, n):
    with compute():
        s = ancilla(Stack())
        for i in range(n):
            t = ancilla(0.0)
            t += x * i
            push(s, t)
            free(t, 0.0)
        with copy_out():
            for i in range(n):
                y += s.values[i]


@reversible
def two(s, d, n):
    for i in range(n):
        t = ancilla(0.0)
        t += i + 1
        insert(d, -i, t)
        free(t, 0.0)
        many(s, 1)


def test_a_stack_without_a_capacity_grows():
    s, n = many(Stack(), 1000)
    assert s.values[:1000].tolist() == list(range(1, 1001))
    assert len((~many)(s, n)[0]) == 0
    s = Stack()
    many(s, 1000, inplace=True)
    assert len(s) == 1000


def test_an_ancilla_without_a_capacity_grows():
    assert kept(0.0, 2.0, 300)[0] == 2 * sum(range(300))
    assert fwdad.jvp(lambda x: kept(0.0, x, 500)[0], 2.0, 1.0)[1] == sum(range(500))
    assert fwdad.grad(kept, argnums=1)(0.0, 2.0, 500) == sum(range(500))


def test_a_capacity_is_a_limit():
    with pytest.raises(CapacityError, match=r"(?s)'s', which does not grow .* is 10; .*line \d+"):
        many(Stack(10), 11)
    with pytest.raises(CapacityError, match=r"the dictionary 'd'.* is 90;"):
        two(Stack(), Dict(90), 91)
    s, d, _ = two(Stack(), Dict(), 91)
    assert (len(s), len(d)) == (91, 91)
    assert [d[-i] for i in range(91)] == list(range(1, 92))


def test_compiled_code_names_the_capacity_that_it_has():
    pushed = fwdad.jit(lambda s, n: many(s, n)[0])
    assert len(pushed(Stack(), 64)) == 64
    with pytest.raises(CapacityError, match=r"is 64; it must be less than that: give it a larger"):
        pushed(Stack(), 65)
    assert len(pushed(Stack(100), 65)) == 65
