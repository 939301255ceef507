"""Ufuncs' methods, ``np.r_``, ``np.ndindex`` and the like: traced, and differentiated both ways."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view as views

import fwdad
from tests.differences import central_differences

X = np.linspace(0.3, 1.7, 6)


def matrix(x):
    return np.outer(x, np.arange(1.0, 4))


RATES = [0.5, -1.25, 3.0]


def by_items(x):
    """Items of lists of numbers at places that are computed, one of them with derivatives."""
    own, s = [x[0] * 2, x[1] * x[2], np.sin(x[3])], x * 0.0
    for i in range(len(x)):
        k = i % len(RATES)
        s[i] = RATES[k] * x[i] + own[k - 1] ** 2
    return s


def cells(x):
    """Views of an array that is written afterwards."""
    y = x * 2.0
    a, b = np.broadcast_arrays(y, np.ones((2, 1)))
    before = a * b
    y[0] = x[1] ** 2
    return a + before


def made_by_the_class(x):
    made = np.ndarray((2, len(x)), dtype=x.dtype)
    made[0] = x**2
    made[1] = made[0] * np.sin(x)
    return made


PROGRAMS = {
    "items at computed places": by_items,
    "ndarray": made_by_the_class,
    "broadcast_arrays": lambda x: np.multiply(*np.broadcast_arrays(x, matrix(x).T)),
    "broadcast_arrays, of cells": cells,
    "add.reduce": lambda x: np.add.reduce(matrix(x), axis=1),
    "multiply.reduce": lambda x: np.multiply.reduce(x),
    "maximum.reduce": lambda x: np.maximum.reduce(matrix(x)),
    "add.accumulate": lambda x: np.add.accumulate(matrix(x), axis=1),
    "multiply.accumulate": lambda x: np.multiply.accumulate(x),
    "multiply.outer": lambda x: np.multiply.outer(x, x),
    "subtract.outer": lambda x: np.subtract.outer(matrix(x), x[:2]),
    "power.outer of a number": lambda x: np.power.outer(x, 3),
    "r_": lambda x: np.r_[x, 0.0, x[1:3] ** 2, 1:3],
    "r_ of rows": lambda x: np.r_[matrix(x), matrix(x)[:1]],
    "c_": lambda x: np.c_[x, x**2, matrix(x)],
    "c_ of numbers": lambda x: np.c_[x[0], 2, x[1]],
    "s_": lambda x: x[np.s_[1:3]] * x[np.index_exp[2:4]],
    "ndindex": lambda x: sum(matrix(x)[k] * k[0] for k in np.ndindex(6, 3)),
    "ndindex of a shape": lambda x: sum(x[k] * k[0] for k in np.ndindex(x.shape)),
    "ndenumerate": lambda x: sum(k[0] * v for k, v in np.ndenumerate(x)),
    "mgrid": lambda x: np.sum(np.mgrid[0 : len(x), 1:3][0] * np.sin(x[:, None] * 2), axis=1),
    "mgrid of values": lambda x: np.mgrid[x[0] : 2.0 : 0.5, -1:2][0] * x[1],
    "mgrid of counts": lambda x: np.mgrid[x[0] : x[1] : 3j, 0 : len(x) : 2j].sum(axis=(1, 2)),
    "mgrid of one axis": lambda x: np.mgrid[0 : len(x)] * x + np.mgrid[x[0] : x[2] : 6j],
    "ogrid": lambda x: np.prod(np.ogrid[: len(x), 2:8:2][1]) * x + np.ogrid[0 : len(x)],
    "item": lambda x: x * (x[None, :1].item() + (x[:2] @ x[1:3, None]).item()),
    "view": lambda x: x.view() * 2,
    "a reduction's start": lambda x: np.add.reduce(x, initial=x[0]),
    "a sum's start": lambda x: np.sum(matrix(x), axis=0, initial=x[0] ** 2),
    "a maximum's start": lambda x: np.max(x, where=x < 1, initial=x[1]),
    "a minimum's start": lambda x: np.min(x, initial=x[0] * 0.1),
    "a product's start": lambda x: np.prod(x, initial=x[2]),
}


@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_derivatives(f):
    expected = central_differences(f, X)
    value = fwdad.jit(f, backend="numpy")(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-15)
    assert np.result_type(value) == np.result_type(f(X))
    for wrap in (fwdad.jacfwd, fwdad.jacrev):
        for found in (fwdad.jit(wrap(f), backend="numpy")(X), wrap(f)(X)):
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("number", [0, 0.0, np.float32(1), np.float64(1), 1j])
def test_numbers_in_r_widen_as_numpy_says(number):
    x = X.astype(np.float32)

    def f(x):
        return np.r_[x, number]

    assert fwdad.jit(f, backend="numpy")(x).dtype == f(x).dtype


def test_directives_are_refused():
    with pytest.raises(fwdad.errors.UntraceableError, match=r"directive.*concatenate"):
        fwdad.trace(lambda x: np.r_["0,2", x, x], X)


def test_short_slices_have_known_lengths():
    def f(x):
        return x[:1] * x + x[-1:] + x[1:2] * x[::-1][:1] + np.sum(x[:2]) + x[-2:-1]

    tape = fwdad.trace(f, X)
    for n in (2, 3, 5):
        x = np.arange(1.0, n + 1)
        np.testing.assert_array_equal(tape(x), f(x))
    np.testing.assert_array_equal(fwdad.jit(f, backend="numpy")(X[:2]), f(X[:2]))


VIEWED = {
    "longer than samples": lambda x: views(np.concatenate([x, x]), 5),
    "in two axes": lambda x: views(np.pad(np.outer(x, x), 1, mode="reflect"), (3, 4)),
    "of an axis twice": lambda x: views(x[x > -9.0], (3, 2), axis=(0, 0)),
    "of unknown length": lambda x: views(np.outer(x, x), len(x) // 2, axis=-1)[:, ::2],
}


@pytest.mark.parametrize("name", VIEWED)
def test_sliding_windows(name):
    def f(x):
        return np.sum(VIEWED[name](x) ** 3)

    expected, x = fwdad.jacobian(f, X, chunk=4), np.linspace(0.2, 1.1, 7)
    for derive in (fwdad.grad, fwdad.jacfwd):
        compiled = fwdad.jit(derive(f), backend="numpy")
        np.testing.assert_allclose(compiled(X), expected, rtol=1e-12)
        np.testing.assert_allclose(compiled(x), fwdad.jacobian(f, x), rtol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_item_of_more_than_one_element(backend):
    f = fwdad.jit(lambda x: x[1:].item() * 2, backend=backend)
    assert f(np.array([1.0, 3.0])) == 6.0
    with pytest.raises(ValueError, match="an array of size 1"):
        f(X)
    assert f(np.array([1.0, 3.0])) == 6.0


def test_places_outside_of_a_list_raise_as_they_do():
    def f(x):
        return RATES[int(np.argmax(x))]

    g = fwdad.jit(f)
    assert g(np.array([1.0, 2.0])) == f(np.array([1.0, 2.0]))
    assert type(g(np.array([1.0, 2.0]))) is float
    with pytest.raises(IndexError):
        g(X)


def test_arrays_on_memory_that_is_given_are_refused():
    with pytest.raises(fwdad.errors.UntraceableError):
        fwdad.jit(lambda x: np.ndarray((2,), buffer=x) * 2)(X)


def written_after(x):
    y = x * 2.0
    z = np.array(y, copy=None)  # y itself
    y[0] = x[1] ** 2
    return z * x


def test_array_that_copies_where_it_must():
    x = np.array([0.3, 1.2, -0.4])
    wanted = fwdad.jacobian(written_after, x)
    np.testing.assert_allclose(wanted[0], [x[1] ** 2, 2 * x[0] * x[1], 0.0])
    for transform in (fwdad.jacfwd, fwdad.jacrev):
        found = fwdad.jit(transform(written_after), backend="numpy")(x)
        np.testing.assert_allclose(found, wanted)


STEPS = {
    "stop by name": lambda n: np.arange(1, stop=n + 1),
    "all by name": lambda n: np.arange(start=1, stop=n + 1, step=2),
    "step by name": lambda n: np.arange(n, step=2),
    "floats by name": lambda n: np.arange(0.5, stop=n * 1.3, step=n / 8),
    "a float by name": lambda n: np.arange(n * 1.3, step=0.5),
    "dtype by position": lambda n: np.arange(0, n, 1, np.float32),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("of", [int, float])
def test_steps_by_name(name, of):
    """The length is not that of the arguments by position alone."""

    def f(x):
        return (2 * STEPS[name](of(x.shape[0])) - 1) / (2 * np.sum(x))

    got = fwdad.jit(f, backend="numpy")(X)
    np.testing.assert_array_equal(got, f(X))
    assert got.dtype == f(X).dtype
