"""Compiled functions of complex numbers: the bits of NumPy's, or nearly those of roots."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

pytest.importorskip("numba")

from fwdad.codegen.numba_support import UFUNC_HELPERS
from tests.differences import difference_along

PARTS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 1e-9, -1e-20, 50.0, -120.0, 710.0, 1e30, 1e-300,
         np.inf, -np.inf, np.nan]  # fmt: skip
POWERS = [
    lambda z: z**3, lambda z: z**-2, lambda z: z**7, lambda z: z**-1, lambda z: z**0.5,
    lambda z: z**1.5, lambda z: z**1j, lambda z: z ** (0.5 + 1j), lambda z: np.power(z, 0.5),
]  # fmt: skip


def grid(dtype):
    with np.errstate(all="ignore"):
        z = np.empty((len(PARTS), len(PARTS)), dtype)
        z.real, z.imag = np.meshgrid(PARTS, PARTS)
    return z


def assert_same_bits(found, wanted, roundings=0):
    assert found.dtype == wanted.dtype
    for a, b in ((found.real, wanted.real), (found.imag, wanted.imag)):
        assert_allclose(a, b, rtol=roundings * np.finfo(found.dtype).eps, atol=0)
        numbers = ~np.isnan(b)
        assert_array_equal(np.signbit(a[numbers]), np.signbit(b[numbers]))


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("name", sorted(
    name for helper in UFUNC_HELPERS if (name := helper.removeprefix("ufunc_")) in (
        "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos",
        "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "sqrt", "reciprocal")
))  # fmt: skip
def test_functions(name, dtype):
    ufunc, z = getattr(np, name), grid(dtype)
    made = fwdad.jit(lambda z: ufunc(z))
    with np.errstate(all="ignore"):
        for part in (z, z[:, ::2], z[1, 2]):
            assert_same_bits(made(part), ufunc(part), roundings=2 * (name == "sqrt"))
    assert "NumPy" not in fwdad.explain(made)


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_powers(power, dtype):
    z = grid(dtype)
    z = z[~np.isnan(z)]
    with np.errstate(all="ignore"):
        assert_same_bits(fwdad.jit(power)(z), power(z), roundings=2)  # of z**0.5, a root


def test_squares():
    z = grid(np.complex128)
    z = z[(np.abs(z) < 1e15) & (np.abs(z) > 1e-15)]
    assert_allclose(fwdad.jit(lambda z: z**2)(z), z**2, rtol=1e-15)  # NumPy fuses the products


def test_powers_of_arrays_by_each_other():
    z = grid(np.complex128).ravel()
    f = fwdad.jit(lambda a, b: np.power(a, b))
    with np.errstate(all="ignore"):
        a, b = z[:, None], z[None, ::7]
        assert_same_bits(f(a, b), np.power(a, b))


def test_quotients():
    z = grid(np.complex128)
    z = np.concatenate([z[z != 0], [0j, complex(-0.0, 0.0), complex(0.0, -0.0)]])
    f = fwdad.jit(lambda a, b: a / b)
    with np.errstate(all="ignore"):
        a, b = z[:, None], z[None, ::5]
        assert_allclose(f(a, b), a / b, rtol=1e-14)
        assert_array_equal(f(a, z[-3:]), a / z[-3:])


def test_roots_of_reals():
    x = np.array([-np.inf, -0.0, 4.0, np.inf])
    with np.errstate(all="ignore"):
        assert_array_equal(fwdad.jit(lambda x: x**0.5)(x), x**0.5)
        assert fwdad.jit(lambda x: x[0] ** 0.5)(x) == x[0] ** 0.5  # a scalar's is another function


@pytest.mark.parametrize("z", [-4 + 0j, 0.5 - 2j, 0j, 1e10 + 1j])
@pytest.mark.parametrize("exponent", [3, -2, 0, 100, 150, 0.5, 0.5 + 1j])
def test_powers_of_pythons_numbers(z, exponent):
    def f(z):
        return z**exponent

    made = fwdad.jit(f)
    try:
        wanted = f(z)
    except (OverflowError, ZeroDivisionError) as error:
        if exponent == 0.5 + 1j:  # of zero, which compiled code does not see
            return
        with pytest.raises(type(error)):
            made(z)
        return
    found = made(z)
    assert type(found) is complex
    assert_array_equal(found, wanted)


def impedance(depth, z=2.0 + 0.1j):
    t = np.tanh(depth * z)
    return np.abs(50 * (75 + 50 * t) / (50 + 75 * t))


def test_derivatives_where_parts_are_large():
    for depth in (0.3, 400.0):
        for f in (fwdad.grad(impedance), fwdad.jacfwd(impedance)):
            assert_allclose(fwdad.jit(f)(depth), f(depth), rtol=1e-12)
        assert np.isfinite(fwdad.hessian(fwdad.jit(impedance), depth))
    slope = fwdad.jit(fwdad.grad(impedance))(0.3)
    assert_allclose(slope, difference_along(impedance, 0.3), rtol=1e-7)
