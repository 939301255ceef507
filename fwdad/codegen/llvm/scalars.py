"""Scalar functions as LLVM code: Python's exceptions, and divisions of ints.

Written for Numba in Python, each would be a function with a library of its own, which takes as long
to compile as a small program. Importing this module needs Numba.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from numba.core import types as _types
from numba.core import typing
from numba.extending import intrinsic

from fwdad.codegen.llvm.checks import require
from fwdad.codegen.llvm.outlining import casts

types: Any = _types

NO_FLOAT = "a fractional power of a negative number is complex"
DOMAIN = (ValueError, "math domain error")
RANGE = (OverflowError, "math range error")
"""What functions of :mod:`math` raise."""


def _of_two(kinds: Any, made: Any, write: Callable[..., Any]) -> Any:
    """An intrinsic of two numbers of some kinds, which are cast to the result's type first."""

    def typed(_typing, a, b):
        if not (isinstance(a, kinds) and isinstance(b, kinds)):
            return None

        def code(context, builder, sig, args):
            return write(context, builder, *casts(context, builder, sig.args, args, made))

        return made(a, b), code

    return intrinsic(typed)


def _of_floats(write: Callable[..., Any]) -> Any:
    return _of_two((types.Float, types.Integer, types.Boolean), types.float64, write)


def _of_ints(write: Callable[..., Any]) -> Any:
    return _of_two((types.Integer, types.Boolean), types.int64, write)


# -- floats


def _unless_finite(builder, r):
    """A branch, hardly ever taken, for results that are not finite."""
    is_wide = is_nan(builder, builder.fsub(r, r))  # infinity less infinity is NaN
    return builder.if_then(is_wide, likely=False)


def is_nan(builder, x):
    """Whether a number, or each of a vector, is NaN."""
    return builder.fcmp_unordered("uno", x, x)


def _is_infinite(builder, x):
    return builder.or_(
        *(builder.fcmp_ordered("==", x, x.type(end)) for end in (math.inf, -math.inf))
    )


def _refuse(context, builder, condition, exception, message):
    require(context, builder, builder.not_(condition), exception, message)


def _nan_made(builder, r, *given):
    """Whether a result is NaN although no argument is."""
    result_is_nan = is_nan(builder, r)
    for x in given:
        result_is_nan = builder.and_(result_is_nan, builder.not_(is_nan(builder, x)))
    return result_is_nan


def _infinity_made(builder, r, *given):
    """Whether a result is infinite although all arguments are finite."""
    result_is_infinite = _is_infinite(builder, r)
    for x in given:
        # false of NaN, too
        is_finite = builder.and_(
            builder.fcmp_ordered("<", x, x.type(math.inf)),
            builder.fcmp_ordered(">", x, x.type(-math.inf)),
        )
        result_is_infinite = builder.and_(result_is_infinite, is_finite)
    return result_is_infinite


@_of_floats
def in_domain(context, builder, r, x):
    """The result of a function of :mod:`math`; raises outside its domain."""
    with _unless_finite(builder, r):
        wrong = builder.or_(_nan_made(builder, r, x), _infinity_made(builder, r, x))
        _refuse(context, builder, wrong, *DOMAIN)
    return r


@_of_floats
def in_range(context, builder, r, x):
    """The result of a function of :mod:`math` that can overflow; raises if it does."""
    with _unless_finite(builder, r):
        _refuse(context, builder, _nan_made(builder, r, x), *DOMAIN)
        _refuse(context, builder, _infinity_made(builder, r, x), *RANGE)
    return r


def _power(context, builder, a, b):
    signature = typing.signature(types.float64, types.float64, types.float64)
    return context.get_function(math.pow, signature)(builder, (a, b))


@_of_floats
def float_power(context, builder, a, b):
    """``a**b`` for Python floats."""
    zero = a.type(0.0)
    is_pole = builder.and_(builder.fcmp_ordered("==", a, zero), builder.fcmp_ordered("<", b, zero))
    is_pole = builder.and_(is_pole, builder.fcmp_ordered(">", b, b.type(-math.inf)))
    _refuse(context, builder, is_pole, ZeroDivisionError, "zero to a negative power")
    r = _power(context, builder, a, b)
    with _unless_finite(builder, r):
        _refuse(context, builder, _nan_made(builder, r, a, b), ValueError, NO_FLOAT)
        message = "(34, 'Numerical result out of range')"
        _refuse(context, builder, _infinity_made(builder, r, a, b), OverflowError, message)
    return r


@_of_floats
def math_power(context, builder, a, b):
    """``math.pow(a, b)``."""
    r = _power(context, builder, a, b)
    with _unless_finite(builder, r):
        is_pole = builder.fcmp_ordered("==", a, a.type(0.0))
        overflows = _infinity_made(builder, r, a, b)
        wrong = builder.or_(_nan_made(builder, r, a, b), builder.and_(overflows, is_pole))
        _refuse(context, builder, wrong, *DOMAIN)
        _refuse(context, builder, overflows, *RANGE)
    return r


@intrinsic
def to_int(_typing, x):
    """``int(x)`` for a float."""
    if not isinstance(x, types.Float):
        return None

    def code(context, builder, sig, args):
        x = context.cast(builder, args[0], sig.args[0], types.float64)
        message = "cannot convert float NaN to integer"
        _refuse(context, builder, is_nan(builder, x), ValueError, message)
        fits = builder.and_(
            builder.fcmp_ordered("<", x, x.type(2.0**63)),
            builder.fcmp_ordered(">=", x, x.type(-(2.0**63))),
        )
        message = "a float is too large for a 64-bit int"
        require(context, builder, fits, OverflowError, message)
        return context.cast(builder, x, types.float64, types.int64)

    return types.int64(x), code


@intrinsic
def room_for(_typing, wanted, most):
    """The smaller of two counts of elements, given as floats because products may be large."""
    if wanted != types.float64 or most != types.float64:
        return None

    def code(context, builder, _sig, args):
        wanted, most = args
        fewer = builder.select(builder.fcmp_ordered("<", wanted, most), wanted, most)
        return context.cast(builder, fewer, types.float64, types.int64)

    return types.int64(wanted, most), code


# -- ints


def _divided(builder, a, b):
    """Quotient and remainder of the magnitudes, and which of the ints are negative.

    LLVM divides numbers below 2**32 faster, so that a negative one would be another branch. By 0
    it is divided as by 1.
    """
    b = builder.select(_is(builder, b, 0), b.type(1), b)
    below = [builder.icmp_signed("<", x, x.type(0)) for x in (a, b)]
    m, n = (builder.select(c, builder.neg(x), x) for x, c in zip((a, b), below, strict=True))
    return builder.udiv(m, n), builder.urem(m, n), n, *below


def _quotient(builder, a, b):
    """``a // b``; wrapped around if that is not an int of its bits."""
    quotient, rest, _, a_is_below, b_is_below = _divided(builder, a, b)
    one = quotient.type(1)
    up = builder.select(_is(builder, rest, 0), quotient, builder.add(quotient, one))
    return builder.select(builder.xor(a_is_below, b_is_below), builder.neg(up), quotient)


def _remainder(builder, a, b):
    """``a % b``; 0 for a zero divisor."""
    _, rest, n, a_is_below, b_is_below = _divided(builder, a, b)
    above = builder.select(_is(builder, rest, 0), rest, builder.sub(n, rest))
    rest = builder.select(builder.xor(a_is_below, b_is_below), above, rest)
    return builder.select(b_is_below, builder.neg(rest), rest)


def _is(builder, n, known):
    return builder.icmp_signed("==", n, n.type(known))


@_of_ints
def int_floor_divide(_context, builder, a, b):
    """``a // b`` for NumPy ints: 0 for a zero divisor."""
    return builder.select(_is(builder, b, 0), a.type(0), _quotient(builder, a, b))


@_of_ints
def int_remainder(_context, builder, a, b):
    """``a % b`` for NumPy ints: 0 for a zero divisor."""
    return _remainder(builder, a, b)


@_of_ints
def int_fmod(_context, builder, a, b):
    """``np.fmod(a, b)`` for ints: the remainder has the sign of ``a``; 0 for a zero divisor."""
    _, rest, _, a_is_below, _ = _divided(builder, a, b)
    return builder.select(a_is_below, builder.neg(rest), rest)


def _of_one_type(write: Callable[..., Any]) -> Any:
    """An intrinsic of two ints of one type, which is the result's, too."""

    def typed(_typing, a, b):
        if a != b or not isinstance(a, types.Integer):
            return None

        def code(_context, builder, sig, args):
            inside = builder.icmp_unsigned("<", args[1], args[1].type(a.bitwidth))
            return write(builder, sig.return_type, *args, inside)

        return a(a, b), code

    return intrinsic(typed)


@_of_one_type
def left_shift(builder, _type, a, b, inside):
    """``a << b`` for NumPy ints: 0 where all bits are shifted out."""
    return builder.select(inside, builder.shl(a, b), a.type(0))


@_of_one_type
def right_shift(builder, t, a, b, inside):
    """``a >> b`` for NumPy ints: the sign where all bits are shifted out."""
    if not t.signed:
        return builder.select(inside, builder.lshr(a, b), a.type(0))
    return builder.ashr(a, builder.select(inside, b, b.type(t.bitwidth - 1)))


@intrinsic
def int_within(_typing, x, low, high):
    """A Python int that NumPy converts to a dtype; raises unless from ``low`` to ``high``."""
    ends = (types.unliteral(t) for t in (low, high))
    if x != types.int64 or not all(isinstance(t, types.Integer) for t in ends):
        return None

    def code(context, builder, sig, args):
        x, low, high = casts(context, builder, sig.args, args, types.int64)
        fits = builder.and_(builder.icmp_signed(">=", x, low), builder.icmp_signed("<=", x, high))
        message = "a Python integer is out of bounds for the dtype"
        require(context, builder, fits, OverflowError, message)
        return x

    return types.int64(x, low, high), code


def _divides(context, builder, b):
    message = "integer division or modulo by zero"
    _refuse(context, builder, _is(builder, b, 0), ZeroDivisionError, message)


@_of_ints
def python_int_divide(context, builder, a, b):
    """``a // b`` for Python ints."""
    _divides(context, builder, b)
    too_large = builder.and_(_is(builder, b, -1), _is(builder, a, -(2**63)))
    message = "an int of compiled code exceeds 64 bits"
    _refuse(context, builder, too_large, OverflowError, message)
    return _quotient(builder, a, b)


@_of_ints
def python_int_remainder(context, builder, a, b):
    """``a % b`` for Python ints."""
    _divides(context, builder, b)
    return _remainder(builder, a, b)


@_of_ints
def larger(_context, builder, a, b):
    """The larger of two ints."""
    return builder.select(builder.icmp_signed(">", a, b), a, b)


@_of_ints
def smaller(_context, builder, a, b):
    """The smaller of two ints."""
    return builder.select(builder.icmp_signed("<", a, b), a, b)


__all__ = [
    "float_power", "in_domain", "in_range", "int_floor_divide", "int_fmod", "int_remainder",
    "int_within", "larger", "left_shift", "math_power", "python_int_divide",
    "python_int_remainder", "right_shift", "room_for", "smaller", "to_int",
]  # fmt: skip
