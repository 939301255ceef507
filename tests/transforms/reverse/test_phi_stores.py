"""Names that take over an array on a seldom side of a branch, and are written on the other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad


def seldom(x, n, every):
    best = x * 1.0
    for k in range(n):
        if k % every == every - 1:
            best = np.sin(best)
        else:
            best[k % 3] = best[k % 3 + 1] * best[k % 3]
    return np.sum(best**2)


def made_before(x, n, every):
    best, s = x * 1.0, 0.0
    for k in range(n):
        t = x * (1.0 + 0.1 * k)
        t[0] = 2.0 * t[1]
        if k % every == every - 1:
            best = t
        else:
            best[k % 3] *= 1.5
        s += best[1] ** 2
    return s + np.sum(best**2)


def three_ways(x, n, every):
    best = x * 1.0
    for k in range(n):
        if k % every == 0:
            if best[0] > 0.3:
                best = np.cos(best)
            else:
                best[0] += 0.4
            best[1] *= 0.5
        elif k % every == 1:
            best = best * best
        else:
            best[2] = best[1] * best[2]
    return np.sum(best**3)


def only_read(x, n, every):
    """What nobody writes keeps the array that it begins with, which has another name."""
    best = x
    for k in range(n):
        t = np.sin(best) * 1.1
        if np.sum(t) < np.sum(best) + 0.01 * k:
            best = t
    return np.sum(best**2) + np.sum(x * best)


def while_it_is_large(x, n, every):
    best, k = x * 1.0, 0
    while np.sum(best) > 0.5 and k < n:
        k += 1
        if k % every == 0:
            best = 0.5 * best
        else:
            best[k % 3] *= 0.9
    return np.sum(best**2) * k


def with_another(x, n, every):
    best, other = x * 1.0, x * 2.0
    for k in range(n):
        t = np.sin(other)
        if k % every == 1:
            best = t
            other = t * best
        else:
            best[0] *= other[1]
            other[2] += best[0]
    return np.sum(best * other)


def handed_on(x, n, every):
    last, best = x * 0.9, x * 1.0
    for k in range(n):
        t = 0.6 * last + 0.4 * best
        if k % every == 1:
            last, best = best, t
        else:
            best[0] *= 1.5
    return np.sum(best**2 * last)


def old_one_has_a_name(x, n, every):
    best = x * 1.0
    last = best
    for k in range(n):
        if k % every == 1:
            last = best
            best = np.sin(best)
        else:
            best[0] *= 1.5
        best[1] += last[0]
    return np.sum(best**2) + np.sum(last)


def new_one_has_a_name(x, n, every):
    best, s = x * 1.0, 0.0
    for k in range(n):
        t = np.sin(best)
        if k % every == 1:
            best = t
        else:
            best[0] *= 1.5
        t[1] = 3.0 * best[2]
        s += best[1] * t[0]
    return s + np.sum(best**2)


def of_itself(x, n, every):
    best = x * 1.0
    for k in range(n):
        if k % every == 1:
            best = best[::-1]
        else:
            best[0] *= 1.5 + best[1]
    return np.sum(best**2 * np.arange(len(x)))


def shorter(x, n, every):
    best = x * 1.0
    for k in range(n):
        if k == 1:
            best = np.sin(best[1:])
        else:
            best[0] *= 1.5
    return np.sum(best**2)


PROGRAMS = [
    seldom, made_before, three_ways, only_read, while_it_is_large, with_another, handed_on,
    old_one_has_a_name, new_one_has_a_name, of_itself, shorter,
]  # fmt: skip
X = np.array([0.3, 0.9, 0.7, 1.2])


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients(f):
    gradient = fwdad.value_and_grad(f)  # what a tape refuses is recorded
    for n, every in [(0, 2), (1, 1), (5, 2), (7, 3), (9, 4)]:
        y, expected = fwdad.value_and_jacobian(f, X, args=(n, every), mode="forward")
        found = gradient(X, n, every)
        assert_allclose(found[0], y, rtol=1e-13)
        assert_allclose(found[1], expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("f", [seldom, made_before, three_ways, only_read])
def test_second_derivatives(f):
    product = fwdad.jit(lambda x, v: fwdad.hvp(f, x, v, args=(7, 3)), backend="numpy")
    v = np.array([0.5, -1.0, 2.0, 0.1])
    hessian = fwdad.jacobian(fwdad.jacfwd(lambda x: f(x, 7, 3)), X, mode="forward")
    assert_allclose(product(X, v), hessian @ v, rtol=1e-11, atol=1e-14)


def test_compiled():
    pytest.importorskip("numba")
    gradient = fwdad.jit(fwdad.grad(three_ways))
    for n in (1, 5, 8):
        expected = fwdad.jacobian(three_ways, X, args=(n, 3), mode="forward")
        assert_allclose(gradient(X, n, 3), expected, rtol=1e-11)


@pytest.mark.parametrize("f", [seldom, made_before])
def test_what_is_saved_grows_with_what_is_overwritten(f):
    x = np.linspace(0.1, 1.0, 5000)
    for every, taken in [(61, 0), (30, 2), (20, 3)]:
        saved = fwdad.memory_report(f, x, 60, every).saved
        assert saved <= (taken + 1) * x.nbytes + 60 * 100  # and the array that it begins with
