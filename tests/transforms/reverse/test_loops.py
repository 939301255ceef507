"""Numbers that a loop begins with, and that it reads from outside, too."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

X = np.linspace(0.4, 1.1, 5)


def power(x):
    s = x
    for _ in range(4):
        s = s * x
    return s


def left_early(x):
    s, k = x, 0
    while True:
        k += 1
        if k % 2:
            continue
        s = s * x
        if k > 3:
            break
    return s


def nested(x):
    s = x[0] * x[1]
    t = s
    for k in range(3):
        if k > 0:
            for j in range(2):
                t = t * s
                s = s + t * x[j]
        t = t + s
    return t * s


def array(x):
    u = x
    for _ in range(3):
        u = u * x
        if u[0] > 0.5:
            u = u + x
    return np.sum(u)


@pytest.mark.parametrize("snapshots", [None, 2])
@pytest.mark.parametrize(("f", "x"), [(power, 1.1), (left_early, 1.1), (nested, X), (array, X)])
def test_gradient(f, x, snapshots):
    expected = fwdad.jacobian(f, x, mode="forward")
    made = f if snapshots is None else fwdad.checkpoint(f, snapshots=snapshots)
    assert_allclose(fwdad.jit(fwdad.grad(made), backend="numpy")(x), expected, rtol=1e-13)


def test_closed_form():
    assert fwdad.jit(fwdad.grad(power))(1.1) == pytest.approx(5 * 1.1**4, rel=1e-14)
