"""Probability distributions of ``scipy.special``, and what ``scipy.stats`` makes of them."""

import mpmath
import numpy as np
import pytest
import scipy.special as sp
from mpmath import mp
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import _ufuncs
from scipy.stats import _stats

import fwdad
from fwdad.errors import UndefinedDerivativeError
from fwdad.testing import check_frule
from tests.differences import central_differences
from tests.rules.case import Case, Draw
from tests.rules.slopes import mp_slope, second_slope, slope
from tests.tiers import every

draw = Draw(53)
POSITIVE = draw.rng.uniform(0.3, 2.0, (2, 3))
UNIT = np.array([0.15, 0.5, 0.85])
SHAPES = np.array([1.3, 2.0, 4.5])
REAL = np.array([-1.3, 0.4, 2.2])
WHOLE = np.array([0.0, 1.0, 4.0])


def _beta_density(x, a, b):
    return x ** (a - 1) * (1 - x) ** (b - 1) / mpmath.beta(a, b)


def _mixture(nc, f):
    """The mean of f(j) over a Poisson distribution of mean nc / 2."""
    half = nc / 2
    terms = (mpmath.exp(-half) * half**j / mpmath.factorial(j) * f(j) for j in range(80))
    return mpmath.fsum(terms)


def _lower_gamma(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


def _lower_beta(a, b, x):
    return mpmath.betainc(a, b, 0, x, regularized=True)


def _ncx2_pdf(x, df, nc):
    def f(j):
        a = df / 2 + j
        return (x / 2) ** (a - 1) * mpmath.exp(-x / 2) / (2 * mpmath.gamma(a))

    return _mixture(nc, f)


def _ncf_pdf(x, n, m, nc):
    whole = m + n * x
    return _mixture(nc, lambda j: _beta_density(n * x / whole, n / 2 + j, m / 2)) * n * m / whole**2


def _nct_mean(x, df, nc, f):
    """The mean of f(s) over s**2 = v / df, v of the chi-square distribution."""

    def weighted(s):
        log_density = (df - 1) * mpmath.log(s) - df * s * s / 2
        return f(s) * mpmath.exp(log_density)

    scale = 2 * (df / 2) ** (df / 2) / mpmath.gamma(df / 2)
    return scale * mpmath.quad(weighted, [0, 1, 2, 4, 8])


def _nct_pdf(x, df, nc):
    return _nct_mean(x, df, nc, lambda s: s * mpmath.npdf(x * s - nc))


def _skew_cdf(z, a):
    """By Owen's function T."""
    t = mpmath.quad(lambda s: mpmath.exp(-z * z * (1 + s * s) / 2) / (1 + s * s), [0, a])
    return mpmath.ncdf(z) - t / mp.pi


# name: mpmath's function, rows of arguments, the arguments by which there is a derivative
REFERENCES = {
    "fdtr": (
        lambda n, m, x: _lower_beta(n / 2, m / 2, n * x / (m + n * x)),
        [(3.0, 7.0, 0.4), (1.0, 2.5, 30.0), (40.0, 5.0, 1e-2)],
        (2,),
    ),
    "fdtrc": (
        lambda n, m, x: _lower_beta(m / 2, n / 2, m / (m + n * x)),
        [(3.0, 7.0, 0.4), (1.0, 2.5, 1e6)],
        (2,),
    ),
    "gdtr": (lambda a, b, x: _lower_gamma(b, a * x), [(0.7, 2.5, 1.2)], (0, 2)),
    "gdtrc": (lambda a, b, x: 1 - _lower_gamma(b, a * x), [(0.7, 2.5, 1.2)], (0, 2)),
    "bdtr": (lambda k, n, p: _lower_beta(n - k, k + 1, 1 - p), [(2.0, 5, 0.3)], (2,)),
    "bdtrc": (lambda k, n, p: _lower_beta(k + 1, n - k, p), [(0.0, 5, 0.9)], (2,)),
    "nbdtr": (lambda k, n, p: _lower_beta(n, k + 1, p), [(2.0, 5.0, 0.3)], (2,)),
    "nbdtrc": (lambda k, n, p: _lower_beta(k + 1, n, 1 - p), [(2.0, 5.0, 0.3)], (2,)),
    "pdtrc": (lambda k, m: _lower_gamma(k + 1, m), [(0.0, 0.4), (3.0, 2.2)], (1,)),
    "chndtr": (
        lambda x, df, nc: _mixture(nc, lambda j: _lower_gamma(df / 2 + j, x / 2)),
        [(2.2, 3.0, 1.5), (0.3, 1.0, 4.0)],
        (0, 2),
    ),
    "ncfdtr": (
        lambda n, m, nc, x: _mixture(
            nc, lambda j: _lower_beta(n / 2 + j, m / 2, n * x / (m + n * x))
        ),
        [(3.0, 7.0, 1.5, 0.8), (2.0, 1.5, 4.0, 2.0), (2.0, 2.0, 4.0, 2.0)],
        (2, 3),
    ),
    "nctdtr": (
        lambda df, nc, x: _nct_mean(x, df, nc, lambda s: mpmath.ncdf(x * s - nc)),
        [(1.5, -0.4, 0.8), (2.0, 1.3, -1.1)],
        (1, 2),
    ),
    "inv_boxcox": (
        lambda y, power: (power * y + 1) ** (1 / power),
        [(0.7, 0.4), (-0.3, -0.8), (1e-6, 0.3), (0.7, 1e-9)],
        (0, 1),
    ),
    "inv_boxcox1p": (
        lambda y, power: (power * y + 1) ** (1 / power) - 1,
        [(0.7, 0.4), (-0.3, -0.8), (1e-6, 0.3), (0.7, 1e-9)],
        (0, 1),
    ),
    "_beta_pdf": (
        _beta_density,
        [(0.3, 2.5, 1.7), (1e-8, 1.2, 3.0), (1 - 1e-8, 0.6, 0.4)],
        (0, 1, 2),
    ),
    "_ncx2_pdf": (_ncx2_pdf, [(2.2, 3.0, 1.5), (0.01, 1.5, 4.0), (9.0, 2.0, 1.0)], (0, 2)),
    "_ncf_pdf": (_ncf_pdf, [(0.8, 3.0, 7.0, 1.5), (2.0, 2.0, 1.5, 4.0)], (0, 3)),
    "_nct_pdf": (_nct_pdf, [(1.2, 5.0, 0.7), (0.8, 1.5, -0.4), (0.0, 3.0, 1.3)], (0, 2)),
    "_binom_pmf": (
        lambda k, n, p: mpmath.binomial(n, k) * p**k * (1 - p) ** (n - k),
        [(2.0, 5.0, 0.3), (0.0, 5.0, 0.9)],
        (2,),
    ),
    "_nbinom_pmf": (
        lambda k, n, p: mpmath.binomial(n + k - 1, k) * p**n * (1 - p) ** k,
        [(2.0, 5.5, 0.3), (0.0, 0.7, 0.9)],
        (1, 2),
    ),
    "_skewnorm_cdf": (
        lambda x, loc, scale, a: _skew_cdf((x - loc) / scale, a),
        [(0.4, 0.1, 1.3, 2.0)],
        (0, 1, 2, 3),
    ),
    "_cosine_cdf": (lambda x: (mp.pi + x + mpmath.sin(x)) / (2 * mp.pi), [(0.4,), (-3.0,)], (0,)),
    "_log1mexp": (lambda x: mpmath.log(1 - mpmath.exp(x)), [(-0.3,), (-1e-9,), (-40.0,)], (0,)),
}
# the noncentral functions of SciPy 1.17 are exact to ten or more digits
LOOSER = {
    "ncfdtr": 1e-9, "nctdtr": 1e-9, "_ncf_pdf": 1e-10, "_nct_pdf": 1e-10, "chndtr": 1e-11,
    "_ncx2_pdf": 1e-11, "inv_boxcox": 3e-13, "inv_boxcox1p": 3e-13,
}  # fmt: skip
ROWS = [
    (name, args, k)
    for name, (_, rows, by) in REFERENCES.items()
    if hasattr(_ufuncs, name)
    for args in rows
    for k in by
]


def only(*argnums):
    return {"argnums": list(argnums)}


# name: arguments, the arguments by which there is a derivative
FUNCTIONS = {
    "fdtr": ((SHAPES, 2.5, POSITIVE), (2,)),
    "fdtrc": ((SHAPES, 2.5, POSITIVE), (2,)),
    "fdtri": ((SHAPES, 2.5, UNIT), (2,)),
    "stdtr": ((SHAPES, POSITIVE), (1,)),
    "stdtrit": ((SHAPES, UNIT), (1,)),
    "chdtr": ((SHAPES, POSITIVE), (1,)),
    "chdtrc": ((SHAPES, POSITIVE), (1,)),
    "chdtri": ((SHAPES, UNIT), (1,)),
    "gdtr": ((0.7, SHAPES, POSITIVE), (0, 2)),
    "gdtrc": ((0.7, SHAPES, POSITIVE), (0, 2)),
    "gdtrix": ((0.7, SHAPES, UNIT), (0, 2)),
    "gdtria": ((UNIT, SHAPES, POSITIVE), (0, 2)),
    "bdtr": ((WHOLE, np.array(6), POSITIVE / 3), (2,)),
    "bdtrc": ((WHOLE, np.array(6), POSITIVE / 3), (2,)),
    "bdtri": ((WHOLE, np.array(6), UNIT), (2,)),
    "nbdtr": ((WHOLE.astype(int), 6, POSITIVE / 3), (2,)),
    "nbdtrc": ((WHOLE.astype(int), 6, POSITIVE / 3), (2,)),
    "nbdtri": ((WHOLE.astype(int), 6, UNIT), (2,)),
    "pdtr": ((WHOLE, POSITIVE), (1,)),
    "pdtrc": ((WHOLE, POSITIVE), (1,)),
    "pdtri": ((WHOLE.astype(int), UNIT), (1,)),
    "chndtr": ((POSITIVE, SHAPES, 1.5), (0, 2)),
    "chndtrix": ((UNIT, SHAPES, 1.5), (0, 2)),
    "chndtrinc": ((POSITIVE + 3, 2.5, 0.3), (0, 2)),
    "ncfdtr": ((SHAPES, 3.5, 1.5, POSITIVE), (2, 3)),
    "ncfdtri": ((SHAPES, 3.5, 1.5, UNIT), (2, 3)),
    "nctdtr": ((SHAPES, 0.7, REAL), (1, 2)),
    "nctdtrit": ((SHAPES, 0.7, UNIT), (1, 2)),
    "kolmogorov": ((POSITIVE,), (0,)),
    "kolmogi": ((UNIT,), (0,)),
    "smirnov": ((5, UNIT), (1,)),
    "smirnovi": ((5, UNIT), (1,)),
    "tklmbda": ((REAL, 0.2), (0, 1)),
    "inv_boxcox": ((POSITIVE, 0.4), (0, 1)),
    "inv_boxcox1p": ((POSITIVE, 0.4), (0, 1)),
    "_beta_pdf": ((UNIT, SHAPES, 1.7), (0, 1, 2)),
    "_beta_ppf": ((UNIT, SHAPES, 1.7), (0,)),
    "_binom_pmf": ((WHOLE, 6.0, POSITIVE / 3), (2,)),
    "_binom_cdf": ((WHOLE, 6.0, POSITIVE / 3), (2,)),
    "_binom_sf": ((WHOLE, 6.0, POSITIVE / 3), (2,)),
    "_nbinom_pmf": ((WHOLE, 6.5, POSITIVE / 3), (1, 2)),
    "_nbinom_cdf": ((WHOLE, 6.5, POSITIVE / 3), (2,)),
    "_nbinom_sf": ((WHOLE, 6.5, POSITIVE / 3), (2,)),
    "_ncx2_pdf": ((POSITIVE, SHAPES, 1.5), (0, 2)),
    "_ncx2_sf": ((POSITIVE, SHAPES, 1.5), (0, 2)),
    "_ncx2_isf": ((UNIT, SHAPES, 1.5), (0, 2)),
    "_ncf_pdf": ((POSITIVE, SHAPES, 3.5, 1.5), (0, 3)),
    "_ncf_sf": ((POSITIVE, SHAPES, 3.5, 1.5), (0, 3)),
    "_ncf_isf": ((UNIT, SHAPES, 3.5, 1.5), (0, 3)),
    "_nct_pdf": ((REAL, SHAPES, 0.7), (0, 2)),
    "_nct_sf": ((REAL, SHAPES, 0.7), (0, 2)),
    "_nct_isf": ((UNIT, SHAPES, 0.7), (0, 2)),
    "_cauchy_ppf": ((UNIT, 0.3, 1.7), (0, 1, 2)),
    "_cauchy_isf": ((UNIT, 0.3, 1.7), (0, 1, 2)),
    "_landau_cdf": ((REAL, 0.3, 1.7), (0, 1, 2)),
    "_landau_sf": ((REAL, 0.3, 1.7), (0, 1, 2)),
    "_landau_ppf": ((UNIT, 0.3, 1.7), (0, 1, 2)),
    "_landau_isf": ((UNIT, 0.3, 1.7), (0, 1, 2)),
    "_skewnorm_cdf": ((REAL, 0.3, 1.7, 2.0), (0, 1, 2, 3)),
    "_skewnorm_ppf": ((UNIT, 0.3, 1.7, 2.0), (0, 1, 2, 3)),
    "_skewnorm_isf": ((UNIT, 0.3, 1.7, 2.0), (0, 1, 2, 3)),
    "_invgauss_ppf": ((UNIT, 0.7, 1.6), (0, 1, 2)),
    "_invgauss_isf": ((UNIT, 0.7, 1.6), (0, 1, 2)),
    "_cosine_cdf": ((REAL,), (0,)),
    "_cosine_invcdf": ((UNIT,), (0,)),
    "_kolmogc": ((POSITIVE,), (0,)),
    "_kolmogci": ((UNIT,), (0,)),
    "_smirnovc": ((5, UNIT), (1,)),
    "_smirnovci": ((5, UNIT), (1,)),
    "_log1mexp": ((-POSITIVE,), (0,)),
}
FIRST_ORDER = ("kolmog", "smirnov", "landau")  # of their densities SciPy has no derivative
CASES = [
    *[
        Case(
            getattr(_ufuncs, name),
            *args,
            check={**only(*by), "second_order": not name.lstrip("_").startswith(FIRST_ORDER)},
        )
        for name, (args, by) in FUNCTIONS.items()
        if hasattr(_ufuncs, name)
    ],
    *[
        Case(getattr(_ufuncs, f"_{name}"), UNIT + 0.03, n, 0.4)
        for name, n in (
            ("binom_ppf", 6),
            ("binom_isf", 6),
            ("nbinom_ppf", 6.5),
            ("nbinom_isf", 6.5),
        )
        if hasattr(_ufuncs, f"_{name}")
    ],
    Case(_stats.von_mises_cdf, np.array([0.4, 2.0, 30.0]), REAL, check=only(1)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.every(3, of="nctdtr")
@pytest.mark.every(3, of="_nct_pdf")
@pytest.mark.parametrize(("name", "args", "argnum"), ROWS)
def test_derivative(name, args, argnum):
    want = mp_slope(REFERENCES[name][0], *args, argnum=argnum)
    got = slope(getattr(_ufuncs, name), *args, argnum=argnum)
    assert_allclose(got, want, rtol=LOOSER.get(name, 2e-14))


@pytest.mark.parametrize(
    ("name", "argnum"),
    [("fdtr", 2), ("_beta_pdf", 0), ("_beta_pdf", 1), ("_ncx2_pdf", 0), ("_ncf_pdf", 3),
     ("_nct_pdf", 2), ("gdtr", 0), ("inv_boxcox", 1)],
)  # fmt: skip
def test_second_derivative(name, argnum):
    if not hasattr(_ufuncs, name):
        pytest.skip("a function of newer versions of SciPy")
    reference, (args, *_), _ = REFERENCES[name]
    want = mp_slope(reference, *args, argnum=argnum, order=2)
    assert_allclose(second_slope(getattr(_ufuncs, name), *args, argnum=argnum), want, rtol=1e-8)


def test_a_number_of_events_has_no_derivative():
    with pytest.raises(UndefinedDerivativeError, match="a number of events is an integer"):
        fwdad.derivative(lambda n: stats.hypergeom.pmf(2, 20, n, 6), 7.0)
    with pytest.raises(UndefinedDerivativeError, match="a number of events is an integer"):
        fwdad.derivative(lambda n: stats.binom.pmf(2, n, 0.3), 7.0)


def test_ends_of_the_beta_density():
    """A straight line, a constant and a parabola have a slope at the ends, too."""
    pdf = fwdad.grad(stats.beta.pdf)
    for (x, a, b), want in {
        (0.0, 2.0, 1.0): 2.0,
        (0.0, 1.0, 1.0): 0.0,
        (0.0, 2.0, 2.0): 6.0,
        (1.0, 2.0, 2.0): -6.0,
        (1.0, 2.0, 1.0): 2.0,
        (0.0, 3.0, 1.0): 0.0,
        (1.0, 1.0, 3.0): 0.0,
        (1.0, 3.0, 2.0): -12.0,
    }.items():
        assert_allclose(pdf(x, a, b), want, rtol=1e-14)


def test_ends_of_the_range_of_a_chance():
    def mass(k):
        return lambda p: stats.binom.pmf(k, 5, p)

    for p, want in ((0.0, [-5.0, 5.0, 0.0, 0.0, 0.0, 0.0]), (1.0, [0.0, 0.0, 0.0, 0.0, -5.0, 5.0])):
        assert_allclose([fwdad.derivative(mass(k), p) for k in range(6)], want, rtol=1e-14)
    for k, want in enumerate((3.5, -3.5, 0.0)):
        got = fwdad.derivative(lambda p: stats.nbinom.pmf(k, 3.5, p), 1.0)  # noqa: B023
        assert_allclose(got, want, rtol=1e-14)


def test_a_count_is_no_incomplete_function():
    """All successes are at most n whatever the chance; below 0 there are none."""
    for k in (-1.0, 5.0, 7.0):
        assert slope(_ufuncs._binom_cdf, k, 5.0, 0.3, argnum=2) == 0.0


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (stats.binom.ppf, (0.3, 6, 0.4)),
        (stats.nbinom.isf, (0.3, 6.5, 0.4)),
    ],
)
def test_quantiles_of_counts_are_locally_constant(f, args):
    at = len(args) - 1
    assert fwdad.grad(f, argnums=(0, at))(*args) == (0.0, 0.0)


DATA = np.random.default_rng(8).normal(size=24)
TABLE = np.array([[10.0, 12.0], [20.0, 9.0], [7.0, 14.0]])
UNEQUAL = np.exp(0.3 * DATA)
TESTS = {
    "pearsonr": lambda v: stats.pearsonr(v[:12], v[12:]),
    "f_oneway": lambda v: stats.f_oneway(v[:7], v[7:16], v[16:]),
    "ttest_ind": lambda v: stats.ttest_ind(v[:9], v[9:]),
    "ttest_1samp": lambda v: stats.ttest_1samp(v, 0.1),
    "linregress": lambda v: stats.linregress(v[:12], v[12:]),
    "levene": lambda v: stats.levene(v[:7], v[7:16], v[16:]),
    "bartlett": lambda v: stats.bartlett(v[:7], v[7:16], v[16:]),
    "jarque_bera": stats.jarque_bera,
    "normaltest": stats.normaltest,
    "cramervonmises": lambda v: stats.cramervonmises(v, "norm"),
}


def _both(name):
    """The statistic and the probability of a test."""

    def both(v):
        result = TESTS[name](v)
        first = result.slope if name == "linregress" else result.statistic
        return np.stack([first, result.pvalue])

    return both


@pytest.mark.parametrize("name", TESTS)
def test_hypothesis_tests(name):
    both = _both(name)
    want = central_differences(both, DATA)
    assert_allclose(fwdad.jacobian(both, DATA), want, rtol=1e-6, atol=1e-8)
    assert_allclose(fwdad.jacrev(both)(DATA), want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", every(12, TESTS))
def test_compiled_hypothesis_tests(name):
    both = _both(name)
    want = fwdad.jacobian(both, DATA)
    got = fwdad.jit(lambda v: fwdad.jacobian(both, v))(DATA)
    assert_allclose(got, want, rtol=1e-12, atol=1e-14)
    assert_allclose(fwdad.jit(fwdad.jacrev(both))(DATA), want, rtol=1e-12, atol=1e-14)


def test_tables_of_counts():
    f = lambda t: stats.chi2_contingency(t).pvalue  # noqa: E731
    want = central_differences(f, TABLE)
    assert_allclose(fwdad.grad(f)(TABLE), want, rtol=1e-6)
    assert_allclose(fwdad.jit(fwdad.grad(f))(TABLE), want, rtol=1e-6)


SHAPE_PARAMETERS = {
    "beta": (2.3, 1.4), "f": (3.0, 7.0), "ncx2": (3.0, 1.5), "nct": (5.0, 0.7),
    "ncf": (3.0, 7.0, 1.5), "skewnorm": (2.0,), "invgauss": (0.8,),
}  # fmt: skip
MEMBERS = [(name, method) for name in SHAPE_PARAMETERS for method in ("pdf", "cdf", "sf", "ppf")]
AT = np.array([0.35, 0.6, 0.02, 1.3])


def _member(name, method):
    """Of the arguments, the location and the scale."""
    member = getattr(getattr(stats, name), method)
    return lambda v: member(v[:2], *SHAPE_PARAMETERS[name], v[2], v[3])


@pytest.mark.parametrize(("name", "method"), MEMBERS)
def test_distributions(name, method):
    f = _member(name, method)
    want = central_differences(f, AT)
    assert_allclose(fwdad.jacobian(f, AT), want, rtol=1e-6, atol=1e-8)
    assert_allclose(fwdad.jacrev(f)(AT), want, rtol=1e-6, atol=1e-8)


@pytest.mark.every(4)
@pytest.mark.parametrize(("name", "method"), every(9, MEMBERS))
def test_compiled_distributions(name, method):
    f = _member(name, method)
    want = fwdad.jacobian(f, AT)
    got = fwdad.jit(lambda v: fwdad.jacobian(f, v))(AT)
    assert_allclose(got, want, rtol=1e-12, atol=1e-14)
    assert_allclose(fwdad.jit(fwdad.jacrev(f))(AT), want, rtol=1e-12, atol=1e-14)


def test_single_precision():
    x = np.array([0.3, 0.6], np.float32)
    y, y_dot = fwdad.jvp(lambda x: sp.fdtrc(np.float32(3), np.float32(7), x), x, np.ones_like(x))
    assert y.dtype == y_dot.dtype == np.float32
