"""Lengths that a program shows to be equal: nothing is summed over, what is assumed is tested."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
W = np.cos(np.arange(12.0)).reshape(3, 4)
V = np.arange(4.0)


def weighed(x, w):
    return np.sum(x * w)


def product(x, v):
    return np.sum(x @ v) + np.sum((x @ v) @ x)


def column(x, v):
    return np.sum((x + v[:3, None]) * x)


@pytest.mark.parametrize(("f", "other"), [(weighed, W), (product, V), (column, V)])
def test_nothing_is_summed_over(f, other):
    gradient = fwdad.jit(fwdad.grad(f), backend="numpy")
    expected = fwdad.jacobian(f, X, args=(other,), mode="forward")
    assert_allclose(gradient(X, other), expected, rtol=1e-14)
    if f is not column:  # a slice may have one element: that is asked when it runs
        assert "sum_to" not in fwdad.show(gradient)
        assert "np.conj" not in fwdad.show(gradient)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_other_lengths_are_refused(backend):
    """The value is not needed for the gradient, so that nothing else would see the lengths."""
    if backend == "numba":
        pytest.importorskip("numba")
    gradient = fwdad.jit(fwdad.grad(weighed), backend=backend)
    assert_allclose(gradient(X, W), W)
    assert_allclose(gradient(X[:2], W[:2]), W[:2])
    assert_allclose(gradient(X, W[:1]), np.repeat(W[:1], 3, axis=0))  # a tape of its own
    assert_allclose(gradient(X[:1], W), W.sum(axis=0)[None])
    for wrong in (W[:2], W[:, :3]):
        with pytest.raises(ValueError, match="broadcast"):
            gradient(X, wrong)


def test_captured_arrays():
    gradient = fwdad.grad(lambda x: np.sum(x * W) + np.sum(x @ V))
    assert_allclose(gradient(X), W + V)


def test_windows_are_taken_again():
    """A window on what is never written is not kept, though its index is."""

    def f(x, w):
        total, at = 0.0, 0
        for k in range(4):
            total += np.sum(x * w[at : at + 3])
            at += k
        return total

    x, w = np.linspace(0.1, 1.0, 3), np.arange(12.0)
    gradient = fwdad.jit(fwdad.grad(f), backend="numpy")
    assert_allclose(gradient(x, w), fwdad.jacobian(f, x, args=(w,), mode="forward"), rtol=1e-13)
    assert "saved_at" in fwdad.show(gradient)
