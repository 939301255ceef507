"""exp of W doubles as LLVM code, inlined into the loop that needs it.

A call of the C library's vector function spills all registers, so that the loop around it keeps its
constants and its sum in memory; and it is accurate to 4 units in the last place, this to one. With
``x = k log 2 + r``, ``exp(x)`` is ``2**k`` times a polynomial of r.

Importing this module needs Numba.
"""

from __future__ import annotations

import functools
import struct
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core.registry import cpu_target

_LOG2_E = float.fromhex("0x1.71547652b82fep+0")
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")  # its product with any k here is exact
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_ROUNDING = 1.5 * 2.0**52  # added to a number, it leaves the nearest integer in the last bits
_HIGHEST, _LOWEST = 710.0, -746.0  # beyond, it is infinite, or zero
# (exp(r) - 1 - r) / r**2 in powers of r: at the nodes of Chebyshev's polynomial for |r| < 0.35,
# in fractions. It is off by 2.4e-19 of exp(r)
_SERIES = [float.fromhex(c) for c in (
    "0x1.0000000000000p-1", "0x1.5555555555557p-3", "0x1.5555555555556p-5",
    "0x1.111111110ff8bp-7", "0x1.6c16c16c16214p-10", "0x1.a01a01ac9de9ep-13",
    "0x1.a01a01a74077ap-16", "0x1.71ddfff6573d6p-19", "0x1.27e4da1e12fb1p-22",
    "0x1.af5282aacdb2ep-26", "0x1.1f75a3caadff5p-29",
)]  # fmt: skip


@functools.cache
def has_feature(name: str) -> bool:
    """Whether the target processor has a feature, by LLVM's name: ``"fma"``, for one."""
    features: str = cpu_target.target_context.codegen().magic_tuple()[2]
    return f"+{name}" in features.split(",")


def exponential(builder: Any, x: Any) -> Any:
    """``exp`` of a vector of doubles: zero, infinity and NaN where the C library has them."""
    vector = x.type
    n = vector.count
    ints = ir.VectorType(ir.IntType(64), n)

    def of(number: float) -> Any:
        return _in_register(builder, ir.Constant(vector, [number] * n))

    def whole(number: int) -> Any:
        return ir.Constant(ints, [number] * n)

    signature = ir.FunctionType(vector, [vector] * 3)
    function = cgutils.get_or_insert_function(builder.module, signature, f"llvm.fma.v{n}f64")

    def fma(a: Any, b: Any, c: Any) -> Any:
        return builder.call(function, [a, b, c])

    def power_of_two(k: Any) -> Any:
        """2**k for k in the range of exponents; k is passed with 1024 added."""
        bits = builder.shl(builder.sub(k, whole(1)), whole(52))
        return builder.bitcast(bits, vector)

    for symbol, end in ((">", of(_HIGHEST)), ("<", of(_LOWEST))):  # NaN stays what it is
        x = builder.select(builder.fcmp_ordered(symbol, x, end), end, x)
    shifted = fma(x, of(_LOG2_E), of(_ROUNDING))
    k = builder.fsub(shifted, of(_ROUNDING))
    r = fma(k, of(-_LN2_HIGH), x)
    r = fma(k, of(-_LN2_LOW), r)
    y = _polynomial(builder, fma, r, [of(c) for c in _SERIES])
    y = builder.fadd(fma(builder.fmul(r, r), y, r), of(1.0))
    if n == 8 and has_feature("avx512f"):
        return _scaled(builder, y, k)
    (base,) = struct.unpack("<q", struct.pack("<d", _ROUNDING))
    twice = builder.add(builder.bitcast(shifted, ints), whole(2048 - base))
    half = builder.lshr(twice, whole(1))  # in two factors: 2**k alone may overflow
    y = builder.fmul(y, power_of_two(half))
    return builder.fmul(y, power_of_two(builder.sub(twice, half)))


def _in_register(builder: Any, x: Any) -> Any:
    """A constant that stays in a register from the beginning of the function on.

    LLVM would compute its address anew in each iteration of a loop, which takes as many
    instructions as the arithmetic.
    """
    constants = vars(builder.function).setdefault("_fwdad_kept", {})
    key = str(x)
    if key not in constants:
        letter = "v" if has_feature("avx512f") else "x"
        same = ir.FunctionType(x.type, [x.type])
        with builder.goto_entry_block():
            constants[key] = builder.asm(same, "", f"={letter},0", [x], False)
    return constants[key]


def _scaled(builder: Any, y: Any, k: Any) -> Any:
    """``y * 2**k`` by an instruction of AVX-512."""
    name = "llvm.x86.avx512.mask.scalef.pd.512"
    byte, word = ir.IntType(8), ir.IntType(32)
    signature = ir.FunctionType(y.type, [y.type, y.type, y.type, byte, word])
    function = cgutils.get_or_insert_function(builder.module, signature, name)
    usual_rounding = 4
    return builder.call(function, [y, k, y, byte(255), word(usual_rounding)])


def _polynomial(builder: Any, fma: Any, r: Any, series: list[Any]) -> Any:
    """A sum of powers, pairs of neighbours first: the chains of dependent products are short."""
    power = r
    while len(series) > 1:
        pairs = zip(series[::2], series[1::2], strict=False)
        rest = series[-1:] if len(series) % 2 else []
        series = [*(fma(power, high, low) for low, high in pairs), *rest]
        power = builder.fmul(power, power)
    return series[0]
