"""FITPACK's splines in SciPy, as users meet them, against differences and known results."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import interpolate
from scipy.interpolate import _bsplines

import fwdad
from fwdad.errors import MissingRuleError
from fwdad.rules.scipy_fitpack import fitted
from tests.differences import central_differences
from tests.rules.case import Case, Draw
from tests.tiers import every

draw = Draw(67)
N = 9
X = draw.real(N)
PLACES = np.array([0.0, 0.3, 0.7, 1.1, 1.2, 1.6, 2.0, 2.4, 3.0])
OTHERS = np.array([0.0, 0.2, 0.5, 0.9, 1.3])
WEIGHTS = np.linspace(0.5, 2.0, N)
AT = np.array([0.2, 1.1, 1.7, 3.0, 1.31])  # on a knot, and at the end, too
BEYOND = np.array([-0.3, 0.4, 1.2, 3.4])
KNOTS = np.array([-0.4, -0.2, 0.0, 0.1, 0.5, 0.9, 1.3, 2.0, 2.1, 2.5, 2.6, 3.0, 3.1])
ENDS = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 3.0, 3.0, 3.0, 3.0])
SURFACE = np.outer(np.cos(PLACES), np.sin(OTHERS))

CASES = [
    Case(fitted, draw.real(9), PLACES, ENDS, WEIGHTS, 3, linear=(0,)),
    Case(fitted, draw.real(9, 2), PLACES, ENDS, WEIGHTS, 3, linear=(0,)),
    Case(fitted, draw.real(5, 2), PLACES, ENDS, WEIGHTS, 3, True, linear=(0,)),
]


def curve(x, **options):
    return interpolate.splrep(PLACES, x, **options)


def moved(x, places=PLACES[:4], **options):
    return interpolate.splev(places + 0.1 * x[:4], (KNOTS, np.cos(X), 3), **options)


def surface(x, **options):
    z = np.outer(x, np.cos(OTHERS)) + SURFACE**2
    return interpolate.RectBivariateSpline(PLACES, OTHERS, z, **options)


def fixed():
    return interpolate.RectBivariateSpline(PLACES, OTHERS, SURFACE)


def smoothed_again():
    """FITPACK goes on from the knots that it has found with more smoothing."""
    spline = interpolate.UnivariateSpline(PLACES, np.cos(X), s=0.5)
    spline.set_smoothing_factor(0.01)
    return spline


FUNCTIONS = {
    "values": lambda x: interpolate.splev(AT, curve(x)),
    "slopes": lambda x: interpolate.splev(AT, curve(x), der=2),
    "quintic": lambda x: interpolate.splev(AT, curve(x, k=5)),
    "knots given": lambda x: interpolate.splev(AT, curve(x, t=[1.0, 2.0], w=WEIGHTS)),
    "at": lambda x: moved(x),
    "at, slopes": lambda x: moved(x, der=1),
    "zero beyond": lambda x: moved(x, BEYOND, ext=1),
    "constant beyond": lambda x: moved(x, BEYOND, ext=3),
    "constant beyond, slopes": lambda x: moved(x, BEYOND, ext=3, der=1),
    "knots": lambda x: interpolate.splev(BEYOND, (KNOTS + 0.01 * np.append(x, x[:4]), x, 3), ext=3),
    "integral": lambda x: np.atleast_1d(interpolate.splint(0.2, 2.5, curve(x))),
    "bounds": lambda x: np.atleast_1d(
        interpolate.splint(0.4 * x[0], 1.0 + x[1] ** 2, (KNOTS, np.cos(X), 3))
    ),
    "integral beyond": lambda x: np.atleast_1d(
        interpolate.splint(-5.0, 9.0, (KNOTS + 0.01 * np.append(x, x[:4]), x, 3))
    ),
    "derivative": lambda x: interpolate.splev(AT, interpolate.splder(curve(x))),
    "antiderivative": lambda x: interpolate.splev(AT, interpolate.splantider(curve(x))),
    "derivatives at": lambda x: interpolate.spalde(0.4 + 0.1 * x[0], (KNOTS, np.cos(x), 3)),
    "UnivariateSpline": lambda x: interpolate.UnivariateSpline(PLACES, x, s=0)(AT),
    "polynomial": lambda x: interpolate.UnivariateSpline(PLACES, x, w=WEIGHTS, s=1e9)(AT),
    "residual": lambda x: np.atleast_1d(
        interpolate.UnivariateSpline(PLACES, x, w=WEIGHTS, s=1e9).get_residual()
    ),
    "its points": lambda x: interpolate.UnivariateSpline(PLACES, np.cos(X))(np.abs(x)),
    "smoothed again": lambda x: smoothed_again()(np.abs(x)),
    "interpolated": lambda x: interpolate.InterpolatedUnivariateSpline(PLACES, x)(AT, nu=1),
    "interpolated, integral": lambda x: np.atleast_1d(
        interpolate.InterpolatedUnivariateSpline(PLACES, x).integral(0.2, 2.5)
    ),
    "fit": lambda x: interpolate.LSQUnivariateSpline(PLACES, x, [1.0, 2.0], w=WEIGHTS)(AT),
    "surface": lambda x: surface(x)(AT[:2], OTHERS),
    "surface, slopes": lambda x: surface(x, kx=2, ky=4)(AT[:2], OTHERS[:2], dx=1, dy=1),
    "surface at points": lambda x: surface(x).ev(AT, OTHERS),
    "polynomial surface": lambda x: surface(x, s=1e9).ev(AT, OTHERS),
    "its residual": lambda x: np.atleast_1d(surface(x, s=1e9).get_residual()),
    "along a grid": lambda x: fixed()(np.sort(x[:4] + BEYOND), np.sort(x[:3]), dx=1),
    "of points": lambda x: fixed().ev(x + 1.0, 0.5 - x),
    "slopes of points": lambda x: fixed().ev(x + 1.0, 0.5 - x, dx=1, dy=2),
}


@pytest.mark.slow_cases("values", "UnivariateSpline", "smoothed again")
@pytest.mark.parametrize("name", every(4, FUNCTIONS))
def test_against_differences(name):
    f = FUNCTIONS[name]
    want, y = central_differences(f, X), f(X)
    tolerance = {"rtol": 1e-6, "atol": 1e-7}
    for chunk in (1, 2, 3, 5, "auto"):
        found = fwdad.jacobian(f, X, chunk=chunk, mode="forward")
        assert_allclose(found, want, **tolerance)
    assert_allclose(fwdad.jacobian(f, X, mode="reverse"), want, **tolerance)
    weights = draw.real(*y.shape)
    gradient = fwdad.grad(lambda x: np.sum(weights * f(x)))
    assert_allclose(gradient(X), np.tensordot(weights, want, y.ndim), **tolerance)
    assert_array_equal(fwdad.jvp(f, X, np.ones_like(X))[0], y)
    compiled = fwdad.jit(lambda x: fwdad.jacobian(f, x, mode="forward"), backend="numpy")
    assert_allclose(compiled(X), want, **tolerance)
    for backend in ("numpy", "auto"):
        compiled = fwdad.jit(gradient, backend=backend)
        for x in (X, X + 0.1):
            assert_allclose(compiled(x), gradient(x), rtol=1e-10, atol=1e-12)


@pytest.mark.every(2)
@pytest.mark.parametrize("name", every(4, FUNCTIONS))
def test_second_derivatives(name):
    def loss(x):
        return np.sum(FUNCTIONS[name](x) ** 2)

    want = central_differences(fwdad.grad(loss), X)
    assert_allclose(fwdad.hessian(loss, X), want, rtol=1e-5, atol=1e-5)
    forward = fwdad.jacobian(lambda x: fwdad.jacobian(loss, x, mode="forward"), X, mode="forward")
    assert_allclose(forward, want, rtol=1e-5, atol=1e-5)


def test_a_fit_to_splines_is_the_identity():
    t = ENDS
    basis = interpolate.BSpline.design_matrix(PLACES, t, 3).toarray()
    J = fwdad.jacobian(lambda y: interpolate.splrep(PLACES, y, t=t[4:-4])[1][:5], X)
    assert_allclose(J @ basis, np.eye(5), rtol=1e-11, atol=1e-12)


def test_fits_whose_normal_equations_are_near_singular():
    x = np.concatenate([np.linspace(0.0, 1.0, 40), [2.9999, 3.0]])
    t = np.array([0.0] * 4 + [0.3, 0.6, 0.95] + [3.0] * 4)
    basis = interpolate.BSpline.design_matrix(x, t, 3).toarray()
    J = fwdad.jacobian(lambda y: interpolate.make_lsq_spline(x, y, t).c, np.cos(x))
    want = np.linalg.pinv(basis)
    assert_allclose(J, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())


def test_the_residual_of_a_fit():
    def residual(y):
        return _bsplines._lsq_solve_qr(PLACES, y[:, None], ENDS, 3, WEIGHTS)[3]

    assert_allclose(fwdad.grad(residual)(X), central_differences(residual, X), rtol=1e-6, atol=1e-8)


def test_smoothing_that_searches_says_so():
    for f in (
        lambda y: interpolate.UnivariateSpline(PLACES, y, s=0.5)(0.5),
        lambda y: interpolate.splev(0.5, interpolate.splrep(PLACES, y, s=0.5)),
    ):
        with pytest.raises(MissingRuleError, match="make_smoothing_spline"):
            fwdad.grad(f)(X)
    with pytest.raises(MissingRuleError, match="use s=0"):
        fwdad.grad(lambda y: surface(y, s=0.01).ev(0.5, 0.5))(X)
    with pytest.raises(MissingRuleError, match="make_interp_spline"):
        fwdad.grad(lambda x: interpolate.splev(0.5, interpolate.splrep(x, X)))(PLACES)


def test_the_arguments_stay_as_they_are():
    y = X.copy()
    knots = [1.0, 2.0]
    fwdad.grad(lambda y: interpolate.LSQUnivariateSpline(PLACES, y, knots)(0.5))(y)
    assert_array_equal(y, X)
    assert knots == [1.0, 2.0]
