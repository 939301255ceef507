"""Filters of SciPy that choose an element, against differences, and what they refuse."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import ndimage, signal

import fwdad
from fwdad.errors import DualLeakError
from tests.differences import central_differences
from tests.rules.case import Draw

draw = Draw(47)
X = draw.real(5, 6)
CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])


def written(x):
    y = np.zeros((5, 6))
    return ndimage.median_filter(x, 3, output=y) * y


FILTERS = {
    "median": lambda x: ndimage.median_filter(x, 3),
    "even": lambda x: ndimage.median_filter(x, (2, 4), mode="mirror"),
    "percentile": lambda x: ndimage.percentile_filter(x, 30, size=3, mode="nearest"),
    "rank": lambda x: ndimage.rank_filter(x, -2, footprint=CROSS, mode="wrap", origin=(1, 0)),
    "beyond": lambda x: ndimage.median_filter(x, 3, mode="constant", cval=0.1),
    "all beyond": lambda x: ndimage.maximum_filter(x, 3, mode="constant", cval=9.0),
    "minimum": lambda x: ndimage.minimum_filter(x, footprint=CROSS),
    "maximum1d": lambda x: ndimage.maximum_filter1d(x, 4, axis=0, mode="nearest", origin=-1),
    "minimum1d": lambda x: ndimage.minimum_filter1d(x, 3),
    "opening": lambda x: ndimage.grey_opening(x, size=(2, 3)),
    "gradient": lambda x: ndimage.morphological_gradient(x, size=3),
    "medfilt": lambda x: signal.medfilt(x, 3),
    "order_filter": lambda x: signal.order_filter(x, CROSS, 1),
    "of a product": lambda x: ndimage.median_filter(x * x[::-1], 3) * x,
    "written": written,
}


@pytest.mark.every(2)
@pytest.mark.slow_cases("opening", "gradient")
@pytest.mark.parametrize("f", FILTERS.values(), ids=FILTERS)
def test_against_differences(f):
    want, weights = central_differences(f, X), draw.real(5, 6)
    for chunk in (1, 2, 3, 7, "auto"):
        found = fwdad.jacobian(f, X, chunk=chunk, mode="forward")
        assert_allclose(found, want, rtol=1e-8, atol=1e-9)
    assert_allclose(fwdad.jacobian(f, X, mode="reverse"), want, rtol=1e-8, atol=1e-9)
    gradient = fwdad.grad(lambda x: np.sum(weights * f(x)))
    assert_allclose(gradient(X), np.tensordot(weights, want), rtol=1e-8, atol=1e-9)
    for backend in ("numpy", "auto"):
        compiled = fwdad.jit(gradient, backend=backend)
        assert_allclose(compiled(X), gradient(X), rtol=1e-12, atol=1e-13)
        other = np.roll(X, 1)  # another order of the elements
        assert_allclose(compiled(other), gradient(other), rtol=1e-12, atol=1e-13)
    assert_array_equal(fwdad.jit(f, backend="numpy")(X), f(X))


def test_second_derivatives():
    f = lambda x: np.sum(FILTERS["median"](x**2) ** 2)  # noqa: E731
    want = central_differences(fwdad.grad(f), X)
    assert_allclose(fwdad.hessian(f, X), want, rtol=1e-6, atol=1e-7)


def test_equal_elements_have_one_chosen():
    J = fwdad.jacobian(lambda x: ndimage.maximum_filter1d(x, 3), np.ones(4))
    assert_array_equal(np.sort(J, axis=1)[:, :-1], 0.0)
    assert_array_equal(np.sum(J, axis=1), 1.0)


def test_integers_cannot_hold_a_derivative():
    with pytest.raises(DualLeakError, match="median_filter returns an array of dtype int"):
        fwdad.jacobian(lambda x: ndimage.median_filter(x, 3, output=int), X)
