"""Numbers that are a length on one way, or in the first iteration, and not on another."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences


def smaller(a):
    b = a[: min(2, len(a))]
    return np.sum(b * np.arange(len(b)))


def chosen(a):
    n = len(a)
    if a[0] > 0:
        n = 2
    work = np.zeros(n)
    return np.sum((np.arange(len(work)) + 1.0) * a[0])


def counted_down(a):
    n = len(a)
    while n > 2:
        n = n - 1
    b = a[:n] * a[0]
    return np.sum(b * np.arange(len(b)))


def shrinking(a):
    n, s = len(a), 0.0
    for i in range(2):
        work = np.ones(n) * a[i]
        s = s + np.sum(work * np.arange(len(work))) * len(work)
        n = n - 1
    return s


def exchanged(a):
    m, n = len(a), 2
    for _ in range(3):
        m, n = n, m
    return np.sum(np.arange(len(np.zeros(m)))) * a[0] + np.sum(np.arange(len(np.zeros(n)))) * a[1]


class Holder:
    """Has an attribute."""


def held(a):
    o = Holder()
    o.n = len(a)
    for _ in range(2):
        o.n -= 1
    return np.sum(np.arange(len(np.zeros(o.n))) * a[1])


def caught(a):
    n = len(a)
    try:
        if a[0] > 0:
            raise ValueError
    except ValueError:
        n = 2
    return np.sum(np.arange(len(np.zeros(n))) * a[1])


PROGRAMS = [smaller, chosen, counted_down, shrinking, exchanged, held, caught]
A = np.array([0.5, -1.25, 2.0, 3.5, 1.0, 2.0])


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_values_and_gradients_are_right(f, backend):
    if backend == "numba":
        pytest.importorskip("numba")
        if f not in (smaller, counted_down, shrinking):
            pytest.skip("the tape is the same")
    value = fwdad.jit(f, backend=backend)
    gradient = fwdad.jit(fwdad.grad(f), backend=backend)
    for a in (A, A[:4], -A):
        assert value(a) == f(a)
        assert_allclose(gradient(a), central_differences(f, a), rtol=1e-9, atol=1e-9)
        assert_allclose(fwdad.grad(f)(a), central_differences(f, a), rtol=1e-9, atol=1e-9)
        for chunk in (1, 2, 3):
            found = fwdad.jacobian(f, a, mode="forward", chunk=chunk)
            assert_allclose(found, central_differences(f, a), rtol=1e-9, atol=1e-9)


def squares(x):
    return np.array([a * a for a in x])


fwdad.elementwise(squares, lambda x, _y: 2 * x)


@pytest.mark.parametrize(("first", "second"), [(3, 5), (5, 3)])
def test_a_length_that_the_source_of_a_rule_needs_is_assumed(first, second):
    """Its result is as long as the list that it is made of, in each call anew."""

    def mean(x):
        return np.sum(squares(x)) / len(squares(x))

    def looped(x):
        y, s = squares(x), 0.0
        for k in range(len(y)):
            s += y[k] * k
        return s

    arrays = [np.arange(1.0, n + 1.0) for n in (first, second)]
    for f in (mean, looped, lambda x: np.var(squares(x))):
        value, slope = fwdad.jit(f), fwdad.jit(fwdad.grad(f))
        for x in arrays:
            expected = central_differences(f, x)
            assert_allclose(value(x), f(x))
            assert_allclose(slope(x), expected, rtol=1e-6)
            assert_allclose(fwdad.vjp(f, x)[1](1.0), expected, rtol=1e-6)
            assert_allclose(fwdad.jacrev(f)(x), expected, rtol=1e-6)
            product = fwdad.linearize(f, x)[1] @ np.ones(len(x))
            assert_allclose(product, np.sum(expected), rtol=1e-6)
