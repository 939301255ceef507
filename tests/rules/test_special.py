"""``scipy.special``, element by element: against mpmath at forty digits, and differences."""

import math

import mpmath
import numpy as np
import pytest
import scipy
import scipy.special as sp
from mpmath import mp
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import MissingRuleError, UndefinedDerivativeError
from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from fwdad.testing import check_frule
from tests.rules.case import Case, Draw
from tests.rules.slopes import mp_slope, second_slope, slope

SCIPY = tuple(int(part) for part in scipy.__version__.split(".")[:2])
draw = Draw(34)
X = np.array([-1.3, 0.4, 2.2])
POSITIVE = np.array([0.3, 1.2, 2.7])
UNIT = np.array([0.15, 0.5, 0.9])
Z = np.array([0.5 + 0.3j, -1.2 + 0.7j, 0.8 - 1.1j])
WIDE = draw.rng.uniform(0.3, 2.0, (2, 3))


# name: the function of mpmath, points; also where the textbook's formula loses its digits
ONE_ARGUMENT = {
    "expm1": (mpmath.expm1, [-40.0, 0.4, 2.2]),
    "log1p": (mpmath.log1p, [-0.9, 1e-12, 2.2]),
    "exp2": (lambda x: mpmath.power(2, x), X),
    "exp10": (lambda x: mpmath.power(10, x), X),
    "cbrt": (mpmath.cbrt, POSITIVE),
    "cosm1": (lambda x: mpmath.cos(x) - 1, X),
    "sindg": (lambda x: mpmath.sin(x * mp.pi / 180), [30.0, 77.0, -150.0]),
    "cosdg": (lambda x: mpmath.cos(x * mp.pi / 180), [30.0, 77.0, -150.0]),
    "tandg": (lambda x: mpmath.tan(x * mp.pi / 180), [30.0, 77.0, -150.0]),
    "cotdg": (lambda x: mpmath.cot(x * mp.pi / 180), [30.0, 77.0, -150.0]),
    "erf": (mpmath.erf, X),
    "erfc": (mpmath.erfc, [-1.3, 0.4, 9.0]),
    "erfi": (mpmath.erfi, X),
    "erfcx": (
        lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
        [-2.0, 0.4, 8.0, 24.9, 25.1, 1e3, 1e7],
    ),
    "dawsn": (
        lambda x: mpmath.sqrt(mp.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x),
        [-0.5, 0.4, 3.0, 24.9, 25.1, -40.0, 1e3],
    ),
    "ndtr": (mpmath.ncdf, X),
    "log_ndtr": (
        lambda x: mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2),
        [-40.0, -5.0, 0.4, 6.0],
    ),
    "expit": (lambda x: 1 / (1 + mpmath.exp(-x)), [-40.0, 0.4, 45.0]),
    "log_expit": (lambda x: -mpmath.log1p(mpmath.exp(-x)), [-40.0, 0.4, 45.0]),
    "softplus": (lambda x: mpmath.log1p(mpmath.exp(x)), [-40.0, 0.4, 45.0]),
    "logit": (lambda x: mpmath.log(x / (1 - x)), [1e-12, 0.4, 1 - 1e-12]),
    "exprel": (lambda x: mpmath.expm1(x) / x, [-30.0, -1.01, -0.99, 1e-9, 0.7, 1.5, 20.0]),
    "entr": (lambda x: -x * mpmath.log(x), [1e-20, 0.4, 2.2]),
    "gamma": (mpmath.gamma, [-1.5, 0.001, 0.4, 5.0, 30.2]),
    "gammaln": (lambda x: mpmath.log(abs(mpmath.gamma(x))), [-1.5, 0.001, 0.4, 30.2, 1e5]),
    "loggamma": (mpmath.loggamma, [0.001, 0.4, 30.2]),
    "rgamma": (mpmath.rgamma, [-3.0, -2.0, -1.5, 0.0, 0.4, 5.0]),
    "psi": (mpmath.digamma, [-1.5, 0.001, 0.4, 30.2]),
    "erfinv": (mpmath.erfinv, [-0.9, 0.01, 0.4]),
    "erfcinv": (lambda x: mpmath.erfinv(1 - x), [0.1, 0.99, 1.4]),
    "ndtri": (lambda x: mpmath.sqrt(2) * mpmath.erfinv(2 * x - 1), UNIT),
    "ndtri_exp": (
        lambda x: mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.exp(x) - 1),
        [-3.0, -0.7, -0.05],
    ),
}
# name: the function of mpmath, arguments, positions of the smooth ones
MANY_ARGUMENTS = {
    "xlogy": (lambda x, y: x * mpmath.log(y), [(0.4, 2.2), (0.0, 1.7), (-1.3, 1e-9)], (0, 1)),
    "xlog1py": (lambda x, y: x * mpmath.log1p(y), [(0.4, 2.2), (0.0, 1.7), (1.3, 1e-9)], (0, 1)),
    "rel_entr": (lambda x, y: x * mpmath.log(x / y), [(0.4, 2.2), (1.3, 1.2)], (0, 1)),
    "kl_div": (lambda x, y: x * mpmath.log(x / y) - x + y, [(0.4, 2.2), (1.3, 1.2999999)], (0, 1)),
    "powm1": (lambda x, p: x**p - 1, [(0.4, 2.2), (1.0000001, 1.5)], (0, 1)),
    "boxcox": (
        lambda x, p: (x**p - 1) / p,
        [(0.4, 2.2), (1.5, 1e-9), (2.5, -0.3), (0.999, 0.2)],
        (0, 1),
    ),
    "boxcox1p": (
        lambda x, p: ((1 + x) ** p - 1) / p,
        [(0.4, 2.2), (1.5, 1e-9), (1e-9, -0.3), (-0.5, 1.9)],
        (0, 1),
    ),
    "pseudo_huber": (
        lambda d, r: d * d * (mpmath.sqrt(1 + (r / d) ** 2) - 1),
        [(0.4, 2.2), (1.3, 1e-6), (1.3, -7.0)],
        (0, 1),
    ),
    "owens_t": (
        lambda h, a: (
            mpmath.quad(lambda t: mpmath.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a])
            / (2 * mp.pi)
        ),
        [(0.4, 2.2), (-1.3, 0.2)],
        (0, 1),
    ),
    "beta": (mpmath.beta, [(0.4, 2.2), (3.0, 1e-3)], (0, 1)),
    "betaln": (lambda a, b: mpmath.log(mpmath.beta(a, b)), [(0.4, 2.2), (3.0, 1e-3)], (0, 1)),
    "poch": (mpmath.rf, [(0.4, 2.2), (3.0, -0.7)], (0, 1)),
    "binom": (mpmath.binomial, [(5.4, 2.2), (3.0, 1.0), (2.5, 3.2)], (0, 1)),
    "polygamma": (mpmath.polygamma, [(0, 0.4), (1, 2.2), (3, 1e-3)], (1,)),
    "gammainc": (
        lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
        [(0.4, 2.2), (1.0, 1e-9), (30.0, 25.0)],
        (1,),
    ),
    "gammaincc": (
        lambda a, x: mpmath.gammainc(a, x, mp.inf, regularized=True),
        [(0.4, 2.2), (30.0, 50.0)],
        (1,),
    ),
    "betainc": (
        lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True),
        [(0.4, 2.2, 0.3), (1.0, 5.0, 1e-9), (30.0, 2.0, 0.9)],
        (2,),
    ),
    "betaincc": (
        lambda a, b, x: 1 - mpmath.betainc(a, b, 0, x, regularized=True),
        [(0.4, 2.2, 0.3)],
        (2,),
    ),
    "gammaincinv": (
        lambda a, p: mpmath.findroot(
            lambda x: mpmath.gammainc(a, 0, x, regularized=True) - p,
            sp.gammaincinv(float(a), float(p)),
        ),
        [(2.4, 0.3)],
        (1,),
    ),
    "gammainccinv": (
        lambda a, p: mpmath.findroot(
            lambda x: mpmath.gammainc(a, x, mp.inf, regularized=True) - p,
            sp.gammainccinv(float(a), float(p)),
        ),
        [(2.4, 0.3)],
        (1,),
    ),
    "betaincinv": (
        lambda a, b, p: mpmath.findroot(
            lambda x: mpmath.betainc(a, b, 0, x, regularized=True) - p,
            sp.betaincinv(float(a), float(b), float(p)),
        ),
        [(2.4, 1.7, 0.3)],
        (2,),
    ),
    "betainccinv": (
        lambda a, b, p: mpmath.findroot(
            lambda x: 1 - mpmath.betainc(a, b, 0, x, regularized=True) - p,
            sp.betainccinv(float(a), float(b), float(p)),
        ),
        [(2.4, 1.7, 0.3)],
        (2,),
    ),
}
# the cancelling sums inside: digits that double precision cannot keep, and why
LOOSER = {
    "gammainc": (1e-13, "exp of a sum of terms of size 100"),
    "gammaincc": (1e-13, "exp of a sum of terms of size 100"),
    "betainc": (1e-13, "exp of a sum of terms of size 10"),
    "gamma": (2e-14, "SciPy's gamma and psi, each to 1e-14"),
    "rgamma": (2e-14, "SciPy's psi"),
    "dawsn": (1e-12, "1 - 2 x y cancels up to x = 25"),
    "erfcx": (1e-12, "2 x y - 2/sqrt(pi) cancels up to x = 25"),
    "rel_entr": (1e-14, "log(x/y) + 1"),
    "kl_div": (1e-8, "log(x/y) of x/y next to 1"),
    "betaln": (1e-12, "a difference of psi"),
    "beta": (1e-12, "a difference of psi"),
    "poch": (1e-13, "a difference of psi"),
    "binom": (1e-13, "a difference of psi"),
}
COMPLEX = {
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "erfi": mpmath.erfi,
    "erfcx": lambda z: mpmath.exp(z * z) * mpmath.erfc(z),
    "dawsn": lambda z: mpmath.sqrt(mp.pi) / 2 * mpmath.exp(-z * z) * mpmath.erfi(z),
    "wofz": lambda z: mpmath.exp(-z * z) * mpmath.erfc(-1j * z),
    "gamma": mpmath.gamma,
    "loggamma": mpmath.loggamma,
    "rgamma": mpmath.rgamma,
    "psi": mpmath.digamma,
    "expm1": mpmath.expm1,
    "log1p": mpmath.log1p,
}
AVAILABLE = [name for name in ONE_ARGUMENT if hasattr(sp, name)]  # softplus came later
REGIONS = {
    **dict.fromkeys(("log1p", "entr", "loggamma", "cotdg"), POSITIVE),
    **dict.fromkeys(("erfinv", "erfcinv", "ndtri", "logit"), UNIT),
    "ndtri_exp": -POSITIVE,
}


def _in_region(name):
    x = REGIONS.get(name, X)
    return x, x.reshape(3, 1), float(x[1])


CONSTANT = (sp.round, sp.gammasgn)
ORDERED = {"gammainc", "gammaincc", "gammaincinv", "gammainccinv"}
QUANTILES = {"gammaincinv", "gammainccinv", "betaincinv", "betainccinv"}
MATRIX = draw.real(2, 3)
CASES = [
    *[Case(getattr(sp, name), x) for name in AVAILABLE for x in _in_region(name)],
    *[Case(getattr(sp, name), z) for name in COMPLEX for z in (Z, complex(Z[0]))],
    Case(sp.wofz, X),
    *[Case(f, x) for f in (sp.fresnel,) for x in (X, Z, 0.4)],
    *[
        case
        for name, (_, _, smooth) in MANY_ARGUMENTS.items()
        if len(smooth) == 2
        for case in (
            Case(getattr(sp, name), POSITIVE + 1.5 * (name == "binom"), WIDE),
            Case(getattr(sp, name), WIDE + 2 * (name == "binom"), POSITIVE),
            Case(getattr(sp, name), 2.5, WIDE),
            Case(getattr(sp, name), POSITIVE + 0.1, 0.7),
            Case(getattr(sp, name), 1.2, 0.7),
        )
    ],
    Case(sp.huber, POSITIVE, MATRIX),
    Case(sp.huber, MATRIX**2 + 0.1, X),
    Case(sp.huber, 0.7, X),
    Case(sp.polygamma, np.array([0, 1, 2]), WIDE),
    Case(sp.polygamma, 1, POSITIVE),
    Case(sp.polygamma, 2, 0.7),
    *[Case(getattr(sp, name), POSITIVE + 0.7, WIDE / 2.5) for name in sorted(ORDERED)],
    *[Case(getattr(sp, name), 1.5, 0.3) for name in sorted(ORDERED)],
    *[
        Case(getattr(sp, name), 1.5, POSITIVE + 0.7, WIDE / 2.5)
        for name in ("betainc", "betaincc", "betaincinv", "betainccinv")
    ],
    Case(sp.zeta, POSITIVE + 1.5, WIDE),
    Case(sp.zeta, 2.5, 0.7),
    Case(sp._ufuncs._zeta, POSITIVE + 1.5, WIDE),
    Case(sp.zetac, np.array([-1.7, 0.6, 2.5])),
    Case(sp.multigammaln, POSITIVE + 1.5, 3),
    Case(sp.multigammaln, 3.7, 2),
    *[
        Case(f, MATRIX, **options)
        for f in (sp.softmax, sp.log_softmax)
        for options in ({}, {"axis": 0}, {"axis": -1}, {"axis": (0, 1)})
    ],
    Case(sp.softmax, X),
    Case(sp.log_softmax, X),
    *[
        Case(sp.logsumexp, MATRIX, **options)
        for options in (
            {},
            {"axis": 0},
            {"axis": 1, "keepdims": True},
            {"axis": (0, 1)},
            {"axis": -1, "return_sign": True},
            {"keepdims": True, "return_sign": True},
            {"b": np.array([0.5, 1.0, 2.0])},
            {"b": np.array([[0.5], [2.0]]), "axis": 1},
            {"b": np.array([-5.0, -2.0, 1.0]), "axis": 0, "return_sign": True},
        )
    ],
    Case(sp.logsumexp, X, b=np.exp(MATRIX), axis=1),
    Case(sp.logsumexp, 0.7),
    *[Case(f, x) for f in CONSTANT for x in (X, -1.3)],
]
if SCIPY >= (1, 15):
    CASES += [
        Case(sp.logsumexp, Z),
        Case(sp.logsumexp, Z, return_sign=True),
        Case(sp.logsumexp, Z[:, None] + MATRIX[0], axis=1, return_sign=True),
    ]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(
    ("name", "x"), [(name, float(x)) for name in AVAILABLE for x in ONE_ARGUMENT[name][1]]
)
def test_derivative_of_one_argument(name, x):
    rtol, _ = LOOSER.get(name, (5e-15, "rounding"))
    f, reference = getattr(sp, name), ONE_ARGUMENT[name][0]
    assert_allclose(slope(f, x), mp_slope(reference, x), rtol=rtol)


def _partial_rows():
    return [
        (name, args, k)
        for name, (_, points, smooth) in MANY_ARGUMENTS.items()
        for args in points
        for k in smooth
    ]


@pytest.mark.parametrize(("name", "args", "argnum"), _partial_rows())
def test_derivative_of_many_arguments(name, args, argnum):
    rtol, _ = LOOSER.get(name, (5e-15, "rounding"))
    want = mp_slope(MANY_ARGUMENTS[name][0], *args, argnum=argnum)
    assert_allclose(slope(getattr(sp, name), *args, argnum=argnum), want, rtol=rtol, atol=1e-16)


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_derivative(name):
    for z in [*Z.tolist(), 30.0 + 4.0j, 4.0 + 30.0j]:
        want = mp_slope(COMPLEX[name], z)
        if abs(want) < 1e300:
            assert_allclose(slope(getattr(sp, name), z), want, rtol=1e-12, atol=1e-50)


@pytest.mark.parametrize("name", AVAILABLE)
def test_second_derivative(name):
    """The partial's own formula is differentiated: also by the rules of the functions in it."""
    reference, points = ONE_ARGUMENT[name]
    x = float(points[1])
    want = mp_slope(reference, x, order=2)
    assert_allclose(second_slope(getattr(sp, name), x), want, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "args", "argnum"), [row for row in _partial_rows() if row[0] not in QUANTILES]
)
def test_second_derivative_of_many_arguments(name, args, argnum):
    want = mp_slope(MANY_ARGUMENTS[name][0], *args, argnum=argnum, order=2)
    got = second_slope(getattr(sp, name), *args, argnum=argnum)
    assert_allclose(got, want, rtol=1e-8, atol=1e-10)


# -- limits and conventions


def test_a_zero_weight_times_an_infinite_logarithm():
    """xlogy(0, 0) is 0, and the slope along y stays 0 with it."""
    with np.errstate(all="ignore"):
        assert slope(sp.xlogy, 0.0, 0.0, argnum=1) == 0.0
        assert slope(sp.xlogy, 0.0, 0.0, argnum=0) == -np.inf
        assert slope(sp.xlog1py, 0.0, -1.0, argnum=1) == 0.0
        assert slope(sp.rel_entr, 0.0, 0.0, argnum=1) == 0.0
        assert slope(sp.entr, 0.0) == np.inf
    # and where it is smooth, also the mixed derivative is the right one
    mixed = fwdad.derivative(lambda x: fwdad.derivative(lambda y: sp.xlogy(x, y), 2.0), 0.0)
    assert mixed == 0.5


def test_huber_at_the_end_of_the_parabola():
    assert slope(sp.huber, 1.0, 1.0, argnum=1) == 1.0
    assert slope(sp.huber, 1.0, 1.0, argnum=0) == 0.0
    assert slope(sp.huber, 1.0, -3.0, argnum=1) == -1.0
    assert slope(sp.huber, 1.0, -3.0, argnum=0) == 2.0


def test_boxcox_of_zero():
    with np.errstate(all="ignore"):
        assert_allclose(slope(sp.boxcox, 0.0, 2.0, argnum=1), 0.25, rtol=1e-15)
        assert slope(sp.boxcox, 0.0, 2.0) == 0.0
    log = math.log(1.7)
    assert_allclose(slope(sp.boxcox, 1.7, 0.0, argnum=1), log**2 / 2, rtol=1e-15)


def test_fresnel_integrals():
    x = 0.7
    s_slope, c_slope = slope(sp.fresnel, x)
    assert_allclose(s_slope, mp_slope(mpmath.fresnels, x), rtol=1e-14)
    assert_allclose(c_slope, mp_slope(mpmath.fresnelc, x), rtol=1e-14)


@pytest.mark.parametrize("q", [1e-3, 0.7, 2.5, 1e4])
@pytest.mark.parametrize("x", [1.0001, 2.5, 20.0])
def test_hurwitz_zeta(x, q):
    for argnum in range(2):
        want = mp_slope(mpmath.zeta, x, q, argnum=argnum)
        assert_allclose(slope(sp.zeta, x, q, argnum=argnum), want, rtol=2e-14)
    want = mp_slope(mpmath.zeta, x, q, order=2)
    assert_allclose(second_slope(sp.zeta, x, q), want, rtol=1e-12)


@pytest.fixture(scope="module")
def compiled_zeta_slope():
    return fwdad.jit(fwdad.grad(sp.zeta))


@pytest.mark.parametrize("x", [-7.3, -4.0, -0.3, 0.0, 0.2, 0.999, 1.5, 30.0])
def test_riemann_zeta(x, compiled_zeta_slope):
    want = mp_slope(mpmath.zeta, x)
    assert_allclose(slope(sp.zeta, x, None), want, rtol=1e-14)
    assert_allclose(slope(sp.zetac, x), want, rtol=1e-14)
    assert_allclose(compiled_zeta_slope(x), want, rtol=1e-14)
    with pytest.raises(MissingRuleError, match="complex x"):
        slope(sp.zeta, x + 1j, None)


def test_multigammaln():
    def reference(a):
        return sum(mpmath.loggamma(a - mpmath.mpf(j) / 2) for j in range(3))

    assert_allclose(slope(sp.multigammaln, 3.7, d=3), mp_slope(reference, 3.7), rtol=1e-14)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "polygamma", "betainc"])
def test_an_order_has_no_derivative(name):
    args = (1, 0.5) if name == "polygamma" else (1.5, 0.5, 0.4)[: 3 if name == "betainc" else 2]
    order = "n" if name == "polygamma" else "a"
    says = rf"^scipy\.special\.{name} has no rule .* its argument {order}: "
    with pytest.raises(UndefinedDerivativeError, match=says):
        slope(getattr(sp, name), *map(float, args))


def test_locally_constant():
    for f, x in zip(CONSTANT, (2.7, -1.5), strict=True):
        y, y_dot = call_rule(f, (x,), (Chunk(np.ones(1)),))
        assert y == f(x)
        assert y_dot is ZERO


# -- sums in the logarithm


def _softmax(x):
    """By mpmath, from the definition."""
    with mpmath.workdps(40):
        powers = [mpmath.exp(mpmath.mpf(float(v))) for v in x]
        return np.array([float(p / mpmath.fsum(powers)) for p in powers])


@pytest.mark.parametrize("shift", [0.0, 1e3, -1e3])
def test_the_weights_of_logsumexp_are_the_softmax(shift):
    x = X + shift
    _, y_dot = call_rule(sp.logsumexp, (x,), (Chunk(np.eye(3)),))
    assert_allclose(y_dot.lanes, _softmax(x), rtol=1e-12 if shift else 1e-15)


def test_softmax_and_its_logarithm():
    p = _softmax(X)
    _, y_dot = call_rule(sp.softmax, (X,), (Chunk(np.eye(3)),))
    assert_allclose(y_dot.lanes, np.diag(p) - np.outer(p, p), rtol=1e-13)
    _, y_dot = call_rule(sp.log_softmax, (X,), (Chunk(np.eye(3)),))
    assert_allclose(y_dot.lanes, np.eye(3) - p[:, None], rtol=1e-13)


def test_hessian_of_logsumexp_is_the_slope_of_softmax():
    p = _softmax(X)
    hessian = fwdad.hessian(sp.logsumexp, X)
    assert_allclose(hessian, np.diag(p) - np.outer(p, p), rtol=1e-12, atol=1e-16)


def test_impossible_members_weigh_nothing():
    x = np.array([[-np.inf, 1.0, 2.0], [-np.inf, -np.inf, -np.inf]])
    y, y_dot = call_rule(sp.logsumexp, (x,), (Chunk(np.ones((1, 2, 3))),), axis=1)
    assert y[1] == -np.inf
    assert_allclose(y_dot.lanes, [[1.0, 0.0]], rtol=1e-15)
