"""Operators between NumPy's values and objects with operators of their own (NEP 13).

NumPy leaves them to the object by ``__array_ufunc__ = None`` or a higher ``__array_priority__``;
otherwise it reads sequences, and what has ``__array__``, as arrays, whatever operators they have.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import UntraceableError
from tests.differences import central_differences

X = np.array([0.7, 1.3])


class Scaled:
    """An object that is no array: its operator is called."""

    def __init__(self, v):
        self.v = v

    def __rmul__(self, other):
        return other * self.v * 7.0


class Sequence(Scaled):
    def __len__(self):
        return 2

    def __getitem__(self, k):
        return (self.v, 2.0 * self.v)[k]


class WithArray(Scaled):
    def __array__(self, dtype=None, copy=None):
        return np.array([self.v, 3.0 * self.v])


class Refusing(Sequence):
    __array_ufunc__ = None


class Prior(Sequence):
    __array_priority__ = 5.0


class Listed(list):
    def __init__(self, v):
        super().__init__([v, 4.0 * v])

    def __rmul__(self, other):
        return other * self[0] * 7.0


def by_array(x, cls):
    return np.sum(x * cls(x[1]))


def by_number(x, cls):
    return np.sum(x[0] * cls(x[1]))


def by_python_number(x, cls):
    return np.sum(x[0].item() * cls(x[1]))


def by_plain_array(x, cls):
    return np.sum(np.array([1.0, 2.0]) * cls(x[1]))


def of_a_constant(x, cls):
    return np.sum(x * cls(2.0))


def in_place(x, cls):
    y = x * x
    y *= cls(x[1])
    return np.sum(y)


CLASSES = [Scaled, Sequence, WithArray, Refusing, Prior, Listed]
FORMS = [by_array, by_number, by_python_number, by_plain_array, of_a_constant, in_place]
RAISING = {(in_place, Scaled), (in_place, Refusing)}  # NumPy's own errors


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("form", FORMS)
def test_the_operand_that_numpy_asks_is_asked(form, cls):
    if (form, cls) in RAISING:
        pytest.skip("NumPy raises")

    def f(x):
        return form(x, cls)

    value, slopes = f(X), central_differences(f, X)
    for n in (1, 2, 3):
        y, jacobian = fwdad.value_and_jacobian(f, X, chunk=n)
        assert_allclose(y, value, rtol=1e-14)
        assert_allclose(jacobian, slopes, rtol=1e-7)
    y, gradient = fwdad.value_and_grad(f)(X)
    assert_allclose(y, value, rtol=1e-14)
    assert_allclose(gradient, slopes, rtol=1e-7)
    try:
        y, gradient = fwdad.jit(fwdad.value_and_grad(f))(X)
    except UntraceableError:  # an object that only C code would read as an array
        assert cls in (Sequence, WithArray, Listed) or form is in_place
        return
    assert_allclose(y, value, rtol=1e-14)
    assert_allclose(gradient, slopes, rtol=1e-7)


def test_polynomials_are_read_as_their_coefficients():
    p = np.poly1d([1.0, 2.0])
    value, tangent = fwdad.jvp(lambda x: x * p, X, np.ones(2))
    assert_allclose(value, X * p)
    assert_allclose(tangent, p.coeffs)
