"""`np.nanmedian` along axes of arrays that are short, without a tape and on one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.differences import difference_along

A = np.random.default_rng(3).normal(size=(4, 5, 3))
A[0, 1, 2] = A[3, 2, 1] = A[2, 2, 1] = A[1, 1, 1] = np.nan


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), None])
@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_medians_beside_nan(axis, keepdims, chunk):
    def f(a):
        return np.nanmedian(a, axis=axis, keepdims=keepdims)

    directions = np.random.default_rng(4).normal(size=(3, *A.shape))
    y, y_dot = fwdad.jvp(f, A, directions, chunk=chunk)
    assert_array_equal(y, f(A))
    for k, v in enumerate(directions):
        assert_allclose(y_dot[k], difference_along(f, A, v), rtol=1e-6, atol=1e-8)
    weights = np.cos(np.arange(np.size(y))).reshape(np.shape(y))
    x_bar = fwdad.vjp(lambda a: f(a) * weights, A)[1](np.ones(np.shape(y)))
    assert_allclose(np.sum(x_bar * directions[0]), np.sum(weights * y_dot[0]), rtol=1e-12)


def test_medians_into_an_array():
    def f(a):
        out = np.empty((4, 3)) * a[0, 0, 0]
        np.nanmedian(a, axis=1, out=out)
        return out * 2

    assert_allclose(
        fwdad.jvp(f, A, A)[1], fwdad.jvp(lambda a: 2 * np.nanmedian(a, axis=1), A, A)[1]
    )


def test_rows_of_nan_warn():
    a = A.copy()
    a[0, :, 0] = np.nan
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        y, y_dot = fwdad.jvp(lambda a: np.nanmedian(a, axis=1), a, np.ones_like(a))
    assert np.isnan(y[0, 0])
    assert np.count_nonzero(np.isnan(y)) == 1
    assert_array_equal(y_dot[1:], 1.0)
