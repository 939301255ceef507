"""B-splines of SciPy, as users meet them, against differences and known results."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import interpolate
from scipy.linalg import lapack

import fwdad
from fwdad.errors import MissingRuleError, UndefinedDerivativeError
from tests.differences import central_differences
from tests.rules.case import Draw
from tests.tiers import every

draw = Draw(61)
N = 9
X = draw.real(N)
KNOTS = np.array([-0.4, -0.2, 0.0, 0.1, 0.5, 0.9, 1.3, 2.0, 2.1, 2.5, 2.6, 3.0, 3.1])
AT = np.array([0.2, 0.5, 1.7, 2.0, 1.31])  # on a knot, and at the end, too
PLACES = np.array([0.0, 0.3, 0.7, 1.1, 1.2, 1.6, 2.0, 2.4, 3.0])


def spline(x, k=3, **options):
    return interpolate.BSpline(
        KNOTS[: N + k + 1] if k < 4 else KNOTS, x[: 13 - k - 1], k, **options
    )


def through(x, **options):
    return interpolate.make_interp_spline(PLACES, x, **options)


def fit(x, **options):
    knots = [0.0, 0.0, 0.0, 0.0, 1.0, 3.0, 3.0, 3.0, 3.0]
    return interpolate.make_lsq_spline(PLACES, x, knots, **options)


def tied(x):
    return np.append(x[:-1], x[0])


FUNCTIONS = {
    "values": lambda x: spline(x)(AT),
    "linear": lambda x: spline(x, 1)(AT),
    "constant": lambda x: spline(x, 0)(AT),
    "fifth degree": lambda x: spline(x, 5)(AT),
    "slope": lambda x: spline(x)(AT, 1),
    "last derivative": lambda x: spline(x)(AT, 3),
    "at": lambda x: spline(np.cos(X))(np.abs(x[:5])),
    "slope at": lambda x: spline(np.cos(X))(np.abs(x[:5]), nu=2),
    "at, of all": lambda x: interpolate.BSpline(KNOTS + 0.01 * np.append(x, x[:4]), x, 3)(
        0.9 + 0.1 * x
    ),
    "beyond": lambda x: spline(x)(AT + 2.0),
    "repeated": lambda x: spline(x, extrapolate="periodic")(AT + 3.7 * x[0]),
    "of rows": lambda x: spline(np.stack([x, x**2], axis=-1))(AT),
    "second axis": lambda x: interpolate.BSpline(KNOTS, np.outer(x[:2], x), 3, axis=1)(AT),
    "one point": lambda x: np.atleast_1d(spline(x)(0.7)),
    "derivative": lambda x: spline(x).derivative()(AT),
    "antiderivative": lambda x: spline(x).antiderivative(2)(AT),
    "integral": lambda x: np.atleast_1d(spline(x).integrate(0.3, 1.9 + 0.01 * x[0])),
    "integral within": lambda x: np.atleast_1d(spline(x, extrapolate=False).integrate(-2, 1.9)),
    "integral of periods": lambda x: np.atleast_1d(
        spline(x, extrapolate="periodic").integrate(0.3, 7.9)
    ),
    "element": lambda x: interpolate.BSpline.basis_element(np.cumsum(np.abs(x)))(AT),
    "through": lambda x: through(x)(AT),
    "through, natural": lambda x: through(x, bc_type="natural")(AT, 1),
    "through, slopes": lambda x: through(x, bc_type=([(1, x[0])], [(2, x[1] ** 2)]))(AT),
    "through, quadratic": lambda x: through(x, k=2)(AT),
    "through, linear": lambda x: through(x, k=1)(AT),
    "through, fifth": lambda x: through(x, k=5)(AT),
    "through, periodic": lambda x: through(tied(x), bc_type="periodic")(AT + 4.0),
    "through few, periodic": lambda x: interpolate.make_interp_spline(
        PLACES[:3], tied(x[:3]), bc_type="periodic"
    )(AT),
    "through rows": lambda x: through(np.stack([x, x**2], axis=-1))(AT),
    "through places": lambda x: interpolate.make_interp_spline(PLACES + 0.02 * x, x)(AT),
    "through places, clamped": lambda x: interpolate.make_interp_spline(
        PLACES + 0.02 * x, np.cos(X), bc_type="clamped"
    )(AT),
    "through places, periodic": lambda x: interpolate.make_interp_spline(
        PLACES + 0.02 * x, tied(x), k=4, bc_type="periodic"
    )(AT),
    "interp1d": lambda x: interpolate.interp1d(PLACES, x, kind="cubic")(AT),
    "smoothing": lambda x: interpolate.make_smoothing_spline(PLACES, x, lam=0.1)(AT),
    "smoothness": lambda x: interpolate.make_smoothing_spline(PLACES, x, lam=np.exp(x[0]))(AT),
    "smoothing places": lambda x: interpolate.make_smoothing_spline(
        PLACES + 0.02 * x, x, w=1.0 + x**2, lam=0.1
    )(AT),
    "fit": lambda x: fit(x)(AT),
    "weighed fit": lambda x: fit(x, w=np.arange(1.0, 10.0))(AT),
    "fit of rows": lambda x: fit(np.stack([x, x**2], axis=-1))(AT),
}


@pytest.mark.every(3, first=1)
@pytest.mark.parametrize("name", every(5, FUNCTIONS))
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
        assert_allclose(compiled(X), gradient(X), rtol=1e-10, atol=1e-12)
        assert_allclose(compiled(X + 0.1), gradient(X + 0.1), rtol=1e-10, atol=1e-12)


@pytest.mark.every(2)
@pytest.mark.parametrize("name", every(2, FUNCTIONS))
def test_second_derivatives(name):
    def loss(x):
        return np.sum(FUNCTIONS[name](x) ** 2)

    want = central_differences(fwdad.grad(loss), X)
    assert_allclose(fwdad.hessian(loss, X), want, rtol=1e-5, atol=1e-5)
    forward = fwdad.jacobian(lambda x: fwdad.jacobian(loss, x, mode="forward"), X, mode="forward")
    assert_allclose(forward, want, rtol=1e-5, atol=1e-5)


def test_a_spline_through_a_cubic_is_that_cubic():
    def at(t):
        return through(PLACES**3 - PLACES)(t)

    for t in (0.05, 1.3, 2.2):
        assert_allclose(fwdad.derivative(at, t), 3 * t**2 - 1, rtol=1e-10)
        assert_allclose(fwdad.derivative(fwdad.derivative(at))(t), 6 * t, rtol=1e-9)


def test_the_derivative_by_the_coefficients_is_the_design_matrix():
    J = fwdad.jacobian(lambda c: interpolate.BSpline(KNOTS, c, 3)(AT), X)
    want = interpolate.BSpline.design_matrix(AT, KNOTS, 3).toarray()
    assert_allclose(J, want, rtol=1e-13, atol=1e-16)


def test_the_derivative_by_the_points_is_the_slope():
    s = spline(X)
    for order in range(3):
        J = fwdad.jacobian(lambda x, order=order: s(x, order), AT)
        assert_allclose(J, np.diag(s(AT, order + 1)), rtol=1e-11, atol=1e-13)


def test_values_of_one_knot_interval():
    t, at = np.array([0.0, 0.0, 1.0, 1.0]), 0.25
    slope = fwdad.grad(lambda t: interpolate.BSpline(t, np.array([0.0, 1.0]), 1)(at))(t)
    assert_allclose(slope, [0.0, -0.75, -0.25, 0.0], rtol=1e-14)  # of (x - t₁) / (t₂ - t₁)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_nan_where_there_is_no_value(mode):
    at = np.array([-1.0, 0.5, np.nan, 9.0])
    rows = fwdad.jacobian(lambda c: spline(c, extrapolate=False)(at), X, mode=mode)
    want = fwdad.jacobian(lambda c: spline(c)(0.5), X)
    assert_allclose(rows[1], want, rtol=1e-13)
    assert np.all(np.isnan(rows[[0, 2, 3]]).any(axis=1))
    by_point = fwdad.jacobian(spline(X, extrapolate=False), at, mode=mode)
    assert np.all(np.isnan(np.diag(by_point)[[0, 2, 3]]))
    assert_allclose(by_point[1], [0.0, spline(X)(0.5, 1), 0.0, 0.0], rtol=1e-12)


def test_what_is_not_asked_for_does_not_count():
    at = np.array([-1.0, 0.5])
    found = fwdad.grad(lambda c: spline(c, extrapolate=False)(at)[1])(X)
    assert_allclose(found, fwdad.grad(lambda c: spline(c)(0.5))(X), rtol=1e-13)


def test_at_a_knot_the_piece_that_begins_there():
    hat = interpolate.BSpline([0.0, 0.0, 1.0, 2.0, 2.0], [0.0, 1.0, 0.0], 1)
    assert fwdad.derivative(hat, 1.0) == -1.0
    assert fwdad.derivative(hat, 2.0) == -1.0


def test_no_points():
    assert fwdad.jacobian(lambda c: spline(c)(np.zeros(0)), X).shape == (0, N)


def test_single_precision():
    c = X.astype(np.float32)
    J = fwdad.jacobian(lambda c: spline(c)(AT), c)
    assert_allclose(J, fwdad.jacobian(lambda c: spline(c)(AT), X), rtol=1e-6)


def test_the_arguments_stay_as_they_are():
    c, at = X.copy(), AT.copy()
    fwdad.grad(lambda c: np.sum(through(c)(at) ** 2))(c)
    assert_array_equal(c, X)
    assert_array_equal(at, AT)


def test_what_has_no_rule_says_so():
    with pytest.raises(MissingRuleError, match=r"make_lsq_spline has a rule .* data only"):
        fwdad.grad(lambda x: fit(X, w=1.0 + x**2)(0.5))(X)


# -- the routine of LAPACK


@pytest.mark.parametrize("letter", "sdcz")
def test_gbsv(letter):
    dtype = {"s": "f", "c": "F", "z": "D"}.get(letter, "d")
    kl, ku, n = 1, 2, 6
    random = draw.complex if letter in "cz" else draw.real
    band = np.asfortranarray(random(2 * kl + ku + 1, n).astype(dtype))
    band[kl + ku] += 4.0
    b = random(n, 2).astype(dtype)
    dense = sum(
        np.diag(band[kl + ku - d, max(d, 0) : n + min(d, 0)], d) for d in range(-kl, ku + 1)
    )
    before = band.copy()
    slope, moved = random(n, 2).astype(dtype), random(*band.shape).astype(dtype)
    moved_dense = sum(
        np.diag(moved[kl + ku - d, max(d, 0) : n + min(d, 0)], d) for d in range(-kl, ku + 1)
    )

    def solution(ab, b):
        (gbsv,) = lapack.get_lapack_funcs(("gbsv",), (ab, b))
        _, _, x, _ = gbsv(kl, ku, ab, b, overwrite_ab=True, overwrite_b=True)
        return x

    x, x_dot = fwdad.jvp(solution, (band, b), (moved, slope), holomorphic=letter in "cz")
    rtol = 1e-4 if letter in "sc" else 1e-11
    assert_allclose(x, np.linalg.solve(dense, b), rtol=rtol)
    assert_allclose(x_dot, np.linalg.solve(dense, slope - moved_dense @ x), rtol=10 * rtol)
    assert_array_equal(band, before)
    if letter == "d":
        loss = lambda b: np.sum(solution(band, b) ** 2)  # noqa: E731
        want = 2 * np.linalg.solve(dense.T, x)
        assert_allclose(fwdad.grad(loss)(b), want, rtol=1e-10)
        assert_allclose(fwdad.jit(fwdad.grad(loss))(b), want, rtol=1e-10)
        of_band = lambda ab: np.sum(solution(ab, b) ** 2)  # noqa: E731
        want = central_differences(of_band, band)
        assert_allclose(fwdad.grad(of_band)(band), want, rtol=1e-6, atol=1e-8)
        assert_allclose(fwdad.jit(fwdad.grad(of_band))(band), want, rtol=1e-6, atol=1e-8)


def test_the_factors_of_gbsv_have_no_derivative():
    band, b = np.full((4, 3), 2.0), np.ones((3, 1))
    with pytest.raises(UndefinedDerivativeError, match="factors"):
        fwdad.jacobian(lambda ab: lapack.dgbsv(1, 1, ab, b)[0], band)
