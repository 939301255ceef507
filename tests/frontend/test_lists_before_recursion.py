"""Functions that call themselves, behind a list that has grown."""

import numpy as np
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences


def chosen(v):
    out = [0.5]
    for k in range(len(v)):
        if v[k] > 0.1:
            out.append(v[k] * k)
    return np.array(out)


def halved(v, n):
    if n <= 1 or len(v) < 2:
        return v
    return np.concatenate([v[:1] * 0.5, halved(v[1:] + 0.1, n - 1)])


def f(a):
    out = []
    for row in np.outer(a, a):
        if row[0] > -5.0:
            out.append(row * 2.0)
    return np.sum(halved(chosen(a), len(a)) ** 2) + np.sum(np.array(out))


def test_recursion_behind_a_list_that_grows():
    traced, gradient = fwdad.jit(f, backend="numpy"), fwdad.jit(fwdad.grad(f), backend="numpy")
    for a in (np.array([0.5, -1.0, 2.0]), np.array([0.7, 0.3, 0.9, -0.4, 1.1])):
        assert_allclose(traced(a), f(a), rtol=1e-14)
        assert_allclose(gradient(a), central_differences(f, a), rtol=1e-7, atol=1e-7)
