"""Bessel, Airy and Struve functions, polynomials, hypergeometric functions and integrals."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special as sp
from mpmath import mp
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import UndefinedDerivativeError
from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from fwdad.testing import check_frule
from tests.rules.case import Case, Draw
from tests.rules.slopes import mp_slope, second_slope, slope

draw = Draw(35)
X = np.array([-1.3, 0.4, 2.2])
POSITIVE = np.array([0.3, 1.2, 2.7])
UNIT = np.array([0.15, 0.5, 0.85])
WIDE = draw.rng.uniform(0.3, 2.0, (2, 3))
Z = np.array([0.5 + 0.3j, 1.2 + 0.7j, 0.8 - 1.1j])


def _spherical(bessel):
    """A spherical function out of the cylindrical one."""

    def f(n, x):
        return mpmath.sqrt(mp.pi / (2 * x)) * bessel(n + mpmath.mpf(1) / 2, x)

    return f


def _student(v, t):
    """The distribution function, as an integral of the density."""
    scale = mpmath.gamma((v + 1) / 2) / (mpmath.sqrt(v * mp.pi) * mpmath.gamma(v / 2))
    half = mpmath.mpf(1) / 2
    return half + scale * t * mpmath.hyp2f1(half, (v + 1) / 2, 3 * half, -t * t / v)


def _voigt(x, sigma, gamma):
    z = mpmath.mpc(x, gamma) / (sigma * mpmath.sqrt(2))
    w = mpmath.exp(-z * z) * mpmath.erfc(mpmath.mpc(0, -1) * z)
    return mpmath.re(w) / (sigma * mpmath.sqrt(2 * mpmath.pi))


# name: mpmath's function, the points
ONE_ARGUMENT = {
    "j0": (lambda x: mpmath.besselj(0, x), [-1.3, 0.4, 30.0]),
    "j1": (lambda x: mpmath.besselj(1, x), [0.0, 0.4, 30.0]),
    "y0": (lambda x: mpmath.bessely(0, x), [1e-3, 0.4, 30.0]),
    "y1": (lambda x: mpmath.bessely(1, x), [1e-3, 0.4, 30.0]),
    "i0": (lambda x: mpmath.besseli(0, x), [-1.3, 0.4, 30.0]),
    "i1": (lambda x: mpmath.besseli(1, x), [0.0, 0.4, 30.0]),
    "k0": (lambda x: mpmath.besselk(0, x), [1e-3, 0.4, 30.0]),
    "k1": (lambda x: mpmath.besselk(1, x), [1e-3, 0.4, 30.0]),
    "i0e": (lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), [-1.3, 0.4, 30.0]),
    "i1e": (lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), [-1.3, 0.4, 30.0]),
    "k0e": (lambda x: mpmath.besselk(0, x) * mpmath.exp(x), [1e-3, 0.4, 30.0]),
    "k1e": (lambda x: mpmath.besselk(1, x) * mpmath.exp(x), [1e-3, 0.4, 30.0]),
    "exp1": (mpmath.e1, [1e-3, 0.4, 30.0]),
    "expi": (mpmath.ei, [-1.3, 0.4, 30.0]),
    "spence": (lambda x: mpmath.polylog(2, 1 - x), [1e-3, 0.4, 1.0, 1 + 1e-7, 1.0001, 1.9]),
    "ellipk": (mpmath.ellipk, [-2.0, 0.4, 0.0, 1e-9, 0.0999, 0.1001, 0.999]),
    "ellipe": (mpmath.ellipe, [-2.0, 0.4, 0.0, 1e-9, 0.0999, 0.1001, 0.999]),
    "ellipkm1": (lambda p: mpmath.ellipk(1 - p), [1e-12, 0.4, 0.9001, 0.99999]),
    "lambertw": (mpmath.lambertw, [-0.2, 0.4, 0.0, 30.0, 1e10]),
    "wrightomega": (lambda x: mpmath.lambertw(mpmath.exp(x)), [-3.0, 0.4, 30.0]),
}
# name: mpmath's function, arguments of which the last is the smooth one
ORDERED = {
    "jv": (mpmath.besselj, [(0, 0.4), (1, 1e-3), (2.5, 30.0), (-0.5, 2.2)]),
    "yv": (mpmath.bessely, [(0, 0.4), (1, 1e-2), (2.5, 30.0), (-0.3, 2.2)]),
    "iv": (mpmath.besseli, [(0, 0.4), (1, 1e-3), (2.5, 30.0), (-0.5, 2.2)]),
    "kv": (mpmath.besselk, [(0, 0.4), (1, 1e-2), (2.5, 30.0), (-0.5, 2.2)]),
    "yn": (mpmath.bessely, [(0, 0.4), (1, 2.2), (3, 5.0)]),
    "kn": (mpmath.besselk, [(0, 0.4), (1, 2.2), (3, 5.0)]),
    "jve": (mpmath.besselj, [(0, 0.4), (2.5, 2.2)]),
    "yve": (mpmath.bessely, [(0, 0.4), (2.5, 2.2)]),
    "ive": (lambda v, x: mpmath.besseli(v, x) * mpmath.exp(-abs(x)), [(0, 0.4), (2.5, 2.2)]),
    "kve": (lambda v, x: mpmath.besselk(v, x) * mpmath.exp(x), [(0, 0.4), (2.5, 2.2)]),
    "spherical_jn": (_spherical(mpmath.besselj), [(0, 0.4), (1, 1e-3), (3, 2.2)]),
    "spherical_yn": (_spherical(mpmath.bessely), [(0, 0.4), (1, 0.1), (3, 2.2)]),
    "spherical_in": (_spherical(mpmath.besseli), [(0, 0.4), (1, 1e-3), (3, 2.2)]),
    "spherical_kn": (_spherical(mpmath.besselk), [(0, 0.4), (1, 0.1), (3, 2.2)]),
    "struve": (mpmath.struveh, [(0, 0.4), (2.5, 2.2), (-0.5, 1.3)]),
    "modstruve": (mpmath.struvel, [(0, 0.4), (2.5, 2.2), (-0.5, 1.3)]),
    "eval_legendre": (mpmath.legendre, [(0, 0.4), (1, 0.4), (4, -1.0), (4, 1.0), (2.5, 0.3)]),
    "eval_chebyt": (mpmath.chebyt, [(0, 0.4), (1, 0.4), (4, 1.0), (4, -0.3)]),
    "eval_chebyu": (mpmath.chebyu, [(0, 0.4), (1, 0.4), (4, 0.999), (4, -0.3)]),
    "eval_hermite": (mpmath.hermite, [(0, 0.4), (1, 0.4), (4, 2.2)]),
    "eval_hermitenorm": (
        lambda n, x: 2 ** (-n / 2) * mpmath.hermite(n, x / mpmath.sqrt(2)),
        [(0, 0.4), (1, 0.4), (4, 2.2)],
    ),
    "eval_laguerre": (lambda n, x: mpmath.laguerre(n, 0, x), [(0, 0.4), (1, 0.4), (4, 2.2)]),
    "eval_genlaguerre": (mpmath.laguerre, [(0, 0.5, 0.4), (1, 0.5, 0.4), (4, 1.5, 2.2)]),
    "eval_gegenbauer": (mpmath.gegenbauer, [(0, 0.5, 0.4), (1, 0.5, 0.4), (4, 1.5, 0.9)]),
    "eval_jacobi": (mpmath.jacobi, [(0, 0.5, 0.3, 0.4), (1, 0.5, 0.3, 0.4), (4, 1.5, 0.3, 0.9)]),
    "hyp0f1": (mpmath.hyp0f1, [(0.5, 0.4), (1.7, -2.2)]),
    "hyp1f1": (mpmath.hyp1f1, [(0.5, 1.7, 0.4), (1.7, 0.6, -2.2)]),
    "hyp2f1": (mpmath.hyp2f1, [(0.5, 1.7, 2.2, 0.4), (1.7, 0.6, 1.1, -2.2)]),
    "hyperu": (mpmath.hyperu, [(0.5, 1.7, 0.4), (1.7, 0.6, 2.2)]),
    "expn": (mpmath.expint, [(0, 0.4), (1, 2.2), (4, 1e-3)]),
    "stdtr": (_student, [(1.5, 0.4), (7.0, -2.2)]),
    "chdtr": (
        lambda v, x: mpmath.gammainc(v / 2, 0, x / 2, regularized=True),
        [(1.5, 0.4), (7.0, 2.2)],
    ),
    "chdtrc": (
        lambda v, x: mpmath.gammainc(v / 2, x / 2, mp.inf, regularized=True),
        [(1.5, 0.4), (7.0, 2.2)],
    ),
    "pdtr": (
        lambda k, m: mpmath.gammainc(k + 1, m, mp.inf, regularized=True),
        [(0, 0.4), (3, 2.2)],
    ),
}

LOOSER = {
    "hyperu": (1e-11, "SciPy's hyperu"),
    "i0e": (1e-13, "a difference of functions that agree to 1/(2x)"),
    "i1e": (1e-13, "a difference of functions that agree to 1/(2x)"),
    "k0e": (1e-13, "a difference of functions that agree to 1/(2x)"),
    "k1e": (1e-13, "a difference of functions that agree to 1/(2x)"),
}
SCALARS = [(name, float(x)) for name, (_, points) in ONE_ARGUMENT.items() for x in points]
ROWS = [(name, args) for name, (_, points) in ORDERED.items() for args in points]
WHOLE = np.array([0, 1, 3])
BESSEL = ("jv", "yv", "iv", "kv", "jve", "yve", "ive", "kve")
HANKEL = ("hankel1", "hankel2", "hankel1e", "hankel2e")
SPHERICAL = ("spherical_jn", "spherical_yn", "spherical_in", "spherical_kn")
POLYNOMIALS = ("legendre", "chebyt", "chebyu", "hermite", "hermitenorm", "laguerre")
Z_ONLY = {"argnums": [1]}
REGIONS = {
    **dict.fromkeys(("y0", "y1", "k0", "k1", "k0e", "k1e", "exp1", "expi", "spence"), POSITIVE),
    **dict.fromkeys(("ellipk", "ellipe", "ellipkm1"), UNIT),
    "lambertw": POSITIVE,
}


def _in_region(name):
    x = REGIONS.get(name, X)
    return x, x.reshape(3, 1), float(x[1])


CASES = [
    *[Case(getattr(sp, name), x) for name in ONE_ARGUMENT for x in _in_region(name)],
    *[
        Case(getattr(sp, name), v, z, check=Z_ONLY)
        for name in BESSEL + HANKEL
        for v, z in ((np.array([0.0, 1.0, 2.5]), WIDE), (1.5, POSITIVE), (2, 0.7), (1.5, Z))
    ],
    *[
        Case(getattr(sp, name), n, z, check=Z_ONLY, **options)
        for name in SPHERICAL
        for n, z in ((WHOLE, WIDE), (2, POSITIVE), (0, 0.7), (2, Z))
        for options in ({}, {"derivative": True})
    ],
    *[
        Case(f, n, x)
        for f in (sp.yn, sp.kn, sp.expn, sp.pdtr)
        for n, x in ((WHOLE, WIDE), (2, POSITIVE), (0, 0.7))
    ],
    *[
        Case(f, v, x)
        for f in (sp.struve, sp.modstruve)
        for v, x in ((np.array([0.0, 1.0, 2.5]), WIDE), (1.5, POSITIVE), (0.5, 0.7))
    ],
    *[
        Case(getattr(sp, f"eval_{name}"), n, x)
        for name in POLYNOMIALS
        for n, x in ((WHOLE, WIDE - 1.1), (2, UNIT), (0, UNIT), (3, 0.7))
    ],
    *[
        Case(f, WHOLE, *parameters, WIDE - 1.1)
        for f, parameters in (
            (sp.eval_genlaguerre, (0.5,)),
            (sp.eval_gegenbauer, (0.5,)),
            (sp.eval_jacobi, (0.5, 0.3)),
        )
    ],
    *[
        Case(f, *parameters, x)
        for f, parameters in (
            (sp.hyp0f1, (1.7,)),
            (sp.hyp1f1, (0.5, 1.7)),
            (sp.hyperu, (0.5, 1.7)),
            (sp.hyp2f1, (0.5, 1.7, 2.2)),
        )
        for x in (UNIT, WIDE / 2.5, 0.3)
    ],
    *[
        Case(f, POSITIVE + 1, x)
        for f in (sp.stdtr, sp.stdtrit, sp.chdtr, sp.chdtrc)
        for x in (WIDE / 2.5, 0.3)
    ],
    *[Case(sp.voigt_profile, x, 0.7, g) for x in (X, 0.3) for g in (POSITIVE, 0.2)],
    Case(sp.voigt_profile, X, np.array([0.0, 1e-3, 2.0]), 0.4),
    *[Case(sp.airy, x) for x in (X, Z, 0.7)],
    *[Case(f, x) for f in (sp.sici, sp.shichi) for x in (POSITIVE, Z, 0.7)],
    *[Case(f, z) for f in (sp.exp1, sp.expi, sp.spence, sp.lambertw, sp.wrightomega) for z in (Z,)],
    Case(sp.lambertw, Z, k=-1),
    Case(sp.lambertw, Z, 2),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(("name", "x"), SCALARS)
def test_derivative_of_one_argument(name, x):
    rtol, _ = LOOSER.get(name, (1e-14, "rounding"))
    want = mp_slope(ONE_ARGUMENT[name][0], x)
    assert_allclose(slope(getattr(sp, name), x), want, rtol=rtol, atol=1e-16)


@pytest.mark.parametrize(("name", "args"), ROWS)
def test_derivative_at_an_order(name, args):
    rtol, _ = LOOSER.get(name, (2e-14, "rounding"))
    want = mp_slope(ORDERED[name][0], *args, argnum=len(args) - 1)
    got = slope(getattr(sp, name), *args, argnum=len(args) - 1)
    assert_allclose(got, want, rtol=rtol, atol=1e-16)


@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_second_derivative(name):
    reference, points = ONE_ARGUMENT[name]
    x = float(points[1])
    want = mp_slope(reference, x, order=2)
    assert_allclose(second_slope(getattr(sp, name), x), want, rtol=1e-10)


@pytest.mark.parametrize(("name", "args"), ROWS)
def test_second_derivative_at_an_order(name, args):
    want = mp_slope(ORDERED[name][0], *args, argnum=len(args) - 1, order=2)
    got = second_slope(getattr(sp, name), *args, argnum=len(args) - 1)
    assert_allclose(got, want, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", [*BESSEL, *HANKEL])
def test_bessel_functions_of_complex_numbers(name):
    """The scaled ones are linear over the reals only: two real partial derivatives."""
    kinds = {"j": mpmath.besselj, "y": mpmath.bessely, "i": mpmath.besseli, "k": mpmath.besselk}
    plain = {"hankel1": mpmath.hankel1, "hankel2": mpmath.hankel2}.get(name[:7]) or kinds[name[0]]
    factor = {
        "jve": lambda z: mpmath.exp(-abs(mpmath.im(z))),
        "yve": lambda z: mpmath.exp(-abs(mpmath.im(z))),
        "ive": lambda z: mpmath.exp(-abs(mpmath.re(z))),
        "kve": mpmath.exp,
        "hankel1e": lambda z: mpmath.exp(-1j * z),
        "hankel2e": lambda z: mpmath.exp(1j * z),
    }.get(name, lambda _: 1)
    for z in Z.tolist():
        with mpmath.workdps(40):
            re, im = mpmath.mpf(z.real), mpmath.mpf(z.imag)

            def f(x, y):
                return plain(1.5, mpmath.mpc(x, y)) * factor(mpmath.mpc(x, y))

            by_re = complex(mpmath.diff(lambda t: f(t, im), re))  # noqa: B023
            by_im = complex(mpmath.diff(lambda t: f(re, t), im))  # noqa: B023
        lanes = Chunk(np.array([1.0, 1j]))
        _, y_dot = call_rule(getattr(sp, name), (1.5, z), (ZERO, lanes))
        assert_allclose(y_dot.lanes, [by_re, by_im], rtol=1e-13)


@pytest.mark.every(5, first=3)
@pytest.mark.parametrize(
    "args",
    [(0.3, 0.7, 0.2), (-2.0, 1.5, 1e-3), (10.0, 0.7, 1.0), (11.0, 0.7, 1.0), (5.0, 1e-4, 0.5)],
)
@pytest.mark.parametrize("argnum", range(3))
def test_voigt_profile(args, argnum):
    def f(t):
        return sp.voigt_profile(*args[:argnum], t, *args[argnum + 1 :])

    at = args[argnum]
    want = mp_slope(_voigt, *args, argnum=argnum)
    assert_allclose(slope(sp.voigt_profile, *args, argnum=argnum), want, rtol=1e-11)
    want = mp_slope(_voigt, *args, argnum=argnum, order=2)
    assert_allclose(fwdad.hvp(f, at, 1.0), want, rtol=1e-9)
    assert_allclose(fwdad.jit(fwdad.grad(f))(at), fwdad.derivative(f, at), rtol=1e-12)


def test_voigt_profile_without_a_width():
    """With sigma 0 it is Cauchy's distribution."""
    x, g = 0.5, 0.4
    slopes = fwdad.jacobian(sp.voigt_profile, x, args=(0.0, g), argnums=(0, 1, 2))
    q = np.pi * (x * x + g * g) ** 2
    assert_allclose(slopes, (-2 * x * g / q, 0.0, (x * x - g * g) / q), rtol=1e-13)


def test_airy_functions():
    for k, (kind, order) in enumerate(((mpmath.airyai, 0), (mpmath.airyai, 1), (mpmath.airybi, 0))):
        for x in (-2.2, 0.4, 3.0):
            want = mp_slope(lambda t: kind(t, derivative=order), x)  # noqa: B023
            assert_allclose(slope(sp.airy, x)[k], want, rtol=1e-13)


@pytest.mark.parametrize(
    ("f", "first", "second"),
    [(sp.sici, mpmath.si, mpmath.ci), (sp.shichi, mpmath.shi, mpmath.chi)],
    ids=["sici", "shichi"],
)
def test_sine_and_cosine_integrals(f, first, second):
    for x in (1e-3, 0.4, 20.0):
        slopes = slope(f, x)
        assert_allclose(slopes[0], mp_slope(first, x), rtol=1e-14)
        assert_allclose(slopes[1], mp_slope(second, x), rtol=1e-14)
    assert_allclose(slope(f, 1e-100)[0], 1.0, rtol=1e-14)


def test_quantiles_invert_the_distribution():
    t = sp.stdtrit(3.5, 0.3)
    forth = mp_slope(_student, 3.5, float(t), argnum=1)
    assert_allclose(slope(sp.stdtrit, 3.5, 0.3, argnum=1), 1 / forth, rtol=1e-12)


@pytest.mark.parametrize("k", [0, -1, 2])
def test_branches_of_the_lambert_function(k):
    z = -0.2 if k in (0, -1) else -0.2 + 0.3j
    want = mp_slope(lambda t: mpmath.lambertw(t, k), z)
    assert_allclose(slope(sp.lambertw, z, k=k), want, rtol=1e-14)


def test_bessel_functions_at_the_origin():
    """The recurrence in the order has no 0/0 where J_v' = J_(v-1) - v/z J_v has one."""
    for v, want in ((0.0, 0.0), (1.0, 0.5), (2.0, 0.0)):
        assert slope(sp.jv, v, 0.0, argnum=1) == want
        assert slope(sp.iv, v, 0.0, argnum=1) == want
    for n, want in ((0, 0.0), (1, 1 / 3), (2, 0.0)):
        for f in (sp.spherical_jn, sp.spherical_in):
            assert_allclose(slope(f, n, 0.0, argnum=1), want, rtol=1e-15)
    assert_allclose(second_slope(sp.spherical_jn, 0, 0.0, argnum=1), -1 / 3, rtol=1e-15)


def order_of(f):
    return {sp.jv: "v", sp.ive: "v", sp.stdtr: "df"}.get(f, "n")


@pytest.mark.parametrize("f", [sp.jv, sp.ive, sp.spherical_jn, sp.expn, sp.eval_legendre, sp.stdtr])
def test_an_order_has_no_derivative(f):
    tangents = (Chunk(np.ones(1)), ZERO)
    says = rf"^scipy\.special\.{f.__name__} has no rule .* its argument {order_of(f)}: SciPy has no"
    with pytest.raises(UndefinedDerivativeError, match=says):
        call_rule(f, (2.0 if f is not sp.expn else 2, 0.5), tangents)


WAYS = {
    "duals": lambda f: fwdad.jvp(f, 2.0, 1.0),
    "of duals": lambda f: fwdad.derivative(fwdad.derivative(f), 2.0),
    "tape": lambda f: fwdad.grad(f)(2.0),
    "recorded": lambda f: fwdad.grad(lambda v: eval("f(v)", {"f": f, "v": v}))(2.0),
    "numpy": lambda f: fwdad.jit(fwdad.grad(f), backend="numpy")(2.0),
    "compiled": lambda f: fwdad.jit(fwdad.grad(f))(2.0),
    "compiled columns": lambda f: fwdad.jit(fwdad.jacfwd(f))(2.0),
    "columns of jit": lambda f: fwdad.jvp(fwdad.jit(f), 2.0, 1.0),
    "second": lambda f: fwdad.hessian(f)(2.0),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["jv", "ive", "stdtr"])
def test_what_an_active_order_says(name, way):
    special, x = getattr(sp, name), np.array([0.5, 0.7])
    says = f"scipy.special.{name} has no rule .* its argument {order_of(special)}"
    with pytest.raises(UndefinedDerivativeError, match=says) as caught:
        WAYS[way](lambda v: np.sum(special(v, x)))
    assert "wrap it in fwdad.stop_gradient" in str(caught.value)
    held = lambda x: np.sum(special(fwdad.stop_gradient(x[0]), x))  # noqa: E731
    got = fwdad.grad(held)(np.array([2.0, 0.7]))
    assert_allclose(got, [slope(special, 2.0, v, argnum=1) for v in (2.0, 0.7)], rtol=1e-13)


def test_the_end_of_the_elliptic_integrals():
    m = 1 - 1e-12
    assert_allclose(slope(sp.ellipkm1, 1e-12), mp_slope(lambda p: mpmath.ellipk(1 - p), 1e-12))
    assert_allclose(slope(sp.ellipk, m), mp_slope(mpmath.ellipk, m), rtol=1e-3)  # of 1 - m
    assert math.isfinite(slope(sp.ellipe, m))
