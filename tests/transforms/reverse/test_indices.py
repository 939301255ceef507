"""Loops whose ranges go by the counters of loops around: what is overwritten later, what not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

X = np.linspace(0.3, 1.2, 7)


def falling(a):
    n = a.shape[0]
    for k in range(n - 1, -1, -1):
        for j in range(k - 1, -1, -1):
            a[j] = a[j] * a[k] + np.sin(a[k])
    return np.sum(a)


def itself_first(a):
    n = a.shape[0]
    for k in range(n):
        for j in range(k, n):
            a[j] = a[j] * a[k] * 0.5
    return np.sum(a)


def summed_into_one(a):
    n = a.shape[0]
    for k in range(1, n):
        for j in range(k - 1, -1, -1):
            a[k] = a[k] + a[j] * a[k]
    return np.sum(a)


def every_second(a):
    n = a.shape[0]
    for k in range(n):
        for j in range(k + 1, n, 2):
            a[j] = a[j] + a[k] * a[j - 1]
    return np.sum(a)


def three_deep(a):
    n = a.shape[0]
    for k in range(n - 2):
        for j in range(k + 1, n - 1):
            for i in range(j, n):
                a[i] = a[i] * a[k] + a[j]
    return np.sum(a)


def both_are_written(a):
    n = a.shape[0]
    for k in range(n):
        for j in range(k):
            a[k] = a[k] * a[j]
            a[j] = a[j] * 1.1
    return np.sum(a)


def below(a):
    n = a.shape[0]
    for k in range(n - 1, 0, -1):
        for j in range(k):
            a[j] = a[j] * a[k]
    return np.sum(a)


def above(a):
    n = a.shape[0]
    for k in range(n - 1, 0, -1):
        for j in range(k, n):
            a[j] = a[j] * a[k - 1] + a[n - 1]
    return np.sum(a)


def falling_inside(a):
    n = a.shape[0]
    for k in range(n):
        for j in range(n - 1, k, -1):
            a[j] = a[j] * a[j - 1] + a[k]
    return np.sum(a)


PROGRAMS = [
    falling,
    itself_first,
    summed_into_one,
    every_second,
    three_deep,
    both_are_written,
    below,
    above,
    falling_inside,
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradient(f):
    expected = fwdad.jacobian(f, X, mode="forward")
    for g in (f, fwdad.checkpoint(f, snapshots=2)):
        assert_allclose(fwdad.jit(fwdad.grad(g), backend="numpy")(X), expected, rtol=1e-11)
