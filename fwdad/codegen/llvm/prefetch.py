"""Prefetches the part of a stack of arrays that is used next.

A stack that is longer than the cache is written and read at the speed of memory. A processor
prefetches along a long array by itself, but cannot know that, of many short ones, each is read
upwards and then the one below it. Importing this module needs Numba.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core import types as _types
from numba.extending import intrinsic

from fwdad.codegen.llvm.elements import get_itemsize, held
from fwdad.codegen.llvm.outlining import call_own, casts

types: Any = _types

_LONG = 2**20  # bytes of a stack that may exceed a core's cache
_SHORTEST, _LONGEST = 256, 2**15  # bytes of an array: the processor prefetches others by itself
_NEAREST = 2**12  # bytes between use and prefetch, at least
_LINE = 64  # bytes of a cache line
_BYTE, _WORD, _INT = ir.IntType(8).as_pointer(), ir.IntType(64), ir.IntType(32)


@intrinsic
def ahead(_typing: Any, stack: Any, start: Any, size: Any, way: Any) -> Any:
    """Prefetch the part of a stack that is used soon after its array at ``start``.

    ``stack`` is the stack's memory; ``way`` is 1 where it grows, -1 where it shrinks.
    """
    if not isinstance(stack, types.Array) or stack.ndim != 1 or stack.layout != "C":
        return None
    if not all(isinstance(t, types.Integer) for t in (start, size, way)):
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        memory = held(context, builder, sig.args[0], args[0])
        numbers = casts(context, builder, sig.args[1:], args[1:], types.intp)
        itemsize = context.get_constant(types.intp, get_itemsize(context, sig.args[0]))
        in_bytes = [builder.mul(n, itemsize) for n in (memory.lengths[0], *numbers[:2])]
        # tested inline: a call for each number or two would take as long as pushing them
        above = builder.sub(in_bytes[2], _WORD(_SHORTEST))
        fits = builder.icmp_unsigned("<=", above, _WORD(_LONGEST - _SHORTEST))
        with builder.if_then(fits, likely=False):
            arguments = [builder.bitcast(memory.data, _BYTE), *in_bytes, numbers[2]]
            call_own(builder, "fwdad_ahead", ir.VoidType(), arguments, _write)
        return context.get_dummy_value()

    return types.void(stack, start, size, way), code


def _write(builder: Any, given: Sequence[Any]) -> None:
    data, length, start, size, way = given
    is_long = builder.icmp_signed(">=", length, _WORD(_LONG))
    with builder.if_then(is_long, likely=False):
        twice = builder.add(size, size)
        is_far = builder.icmp_signed(">", twice, _WORD(_NEAREST))
        distance = builder.mul(way, builder.select(is_far, twice, _WORD(_NEAREST)))
        first = builder.add(start, distance)
        kind = ir.FunctionType(ir.VoidType(), [_BYTE, _INT, _INT, _INT])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [_BYTE], kind)
        with cgutils.for_range_slice(
            builder, first, builder.add(first, size), _WORD(_LINE), inc=True
        ) as (at, _):
            to_read, near, is_data = 0, 2, 1  # prefetches outside of the stack have no effect
            builder.call(ask, [builder.gep(data, [at]), _INT(to_read), _INT(near), _INT(is_data)])
    builder.ret_void()
