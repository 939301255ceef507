"""Loops over elements whose lengths are compared beforehand; sums in any order; what waits."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

pytest.importorskip("numba")


def views(a, b, i, j):
    """Views whose lengths only the call knows, stored, added up, and multiplied."""
    a = a.copy()
    a[:i] += b[:j]
    a[1:i] = a[1:i] * b[0] + a[:1]
    return a, a[:i] * b[:j]


def late(a, k):
    """What is copied or computed before memory is written, and used afterwards."""
    a = a.copy()
    kept = a[:k].copy()
    double = a * 2.0
    other = np.zeros_like(a)
    triple = a * 3.0
    other[0] = 1.0  # neither `double` nor `triple` reads it
    a[0] = -1.0
    a[:k] = a[:k] + kept
    return a, double + other, triple - kept[0]


def sums(a):
    return np.sum(a), np.mean(a), np.var(a), a @ a[::-1], np.cumsum(a)


def solved(l, b):
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - l[i, :i] @ x[:i]) / l[i, i]
        x[:i] -= 0.1 * l[:i, i] * x[i]
    return np.sum(x * x)


def exchanged(b, l):
    return solved(l, b)


@pytest.fixture(scope="module")
def compiled():
    return fwdad.jit(views)


@pytest.mark.parametrize(("i", "j"), [(4, 4), (4, 1), (1, 4), (5, 9), (0, 0), (3, 1)])
def test_views(compiled, i, j):
    a, b = np.arange(1.0, 6.0), np.linspace(0.5, 1.5, 5)
    try:
        expected = views(a, b, i, j)
    except ValueError:
        with pytest.raises(ValueError, match="broadcast"):
            compiled(a, b, i, j)
        return
    for found, wanted in zip(compiled(a, b, i, j), expected, strict=True):
        assert_array_equal(found, wanted)


def test_lengths_that_do_not_fit(compiled):
    a, b = np.arange(1.0, 6.0), np.linspace(0.5, 1.5, 5)
    for i, j in [(4, 3), (3, 4), (5, 2), (2, 5)]:
        with pytest.raises(ValueError, match="broadcast"):
            compiled(a, b, i, j)


def test_what_waits_is_written_in_time():
    compiled, a = fwdad.jit(late), np.arange(1.0, 6.0)
    for k in (1, 3, 5):
        for found, wanted in zip(compiled(a, k), late(a, k), strict=True):
            assert_array_equal(found, wanted)


def test_sums():
    compiled = fwdad.jit(sums)
    for n in (1, 2, 3, 33, 1001):
        a = np.random.default_rng(n).normal(size=n)
        total, mean, variance, product, running = compiled(a)
        assert_allclose(total, math.fsum(a), atol=1e-13)
        assert_allclose([mean, variance], [np.mean(a), np.var(a)], atol=1e-13)
        assert_allclose(product, math.fsum(a * a[::-1]), atol=1e-12)
        assert_array_equal(running, np.cumsum(a))


def test_products_of_views_backwards():
    gradient = fwdad.jit(fwdad.value_and_grad(solved, argnums=(0, 1)))
    for n in (1, 2, 7):
        draw = np.random.default_rng(n)
        l, b = draw.normal(size=(n, n)) + n * np.eye(n), draw.normal(size=n)
        _, (l_bar, b_bar) = gradient(l, b)
        of_l = fwdad.jacobian(solved, l, args=(b,), mode="forward")
        of_b = fwdad.jacobian(exchanged, b, args=(l,), mode="forward")
        assert_allclose(l_bar, of_l, atol=1e-13)
        assert_allclose(b_bar, of_b, atol=1e-13)


def halved(x, n):
    """It calls itself, and `i` is a name of its own that may be outside."""
    i = n - 1
    total = np.sum(x * x) + x[i]
    return total if n < 2 else total + halved(x, i)


def test_a_called_function_checks_its_own_indices():
    compiled, x = fwdad.jit(halved), np.arange(1.0, 4.0)
    assert compiled(x, 3) == halved(x, 3)
    with pytest.raises(IndexError):
        compiled(x, 5)


def smoothed(image, steps):
    u = image.copy()
    for _ in range(steps):
        dx = np.diff(u, axis=1, append=u[:, -1:])
        dy = np.diff(u, axis=0, append=u[-1:])
        u += 0.1 * (np.roll(dx, 1, axis=1) * dx + np.roll(dy, 1, axis=0) * dy)
    return np.sum(u * u)


def test_parts_of_cotangents_in_loops(rng):
    """The cotangent of a part is reshaped; in the next iteration it is another array."""
    call = fwdad.jit(fwdad.grad(smoothed))
    x, v = rng.standard_normal((5, 4)), rng.standard_normal((5, 4))
    _, slope = fwdad.jvp(lambda x: smoothed(x, 3), x, v)
    assert_allclose(np.sum(call(x, 3) * v), slope, rtol=1e-12)
    assert "NumPy" not in fwdad.explain(call)


def written_after(x, columns, steps):
    total = 0.0
    for k in range(steps):
        a = x * (k + 1.0)
        flat = a[:, :columns].reshape(-1)  # a view only if it takes all columns
        a[0, 0] = 100.0
        total += flat[0] + flat[1] * k
    return total


def written_in_the_next(x, columns, steps):
    a = x * 1.0
    flat = a[:, :columns].reshape(-1)
    total = 0.0
    for k in range(steps):
        a[0, 0] += 1.0
        total += flat[0]
        a = x * (k + 2.0)
        flat = a[:, :columns].reshape(-1)
    return total


@pytest.mark.every(3, first=2)
@pytest.mark.parametrize("columns", [2, 4])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("f", [written_after, written_in_the_next])
def test_reshaped_views_that_are_written(f, order, columns):
    x = np.array(np.arange(1.0, 13.0).reshape(3, 4), order=order)
    assert fwdad.jit(f)(x, columns, 3) == f(x, columns, 3)
    v = x[::-1] ** 2
    found, wanted = fwdad.jit(along, static_shapes=True)(f, x, v, columns), along(f, x, v, columns)
    assert_array_equal(found, wanted)
    assert_array_equal(fwdad.jit(along)(f, x, v, columns), wanted)
    assert_array_equal(np.sum(fwdad.grad(f)(x, columns, 3) * v), wanted[1])
    if f is written_after:
        gradient = fwdad.jit(fwdad.grad(f))(x, columns, 3)
        assert_array_equal(np.sum(gradient * v), wanted[1])


def along(f, x, v, columns):
    return fwdad.jvp(lambda x: f(x, columns, 3), x, v)
