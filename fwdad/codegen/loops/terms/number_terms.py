"""Scalar expressions that Numba compiles, their types and casts.

The types are NumPy's and Python's (a Python float does not widen a float32, an int32 stays one),
and so are the exceptions; where Numba's own operators differ, a function of ``runtime.arithmetic``
is called.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fwdad.codegen.numba_support import CannotCompileError
from fwdad.errors import type_in_words
from fwdad.ir.notation import ATOM
from fwdad.ir.types import Number, number_type

FLOAT64 = np.dtype(float)
INT64 = np.dtype(np.int64)
_UINT64 = np.dtype(np.uint64)
BOOL = np.dtype(bool)
_DTYPES = {np.dtype(t) for t in (bool, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
                                 np.uint32, np.uint64, np.float32, np.float64, np.complex64,
                                 np.complex128)}  # fmt: skip


class Term(NamedTuple):
    """An expression: its source, its precedence, its type, and its value if it is constant."""

    text: str
    level: int
    type: Number
    constant: Any = None
    bits: int = 64  # an upper bound for ints

    def at(self, level: int) -> str:
        """The source, in parentheses if it binds weaker than a level."""
        return f"({self.text})" if self.level < level else self.text

    @property
    def kind(self) -> str:
        """The kind of its dtype."""
        return self.type.dtype.kind


def numpy_number(dtype: Any) -> Number:
    """The type of a NumPy scalar."""
    return Number(np.dtype(dtype), python=False)


def check_dtype(dtype: np.dtype[Any]) -> None:
    """Refuse dtypes that Numba does not support (float16, longdouble, other byte orders)."""
    if dtype not in _DTYPES or not dtype.isnative:
        raise CannotCompileError(f"values of dtype {dtype}")


def literal(x: Any, t: Number) -> str:
    """A constant of a type as source."""
    check_dtype(t.dtype)
    if t.dtype.kind == "b":
        return repr(bool(x))
    if t.dtype.kind in "iu":
        if not -(2**63) <= int(x) < 2**63:
            raise CannotCompileError(f"the int {x}")
        return repr(int(x)) if t.dtype == INT64 else f"np.{t.dtype}({int(x)})"
    if t.dtype.kind == "f":
        text = _float(float(x))
        return text if t.dtype == FLOAT64 else f"np.{t.dtype}({text})"
    text = f"complex({_float(complex(x).real)}, {_float(complex(x).imag)})"
    return text if t.dtype == np.dtype(complex) else f"np.{t.dtype}({text})"


def _float(x: float) -> str:
    if math.isnan(x):
        return "np.nan"
    if math.isinf(x):
        return "np.inf" if x > 0 else "-np.inf"
    return repr(x)


def constant(x: Any) -> Term:
    """A constant number as a term."""
    t = number_type(x)
    if t is None:
        raise CannotCompileError(f"{type_in_words(x)} among numbers")
    text = literal(x, t)
    bits = int(abs(x)).bit_length() if t.dtype.kind in "biu" else 64
    return Term(text, 7 if text.startswith("-") else ATOM, t, x, bits)


def cast(term: Term, dtype: np.dtype[Any], *, python: bool = False) -> Term:
    """A term as another dtype, without a check of its value."""
    wanted = Number(dtype, python)
    check_dtype(dtype)
    if term.type.dtype == dtype:
        return Term(term.text, term.level, wanted, term.constant, term.bits)
    if term.constant is not None:
        x = term.constant
        if dtype.kind != "c" and isinstance(x, (complex, np.complexfloating)):
            x = x.real
        text = literal(np.asarray(x).astype(dtype)[()], wanted)
        return Term(text, 7 if text.startswith("-") else ATOM, wanted, x, term.bits)
    source = term.text
    if dtype.kind == "b":
        return Term(f"{term.at(1)} != 0", 0, wanted, bits=1)
    if term.kind == "c" and dtype.kind != "c":
        source = f"{term.at(ATOM)}.real"
    if dtype == FLOAT64 and term.kind in "iu":
        return Term(f"float({source})", ATOM, wanted)
    return Term(f"np.{dtype}({source})", ATOM, wanted, bits=term.bits)


def number_cast(term: Term, dtype: np.dtype[Any]) -> Term:
    """A number as NumPy converts one beside an array, or a scalar, of another dtype.

    Python's ints raise where they do not fit.
    """
    if not (term.type.python and term.kind == "i" and dtype.kind in "iu" and dtype != INT64):
        return cast(term, dtype)
    low, high = int(np.iinfo(dtype).min), min(int(np.iinfo(dtype).max), 2**63 - 1)
    if term.constant is not None:
        if not low <= term.constant <= high:
            raise CannotCompileError(f"the int {term.constant} as {dtype}")
        return cast(term, dtype)
    wanted = Number(dtype, python=False)
    return Term(f"np.{dtype}(int_within({term.text}, {low}, {high}))", ATOM, wanted, bits=term.bits)


def stored_cast(term: Term, dtype: np.dtype[Any], *, item: bool) -> Term:
    """A number as NumPy stores it into an array: what the array cannot hold raises.

    This applies to Python's numbers, and to NumPy's where they are stored as an ``item`` of signed
    ints.
    """
    if dtype.kind not in "iu" or term.type.dtype == dtype:
        return cast(term, dtype)
    if not (term.type.python or (item and dtype.kind == "i")) or term.kind in "bc":
        return cast(term, dtype)
    if (term.kind == "f" and (term.constant is not None or dtype == _UINT64)) or (
        term.type.dtype == _UINT64
    ):
        raise CannotCompileError(f"{term.type} that is stored as {dtype}")
    as_int = Number(INT64, python=True)
    if term.kind == "f":
        return number_cast(Term(f"to_int({term.text})", ATOM, as_int), dtype)
    return number_cast(cast(term, INT64)._replace(type=as_int), dtype)
