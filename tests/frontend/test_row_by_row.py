"""`.flat`, `np.put`, `np.putmask`, `np.place` and indices apart from each other, on tapes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UntraceableError
from tests.cases.test_reverse import NO_NUMBA
from tests.differences import central_differences

X = np.array([0.7, -1.3, 2.1, 0.4, 1.6])
I, J = np.array([0, 1, 1]), np.array([2, 0, 2])


def parts_of_flat(x):
    y = np.zeros((2, 3, 2))
    y.flat[::2] = x  # six places: the values begin again
    y.flat[[1, 3, -1]] = x[:2]
    y.flat[np.array([True] * 3 + [False] * 9)] *= x[2]
    y.flat[1:4] *= x[3]
    y.flat[5] += x[4]
    y[:, ::2].flat = x[::-1]
    return y


def flat_of_views(x):
    y = np.outer(x, x)
    y.T.flat[3:9] = x
    y[::-1, 1:].flat = x**2
    np.put(y.T, [3, -1, 3], x[:2])
    return y


def without_axes(x):
    y = np.zeros(())
    np.put(y, 0, x[1])
    y.flat[:] = y.flat[:] * x[0]
    return y * x


def masks(x):
    y = np.outer(x, x)
    np.putmask(y, y > 0.5, x[:3])
    np.putmask(y.T, y < -1, [x[0], 2.0])
    np.putmask(x, x > 0, x[::-1].copy()[:2])
    np.place(y.T, y.T > 0.3, x[:3])
    return y.sum(axis=0) * x


def modes(x):
    y = np.ones((3, 2))
    np.put(y, [[7, -9], [100, 2]], x, mode="wrap")
    y.put([7, -9, 3], x[:2], mode="clip")
    np.put(x, [0, 2, 0], [x[1], x[1] * x[3]])
    return np.append(y.ravel(), x)


def in_a_loop(x):
    y = np.zeros((3, 2))
    for i in range(4):
        y.flat[i : i + 3] = x[i : i + 2] * y.flat[1] + x[0]
        np.put(y, [i, -i], x[i] * y[0, 0] + x[1])
        np.putmask(y, y > 1.0, x[:4] * 0.5)
    return y


def arrays_apart(x):
    a = np.outer(x, np.append(x, 1.0))[:4, :3].reshape(2, 2, 3)
    a[0, :, [1, 2]] = x[:2]
    a[I, ::-1, J] += x[0]
    a[I, :, J] *= x[:2]
    a[:1, :, J] = a[1:, :, I]
    first = a[I, None, :, J] * a[I[:, None], ..., J]
    return first.sum(axis=2) * a[0, :, np.array([True, False, True])].sum()


def into_one_element(x):
    y = np.zeros(1)
    y[J * 0] = x[:3]  # the last one stays
    return y * x


FUNCTIONS = [parts_of_flat, flat_of_views, without_axes, masks, modes, in_a_loop, arrays_apart,
             into_one_element]  # fmt: skip


def total(f, x):
    y = f(x)
    return np.sum(np.linspace(0.3, 1.7, y.size).reshape(y.shape) * y)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_against_differences(f):
    reference = central_differences(f, X)
    tolerance = {"rtol": 1e-8, "atol": 1e-8}
    assert_array_equal(fwdad.jit(f, backend="numpy")(X.copy()), f(X.copy()))
    for chunk in (1, 2, 3):
        assert_allclose(fwdad.jacobian(f, X, chunk=chunk), reference, **tolerance)
        found = fwdad.jit(fwdad.jacfwd(f, chunk=chunk), backend="numpy")(X)
        assert_allclose(found, reference, **tolerance)
    gradient = central_differences(lambda x: total(f, x), X)
    for found in (fwdad.grad, lambda g: fwdad.jit(fwdad.grad(g), backend="numpy")):
        assert_allclose(found(lambda x: total(f, x))(X), gradient, **tolerance)


QUICK = (without_axes, into_one_element, modes)


@pytest.mark.slow_cases("modes")
@NO_NUMBA
@pytest.mark.parametrize(
    "f", [f if f in QUICK else pytest.param(f, marks=pytest.mark.slow) for f in FUNCTIONS]
)
def test_compiled(f):
    forward = fwdad.jacobian(f, X, mode="forward")
    pushed = fwdad.jit(fwdad.jacfwd(f, chunk=2))
    assert_allclose(pushed(X), forward, rtol=1e-12, atol=1e-12)
    pulled = fwdad.jit(fwdad.grad(lambda x: total(f, x)))
    w = np.linspace(0.3, 1.7, f(X.copy()).size).reshape(f(X.copy()).shape)
    assert_allclose(pulled(X), np.tensordot(w, forward, w.ndim), rtol=1e-11, atol=1e-12)
    assert "run by Numba" in fwdad.explain(pulled)


# -- values in the memory that they go to: NumPy reads them while it writes


def place_of_a_shift(y):
    np.place(y[1:], np.ones(5, bool), y[:-1])


def place_of_the_reverse(y):
    np.place(y, np.ones(6, bool), y[::-1])  # copied first: it is not C-contiguous


def place_of_a_transpose(y):
    m = y.reshape(2, 3)
    np.place(m, m > 0, m.T)


def place_into_a_transpose(y):
    m = y.reshape(2, 3)
    np.place(m.T, m.T > 0, m)


def flat_of_the_reverse(y):
    y.flat[:] = y[::-1]


def flat_at_places(y):
    y.flat[[1, 2, 3]] = y[:3]


def flat_under_a_mask(y):
    y.flat[y > 2.5] = y[:2]


def all_of_flat(y):
    y[1:].flat = y[:-1]


def all_of_flat_again(y):
    y[1:].flat = y[:3]


def all_of_flat_of_the_reverse(y):
    y.flat = y[::-1]


def all_of_flat_of_a_matrix(y):
    m = y.reshape(2, 3)
    m.flat = m[::-1]


def all_of_flat_of_a_transpose(y):
    m = y.reshape(2, 3)
    m.flat = m.T


@pytest.mark.parametrize(
    "store",
    [
        place_of_a_shift, place_of_the_reverse, place_of_a_transpose, place_into_a_transpose,
        flat_of_the_reverse, flat_at_places, flat_under_a_mask, all_of_flat, all_of_flat_again,
        all_of_flat_of_the_reverse, all_of_flat_of_a_matrix, all_of_flat_of_a_transpose,
    ],
)  # fmt: skip
def test_overlaps(store):
    def f(x):
        y = x * 1.0
        store(y)
        return y

    x = np.arange(1.0, 7.0)
    reference = central_differences(f, x)
    for chunk in (1, 2, 3):
        y, found = fwdad.value_and_jacobian(f, x, chunk=chunk, mode="forward")
        assert_array_equal(y, f(x))
        assert_allclose(found, reference, atol=1e-9)
    assert_allclose(fwdad.jacrev(f)(x), reference, atol=1e-9)
    with pytest.raises(UntraceableError, match="while they change"):
        fwdad.trace(f, x)


def test_what_changes_places_in_a_loop_may_overlap():
    def f(x, n):
        a, b = x * 1.0, x * 2.0
        for _ in range(n):
            a.flat[1:] = b[:-1]
            a, b = b, a
        return a

    def made_inside(x, n):
        a = x * 1.0
        for _ in range(n):
            b = a * x
            a.flat[1:] = b[:-1]
        return a

    with pytest.raises(UntraceableError, match="while they change"):
        fwdad.trace(f, X, 65)  # fewer iterations are traced one by one
    for g in (f, made_inside):
        found = fwdad.jacobian(g, X, args=(3,), mode="reverse")
        assert_allclose(found, central_differences(lambda x, g=g: g(x, 3), X), rtol=1e-8, atol=1e-8)
    assert_array_equal(fwdad.trace(made_inside, X, 3)(X, 3), made_inside(X, 3))
