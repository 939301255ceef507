"""``np.multiply.at`` and its kin under a derivative, beside loops of assignments."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

V = np.linspace(0.5, 1.5, 5)
A = np.random.default_rng(0).uniform(0.5, 2.0, (3, 4))
TWICE = np.array([0, 2, -1, 2])
ROWS, COLUMNS = np.array([0, 1, 1]), np.array([2, 0, 0])


def one_by_one(ufunc, a, places, values):
    for k, at in enumerate(places):
        a[at] = ufunc(a[at], values[k])


CASES = {
    "twice": (V, lambda y, x: np.multiply.at(y, TWICE, x[:4]),
              lambda y, x: one_by_one(np.multiply, y, TWICE, x[:4])),
    "a number": (V, lambda y, x: np.divide.at(y, TWICE, x[1]),
                 lambda y, x: one_by_one(np.divide, y, TWICE, [x[1]] * 4)),
    "a list": (V, lambda y, x: np.maximum.at(y, [1, 1, 0], x[2:] * 0.8),
               lambda y, x: one_by_one(np.maximum, y, [1, 1, 0], x[2:] * 0.8)),
    "rows": (A, lambda y, x: np.multiply.at(y, ROWS, x[1]),
             lambda y, x: one_by_one(np.multiply, y, ROWS, [x[1]] * 3)),
    "elements": (A, lambda y, x: np.hypot.at(y, (ROWS, COLUMNS), x[0, :3]),
                 lambda y, x: one_by_one(np.hypot, y, list(zip(ROWS, COLUMNS)), x[0, :3])),
    "a column": (A, lambda y, x: np.power.at(y, (ROWS, np.array([1])), 1.5),
                 lambda y, x: one_by_one(np.power, y, [(k, 1) for k in ROWS], [1.5] * 3)),
    "two axes": (V, lambda y, x: np.multiply.at(y, TWICE.reshape(2, 2), x[1:3, None] * np.ones(2)),
                 lambda y, x: one_by_one(np.multiply, y, TWICE, x[[1, 1, 2, 2]])),
    "a view": (A, lambda y, x: np.multiply.at(y.T, COLUMNS, x[:, 0]),
                 lambda y, x: one_by_one(np.multiply, y.T, COLUMNS, [x[:, 0]] * 3)),
    "of one": (V, lambda y, x: np.sqrt.at(y, TWICE),
               lambda y, x: one_by_one(lambda a, _: np.sqrt(a), y, TWICE, range(4))),
    "once": (V, lambda y, x: (np.multiply.at(y, slice(1, 3), x[0]), np.multiply.at(y, 4, x[1]),
                              np.multiply.at(y, x > 1.1, x[2])),
             lambda y, x: one_by_one(np.multiply, y, [1, 2, 4, 3, 4], x[[0, 0, 1, 2, 2]])),
    "nothing": (V, lambda y, x: np.multiply.at(y, TWICE[:0], x[:0]), lambda y, x: None),
}  # fmt: skip


def both(name):
    point, change, expected = CASES[name]

    def made(change):
        def f(x):
            y = x * 1.0
            for _ in range(2):
                change(y, x)
            return y * y * x

        return f

    return point, made(change), made(expected)


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    x, f, plain = both(name)
    expected = fwdad.jacobian(plain, x, mode="forward")
    assert_allclose(expected, central_differences(plain, x), rtol=1e-6, atol=1e-7)
    value = fwdad.jit(f, backend="numpy")(x)
    assert_allclose(value, plain(x), rtol=1e-15)
    for way in (fwdad.jacfwd, fwdad.jacrev):
        g = fwdad.jit(way(f), backend="numpy")
        assert_allclose(g(x), expected, rtol=1e-12, atol=1e-14)
    w = np.cos(np.arange(x.size)).reshape(x.shape)
    _, pullback = fwdad.vjp(fwdad.jit(f, backend="numpy"), x)
    assert pullback._kept is not None
    for _ in range(2):
        assert_allclose(pullback(w), np.tensordot(w, expected, x.ndim), rtol=1e-12, atol=1e-14)


def test_compiled():
    pytest.importorskip("numba")
    x, f, plain = both("twice")
    g = fwdad.jit(fwdad.grad(lambda x: np.sum(f(x))), backend="numba")
    assert_allclose(g(x), fwdad.jacobian(plain, x, mode="forward").sum(0), rtol=1e-12)
    assert "Numba" in fwdad.explain(g, x)


def test_what_it_reads_and_writes():
    """Values of the array itself: NumPy reads them while they change. It is recorded as it runs."""

    def f(x):
        y = x * 1.0
        np.multiply.at(y, [0, 1], y[2:4])
        return np.sum(y * y)

    expected = fwdad.jacobian(f, V, mode="forward")
    assert_allclose(fwdad.grad(f)(V), expected, rtol=1e-14)
    with pytest.raises(fwdad.errors.UntraceableError, match="stored one after another"):
        fwdad.jit(fwdad.grad(f))(V)


@pytest.mark.parametrize(("index", "error"), [([0, 7], IndexError), ([0, 1, 2], ValueError)])
def test_what_raises(index, error):
    def f(x):
        y = x * 1.0
        np.multiply.at(y, index, x[:2])
        return np.sum(y * y)

    x = V.copy()
    for g in (f, fwdad.grad(f), fwdad.jit(fwdad.grad(f), backend="numpy")):
        with pytest.raises(error):
            g(x)
        assert_allclose(x, V, rtol=0)
