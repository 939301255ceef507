"""`np.histogram` of what moves: counts are constant, edges and weights are not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.differences import central_differences

X = np.array([0.3, 1.2, 2.7, 3.1, 1.7, -0.4])
PROGRAMS = {
    "in a range": lambda x: np.histogram(x, bins=4, range=(0, 4))[0] * x[:4],
    "edges": lambda x: np.histogram(x, bins=3)[1],
    "edges by a range that moves": lambda x: np.histogram(x, 3, (x[5], 2 * x[3]))[1],
    "counts in a range that moves": lambda x: np.histogram(X, 3, (x[5] - 1, x[3] + 1))[0] * x[:3],
    "given edges": lambda x: np.histogram(x, [0, 1, x[2], 4])[0] * x[:3],
    "weights": lambda x: np.histogram(np.arange(6.0), bins=3, weights=x)[0],
    "weights that are counted": lambda x: np.histogram(x, bins=3, weights=x)[0],
    "density": lambda x: np.histogram(x, bins=2, density=True)[0],
    "density of given edges": lambda x: np.histogram(x, [-1, 1, x[3] + 1], density=True)[0],
    "a list": lambda x: np.histogram([x[0], x[1] * 2, 1.5], bins=2)[1],
    "what is stored": lambda x: np.histogram(stored(x), bins=2)[1],
    "nothing that moves": lambda x: np.histogram(X, bins=3)[0] * x[:3],
}


def stored(x):
    a = np.zeros(3)
    a[:2] = x[:2] ** 2
    return a


@pytest.mark.parametrize("name", PROGRAMS)
def test_histogram(name):
    f = PROGRAMS[name]
    want = central_differences(f, X)
    for chunk in (1, 4):
        y, found = fwdad.value_and_jacobian(f, X, mode="forward", chunk=chunk)
        assert_array_equal(y, f(X))
        assert_allclose(found, want, rtol=1e-6, atol=1e-8)
    assert_allclose(fwdad.jacrev(f)(X), want, rtol=1e-6, atol=1e-8)


def test_second_derivatives():
    def f(x):
        return np.sum(np.histogram(x, bins=3, weights=x**2)[0][1] * x[0]) ** 2

    want = central_differences(lambda x: fwdad.jacobian(f, x, mode="forward"), X)
    found = fwdad.jacobian(lambda x: fwdad.jacobian(f, x, mode="forward"), X, mode="forward")
    assert_allclose(found, want, rtol=1e-5, atol=1e-7)


def test_errors_are_numpys():
    with pytest.raises(ValueError, match="max must be larger than min"):
        fwdad.jacobian(lambda x: np.histogram(x, 3, (2, 1))[0] * x[0], X, mode="forward")
    with pytest.raises(ValueError, match="same shape"):
        fwdad.jacobian(lambda x: np.histogram(x, 3, weights=x[:2])[0], X, mode="forward")
