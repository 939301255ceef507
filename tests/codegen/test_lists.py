"""Lists and tuples of numbers as arguments of linear functions, compiled."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

X = np.array([1.0, 2.0, 3.0])

PROGRAMS = {
    "diag": lambda x: np.sum(np.diag([2.0, 1.0, 3.0]) @ x),
    "diag of a tuple": lambda x: np.sum(x * np.diag((2.0, 1.0, 3.0))),
    "diag beside the diagonal": lambda x: np.sum(np.diag([2.0, 5.0], 1) @ x),
    "diag of a matrix": lambda x: np.diag([[2.0, 1.0], [3.0, 4.0]]) @ x[1:],
    "flip": lambda x: np.flip([2.0, 1.0, 5.0]) @ x,
    "trace": lambda x: x[0] * np.trace([[2.0, 1.0], [3.0, 4.0]]),
    "roll": lambda x: np.roll((2.0, 1.0, 5.0), 1) @ x,
}


@pytest.mark.every(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradient(name):
    """They are linear in x: the gradient consists of their values at the unit vectors."""
    pytest.importorskip("numba")
    f = PROGRAMS[name]
    expected = [f(e) for e in np.eye(3)]
    compiled = fwdad.jit(fwdad.value_and_grad(f), backend="numba")
    value, gradient = compiled(X)
    assert_allclose(value, f(X), rtol=1e-15)
    assert_allclose(gradient, expected, rtol=1e-15)
    assert_allclose(fwdad.jacobian(f, X, chunk=2), expected, rtol=1e-15)
