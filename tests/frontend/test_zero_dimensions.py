"""Arrays without axes: from outside, in gradients on tapes, and as points of derivatives."""

import importlib.util

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences, difference_along

NUMBA = ["numba"] if importlib.util.find_spec("numba") else []
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


VALUES = {
    "number": lambda a: a * a * np.sin(a),
    "array": lambda a: np.array(a * a * np.sin(a)),
    "constant": lambda a: 2.0,
    "python": lambda a: a * a,
}
WAYS = {
    "grad": fwdad.grad,
    "jacfwd": fwdad.jacfwd,
    "jacrev": fwdad.jacrev,
    "chunk": lambda f: fwdad.jacfwd(f, chunk=1),
    "hessian": fwdad.hessian,
    "twice": lambda f: fwdad.jacrev(fwdad.jacfwd(f)),
    "jvp": lambda f: lambda x: fwdad.jvp(f, x, x)[1],
    "vjp": lambda f: lambda x: fwdad.vjp(f, x)[1](1.0),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("f", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("x", [np.array(0.3), np.float64(0.3), 0.3], ids=lambda x: type(x).__name__)
def test_derivatives_are_of_one_kind_with_jit_and_without(way, f, x):
    expected = way(f)(x)
    for backend in ("numpy", *NUMBA):
        found = fwdad.jit(way(f), backend=backend)(x)
        assert type(found) is type(expected)
        assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    if way in (fwdad.grad, fwdad.jacfwd, fwdad.jacrev):
        assert_allclose(found, difference_along(f, x), rtol=1e-8, atol=1e-8)


def test_a_derivative_by_an_array_without_axes_is_one():
    x = np.array(0.3)
    for way in (fwdad.grad, fwdad.jacfwd, fwdad.jacrev, fwdad.hessian):
        for g in (way(VALUES["number"]), fwdad.jit(way(VALUES["number"]), backend="numpy")):
            y = g(x)
            assert type(y) is np.ndarray
            y[...] = 7.0  # it is the caller's
            assert g(x) != 7.0
    two = fwdad.jacrev(lambda a, b: a * b, argnums=(0, 1))
    for g in (two, fwdad.jit(two, backend="numpy")):
        a_part, b_part = g(x, 2.0)
        assert type(a_part) is np.ndarray
        assert type(b_part) is np.float64
