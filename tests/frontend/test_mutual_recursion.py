"""Recursive functions that call each other, where values decide how deep.

One of them is a program of its own, and the other one is traced in line in it.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad


class Cell:
    def __init__(self, k):
        self.k = k

    def shrink(self, y):
        return y if y < 0.5 else self.k * 0.1 + self.shrink(y * 0.6)


class Other(Cell):
    def shrink(self, y):
        return super().shrink(y * 0.5) + 2 * self.k


def inherited(x):
    a = Other(4.0).shrink(x)
    return a + Cell(x).shrink(a)


def each_other(x):
    k = x * 0.1

    def even(y):
        return y + k if y < 0.5 else odd(y * 0.6) + k

    def odd(y):
        return y * k if y < 0.5 else even(y * 0.7) * 1.1

    return even(x) + odd(x * 2.0) * k


def each_and_themselves(x):
    k = x * 0.1

    def even(y):
        return y + k if y < 0.5 else (odd(y * 0.6) + k if y < 2.0 else even(y * 0.5))

    def odd(y):
        return y * k if y < 0.5 else (even(y * 0.7) * 1.1 if y < 3.0 else odd(y * 0.4))

    return even(x) + odd(x * 2.0) * k


def three(x):
    def a(y):
        return y if y < 0.3 else b(y * 0.8) + x

    def b(y):
        return y * y if y < 0.5 else c(y * 0.8)

    def c(y):
        return np.sin(y) if y < 0.7 else a(y * 0.8) * 0.9

    return a(x) + b(x + 1.0) + c(x + 2.0)


def inside(x):
    def f(y):
        def g(z):
            return z if z < 0.4 else g(z * 0.5) + y

        return g(y) if y < 1.0 else g(y) + f(y * 0.5)

    def h(y):
        return f(y) if y < 0.8 else h(y - 0.5) + f(y)

    return f(x) + h(x)


def taken_as_arguments(x):
    def rep(f, y):
        return y if y < 0.3 else f(y) + rep(f, y * 0.5)

    def q(y):
        return y if y < 0.6 else rep(lambda z: z * x, y) + q(y * 0.5)

    return rep(q, x) + q(x)


def lists(x):
    def total(node, y):
        return y * 0.1 if y < 0.2 else sum([total(node, y * 0.5), other(node, y * 0.3)]) + node[0]

    def other(node, y):
        return y if y < 0.4 else total(node, y * 0.7) * node[1]

    return total([x, 2.0], x) + other((1.5, x), x)


@pytest.mark.parametrize(
    "f", [inherited, each_other, each_and_themselves, three, inside, taken_as_arguments, lists]
)
@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_values_and_slopes(f, backend):
    value = fwdad.jit(f, backend=backend)
    slopes = [fwdad.jit(d(f), backend=backend) for d in (fwdad.grad, fwdad.jacfwd)]
    for x in (0.83, 1.71, 9.37):
        h = 1e-6
        expected = (f(x + h) - f(x - h)) / (2 * h)
        assert_allclose(value(x), f(x), rtol=1e-13)
        for found in (*(slope(x) for slope in slopes), fwdad.grad(f)(x)):
            assert_allclose(found, expected, rtol=1e-7)
