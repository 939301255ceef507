"""Loops whose whole body is vectors: sums in their order, what is kept, errors, and what stays."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.tiers import every

pytest.importorskip("numba")

from fwdad.codegen.runtime import libmvec

needs_library = pytest.mark.skipif(not libmvec.register_bits(), reason="no vector functions")
LENGTHS = [0, 1, 2, 7, 8, 9, 16, 63, 300]


def sum_of_exp(x):
    s = 0.25
    for j in range(len(x)):
        s += math.exp(x[j])
    return s


def difference(x):
    s = 0.25
    for j in range(len(x)):
        s -= np.exp(x[j])
    return s


def in_order(x, sign):
    """The sum by the same exp, added up by Python."""
    s = 0.25
    for e in fwdad.jit(lambda x: np.exp(x), backend="numba")(x):
        s += sign * e
    return s


@pytest.mark.every(3, first=1)
@pytest.mark.parametrize("n", every(2, LENGTHS))
def test_sums_keep_their_order(rng, n):
    x = rng.normal(size=n) * 20.0
    with np.errstate(all="ignore"):
        for f, sign in ((sum_of_exp, 1.0), (difference, -1.0)):
            compiled = fwdad.jit(f, backend="numba")
            assert compiled(x) == in_order(x, sign)
            assert compiled(x[::-1]) == in_order(x[::-1].copy(), sign)
            assert_array_equal(compiled(np.full(max(n, 1), -np.inf)), 0.25)  # -0.0 is not added


def softmax(x, scale):
    """Several sums, stores beside loads at other places, numbers from outside."""
    e = np.zeros_like(x)
    s, t = 0.0, 1.0
    half = 0.5 * scale
    for j in range(1, len(x) - 1):
        y = math.exp(half * x[j] - x[j + 1]) * x[j - 1]
        e[j] = y
        s += y
        t += math.sin(y) * half
    return np.sum(e * e) / (s + 10.0) + t


@pytest.mark.every(3)
@pytest.mark.parametrize("n", LENGTHS)
def test_gradients(rng, n):
    gradient = fwdad.jit(fwdad.value_and_grad(softmax, argnums=(0, 1)), backend="numba")
    x, scale = rng.normal(size=n), 0.7
    y, (x_bar, scale_bar) = gradient(x, scale)
    assert_allclose(y, softmax(x, scale), rtol=1e-14)
    assert_allclose(x_bar, fwdad.jacobian(softmax, x, args=(scale,), mode="forward"), atol=1e-13)
    expected = fwdad.derivative(lambda s: softmax(x, s), scale)
    assert_allclose(scale_bar, expected, rtol=1e-12, atol=1e-14)


@needs_library
def test_the_code_has_no_loop_over_numbers():
    for f, args in ((sum_of_exp, (np.ones(9),)), (softmax, (np.ones(9), 0.5))):
        text = fwdad.show(f, *args, backend="numba")
        assert "vector_added(" in text
        assert text.count("for j ") == text.count(": for j ")
    text = fwdad.show(fwdad.grad(sum_of_exp), np.ones(9), backend="numba")
    assert "vector_write(" in text  # what is kept for the reverse pass


def logs(x, n):
    s = 0.0
    for j in range(n):
        s += math.log(x[j])
    return s


def test_what_raises(rng):
    f = fwdad.jit(fwdad.value_and_grad(logs), backend="numba")
    x = rng.uniform(1.0, 2.0, size=21)
    assert_allclose(f(x, 21)[0], logs(x, 21), rtol=1e-14)
    assert_allclose(f(x, 21)[1], 1.0 / x, rtol=1e-15)
    with pytest.raises(IndexError, match="index 21 is out of bounds"):
        f(x, 22)
    for bad in (0.0, -1.0, -math.inf):
        x[20] = bad
        with pytest.raises(ValueError, match=r"math domain error|expected a positive input"):
            f(x, 21)
    for good in (math.nan, math.inf):
        x[20] = good
        assert_array_equal(f(x, 21)[0], logs(x, 21))
    with pytest.raises(OverflowError):
        fwdad.jit(sum_of_exp, backend="numba")(np.array([0.0, 710.0, 1.0]))
    assert fwdad.jit(sum_of_exp, backend="numba")(np.array([0.0, math.inf])) == math.inf
    assert fwdad.jit(difference, backend="numba")(np.array([0.0, 710.0])) == -math.inf


def rows(x):
    """Rows that may not be there, of iterations that do not run."""
    s = 0.0
    for i in range(5):
        for j in range(x.shape[1] if i < len(x) else 0):
            s += math.exp(x[i, j])
    return s


def test_no_row_is_read_without_an_iteration(rng):
    x = rng.normal(size=(3, 10))
    assert_allclose(fwdad.jit(rows, backend="numba")(x), rows(x), rtol=1e-14)


def read_behind(x):
    x = x.copy()
    s = 0.0
    for j in range(1, len(x)):
        x[j] = math.exp(-x[j - 1])
        s += x[j]
    return s


def product(x):
    p = 1.0
    for j in range(len(x)):
        p *= math.exp(0.1 * x[j])
    return p


def running(x):
    y = np.zeros_like(x)
    s = 0.0
    for j in range(len(x)):
        s += math.exp(x[j])
        y[j] = s
    return y


@pytest.mark.parametrize("f", [read_behind, product, running])
def test_what_depends_on_iterations_stays_in_them(f, rng):
    x = rng.normal(size=30)
    assert "vector_added" not in fwdad.show(f, x, backend="numba")
    assert_allclose(fwdad.jit(f, backend="numba")(x), f(x), rtol=1e-13)


def many_rows(x):
    total = 0.0
    y = np.zeros(len(x))
    for i in range(len(x)):
        s = 0.0
        for j in range(x.shape[1]):
            s += math.exp(x[i, j])
        y[i] = math.log(s)
    for i in range(len(x)):
        total += y[i]
    return total


def test_on_several_cores(rng):
    x = rng.normal(size=(300, 333))
    f = fwdad.jit(many_rows, backend="numba", parallel=True)
    assert_allclose(f(x), many_rows(x), rtol=1e-13)
    if libmvec.register_bits():
        assert "vector_added" in fwdad.show(f, x, backend="numba")
    assert f(x) == fwdad.jit(many_rows, backend="numba")(x)
