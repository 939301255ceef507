"""Reshaping of arrays in LLVM code, for the programs that fwdad writes.

For ``a.transpose(axes)`` Numba compiles two hundred functions, with sets and formatted messages
among them, for ``np.arange`` fifteen. Importing this module needs Numba.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core import types as _types
from numba.extending import intrinsic

from fwdad.codegen.llvm.allocation import allocate, copied, lengths_of
from fwdad.codegen.llvm.checks import require
from fwdad.codegen.llvm.elements import (
    Held,
    all_steps,
    as_view,
    get_itemsize,
    held,
    own_steps,
)
from fwdad.codegen.llvm.outlining import casts

types: Any = _types

_BIT = ir.IntType(1)


def transposed(
    context: Any, builder: Any, array_type: Any, array: Any, order: Sequence[int], made: Any
) -> Any:
    """``a.transpose(order)``, a view of type ``made``."""
    old = held(context, builder, array_type, array)
    steps = own_steps(context, builder, array_type, array)
    new = Held(made, old.data, [old.lengths[k] for k in order], [steps[k] for k in order])
    return as_view(context, builder, new, array_type, array)


def reshaped(
    context: Any, builder: Any, array_type: Any, array: Any, lengths: Sequence[Any], made: Any
) -> Any:
    """``a.reshape(lengths)`` of a C-contiguous array, a view of type ``made``.

    One of the lengths, which are LLVM values, may be negative: it is computed from the others.
    """
    old = held(context, builder, array_type, array)
    one, zero = context.get_constant(types.intp, 1), context.get_constant(types.intp, 0)
    size = known = one
    for n in old.lengths:
        size = builder.mul(size, n)
    is_open: list[Any] = []
    for n in lengths:
        is_open.append(builder.icmp_signed("<", n, zero))
        known = builder.mul(known, builder.select(is_open[-1], one, n))
    any_open, twice = _BIT(0), _BIT(0)
    for each in is_open:
        twice = builder.or_(twice, builder.and_(any_open, each))
        any_open = builder.or_(any_open, each)
    is_nothing = builder.icmp_signed("==", known, zero)
    rest = builder.udiv(size, builder.select(is_nothing, one, known))
    rest = builder.select(any_open, rest, one)
    fits = builder.icmp_signed("==", builder.mul(known, rest), size)
    undecided = builder.or_(twice, builder.and_(any_open, is_nothing))
    fits = builder.and_(fits, builder.not_(undecided))
    require(context, builder, fits, ValueError, "an array cannot be reshaped to such lengths")
    settled = [builder.select(o, rest, n) for o, n in zip(is_open, lengths, strict=True)]
    return as_view(context, builder, Held(made, old.data, settled, []), array_type, array)


@intrinsic
def ascontiguousarray(_typing: Any, array: Any) -> Any:
    """``np.ascontiguousarray(array)``: the array itself, or a C-contiguous copy."""
    if not isinstance(array, types.Array) or not array.ndim:
        return None
    copy = array.copy(layout="C", readonly=False)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        t, (array,) = sig.args[0], args
        if t.layout == "C" or (t.layout == "F" and t.ndim == 1):
            context.nrt.incref(builder, t, array)
            return array
        if t.layout == "F":
            return copied(context, builder, t, array)
        with builder.if_else(_is_c_contiguous(context, builder, t, array)) as (then, other):
            with then:
                context.nrt.incref(builder, t, array)
                before = builder.block
            with other:
                new = copied(context, builder, t, array)
                behind = builder.block
        either = builder.phi(array.type)
        either.add_incoming(array, before)
        either.add_incoming(new, behind)
        return either

    return copy(array), code


@intrinsic
def by_rows(_typing: Any, array: Any) -> Any:
    """A view of an array that is C-contiguous, in a type that says so; raises if it is not."""
    if not isinstance(array, types.Array):
        return None
    copy = array.copy(layout="C")

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        t, (array,) = sig.args[0], args
        if context.get_value_type(t) != context.get_value_type(sig.return_type):
            raise TypeError(sig)
        if t.layout != "C" and t.ndim:
            fits = _is_c_contiguous(context, builder, t, array)
            message = "an array is not C-contiguous"
            require(context, builder, fits, ValueError, message)
        context.nrt.incref(builder, sig.return_type, array)
        return array

    return copy(array), code


def _is_c_contiguous(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    """Whether an array is C-contiguous; strides along axes of length 1 do not matter."""
    old = held(context, builder, array_type, array)
    step = context.get_constant(types.intp, get_itemsize(context, array_type))
    fits = _BIT(1)
    steps = all_steps(context, builder, old)
    for n, own in zip(reversed(old.lengths), reversed(steps), strict=True):
        same = builder.icmp_signed("==", own, step)
        fits = builder.and_(fits, builder.or_(same, builder.icmp_signed("==", n, n.type(1))))
        step = builder.mul(step, n)
    return builder.or_(fits, builder.icmp_signed("==", step, step.type(0)))


@intrinsic
def arange(_typing: Any, start: Any, stop: Any, step: Any) -> Any:
    """``np.arange(start, stop, step)`` for ints."""
    if not all(isinstance(t, types.Integer) for t in (start, stop, step)):
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, end, by = casts(context, builder, sig.args, args, types.int64)
        zero, one = first.type(0), first.type(1)
        moves = builder.icmp_signed("!=", by, zero)
        require(context, builder, moves, ValueError, "a range cannot have steps of zero")
        upwards = builder.icmp_signed(">", by, zero)
        low, high = builder.select(upwards, first, end), builder.select(upwards, end, first)
        size = builder.select(upwards, by, builder.neg(by))
        # as unsigned ints: the distance of two ints may be larger than the largest
        between = builder.sub(builder.sub(high, low), one)
        count = builder.add(builder.udiv(between, size), one)
        count = builder.select(builder.icmp_signed("<", low, high), count, zero)
        array = allocate(context, builder, sig.return_type, [count])
        with cgutils.for_range(builder, count) as loop:
            item = builder.add(first, builder.mul(loop.index, by))
            builder.store(item, builder.gep(array.data, [loop.index]))
        return array.value

    return types.Array(types.int64, 1, "C")(start, stop, step), code


@intrinsic
def broadcast_to(_typing: Any, array: Any, shape: Any) -> Any:
    """``np.broadcast_to(array, shape)``: a read-only view."""
    if not isinstance(array, types.Array) or not isinstance(shape, types.BaseTuple):
        return None
    if len(shape) < array.ndim or not all(isinstance(n, types.Integer) for n in shape):
        return None
    view_type = types.Array(array.dtype, len(shape), "A", readonly=True, aligned=array.aligned)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        t = sig.args[0]
        old = held(context, builder, t, args[0])
        lengths = lengths_of(context, builder, sig.args[1], args[1])
        zero, one = context.get_constant(types.intp, 0), context.get_constant(types.intp, 1)
        lead = len(lengths) - t.ndim
        steps, agree = [zero] * lead, _BIT(1)
        for n in lengths[:lead]:
            agree = builder.and_(agree, builder.icmp_signed(">=", n, zero))
        known = all_steps(context, builder, old)
        for n, m, step in zip(lengths[lead:], old.lengths, known, strict=True):
            same, single = builder.icmp_signed("==", m, n), builder.icmp_signed("==", m, one)
            wanted = builder.and_(single, builder.icmp_signed(">=", n, zero))
            agree = builder.and_(agree, builder.or_(same, wanted))
            steps.append(builder.select(same, step, zero))
        message = "operands could not be broadcast together with remapped shapes"
        require(context, builder, agree, ValueError, message)
        new = Held(sig.return_type, old.data, lengths, steps)
        return as_view(context, builder, new, t, args[0])

    return view_type(array, shape), code


REPLACED: dict[Any, Any] = {
    np.arange: arange, np.ascontiguousarray: ascontiguousarray, np.broadcast_to: broadcast_to,
}  # fmt: skip
"""NumPy's functions as generated code calls them, and what takes their place."""
