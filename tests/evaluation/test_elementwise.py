"""The derivative of an array, element by element: right, or refused."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UnsupportedTypeError
from fwdad.evaluation.elementwise import directions
from tests.differences import central_differences

X = np.array([1.0, 2.0, 3.0, 0.5, -1.0])


def stored(x):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = math.sin(x[i]) * x[i]
    return y


def in_place(x):
    x *= x
    return x


ELEMENTWISE = {
    "ufunc": np.sin,
    "formula": lambda x: x**3 * np.exp(-x),
    "choice": lambda x: np.where(x > 0, x * x, -x),
    "beside other arrays": lambda x: x * np.arange(5),
    "loop": stored,
    "in place": in_place,
    "constant": lambda x: np.ones(5),
    "an argument of the whole that is stopped": lambda x: x * fwdad.stop_gradient(np.sum(x)),
}

NOT_ELEMENTWISE = {
    "cumsum": np.cumsum,
    "reversed": lambda x: x[::-1],
    "however small": lambda x: x - 1e-14 * np.mean(x),
    "differences that cancel": lambda x: x + np.roll(x, 1) - np.roll(x, 2),
    "the last element": lambda x: x * x[-1],
    "maximum": lambda x: x / np.max(x),
    "transform": lambda x: np.fft.fft(x).real,
    "one leaf of two": lambda x: (x, x * x[0]),
}


@pytest.mark.every(2, of="jit")
@pytest.mark.parametrize("ways", [lambda d: d, fwdad.jit], ids=["at once", "jit"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_is_the_diagonal(name, ways):
    f = ELEMENTWISE[name]
    at = fwdad.stop_gradient(np.sum(X))
    compared = (lambda x: x * at) if "stopped" in name else f
    expected = np.diag(central_differences(lambda x: compared(x.copy()), X))
    assert_allclose(ways(fwdad.derivative(f))(X), expected, rtol=1e-6, atol=1e-7)
    assert_array_equal(fwdad.derivative(f, X), fwdad.derivative(f)(X))


@pytest.mark.every(2, of="jit")
@pytest.mark.parametrize("ways", [lambda d: d, fwdad.jit], ids=["at once", "jit"])
@pytest.mark.parametrize("name", NOT_ELEMENTWISE)
def test_other_functions_are_refused(name, ways):
    with pytest.raises(UnsupportedTypeError, match="other elements of x"):
        ways(fwdad.derivative(NOT_ELEMENTWISE[name]))(X)


@pytest.mark.parametrize("ways", [lambda d: d, fwdad.jit], ids=["at once", "jit"])
@pytest.mark.parametrize("f", [np.sum, lambda x: np.outer(x, x), lambda x: x[:2]])
def test_values_of_other_shapes_are_refused(f, ways):
    with pytest.raises(UnsupportedTypeError, match=r"x has the shape \(5,\), and its value"):
        ways(fwdad.derivative(f))(X)


def test_structures_of_values():
    y = fwdad.derivative(lambda x: {"a": 2 * x, "n": 3, "b": (x * x, x > 1)})(X)
    assert_array_equal(y["a"], np.full(5, 2.0))
    assert_array_equal(y["b"][0], 2 * X)
    assert y["n"] is fwdad.NoTangent
    assert y["b"][1] is fwdad.NoTangent


def test_arrays_of_several_axes_and_second_derivatives():
    x = np.random.default_rng(1).normal(size=(7, 11))
    assert_array_equal(fwdad.derivative(np.sin)(x), np.cos(x))
    second = fwdad.derivative(fwdad.derivative(np.sin))
    assert_allclose(second(x), -np.sin(x), rtol=1e-14)
    assert_allclose(fwdad.jit(second)(x), -np.sin(x), rtol=1e-14)
    slope = fwdad.grad(lambda x: np.sum(fwdad.derivative(np.sin)(x) ** 2))
    assert_allclose(slope(x), -np.sin(2 * x), rtol=1e-13)


@pytest.mark.parametrize("x", [np.zeros(0), np.zeros((2, 0)), np.array([2.0]), np.ones(3, "f4")])
def test_short_arrays_and_dtypes(x):
    for d in (fwdad.derivative(lambda x: x**3), fwdad.jit(fwdad.derivative(lambda x: x**3))):
        assert_array_equal(d(x), 3 * x**2, strict=True)


def test_infinite_and_missing_slopes():
    with np.errstate(all="ignore"):
        found = fwdad.derivative(np.sqrt)(np.array([0.0, 4.0, -1.0]))
    assert_array_equal(found, [np.inf, 0.25, np.nan])


def test_holomorphic():
    z = np.array([1 + 1j, 2.0])
    assert_allclose(fwdad.derivative(lambda z: z**3, z, holomorphic=True), 3 * z**2)
    assert_allclose(fwdad.derivative(lambda z: z**3, holomorphic=True)(z), 3 * z**2)


@pytest.mark.parametrize("x", [[1.0, 2.0], (1.0,), {"a": 1.0}, 2, np.arange(3), "a", None])
def test_what_is_no_number_or_array_is_refused(x):
    with pytest.raises(UnsupportedTypeError):
        fwdad.derivative(np.sin, x)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7, 20, 21, 70, 71])
def test_each_element_rests_where_another_moves(count):
    """What the check stands on: of any two elements, some direction moves only the first."""
    moved = directions((count,), np.dtype(float))[1:] != 0.0
    for i, j in itertools.permutations(range(count), 2):
        assert np.any(moved[:, i] & ~moved[:, j])
    assert len(moved) <= 2 + 1.5 * math.log2(max(count, 1))
