"""The C library's vector functions (``libmvec``): which there are, and under which names.

glibc on x86-64 has functions of 2, 4 or 8 doubles, twice as many float32s, named by the rules of
its vector ABI: ``_ZGVeN8v_sin`` takes eight doubles in one AVX-512 register. They are accurate to 4
units in the last place. Elsewhere, and where ``FWDAD_VECTOR_MATH=0`` is set, there is none, and
generated code calls the scalar functions in plain loops. The variable is read when code is
generated.

Importing this module needs Numba.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import re

import llvmlite.binding as llvm
from numba.core.registry import cpu_target

_LIBRARY = "libmvec.so.1"
_LETTERS = {128: "b", 256: "d", 512: "e"}  # SSE, AVX2, AVX-512
ARGUMENTS = {
    "sin": 1, "cos": 1, "tan": 1, "asin": 1, "acos": 1, "atan": 1, "sinh": 1, "cosh": 1,
    "tanh": 1, "asinh": 1, "acosh": 1, "atanh": 1, "exp": 1, "exp2": 1, "expm1": 1, "log": 1,
    "log2": 1, "log10": 1, "log1p": 1, "cbrt": 1, "pow": 2, "atan2": 2, "hypot": 2,
}  # fmt: skip

"""How many arguments the functions have that may have a vector form, by their C names."""


_CALLS = re.compile(r"\bvector_\w+")


def called(text: str) -> list[str]:
    """The vector functions that some source calls."""
    return _CALLS.findall(text)


def is_wanted() -> bool:
    """Whether ``FWDAD_VECTOR_MATH`` allows vector functions."""
    return os.environ.get("FWDAD_VECTOR_MATH", "1") != "0"


def register_bits() -> int:
    """The width of the registers for which vector functions are called; 0 if there are none."""
    return _register_bits() if is_wanted() else 0


@functools.cache
def _register_bits() -> int:
    if platform.machine() not in ("x86_64", "AMD64"):
        return 0
    try:
        llvm.load_library_permanently(_LIBRARY)
    except RuntimeError:
        return 0
    # the target's features, which may be fewer than the processor's
    features = set(cpu_target.target_context.codegen().magic_tuple()[2].split(","))
    return 512 if "+avx512f" in features else 256 if "+avx2" in features else 128


def symbol(name: str, itemsize: int, n: int) -> str | None:
    """The entry point of a vector function of n numbers of ``itemsize`` bytes, or None."""
    letter = _LETTERS.get(8 * itemsize * n)
    if letter is None or 8 * itemsize * n > register_bits():  # 0 bits where there is no library
        return None
    suffix = "f" if itemsize == 4 else ""
    text = f"_ZGV{letter}N{n}{'v' * ARGUMENTS[name]}_{name}{suffix}"
    return text if hasattr(_library(), text) else None


@functools.cache
def _library() -> ctypes.CDLL:
    """The library, already loaded for LLVM, whose own symbol look-up is much slower."""
    return ctypes.CDLL(_LIBRARY)


def description() -> str:
    """What code that calls vector functions depends on."""
    return _description(register_bits())


@functools.cache
def _description(bits: int) -> str:
    if not bits:
        return "no vector functions"
    symbols = [
        s for f in sorted(ARGUMENTS) for size in (8, 4) if (s := symbol(f, size, bits // 8 // size))
    ]
    libc = os.confstr("CS_GNU_LIBC_VERSION") if hasattr(os, "confstr") else ""
    return f"{_LIBRARY} {libc} {' '.join(symbols)}"
