"""NumPy's functions of complex numbers for generated code: the inner loops of its ufuncs.

Formulas of real functions overflow, cancel or leave the wrong side of a cut where a complex result
is well behaved [1]_. NumPy's loops, and the C library's functions behind them, follow Annex G of
the C standard [2]_, and compiled code gives the same bits (roots to a rounding). A loop runs over
one element; the table of loops is at a place of ``PyUFuncObject`` that NumPy's C interface fixes.

References
----------
.. [1] W. Kahan, "Branch cuts for complex elementary functions, or much ado about nothing's sign
   bit", in "The State of the Art in Numerical Analysis", Clarendon Press, 1987.
.. [2] ISO/IEC 9899:2011, "Programming languages - C", Annex G.6.

Importing this module needs Numba.
"""

from __future__ import annotations

import cmath
import ctypes
import functools
from typing import Any

import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba.core import cgutils
from numba.core import types as _types
from numba.core.typing import signature
from numba.extending import intrinsic

from fwdad.codegen.numba_support import UFUNC_HELPERS, UFUNC_PREFIX

types: Any = _types
_LETTERS = {types.complex64: "F", types.complex128: "D"}
_SIMPLE = {
    f"{UFUNC_PREFIX}exp": (cmath.exp, 80.0, -1.0),
    f"{UFUNC_PREFIX}sqrt": (cmath.sqrt, 1e30, 1e-30),
}
"""What Numba computes faster, and equally well, of numbers whose parts are below a bound, and whose
imaginary part is above another: far from overflow, and from the cut."""


class _UFunc(ctypes.Structure):
    """The public start of ``PyUFuncObject``."""

    _fields_ = (
        ("head", ctypes.c_byte * object.__basicsize__),
        ("counts", ctypes.c_int * 4),  # nin, nout, nargs, identity
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
    )


def _ufunc(name: str) -> Any:
    return getattr(np, name.removeprefix(UFUNC_PREFIX))


def _loop(name: str, letter: str) -> tuple[int, int | None]:
    """The addresses of a loop and of what it is given beside its arrays."""
    ufunc = _ufunc(name)
    table = _UFunc.from_address(id(ufunc))
    k = ufunc.types.index(f"{letter * ufunc.nin}->{letter}")
    return table.functions[k], table.data[k]


def provide(names: set[str]) -> None:
    """Register the loops of ufuncs among ``names``: before code that calls them is linked."""
    for name in names & UFUNC_HELPERS:
        for letter in _LETTERS.values():
            loop, data = _loop(name, letter)
            llvm.add_symbol(f"fwdad_{name}_{letter}", loop)
            if data:
                llvm.add_symbol(f"fwdad_{name}_{letter}_data", data)


def _on_one_element(module: Any, ufunc: str, letter: str, number: Any, arity: int) -> Any:
    """The LLVM function that runs a loop on one element.

    It depends on its arguments only, so that equal calls are merged.
    """
    name = f"fwdad_{ufunc}_{letter}"
    kind = ir.FunctionType(number, [number] * arity)
    function = cgutils.get_or_insert_function(module, kind, f"{name}_of_one")
    if not function.is_declaration:
        return function
    function.linkage = "linkonce_odr"
    for known in ("nounwind", "readnone", "noinline"):
        function.attributes.add(known)
    builder = ir.IRBuilder(function.append_basic_block())
    byte, word = ir.IntType(8).as_pointer(), ir.IntType(64)
    places = builder.alloca(ir.ArrayType(byte, arity + 1))
    steps = builder.alloca(ir.ArrayType(word, arity + 1))
    count = builder.alloca(word)
    builder.store(word(1), count)
    # a loop reads both parts at once: it would wait for two stores, and not for one of a vector
    pair = ir.VectorType(number.elements[0], 2)
    elements = [builder.alloca(pair) for _ in range(arity + 1)]
    for k, element in enumerate(elements):
        at = [ir.IntType(32)(0), ir.IntType(32)(k)]
        builder.store(builder.bitcast(element, byte), builder.gep(places, at))
        size = builder.ptrtoint(builder.gep(number.as_pointer()(None), at[:1]), word)
        builder.store(size, builder.gep(steps, at))
    for x, element in zip(function.args, elements, strict=False):
        vector = pair(ir.Undefined)
        for k in range(2):
            vector = builder.insert_element(vector, builder.extract_value(x, k), ir.IntType(32)(k))
        builder.store(vector, element)
    words = word.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), words, words, byte])
    loop = cgutils.get_or_insert_function(module, kind, name)
    data = byte(None)
    if _loop(ufunc, letter)[1]:
        data = cgutils.add_global_variable(module, ir.IntType(8), f"{name}_data")
    given = [builder.bitcast(places, byte.as_pointer()), count, builder.bitcast(steps, words), data]
    builder.call(loop, given)
    vector, made = builder.load(elements[-1]), number(ir.Undefined)
    for k in range(2):
        made = builder.insert_value(made, builder.extract_element(vector, ir.IntType(32)(k)), k)
    builder.ret(made)
    return function


def _is_simple(builder: Any, z: Any, most: float, least: float) -> Any:
    """Whether the parts of a number are below ``most``, and the imaginary one above ``least``."""
    parts = [builder.extract_value(z, k) for k in range(2)]
    size = builder.module.declare_intrinsic("llvm.fabs", [parts[0].type])
    sizes = [builder.call(size, [x]) for x in parts]
    tests = [builder.fcmp_ordered("<", x, x.type(most)) for x in sizes]
    tests.append(builder.fcmp_ordered(">", sizes[1], sizes[1].type(least)))
    return functools.reduce(builder.and_, tests)


def __getattr__(name: str) -> Any:
    """A function that compiled code can call, created on first use."""
    if name not in UFUNC_HELPERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    arity = _ufunc(name).nin

    def typed(_typing, *given):
        held = given[0] if len(given) == 1 and isinstance(given[0], types.BaseTuple) else given
        if len(held) != arity or held[0] not in _LETTERS or len(set(held)) != 1:
            return None

        def code(context, builder, sig, args):
            number = context.get_value_type(sig.return_type)
            function = _on_one_element(builder.module, name, _LETTERS[held[0]], number, arity)
            given = cgutils.unpack_tuple(builder, args[0], arity)
            if name not in _SIMPLE:
                return builder.call(function, given)
            formula, *bounds = _SIMPLE[name]
            made = cgutils.alloca_once(builder, number)
            with builder.if_else(_is_simple(builder, given[0], *bounds)) as (simple, other):
                with simple:
                    quick = context.get_function(formula, signature(held[0], held[0]))
                    builder.store(quick(builder, given), made)
                with other:
                    builder.store(builder.call(function, given), made)
            return builder.load(made)

        return held[0](types.StarArgTuple.from_types(held)), code

    typed.__name__ = typed.__qualname__ = name
    compiled = intrinsic(typed)
    globals()[name] = compiled
    return compiled
