"""Derivatives of what lists, sorts and stores of several values become on a tape."""

import bisect

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.array([0.7, 1.3, 2.1, 0.4])


def list_into_a_slice(x):
    a = x * 1.5
    a[1:3] = [x[0] ** 2, x[1]]
    a[[0, 3]] = (x[2], 2.0)
    a[:2] += [x[3] ** 2, 1.0]
    np.add.at(a, [1, 1], [x[1], x[2] ** 2])
    return a


def sorted_numbers(x):
    first, *rest = sorted(x, key=lambda v: (v - 1.1) ** 2)
    items = [x[0] ** 2, x[1], 2 * x[2]]
    items.sort(reverse=True)
    return np.array([first, rest[-1] ** 2, *items])


def sorted_pairs(x):
    pairs = sorted((v, k * v * v) for k, v in enumerate(x))
    return np.array([p[1] for p in pairs])


def put_and_compress(x):
    a, b = x * 1.5, np.outer(x, x)
    np.put(a, [0, 2, 3], x[2:] ** 2)
    np.put(b, [1, -1], x[:2] ** 2)
    return np.concatenate([a, b.ravel(), x.compress([1, 0, 1, 0]) ** 2])


def divided_and_counted(x):
    a = x * 1.0
    a //= 0.37
    a[1] //= x[0]
    return a * x + np.arange(x[0], x[0] + 2.0, 0.5).sum()


def bisected(x):
    knots = [0.0, 1.0, 2.0]
    k = bisect.bisect(knots, x[2])
    j = bisect.bisect_left([x[3], x[0], x[1]], 1.0)
    return x[k] * x[j] * np.array([1.0, x[0]])


@pytest.mark.parametrize(
    "f",
    [
        list_into_a_slice,
        sorted_numbers,
        sorted_pairs,
        put_and_compress,
        divided_and_counted,
        bisected,
    ],
)
def test_derivatives_on_a_tape(f):
    wanted = central_differences(f, X)
    for chunk in (1, 3):
        found = fwdad.jit(lambda x, n=chunk: fwdad.jacobian(f, x, chunk=n), backend="numpy")(X)
        assert_allclose(found, wanted, rtol=1e-7, atol=1e-7)

    def total(x):
        return (f(x) * np.cos(np.arange(f(X).size).reshape(f(X).shape))).sum()

    weights = np.cos(np.arange(f(X).size))
    gradient = fwdad.jit(fwdad.grad(total), backend="numpy")(X)
    assert_allclose(gradient, weights @ wanted, rtol=1e-7, atol=1e-7)
