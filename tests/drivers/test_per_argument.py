"""Jacobians with respect to several numbers, in tuples that are not taken for matrices."""

import copy
import pickle

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import UnsupportedTypeError


def decay(t, amplitude, rate, offset):
    return amplitude * np.exp(-rate * t) + offset


T = np.linspace(0, 4, 60)


@pytest.mark.parametrize("make", [fwdad.jacfwd, fwdad.jacrev])
def test_it_is_a_tuple(make):
    J = make(decay, argnums=(1, 2))(T, 2.0, 1.0, 0.5)
    by_amplitude, by_rate = J
    assert isinstance(J, tuple)
    assert len(J) == 2
    assert_allclose(by_amplitude, np.exp(-T), rtol=1e-14)
    assert_allclose(by_rate, -2 * T * np.exp(-T), rtol=1e-14)
    assert_allclose(np.stack(J), [by_amplitude, by_rate])
    for same in (pickle.loads(pickle.dumps(J)), copy.deepcopy(J)):
        assert_allclose(same[1], by_rate)


@pytest.mark.parametrize("make", [fwdad.jacfwd, fwdad.jacrev])
@pytest.mark.parametrize("method", ["lm", "trf"])
@pytest.mark.parametrize("n", [3, 60])
def test_curve_fit_says_what_to_write(make, method, n):
    """With as many data as parameters SciPy would take the transpose for the Jacobian."""
    t = T[:n]
    jac = make(decay, argnums=(1, 2, 3))
    with pytest.raises(UnsupportedTypeError, match="stack=True") as caught:
        scipy.optimize.curve_fit(
            decay, t, decay(t, 2, 1, 0.5), p0=[1.0, 1, 0], jac=jac, method=method
        )
    assert f"the matrix ({n}, 3)" in str(caught.value)
    with pytest.raises(UnsupportedTypeError, match=r"numpy\.stack"):
        np.asarray(jac(t, 2.0, 1.0, 0.5))
    stacked = make(decay, argnums=(1, 2, 3), stack=True)
    best, _ = scipy.optimize.curve_fit(
        decay, T, decay(T, 2, 1, 0.5), p0=[1.0, 1, 0], jac=stacked, method=method
    )
    assert_allclose(best, [2, 1, 0.5], rtol=1e-6)


def test_other_jacobians_are_arrays_as_before():
    product = lambda x, y: np.sum(x * y)  # noqa: E731
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert_allclose(np.asarray(fwdad.jacfwd(product, argnums=(0, 1))(x, y)), [y, x])
    assert_allclose(np.asarray(fwdad.jacfwd(lambda a, b: a * b, argnums=(0, 1))(2.0, 3.0)), [3, 2])
    assert_allclose(np.asarray(fwdad.grad(lambda a, b: a * b, argnums=(0, 1))(2.0, 3.0)), [3, 2])


def test_a_derivative_of_columns():
    f = lambda a, b: np.array([a * b**2, a])  # noqa: E731
    inner = fwdad.jacfwd(f, argnums=(0, 1))
    rows = fwdad.jacfwd(lambda a: inner(a, 3.0)[1])(2.0)
    assert_allclose(rows, [6, 0])
    whole = fwdad.jacfwd(inner)(2.0, 3.0)
    assert_allclose(whole[1], [6, 0])
    assert_allclose(fwdad.jit(inner)(2.0, 3.0)[1], [12, 0])
