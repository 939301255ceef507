"""Sums, products, quotients, remainders, and the functions that select one of their arguments."""

import inspect

import numpy as np

from fwdad.errors import MissingRuleError
from fwdad.rules.core.define import elementwise, frule
from fwdad.rules.core.partials import SINGLE
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import ZERO, Zero


def one(y):
    """The number one in the dtype of y."""
    return np.ones((), plain(y).dtype)[()]


def fit(y_dot, y):
    """Broadcast a tangent to the shape of its primal y, and keep to single precision with y."""
    if isinstance(y_dot, Zero):
        return y_dot
    value = plain(y)
    shape, dtype = np.shape(value), getattr(value, "dtype", None)
    if y_dot.shape != shape:
        y_dot = y_dot.broadcast_to(shape)
    if dtype in SINGLE and not np.can_cast(y_dot.dtype, dtype):
        y_dot = y_dot.astype(dtype)
    return y_dot


# -- field operations

elementwise(np.add, lambda x1, x2, y: 1.0, lambda x1, x2, y: 1.0)
elementwise(np.subtract, lambda x1, x2, y: 1.0, lambda x1, x2, y: -1.0)
elementwise(np.multiply, lambda x1, x2, y: x2, lambda x1, x2, y: x1)
elementwise(np.divide, lambda x1, x2, y: 1 / x2, lambda x1, x2, y: -y / x2)
elementwise(np.negative, lambda x, y: -1.0)
elementwise(np.positive, lambda x, y: 1.0)

# -- remainders: the quotient that was taken out is a whole number, locally constant


def whole_quotient(x1, x2, y):
    """-q, for the whole number q in y = x1 - q * x2."""
    return np.rint((y - x1) / x2)


elementwise(np.remainder, lambda x1, x2, y: 1.0, lambda x1, x2, y: -np.floor_divide(x1, x2))
elementwise(np.fmod, lambda x1, x2, y: 1.0, whole_quotient)


@frule(np.divmod)
def divmod_frule(primals, tangents):
    """Push tangents through ``q, r = divmod(x1, x2)``: q is locally constant, r = x1 - q * x2."""
    x1, x2 = primals
    x1_dot, x2_dot = tangents
    q, r = np.divmod(x1, x2)
    return (q, r), (ZERO, fit(x1_dot - x2_dot * q, r))


@frule(np.modf)
def modf_frule(primals, tangents):
    """Push tangents through ``fraction, whole = modf(x)``."""
    return np.modf(*primals), (tangents[0], ZERO)


@frule(np.frexp)
def frexp_frule(primals, tangents):
    """Push tangents through ``mantissa, exponent = frexp(x)``: x = mantissa * 2**exponent."""
    (x,), (x_dot,) = primals, tangents
    mantissa, exponent = np.frexp(x)
    return (mantissa, exponent), (x_dot * np.ldexp(one(mantissa), -exponent), ZERO)


@frule(np.ldexp)
def ldexp_frule(primals, tangents):
    """Push tangents through ``x1 * 2**x2``; x2 is an integer."""
    x1, x2 = primals
    y = np.ldexp(x1, x2)
    return y, fit(tangents[0] * np.ldexp(one(y), x2), y)


# -- lengths and angles


def _hypot_slope(x, y):
    return x / np.where(y == 0, 1, y)  # 0 at the origin, as for the norm


def _arctan2_slope(x, x1, x2):
    length = np.hypot(x1, x2)
    return x / length / length  # x / length**2 would overflow long before arctan2 does


elementwise(np.hypot, lambda x1, x2, y: _hypot_slope(x1, y), lambda x1, x2, y: _hypot_slope(x2, y))
elementwise(
    np.arctan2,
    lambda x1, x2, y: _arctan2_slope(x2, x1, x2),
    lambda x1, x2, y: -_arctan2_slope(x1, x1, x2),
)


def _log_weight(x, other, y):
    """The logarithm of a term's weight, x - y; where y is infinite, x is all of it or nothing."""
    return np.where(y == np.inf, np.minimum(x - other, 0), x - y)


for _logaddexp, _exp in ((np.logaddexp, np.exp), (np.logaddexp2, np.exp2)):
    elementwise(
        _logaddexp,
        lambda x1, x2, y, exp=_exp: exp(_log_weight(x1, x2, y)),
        lambda x1, x2, y, exp=_exp: exp(_log_weight(x2, x1, y)),
    )


# -- functions that select: tangents are selected too, never multiplied by a mask


def _selecting(ufunc, beats, *, nan_wins):
    """The larger or smaller of two: the first argument wins a tie, a NaN wins always or never."""

    @frule(ufunc)
    def selecting_frule(primals, tangents):
        x1, x2 = primals
        taken = beats(x1, x2) | np.isnan(x1 if nan_wins else x2)
        return ufunc(x1, x2), np.where(taken, *tangents)


_selecting(np.maximum, np.greater_equal, nan_wins=True)
_selecting(np.minimum, np.less_equal, nan_wins=True)
_selecting(np.fmax, np.greater_equal, nan_wins=False)
_selecting(np.fmin, np.less_equal, nan_wins=False)


_ABSENT = np._NoValue  # noqa: SLF001  (NumPy's default for a bound has no public name)
# NumPy 2.0 has the first two only
_BOUNDS = tuple(
    name
    for name in ("a_min", "a_max", "min", "max")
    if name in inspect.signature(np.clip).parameters
)


@frule(np.clip, argnums=("a", *_BOUNDS))
def clip_frule(primals, tangents, **options):
    """Push tangents through ``clip(a, a_min, a_max)`` = minimum(a_max, maximum(a, a_min)).

    At an end the tangent is a's: the end is a point of the interval.
    """
    a, *bounds = primals
    a_dot, *bound_dots = tangents
    if options.get("where", True) is not True:
        raise MissingRuleError(
            "numpy.clip(..., where=mask) without out= leaves the other elements undefined: pass "
            "out="
        )
    present = {k: x for k, x in zip(_BOUNDS, bounds, strict=True) if x is not _ABSENT}
    y = np.clip(a, **present, **options)
    y_dot, value = fit(a_dot, y), a
    for name, bound, bound_dot in zip(_BOUNDS, bounds, bound_dots, strict=True):
        if bound is None or bound is _ABSENT:
            continue
        beyond = (np.less if name.endswith("min") else np.greater)(value, bound)
        beyond = beyond | (np.isnan(bound) & ~np.isnan(value))  # a NaN wins, as in maximum
        beyond = np.broadcast_to(beyond, np.shape(plain(y)))
        y_dot = np.where(beyond, bound_dot, y_dot)
        value = np.where(beyond, bound, value)
    return y, y_dot


@frule(np.copysign)
def copysign_frule(primals, tangents):
    """Push tangents through ``copysign(x1, x2)``: the agreement of the signs, also of zeros."""
    x1, x2 = primals
    y = np.copysign(x1, x2)
    agreement = np.where(np.signbit(x1) == np.signbit(x2), one(y), -one(y))
    return y, fit(tangents[0] * agreement, y)


@frule(np.heaviside)
def heaviside_frule(primals, tangents):
    """Push tangents through ``heaviside(x1, x2)``, which is x2 at x1 = 0 and flat elsewhere."""
    x1, x2 = primals
    y = np.heaviside(x1, x2)
    return y, np.where(np.broadcast_to(np.equal(x1, 0), np.shape(plain(y))), tangents[1], ZERO)


@frule(np.nextafter)
def nextafter_frule(primals, tangents):
    """Push tangents through ``nextafter(x1, x2)``: x1 and one unit in its last place."""
    x1, x2 = primals
    y = np.nextafter(x1, x2)
    return y, fit(tangents[0], y)


@frule(np.nan_to_num, argnums="x")
def nan_to_num_frule(primals, tangents, *, copy, **options):
    """Push tangents through ``nan_to_num``: what is replaced by a constant has no tangent.

    In the user's code ``copy=False`` is a store of what this returns.
    """
    (x,), (x_dot,) = primals, tangents
    if not copy:
        raise MissingRuleError(
            "numpy.nan_to_num(x, copy=False) writes into an argument that carries a derivative: "
            "leave out copy=False, and use what it returns"
        )
    y = np.nan_to_num(x, **options)
    if np.iscomplexobj(x):  # each part is replaced by itself
        re_dot = np.where(np.isfinite(np.real(x)), x_dot.real, ZERO)
        return y, re_dot + 1j * np.where(np.isfinite(np.imag(x)), x_dot.imag, ZERO)
    return y, np.where(np.isfinite(x), x_dot, ZERO)
