"""Exponentials, logarithms, trigonometric and hyperbolic functions, roots and powers."""

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.rules import elementary
from fwdad.testing import check_frule
from tests.differences import difference_along
from tests.rules.case import Case, Draw
from tests.rules.slopes import mp_slope, second_slope, slope

draw = Draw(31)
ANY = np.array([-1.3, 0.4, 2.2])
POSITIVE = np.array([0.3, 1.2, 2.7])
UNIT = np.array([-0.7, 0.2, 0.9])
ABOVE_ONE = np.array([1.2, 2.5, 4.0])
COMPLEX = np.array([0.5 + 0.3j, -1.2 + 0.7j, 0.8 - 1.1j])

# function: where it is smooth, the same function of mpmath (None: real numbers only)
ONE_ARGUMENT = {
    np.exp: (ANY, mpmath.exp),
    np.exp2: (ANY, lambda x: mpmath.power(2, x)),
    np.expm1: (ANY, mpmath.expm1),
    np.log: (POSITIVE, mpmath.log),
    np.log2: (POSITIVE, lambda x: mpmath.log(x, 2)),
    np.log10: (POSITIVE, mpmath.log10),
    np.log1p: (POSITIVE, mpmath.log1p),
    np.sin: (ANY, mpmath.sin),
    np.cos: (ANY, mpmath.cos),
    np.tan: (ANY, mpmath.tan),
    np.arcsin: (UNIT, mpmath.asin),
    np.arccos: (UNIT, mpmath.acos),
    np.arctan: (ANY, mpmath.atan),
    np.sinh: (ANY, mpmath.sinh),
    np.cosh: (ANY, mpmath.cosh),
    np.tanh: (ANY, mpmath.tanh),
    np.arcsinh: (ANY, mpmath.asinh),
    np.arccosh: (ABOVE_ONE, mpmath.acosh),
    np.arctanh: (UNIT, mpmath.atanh),
    np.sqrt: (POSITIVE, mpmath.sqrt),
    np.square: (ANY, lambda x: x * x),
    np.reciprocal: (ANY, lambda x: 1 / x),
}
REAL_ONLY = {
    np.cbrt: (ANY, lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x))),
    np.fabs: (ANY, abs),
    np.deg2rad: (ANY, mpmath.radians),
    np.radians: (ANY, mpmath.radians),
    np.rad2deg: (ANY, mpmath.degrees),
    np.degrees: (ANY, mpmath.degrees),
}

CASES = [
    *[
        Case(f, x)
        for f, (points, _) in (ONE_ARGUMENT | REAL_ONLY).items()
        for x in (points, points.reshape(3, 1), float(points[1]), points[2], np.array(points[0]))
    ],
    *[Case(f, z) for f in ONE_ARGUMENT for z in (COMPLEX, COMPLEX[1], complex(COMPLEX[2]))],
    *[
        case
        for f in (np.power, np.float_power)
        for case in (
            Case(f, POSITIVE, draw.real(2, 3)),  # unequal ranks
            Case(f, np.exp(draw.real(2, 3)), ANY),
            Case(f, POSITIVE, 2.5),
            Case(f, 2.5, draw.real(2, 3)),
            Case(f, 1.7, -0.6),
            Case(f, 2, ANY),
            Case(f, COMPLEX, 1.5),
            Case(f, COMPLEX, draw.complex(2, 3)),
            Case(f, np.exp(draw.real(2, 3)), COMPLEX),
            Case(f, ANY, 3),
            Case(f, ANY, -2),
            Case(f, ANY, 0),
            Case(f, ANY, np.array([[2, 0, 3], [1, -1, 4]])),
        )
    ],
]


@pytest.mark.every(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize("f", ONE_ARGUMENT | REAL_ONLY, ids=lambda f: f.__name__)
def test_first_and_second_derivative(f):
    points, reference = (ONE_ARGUMENT | REAL_ONLY)[f]
    for x in points:
        assert_allclose(slope(f, x), mp_slope(reference, x), rtol=2e-15)
        want = mp_slope(reference, x, order=2)
        assert_allclose(second_slope(f, x), want, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("f", ONE_ARGUMENT, ids=lambda f: f.__name__)
def test_complex_derivative(f):
    for z in COMPLEX.tolist():
        assert_allclose(slope(f, z), mp_slope(ONE_ARGUMENT[f][1], z), rtol=5e-15)


@pytest.mark.parametrize(
    ("f", "x", "derivative"),
    [
        (np.expm1, -45.0, mpmath.exp),
        (np.tanh, 20.0, lambda x: mpmath.sech(x) ** 2),
        (np.tanh, -300.0, lambda x: mpmath.sech(x) ** 2),
        (np.arcsin, 1 - 1e-12, lambda x: 1 / mpmath.sqrt(1 - x**2)),
        (np.arccos, -1 + 1e-12, lambda x: -1 / mpmath.sqrt(1 - x**2)),
        (np.arccosh, 1 + 1e-12, lambda x: 1 / mpmath.sqrt(x**2 - 1)),
        (np.arctanh, -1 + 1e-12, lambda x: 1 / (1 - x**2)),
        (np.log1p, -1 + 1e-12, lambda x: 1 / (1 + x)),
        (np.arctan, 1e12, lambda x: 1 / (1 + x**2)),
        (np.tan, math.pi / 2, lambda x: mpmath.sec(x) ** 2),
        (np.sqrt, 1e-300, lambda x: 1 / (2 * mpmath.sqrt(x))),
    ],
)
def test_digits_are_kept_at_the_ends(f, x, derivative):
    with mpmath.workdps(60):
        want = float(derivative(mpmath.mpf(x)))
    assert_allclose(slope(f, x), want, rtol=1e-14)


@pytest.mark.parametrize(
    ("f", "point", "side"),
    [
        (f, point, side)
        for f, points in {
            np.arcsin: (1.5, -1.5),
            np.arccos: (1.5, -1.5),
            np.arccosh: (0.5, -1.5),
            np.arctanh: (1.5, -1.5),
            np.sqrt: (-1.5,),
            np.log: (-1.5,),
            np.arctan: (1.5j, -1.5j),
            np.arcsinh: (1.5j, -1.5j),
        }.items()
        for point in points
        for side in (0.0, -0.0)
    ],
)
def test_on_a_branch_cut_the_side_is_chosen_by_the_sign_of_zero(f, point, side):
    """Along the cut the function is smooth on either side: differences of the primal see it."""

    def at(t):
        if isinstance(point, complex):
            return complex(side, point.imag + t)
        return complex(point + t, side)

    along = 1j if isinstance(point, complex) else 1.0
    want = difference_along(lambda t: f(at(t)), 0.0) / along
    assert_allclose(slope(f, at(0.0)), want, rtol=1e-8)


def points_of_all_sizes():
    """Doubles near the zeros of sine and cosine, tiny ones, huge ones, and none of these."""
    rng = np.random.default_rng(3)
    halves = rng.integers(-(10**6), 10**6, 100) * (math.pi / 2)
    near = (halves[:, None] + np.array([0.0, 1e-12, -1e-6])).ravel()
    scales = 10.0 ** rng.uniform(-310, 300, 100)
    special = [0.0, -0.0, 5e-324, -1e-310, 1e-9, -1e-8, 1.0, math.pi / 2]
    return np.concatenate([rng.normal(size=200), near, scales, -scales, special])


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize(
    ("f", "derivative"), [(np.sin, mpmath.cos), (np.cos, lambda x: -mpmath.sin(x))]
)
def test_slopes_by_way_of_the_tangent_have_all_digits(f, derivative, quick, monkeypatch):
    monkeypatch.setattr(elementary, "_has_vector_code", lambda _: quick)
    x = points_of_all_sizes()
    _, y_dot = fwdad.jvp(f, x, np.ones(x.size))
    with mpmath.workdps(400):
        want = np.array([float(derivative(mpmath.mpf(v))) for v in x.tolist()])
    assert (np.abs(y_dot - want) <= 4 * np.spacing(np.abs(want))).all()


@pytest.mark.parametrize("quick", [False, True])
def test_slope_of_tanh_keeps_its_digits_in_the_tails(quick, monkeypatch):
    monkeypatch.setattr(elementary, "_has_vector_code", lambda _: quick)
    x = np.array([0.0, -0.3, 1.0, 20.0, -50.0, 300.0, -353.0, 800.0, -np.inf])
    _, y_dot = fwdad.jvp(np.tanh, x, np.ones(x.size))
    want = np.array([float(mpmath.sech(v) ** 2) for v in x[:-1].tolist()] + [0.0])
    assert (np.abs(y_dot - want) <= 8 * np.spacing(want)).all()


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_slopes_by_way_of_the_tangent_where_there_is_none(quick, monkeypatch):
    monkeypatch.setattr(elementary, "_has_vector_code", lambda _: quick)
    x = np.zeros(500)
    x[3], x[4], x[5] = np.nan, np.inf, 0.7
    for f, at_zero, at_point in ((np.sin, 1.0, math.cos(0.7)), (np.cos, 0.0, -math.sin(0.7))):
        _, y_dot = fwdad.jvp(f, x, np.ones(500))
        assert_array_equal(np.isnan(y_dot).nonzero()[0], [3, 4])
        assert_array_equal(np.delete(y_dot, [3, 4, 5]), at_zero)
        assert_allclose(y_dot[5], at_point, rtol=1e-15)


def test_slopes_by_way_of_the_tangent_to_higher_order_and_in_chunks(monkeypatch):
    x = np.linspace(-4.0, 4.0, 301)  # with a zero in the middle
    v = np.random.default_rng(5).normal(size=(5, x.size))

    def program(x):
        return np.sin(3 * x) * np.cos(x[::-1]) + np.tanh(x)

    def first(x):
        return fwdad.jvp(program, x, v[0])[1]

    seen = []
    for quick in (False, True):
        monkeypatch.setattr(elementary, "_has_vector_code", lambda _, quick=quick: quick)
        lanes = fwdad.jvp(program, x, v)[1]
        assert_array_equal(fwdad.jvp(program, x, v, chunk=2)[1], lanes)
        second = fwdad.jvp(first, x, v[1])[1]
        of_complex = fwdad.jvp(program, x + 0.1j, v[0] + 0j, holomorphic=True)[1]
        seen.append((lanes, second, of_complex))
    for plain, by_tangent in zip(*seen, strict=True):
        assert_allclose(by_tangent, plain, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
def test_whole_powers_at_zero_to_any_order(n):
    """The n-th derivative of x**n is n!, the next one is 0; a power by logarithms gives NaN."""

    def differentiated(f, times):
        return f if times == 0 else differentiated(lambda x: fwdad.derivative(f, x), times - 1)

    for power in (lambda x: x**n, lambda x: np.power(x, float(n)), lambda x: math.pow(x, n)):
        for x in (0.0, np.float64(0.0), -2.0):
            assert differentiated(power, n)(x) == math.factorial(n)
            assert differentiated(power, n + 1)(x) == 0.0


def test_python_and_numpy_disagree_about_negative_bases():
    assert_allclose(
        fwdad.derivative(lambda x: (x**0.5).imag, -4.0), -0.25, rtol=1e-15
    )  # Python's power is complex: i sqrt(4)
    with np.errstate(invalid="ignore"):
        assert np.isnan(slope(np.power, -4.0, 0.5))


def test_tails_of_complex_functions_do_not_overflow():
    assert_array_equal(slope(np.tanh, 800.0 + 1.0j), 0.0)
    assert_allclose(slope(np.tanh, 0.3 + 1.0j), mp_slope(mpmath.tanh, 0.3 + 1.0j), rtol=1e-14)
