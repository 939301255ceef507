"""Reverse mode over forward mode, forward over reverse, reverse over reverse: one Hessian."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences, difference_along
from tests.transforms.reverse.random_stores import POINT, program

X = np.linspace(0.3, 1.2, 4)
V = np.array([0.5, -1.0, 2.0, 0.1])


def squared_in_place(x):
    """Tangents are overwritten where the reverse pass reads them."""
    y = x.copy()
    for i in range(1, len(x)):
        y[i] = y[i] ** 2
    return np.sum(y * x)


def recurrence(x):
    y = x.copy()
    for i in range(1, len(x)):
        y[i] = np.sin(y[i - 1]) * x[i] + y[i] ** 2
    return np.sum(y * x)


def both_ways(x):
    y = np.exp(x)
    while y[0] < 20.0:
        for i in range(len(x) - 1, -1, -1):
            if y[i] > 1.5:
                y[i] *= y[i - 1] * x[i]
            else:
                y[i] = y[i] ** 2 + x[0]
        y[0] += 5.0 * x[1] ** 2 + y[0]
    return y @ np.sin(y / 50)


def products(f, x, v):
    """The Hessian's product with a direction, in three ways."""
    return {
        "grad of jvp": fwdad.grad(lambda x: fwdad.jvp(f, x, v)[1])(x),
        "jvp of grad": fwdad.jvp(fwdad.grad(f), x, v)[1],
        "grad of grad": fwdad.grad(lambda x: np.sum(fwdad.grad(f)(x) * v))(x),
    }


@pytest.mark.parametrize("f", [squared_in_place, recurrence, both_ways])
def test_against_differences(f):
    expected = difference_along(lambda x: fwdad.jacobian(f, x, mode="forward"), X, V)
    for name, found in products(f, X, V).items():
        assert_allclose(found, expected, rtol=1e-7, atol=1e-7, err_msg=name)


@pytest.mark.every(2)
@pytest.mark.slow_cases("0", "4")
@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed):
    f, text = program(seed)
    v = np.random.default_rng(seed).normal(size=POINT.shape)
    expected = fwdad.jvp(lambda x: fwdad.jacobian(f, x, mode="forward"), POINT, v)[1]
    scale = max(1.0, np.abs(expected).max())
    for name, found in products(f, POINT, v).items():
        assert_allclose(found, expected, rtol=1e-7, atol=1e-8 * scale, err_msg=f"{name}\n{text}")


def left_out(x):
    """One side of the branch leaves out what the reverse pass of the other one reads."""
    u = x * 1.0
    if u[0] > 0.5:
        w = u[1:4]
        w *= np.cos(w)
    return np.sum(np.tanh(u))


@pytest.mark.parametrize("first", [0.1, 0.9])
def test_a_side_of_a_branch_that_is_not_taken(first):
    """It has no lengths: a tape raised, and what it raised was hidden by running f at once."""
    x, v = np.linspace(first, 1.3, 6), np.cos(np.arange(6.0))

    def product(x):
        return np.sum(fwdad.grad(left_out)(x) * v)

    found = fwdad.jit(fwdad.grad(product), backend="numpy")(x)
    expected = fwdad.jvp(lambda x: fwdad.jacobian(left_out, x, mode="forward"), x, v)[1]
    assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def read_and_written(x):
    """The point of a gradient is read by its function, too, and written later."""
    b, u = x[1], x * 1.0
    for k in range(len(x)):
        g = fwdad.grad(lambda t: np.sum(t * t * u))(u)
        b = b + g[1] * x[0]
        u[k] = np.sqrt(u[k])
    return b + np.sum(u)


def compared(x):
    b, u = x[1], x * 1.0
    for k in range(len(x)):
        g = fwdad.grad(lambda t: np.sum(t * t * u))(u)
        b = b * 2.0 if g[1] > 0.9 else b
        u[k] = np.sqrt(u[k])
    return b + np.sum(u)


@pytest.mark.parametrize("f", [read_and_written, compared])
def test_a_point_that_is_read_from_outside_too(f):
    wanted = central_differences(f, X)
    for g in (fwdad.grad(f), fwdad.jit(fwdad.grad(f)), fwdad.jit(fwdad.grad(f), backend="numpy")):
        assert_allclose(g(X), wanted, rtol=1e-7)
    assert_allclose(fwdad.jacobian(f, X, mode="forward"), wanted, rtol=1e-7)
    assert_allclose(fwdad.jit(fwdad.jacfwd(f))(X), wanted, rtol=1e-7)


def scattered_twice(x):
    """The sum of a new array does not depend on what is stored by its square."""
    y = np.zeros(20)
    y[[0, 1]] = x[:2] ** 2
    y[[1, 2]] = x[:2] * x[2:]
    return np.sum(y)


def in_order(x):
    at = np.argsort(x)
    y = np.empty(len(x))
    y[at] = np.cumsum(x[at] * x[at])
    return np.sum(y * V[: len(x)])


def linear(x):
    y = np.zeros(20)
    y[[0, 1]] = x[:2]
    y[[1, 2]] = x[:2]
    return np.sum(y)


@pytest.mark.parametrize("f", [scattered_twice, in_order, linear])
def test_stores_by_indices(f):
    x = X[[2, 0, 3, 1]]
    expected = central_differences(lambda x: fwdad.jacobian(f, x, mode="forward"), x)
    second = (
        fwdad.hessian(f),
        fwdad.jacrev(fwdad.grad(f)),
        lambda x: np.stack([fwdad.hvp(f, x, e) for e in np.eye(4)]),
    )
    for d in second:
        for of in (d, fwdad.jit(d, backend="numpy")):
            assert_allclose(of(x), expected, rtol=1e-7, atol=1e-8)
