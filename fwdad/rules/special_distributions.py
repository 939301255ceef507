r"""Probability distributions of ``scipy.special``, also those that ``scipy.stats`` keeps private.

With the density f and the distribution function F of x and of a parameter :math:`\theta`,

.. math::
    \dot F = f \dot x + F_\theta \dot\theta, \qquad
    y = F^{-1}(p): \; \dot y = (\dot p - F_\theta(y) \dot\theta) / f(y),

and the upper tail is 1 - F. So each family below states f and what :math:`F_\theta` has a closed
form; the derivatives of incomplete gamma and beta functions by their shapes have none. Densities
have the derivatives f u, where u is that of log f, written so that no end of the support is 0/0.

Noncentral families are mixtures by a Poisson distribution of mean :math:`\lambda/2`, so that the
derivative by the noncentrality is half the difference of two neighbours. Sources: N. L. Johnson,
S. Kotz and N. Balakrishnan, Continuous Univariate Distributions, volume 2 (1995), chapters 29 to
31, for these; the DLMF (https://dlmf.nist.gov) for equations that are named by number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # its submodules load when they are first used

from fwdad.errors import MissingRuleError
from fwdad.rules.core.define import elementwise, locally_constant
from fwdad.rules.core.partials import NoDerivative, no_derivative
from fwdad.rules.special import ORDER, SQRT_2PI, beta_density, boxcox_slope, gamma_density

COUNT = no_derivative("a number of events is an integer")

Slope = Callable[..., Any]


def _family(
    density: Slope,
    *by_parameters: Slope | NoDerivative,
    first: bool = False,
    **members: str,
) -> None:
    """Register the distribution function, its upper tail, and the inverse of each, by their names.

    All slopes take x and then the parameters. The functions take x last, unless it is ``first``;
    ``cdf``, ``sf``, ``ppf``, ``isf`` may name several functions.
    """
    for kind, names in members.items():
        sign = -1 if kind in {"sf", "isf"} else 1
        partials = [_partial(slope, density, kind, sign, first) for slope in by_parameters]
        own = _partial(density, density, kind, sign, first, is_x=True)
        partials = [own, *partials] if first else [*partials, own]
        for name in names.split():
            elementwise(f"scipy.special.{name}", *partials)


def _partial(
    slope: Slope | NoDerivative,
    density: Slope,
    kind: str,
    sign: int,
    first: bool,
    is_x: bool = False,
) -> Slope | NoDerivative:
    """One partial derivative of a member of a family."""
    if isinstance(slope, NoDerivative):
        return slope

    def partial(*args: Any) -> Any:
        *given, y = args
        x, parameters = (given[0], given[1:]) if first else (given[-1], given[:-1])
        if kind in {"cdf", "sf"}:
            return sign * slope(x, *parameters)
        f = density(y, *parameters)
        return sign / f if is_x else -slope(y, *parameters) / f

    return partial


def _compiled(name: str) -> Any:
    """A function of SciPy's own use, which older versions do not have."""
    function = getattr(scipy.special._ufuncs, name, None)  # noqa: SLF001  (no public one has them)
    if function is None:
        raise MissingRuleError(
            f"this derivative needs the function {name} of a newer SciPy than {scipy.__version__}"
        )
    return function


def _product(c: Any, x: Any) -> Any:
    """The product c x, where c = 0 prevails over an infinite x."""
    return np.where(c == 0, 0.0, c * np.where(c == 0, 0.0, x))


# -- the distributions of Gauss's samples


def _student_density(t, df):
    logs = scipy.special.gammaln((df + 1) / 2) - scipy.special.gammaln(df / 2)
    return np.exp(logs - (df + 1) / 2 * np.log1p(t * t / df)) / np.sqrt(df * math.pi)


def _chi_square_density(x, v):
    return gamma_density(v / 2, x / 2) / 2


def _variance_ratio_density(x, n, m):
    """Fisher's distribution: the beta distribution at n x / (m + n x) and 1 minus it."""
    whole = m + n * x
    logs = scipy.special.xlogy(n / 2 - 1, n * x / whole) + m / 2 * np.log(m / whole)
    return np.exp(logs - scipy.special.betaln(n / 2, m / 2)) * n / whole


_family(_student_density, ORDER, cdf="stdtr", ppf="stdtrit")
_family(_chi_square_density, ORDER, cdf="chdtr", sf="chdtrc", isf="chdtri")
_family(_variance_ratio_density, ORDER, ORDER, cdf="fdtr", sf="fdtrc", ppf="fdtri")

# -- gamma distributions with the rate a, and beta distributions

_family(
    lambda x, a, b: a * gamma_density(b, a * x),
    lambda x, a, b: x * gamma_density(b, a * x),
    ORDER,
    cdf="gdtr",
    sf="gdtrc",
    ppf="gdtrix",
)
elementwise(  # the rate, given the rest
    "scipy.special.gdtria",
    lambda p, b, x, y: 1 / (x * gamma_density(b, y * x)),
    ORDER,
    lambda p, b, x, y: -y / x,
)
_family(lambda x, a, b: beta_density(a, b, x), ORDER, ORDER, first=True, ppf="_ufuncs._beta_ppf")


def _beta_slope(x, a, b, y):
    """By both powers; at an end of the support without the quotients 0/0."""
    inside = (x > 0) & (x < 1)
    t = np.where(inside, x, 0.5)
    ends = _product(a - 1, np.power(x, a - 2) * np.power(1 - x, b - 1))
    ends = ends - _product(b - 1, np.power(x, a - 1) * np.power(1 - x, b - 2))
    log_slope = (a - 1) / t - (b - 1) / (1 - t)
    return np.where(inside, y * log_slope, ends / scipy.special.beta(a, b))


def _by_shape(power, a, b, y):
    """Of the beta density by the shape a, whose power has that logarithm."""
    return _product(y, power - scipy.special.psi(a) + scipy.special.psi(a + b))


elementwise(
    "scipy.special._ufuncs._beta_pdf",
    _beta_slope,
    lambda x, a, b, y: _by_shape(np.log(x), a, b, y),
    lambda x, a, b, y: _by_shape(np.log1p(-x), b, a, y),
)

# -- counts: of successes among n trials, of failures before the n-th success, of rare events


def _binomial_by_chance(k, n, p):
    """Of the probability of at most k successes: of one more just by the last trial (8.17.5)."""
    k = np.floor(k)
    inside = (k >= 0) & (k < n)
    density = beta_density(np.where(inside, k, 0) + 1, np.where(inside, n - k, 1), p)
    return np.where(inside, -density, 0.0)


def _failures_by_chance(k, n, p):
    return np.where(k < 0, 0.0, beta_density(n, np.maximum(np.floor(k), 0) + 1, p))


def _poisson_mass(k, m):
    k = np.floor(k)
    return np.exp(scipy.special.xlogy(k, m) - m - scipy.special.gammaln(k + 1))


def _powers_slope(k, j, p, y):
    """The slope of p**k (1 - p)**j, times a constant; y is its value.

    At the ends of the range of p, the constant is that of the binomial distribution.
    """
    inside = (p > 0) & (p < 1)
    t = np.where(inside, p, 0.5)
    at_0 = np.where(k == 0, -j * y, np.where(k == 1, j + 1, 0.0))
    at_1 = np.where(j == 0, k * y, np.where(j == 1, -(k + 1), 0.0))
    return np.where(inside, y * (k / t - j / (1 - t)), np.where(p > 0.5, at_1, at_0))


def _failures_slope(k, n, p, y):
    """The same of the probability of k failures, which is 1 or 0 where p is 1."""
    t = np.where(p < 1, p, 0.5)
    at_1 = np.where(k == 0, n, np.where(k == 1, -n, 0.0))
    return np.where(p < 1, y * (n / t - k / (1 - t)), at_1)


_family(
    COUNT,
    COUNT,
    _binomial_by_chance,
    first=True,
    cdf="bdtr _ufuncs._binom_cdf",
    sf="bdtrc _ufuncs._binom_sf",
)
_family(
    COUNT,
    ORDER,
    _failures_by_chance,
    first=True,
    cdf="nbdtr _ufuncs._nbinom_cdf",
    sf="nbdtrc _ufuncs._nbinom_sf",
)
_family(COUNT, lambda k, m: -_poisson_mass(k, m), first=True, cdf="pdtr", sf="pdtrc")
# the chance or the mean, given the probability
elementwise(
    "scipy.special.bdtri", COUNT, COUNT, lambda k, n, p, y: 1 / _binomial_by_chance(k, n, y)
)
elementwise(
    "scipy.special.nbdtri", COUNT, ORDER, lambda k, n, p, y: 1 / _failures_by_chance(k, n, y)
)
elementwise("scipy.special.pdtri", COUNT, lambda k, p, y: -1 / _poisson_mass(k, y))

elementwise(
    "scipy.special._ufuncs._binom_pmf",
    COUNT,
    COUNT,
    lambda k, n, p, y: _powers_slope(k, n - k, p, y),
)
elementwise(
    "scipy.special._ufuncs._nbinom_pmf",
    COUNT,
    lambda k, n, p, y: y * (scipy.special.psi(k + n) - scipy.special.psi(n) + np.log(p)),
    _failures_slope,
)
for _name in ("pmf", "cdf", "sf"):
    elementwise(f"scipy.special._ufuncs._hypergeom_{_name}", *[COUNT] * 4)
for _name in ("binom_ppf", "binom_isf", "nbinom_ppf", "nbinom_isf"):
    locally_constant(f"scipy.special._ufuncs._{_name}")

# -- noncentral distributions


def _ncx2(x, df, nc):
    return _compiled("_ncx2_pdf")(x, df, nc)


def _ncx2_slope(x, df, nc, y):
    """By the neighbour above (10.29.1); at 0, by both neighbours."""
    at_0 = (x == 0) & (df > 2)
    t = np.where(at_0, 1.0, x)
    ends = (_ncx2(x, np.where(at_0, df - 2, df), nc) - y) / 2
    return np.where(at_0, ends, (nc / t * _ncx2(x, df + 2, nc) + ((df - 2) / t - 1) * y) / 2)


def _ncx2_by_nc(x, df, nc):
    return -_ncx2(x, df + 2, nc)


_family(
    _ncx2,
    ORDER,
    _ncx2_by_nc,
    first=True,
    cdf="chndtr",
    sf="_ufuncs._ncx2_sf",
    ppf="chndtrix",
    isf="_ufuncs._ncx2_isf",
)
elementwise(
    "scipy.special._ufuncs._ncx2_pdf",
    _ncx2_slope,
    ORDER,
    lambda x, df, nc, y: (_ncx2(x, df + 2, nc) - y) / 2,
)
elementwise(  # the noncentrality, given the rest
    "scipy.special.chndtrinc",
    lambda x, df, p, y: _ncx2(x, df, y) / _ncx2(x, df + 2, y),
    ORDER,
    lambda x, df, p, y: -1 / _ncx2(x, df + 2, y),
)


def _ncf(x, n, m, nc):
    return _compiled("_ncf_pdf")(x, n, m, nc)


def _ncf_above(x, n, m, nc):
    """The density of n + 2 degrees of freedom, of the same quotient of sums of squares."""
    return _ncf(n * x / (n + 2), n + 2, m, nc) * n / (n + 2)


def _ncf_slope(x, n, m, nc, y):
    terms = (n / 2 - 1) * y + nc / 2 * _ncf_above(x, n, m, nc)
    return (m * terms / x - (m / 2 + 1) * n * y) / (m + n * x)


def _ncf_by_nc(x, n, m, nc):
    """One term by (8.17.20); where that has no degrees of freedom, as a difference."""
    many = m > 2
    k = np.where(many, m - 2, 1)
    term = _ncf(n * x / m * k / (n + 2), n + 2, k, nc) / (n + 2)
    f = scipy.special.ncfdtr
    return np.where(many, -term, (f(n + 2, m, nc, n * x / (n + 2)) - f(n, m, nc, x)) / 2)


_family(_ncf, ORDER, ORDER, _ncf_by_nc, cdf="ncfdtr", ppf="ncfdtri")
_family(_ncf, ORDER, ORDER, _ncf_by_nc, first=True, sf="_ufuncs._ncf_sf", isf="_ufuncs._ncf_isf")
elementwise(
    "scipy.special._ufuncs._ncf_pdf",
    _ncf_slope,
    ORDER,
    ORDER,
    lambda x, n, m, nc, y: (_ncf_above(x, n, m, nc) - y) / 2,
)

# Student's noncentral x is (z + nc) / s with s = sqrt(v / df), v of the chi-square distribution and
# z normal, so that its densities are means of powers of s times phi(x s - nc). Each power of s is
# taken into the distribution of v, which has more degrees of freedom then.


def _nct(x, df, nc):
    return _compiled("_nct_pdf")(x, df, nc)


def _nct_moment(x, df, nc, power):
    """The mean of s**power phi(x s - nc), for a power of 0, 2 or 3."""
    k = df + power - 1
    ratio = k / df
    f = _nct(x * np.sqrt(ratio), k, nc)
    if power == 3:
        return np.sqrt(ratio) * f
    return f * np.sqrt(k / 2) / scipy.special.poch(k / 2, 0.5)


def _nct_by_nc(x, df, nc):
    """Of the distribution function; where no degree of freedom is left, by integration by parts."""
    many = df >= 2
    direct = _nct_moment(x, np.where(many, df, 2), nc, 0)
    parts = ((df + x * x) * _nct_moment(x, df, nc, 2) - x * nc * _nct(x, df, nc)) / df
    return -np.where(many, direct, parts)


_family(_nct, ORDER, _nct_by_nc, cdf="nctdtr", ppf="nctdtrit")
_family(_nct, ORDER, _nct_by_nc, first=True, sf="_ufuncs._nct_sf", isf="_ufuncs._nct_isf")
elementwise(
    "scipy.special._ufuncs._nct_pdf",
    lambda x, df, nc, y: nc * _nct_moment(x, df, nc, 2) - x * _nct_moment(x, df, nc, 3),
    ORDER,
    lambda x, df, nc, y: x * _nct_moment(x, df, nc, 2) - nc * y,
)

# -- families of a location and a scale


def _standard(density):
    """Its density, and the derivatives of its distribution function by location and scale."""
    return (
        lambda x, loc, scale, *shape: density((x - loc) / scale, *shape) / scale,
        lambda x, loc, scale, *shape: -density((x - loc) / scale, *shape) / scale,
        lambda x, loc, scale, *shape: (
            (loc - x) / scale * density((x - loc) / scale, *shape) / scale
        ),
    )


_family(
    *_standard(lambda z: 1 / (math.pi * (1 + z * z))),
    first=True,
    ppf="_ufuncs._cauchy_ppf",
    isf="_ufuncs._cauchy_isf",
)


def _landau(x, loc, scale):
    return _compiled("_landau_pdf")(x, loc, scale)


_family(  # a stable distribution of index 1, which its scale shifts, too
    _landau,
    lambda x, loc, scale: -_landau(x, loc, scale),
    lambda x, loc, scale: -(2 / math.pi + (x - loc) / scale) * _landau(x, loc, scale),
    first=True,
    cdf="_ufuncs._landau_cdf",
    sf="_ufuncs._landau_sf",
    ppf="_ufuncs._landau_ppf",
    isf="_ufuncs._landau_isf",
)


def _skew_by_shape(x, loc, scale, a):
    z, whole = (x - loc) / scale, 1 + a * a
    return -np.exp(-z * z * whole / 2) / (math.pi * whole)


_family(
    *_standard(lambda z, a: 2 / SQRT_2PI * np.exp(-z * z / 2) * scipy.special.ndtr(a * z)),
    _skew_by_shape,
    first=True,
    cdf="_ufuncs._skewnorm_cdf",
    ppf="_ufuncs._skewnorm_ppf",
    isf="_ufuncs._skewnorm_isf",
)

# -- one family each


def _inverse_gauss_density(x, mean, scale):
    return np.sqrt(scale / x**3) / SQRT_2PI * np.exp(-scale * (x / mean - 1) ** 2 / (2 * x))


def _inverse_gauss_by_mean(x, mean, scale):
    """By erfcx, so that the product of a large exponential with a small tail keeps its digits."""
    tail = scipy.special.erfcx(np.sqrt(scale / (2 * x)) * (x / mean + 1)) / 2
    return -2 * scale / mean**2 * np.exp(-scale * (x / mean - 1) ** 2 / (2 * x)) * tail


_family(
    _inverse_gauss_density,
    _inverse_gauss_by_mean,
    lambda x, mean, scale: (
        -(
            x * _inverse_gauss_density(x, mean, scale)
            + mean * _inverse_gauss_by_mean(x, mean, scale)
        )
        / scale
    ),
    first=True,
    ppf="_ufuncs._invgauss_ppf",
    isf="_ufuncs._invgauss_isf",
)
_family(
    lambda x: np.where(np.absolute(x) < math.pi, (1 + np.cos(x)) / (2 * math.pi), 0.0),
    cdf="_ufuncs._cosine_cdf",
    ppf="_ufuncs._cosine_invcdf",
)
_family(
    lambda x: -_compiled("_kolmogp")(x),
    cdf="_ufuncs._kolmogc",
    sf="kolmogorov",
    ppf="_ufuncs._kolmogci",
    isf="kolmogi",
)
_family(
    lambda d, n: -_compiled("_smirnovp")(n, d),
    COUNT,
    cdf="_ufuncs._smirnovc",
    sf="smirnov",
    ppf="_ufuncs._smirnovci",
    isf="smirnovi",
)


def _tukey_slopes(x, power, y):
    """The slopes of the quantile, which is a difference of two Box-Cox transforms, at y."""
    inside = (y > 0) & (y < 1)
    p, q = np.where(inside, y, 0.5), np.where(inside, scipy.special.tklmbda(-x, power), 0.5)
    terms = [boxcox_slope(t, np.log(t), power, scipy.special.boxcox(t, power)) for t in (p, q)]
    rate = p ** (power - 1) + q ** (power - 1)
    return np.where(inside, 1 / rate, 0.0), np.where(inside, (terms[1] - terms[0]) / rate, 0.0)


elementwise(
    "scipy.special.tklmbda",
    lambda x, power, y: _tukey_slopes(x, power, y)[0],
    lambda x, power, y: _tukey_slopes(x, power, y)[1],
)
elementwise("scipy.special._ufuncs._log1mexp", lambda x, y: -1 / np.expm1(-x))
elementwise(
    "scipy.stats._stats.von_mises_cdf",
    ORDER,
    lambda k, x, y: np.exp(k * (np.cos(x) - 1)) / (2 * math.pi * scipy.special.i0e(k)),
)

# -- the inverse of the Box-Cox transform


def _inverse_boxcox_by_power(y, power, base):
    straight = power == 0
    divisor = np.where(straight, 1.0, power)
    logs = np.where(straight, y, np.log1p(power * y) / divisor)
    return -boxcox_slope(base, logs, power, y) * base ** (1 - power)


elementwise(
    "scipy.special.inv_boxcox",
    lambda y, power, x: x ** (1 - power),
    lambda y, power, x: _inverse_boxcox_by_power(y, power, x),
)
elementwise(
    "scipy.special.inv_boxcox1p",
    lambda y, power, x: (1 + x) ** (1 - power),
    lambda y, power, x: _inverse_boxcox_by_power(y, power, 1 + x),
)
