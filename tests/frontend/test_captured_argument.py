"""An argument that the differentiated function also reads from outside is a constant there."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

X = np.array([0.5, 1.25, 2.0])


def by_grad(x):
    return fwdad.grad(lambda w: np.sum(w**3 * x))(x)


def by_value_and_grad(x):
    return fwdad.value_and_grad(lambda w: np.sum(w**3 * x))(x)[1]


def by_vjp(x):
    return fwdad.vjp(lambda w: w**3 * x, x)[1](np.ones_like(x))


def by_jacobian(x):
    return np.sum(fwdad.jacobian(lambda w: w**3 * x, x), axis=0)


def by_rows(x):
    return np.sum(fwdad.jacrev(lambda w: w**3 * x)(x), axis=0)


def by_jvp(x):
    return fwdad.jvp(lambda w: w**3 * x, x, np.ones_like(x))[1]


def of_numbers(x):
    return np.array([fwdad.grad(lambda w: w**3 * v)(v) for v in (x[0], x[1], x[2])])


def of_numbers_by_vjp(x):
    return np.array([fwdad.vjp(lambda w: w**3 * v, v)[1](1.0) for v in (x[0], x[1], x[2])])


def one_of_two(x):
    return fwdad.grad(lambda v, w: np.sum(v**3 * w))(x, x)


def both(x):
    first, second = fwdad.grad(lambda v, w: np.sum(v**3 * w), argnums=(0, 1))(x, x)
    return first + 2 * second


def of_python(x):
    a = float(x[1])
    return np.array([fwdad.grad(lambda w: w**3 * a)(a)])


FORMS = [by_grad, by_value_and_grad, by_vjp, by_jacobian, by_rows, by_jvp, of_numbers,
         of_numbers_by_vjp, one_of_two]  # fmt: skip


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("f", FORMS)
def test_what_is_captured_is_a_constant(f, backend):
    assert_allclose(fwdad.jit(f, backend=backend)(X), 3 * X**3, rtol=1e-14)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_one_value_as_two_arguments(backend):
    assert_allclose(fwdad.jit(both, backend=backend)(X), 5 * X**3, rtol=1e-14)
    assert_allclose(fwdad.jit(of_python, backend=backend)(X), [3 * 1.25**3], rtol=1e-14)


@pytest.mark.parametrize("f", FORMS)
def test_and_moves_with_the_outer_derivative(f):
    """d/dx of 3x³ is 9x²."""
    for outer in (fwdad.jacfwd, fwdad.jacrev):
        found = fwdad.jit(outer(f), backend="numpy")(X)
        assert_allclose(found, np.diag(9 * X**2), rtol=1e-13, atol=1e-13)
