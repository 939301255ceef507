"""Calls of Python functions from compiled code, as LLVM code.

Numba's ``objmode`` would do the same; it compiles a wrapper for each call, which takes longer than
everything around it. Arrays are passed on the same memory. An exception leaves compiled code as it
is. Importing this module needs Numba.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba.core import cgutils
from numba.core import types as _types
from numba.extending import intrinsic
from numba.np import numpy_support

from fwdad.codegen.boxing import boxed_array
from fwdad.ir.types import ArrayType, Type

types: Any = _types
_BYTE = ir.IntType(8)


def provide(symbol: str, function: Callable[..., Any], dtypes: Sequence[np.dtype[Any]]) -> None:
    """Let compiled code find a Python function, and the dtypes of the arrays that it is passed.

    The caller keeps the function alive for as long as code that calls it.
    """
    llvm.add_symbol(symbol, id(function))
    for dtype in dtypes:
        own = _DTYPES.setdefault(dtype.str, dtype)
        llvm.add_symbol(_name_of(own), id(own))


_DTYPES: dict[str, np.dtype[Any]] = {}


def _name_of(dtype: np.dtype[Any]) -> str:
    return f"fwdad_dtype_{dtype.str}"


def numba_type(t: Type, layout: str) -> Any:
    """Numba's type of a type of the tape; layout "A" leaves the layout open."""
    item = numba.from_dtype(t.dtype)
    return types.Array(item, t.ndim, layout) if isinstance(t, ArrayType) else item


def python_call(symbol: str, returns: Sequence[Type]) -> Any:
    """What calls a function that was provided: of a tuple of arguments, it returns a tuple.

    ``returns`` are the types of what the function returns, which are not checked again.
    """
    results = [numba_type(t, "A") for t in returns]
    returned = types.BaseTuple.from_types(results)

    @intrinsic  # type: ignore[untyped-decorator]
    def called(_typing: Any, args: Any) -> Any:
        if not isinstance(args, types.BaseTuple):
            return None

        def code(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            api = context.get_python_api(builder)
            gil = api.gil_ensure()
            given = [
                _boxed(builder, api, t, v)
                for t, v in zip(args, cgutils.unpack_tuple(builder, values[0]), strict=True)
            ]
            found = api.call_function_objargs(_object(builder, symbol), given)
            for x in given:
                api.decref(x)
            with builder.if_then(cgutils.is_null(builder, found), likely=False):
                api.gil_release(gil)
                context.call_conv.return_exc(builder)  # which Python holds already
            parts = [
                api.to_native_value(t, api.tuple_getitem(found, k)).value
                for k, t in enumerate(results)
            ]
            api.decref(found)
            api.gil_release(gil)
            return context.make_tuple(builder, returned, parts)

        return returned(args), code

    called.symbol = symbol
    return called


def _object(builder: Any, symbol: str) -> Any:
    """An object of Python's, by its symbol."""
    found = builder.module.globals.get(symbol)
    return ir.GlobalVariable(builder.module, _BYTE, symbol) if found is None else found


def _boxed(builder: Any, api: Any, t: Any, value: Any) -> Any:
    """A new reference to the Python object for a value."""
    if isinstance(t, types.Array):
        dtype = _object(builder, _name_of(numpy_support.as_dtype(t.dtype)))
        return boxed_array(builder, t, value, dtype)  # which has a reference of its own
    return api.from_native_value(t, value)
