"""Arrays that one way of a branch leaves out: compiled code has stand-ins, which are copied."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.tiers import every

pytest.importorskip("numba")


def of_known_length(x):
    """What only one way needs is kept in each iteration."""
    u = np.zeros((2, 4))
    u[:] = x
    s = 0.0
    for i in range(4):
        if u[0, i] > 0.2:
            w = u[:, 1:3]
            w *= np.cos(w)
        s += u[1, i] * u[0, i]
    return s + np.sum(u)


def of_equal_lengths(x):
    """The views of both ways are of one length; one way needs it before its loop."""
    u = x.copy()
    v = np.sin(2 * x)
    s = x[0] * x[1]
    if s * v[5] > 0.1:
        u[2:6] -= u[2:6]
    else:
        for i in range(4, 0, -1):
            v[2:6] *= np.cos(v[1:5]) + s * v[2:6]
            v[2] += np.sin(v[i + 1])
        v[::-1] += np.sin(u[::-1]) * v[:]
    u[1] = np.sum(u[1:4] ** 2)
    return np.sum(u * v)


def left_on_a_stack(x):
    """The same in a loop: the lengths of what is taken off a stack."""
    u = x.copy()
    v = np.sin(2 * x)
    s = x[0] * x[1]
    for i in range(3):
        if v[i] > 0.1:
            u[2:6] *= u[2:6] * v[2:6]
        else:
            for _ in range(2):
                v[2:6] *= np.cos(v[1:5]) + s * v[2:6]
        v[i + 1] = v[i + 1] * u[i] - 0.1
    return np.sum(u * v)


POINT = np.array([0.7, -0.4, 1.1, 0.3, -0.9, 0.5])
CASES = [
    (of_known_length, np.linspace(-0.5, 0.9, 8).reshape(2, 4)[:, ::-1].copy()),
    (of_equal_lengths, POINT),
    (of_equal_lengths, np.abs(POINT)),
    (left_on_a_stack, POINT),
    (left_on_a_stack, -POINT),
]


@pytest.mark.every(3)
@pytest.mark.parametrize(("f", "x"), every(2, CASES))
def test_stand_ins_are_not_looked_into(f, x):
    y, gradient = fwdad.jit(fwdad.value_and_grad(f), backend="numba")(x)
    assert_allclose(y, f(x), rtol=1e-13)
    expected = fwdad.jacobian(f, x, mode="forward")
    assert_allclose(gradient, expected, rtol=1e-11, atol=1e-12)
