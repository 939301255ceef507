"""Discrete Fourier transforms of vectors for generated code: the loops of NumPy's own ufuncs.

``numpy.fft`` has them in a private module; what does not compute a transform when it is tried is
not used. Importing this module needs Numba.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
from typing import Any

import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba import njit
from numba.core import cgutils
from numba.core import types as _types
from numba.extending import intrinsic

from fwdad.codegen.numba_support import CHECK_BOUNDS

types: Any = _types
_njit = njit(boundscheck=CHECK_BOUNDS)
_UFUNCS = {
    "fft": "Dd->D", "ifft": "Dd->D", "irfft": "Dd->d",
    "rfft_n_even": "dd->D", "rfft_n_odd": "dd->D",
}  # fmt: skip
"""NumPy's ufuncs, and the loop of each that is called: of the input and a factor."""

ONE, INVERSE, ROOT = 0, 1, 2
"""The factor of a transform of length n: 1, 1 / n or its square root."""


class _UFunc(ctypes.Structure):
    """The beginning of ``PyUFuncObject``, as NumPy's ``ufuncobject.h`` publishes it."""

    _fields_ = (
        ("head", ctypes.c_byte * object.__basicsize__),
        ("counts", ctypes.c_int * 4),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
    )


_Loop = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def _addresses(name: str) -> tuple[int, int]:
    """Where a ufunc's loop is, and the data that it is passed."""
    ufunc = getattr(importlib.import_module("numpy.fft._pocketfft_umath"), name)
    k = ufunc.types.index(_UFUNCS[name])
    held = _UFunc.from_address(id(ufunc))
    return held.functions[k], (held.data[k] or 0) if held.data else 0


@functools.cache
def available() -> bool:
    """Whether NumPy's loops are where they are looked for, and compute transforms."""
    try:
        found = {name: _addresses(name) for name in _UFUNCS}
    except (ImportError, AttributeError, ValueError):
        return False
    return all(_computes(name, *at) for name, at in found.items())


def _computes(name: str, function: int, data: int) -> bool:
    """Whether a loop returns what ``numpy.fft`` does, of one vector."""
    n = 5 if name == "rfft_n_odd" else 6
    kind, _, made = _UFUNCS[name].replace("d->", "->").partition("->")
    x = np.cos(np.arange(8.0)).astype(kind)
    wanted = getattr(np.fft, name.partition("_")[0])(x, n)
    factor, y = np.array(1.0 / n if name.startswith("i") else 1.0), np.zeros(wanted.shape, made)
    places = np.array([a.ctypes.data for a in (x, factor, y)], np.intp)
    lengths = np.array([1, x.size, y.size], np.intp)
    steps = np.array([0, 0, 0, x.itemsize, y.itemsize], np.intp)
    _Loop(function)(places.ctypes.data, lengths.ctypes.data, steps.ctypes.data, data or None)
    return bool(np.allclose(y, wanted, rtol=1e-12, atol=1e-12))


def provide(_names: set[str]) -> None:
    """Register NumPy's loops for machine code: before any that calls them is linked."""
    for name in _UFUNCS:
        function, data = _addresses(name)
        llvm.add_symbol(f"fwdad_fourier_{name}", function)
        llvm.add_symbol(f"fwdad_fourier_{name}_data", data or function)  # one that reads none


def _transform(name: str) -> Any:
    """What calls a loop, of an input, a factor and the result's array."""
    size, byte = ir.IntType(64), cgutils.voidptr_t

    @intrinsic
    def call(_typing, x, factor, y):
        def code(context, builder, sig, args):
            a, b = (context.make_array(sig.args[k])(context, builder, args[k]) for k in (0, 2))
            place = cgutils.alloca_once(builder, args[1].type)
            builder.store(args[1], place)

            # inlined, what is allocated here can leave vectors unaligned on the caller's stack
            builder.function.attributes.add("noinline")

            def packed(values, kind):
                array = cgutils.alloca_once(builder, kind, len(values))
                for k, v in enumerate(values):
                    builder.store(v, builder.gep(array, [ir.Constant(size, k)]))
                return builder.bitcast(array, byte)

            zero, one = ir.Constant(size, 0), ir.Constant(size, 1)
            places = packed([builder.bitcast(p, byte) for p in (a.data, place, b.data)], byte)
            (n, m), (step, other) = (
                [builder.extract_value(getattr(array, part), 0) for array in (a, b)]
                for part in ("shape", "strides")
            )
            lengths = packed([one, n, m], size)
            steps = packed([zero, zero, zero, step, other], size)
            symbol = f"fwdad_fourier_{name}"
            function = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(ir.VoidType(), [byte] * 4), symbol
            )
            data = cgutils.add_global_variable(builder.module, ir.IntType(8), f"{symbol}_data")
            builder.call(function, [places, lengths, steps, data])
            return context.get_dummy_value()

        return types.void(x, factor, y), code

    return call


_fft, _ifft, _irfft, _rfft_even, _rfft_odd = map(_transform, _UFUNCS)


@_njit
def _factor(n, power):
    if n < 1:
        raise ValueError("a Fourier transform needs at least one number")
    return 1.0 if power == ONE else 1.0 / n if power == INVERSE else 1.0 / math.sqrt(n)


@_njit
def fourier_fft(x, n, power):
    """``numpy.fft.fft`` of a complex vector, cut or padded to length n."""
    factor, y = _factor(n, power), np.empty(n, np.complex128)
    _fft(x, factor, y)
    return y


@_njit
def fourier_ifft(x, n, power):
    """``numpy.fft.ifft`` of a complex vector, cut or padded to length n."""
    factor, y = _factor(n, power), np.empty(n, np.complex128)
    _ifft(x, factor, y)
    return y


@_njit
def fourier_irfft(x, n, power):
    """``numpy.fft.irfft`` of half a spectrum; n is the length of the result."""
    factor, y = _factor(n, power), np.empty(n, np.float64)
    _irfft(x, factor, y)
    return y


@_njit
def fourier_rfft(x, n, power):
    """``numpy.fft.rfft`` of a real vector, cut or padded to length n."""
    factor, y = _factor(n, power), np.empty(n // 2 + 1, np.complex128)
    if n % 2:
        _rfft_odd(x, factor, y)
    else:
        _rfft_even(x, factor, y)
    return y
