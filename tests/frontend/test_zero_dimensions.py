"""Arrays without axes from outside, in gradients on tapes: factors, indices, and memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.array([0.5, 1.5, -2.0])


def factor(c):
    return lambda x: np.sum(x * c)


def quotient(c):
    return lambda x: np.mean(x / c) + np.sum(c - x * x)


def of_a_matrix(c):
    return lambda x: np.sum(np.outer(x, x) * c)


def number(c):
    return lambda x: float(c) * np.sum(x * c[()])


def index(c):
    k = np.array(2)
    return lambda x: np.sum(x * c) * x[k]


def work(c):
    w = np.array(0.0)

    def f(x):
        w[...] = np.sum(x * x)
        return w * c

    return f


@pytest.mark.every(3, of="numba")
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("make", [factor, quotient, of_a_matrix, number, index, work])
def test_gradients(make, backend):
    if backend == "numba":
        pytest.importorskip("numba")
    c = np.array(3.0)
    f = make(c)
    ways = [fwdad.grad(f)]
    ways += [fwdad.jit(d(f), backend=backend) for d in (fwdad.grad, fwdad.jacrev, fwdad.jacfwd)]
    for value in (3.0, 5.0):  # it is read at each call
        c[...] = value
        want = central_differences(f, X)
        for way in ways:
            assert_allclose(way(X), want, rtol=1e-7, atol=1e-7)


def test_a_hessian():
    c = np.array(3.0)
    f = index(c)
    want = np.array([[0.0, 0, 3], [0, 0, 3], [3, 3, 6]])
    assert_allclose(fwdad.hessian(f, X), want)
    assert_allclose(fwdad.jit(fwdad.jacfwd(fwdad.grad(f)))(X), want)
    assert_allclose(fwdad.jit(fwdad.jacrev(fwdad.grad(f)))(X), want)


@pytest.mark.parametrize("f", [
    lambda x: (x[np.ix_(range(len(x)), range(len(x)))[0]] * x).sum(),
    lambda x: (np.asarray(range(1, len(x) + 1)) * x).sum(),
    lambda x: np.multiply(range(len(x) - 1, -1, -1), x).sum(),
    lambda x: np.concatenate([range(len(x)), x]).sum() * x[0],
])  # fmt: skip
def test_ranges_of_unknown_length_are_arrays_to_numpy(f):
    compiled = fwdad.jit(fwdad.value_and_grad(f), backend="numpy")
    for n in (3, 5):
        x = np.linspace(0.3, 1.2, n)
        value, gradient = compiled(x)
        assert_allclose(value, f(x), rtol=1e-14)
        assert_allclose(gradient, fwdad.jacobian(f, x, mode="forward"), rtol=1e-13)
