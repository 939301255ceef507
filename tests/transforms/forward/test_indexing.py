"""Jacobians by tape of broadcast products, nested lists, stores and casts, beside complex steps.

A product of a column and a row keeps lanes and scalings smaller than itself; what looks at a part
of it must not take the scaling of one element for that of a row.
"""

import numpy as np
import pytest

import fwdad
from tests.differences import central_differences, complex_step

X = np.linspace(0.3, 1.7, 6)
C = np.arange(1.0, 4)
I = np.array([2, 0, 2])
V = np.linspace(-1, 1, 18).reshape(3, 6)  # three directions


PRODUCTS = {
    "column times row": lambda x: x[:, None] * C,
    "column times row matrix": lambda x: np.sin(x)[:, None] * C[None],
    "outer": lambda x: np.outer(x, C),
    "two active factors": lambda x: x[:3] * (C * x[3:])[:, None],
    "quotient and sum": lambda x: x[:, None] / C + C,
    "scaled twice": lambda x: (x[:, None] * C) * (x[0] * C),
}
PARTS = {
    "row": lambda a: a[2],
    "row by a number of the tape": lambda a: a[int(a[0, 0].real > 0) + 1],
    "element": lambda a: a[2, 1],
    "column": lambda a: a[:, 1],
    "last axis": lambda a: a[..., 1],
    "view": lambda a: a[1:, 1:],
    "reversed": lambda a: a[::2, ::-1],
    "index arrays": lambda a: a[[0, 1], [1, 2]],
    "rows and columns": lambda a: a[I][:, I],
    "rows, cut": lambda a: a[I, 1:],
    "open mesh": lambda a: a[np.ix_([0, 2], [1, 2])],
    "mask": lambda a: a[a.real > 1],
    "mask of rows": lambda a: a[a[:, 0].real > 0.5, 1],
    "mask of columns": lambda a: a[:, a[0].real > 0.5],
    "less its first row": lambda a: (a - a[:1])[1:, [0, 2]],
    "transpose": lambda a: a.T[1],
    "flat": lambda a: a.reshape(-1)[4:],
    "by columns": lambda a: a.ravel(order="F")[:5],
    "rolled": lambda a: np.roll(a, 1, axis=1),
    "diagonal": lambda a: np.diagonal(a),
    "sums": lambda a: np.cumsum(a, axis=1)[1:],
    "itself a factor": lambda a: (a * a[0])[:, 1:],
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
def test_parts_of_broadcast_products(product, part):
    def f(x):
        return part(product(x))

    expected = complex_step(f, X)
    found = fwdad.jit(fwdad.jacfwd(f), backend="numpy")(X)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)
    pushed = fwdad.jit(lambda x: fwdad.jvp(f, x, V)[1], backend="numpy")(X)
    np.testing.assert_allclose(pushed, np.moveaxis(expected @ V.T, -1, 0), rtol=1e-12, atol=1e-14)


LISTS = {
    "numbers, nested": lambda x: np.array([[x[0], x[1] ** 2], [1, x[2]]]),
    "arrays": lambda x: np.array([x, x**2]),
    "arrays, nested": lambda x: np.array([[x, x**2], [x * 0, np.sin(x)]]),
    "an array and constants": lambda x: np.array([x[:3], C]),
    "views": lambda x: np.array([x[1:], x[:-1]]),
    "pairs": lambda x: np.array([(x[i], x[j]) for i in range(2) for j in range(2)]),
    "ndmin": lambda x: np.array([x[0], x[1]], ndmin=3),
    "ndmin of arrays": lambda x: np.array([x, x], ndmin=4),
    "asarray": lambda x: np.asarray([[1, 2], [x[0], x[1] ** 2]]),
    "asanyarray": lambda x: np.asanyarray([x[0], x[1] ** 2]),
    "ascontiguousarray": lambda x: np.ascontiguousarray([[x[0], x[1] ** 2]]),
    "times a nested list": lambda x: np.array([[x[0], x[1]], [x[2], 1]]) @ [[x[3]], [2]],
}


@pytest.mark.parametrize("f", LISTS.values(), ids=LISTS)
def test_arrays_of_nested_lists(f):
    expected = complex_step(f, X)
    for jacobian in (
        fwdad.jit(fwdad.jacfwd(f), backend="numpy"),
        fwdad.jit(fwdad.jacrev(f), backend="numpy"),
        fwdad.jacrev(f),
    ):
        found = jacobian(X)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


def test_nested_lists_compiled():
    pytest.importorskip("numba")
    f = LISTS["numbers, nested"]
    np.testing.assert_array_equal(fwdad.jit(fwdad.jacfwd(f))(X), complex_step(f, X))


def stored(write):
    def f(x):
        a = np.outer(x, C)
        write(a, x)
        return a

    return f


def fill_mask(a, x):
    a[a > 1] = x[0]


def scale_mask(a, x):
    a[a > 1] *= x[0]


def product_in_place(a, x):
    a @= np.outer(C, x[:3])


def repeated_index(a, x):
    a[[0, 0, 1]] += x[0]


def diagonal(a, x):
    np.fill_diagonal(a, x[1:4])


def chosen(a, x):
    np.putmask(a, a > 1, x[0])


@pytest.mark.parametrize(
    "write", [fill_mask, scale_mask, product_in_place, repeated_index, diagonal, chosen]
)
def test_stores_of_numbers_and_through_masks(write):
    f = stored(write)
    expected = central_differences(f, X)
    for jacobian in (
        fwdad.jacfwd(f),
        fwdad.jacrev(f),
        fwdad.jit(fwdad.jacfwd(f), backend="numpy"),
        fwdad.jit(fwdad.jacrev(f), backend="numpy"),
    ):
        np.testing.assert_allclose(jacobian(X), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("wrap", [fwdad.jacfwd, fwdad.jacrev])
def test_casts(wrap):
    def f(x):
        return x.astype(np.float32) * x + (x**2).astype(complex).imag + x.astype(float, copy=False)

    expected = np.diag(2 * X + 1)
    np.testing.assert_allclose(fwdad.jit(wrap(f), backend="numpy")(X), expected, rtol=1e-6)


def test_cast_to_another_dtype_is_never_a_view():
    def f(x):
        a = x.astype(np.float32, copy=False)
        a *= 2
        return x * 3 + a

    gradient = fwdad.jit(fwdad.grad(lambda x: np.sum(f(x))), backend="numpy")(X)
    np.testing.assert_allclose(gradient, np.full(6, 5.0), rtol=1e-6)


@pytest.mark.parametrize(
    "g",
    [
        lambda x: np.sum((x[:, None] * x[None]) ** 2),
        lambda x: np.sum((np.eye(6) * x) ** 2),
        lambda x: np.sum(np.clip(np.outer(x, C), 0.5, 2) ** 2),
    ],
    ids=["outer", "diagonal", "clipped"],
)
def test_second_derivatives_of_broadcast_products(g):
    def gradient(x):
        return fwdad.jacobian(g, x, mode="forward")

    expected = central_differences(gradient, X)
    found = fwdad.jit(fwdad.jacfwd(fwdad.jacfwd(g)), backend="numpy")(X)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def one_real_part(x):
    y = (C[0] + 1j) * x
    y.real[1] = x[0]
    return y


def all_imaginary_parts(x):
    y = (C[0] + 1j) * x
    y.imag[:] = x**2
    return y


def both_parts(x):
    y = np.zeros(6, complex)
    y.real = x
    y.imag[1:] += x[1:] * x[0]
    return y


@pytest.mark.parametrize("f", [one_real_part, all_imaginary_parts, both_parts])
def test_stores_into_real_and_imaginary_parts(f):
    expected = central_differences(f, X)
    for wrap in (fwdad.jacfwd, fwdad.jacrev):
        for backend in ("numpy", None):
            jacobian = wrap(f) if backend is None else fwdad.jit(wrap(f), backend=backend)
            np.testing.assert_allclose(jacobian(X), expected, rtol=1e-8, atol=1e-8)


def test_a_factor_that_turns_out_to_be_one_long():
    def f(x, y):
        return (x[1:] * y[:-1] + x[:-1]) * 2

    x, y = X[:5], np.array([3.0, 4.0])
    expected = np.zeros((4, 5))
    expected[range(4), range(1, 5)], expected[range(4), range(4)] = 6, 2
    for wrap in (fwdad.jacfwd, fwdad.jacrev):
        np.testing.assert_array_equal(fwdad.jit(wrap(f), backend="numpy")(x, y), expected)
