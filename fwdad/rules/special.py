"""Functions of ``scipy.special`` that act element by element.

Formulas are those of the NIST Digital Library of Mathematical Functions (https://dlmf.nist.gov);
numbers such as 10.6.1 in the comments are its equations. A partial is written so that it keeps its
digits where the textbook's formula cancels, and so that it can itself be differentiated.
"""

import math

import numpy as np
import scipy  # its submodules load when they are first used

from fwdad.rules.arithmetic import fit
from fwdad.rules.core.define import elementwise, frule, locally_constant
from fwdad.rules.core.partials import no_derivative
from fwdad.rules.core.registry import RULES
from fwdad.rules.elementary import DEGREE, ERF_END, LN10, bell
from fwdad.tangents.plain import plain
from fwdad.tangents.symbolic import apply, recorder_of
from fwdad.tangents.zero import ZERO, Zero

SQRT_PI = math.sqrt(math.pi)
SQRT_2PI = math.sqrt(2 * math.pi)

ORDER = no_derivative("SciPy has no function for it")


def refuse_order(function, name, x_dot):
    """Raise if an order carries a tangent."""
    if not isinstance(x_dot, Zero):
        ORDER.of(f"scipy.special.{function}", lambda: name)()


# -- NumPy's functions under another name

for _name in ("expm1", "log1p", "exp2", "cbrt"):
    elementwise(f"scipy.special.{_name}", *RULES[getattr(np, _name)].partials)
elementwise("scipy.special.exp10", lambda x, y: LN10 * y)
elementwise("scipy.special.cosm1", lambda x, y: -np.sin(x))
elementwise("scipy.special.sindg", lambda x, y: DEGREE * scipy.special.cosdg(x))
elementwise("scipy.special.cosdg", lambda x, y: -DEGREE * scipy.special.sindg(x))
elementwise("scipy.special.tandg", lambda x, y: DEGREE * (1 + y * y))
elementwise("scipy.special.cotdg", lambda x, y: -DEGREE * (1 + y * y))
locally_constant("scipy.special.round", "scipy.special.gammasgn")


# -- series for differences that cancel


def _powers(x, coefficients):
    """The sum of coefficients[k] * x**k."""
    total = 0
    for c in reversed(coefficients):
        total = total * x + c
    return total


def _exprel_slope(x):
    """d/dx (exp(x) - 1)/x = sum x**k / ((k + 2) k!)."""
    small = np.absolute(x) < 1
    near, far = np.where(small, x, 0), np.where(small, 1, x)
    series = _powers(near, [1 / ((k + 2) * math.factorial(k)) for k in range(18)])
    return np.where(small, series, (np.exp(far) * (far - 1) + 1) / (far * far))


def _asymptotic(x, sign):
    """The sum of (2k-1)!! u**k, k >= 1, u = sign / (2 x**2): to the last digit for |x| > 25."""
    double_factorials = [0, *(math.prod(range(1, 2 * k, 2)) for k in range(1, 9))]
    return _powers(sign / (2 * x * x), double_factorials)


def _erfcx_slope(x, y):
    """2 x erfcx(x) - 2/sqrt(pi): for large x the terms cancel, and 7.12.1 is used."""
    large = (np.absolute(x) > 25) & (np.real(x) >= 0)
    far = np.where(large, x, 25)
    return np.where(large, _asymptotic(far, -1) * (2 / SQRT_PI), 2 * x * y - 2 / SQRT_PI)


def _dawson_slope(x, y):
    """1 - 2 x dawsn(x): for large real x the terms cancel."""
    large = (np.absolute(x) > 25) & (np.absolute(np.imag(x)) < 1)
    far = np.where(large, x, 25)
    return np.where(large, -_asymptotic(far, 1), 1 - 2 * x * y)


# The Voigt profile is the real part of w(z) / (s sqrt(pi)), z = t / s, with t = x + i gamma and
# s = sigma sqrt(2) (7.19.3); by sigma, as of any convolution with a normal distribution, its slope
# is sigma times its curvature in x. Where z is large, or sigma is 0, the series in 1/z (7.12.1) is
# taken term by term.


def _voigt_parts(x, sigma, gamma):
    """``s``, ``t``, whether the series is taken, z and w(z) where it is not."""
    s, t = math.sqrt(2) * sigma, x + 1j * gamma
    far = np.absolute(t) > 15 * s
    z = np.where(far, 1, t) / np.where(far, 1, s)
    return s, t, far, z, scipy.special.wofz(z)


def _voigt_series(s, t, far, derivative):
    """The series of a derivative in x: the first or the second."""
    inverse = 1 / np.where(far, t, 15)
    factors = [
        math.prod(range(1, 2 * k, 2)) * math.prod(range(2 * k + 1, 2 * k + 1 + derivative))
        for k in range(9)
    ]
    sign = (-1) ** derivative * 1j / math.pi
    return sign * inverse ** (derivative + 1) * _powers((s * inverse) ** 2 / 2, factors)


def _voigt_slope(x, sigma, gamma):
    s, t, far, z, w = _voigt_parts(x, sigma, gamma)
    near = -1j * _erfcx_slope(-1j * z, w) / (SQRT_PI * np.where(far, 1, s) ** 2)
    return np.where(far, _voigt_series(s, t, far, 1), near)


def _voigt_curvature(x, sigma, gamma):
    s, t, far, z, w = _voigt_parts(x, sigma, gamma)
    near = -2 * (w - 1j * z * _erfcx_slope(-1j * z, w)) / (SQRT_PI * np.where(far, 1, s) ** 3)
    return np.where(far, _voigt_series(s, t, far, 2), near)


# -- error functions (7.2, 7.10)

elementwise("scipy.special.erf", lambda x, y: (2 / SQRT_PI) * bell(x, ERF_END))
elementwise("scipy.special.erfc", lambda x, y: (-2 / SQRT_PI) * bell(x, ERF_END))
elementwise("scipy.special.erfi", lambda x, y: (2 / SQRT_PI) * np.exp(x * x))
elementwise("scipy.special.erfcx", _erfcx_slope)
elementwise("scipy.special.dawsn", _dawson_slope)
elementwise("scipy.special.wofz", lambda z, y: -1j * _erfcx_slope(-1j * z, y))
elementwise(
    "scipy.special.voigt_profile",
    lambda x, sigma, gamma, y: np.real(_voigt_slope(x, sigma, gamma)),
    lambda x, sigma, gamma, y: sigma * np.real(_voigt_curvature(x, sigma, gamma)),
    lambda x, sigma, gamma, y: -np.imag(_voigt_slope(x, sigma, gamma)),
)
elementwise("scipy.special.erfinv", lambda x, y: (SQRT_PI / 2) * np.exp(y * y))
elementwise("scipy.special.erfcinv", lambda x, y: (-SQRT_PI / 2) * np.exp(y * y))


@frule("scipy.special.fresnel")
def fresnel_frule(primals, tangents):
    """Push tangents through ``s, c = fresnel(z)`` (7.2.7, 7.2.8)."""
    (z,), (z_dot,) = primals, tangents
    angle = (math.pi / 2) * z * z
    return scipy.special.fresnel(z), (np.sin(angle) * z_dot, np.cos(angle) * z_dot)


# -- the normal and the logistic distribution


def _inverse_mills(x):
    """pdf(x) / cdf(x) of the normal distribution, by erfcx: neither tail cancels.

    To the right, where erfcx grows beyond all numbers, cdf is 1, and pdf is 0 beyond 39.
    """
    right = x > 20
    near = scipy.special.erfcx(np.where(right, 0, x) * (-1 / math.sqrt(2)))
    far = np.minimum(np.where(right, x, 0), 39)
    return np.where(right, np.exp(-far * far / 2) / SQRT_2PI, math.sqrt(2 / math.pi) / near)


elementwise("scipy.special.ndtr", lambda x, y: bell(x * math.sqrt(0.5), ERF_END) / SQRT_2PI)
elementwise("scipy.special.log_ndtr", lambda x, y: _inverse_mills(x))
elementwise("scipy.special.ndtri", lambda x, y: SQRT_2PI * np.exp(y * y / 2))
elementwise("scipy.special.ndtri_exp", lambda x, y: 1 / _inverse_mills(y))
elementwise("scipy.special.expit", lambda x, y: y * scipy.special.expit(-x))  # 1 - y would cancel
elementwise("scipy.special.log_expit", lambda x, y: scipy.special.expit(-x))
elementwise("scipy.special.softplus", lambda x, y: scipy.special.expit(x))
elementwise("scipy.special.logit", lambda x, y: 1 / (x * (1 - x)))
elementwise(
    "scipy.special.owens_t",
    lambda h, a, y: -np.exp(-h * h / 2) * scipy.special.erf(a * h / math.sqrt(2)) / (2 * SQRT_2PI),
    lambda h, a, y: np.exp(-h * h * (1 + a * a) / 2) / (2 * math.pi * (1 + a * a)),
)

# -- entropies, powers and losses: the limits at 0 are those of the function's own convention


def _ratio(x, y):
    """The ratio of x and y, with 0 / 0 = 0."""
    return x / np.where((x == 0) & (y == 0), 1, y)


def boxcox_slope(x, log_x, power, y):
    """d/dp (x**p - 1)/p = log(x)**2 exprel'(p log x), where p log(x) is small."""
    t = power * log_x
    small = np.absolute(t) < 1
    logs, exponent = np.where(small, log_x, 0), np.where(small, 1, power)
    direct = (scipy.special.xlogy(x**exponent, x) - y) / exponent
    return np.where(small, logs * logs * _exprel_slope(np.where(small, t, 0)), direct)


def _stretch(delta, r):
    return np.sqrt(1 + (r / delta) ** 2)


def _pseudo_huber_by_delta(delta, r, y):
    """The product delta (s - 1)**2 / s with s = sqrt(1 + (r/delta)**2)."""
    s = _stretch(delta, r)
    return delta * ((r / delta) ** 2 / (s + 1)) ** 2 / s


elementwise("scipy.special.exprel", lambda x, y: _exprel_slope(x))
elementwise("scipy.special.entr", lambda x, y: -np.log(x) - 1)
elementwise(
    "scipy.special.rel_entr", lambda x, y, z: np.log(x / y) + 1, lambda x, y, z: -_ratio(x, y)
)
elementwise("scipy.special.kl_div", lambda x, y, z: np.log(x / y), lambda x, y, z: _ratio(y - x, y))
elementwise("scipy.special.xlogy", lambda x, y, z: np.log(y), lambda x, y, z: _ratio(x, y))
elementwise("scipy.special.xlog1py", lambda x, y, z: np.log1p(y), lambda x, y, z: _ratio(x, 1 + y))
elementwise(
    "scipy.special.powm1",
    *[lambda x, p, y, by=by: by(x, p, x**p) for by in RULES[np.power].partials],
)
elementwise(
    "scipy.special.boxcox",
    lambda x, p, y: x ** (p - 1),
    lambda x, p, y: boxcox_slope(x, np.log(x), p, y),
)
elementwise(
    "scipy.special.boxcox1p",
    lambda x, p, y: (1 + x) ** (p - 1),
    lambda x, p, y: boxcox_slope(1 + x, np.log1p(x), p, y),
)
elementwise(
    "scipy.special.huber",
    lambda delta, r, y: np.where(np.absolute(r) <= delta, 0, np.absolute(r) - delta),
    lambda delta, r, y: np.where(np.absolute(r) <= delta, r, delta * np.sign(r)),
)
elementwise(
    "scipy.special.pseudo_huber", _pseudo_huber_by_delta, lambda delta, r, y: r / _stretch(delta, r)
)


@frule("scipy.special.logsumexp", argnums=("a", "b"))
def logsumexp_frule(primals, tangents, *, axis, keepdims, return_sign):
    r"""Push tangents through ``logsumexp(a, b=b)``.

    .. math:: \dot y = \sum_i s\, e^{a_i - y} (b_i \dot a_i + \dot b_i)

    with the sign s of the sum.
    A set of which every member is -inf has the weights 0: its sum stays zero.
    Cost: the weights are made once and shared by every lane.
    """
    (a, b), (a_dot, b_dot) = primals, tangents
    if recorder_of(a) is not None and b is None and not return_sign:
        return _logsumexp_of_symbol(a, a_dot, axis, keepdims)
    result = scipy.special.logsumexp(a, axis=axis, b=b, keepdims=keepdims, return_sign=return_sign)
    y, sign = result if return_sign else (result, 1)
    level, turn = np.where(y == -np.inf, 0, y), np.conjugate(sign) if return_sign else 1
    if not keepdims:
        terms = np.ones(np.broadcast_shapes(np.shape(plain(a)), np.shape(plain(b))), bool)
        reduced_shape = np.any(terms, axis=axis, keepdims=True).shape
        level, turn = (
            np.reshape(level, reduced_shape),
            np.reshape(turn, reduced_shape) if return_sign else 1,
        )
    with np.errstate(all="ignore"):  # inf - inf, for which the primal gives no warning
        weights = np.exp(a - level) * turn
    terms_dot = (weights if b is None else weights * b) * a_dot + weights * b_dot
    rate = np.sum(terms_dot, axis=axis, keepdims=keepdims)
    if not return_sign:
        return result, rate
    if np.iscomplexobj(sign):  # the logarithm of the modulus, and the phase
        return result, (rate.real, 1j * sign * rate.imag)
    return result, (rate, ZERO)


def _logsumexp_of_symbol(a, a_dot, axis, keepdims):
    """The same with one result, whose lengths are not known."""
    value = apply(scipy.special.logsumexp, a, axis=axis, keepdims=keepdims)
    level = np.where(value == -np.inf, 0, value)
    if not keepdims and axis is not None:
        level = np.expand_dims(level, axis)
    weights = np.exp(a - level)
    return value, np.sum(weights * a_dot, axis=axis, keepdims=keepdims)


@frule("scipy.special.softmax", argnums="x")
def softmax_frule(primals, tangents, *, axis):
    r"""Push tangents through ``softmax``: :math:`\dot y = y (\dot x - \sum y \dot x)`."""
    (x,), (x_dot,) = primals, tangents
    f = scipy.special.softmax
    y = f(x, axis=axis) if recorder_of(x) is None else apply(f, x, axis=axis)
    weighted = y * x_dot
    return y, weighted - y * np.sum(weighted, axis=axis, keepdims=True)


@frule("scipy.special.log_softmax", argnums="x")
def log_softmax_frule(primals, tangents, *, axis):
    r"""Push tangents through ``log_softmax``: :math:`\dot y = \dot x - \sum e^y \dot x`."""
    (x,), (x_dot,) = primals, tangents
    log_softmax = scipy.special.log_softmax
    y = (
        apply(log_softmax, x, axis=axis)
        if recorder_of(x) is not None
        else log_softmax(x, axis=axis)
    )
    return y, x_dot - np.sum(np.exp(y) * x_dot, axis=axis, keepdims=True)


# -- gamma and beta functions (5.2, 5.12)


def _reciprocal_gamma_slope(x, y):
    """-psi(x) / gamma(x); to the left, where it is inf * 0 at the poles of psi, by 5.5.3."""
    left = np.real(x) < 0.5
    mirrored = np.where(left, 1 - x, 1)
    angle = math.pi * np.where(left, x, 1)
    reflected = np.cos(angle) - scipy.special.psi(mirrored) * np.sin(angle) / math.pi
    direct = -scipy.special.psi(np.where(left, 1, x)) * y
    return np.where(left, scipy.special.gamma(mirrored) * reflected, direct)


# B_2, B_4, …, B_14 (24.2.1)
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def _trigamma(x):
    """psi'(x). SciPy has it for real x; else by 5.15.5, 5.15.6 and 5.15.8."""
    if not np.iscomplexobj(x):
        return scipy.special.polygamma(1, x)
    left = np.real(x) < 0.5
    mirrored = np.where(left, 1 - x, x)
    shifted = mirrored + 12
    inverse = 1 / shifted
    square = inverse * inverse
    value = inverse + square / 2 + inverse * square * _powers(square, BERNOULLI)
    for k in range(12):
        value = value + 1 / (mirrored + k) ** 2
    sine = np.sin(math.pi * np.where(left, x, 0.5))
    return np.where(left, (math.pi / sine) ** 2 - value, value)


def _binomial_slope(part, n, k, y):
    """For a parameter whose own factorial ``part!`` stands above or below (n - k)!."""
    return y * (scipy.special.psi(part + 1) - scipy.special.psi(n - k + 1))


elementwise("scipy.special.gamma", lambda x, y: y * scipy.special.psi(x))
elementwise("scipy.special.gammaln", lambda x, y: scipy.special.psi(x))
elementwise("scipy.special.loggamma", lambda x, y: scipy.special.psi(x))
elementwise("scipy.special.rgamma", _reciprocal_gamma_slope)
elementwise(
    "scipy.special.beta",
    lambda a, b, y: y * (scipy.special.psi(a) - scipy.special.psi(a + b)),
    lambda a, b, y: y * (scipy.special.psi(b) - scipy.special.psi(a + b)),
)
elementwise(
    "scipy.special.betaln",
    lambda a, b, y: scipy.special.psi(a) - scipy.special.psi(a + b),
    lambda a, b, y: scipy.special.psi(b) - scipy.special.psi(a + b),
)
elementwise(
    "scipy.special.poch",
    lambda z, m, y: y * (scipy.special.psi(z + m) - scipy.special.psi(z)),
    lambda z, m, y: y * scipy.special.psi(z + m),
)
elementwise(
    "scipy.special.binom",
    lambda n, k, y: _binomial_slope(n, n, k, y),
    lambda n, k, y: -_binomial_slope(k, n, k, y),
)


@frule("scipy.special.psi")
def psi_frule(primals, tangents):
    """Push tangents through ``psi``, which is also ``digamma``."""
    (x,), (x_dot,) = primals, tangents
    y = scipy.special.psi(x)
    return y, fit(x_dot * _trigamma(x), y)


@frule("scipy.special.polygamma")
def polygamma_frule(primals, tangents):
    """Push tangents through ``polygamma(n, x)``, the n-th derivative of psi."""
    (n, x), (n_dot, x_dot) = primals, tangents
    refuse_order("polygamma", "n", n_dot)
    y = scipy.special.polygamma(n, x)
    return y, fit(x_dot * scipy.special.polygamma(np.add(n, 1), x), y)


@frule("scipy.special.multigammaln", argnums="a")
def multigammaln_frule(primals, tangents, *, d):
    """Push tangents through the logarithm of the multivariate gamma function (35.3.4)."""
    (a,), (a_dot,) = primals, tangents
    slope = sum(scipy.special.psi(a - j / 2) for j in range(int(d)))
    return scipy.special.multigammaln(a, d), slope * a_dot


# -- incomplete gamma and beta functions: the densities of their distributions (8.8.13, 8.17.2)


def gamma_density(a, x):
    """The density of the gamma distribution of shape a."""
    return np.exp(scipy.special.xlogy(a - 1, x) - x - scipy.special.gammaln(a))


def beta_density(a, b, x):
    """The density of the beta distribution."""
    logs = scipy.special.xlogy(a - 1, x) + scipy.special.xlog1py(b - 1, -x)
    return np.exp(logs - scipy.special.betaln(a, b))


elementwise("scipy.special.gammainc", ORDER, lambda a, x, y: gamma_density(a, x))
elementwise("scipy.special.gammaincc", ORDER, lambda a, x, y: -gamma_density(a, x))
elementwise("scipy.special.gammaincinv", ORDER, lambda a, p, y: 1 / gamma_density(a, y))
elementwise("scipy.special.gammainccinv", ORDER, lambda a, p, y: -1 / gamma_density(a, y))
elementwise("scipy.special.betainc", ORDER, ORDER, lambda a, b, x, y: beta_density(a, b, x))
elementwise("scipy.special.betaincc", ORDER, ORDER, lambda a, b, x, y: -beta_density(a, b, x))
elementwise("scipy.special.betaincinv", ORDER, ORDER, lambda a, b, p, y: 1 / beta_density(a, b, y))
elementwise(
    "scipy.special.betainccinv", ORDER, ORDER, lambda a, b, p, y: -1 / beta_density(a, b, y)
)
