"""The memory layout of what is copied, converted, or made in an ``order``, also in nested calls."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.differences import central_differences

X = np.array([[0.4, 0.9, 0.2], [1.3, 0.7, 1.1]])

MADE = {
    "astype": lambda x: x.T.astype(float),
    "astype C": lambda x: x.T.astype(float, order="C"),
    "astype F": lambda x: x.astype(float, order="F"),
    "array": lambda x: np.array(x.T),
    "array C": lambda x: np.array(x.T, order="C"),
    "copy": lambda x: x.T.copy(),
    "copy K": lambda x: np.copy(x.T),
    "copy.copy": lambda x: copy.copy(x.T),
    "copy.deepcopy": lambda x: copy.deepcopy(x.T),
    "add F": lambda x: np.add(x, 1, order="F"),
    "add C": lambda x: np.add(x.T, 1, order="C"),
    "add A": lambda x: np.add(x.T, 1, order="A"),
    "add A of two": lambda x: np.add(x.T, np.ones((3, 2)), order="A"),
    "add K": lambda x: np.add(x.T, 1, order="K"),
    "modf F": lambda x: np.modf(x, order="F")[0],
    "matmul F": lambda x: np.matmul(x, x.T @ x, order="F"),
    "exp and dtype": lambda x: np.exp(x, order="F", dtype=float),
}


def written_through(made):
    """A function that writes through a reshape, which is a view or a copy, and looks at strides."""

    def f(x):
        y = made(x)
        v = y.reshape(-1)
        v[1] = 9.0
        return np.concatenate([np.sin(y).ravel(), y.ravel("K")])

    return f


@pytest.mark.parametrize("name", MADE)
def test_value_and_derivatives(name):
    f = written_through(MADE[name])
    wanted = central_differences(f, X)
    assert_array_equal(fwdad.jvp(f, X, X)[0], f(X))
    for chunk in (1, 2, 3):
        found = fwdad.jacobian(f, X, mode="forward", chunk=chunk)
        assert_allclose(found, wanted, atol=1e-8)
    assert_allclose(fwdad.jacobian(f, X, mode="reverse"), wanted, atol=1e-8)
    assert_array_equal(fwdad.jit(f, backend="numpy")(X), f(X))


@pytest.mark.parametrize("name", MADE)
def test_nested(name):
    f = written_through(MADE[name])

    def along(x):
        return fwdad.jvp(f, x, X)[1]

    value, found = fwdad.jvp(along, X, X)
    assert_allclose(value, np.tensordot(central_differences(f, X), X, 2), atol=1e-8)
    assert_array_equal(fwdad.jvp(lambda x: fwdad.jvp(f, x, X)[0], X, X)[0], f(X))
    h = 1e-5
    assert_allclose(found, (along(X + h * X) - along(X - h * X)) / (2 * h), atol=1e-7)
