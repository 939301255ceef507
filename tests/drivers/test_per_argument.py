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


@pytest.mark.slow_cases("auto-jacobian", "auto-jacfwd")
@pytest.mark.parametrize("make", [fwdad.jacfwd, fwdad.jacrev, fwdad.jacobian])
@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_under_jit_it_is_the_same_tuple(make, backend):
    inner = make(decay, argnums=(1, 2, 3))
    compiled = fwdad.jit(inner, backend=backend)
    J = compiled(T[:3], 2.0, 1.0, 0.5)
    assert type(J) is type(inner(T[:3], 2.0, 1.0, 0.5))
    assert_allclose(np.stack(J), np.stack(inner(T[:3], 2.0, 1.0, 0.5)), rtol=1e-14)
    with pytest.raises(UnsupportedTypeError, match="stack=True"):  # there are three data
        scipy.optimize.curve_fit(decay, T[:3], T[:3], p0=[1.0, 1.0, 0.0], jac=compiled)
    total = lambda *at: np.sum(np.stack(inner(*at)) ** 2)  # noqa: E731
    for way in (total, fwdad.jit(total, backend=backend)):
        assert_allclose(way(T[:3], 2.0, 1.0, 0.5), np.sum(np.stack(J) ** 2), rtol=1e-13)
    slope = fwdad.derivative(lambda b: total(T[:3], 2.0, b, 0.5), 1.0)
    ends = [np.stack(inner(T[:3], 2.0, b, 0.5)) for b in (1.0 - 1e-5, 1.0 + 1e-5)]
    assert_allclose(slope, (np.sum(ends[1] ** 2) - np.sum(ends[0] ** 2)) / 2e-5, rtol=1e-8)


@pytest.mark.parametrize("make", [fwdad.grad, fwdad.jacfwd, fwdad.jacrev, fwdad.jacobian])
def test_none_for_an_argument(make):
    """As SciPy passes it for ``xdata`` of a model that has none."""
    f = lambda t, a, b: a**2 * b if t is None else t  # noqa: E731
    assert_allclose(make(f, argnums=(1, 2))(None, 3.0, 2.0), [12, 9])
    assert_allclose(fwdad.jit(make(f, argnums=2))(None, 3.0, 2.0), 9)
    with pytest.raises(UnsupportedTypeError) as caught:
        make(f)(None, 3.0, 2.0)
    assert "argument 0 is None" in str(caught.value)
    assert "Other arguments are named by argnums, the second by argnums=1" in str(caught.value)
    assert "register" not in str(caught.value)
