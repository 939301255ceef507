"""Arithmetic as Python and NumPy define it, where Numba's own operators differ.

Python's ints do not wrap, its floats raise where NumPy's return inf or nan. Importing this module
needs Numba.
"""

from __future__ import annotations

import math
import operator
import sys
from types import FunctionType
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils
from numba.core import types as _types
from numba.extending import intrinsic

from fwdad.codegen.llvm.allocation import (  # noqa: F401 (for generated source)
    address_of,
    growing,
    grown,
    part_inside,
    part_of_stack,
)
from fwdad.codegen.llvm.checks import require
from fwdad.codegen.llvm.prefetch import ahead  # noqa: F401 (for generated source)
from fwdad.codegen.llvm.reshaping import by_rows  # noqa: F401 (for generated source)
from fwdad.codegen.llvm.scalars import (  # noqa: F401 (for generated source)
    float_power,
    in_domain,
    in_range,
    int_floor_divide,
    int_fmod,
    int_remainder,
    int_within,
    larger,
    left_shift,
    math_power,
    python_int_divide,
    python_int_remainder,
    right_shift,
    room_for,
    smaller,
    to_int,
)
from fwdad.codegen.numba_support import CHECK_BOUNDS
from fwdad.ir.primitives import checkpoint_schedule

types: Any = _types

# stack bytes for calls of compiled code: threads have as little as a megabyte on Windows
MOST_STACK = 2**19 if sys.platform == "win32" else 2**21

NO_INT = "a negative power of an int is not an int: make it a float"
BROADCAST = "a cotangent was broadcast"
"""What compiled code says of lengths that NumPy's has to sum over."""

_numpy = njit(error_model="numpy", boundscheck=CHECK_BOUNDS)
_python = njit(error_model="python", boundscheck=CHECK_BOUNDS)


def _overflow(instruction: str) -> Any:
    def checked(_typing, _a, _b):
        def code(context, builder, _sig, args):
            pair = getattr(builder, instruction)(*args)
            fits = builder.not_(builder.extract_value(pair, 1))
            message = "an int of compiled code exceeds 64 bits"
            require(context, builder, fits, OverflowError, message)
            return builder.extract_value(pair, 0)

        return types.int64(types.int64, types.int64), code

    return intrinsic(checked)


int_add = _overflow("sadd_with_overflow")
int_sub = _overflow("ssub_with_overflow")
int_mul = _overflow("smul_with_overflow")


@intrinsic
def divide(_typing, a, b):
    """``a / b`` for NumPy floats: inf and nan instead of an exception."""
    if a != b or not isinstance(a, types.Float):
        return None

    def code(_context, builder, _sig, args):
        return builder.fdiv(*args)

    return a(a, b), code


@intrinsic
def summed(_typing, total, x):
    """``total + x`` for long sums in any order, so that they can be vectorised."""
    if total != x or not isinstance(total, types.Float):
        return None

    def code(_context, builder, _sig, args):
        return builder.fadd(*args, flags=("reassoc",))

    return total(total, x), code


@intrinsic
def scaled(_typing, d, t):
    """``d * t``, and zero where t is, whatever d is.

    The test has a branch of its own, which is hardly ever taken: a sum of many such products does
    not wait for it.
    """
    if d != types.float64 or t != types.float64:
        return None

    def code(_context, builder, _sig, args):
        d, t = args
        product = builder.fmul(d, t)
        start = builder.block
        rare, done = builder.append_basic_block("rare"), builder.append_basic_block("done")
        builder.cbranch(builder.fcmp_unordered("uno", product, product), rare, done).set_weights(
            [1, 1 << 16]
        )
        builder.position_at_end(rare)
        is_zero = builder.fcmp_ordered("==", t, t.type(0.0))
        nonzero_or_zero = builder.select(is_zero, t.type(0.0), product)
        builder.branch(done)
        builder.position_at_end(done)
        phi = builder.phi(product.type)
        phi.add_incoming(product, start)
        phi.add_incoming(nonzero_or_zero, rare)
        return phi

    return d(d, t), code


@intrinsic
def scaled_in_vectors(_typing, d, t):
    """The bits of :func:`scaled` without a branch, for loops that LLVM vectorises."""
    if d != types.float64 or t != types.float64:
        return None

    def code(_context, builder, _sig, args):
        d, t = args
        product = builder.fmul(d, t)
        is_odd = builder.fcmp_unordered("uno", product, product)
        is_zero = builder.fcmp_ordered("==", t, t.type(0.0))
        return builder.select(builder.and_(is_odd, is_zero), t.type(0.0), product)

    return d(d, t), code


@intrinsic
def scaled_complex(_typing, d, t):
    """``d * t`` of complex numbers, and zero where t is, whatever d is."""
    if d != types.complex128 or t != types.complex128:
        return None

    def code(context, builder, sig, args):
        product = context.get_function(operator.mul, sig)(builder, args)
        factor = context.make_complex(builder, t, args[1])
        real, imag = (
            builder.fcmp_ordered("==", x, x.type(0.0)) for x in (factor.real, factor.imag)
        )
        return builder.select(builder.and_(real, imag), context.get_constant(d, 0j), product)

    return d(d, t), code


@intrinsic
def is_odd(_typing, x):
    """Whether a number is NaN, which is marked as unlikely."""
    if x != types.float64:
        return None

    def code(_context, builder, _sig, args):
        bit = ir.IntType(1)
        expect = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(bit, [bit, bit]), "llvm.expect.i1"
        )
        has_nan = builder.fcmp_unordered("uno", args[0], args[0])
        return builder.call(expect, [has_nan, bit(0)])

    return types.boolean(x), code


@intrinsic
def _fmod(_typing, a, b):
    """The remainder with the sign of ``a``."""

    def code(_context, builder, _sig, args):
        return builder.frem(*args)

    return a(a, b), code


@_numpy
def computed(*values):  # noqa: ARG001
    """True, once the values are computed."""
    return True


@_numpy
def thinned_numbers(a, top):
    """Take every second number off a stack; returns its height."""
    half = (top + 1) // 2
    for k in range(half):
        a[k] = a[2 * k]
    return half


@_numpy
def thinned(a, shapes, shapes_top, rank):
    """Take every second array off a stack; returns its height, and that of its shapes."""
    read, made, count = 0, 0, shapes_top // rank
    for k in range(count):
        size = 1
        for axis in range(rank):
            size *= shapes[k * rank + axis]
        if k % 2 == 0:
            for axis in range(rank):
                shapes[k // 2 * rank + axis] = shapes[k * rank + axis]
            for j in range(size):
                a[made + j] = a[read + j]
            made += size
        read += size
    return made, (count + 1) // 2 * rank


def _of_snapshots(f):
    """A function of ``snapshots`` compiled with the helpers of this module as its globals."""
    return _numpy(FunctionType(f.__code__, globals(), f.__name__))


default_snapshots = _of_snapshots(checkpoint_schedule.default_snapshots)
snapshots_in = _of_snapshots(checkpoint_schedule.snapshots_in)
leaf_of_numbers = _of_snapshots(checkpoint_schedule.leaf_of_numbers)
places_beside = _of_snapshots(checkpoint_schedule.places_beside)
trips = _of_snapshots(checkpoint_schedule.trips)
next_stop = _of_snapshots(checkpoint_schedule.next_stop)
next_snapshot = _of_snapshots(checkpoint_schedule.next_snapshot)
most_of_unknown = _of_snapshots(checkpoint_schedule.most_of_unknown)


@intrinsic
def loose(_typing, a):
    """The same array with an open layout, so that arrays of several layouts have one type."""
    if not isinstance(a, types.Array):
        return None
    wide = a.copy(layout="A")

    def code(context, builder, sig, args):
        if context.get_value_type(sig.args[0]) != context.get_value_type(sig.return_type):
            raise TypeError(sig)
        context.nrt.incref(builder, sig.return_type, args[0])
        return args[0]

    return wide(a), code


@intrinsic
def stack_place(_typing):
    """The current stack address, in bytes."""

    def code(context, builder, _sig, _args):
        return _stack_place(context, builder)

    return types.intp(), code


def _stack_place(context, builder):
    here = cgutils.alloca_once(builder, context.get_value_type(types.int8))
    return builder.ptrtoint(here, context.get_value_type(types.intp))


@intrinsic
def check_stack(_typing, _first):
    """Raise if the stack has grown too far since a first call; Python counts calls instead."""

    def code(context, builder, _sig, args):
        used = builder.sub(args[0], _stack_place(context, builder))
        fits = builder.icmp_signed("<", used, used.type(MOST_STACK))
        require(context, builder, fits, RecursionError, "maximum recursion depth exceeded")
        return context.get_dummy_value()

    return types.void(types.intp), code


@_numpy
def complex_divide(a, b):
    """``a / b`` for NumPy complex numbers, by Smith's method as in NumPy's loop.

    R. L. Smith, "Algorithm 116: Complex division", Communications of the ACM 5 (8), 1962.
    """
    large, small = abs(b.real), abs(b.imag)
    if large >= small:
        if large == 0 and small == 0:
            return complex(a.real / large, a.imag / large)
        ratio = b.imag / b.real
        scale = 1.0 / (b.real + b.imag * ratio)
        return complex((a.real + a.imag * ratio) * scale, (a.imag - a.real * ratio) * scale)
    ratio = b.real / b.imag
    scale = 1.0 / (b.imag + b.real * ratio)
    return complex((a.real * ratio + a.imag) * scale, (a.imag * ratio - a.real) * scale)


@_numpy
def float_remainder(a, b):
    """``a % b`` for NumPy floats, with the divisor's sign."""
    if b == 0:
        return a * math.nan
    r = _fmod(a, b)
    if r != 0:
        if (b < 0) != (r < 0):
            r += b
        return r
    return math.copysign(0.0, b)


@_numpy
def float_floor_divide(a, b):
    """``a // b`` for NumPy floats."""
    if b == 0:
        return divide(float(a), float(b))
    r = _fmod(a, b)
    q = (a - r) / b
    if r != 0 and (b < 0) != (r < 0):
        q -= 1.0
    if q != 0:
        whole = np.floor(q)
        return whole + 1.0 if q - whole > 0.5 else whole
    return math.copysign(0.0, a / b)


@_python
def python_floor_divide(a, b):
    """``a // b`` for Python floats."""
    if b == 0:
        raise ZeroDivisionError("float floor division by zero")
    return float_floor_divide(float(a), float(b))


@_python
def python_remainder(a, b):
    """``a % b`` for Python floats."""
    if b == 0:
        raise ZeroDivisionError("float modulo by zero")
    return float_remainder(float(a), float(b))


@_python
def complex_power(a, b):
    """``a**b`` for Python complex numbers: by products for small whole exponents."""
    n = b.real
    if b.imag != 0 or n != math.floor(n) or abs(n) > 100:
        power = a**b
    else:
        power, rest = complex(1.0, 0.0), int(abs(n))
        while rest > 0:
            if rest & 1:
                power *= a
            rest >>= 1
            if rest:
                a *= a
        if n < 0:
            power = 1.0 / power
    if math.isinf(power.real) or math.isinf(power.imag):
        raise OverflowError("complex exponentiation")
    return power


@_python
def int_power(a, b):
    """``a**b`` for Python ints; raises for a negative exponent, where the result is no int."""
    if b < 0:
        raise ValueError(NO_INT)
    result = 1
    while b > 0:
        if b & 1:
            result = int_mul(result, a)
        b >>= 1
        if b:
            a = int_mul(a, a)
    return result


@_numpy
def numpy_int_power(a, b):
    """``a**b`` for NumPy ints."""
    if b < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")
    result = np.int64(1)
    while b > 0:
        if b & 1:
            result *= a
        b >>= 1
        a *= a
    return result


def _lengths(typing_of: Any) -> Any:
    """An intrinsic of two lengths that returns one."""

    def typed(_typing, m, n):
        if not (isinstance(m, types.Integer) and isinstance(n, types.Integer)):
            return None

        def code(context, builder, sig, args):
            m, n = (
                context.cast(builder, x, t, types.intp) for t, x in zip(sig.args, args, strict=True)
            )
            return typing_of(context, builder, m, n)

        return types.intp(m, n), code

    return intrinsic(typed)


@_lengths
def broadcast_length(context, builder, m, n):
    """The length that two lengths broadcast to."""
    same, m_is_one, n_is_one = (
        builder.icmp_signed("==", a, b) for a, b in ((m, n), (m, m.type(1)), (n, n.type(1)))
    )
    agree = builder.or_(same, builder.or_(m_is_one, n_is_one))
    require(context, builder, agree, ValueError, "operands could not be broadcast together")
    return builder.select(m_is_one, n, m)


@_lengths
def equal_length(context, builder, m, n):
    """The length of two arrays that are read together, neither of which is broadcast."""
    same = builder.icmp_signed("==", m, n)
    require(context, builder, same, ValueError, "operands could not be broadcast together")
    return m


@intrinsic
def check_shape(_typing, a, shape):
    """Check that an array has a shape, within which no index is checked any more."""
    if not isinstance(a, types.Array) or not isinstance(shape, types.BaseTuple):
        return None
    if len(shape) != a.ndim:
        return None

    def code(context, builder, sig, args):
        model = context.data_model_manager[sig.args[0]]
        items = cgutils.unpack_tuple(builder, model.get(builder, args[0], "shape"), a.ndim)
        fits = None
        for k, n in enumerate(items):
            m = context.cast(builder, builder.extract_value(args[1], k), shape[k], types.intp)
            same = builder.icmp_signed("==", m, n)
            fits = same if fits is None else builder.and_(fits, same)
        message = "operands could not be broadcast together"
        require(context, builder, fits, ValueError, message)
        return context.get_dummy_value()

    return types.void(a, shape), code


@intrinsic
def contiguous(_typing, a):
    """Whether an array is C-contiguous by its type."""
    if not isinstance(a, types.Array):
        return None

    def code(context, _builder, sig, _args):
        return context.get_constant(types.boolean, sig.args[0].layout == "C")

    return types.boolean(a), code


def _extent(builder, kind, array, start):
    """The addresses between which all elements of an array are."""
    if kind.layout == "C" or kind.ndim == 0:
        return start, builder.add(start, builder.mul(array.nitems, array.itemsize))
    zero, low, high = start.type(0), start, builder.add(start, array.itemsize)
    for n, stride in zip(
        cgutils.unpack_tuple(builder, array.shape, kind.ndim),
        cgutils.unpack_tuple(builder, array.strides, kind.ndim),
        strict=True,
    ):
        span = builder.mul(builder.sub(n, n.type(1)), stride)
        is_falling = builder.icmp_signed("<", span, zero)
        low = builder.add(low, builder.select(is_falling, span, zero))
        high = builder.add(high, builder.select(is_falling, zero, span))
    is_empty = builder.icmp_signed("==", array.nitems, zero)
    return builder.select(is_empty, start, low), builder.select(is_empty, start, high)


@intrinsic
def disjoint(_typing, a, b):
    """Whether two arrays share no memory."""
    if not (isinstance(a, types.Array) and isinstance(b, types.Array)):
        return None

    def code(context, builder, sig, args):
        ends = []
        for kind, value in zip(sig.args, args, strict=True):
            array = context.make_array(kind)(context, builder, value)
            start = builder.ptrtoint(array.data, context.get_value_type(types.intp))
            ends.append(_extent(builder, kind, array, start))
        (first, last), (start, stop) = ends
        below = builder.icmp_unsigned("<=", last, start)
        above = builder.icmp_unsigned("<=", stop, first)
        return builder.or_(below, above)

    return types.boolean(a, b), code


@_lengths
def check_length(context, builder, m, n):
    """The step, 0 or 1, to write m values into n elements; raises if they do not fit."""
    same, m_is_one = (builder.icmp_signed("==", a, b) for a, b in ((m, n), (m, m.type(1))))
    message = "could not broadcast input array into the shape of its target"
    require(context, builder, builder.or_(same, m_is_one), ValueError, message)
    return builder.select(same, m.type(1), m.type(0))


@_lengths
def place(context, builder, i, n):
    """The index of one of n elements, with negative indices counted from the end."""
    from_end = builder.icmp_signed("<", i, i.type(0))
    wrapped = builder.select(from_end, builder.add(i, n), i)
    inside = builder.icmp_unsigned("<", wrapped, n)
    require(context, builder, inside, IndexError, "index is out of bounds")
    return wrapped


__all__ = [name for name, value in list(globals().items()) if callable(value) and name[0] != "_"
           and name not in {"njit", "intrinsic", "require", "Any", "FunctionType"}]  # fmt: skip
