"""Axes, shapes and the like that come from outside, as numbers, lists and arrays."""

import numpy as np
import pytest
import scipy.special
from numpy.testing import assert_allclose

import fwdad
from tests.differences import difference_along
from tests.tiers import every

A = np.random.default_rng(0).normal(size=(2, 3, 4))
V = A[0, 0]
D = np.random.default_rng(1).normal(size=A.shape)

CASES = {
    "sum": (lambda a, o: np.sum(a, axis=o), A, 1),
    "diff axis": (lambda a, o: np.diff(a, axis=o), A, 1),
    "diff n": (lambda a, o: np.diff(a, n=o, axis=1), A, 2),
    "take_along_axis": (
        lambda a, o: np.take_along_axis(a, np.argsort(a, axis=0), axis=o), A, 0),
    "take": (lambda a, o: np.take(a, [0, 1], axis=o), A, 1),
    "transpose": (np.transpose, A, (2, 0, 1)),
    "transpose of a vector": (np.transpose, V, 0),
    "a.transpose": (lambda a, o: a.transpose(o), A, (2, 0, 1)),
    "moveaxis": (lambda a, o: np.moveaxis(a, o, (0, 1)), A, (2, 0)),
    "flip": (np.flip, A, (0, 1)),
    "reshape": (np.reshape, A, (4, -1)),
    "a.reshape": (lambda a, o: a.reshape(o), A, (4, 6)),
    "resize": (np.resize, A, (3, 3)),
    "tile": (np.tile, A, (2, 1, 1)),
    "broadcast_to": (np.broadcast_to, V, (2, 4)),
    "zeros": (lambda a, o: np.zeros(o) + a[0, 0, 0], A, (2, 2)),
    "eye": (lambda a, o: np.eye(o) * a[0, 0, 0], A, 3),
    "pad": (np.pad, V, (1, 2)),
    "delete": (lambda a, o: np.delete(a, o, axis=1), A, (0, 2)),
    "split": (lambda a, o: np.split(a, o, axis=2)[1], A, 2),
    "tensordot": (lambda a, o: np.tensordot(a, a, axes=(o, o)), A, (0, 1)),
    "unravel_index": (lambda a, o: a[np.unravel_index(5, o)], A, (2, 3, 4)),
}  # fmt: skip
WAYS = {
    "python": lambda o: o,
    "numpy": lambda o: tuple(map(np.int64, o)) if isinstance(o, tuple) else np.int64(o),
    "list": lambda o: list(o) if isinstance(o, tuple) else o,
    "array": np.array,
}


@pytest.mark.every(7)
@pytest.mark.parametrize("way", every(3, WAYS))
@pytest.mark.parametrize("case", every(2, CASES))
def test_options(case, way):
    g, x, option = CASES[case]
    option = WAYS[way](option)
    try:
        want = g(x, option)
    except (TypeError, IndexError, ValueError):
        pytest.skip("NumPy does not take it so")

    def f(x):
        return g(x, option)

    direction = D.ravel()[: x.size].reshape(x.shape)
    y_dot = difference_along(f, x, direction)
    weights = np.cos(np.arange(np.size(want))).reshape(np.shape(want))

    def loss(x):
        return np.sum(weights * f(x))

    near = {"rtol": 1e-6, "atol": 1e-7}
    assert_allclose(fwdad.jvp(f, x, direction)[1], y_dot, **near)
    assert_allclose(np.vdot(fwdad.grad(loss)(x), direction), np.sum(weights * y_dot), **near)
    assert_allclose(fwdad.jit(f)(x), want)
    compiled = fwdad.jit(fwdad.grad(loss))(x)
    assert_allclose(np.vdot(compiled, direction), np.sum(weights * y_dot), **near)
    assert_allclose(np.tensordot(fwdad.jit(fwdad.jacfwd(f))(x), direction, x.ndim), y_dot, **near)


def test_the_first_argument_is_no_option_whatever_its_name():
    def f(x, k):
        s = np.identity(x.shape[0]) @ x
        for n in range(k):
            s = s + scipy.special.polygamma(n, x)
        return s

    x = np.array([0.6, 1.3, 2.1])
    compiled = fwdad.jit(fwdad.jacfwd(f), backend="numpy")
    for k in (1, 3):
        want = difference_along(lambda x, k=k: f(x, k), x, np.ones(3))
        assert_allclose(compiled(x, k) @ np.ones(3), want, rtol=1e-7)


@pytest.mark.parametrize("function", [scipy.special.polygamma, scipy.special.zeta])
def test_orders_in_a_list(function):
    x = np.array([0.6, 1.3, 2.1])

    def f(x):
        return function([2, 3, 4], x)

    want = difference_along(f, x, np.ones(3))
    assert_allclose(fwdad.jvp(f, x, np.ones(3))[1], want, rtol=1e-7)
    assert_allclose(fwdad.jacrev(f)(x) @ np.ones(3), want, rtol=1e-7)
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x) @ np.ones(3), want, rtol=1e-7)


def test_arrays_of_axes_are_compared_at_each_call():
    axes = np.array([2, 0, 1])
    f = fwdad.jit(lambda a: np.transpose(a, axes))
    assert f(A).shape == (4, 2, 3)
    axes[:] = [1, 0, 2]
    assert f(A).shape == (3, 2, 4)


def test_an_array_that_says_a_shape_is_not_written_in_the_program():
    def f(a):
        shape = np.array([4, 6])
        b = np.reshape(a, shape)
        shape[0] = 3
        return np.sum(b) * shape[0]

    with pytest.raises(fwdad.errors.UntraceableError, match="serve as a shape or as axes"):
        fwdad.jit(f)(A)
    assert_allclose(fwdad.grad(f)(A), np.full(A.shape, 3.0))


def test_a_captured_name_may_hold_another_kind_of_value_later():
    axis = 0

    def f(x):
        return np.sum(np.sum(x, axis=axis) ** 2)

    gradient, compiled = fwdad.grad(f), fwdad.jit(fwdad.grad(f))
    for axis in (0, (0, 1), np.array(1), None, [2][0], np.int64(1)):
        want = fwdad.jacobian(f, A, mode="forward")
        assert_allclose(gradient(A), want)
        assert_allclose(compiled(A), want)
