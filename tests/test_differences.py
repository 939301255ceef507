"""The references themselves: right on functions with closed forms, and able to say no."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.differences import central_differences, complex_step, difference_along

X = np.array([0.3, -1.2, 2.5])


def test_central_differences_of_a_closed_form():
    def f(x):
        return np.sin(x) * x[0]

    exact = np.diag(np.cos(X) * X[0])
    exact[:, 0] += np.sin(X)
    assert_allclose(central_differences(f, X), exact, rtol=1e-10, atol=1e-11)


def test_central_differences_have_shape_of_output_then_input():
    a = np.arange(6.0).reshape(2, 3)
    differences = central_differences(lambda x: x.T * np.ones((4, 3, 2)), a)
    assert differences.shape == (4, 3, 2, 2, 3)
    assert_allclose(differences[2], np.einsum("ik,jl->ijlk", np.eye(3), np.eye(2)), atol=1e-11)
    assert central_differences(np.sum, np.zeros(0)).shape == (0,)


def test_central_differences_of_a_function_that_writes_into_its_argument():
    def f(x):
        x[0] *= 10.0
        x[1] = 5.0
        return x

    assert_allclose(central_differences(f, X), np.diag([10.0, 0.0, 1.0]), atol=1e-10)


def test_difference_along():
    assert difference_along(np.exp, 0.7) == pytest.approx(np.exp(0.7), rel=1e-11)
    assert type(difference_along(lambda x: type(x) is float and x, 2.0)) is np.float64


def test_difference_along_a_direction_of_complex_numbers():
    z, v = np.array([0.3 + 1.0j, -0.5j]), np.array([1.0 - 2.0j, 0.5])
    assert_allclose(difference_along(np.exp, z, v), np.exp(z) * v, rtol=1e-11)


@pytest.mark.parametrize("distance", [1e-4, 1.5])
def test_a_kink_near_by_is_no_obstacle(distance):
    assert_allclose(central_differences(np.abs, X[:1] * 0 + distance), [[1.0]], rtol=1e-9)


def test_at_a_kink_or_a_step_they_raise():
    with pytest.raises(ArithmeticError, match="accurate to"):
        central_differences(lambda x: np.abs(x) * x + np.maximum(x, 1e-7), np.zeros(1))
    with pytest.raises(ArithmeticError, match="accurate to"):
        difference_along(np.ceil, 2.0)


def test_complex_step_is_exact():
    exact = np.diag(np.exp(X) * (np.sin(X) + np.cos(X)))
    assert_allclose(complex_step(lambda x: np.exp(x) * np.sin(x), X), exact, rtol=1e-15)


def test_a_wrong_derivative_is_seen():
    wrong = np.cos(X) + 1e-8
    right = central_differences(np.sin, X).diagonal()
    with pytest.raises(AssertionError):
        assert_allclose(wrong, right, rtol=1e-9)
