"""New arrays in LLVM code, for the programs that fwdad writes.

Numba compiles ``np.zeros`` from a chain of five functions, each with a library and its own round of
optimisation: more work than a whole small program. Importing this module needs Numba.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core import types as _types
from numba.extending import intrinsic
from numba.np.arrayobj import get_itemsize, populate_array, store_item

from fwdad.backends.checks import require

types: Any = _types
_ALIGNMENT = 32  # bytes, as Numba's own arrays
_LONG = 2**22  # bytes of an array from which on it is worth while to ask for large pages
_LONG_STACK = 2**24  # of a stack, whose last page is touched for the sake of one element
_PAGE = 4096
_HUGE_PAGES = 14  # Linux's MADV_HUGEPAGE


def allocate(context: Any, builder: Any, array_type: Any, lengths: list[Any]) -> tuple[Any, Any]:
    """A new array in C order, and the bytes of its elements."""
    size = itemsize = context.get_constant(types.intp, get_itemsize(context, array_type))
    fits = ir.Constant(ir.IntType(1), 1)
    strides: list[Any] = []
    for n in reversed(lengths):
        strides.insert(0, size)
        product = builder.smul_with_overflow(size, n)
        size = builder.extract_value(product, 0)
        exact = builder.not_(builder.extract_value(product, 1))
        fits = builder.and_(fits, builder.and_(exact, builder.icmp_signed(">=", n, n.type(0))))
    require(context, builder, fits, ValueError, "an array cannot have such lengths")
    align = context.get_constant(types.uint32, _ALIGNMENT)
    meminfo = context.nrt.meminfo_alloc_aligned_unchecked(builder, size, align)
    held = cgutils.is_not_null(builder, meminfo)
    require(context, builder, held, MemoryError, "there is not enough memory for an array")
    data = context.nrt.meminfo_data(builder, meminfo)
    if sys.platform == "linux":
        _wants_large_pages(builder, data, size, _LONG)
    array = context.make_array(array_type)(context, builder)
    length_type = context.get_value_type(types.intp)
    populate_array(
        array,
        data=builder.bitcast(data, context.get_data_type(array_type.dtype).as_pointer()),
        shape=cgutils.pack_array(builder, lengths, ty=length_type),
        strides=cgutils.pack_array(builder, strides, ty=length_type),
        itemsize=itemsize,
        meminfo=meminfo,
    )
    return array, size


def _wants_large_pages(builder: Any, data: Any, size: Any, least: int) -> None:
    """Let the system back a long array by large pages, as NumPy does: fewer faults."""
    module, word, byte = builder.module, ir.IntType(64), ir.IntType(8).as_pointer()
    name = "fwdad_wants_large_pages"
    function = module.globals.get(name)
    if function is None:
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [byte, word, word]), name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        start, length, limit = function.args
        inside = ir.IRBuilder(function.append_basic_block())
        with inside.if_then(inside.icmp_unsigned(">=", length, limit), likely=False):
            address = inside.ptrtoint(start, word)
            # from the page on that it begins in: mremap takes memory only that was told one thing
            first = inside.and_(address, word(-_PAGE))
            rest = inside.sub(inside.add(address, length), first)
            arguments = [byte, word, ir.IntType(32)]
            known = cgutils.get_or_insert_function(
                module, ir.FunctionType(ir.IntType(32), arguments), "madvise"
            )
            inside.call(known, [inside.inttoptr(first, byte), rest, arguments[2](_HUGE_PAGES)])
        inside.ret_void()
    builder.call(function, [data, size, word(least)])


def _lengths(context: Any, builder: Any, shape_type: Any, shape: Any) -> list[Any]:
    held = cgutils.unpack_tuple(builder, shape, len(shape_type))
    return [context.cast(builder, n, t, types.intp) for t, n in zip(shape_type, held, strict=True)]


def _array_type(shape: Any, dtype: Any) -> Any:
    """The type of a new array, or None for arguments that generated code does not have."""
    if not isinstance(shape, types.BaseTuple) or not isinstance(dtype, types.NumberClass):
        return None
    if not all(isinstance(n, types.Integer) for n in shape):
        return None
    return types.Array(dtype.dtype, len(shape), "C")


@intrinsic
def empty(_typing: Any, shape: Any, dtype: Any) -> Any:
    """``np.empty(shape, dtype)``."""
    made = _array_type(shape, dtype)
    if made is None:
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lengths = _lengths(context, builder, sig.args[0], args[0])
        return allocate(context, builder, sig.return_type, lengths)[0]._getvalue()

    return made(shape, dtype), code


@intrinsic
def zeros(_typing: Any, shape: Any, dtype: Any) -> Any:
    """``np.zeros(shape, dtype)``."""
    made = _array_type(shape, dtype)
    if made is None:
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lengths = _lengths(context, builder, sig.args[0], args[0])
        array, size = allocate(context, builder, sig.return_type, lengths)
        cgutils.memset(builder, array.data, size, 0)
        return array._getvalue()

    return made(shape, dtype), code


def _fill(context: Any, builder: Any, array_type: Any, lengths: list[Any], item: Any) -> Any:
    array, size = allocate(context, builder, array_type, lengths)
    with cgutils.for_range(builder, builder.sdiv(size, array.itemsize)) as loop:
        place = cgutils.gep(builder, array.data, loop.index)
        store_item(context, builder, array_type, item, place)
    return array._getvalue()


@intrinsic
def ones(_typing: Any, shape: Any, dtype: Any) -> Any:
    """``np.ones(shape, dtype)``."""
    made = _array_type(shape, dtype)
    if made is None:
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lengths = _lengths(context, builder, sig.args[0], args[0])
        item = context.get_constant_generic(builder, sig.return_type.dtype, 1)
        return _fill(context, builder, sig.return_type, lengths, item)

    return made(shape, dtype), code


@intrinsic
def full(_typing: Any, shape: Any, value: Any, dtype: Any) -> Any:
    """``np.full(shape, value, dtype)``."""
    made = _array_type(shape, dtype)
    if made is None or not isinstance(value, (types.Number, types.Boolean)):
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lengths = _lengths(context, builder, sig.args[0], args[0])
        item = context.cast(builder, args[1], sig.args[1], sig.return_type.dtype)
        return _fill(context, builder, sig.return_type, lengths, item)

    return made(shape, value, dtype), code


@intrinsic
def growing(_typing: Any, length: Any, dtype: Any) -> Any:
    """A new array of one dimension, whose memory :func:`grown` makes longer where it lies."""
    if not isinstance(length, types.Integer) or not isinstance(dtype, types.NumberClass):
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        wanted = context.cast(builder, args[0], sig.args[0], types.intp)
        return _growing(context, builder, sig.return_type, wanted)._getvalue()

    return types.Array(dtype.dtype, 1, "C")(length, dtype), code


@intrinsic
def grown(_typing: Any, array: Any, needed: Any) -> Any:
    """A longer array with the same beginning: twice as long, or as long as is needed.

    The memory of an array that :func:`growing` made is handed on: nobody may look into the old
    array, or a window on it, any more. The C library moves the pages of what is long, so there are
    never two of it. Of an array that Python has handed in, the beginning is copied.
    """
    if not isinstance(array, types.Array) or array.ndim != 1 or array.layout != "C":
        return None
    if not isinstance(needed, types.Integer):
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        old = context.make_array(sig.args[0])(context, builder, args[0])
        (held,) = cgutils.unpack_tuple(builder, old.shape, 1)
        wanted = context.cast(builder, args[1], sig.args[1], types.intp)
        double = builder.add(held, held)
        enough = builder.icmp_signed("<", double, wanted)
        length = builder.select(enough, wanted, double)
        made = cgutils.alloca_once(builder, context.get_value_type(sig.return_type))
        with builder.if_else(cgutils.is_null(builder, old.parent)) as (own, given):
            with own:
                new = _growing(context, builder, sig.return_type, length, old)
                builder.store(new._getvalue(), made)
            with given:
                new = _growing(context, builder, sig.return_type, length)
                cgutils.raw_memcpy(builder, new.data, old.data, held, old.itemsize)
                builder.store(new._getvalue(), made)
        return builder.load(made)

    return types.Array(array.dtype, 1, "C")(array, needed), code


def _growing(context: Any, builder: Any, array_type: Any, length: Any, old: Any = None) -> Any:
    """An array whose memory can become longer; with an old one, of its memory."""
    itemsize = context.get_constant(types.intp, get_itemsize(context, array_type))
    product = builder.smul_with_overflow(itemsize, length)
    fits = builder.not_(builder.extract_value(product, 1))
    require(context, builder, fits, ValueError, "an array cannot have such a length")
    size = builder.extract_value(product, 0)
    nrt = context.nrt
    if old is None:
        meminfo = nrt.meminfo_new_varsize(builder, size)
        data = nrt.meminfo_data(builder, meminfo)
    else:
        meminfo = old.meminfo
        data = nrt.meminfo_varsize_realloc(builder, meminfo, size)
        nrt.incref(builder, types.MemInfoPointer(types.voidptr), meminfo)
    if sys.platform == "linux":
        _wants_large_pages(builder, data, size, _LONG_STACK)
    array = context.make_array(array_type)(context, builder)
    populate_array(
        array,
        data=builder.bitcast(data, context.get_data_type(array_type.dtype).as_pointer()),
        shape=cgutils.pack_array(builder, [length]),
        strides=cgutils.pack_array(builder, [itemsize]),
        itemsize=itemsize,
        meminfo=meminfo,
    )
    return array


@intrinsic
def address_of(_typing: Any, array: Any, index: Any) -> Any:
    """Where an element lies."""
    if not isinstance(array, types.Array) or not isinstance(index, types.BaseTuple):
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        held = context.make_array(sig.args[0])(context, builder, args[0])
        place = [
            context.cast(builder, i, t, types.intp)
            for i, t in zip(cgutils.unpack_tuple(builder, args[1]), sig.args[1], strict=True)
        ]
        element = cgutils.get_item_pointer(
            context, builder, sig.args[0], held, place, wraparound=True, boundscheck=False
        )
        return builder.ptrtoint(element, context.get_value_type(types.intp))

    return types.intp(array, index), code


@intrinsic
def broadcast_to(_typing: Any, array: Any, shape: Any) -> Any:
    """``np.broadcast_to(array, shape)``: a window that nobody may write into."""
    if not isinstance(array, types.Array) or not isinstance(shape, types.BaseTuple):
        return None
    if len(shape) < array.ndim or not all(isinstance(n, types.Integer) for n in shape):
        return None
    made = types.Array(array.dtype, len(shape), "A", readonly=True, aligned=array.aligned)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        old_type, new_type = sig.args[0], sig.return_type
        old = context.make_array(old_type)(context, builder, args[0])
        lengths = _lengths(context, builder, sig.args[1], args[1])
        zero, one = lengths[0].type(0) if lengths else None, lengths[0].type(1) if lengths else None
        lead = len(lengths) - old_type.ndim
        strides = [zero] * lead
        agree = ir.Constant(ir.IntType(1), 1)
        for n in lengths[:lead]:
            agree = builder.and_(agree, builder.icmp_signed(">=", n, zero))
        held = cgutils.unpack_tuple(builder, old.shape, old_type.ndim)
        steps = cgutils.unpack_tuple(builder, old.strides, old_type.ndim)
        for n, m, step in zip(lengths[lead:], held, steps, strict=True):
            same, single = builder.icmp_signed("==", m, n), builder.icmp_signed("==", m, one)
            wanted = builder.and_(single, builder.icmp_signed(">=", n, zero))
            agree = builder.and_(agree, builder.or_(same, wanted))
            strides.append(builder.select(same, step, zero))
        message = "operands could not be broadcast together with remapped shapes"
        require(context, builder, agree, ValueError, message)
        new = context.make_array(new_type)(context, builder)
        length_type = context.get_value_type(types.intp)
        populate_array(
            new,
            data=old.data,
            shape=cgutils.pack_array(builder, lengths, ty=length_type),
            strides=cgutils.pack_array(builder, strides, ty=length_type),
            itemsize=old.itemsize,
            meminfo=old.meminfo,
            parent=old.parent,
        )
        context.nrt.incref(builder, new_type, new._getvalue())
        return new._getvalue()

    return made(array, shape), code


REPLACED: dict[Any, Any] = {
    np.empty: empty, np.zeros: zeros, np.ones: ones, np.full: full, np.broadcast_to: broadcast_to,
}  # fmt: skip
"""NumPy's functions as generated code calls them, and what takes their place."""
