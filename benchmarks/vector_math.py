"""The C library's vector functions on SIMD lanes, for hand-written code (glibc on x86-64).

Importing this module needs Numba, and raises OSError where there is no ``libmvec``.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core.errors import TypingError
from numba.extending import intrinsic

from fwdad.codegen.llvm.simd import LanesType

_LIBRARY = "libmvec.so.1"
_LETTERS = {2: "b", 4: "d", 8: "e"}  # SSE, AVX2, AVX-512


def _load() -> int:
    try:
        llvm.load_library_permanently(_LIBRARY)
    except RuntimeError as problem:
        raise OSError(f"no {_LIBRARY}") from problem
    features = llvm.get_host_cpu_features()
    return 8 if features.get("avx512f") else 4 if features.get("avx2") else 2


WIDTH = _load()
"""How many float64 the processor's registers hold."""


def _vector_function(name: str) -> Any:
    symbol = f"_ZGV{_LETTERS[WIDTH]}N{WIDTH}v_{name}"
    if llvm.address_of_symbol(symbol) is None:
        raise OSError(f"no {symbol} in {_LIBRARY}")

    @intrinsic
    def call(_typing: Any, x: Any) -> Any:
        if x != LanesType(WIDTH):
            raise TypingError(f"{symbol} takes {WIDTH} lanes, not {x}")

        def code(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            vector = ir.VectorType(ir.DoubleType(), WIDTH)
            found = builder.module.globals.get(symbol)
            if found is None:
                found = ir.Function(builder.module, ir.FunctionType(vector, [vector]), symbol)
            return builder.call(found, args)

        return x(x), code

    return call


exp, log1p, tanh, sin, cos = map(_vector_function, ("exp", "log1p", "tanh", "sin", "cos"))


def _instruction(name: str) -> Any:
    @intrinsic
    def call(_typing: Any, a: Any, b: Any) -> Any:
        def code(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            return getattr(builder, name)(*args)

        return a(a, b), code

    return call


# tangents are never multiplied, so the lanes have no such operators
multiply, divide = map(_instruction, ("fmul", "fdiv"))
