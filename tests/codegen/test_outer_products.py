"""Sums of outer products under NumPy: one product of matrices, where it means the same."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.ir.primitives.outer_products import sum_of_outer
from fwdad.rules.core.adjoints import add_outer


def two_products(a, x, y):
    return np.sum(np.sin(a @ x)) + np.sum(np.cos(y @ a))


def three_products(a, x, y):
    return np.sum((a @ x) ** 2) + np.sum((y @ a) ** 3) + np.sum(a @ np.cos(x))


def one_product(a, x, y):
    return np.sum(a @ x) + np.sum(y)


def overwritten(a, x, y):
    """The vectors of one product change before the other product is added."""
    total = np.sum(np.sin(a @ x))
    z = x.copy()
    for i in range(3):
        z[0] += np.sum(np.cos(y @ a)) + i
        total = total + np.sum(np.sin(a @ z))
    return total


def outer_sum(u, v):
    return u[:, None] * v + v[:, None] * u


@pytest.mark.parametrize("shape", [(4, 3), (3, 3), (2, 5), (1, 4), (3, 1), (1, 1)], ids=str)
@pytest.mark.parametrize("f", [two_products, three_products, one_product, overwritten])
def test_gradients_are_those_of_forward_mode(f, shape):
    rng = np.random.default_rng(1)
    a, x, y = rng.normal(size=shape), rng.normal(size=shape[1]), rng.normal(size=shape[0])
    expected = fwdad.jacobian(lambda a: f(a, x, y), a, mode="forward")
    assert_allclose(fwdad.grad(f)(a, x, y), expected, rtol=1e-13, atol=1e-13)


def test_the_sum_is_one_operation_in_derivatives_only():
    a, x, y = np.ones((4, 3)), np.ones(3), np.ones(4)
    assert "sum_of_outer" in fwdad.show(fwdad.grad(two_products), a, x, y)
    assert fwdad.show(fwdad.grad(three_products), a, x, y).count("sum_of_outer") == 1
    assert "sum_of_outer" not in fwdad.show(fwdad.grad(one_product), a, x, y)
    assert "sum_of_outer" not in fwdad.show(outer_sum, x, x)
    compiled = fwdad.show(fwdad.grad(two_products), a, x, y, backend="numba")
    assert "sum_of_outer" not in compiled


def views(a):
    """Products of columns with what is right of them."""
    out = np.zeros((a.shape[1], a.shape[1]))
    for i in range(a.shape[1]):
        out[i, i:] = a[:, i] @ a[:, i:]
    return np.sum(np.sin(out))


def backwards(a):
    """The same with steps that are negative, and of two."""
    total = 0.0
    for i in range(a.shape[1]):
        total = total + np.sum(np.sin(a[::-1, i] @ a[:, i:])) + np.sum(np.cos(a[::2, i] @ a[::2]))
    return total


@pytest.mark.parametrize("shape", [(4, 3), (1, 3), (5, 1), (1, 1), (170, 9)], ids=str)
@pytest.mark.parametrize("f", [views, backwards])
def test_outer_products_are_added_in_place(f, shape):
    a = np.random.default_rng(2).normal(size=shape)
    assert "add_later(" in fwdad.show(fwdad.grad(views), np.ones((4, 3)))
    expected = fwdad.jacobian(f, a, mode="forward")
    assert_allclose(fwdad.grad(f)(a), expected, rtol=1e-12, atol=1e-12)


def test_memory_of_the_vectors_is_not_written_while_it_is_read():
    def program(a):
        a = a.copy()
        a += a[0][:, None] * a[0]
        return np.sum(a**2)

    a = np.random.default_rng(2).normal(size=(3, 3))
    assert "add_outer" not in fwdad.show(fwdad.grad(program), a)
    expected = fwdad.jacobian(program, a, mode="forward")
    assert_allclose(fwdad.grad(program)(a), expected, rtol=1e-12)


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 200])
def test_long_sums_are_written_in_blocks(rows):
    rng = np.random.default_rng(rows)
    u, v, p, q = (rng.normal(size=n) for n in (rows, 4099, rows, 4099))
    assert_allclose(sum_of_outer(u, v, p, q), np.outer(u, v) + np.outer(p, q), atol=1e-13)


def test_an_outer_product_into_any_view():
    rng = np.random.default_rng(0)
    held, u, v = rng.normal(size=(12, 12)), rng.normal(size=24), rng.normal(size=24)
    for rows in (slice(0, 5), slice(None, None, 2), slice(11, 6, -1), slice(3, 4)):
        for columns in (slice(2, 9), slice(0, 12, 3), slice(4, 5), slice(None, None, -1)):
            made = held.copy()
            view = made[rows, columns]
            m, n = view.shape
            for left, right in ((u[:m], v[:n]), (u[::2][:m], v[::-1][:n]), (u[:1], v[:n])):
                expected = view + left[:, None] * right
                add_outer(view, left, right)
                assert_allclose(view, expected, rtol=1e-14)
            outside = np.ones((12, 12), dtype=bool)
            outside[rows, columns] = False
            assert_allclose(made[outside], held[outside], rtol=0)


def test_a_partial_that_is_infinite_leaves_zeros(recwarn):
    def f(x):
        return np.sum(np.where(x > 0.0, np.sqrt(x) * x, 0.0)) + np.sqrt(x[0]) * x[1]

    x = np.array([4.0, 0.0, 1.0, 0.0])
    expected = fwdad.jacobian(f, x, mode="forward")
    assert np.all(np.isfinite(expected))
    assert_allclose(fwdad.grad(f)(x), expected, rtol=1e-14)
    assert not recwarn
