"""Rules whose bodies store into arrays that they make, differentiated again."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.rules.core.registry import RULES

X = np.array([0.7, -1.3, 2.0])


def cube(x):
    return x**3


def cube_and_square(x):
    return x**3, x**2


@pytest.fixture(autouse=True)
def _rules():
    @fwdad.frule(cube)
    def cube_frule(primals, tangents):
        """Lane by lane into an array of lanes; the value, too, is stored piece by piece."""
        (x,), (x_dot,) = primals, tangents
        y = np.empty(3)
        for i in range(3):
            y[i] = x[i] ** 3
        lanes = np.empty((x_dot.n, 3))
        for k in range(x_dot.n):
            lanes[k] = 3 * x**2 * x_dot.lanes[k]
        return y, fwdad.Chunk(lanes)

    @fwdad.frule(cube_and_square)
    def cube_and_square_frule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        work = np.zeros((2, 3))
        work[0], work[1] = x**3, x**2
        lanes = np.zeros((x_dot.n, 2, 3))
        lanes[:, 0] += 3 * x**2 * x_dot.lanes
        lanes[:, 1] = 2 * x * x_dot.lanes
        return tuple(work), (fwdad.Chunk(lanes[:, 0]), fwdad.Chunk([*lanes[:, 1]]))

    yield
    del RULES[cube], RULES[cube_and_square]


@pytest.mark.parametrize("chunk", [1, 2, 3, None])
def test_second_derivatives(chunk):
    f = fwdad.jacfwd(lambda x: 2 * cube(x)[1:])
    value, slopes = fwdad.value_and_jacobian(f, X, chunk=chunk)
    expected = np.zeros((2, 3))
    expected[[0, 1], [1, 2]] = 6 * X[1:] ** 2
    assert_allclose(value, expected)
    curvature = np.zeros((2, 3, 3))
    curvature[[0, 1], [1, 2], [1, 2]] = 12 * X[1:]
    assert_allclose(slopes, curvature)


@pytest.mark.parametrize("chunk", [1, 2, None])
def test_third_derivatives(chunk):
    f = lambda x: np.sum(cube(x))  # noqa: E731
    third = fwdad.jacobian(lambda x: fwdad.hvp(f, x, np.ones(3)), X, chunk=chunk)
    assert_allclose(third, np.diag(np.full(3, 6.0)))
    h = fwdad.jacobian(lambda x: fwdad.hessian(f, x), X, chunk=chunk)
    assert_allclose(h[range(3), range(3), range(3)], np.full(3, 6.0))


@pytest.mark.parametrize("chunk", [1, 2, 3, None])
def test_several_values(chunk):
    def f(x):
        y, y_dot = fwdad.jvp(cube_and_square, x, np.array([1.0, 2.0, 3.0]))
        return y[0] * y_dot[1] + y_dot[0] * y[1]  # v d(x**5)/dx

    value, slopes = fwdad.value_and_jacobian(f, X, chunk=chunk)
    v = np.array([1.0, 2.0, 3.0])
    assert_allclose(value, 5 * X**4 * v)
    assert_allclose(slopes, np.diag(20 * X**3 * v))
