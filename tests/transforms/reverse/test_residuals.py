"""What was computed and stored is read where it lies: nothing is kept for it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences, complex_step, difference_along

RNG = np.random.default_rng(5)
SQUARE = RNG.normal(size=(5, 5)) + 5 * np.eye(5)
ROW = RNG.uniform(0.5, 1.5, 6)


def elimination(a):
    n = len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return np.sum(a * a)


def elimination_of_columns(a):
    n = len(a)
    for k in range(n):
        a[k + 1 :, k] /= a[k, k]
        for j in range(k + 1, n):
            a[k + 1 :, j] -= a[k + 1 :, k] * a[k, j]
    return np.sum(a * a)


def spelled_out(a):
    n = len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] = a[i, k] / a[k, k]
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                a[i, j] = a[i, j] - a[i, k] * a[k, j]
    return np.sum(a * a)


def recurrence(x):
    y = np.zeros(len(x) + 1, x.dtype)
    y[0] = 0.4
    for i in range(len(x)):
        y[i + 1] = np.tanh(x[i] * y[i]) + x[i]
    return np.sum(y)


def quotients(x):
    y = np.zeros(len(x), x.dtype)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = x[i - 1] / (2.0 - np.exp(-x[i]) * y[i - 1])
    return np.sum(y * y)


def overwritten_next(x):
    y = np.zeros(len(x) + 1, x.dtype)
    for i in range(len(x)):
        y[i] = np.exp(x[i]) * 0.5
        y[i + 1] = np.sin(y[i])  # which the next iteration overwrites
        y[i] *= y[i + 1]
    return np.sum(y)


def divided_twice(x):
    y = x * 1.0
    for i in range(len(x) - 1):
        y[i] /= x[i + 1]
        y[i] /= 1.0 + y[i] * y[i]
        y[i + 1] /= y[i]
    return np.sum(y * x)


def stored_over_another(x):
    y = x * 1.0
    s = 0.0
    for i in range(len(x)):
        s = s + y[i] ** 2
        t = np.exp(y[i] * x[0])
        y[i] = 5.0
        y[i] = t
    return s + np.sum(y * x)


def by_view(x):
    y = x * 1.0
    w = y[::-1]
    for i in range(len(x)):
        y[i] = np.exp(0.3 * y[i])
        w[i] /= 1.0 + x[i]
    return np.sum(y * x)


def in_a_branch(x):
    y = x * 1.0
    for i in range(len(x)):
        if x[i] > 1.0:
            y[i] /= x[i - 1] + 2.0
        else:
            y[i] = np.exp(y[i])
        if i % 2:
            y[i] = y[i] * y[i - 1]
    return np.sum(y * x)


def places_from_a_list(x):
    y = x * 1.0
    for i in np.array([2, 0, 2, 4]):
        y[i] /= 1.0 + x[i + 1]
        y[i] = np.exp(-y[i])
    return np.sum(y * x)


def of_float32(x):
    y = np.zeros(len(x), np.float32)
    for i in range(len(x)):
        y[i] = np.exp(x[i])  # rounded as it is stored
    return np.sum(y.astype(np.float64) * x)


def turned(x):
    """Sines beside cosines, which are each other's derivatives."""
    a, s = x[0], 0.0
    for i in range(len(x)):
        s = s + np.cos(a) * x[i] + np.sqrt(1.0 + s * s)
        a = a - np.sin(a) * s
    return s * a


def turned_inside(x):
    a, s = x[0], 0.3
    for i in range(len(x)):
        c = np.cos(a) * x[i]
        for k in range(1, 3):
            s = s + np.sin(a) * c
            c = c * np.sin(a * k) * np.cos(s)
        if x[i] > 1.0:
            a = a + np.sin(s) * np.cos(s)
        else:
            a = a + np.cos(s) * 0.3
        while abs(s) > 0.7:
            s = np.tanh(s) * np.sqrt(0.5 + s * s) * 0.5
    return s + a


SAVES_NOTHING = [elimination, elimination_of_columns, recurrence]
PROGRAMS = [
    *SAVES_NOTHING, quotients, spelled_out, overwritten_next, divided_twice, stored_over_another,
    in_a_branch, places_from_a_list, by_view, turned, turned_inside,
]  # fmt: skip


def argument(f):
    return SQUARE if f in (elimination, elimination_of_columns, spelled_out) else ROW


@pytest.mark.every(6)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_gradient(f):
    x = argument(f)
    by_comparing = f in (in_a_branch, turned_inside)  # complex numbers have no order
    expected = central_differences(f, x) if by_comparing else complex_step(f, x)
    rtol = 1e-7 if by_comparing else 1e-12
    given = x.copy()
    for g in (fwdad.grad(f), fwdad.jit(fwdad.grad(f), backend="numpy"), fwdad.jit(fwdad.grad(f))):
        assert_allclose(g(given), expected, rtol=rtol, atol=rtol)
    assert_allclose(fwdad.jacobian(f, x, mode="forward"), expected, rtol=rtol, atol=rtol)
    assert np.array_equal(given, x)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_pullback(f):
    x = argument(f)
    _, pullback = fwdad.vjp(f, x)
    expected = pullback(1.0)
    assert_allclose(expected, fwdad.grad(f)(x), rtol=1e-12)
    for n in (1, 2, 3):
        weights = np.arange(1.0, n + 1)
        many = pullback(weights)
        assert_allclose(many, weights.reshape(n, *[1] * x.ndim) * expected, rtol=1e-12)


@pytest.mark.parametrize("f", SAVES_NOTHING, ids=lambda f: f.__name__)
def test_nothing_is_kept(f):
    assert fwdad.memory_report(f, argument(f)).saved == 0


def test_no_function_is_called_again():
    """The reverse pass has what the program has computed: a sine, a cosine and a root each."""
    lines = fwdad.show(fwdad.jit(fwdad.grad(turned)), ROW).splitlines()
    text = "\n".join(line for line in lines if not line.strip().startswith("#"))
    assert [text.count(f"np.{name}(") for name in ("sin", "cos", "sqrt")] == [1, 1, 1]


@pytest.mark.parametrize(
    "f", [elimination, recurrence, quotients, turned], ids=lambda f: f.__name__
)
def test_second_derivatives(f):
    x = argument(f)
    v = np.linspace(-1.0, 1.0, x.size).reshape(x.shape)
    expected = complex_step_of_gradient(f, x, v)
    assert_allclose(fwdad.hvp(f, x, v), expected, rtol=1e-6, atol=1e-7)
    again = fwdad.grad(lambda z: np.sum(fwdad.grad(f)(z) * v))(x)
    assert_allclose(again, expected, rtol=1e-6, atol=1e-7)


def complex_step_of_gradient(f, x, v):
    """Differences of the complex step: neither of both is this library's."""
    return difference_along(lambda x: complex_step(f, x), x, v)


def test_what_is_rounded_as_it_is_stored():
    found = fwdad.grad(of_float32)(ROW)
    assert_allclose(found, np.exp(ROW) * (1 + ROW), rtol=1e-6)


def test_an_element_in_a_register_keeps_its_errors():
    """The loop does not run, or its index is wrong: what NumPy does is done."""

    def f(a, k, n):
        s = 0.0
        for i in range(len(a)):
            a[i] *= 2.0
            for j in range(i + 1, n):
                a[j] += a[i] * 0.5
            for _ in range(n - 5):
                s += a[k]
        return np.sum(a) + s

    for n, k in ((5, 7), (3, -9), (0, 5)):
        got, expected = ROW[:5].copy(), ROW[:5].copy()
        assert_allclose(fwdad.jit(f)(got, k, n), f(expected, k, n), rtol=1e-15)
        assert_allclose(got, expected, rtol=1e-15)
        by_step = complex_step(lambda z, k=k, n=n: f(z, k, n), ROW[:5])
        assert_allclose(fwdad.jit(fwdad.grad(f))(ROW[:5], k, n), by_step, rtol=1e-12)
    for n, k in ((6, 7), (9, 0)):
        for g in (f, fwdad.jit(f), fwdad.grad(f), fwdad.jit(fwdad.grad(f))):
            with pytest.raises(IndexError):
                g(ROW[:5].copy(), k, n)


def test_arrays_whose_elements_share_memory():
    """Rows that overlap: another index is the same element."""

    def f(a):
        for i in range(3):
            a[i, 0] += 1.0
            for j in range(1, 3):
                a[i, j] += a[i, 0]
        return np.sum(a)

    for g in (f, fwdad.jit(f), fwdad.jit(f, backend="numpy")):
        memory = np.arange(6.0)
        g(np.lib.stride_tricks.as_strided(memory, (3, 3), (8, 0)))
        assert_allclose(memory, [4, 8, 12, 3, 4, 5])
