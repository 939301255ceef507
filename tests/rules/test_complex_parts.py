"""Parts of complex numbers, sinc, i0 and unwrap."""

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from fwdad.testing import check_frule, check_transpose
from tests.rules.case import Case, Draw, transposes
from tests.rules.slopes import mp_slope, second_slope, slope

draw = Draw(33)
X = np.array([-1.3, 0.4, 2.2])
Z = np.array([[0.5 + 0.3j, -1.2 + 0.7j, 0.8 - 1.1j], [-0.4 - 0.6j, 1.5j, -2.0 + 0.1j]])
PHASES = np.array([0.1, 3.0, -2.9, 0.3, 3.1, -2.0])

CASES = [
    *[
        Case(f, x)
        for f in (np.absolute, np.sign, np.angle)
        for x in (X, X[1], -0.7, Z, Z[0], Z[1, 0], 0.3 - 0.4j)
    ],
    *[
        Case(f, x, linear=(0,))
        for f in (np.conjugate, np.real, np.imag)
        for x in (X, Z, Z[0], Z[1, 0], -0.7, 0.3 - 0.4j)
    ],
    Case(np.angle, Z, deg=True),
    Case(np.angle, X, True),
    Case(np.real_if_close, X),
    Case(np.real_if_close, Z),
    *[Case(np.sinc, x) for x in (X, draw.real(2, 3), 0.3, 0.01 * X)],
    *[Case(np.i0, x) for x in (X, draw.real(2, 3), 9.5)],
    Case(np.unwrap, PHASES),
    Case(np.unwrap, np.cumsum(10 * draw.rng.random((2, 4)), axis=1), axis=1),
    Case(np.unwrap, np.cumsum(10 * draw.rng.random((4, 2)), axis=0), axis=0, period=5.0),
    Case(np.unwrap, PHASES, discont=4.0),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(("case", "argnum"), transposes(CASES), ids=str)
def test_transpose(case, argnum, rng):
    check_transpose(case.function, *case.args, argnum=argnum, rng=rng, **case.options)


@pytest.mark.parametrize("f", [np.absolute, np.sign, np.angle, np.real, np.imag, np.conjugate])
def test_real_and_imaginary_parts_move_independently(f):
    """Against the two real partial derivatives, by mpmath."""
    reference = {
        np.absolute: abs,
        np.sign: mpmath.sign,
        np.angle: mpmath.arg,
        np.real: mpmath.re,
        np.imag: mpmath.im,
        np.conjugate: mpmath.conj,
    }[f]
    for z in Z.ravel():
        with mpmath.workdps(40):
            re, im = mpmath.mpf(z.real), mpmath.mpf(z.imag)
            by_re = complex(mpmath.diff(lambda t: reference(mpmath.mpc(t, im)), re))  # noqa: B023
            by_im = complex(mpmath.diff(lambda t: reference(mpmath.mpc(re, t)), im))  # noqa: B023
        for direction in (1.0, 1j, 0.6 - 0.8j):
            _, y_dot = call_rule(f, (z,), (Chunk(np.array([complex(direction)])),))
            got = 0.0 if y_dot is ZERO else y_dot.lanes[0]
            want = complex(direction).real * by_re + complex(direction).imag * by_im
            assert_allclose(got, want, rtol=1e-14, atol=1e-15)


def test_a_real_function_through_complex_numbers():
    """|exp(i x) + 2| as the sum of squares says it."""
    x = np.array([0.3, 1.9, -2.4])
    got = fwdad.jacobian(lambda x: np.abs(np.exp(1j * x) + 2), x)
    want = -2 * np.sin(x) / np.sqrt(5 + 4 * np.cos(x))
    assert_allclose(got, np.diag(want), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("x", [0.0, 1e-8, 1e-3, 0.1, 0.3182, 0.3184, 1.0, 2.5, -0.05])
def test_sinc_keeps_its_digits_near_zero(x):
    assert_allclose(slope(np.sinc, x), mp_slope(mpmath.sincpi, x), rtol=2e-14, atol=1e-16)
    assert_allclose(second_slope(np.sinc, x), mp_slope(mpmath.sincpi, x, order=2), rtol=1e-12)


@pytest.mark.parametrize("x", [0.0, 0.3, 7.9, 8.1, -4.0])
def test_i0(x):
    def reference(t):
        return mpmath.besseli(0, t)

    assert_allclose(slope(np.i0, x), mp_slope(reference, x), rtol=1e-14, atol=1e-16)
    assert_allclose(second_slope(np.i0, x), mp_slope(reference, x, order=2), rtol=1e-13)


def test_real_if_close_follows_the_type_of_the_value():
    lanes = Chunk(np.full((1, 2), 3.0 + 4.0j))
    y, y_dot = call_rule(np.real_if_close, (np.array([1.0 + 1e-15j, 2.0]),), (lanes,))
    assert y.dtype == np.float64
    assert_array_equal(y_dot.lanes, [[3.0, 3.0]])
    y, y_dot = call_rule(np.real_if_close, (np.array([1.0 + 1e-3j, 2.0]),), (lanes,))
    assert y.dtype == np.complex128
    assert_array_equal(y_dot.lanes, [[3.0 + 4.0j] * 2])


def test_degrees_of_an_angle():
    assert_allclose(slope(np.angle, 3.0 + 4.0j, deg=True), -4 / 25 * 180 / math.pi, rtol=1e-15)


def test_unwrapped_phases_do_not_move_with_the_jumps():
    period = fwdad.derivative(lambda p: np.unwrap(PHASES, period=p)[-1], 2 * math.pi)
    jumps = (np.unwrap(PHASES)[-1] - PHASES[-1]) / (2 * math.pi)
    assert_allclose(period, jumps, rtol=1e-12)
    assert jumps != 0
