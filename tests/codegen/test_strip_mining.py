"""Functions of numbers in loops, computed ahead: the same returns, errors in their iteration."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

pytest.importorskip("numba")

from fwdad.codegen.runtime import libmvec

needs_library = pytest.mark.skipif(not libmvec.register_bits(), reason="no vector functions")


def logsumexp(x):
    total = 0.0
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += math.exp(x[i, j] - x[i, 0])
        total += math.log(s)
    return total


def neighbours(x):
    """Elements beside the counter, several functions, and a store."""
    y = np.zeros_like(x)
    scale = 0.5
    for j in range(1, len(x) - 1):
        y[j] = np.sin(scale * x[j + 1] - 2.0 * x[j - 1]) * math.tanh(-x[j]) + np.exp(x[j]) * j
    return y


def logarithms(x, n):
    total = 0.0
    for j in range(n):
        total += math.log(x[j]) * j
    return total


@pytest.fixture(scope="module")
def compiled():
    found = {f: fwdad.jit(f, backend="numba") for f in (logsumexp, neighbours, logarithms)}
    found["grad"] = fwdad.jit(fwdad.value_and_grad(logsumexp), backend="numba")
    return found


@needs_library
def test_the_code_has_a_vector_function():
    x = np.ones((2, 3))
    assert "vector_exp(" in fwdad.show(logsumexp, x, backend="numba")
    assert fwdad.show(neighbours, x[0], backend="numba").count("vector_write") == 3


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 511, 512, 513, 1100])
def test_any_length(compiled, n):
    x = np.random.default_rng(n).normal(size=(3, n))
    assert_allclose(compiled[logsumexp](x), logsumexp(x), rtol=1e-14)
    assert_allclose(compiled[neighbours](x[0]), neighbours(x[0]), rtol=1e-13, atol=1e-13)
    assert_allclose(compiled[neighbours](x[:, 0]), neighbours(x[:, 0]), rtol=1e-13, atol=1e-13)
    value, gradient = compiled["grad"](x)
    e = np.exp(x - x[:, :1])
    expected = e / np.sum(e, axis=1, keepdims=True)
    expected[:, 0] -= 1.0
    assert_allclose(value, logsumexp(x), rtol=1e-14)
    assert_allclose(gradient, expected, rtol=1e-13, atol=1e-14)


def test_what_raises_does_so_in_its_iteration(compiled):
    f = compiled[logarithms]
    x = np.arange(1.0, 41.0)
    assert_allclose(f(x, 40), logarithms(x, 40), rtol=1e-14)
    with pytest.raises(IndexError, match="out of bounds"):
        f(x, 41)
    x[20] = -1.0
    with pytest.raises(ValueError, match="math domain error"):
        f(x, 41)
    assert_allclose(f(x, 20), logarithms(x, 20), rtol=1e-14)
    with pytest.raises(OverflowError):
        compiled[logsumexp](np.array([[0.0, 1.0, 800.0]]))


def changed(x):
    """What an iteration reads, an earlier one has written."""
    x = x.copy()
    for j in range(len(x) - 1):
        x[j + 1] = x[j + 1] + np.sin(x[j])
    return x


def carried(x):
    s = 0.0
    for j in range(len(x)):
        s = math.sin(s + x[j])
    return s


def behind(x):
    """Elements that are counted from the end at first."""
    s = 0.0
    for j in range(len(x)):
        s += math.sin(x[j - 1])
    return s


def left(x):
    s = 0.0
    for j in range(len(x)):
        if x[j] > 1.0:
            break
        s += math.sin(x[j])
    return s


@pytest.mark.parametrize("f", [changed, carried, behind, left])
def test_what_depends_on_iterations_stays_in_them(f):
    x = np.random.default_rng(0).uniform(size=30)
    assert "vector_" not in fwdad.show(f, x, backend="numba")
    assert_allclose(fwdad.jit(f, backend="numba")(x), f(x), rtol=1e-14)
