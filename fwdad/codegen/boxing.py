"""Arrays passed from Python to compiled code, and those returned to it.

Numba's boxing looks up the array class and creates an object that counts references to the memory:
more work than a whole small program. Here a small new array becomes a NumPy array that owns its
memory, with a copy of the elements; the others are boxed as Numba does it, without the look-up. One
function unpacks all arguments.

Importing this module needs Numba.
"""

from __future__ import annotations

import copy
import ctypes
from typing import Any

import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba.core import cgutils
from numba.core import types as _types
from numba.core.datamodel.models import ArrayModel
from numba.core.datamodel.registry import register_default
from numba.core.runtime.nrtdynmod import _meminfo_struct_type as _memory
from numba.extending import NativeValue, box, unbox
from numba.np import numpy_support

from fwdad.codegen.llvm.outlining import own_function

types: Any = _types

_MOST = 4096  # bytes that are copied
_MAKE = "fwdad_new_array"  # PyArray_NewFromDescr
_CLASS = "fwdad_array_class"
_PLACE = 94  # index of that function in NumPy's API table, whose order is stable
_COUNT, _SIZE = 0, 4  # fields of Numba's memory info: references; bytes, 0 if not its own

_word = ir.IntType(types.intp.bitwidth)
_number = ir.IntType(32)
_byte = ir.IntType(8)
_bit = ir.IntType(1)
_pointer = _byte.as_pointer()
_lengths = _word.as_pointer()
_HEAD = [_pointer, _pointer, _word, _word]  # of Numba's arrays: owner, parent, length, itemsize


class ReturnedArray(types.Array):
    """An array that is returned to Python."""


register_default(ReturnedArray)(ArrayModel)


class ArgumentArray(types.Array):
    """An array that Python passes."""


@register_default(ArgumentArray)
class _ArgumentModel(ArrayModel):
    def traverse(self, _builder: Any) -> list[Any]:
        """The members that hold memory: none that Numba would have to free."""
        return []


def _provide() -> None:
    """Register NumPy's constructor and array class as symbols that compiled code can link."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = get(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
    functions = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))
    llvm.add_symbol(_MAKE, functions[_PLACE])
    llvm.add_symbol(_CLASS, id(np.ndarray))


_provide()


def with_result_type(fndesc: Any) -> Any:
    """A function's description in which arguments and results are boxed in this way."""
    boxed_desc = copy.copy(fndesc)
    boxed_desc.restype = _result_type(fndesc.restype)
    boxed_desc.argtypes = tuple(_as(ArgumentArray, t) for t in fndesc.argtypes)
    return boxed_desc


def _result_type(t: Any) -> Any:
    if type(t) in (types.Tuple, types.UniTuple):
        return types.BaseTuple.from_types([_result_type(each) for each in t])
    return _as(ReturnedArray, t)


def _as(cls: Any, t: Any) -> Any:
    if type(t) is not types.Array:
        return t
    return cls(t.dtype, t.ndim, t.layout, readonly=not t.mutable, aligned=t.aligned)


@unbox(ArgumentArray)
def _unbox_array(typ: Any, obj: Any, c: Any) -> Any:
    builder, context = c.builder, c.context
    place = cgutils.alloca_once(builder, context.get_data_type(typ))

    def write(inside: Any, given: Any) -> None:
        source, target, itemsize = given
        signature = ir.FunctionType(_number, [_pointer, _pointer])
        name = "NRT_adapt_ndarray_from_python"
        taken = cgutils.get_or_insert_function(inside.module, signature, name)
        failed = cgutils.is_not_null(inside, inside.call(taken, [source, target]))
        api = context.get_python_api(inside)
        with inside.if_then(failed, likely=False):
            api.err_set_string("PyExc_TypeError", "an argument is not an array")
            inside.ret(ir.Constant(_bit, 1))
        head = inside.bitcast(target, ir.LiteralStructType(_HEAD).as_pointer())
        value = inside.load(inside.gep(head, [_number(0), _number(len(_HEAD) - 1)]))
        differs = inside.icmp_unsigned("!=", value, itemsize)
        with inside.if_then(differs, likely=False):
            api.err_set_string("PyExc_TypeError", "an argument is an array of another type")
        inside.ret(differs)

    kind = ir.FunctionType(_bit, [_pointer, _pointer, _word])
    function = own_function(builder, "fwdad_unbox_array", kind, write)
    itemsize = _word(numpy_support.as_dtype(typ.dtype).itemsize)
    failed = builder.call(function, [obj, builder.bitcast(place, _pointer), itemsize])
    array = builder.load(place)

    def release() -> None:
        owner = builder.extract_value(array, 0)
        context.nrt.decref(builder, types.MemInfoPointer(types.voidptr), owner)

    return NativeValue(array, is_error=failed, cleanup=release)


@box(ReturnedArray)
def _box_array(typ: Any, val: Any, c: Any) -> Any:
    builder, context = c.builder, c.context
    array = context.make_array(typ)(context, builder, value=val)
    dtype = c.env_manager.read_const(c.env_manager.add_const(numpy_support.as_dtype(typ.dtype)))
    result = cgutils.alloca_once(builder, _pointer)
    size = builder.mul(array.nitems, array.itemsize)
    with builder.if_else(_can_be_copied(builder, typ, array, size)) as (copied, owned):
        with copied:
            builder.store(_box_copy(c, typ, array, dtype, size), result)
        with owned:
            builder.store(boxed_array(builder, typ, val, dtype), result)
    context.nrt.decref(builder, typ, val)
    return builder.load(result)


def _can_be_copied(builder: Any, typ: Any, array: Any, size: Any) -> Any:
    """Whether an array is small, owned by Numba, and the only reference to its memory."""
    copyable = cgutils.alloca_once_value(builder, ir.Constant(ir.IntType(1), 0))
    if typ.layout == "C" and typ.mutable:
        small = builder.icmp_unsigned("<=", size, _word(_MOST))
        has_owner = cgutils.is_not_null(builder, array.meminfo)
        new = builder.and_(has_owner, cgutils.is_null(builder, array.parent))
        with builder.if_then(builder.and_(new, small)):
            memory = builder.bitcast(array.meminfo, _memory.as_pointer())
            count, length = (
                builder.load(builder.gep(memory, [_number(0), _number(k)], inbounds=True))
                for k in (_COUNT, _SIZE)
            )
            alone = builder.icmp_unsigned("==", count, count.type(1))
            own = builder.icmp_unsigned("!=", length, length.type(0))
            builder.store(builder.and_(alone, own), copyable)
    return builder.load(copyable)


def _class(builder: Any) -> Any:
    class_pointer = builder.module.globals.get(_CLASS)
    return (
        ir.GlobalVariable(builder.module, _byte, _CLASS) if class_pointer is None else class_pointer
    )


def _box_copy(c: Any, typ: Any, array: Any, dtype: Any, size: Any) -> Any:
    """A new NumPy array with a copy of the elements."""
    builder = c.builder
    signature = ir.FunctionType(
        _pointer, [_pointer, _pointer, _number, _lengths, _lengths, _pointer, _number, _pointer]
    )
    make = cgutils.get_or_insert_function(builder.module, signature, _MAKE)
    lengths = builder.bitcast(cgutils.alloca_once_value(builder, array.shape), _lengths)
    c.pyapi.incref(dtype)  # the new array owns it
    null = ir.Constant(_pointer, None)
    arguments = [
        dtype,
        _number(typ.ndim),
        lengths,
        ir.Constant(_lengths, None),
        null,
        _number(0),
        null,
    ]
    made = builder.call(make, [_class(builder), *arguments])
    with builder.if_then(cgutils.is_not_null(builder, made), likely=True):
        # in NumPy's structure the address of the elements follows what every object begins with
        start = builder.bitcast(made, _pointer.as_pointer())
        place = builder.gep(start, [_word(object.__basicsize__ // (_word.width // 8))])
        target = builder.load(place)
        cgutils.raw_memcpy(builder, target, builder.bitcast(array.data, _pointer), size, 1)
    return made


def boxed_array(builder: Any, typ: Any, val: Any, dtype: Any) -> Any:
    """An array over Numba's memory, or the very array that came in as an argument."""
    signature = ir.FunctionType(_pointer, [_pointer, _pointer, _number, _number, _pointer])
    name = "NRT_adapt_ndarray_to_python_acqref"
    function = cgutils.get_or_insert_function(builder.module, signature, name)
    address = builder.bitcast(cgutils.alloca_once_value(builder, val), _pointer)
    arguments = [address, _class(builder), _number(typ.ndim), _number(int(typ.mutable)), dtype]
    return builder.call(function, arguments)
