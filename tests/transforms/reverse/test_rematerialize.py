"""What costs little is computed again in the reverse pass, where its operands are there again."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import difference_along

M = np.arange(20.0).reshape(4, 5) / 20 + 0.3


def restored(x):
    """Columns that the next step overwrites, and that are restored for the product."""
    p, q = np.zeros_like(x), x.copy()
    for _ in range(3):
        for j in range(1, x.shape[1]):
            p[:, j] = 0.5 / (2.0 + p[:, j - 1])
            q[:, j] = (x[:, j] - q[:, j - 1]) / (0.5 * p[:, j - 1] + 2.0)
        for j in range(x.shape[1] - 2, -1, -1):
            q[:, j] = p[:, j] * q[:, j + 1] + q[:, j]
    return np.sum(q)


def overwritten_between(x):
    """The same, but the column changes before the quotient is reversed."""
    p, q = x.copy(), x.copy()
    for _ in range(2):
        for j in range(1, x.shape[1]):
            a = 0.5 * p[:, j - 1] + 2.0
            p[:, j - 1] = p[:, j] * q[:, j]
            q[:, j] = q[:, j - 1] / a
            p[:, j] = p[:, j] * p[:, j - 1]
    return np.sum(q * p)


def overwritten_in_a_loop_between(x):
    p, q = x.copy(), x.copy()
    for _ in range(2):
        for j in range(1, x.shape[1]):
            a = 0.5 * p[:, j - 1] + 2.0
            for i in range(x.shape[0]):
                p[i, j - 1] = p[i, j] * q[i, j]
            q[:, j] = q[:, j - 1] / a
            p[:, j] = p[:, j] * p[:, j - 1]
    return np.sum(q * p)


def overwritten_where_it_is_used(x):
    """The quotient is taken in a loop that overwrites what its divisor was made of."""
    p, q = x.copy(), x.copy()
    for j in range(1, x.shape[1]):
        a = 0.5 * p[:, j] + 2.0
        for k in range(3):
            q[:, j] = q[:, j] / a + p[:, j] * q[:, j]
            p[:, j] = p[:, j] * q[:, j] * (k + 1)
    return np.sum(q * p)


def on_one_side(x):
    p, q = x.copy(), x.copy()
    for j in range(1, x.shape[1]):
        a = 0.5 * p[:, j - 1] + 2.0
        if x[0, j] > 0.42:
            q[:, j] = q[:, j] / a + p[:, j]
            p[:, j] = p[:, j] * q[:, j] * a
        else:
            p[:, j - 1] = q[:, j] * a
    return np.sum(q * p)


def not_overwritten(x):
    """Nothing would be restored for it: kept is one array an iteration, not two."""
    p = x.copy()
    total = 0.0
    for j in range(x.shape[1]):
        a = x[:, j] * 2.0 + 1.0
        total += np.sum(np.sin(a) / a)
        p[:, j] = a
    return total + np.sum(p)


PROGRAMS = [restored, overwritten_between, overwritten_in_a_loop_between,
            overwritten_where_it_is_used, on_one_side, not_overwritten]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradient(f):
    wanted = fwdad.jacobian(f, M, mode="forward")
    assert_allclose(fwdad.grad(f)(M), wanted, rtol=1e-11)
    v = np.cos(np.arange(20.0)).reshape(4, 5)
    assert_allclose(np.sum(wanted * v), difference_along(f, M, v), rtol=1e-6)


def pushes(f):
    return fwdad.show(fwdad.value_and_grad(f), M, backend="tape").count("push(")


def test_what_is_kept():
    assert pushes(restored) == 1  # the columns of p that are restored, not the divisors
    report = fwdad.memory_report(fwdad.value_and_grad(restored), M)
    assert report.saved == 3 * 4 * 4 * 8
    assert pushes(overwritten_between) >= 3  # beside p's two columns the divisor


def test_second_derivatives():
    x = M[:, :3].copy()
    h = fwdad.hessian(restored, x)
    g = fwdad.jacobian(fwdad.grad(restored), x, mode="forward")
    assert_allclose(h, g, rtol=1e-9, atol=1e-12)


def test_checkpointed():
    g = fwdad.grad(fwdad.checkpoint(snapshots=2)(restored))
    assert_allclose(g(M), fwdad.grad(restored)(M), rtol=1e-13)


def packed(x):
    """Columns of a triangle one behind the other; the last one may be broadcast."""
    n = 4
    u = np.ones(n)
    total = 0.0
    for i in range(n):
        at = 0
        for c in range(n - 1):
            u[c + 1 :] += np.sin(x[i, at : at + n - 1 - c]) * u[c]
            at += n - 1 - c
        total += u @ u
    return total


def test_the_length_of_a_view_is_that_of_the_view_taken_again():
    x = np.linspace(0.1, 0.9, 24).reshape(4, 6)
    assert_allclose(fwdad.grad(packed)(x), fwdad.jacobian(packed, x, mode="forward"), rtol=1e-11)
    code = fwdad.show(fwdad.value_and_grad(packed), x, backend="tape")
    inner = code.partition("for c in")[2].partition("total")[0]
    assert "push(" in inner
    assert not any(".shape" in line for line in inner.splitlines() if "push(" in line), inner
