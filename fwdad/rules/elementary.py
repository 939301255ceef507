"""Exponentials, logarithms, trigonometric and hyperbolic functions, roots and powers."""

import functools
import math
import sys

import numpy as np

from fwdad.rules.core.define import elementwise
from fwdad.tangents.plain import plain
from fwdad.tangents.straight import with_derivative_of

# Python numbers, not NumPy's: these do not widen float32.
LN2 = math.log(2.0)
LN10 = math.log(10.0)
DEGREE = math.pi / 180

# -- which functions of NumPy's are vector code here


@functools.cache
def _has_vector_code(name):
    """Whether NumPy evaluates a function of doubles by vector code, which only Linux builds ensure.

    With AVX-512 it does for all but the sine and the cosine, which take 9 ns an element instead of
    1 to 2.
    """
    if sys.platform != "linux":
        return False
    codes = np.lib.introspect.opt_func_info(func_name=f"^{name}$", signature="float64")
    return any(
        not code["current"].startswith("baseline")
        for by_types in codes.values()
        for code in by_types.values()
    )


def _is_quick(name, x, least):
    """Whether NumPy has vector code for this x, a plain array of so many doubles or more."""
    return (
        type(x) is np.ndarray
        and x.size >= least
        and x.dtype == np.float64
        and _has_vector_code(name)
    )


def bell(x, end):
    """exp(-x * x), of which every derivative is 0 where it is itself: beyond ``end``, as at inf."""
    if plain(x) is not x or hasattr(type(x), "__fwdad_symbolic__"):
        if not np.iscomplexobj(x):
            x = np.minimum(np.maximum(x, -end), end)
    return np.exp(-x * x)


def _inverse_of_one_and_square(x):
    """1 / (1 + x * x), by 1 / x where the square would overflow, or its derivatives would."""
    if (plain(x) is x and not hasattr(type(x), "__fwdad_symbolic__")) or np.iscomplexobj(x):
        return 1 / (1 + x * x)
    large = np.absolute(x) > _LARGE
    inverse = 1 / np.where(large, x, 1)
    near = np.where(large, 0, x)
    return np.where(large, inverse * inverse, 1 / (1 + near * near))


_LARGE = 1e18  # beyond, 1 + x * x is x * x; single precision has its square, too
ERF_END = 40.0  # exp(-x * x) is 0 from there on


# -- exponentials and logarithms

elementwise(np.exp, lambda x, y: y)
elementwise(np.exp2, lambda x, y: LN2 * y)
elementwise(np.expm1, lambda x, y: np.exp(x))  # y + 1 would cancel at large negative x
elementwise(np.log, lambda x, y: 1 / x)
elementwise(np.log2, lambda x, y: 1 / (LN2 * x))
elementwise(np.log10, lambda x, y: 1 / (LN10 * x))
elementwise(np.log1p, lambda x, y: 1 / (1 + x))

# -- trigonometric functions

# Where the tangent is vector code, the cosine is the sine over it and the sine the cosine times it,
# within 2.3 units in the last place, near zeros too, where the root of 1 - y * y loses all digits.

_MANY = 256  # elements for which the tangent, the quotient and its check are quicker than a cosine
_FLAT = 1e-9  # below, the cosine rounds to 1


def _cosine(x, y):
    """The cosine of x, whose sine is y; a dual's value has the bits of a plain number's."""
    at = plain(x)
    if not _is_quick("tan", at, _MANY):
        return np.cos(x)
    slope = plain(y) / np.tan(at)
    if not math.isfinite(np.vdot(slope, slope)):
        slope = np.where(np.abs(at) < _FLAT, 1.0, slope)  # 0 / 0
    return slope if at is x else with_derivative_of(slope, np.cos(x))


def _minus_sine(x, y):
    """Minus the sine of x, whose cosine is y; a dual's value has the bits of a plain number's."""
    at = plain(x)
    if not _is_quick("tan", at, _MANY):
        return -np.sin(x)
    slope = -plain(y) * np.tan(at)
    return slope if at is x else with_derivative_of(slope, -np.sin(x))


def _one_minus_square(x):
    """(1 - x)(1 + x), which keeps the digits that 1 - x**2 loses at the ends."""
    if np.iscomplexobj(x):
        # The sign of a zero imaginary part tells the side of a cut: x - 1 and x - -1 keep it,
        # 1 - x and x + 1 do not.
        return -(x - 1) * (x - -1)
    return (1 - x) * (1 + x)


elementwise(np.sin, _cosine)
elementwise(np.cos, _minus_sine)
elementwise(np.tan, lambda x, y: 1 + y * y)
elementwise(np.arcsin, lambda x, y: 1 / np.sqrt(_one_minus_square(x)))
elementwise(np.arccos, lambda x, y: -1 / np.sqrt(_one_minus_square(x)))
elementwise(np.arctan, lambda x, y: _inverse_of_one_and_square(x))

for _to_radians in (np.deg2rad, np.radians):
    elementwise(_to_radians, lambda x, y: DEGREE)
for _to_degrees in (np.rad2deg, np.degrees):
    elementwise(_to_degrees, lambda x, y: 1 / DEGREE)

# -- hyperbolic functions


def _sech_squared(x, y):
    """1 - tanh(x)**2; the difference itself would cancel in the tails.

    By exp(-|x|), of which no derivative overflows. The minus of the modulus is a copy of a sign:
    its slope at 0 is one side's, and not the 0 that ``abs`` has there.
    """
    if np.iscomplexobj(x):  # cosh overflows to inf + nan j where tanh is still well behaved
        return 1 - y * y
    at = plain(x)
    is_quick = _is_quick("cosh", at, _MANY)
    if is_quick:
        sech = 1 / np.cosh(at)
        value = sech * sech
        if at is x:
            return value
    falling = np.exp(np.copysign(x, -1))  # cheaper than a cosh that is not vector code
    sech = 2 * falling / (1 + falling * falling)
    slope = sech * sech
    return with_derivative_of(value, slope) if is_quick else slope


elementwise(np.sinh, lambda x, y: np.cosh(x))
elementwise(np.cosh, lambda x, y: np.sinh(x))
elementwise(np.tanh, _sech_squared)
elementwise(np.arcsinh, lambda x, y: 1 / np.sqrt(x * x - -1))
elementwise(np.arccosh, lambda x, y: 1 / (np.sqrt(x - 1) * np.sqrt(x - -1)))
elementwise(np.arctanh, lambda x, y: 1 / _one_minus_square(x))

# -- roots, powers, and the absolute value of real numbers


def _inverse_square(y):
    """1 / y**2 by 1 / y: at infinity its derivatives are 0 as well, and not 0 * inf."""
    inverse = 1 / y
    return inverse * inverse


elementwise(np.sqrt, lambda x, y: 0.5 / y)
elementwise(np.cbrt, lambda x, y: _inverse_square(y) / 3)
elementwise(np.square, lambda x, y: 2 * x)
elementwise(np.reciprocal, lambda x, y: -y * y)
elementwise(np.fabs, lambda x, y: np.sign(x))


def _power_by_base(raise_to):
    def partial(x1, x2, y):
        """The product x2 x1**(x2 - 1), which is 0 and not 0 * inf for x1 = x2 = 0.

        Never by way of log(x1): integer powers of zero and of negative numbers are smooth, and
        stay so in every further derivative.
        """
        if type(y) is complex:  # Python's own (-8.0) ** (1/3) is complex, NumPy's is nan
            x1 = x1 + 0j
        # the exponent of an enclosing derivative has a tangent, and its type is a number's too
        if type(x2) in (int, float, np.float64) and plain(x2) is x2:
            if x2 == 2:
                return x2 * x1
            if x2 == 0.5:
                return np.divide(0.5, y)  # y may be Python's own 0.0
            return x2 * raise_to(x1, x2 - 1) if x2 else 0.0
        return x2 * raise_to(x1, np.where((x1 == 0) & (x2 == 0), 1, x2 - 1))

    return partial


def _power_by_exponent(x1, x2, y):
    """The product y log(x1), which is 0 and not 0 * inf for x1 = 0 and x2 > 0."""
    flat = (x1 == 0) & (np.real(x2) > 0)
    base = np.where(flat, 1, x1)
    return y * np.log(base + 0j if np.iscomplexobj(y) else base)


elementwise(np.power, _power_by_base(lambda x1, p: x1**p), _power_by_exponent)
elementwise(np.float_power, _power_by_base(np.float_power), _power_by_exponent)
