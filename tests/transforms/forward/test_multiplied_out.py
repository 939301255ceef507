"""What a loop multiplies out stands in its own block, which may be a branch that is not taken."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.array([0.5313, 0.4117, 0.2171, -0.3371])


def in_a_branch(x):
    d, s = x * 0.3, 0.0
    if x[0] > 0.9:
        for y in d:
            s += y * y
    return s + x @ d


def in_branches_of_a_loop(x):
    d, s = x * 0.3, 0.0
    for k in range(3):
        if x[k] > 0.3:
            for y in d:
                s += y * y
        else:
            s += d @ d
    return s + x @ d


def squares(d):
    total = 0.0
    for y in d:
        total += y * y
    return total


def in_a_condition(x):
    d, s, k = x * 0.3, 0.0, 0
    while k < 3 and squares(d) * s < 0.1:
        s += d[k]
        k += 1
    return s + x @ d


def of_a_gradient(x):
    def grown(a):
        total = 0.0
        for y in a:
            total = total + y * y if y > 0.4 else total * 0.5 + y
        return total

    d = x * 0.3
    if x[0] > 0.9:
        x = fwdad.grad(grown)(d)
    return x @ d


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("f", [in_a_branch, in_branches_of_a_loop, in_a_condition, of_a_gradient])
def test_derivatives(f, backend):
    if backend == "numba":
        pytest.importorskip("numba")
    forward = fwdad.jit(fwdad.jacfwd(f), backend=backend)
    slopes = fwdad.jit(lambda x, v: fwdad.jvp(f, x, v)[1], backend=backend)
    for x in (X, X + 0.6, X - 0.5):
        expected = central_differences(f, x)
        assert_allclose(forward(x), expected, rtol=1e-6, atol=1e-9)
        for v in np.eye(4):
            assert_allclose(slopes(x, v), expected @ v, rtol=1e-6, atol=1e-9)
