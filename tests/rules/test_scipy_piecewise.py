"""Piecewise polynomials of SciPy, as users meet them, against differences and known results."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import interpolate

import fwdad
from fwdad.errors import MissingRuleError
from tests.differences import central_differences
from tests.rules.case import Draw
from tests.tiers import every

draw = Draw(59)
KNOTS = np.array([0.0, 0.7, 1.1, 2.0, 2.5, 3.3])
AT = np.array([0.1, 0.7, 1.5, 2.2, 3.3, 3.0])  # on a knot, and at the end, too
X = draw.real(6)


def spline(x, **options):
    return interpolate.CubicSpline(KNOTS, x, **options)


def polynomials(x, knots=KNOTS):
    return interpolate.PPoly(np.outer(x[:4], x[:5]), knots)


def descending(x):
    return interpolate.PPoly(np.outer(x[:3], x[:5]), KNOTS[::-1])


FUNCTIONS = {
    "spline": lambda x: spline(x)(AT),
    "natural, its slope": lambda x: spline(x, bc_type="natural")(AT, 1),
    "at": lambda x: spline(np.sin(KNOTS))(np.abs(x)),
    "at, of knots and values": lambda x: interpolate.CubicSpline(KNOTS + 0.01 * x, x)(
        AT + 0.05 * x
    ),
    "beyond": lambda x: spline(x)(AT + 2.0),
    "periodic": lambda x: spline(np.append(x[:5], x[:1]), bc_type="periodic")(AT + 3.5),
    "of rows": lambda x: spline(np.stack([x, x**2], axis=-1))(AT),
    "second axis": lambda x: interpolate.CubicSpline(KNOTS, np.outer(x[:2], x), axis=1)(AT),
    "pchip": lambda x: interpolate.PchipInterpolator(KNOTS, x)(AT * 0.99),
    "Akima": lambda x: interpolate.Akima1DInterpolator(KNOTS, x)(AT * 0.99),
    "Hermite": lambda x: interpolate.CubicHermiteSpline(KNOTS, x, x**2)(AT),
    "polynomials": lambda x: polynomials(x)(AT, 2),
    "descending": lambda x: descending(x)(AT + 0.01),
    "derivative": lambda x: polynomials(x).derivative()(AT),
    "antiderivative": lambda x: polynomials(x, KNOTS + 0.02 * x).antiderivative(2)(AT + 0.05),
    "integral": lambda x: np.atleast_1d(spline(x).integrate(0.3, 2.9)),
    "its bounds": lambda x: np.atleast_1d(spline(x).integrate(0.3 + 0.1 * x[0], 2.9 * x[1] ** 2)),
    "backwards": lambda x: np.atleast_1d(spline(x).integrate(2.9, 0.3)),
    "descending integral": lambda x: np.atleast_1d(descending(x).integrate(0.3, 2.9)),
    "descending beyond": lambda x: np.atleast_1d(descending(x).integrate(-0.3, 3.9)),
    "integral beyond": lambda x: np.atleast_1d(spline(x).integrate(-0.3, 3.9)),
    "of a derivative": lambda x: np.atleast_1d(polynomials(x).derivative().integrate(0.2, 3.0)),
}
UNTRACED = {"antiderivative", "pchip"}


@pytest.mark.every(2)
@pytest.mark.every(6, first=4)
@pytest.mark.parametrize("name", every(2, FUNCTIONS))
def test_against_differences(name):
    f = FUNCTIONS[name]
    want, y = central_differences(f, X), f(X)
    tolerance = {"rtol": 1e-6, "atol": 1e-7}
    for chunk in (1, 2, 3, 4, "auto"):
        found = fwdad.jacobian(f, X, chunk=chunk, mode="forward")
        assert_allclose(found, want, **tolerance)
    assert_allclose(fwdad.jacobian(f, X, mode="reverse"), want, **tolerance)
    weights = draw.real(*y.shape)
    gradient = fwdad.grad(lambda x: np.sum(weights * f(x)))
    assert_allclose(gradient(X), np.tensordot(weights, want, y.ndim), **tolerance)
    assert_array_equal(fwdad.jvp(f, X, np.ones_like(X))[0], y)
    if name not in UNTRACED:
        for backend in ("numpy", "auto"):
            compiled = fwdad.jit(gradient, backend=backend)
            assert_allclose(compiled(X), gradient(X), rtol=1e-10, atol=1e-12)
            assert_allclose(compiled(X + 0.1), gradient(X + 0.1), rtol=1e-10, atol=1e-12)


@pytest.mark.every(12)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives(name):
    def loss(x):
        return np.sum(FUNCTIONS[name](x) ** 2)

    want = central_differences(fwdad.grad(loss), X)
    assert_allclose(fwdad.hessian(loss, X), want, rtol=1e-5, atol=1e-5)
    forward = fwdad.jacobian(lambda x: fwdad.jacobian(loss, x, mode="forward"), X, mode="forward")
    assert_allclose(forward, want, rtol=1e-5, atol=1e-5)


def test_a_spline_through_a_cubic_is_that_cubic():
    def at(t):
        return interpolate.CubicSpline(KNOTS, KNOTS**3 - KNOTS)(t)

    for t in (0.05, 1.3, 3.2):
        assert_allclose(fwdad.derivative(at, t), 3 * t**2 - 1, rtol=1e-12)
        assert_allclose(fwdad.derivative(fwdad.derivative(at))(t), 6 * t, rtol=1e-11)


def test_outside_without_extrapolation():
    f = lambda x: spline(x, extrapolate=False)(np.array([-1.0, 0.5]))  # noqa: E731
    J = fwdad.jacobian(f, X)
    assert np.all(np.isnan(J[0]))
    assert_allclose(J[1], fwdad.jacobian(lambda x: spline(x)(0.5), X), rtol=1e-13)


def test_what_is_not_defined_has_no_derivative():
    def constants(x):
        return interpolate.PPoly(x[None, :5], KNOTS, extrapolate=False)(np.array([-1.0, 0.5, 9.0]))

    def integral(x):
        return interpolate.PPoly(np.stack([x[:5], x[:5]]), KNOTS, extrapolate=False).integrate(
            -1, 2
        )

    for mode in ("forward", "reverse"):
        J = fwdad.jacobian(constants, X, mode=mode)
        assert np.isnan(J[0, 0])
        assert np.isnan(J[2, 4])
        assert_array_equal(J[1], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        assert np.isnan(integral(X))
        assert np.all(np.isnan(fwdad.jacobian(integral, X, mode=mode)[:3]))


def test_an_integral_whose_breakpoints_move_is_refused():
    with pytest.raises(MissingRuleError, match="breakpoints carry a derivative"):
        fwdad.jacobian(lambda x: interpolate.CubicSpline(KNOTS + x, x).integrate(1.0, 2.0), 0.1 * X)
