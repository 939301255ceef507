"""Allocation of arrays in LLVM code, for the programs that fwdad writes.

Numba compiles ``np.zeros`` from a chain of five functions, each with a library and its own round of
optimisation: more work than a whole small program. Importing this module needs Numba.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core import types as _types
from numba.extending import intrinsic
from numba.np.arrayobj import store_item

from fwdad.codegen.llvm.checks import require, require_inside
from fwdad.codegen.llvm.elements import (
    Held,
    all_steps,
    as_array,
    as_view,
    get_itemsize,
    held,
    item_of,
)
from fwdad.codegen.llvm.outlining import call_own, casts
from fwdad.codegen.numba_support import CHECK_BOUNDS

types: Any = _types
_ALIGNMENT = 32  # bytes, as for Numba's own arrays
_LONG = 2**22  # bytes: arrays of at least this size use large pages
_LONG_STACK = 2**24  # the same for a stack, whose last page is touched for a single element
_PAGE = 4096
_SHORT = 1024  # elements of a stack
_HUGE_PAGES = 14  # Linux's MADV_HUGEPAGE


class New(NamedTuple):
    """A new array: Numba's value, a pointer to its first element, its size in bytes."""

    value: Any
    data: Any
    size: Any


_BYTE, _WORD = ir.IntType(8).as_pointer(), ir.IntType(64)
_MADE = ir.LiteralStructType([_BYTE, _BYTE, _WORD])
"""What allocates returns: Numba's owner of the memory, where it is, and how many bytes. The owner
is null if there is no memory, and the bytes are -1 if so many cannot be."""


def allocate(context: Any, builder: Any, array_type: Any, lengths: list[Any]) -> New:
    """A new, uninitialised array in C order."""

    def write(inside: Any, given: Any) -> None:
        size, *rest = given
        fits = ir.Constant(ir.IntType(1), 1)
        for n in reversed(rest):
            product = inside.smul_with_overflow(size, n)
            size = inside.extract_value(product, 0)
            exact = inside.not_(inside.extract_value(product, 1))
            fits = inside.and_(fits, inside.and_(exact, inside.icmp_signed(">=", n, n.type(0))))
        with inside.if_then(inside.not_(fits), likely=False):
            inside.ret(_struct(inside, _BYTE(None), _BYTE(None), _WORD(-1)))
        align = ir.IntType(32)(_ALIGNMENT)
        owner = context.nrt.meminfo_alloc_aligned_unchecked(inside, size, align)
        _return_new(context, inside, owner, size, _LONG)

    given = [context.get_constant(types.intp, get_itemsize(context, array_type)), *lengths]
    result = call_own(builder, f"fwdad_allocate_{len(lengths)}", _MADE, given, write)
    return _new(context, builder, array_type, lengths, result)


def _return_new(context: Any, builder: Any, owner: Any, size: Any, long: int) -> None:
    """Return new memory from the function being written; its owner may be null."""
    with builder.if_then(cgutils.is_null(builder, owner), likely=False):
        builder.ret(_struct(builder, _BYTE(None), _BYTE(None), size))
    data = context.nrt.meminfo_data(builder, owner)
    if sys.platform == "linux":
        _wants_large_pages(builder, data, size, long)
    builder.ret(_struct(builder, owner, data, size))


def _struct(builder: Any, *parts: Any) -> Any:
    struct = ir.Constant(_MADE, ir.Undefined)
    for k, part in enumerate(parts):
        struct = builder.insert_value(struct, part, k)
    return struct


def _new(context: Any, builder: Any, array_type: Any, lengths: list[Any], made: Any) -> New:
    """The array over newly allocated memory; raises where the allocation failed."""
    owner, data, size = (builder.extract_value(made, k) for k in range(3))
    fits = builder.icmp_signed(">=", size, size.type(0))
    require(context, builder, fits, ValueError, "an array cannot have such lengths")
    has_owner = cgutils.is_not_null(builder, owner)
    require(context, builder, has_owner, MemoryError, "there is not enough memory for an array")
    pointer = builder.bitcast(data, context.get_data_type(array_type.dtype).as_pointer())
    array = as_array(context, builder, Held(array_type, pointer, lengths, []), owner)
    return New(array, pointer, size)


def _wants_large_pages(builder: Any, data: Any, size: Any, least: int) -> None:
    """Let the system back a long array by large pages, as NumPy does: fewer page faults."""

    def write(inside: Any, given: Any) -> None:
        start, length, limit = given
        with inside.if_then(inside.icmp_unsigned(">=", length, limit), likely=False):
            address = inside.ptrtoint(start, _WORD)
            # from the start of its first page: mremap needs memory with uniform advice
            first = inside.and_(address, _WORD(-_PAGE))
            rest = inside.sub(inside.add(address, length), first)
            arguments = [_BYTE, _WORD, ir.IntType(32)]
            known = cgutils.get_or_insert_function(
                inside.module, ir.FunctionType(ir.IntType(32), arguments), "madvise"
            )
            inside.call(known, [inside.inttoptr(first, _BYTE), rest, arguments[2](_HUGE_PAGES)])
        inside.ret_void()

    given = [data, size, _WORD(least)]
    call_own(builder, "fwdad_wants_large_pages", ir.VoidType(), given, write)


def lengths_of(context: Any, builder: Any, shape_type: Any, shape: Any) -> list[Any]:
    """The LLVM values of a tuple of lengths."""
    shape_struct = [item_of(builder, shape, k) for k in range(len(shape_type))]
    return casts(context, builder, shape_type, shape_struct, types.intp)


def _of_shape(fill: Callable[..., None], shape: Any, *given: Any) -> Any:
    """The signature and code of a function that makes an array; None for other arguments.

    ``fill(context, builder, new, sig, args)`` writes the content. Behind the shape comes what the
    array is filled with, if anything, and its dtype.
    """
    *item, dtype = given
    if not isinstance(shape, types.BaseTuple) or not isinstance(dtype, types.NumberClass):
        return None
    if not all(isinstance(n, types.Integer) for n in shape):
        return None
    if not all(isinstance(t, (types.Number, types.Boolean)) for t in item):
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lengths = lengths_of(context, builder, sig.args[0], args[0])
        new = allocate(context, builder, sig.return_type, lengths)
        fill(context, builder, new, sig, args)
        return new.value

    return types.Array(dtype.dtype, len(shape), "C")(shape, *given), code


@intrinsic
def empty(_typing: Any, shape: Any, dtype: Any) -> Any:
    """``np.empty(shape, dtype)``."""
    return _of_shape(lambda *_: None, shape, dtype)


@intrinsic
def zeros(_typing: Any, shape: Any, dtype: Any) -> Any:
    """``np.zeros(shape, dtype)``."""

    def fill(_context: Any, builder: Any, new: New, _sig: Any, _args: Any) -> None:
        cgutils.memset(builder, new.data, new.size, 0)

    return _of_shape(fill, shape, dtype)


@intrinsic
def ones(_typing: Any, shape: Any, dtype: Any) -> Any:
    """``np.ones(shape, dtype)``."""

    def fill(context: Any, builder: Any, new: New, sig: Any, _args: Any) -> None:
        item = context.get_constant_generic(builder, sig.return_type.dtype, 1)
        _fill(context, builder, new, sig.return_type, item)

    return _of_shape(fill, shape, dtype)


@intrinsic
def full(_typing: Any, shape: Any, value: Any, dtype: Any) -> Any:
    """``np.full(shape, value, dtype)``."""

    def fill(context: Any, builder: Any, new: New, sig: Any, args: Any) -> None:
        item = context.cast(builder, args[1], sig.args[1], sig.return_type.dtype)
        _fill(context, builder, new, sig.return_type, item)

    return _of_shape(fill, shape, value, dtype)


def _fill(context: Any, builder: Any, new: New, array_type: Any, item: Any) -> None:
    itemsize = context.get_constant(types.intp, get_itemsize(context, array_type))
    with cgutils.for_range(builder, builder.sdiv(new.size, itemsize)) as loop:
        place = cgutils.gep(builder, new.data, loop.index)
        store_item(context, builder, array_type, item, place)


def copied(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    """``array.copy()``: C-contiguous, whatever the layout of the array."""
    old = held(context, builder, array_type, array)
    t = array_type.copy(layout="C", readonly=False)
    new = allocate(context, builder, t, old.lengths)
    if array_type.layout == "C":
        cgutils.raw_memcpy(builder, new.data, old.data, new.size, 1)
        return new.value
    arguments = [new.data, old.data, *old.lengths, *all_steps(context, builder, old)]

    def write(inside: Any, parts: Any) -> None:
        (to, source), rank = parts[:2], t.ndim
        lengths, steps = list(parts[2 : 2 + rank]), list(parts[2 + rank :])
        with cgutils.loop_nest(inside, lengths, _WORD) as index:
            places = [
                cgutils.get_item_pointer2(context, inside, data, lengths, steps, order, index)
                for data, order in ((source, "A"), (to, "C"))
            ]
            inside.store(inside.load(places[0]), places[1])
        inside.ret_void()

    call_own(builder, f"fwdad_copy_{t.ndim}_{t.dtype}", ir.VoidType(), arguments, write)
    return new.value


@intrinsic
def growing(_typing: Any, length: Any, dtype: Any) -> Any:
    """A new one-dimensional array, whose memory :func:`grown` extends in place."""
    if not isinstance(length, types.Integer) or not isinstance(dtype, types.NumberClass):
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        n = context.cast(builder, args[0], sig.args[0], types.intp)

        def write(inside: Any, given: Any) -> None:
            size = _bytes(inside, *given)
            owner = context.nrt.meminfo_new_varsize_unchecked(inside, size)
            _return_new(context, inside, owner, size, _LONG_STACK)

        itemsize = context.get_constant(types.intp, get_itemsize(context, sig.return_type))
        result = call_own(builder, "fwdad_growing", _MADE, [itemsize, n], write)
        return _new(context, builder, sig.return_type, [n], result).value

    return types.Array(dtype.dtype, 1, "C")(length, dtype), code


@intrinsic
def grown(_typing: Any, array: Any, needed: Any) -> Any:
    """A longer array with the same beginning: twice as long, or as long as needed.

    It takes over the memory of an array that :func:`growing` made: the old array, and views of it,
    must not be used any more. Of an array that Python passed in, the beginning is copied.
    """
    if not isinstance(array, types.Array) or array.ndim != 1 or array.layout != "C":
        return None
    if not isinstance(needed, types.Integer):
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        model = context.data_model_manager[sig.args[0]]
        owner, parent, data = (
            model.get(builder, args[0], k) for k in ("meminfo", "parent", "data")
        )
        (length,) = held(context, builder, sig.args[0], args[0]).lengths
        wanted = context.cast(builder, args[1], sig.args[1], types.intp)
        size = get_itemsize(context, sig.return_type)
        itemsize = context.get_constant(types.intp, size)
        pointers = [builder.bitcast(p, _BYTE) for p in (owner, parent, data)]
        arguments = [itemsize, length, wanted, *pointers]
        result = call_own(builder, "fwdad_grown", _MADE, arguments, partial(_write_grown, context))
        longer = builder.sdiv(builder.extract_value(result, 2), itemsize)
        return _new(context, builder, sig.return_type, [longer], result).value

    return types.Array(array.dtype, 1, "C")(array, needed), code


def _write_grown(context: Any, builder: Any, given: Any) -> None:
    """Write the function that extends an array, from its parts and the length needed."""
    itemsize, length, wanted, owner, parent, data = given
    if CHECK_BOUNDS:
        _write_moved(context, builder, given)
        return
    double = builder.add(length, length)
    longer = builder.select(builder.icmp_signed("<", double, wanted), wanted, double)
    size, nrt = _bytes(builder, itemsize, longer), context.nrt
    with builder.if_then(cgutils.is_null(builder, parent)):  # not passed in by Python
        moved = nrt.meminfo_varsize_realloc_unchecked(builder, owner, size)
        with builder.if_then(cgutils.is_null(builder, moved), likely=False):
            builder.ret(_struct(builder, _BYTE(None), _BYTE(None), size))
        nrt.incref(builder, types.MemInfoPointer(types.voidptr), owner)
        if sys.platform == "linux":
            _wants_large_pages(builder, moved, size, _LONG_STACK)
        builder.ret(_struct(builder, owner, moved, size))
    meminfo = nrt.meminfo_new_varsize_unchecked(builder, size)
    with builder.if_then(cgutils.is_not_null(builder, meminfo)):
        into = nrt.meminfo_data(builder, meminfo)
        cgutils.raw_memcpy(builder, into, data, length, itemsize)
    _return_new(context, builder, meminfo, size, _LONG_STACK)


def _write_moved(context: Any, builder: Any, given: Any) -> None:
    """The same where bounds are checked: always moves, and short arrays get no spare room.

    The old memory is overwritten. Long arrays get a quarter more than needed, or each push would
    move everything.
    """
    itemsize, length, wanted, _, parent, data = given
    is_short = builder.icmp_signed("<", wanted, wanted.type(_SHORT))
    quarter = builder.select(is_short, wanted.type(0), builder.ashr(wanted, wanted.type(2)))
    size = _bytes(builder, itemsize, builder.add(wanted, quarter))
    owner = context.nrt.meminfo_new_varsize_unchecked(builder, size)
    with builder.if_then(cgutils.is_not_null(builder, owner)):
        into = context.nrt.meminfo_data(builder, owner)
        cgutils.raw_memcpy(builder, into, data, length, itemsize)
        with builder.if_then(cgutils.is_null(builder, parent)):
            cgutils.memset(builder, data, builder.mul(length, itemsize), 0xFF)
    _return_new(context, builder, owner, size, _LONG_STACK)


@intrinsic
def part_of_stack(_typing: Any, stack: Any, start: Any, lengths: Any, kind: Any) -> Any:
    """A C-contiguous array in a stack's memory, apart from those of another ``kind``."""
    if not isinstance(stack, types.Array) or stack.ndim != 1 or stack.layout != "C":
        return None
    if not isinstance(start, types.Integer) or not isinstance(lengths, types.BaseTuple):
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        memory = held(context, builder, sig.args[0], args[0])
        (first,) = casts(context, builder, sig.args[1:2], args[1:2], types.intp)
        items = cgutils.unpack_tuple(builder, args[2], len(lengths))
        given = casts(context, builder, sig.args[2].types, items, types.intp)
        part = Held(sig.return_type, builder.gep(memory.data, [first]), given, [])
        return as_view(context, builder, part, sig.args[0], args[0])

    return types.Array(stack.dtype, len(lengths), "C")(stack, start, lengths, kind), code


@intrinsic
def part_inside(_typing: Any, stack: Any, start: Any, size: Any) -> Any:
    """Raise unless a stack contains a part: slices would be truncated, or count from the end."""
    if not isinstance(stack, types.Array) or stack.ndim != 1:
        return None
    if not all(isinstance(t, types.Integer) for t in (start, size)):
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        (length,) = held(context, builder, sig.args[0], args[0]).lengths
        first, count = casts(context, builder, sig.args[1:], args[1:], types.intp)
        require_inside(context, builder, first, length, count)
        return context.get_dummy_value()

    return types.void(stack, start, size), code


def _bytes(builder: Any, itemsize: Any, length: Any) -> Any:
    """The size of so many elements; returns from the function if it is not representable."""
    product = builder.smul_with_overflow(itemsize, length)
    size = builder.extract_value(product, 0)
    fits = builder.icmp_signed(">=", size, size.type(0))
    fits = builder.and_(fits, builder.not_(builder.extract_value(product, 1)))
    with builder.if_then(builder.not_(fits), likely=False):
        builder.ret(_struct(builder, _BYTE(None), _BYTE(None), _WORD(-1)))
    return size


@intrinsic
def address_of(_typing: Any, array: Any, index: Any) -> Any:
    """The address of an element."""
    if not isinstance(array, types.Array) or not isinstance(index, types.BaseTuple):
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array_struct = context.make_array(sig.args[0])(context, builder, args[0])
        index = cgutils.unpack_tuple(builder, args[1])
        place = casts(context, builder, sig.args[1], index, types.intp)
        element = cgutils.get_item_pointer(
            context, builder, sig.args[0], array_struct, place, wraparound=True, boundscheck=False
        )
        return builder.ptrtoint(element, context.get_value_type(types.intp))

    return types.intp(array, index), code


REPLACED: dict[Any, Any] = {
    np.empty: empty, np.zeros: zeros, np.ones: ones, np.full: full,
}  # fmt: skip
"""NumPy's functions as generated code calls them, and what takes their place."""
