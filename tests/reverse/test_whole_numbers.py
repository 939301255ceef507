"""Whole numbers and booleans in gradients: they are factors; no derivative is lost in them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad

X = np.array([0.5, 1.5, 2.5])


def mask(x):
    return np.sum((x > 1) * x)


def masks(x):
    return np.sum((x > 1) * x) + np.sum((x > 0) * x) + np.sum((x > 2) * x)


def counts(x):
    n = 0
    for i in range(3):
        if x[i] > 1:
            n += 1
    k = np.zeros(3, int)
    k[np.argmax(x)] = 2
    k[int(np.floor(x[1]))] += 1
    return np.sum(x * n * k) + np.sum(np.array([1, 2, 3]) * x)


def single(x):
    return np.float32(1.0) * np.sum((x > 1) * x)


@pytest.mark.parametrize("backend", ["numpy", "auto"])
@pytest.mark.parametrize(
    ("f", "expected"), [(mask, [0, 1, 1]), (masks, [1, 2, 3]), (counts, [1, 4, 7])]
)
def test_factors(f, expected, backend):
    if backend == "auto" and f is counts:
        pytest.skip("the other two are compiled")
    for gradient in (fwdad.grad(f)(X), fwdad.jit(fwdad.grad(f), backend=backend)(X)):
        assert gradient.dtype == np.float64
        assert_array_equal(gradient, expected)


def test_single_precision_stays():
    gradient = fwdad.jit(fwdad.grad(single), backend="numpy")(X.astype(np.float32))
    assert gradient.dtype == np.float32
    assert_array_equal(gradient, [0, 1, 1])


def cast(x):
    return np.sum(x.astype(np.int64) * x)


def truncated(x):
    return np.sum(int(x[0] * 3) * x)


def stored(x):
    y = np.zeros(3, np.int64)
    y[1] = x[0]
    return np.sum(y * x)


def added(x):
    y = np.zeros(3, np.int64)
    y[1] += int(x[0])
    return np.sum(y * x)


@pytest.mark.parametrize("f", [cast, truncated, stored, added])
def test_a_derivative_that_would_be_lost(f):
    for gradient in (fwdad.grad(f), fwdad.jit(fwdad.grad(f), backend="numpy")):
        with pytest.raises(fwdad.DualLeakError, match="derivative"):
            gradient(X)
