"""Python's ``math`` and ``cmath``, on scalars.

The primal is the function itself, with its own value and its own exceptions (``math.sqrt(-1.0)``
raises where ``np.sqrt`` is NaN); the derivative is the one that NumPy's namesake has.
"""

import cmath
import math
import sys

import numpy as np

from fwdad.rules.arithmetic import whole_quotient
from fwdad.rules.core.define import elementwise, frule, locally_constant
from fwdad.rules.core.registry import RULES
from fwdad.rules.elementary import DEGREE, ERF_END, bell
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.symbolic import apply, is_known
from fwdad.tangents.zero import ZERO

# -- functions that NumPy has, too: {name here: name there}

_NAMESAKES = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atanh": "arctanh",
    "cos": "cos",
    "cosh": "cosh",
    "exp": "exp",
    "log10": "log10",
    "sin": "sin",
    "sinh": "sinh",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
}
_REAL_NAMESAKES = {
    "atan2": "arctan2",
    "cbrt": "cbrt",
    "exp2": "exp2",
    "expm1": "expm1",
    "fabs": "fabs",
    "fmod": "fmod",
    "log1p": "log1p",
    "log2": "log2",
    "pow": "power",
}


# whose partials divide by the value, which is a number of Python's here: 1 / 0.0 raises for those
_DIVIDED_BY = ("sqrt", "cbrt")


def _by_value(partial):
    return lambda x, y: partial(x, np.positive(y))


def _on_complex(partial):
    """Treat a real argument as a point on the real axis of the complex plane."""
    return lambda z, y: partial(z + 0j, np.positive(y))


for _name, _there in (_NAMESAKES | _REAL_NAMESAKES).items():
    _partials = RULES[getattr(np, _there)].partials
    if _name in _DIVIDED_BY:
        _partials = map(_by_value, _partials)
    elementwise(getattr(math, _name), *_partials)
for _name, _there in _NAMESAKES.items():
    (_partial,) = RULES[getattr(np, _there)].partials
    elementwise(getattr(cmath, _name), _on_complex(_partial))

elementwise(math.degrees, lambda x, y: 1 / DEGREE)
elementwise(math.radians, lambda x, y: DEGREE)
elementwise(math.remainder, lambda x1, x2, y: 1.0, whole_quotient)


# -- those that SciPy has


def _psi(x):
    from scipy.special import psi  # noqa: PLC0415  (loaded by programs that need it only)

    return psi(x)


elementwise(math.erf, lambda x, y: 2 / math.sqrt(math.pi) * bell(x, ERF_END))
elementwise(math.erfc, lambda x, y: -2 / math.sqrt(math.pi) * bell(x, ERF_END))
elementwise(math.gamma, lambda x, y: y * _psi(x))
elementwise(math.lgamma, lambda x, y: _psi(x))


def _log_to_base(log):
    @frule(log, signature="(x, /, *base)")
    def log_frule(primals, tangents):
        """Push tangents through ``log(x, base)`` = log(x) / log(base)."""
        x, *base = primals
        x_dot, *base_dot = tangents
        symbolic = hasattr(x, "__fwdad_symbolic__")
        y = apply(log, x, *base) if symbolic else log(x, *base)
        if not base:
            return y, 1 / x * x_dot
        return y, (1 / x * x_dot - y / base[0] * base_dot[0]) * (1 / log(*base))


_log_to_base(math.log)
_log_to_base(cmath.log)


# -- functions with parts, and those that take an integer


@frule(math.modf)
def modf_frule(primals, tangents):
    """Push tangents through ``fraction, whole = modf(x)``."""
    return math.modf(*primals), (tangents[0], ZERO)


@frule(math.frexp)
def frexp_frule(primals, tangents):
    """Push tangents through ``mantissa, exponent = frexp(x)``: x = mantissa * 2**exponent."""
    mantissa, exponent = math.frexp(*primals)
    return (mantissa, exponent), (tangents[0] * math.ldexp(1.0, -exponent), ZERO)


@frule(math.ldexp)
def ldexp_frule(primals, tangents):
    """Push tangents through ``x * 2**i``."""
    _, i = primals
    return math.ldexp(*primals), tangents[0] * math.ldexp(1.0, i)


@frule(math.copysign)
def copysign_frule(primals, tangents):
    """Push tangents through ``copysign(x, y)``: the agreement of the signs, also of zeros."""
    x, y = primals
    agreement = np.where(np.signbit(x) == np.signbit(y), 1.0, -1.0)[()]
    return math.copysign(x, y), tangents[0] * agreement


@frule(math.nextafter)
def nextafter_frule(primals, tangents, **options):
    """Push tangents through ``nextafter(x, y)``: x and some units in its last place."""
    return math.nextafter(*primals, **options), tangents[0]


# -- functions of many numbers


def _each(x, x_dot):
    """The tangent of every item of a list, or of a vector."""
    return x_dot if isinstance(x_dot, (list, tuple, Chunk)) else [ZERO] * len(x)


@frule(math.hypot, signature="(*coordinates)")
def hypot_frule(primals, tangents):
    """Push tangents through ``hypot(*coordinates)``; 0 at the origin."""
    y = math.hypot(*primals) if is_known(*primals) else apply(math.hypot, *primals)
    length = np.where(y == 0, 1, y)[()]
    return y, sum((x_dot * (x / length) for x, x_dot in zip(primals, tangents, strict=True)), ZERO)


@frule(math.dist)
def dist_frule(primals, tangents):
    """Push tangents through ``dist(p, q)``, the length of p - q; 0 where p = q."""
    p, q = primals
    p_dot, q_dot = _each(p, tangents[0]), _each(q, tangents[1])
    y = math.dist(p, q)
    length = np.where(y == 0, 1, y)[()]
    y_dot = ZERO
    for k in range(len(p)):
        y_dot = y_dot + (p[k] - q[k]) / length * (p_dot[k] - q_dot[k])
    return y, y_dot


@frule(math.fsum)
def fsum_frule(primals, tangents):
    """Push tangents through ``fsum(seq)``."""
    (seq,), (seq_dot,) = primals, tangents
    return math.fsum(seq), sum(_each(seq, seq_dot), ZERO)


@frule(math.prod, argnums=("iterable", "start"))
def prod_frule(primals, tangents):
    """Push tangents through ``prod(iterable, start=start)``, also past factors of zero."""
    (factors, start), (factors_dot, y_dot) = primals, tangents
    y = start
    for x, x_dot in zip(factors, _each(factors, factors_dot), strict=True):
        y_dot = y_dot * x + y * x_dot
        y = y * x
    return math.prod(factors, start=start), y_dot


if sys.version_info >= (3, 12):

    @frule(math.sumprod)
    def sumprod_frule(primals, tangents):
        """Push tangents through ``sumprod(p, q)``."""
        p, q = primals
        p_dot, q_dot = _each(p, tangents[0]), _each(q, tangents[1])
        y_dot = ZERO
        for k in range(len(p)):
            y_dot = y_dot + p_dot[k] * q[k] + p[k] * q_dot[k]
        return math.sumprod(p, q), y_dot


if sys.version_info >= (3, 13):
    elementwise(math.fma, lambda x, y, z, out: y, lambda x, y, z, out: x, lambda x, y, z, out: 1.0)


# -- complex numbers in polar form: linear over the reals only


@frule(cmath.phase)
def phase_frule(primals, tangents):
    """Push tangents through ``phase(z)``: Im(conj(z) z_dot) / |z|**2."""
    return cmath.phase(*primals), _polar_tangents(*primals, *tangents)[1]


@frule(cmath.polar)
def polar_frule(primals, tangents):
    """Push tangents through ``r, phi = polar(z)``."""
    return cmath.polar(*primals), _polar_tangents(*primals, *tangents)


@frule(cmath.rect)
def rect_frule(primals, tangents):
    """Push tangents through ``r * exp(i phi)``."""
    r, phi = primals
    r_dot, phi_dot = tangents
    return cmath.rect(r, phi), np.exp(1j * phi) * (r_dot + 1j * r * phi_dot)


def _polar_tangents(z, z_dot):
    length = np.abs(z)
    unit = z / np.where(length == 0, 1, length)
    along = (np.conjugate(unit) + 0j) * z_dot  # a real z_dot gets an imaginary part as well
    with np.errstate(all="ignore"):  # the phase has no derivative at 0
        return along.real, along.imag * (1 / np.float64(length))


# -- locally constant

locally_constant(
    math.ceil,
    math.floor,
    math.trunc,
    math.ulp,
    math.isclose,
    math.isfinite,
    math.isinf,
    math.isnan,
    cmath.isclose,
    cmath.isfinite,
    cmath.isinf,
    cmath.isnan,
)
