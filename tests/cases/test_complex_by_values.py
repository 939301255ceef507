"""Functions that return real or complex numbers by the values they are given."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

scipy_linalg = pytest.importorskip("scipy.linalg")
X = np.array([0.6, 0.9])


def root(x):
    return np.sum(np.abs(scipy_linalg.sqrtm(np.array([[x[0], x[1]], [x[1], -x[0]]]))) ** 2)


def logarithm(x):
    return np.sum(np.abs(scipy_linalg.logm(np.outer(x, x) - 0.3 * np.eye(2))) ** 2)


def coefficients(x):
    return np.sum(np.abs(np.poly(np.array([x[0] + 1j, x[1] - 0.3j]))) ** 2)


@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("f", [root, logarithm, coefficients])
def test_complex(f):
    """Right where the program runs as it is; a tape is of one type."""
    expected = central_differences(f, X)
    assert_allclose(fwdad.jacfwd(f)(X), expected, rtol=1e-6)
    assert_allclose(fwdad.grad(f)(X), expected, rtol=1e-6)
    for g in (fwdad.grad(f), fwdad.jacfwd(f)):
        with pytest.raises(fwdad.errors.UntraceableError):
            fwdad.jit(g, backend="numpy")(X)


def test_real():
    def f(x):
        return np.sum(scipy_linalg.sqrtm(np.array([[3 + x[0], x[1]], [x[1], 2.0]])))

    expected = central_differences(f, X)
    assert_allclose(fwdad.jit(fwdad.grad(f), backend="numpy")(X), expected, rtol=1e-6)
