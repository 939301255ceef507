"""Scalar expressions of ufuncs, by NumPy's rules."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fwdad.codegen.loops.terms.number_terms import (
    BOOL,
    FLOAT64,
    INT64,
    Term,
    cast,
    check_dtype,
    literal,
    number_cast,
    numpy_number,
)
from fwdad.codegen.numba_support import (
    SPECIAL_HELPERS,
    UFUNC_HELPERS,
    UFUNC_PREFIX,
    CannotCompileError,
)
from fwdad.ir.notation import ATOM, INFIX
from fwdad.ir.types import Number
from fwdad.ops import record_of

# -- which function it is


def as_ufunc(function: Any) -> np.ufunc | None:
    """The ufunc that computes a function element by element, or None."""
    ufunc = record_of(function).stands_for or function
    if isinstance(ufunc, np.ufunc) and ufunc.nout == 1 and ufunc.signature is None:
        return ufunc
    return None


_OF_PYTHON: dict[str, Any] = {"b": BOOL, "i": int, "f": float, "c": complex}


def loop_types(ufunc: np.ufunc, types: Sequence[Number]) -> tuple[np.dtype[Any], ...]:
    """The dtypes with which NumPy runs a ufunc: those of the arguments, then of the result."""
    given: tuple[Any, ...] = tuple(_OF_PYTHON[t.dtype.kind] if t.python else t.dtype for t in types)
    try:
        return tuple(ufunc.resolve_dtypes((*given, None)))
    except TypeError as error:
        message = f"np.{ufunc.__name__} of {', '.join(str(t) for t in types)}"
        raise CannotCompileError(message) from error


def needed_dtypes(ufunc: np.ufunc, types: Sequence[Any]) -> list[np.dtype[Any] | None]:
    """For each argument the dtype into which a Python int must fit, or None."""
    weak = [isinstance(t, Number) and t.python and t.dtype.kind == "i" for t in types]
    if not any(weak) or ufunc in COMPARISONS:
        return [None] * len(types)
    numbers = [t if isinstance(t, Number) else numpy_number(t.dtype) for t in types]
    wanted = loop_types(ufunc, numbers)
    return [
        d if is_weak and d.kind in "iu" and d != INT64 else None
        for d, is_weak in zip(wanted, weak, strict=False)
    ]


# -- expressions of NumPy's types

# ufuncs that are written as operators; the others need a function
SYMBOLS = {
    record_of(f).stands_for: INFIX[f]
    for f in (operator.add, operator.sub, operator.mul, operator.truediv, operator.and_,
              operator.or_, operator.xor, operator.lt, operator.le, operator.gt, operator.ge,
              operator.eq, operator.ne)
}  # fmt: skip
ORDERINGS = {record_of(f).stands_for for f in (operator.lt, operator.le, operator.gt, operator.ge)}
COMPARISONS = ORDERINGS | {np.equal, np.not_equal}
SINGLE = (np.dtype(np.float32), np.dtype(np.complex64))


def numpy_term(ufunc: np.ufunc, terms: Sequence[Term]) -> Term:
    """A ufunc of one element, by NumPy's rules."""
    *inner, outer = loop_types(ufunc, [t.type for t in terms])
    for dtype in (*inner, outer):
        check_dtype(dtype)
    casts = [_arithmetic(ufunc, t, d) for t, d in zip(terms, inner, strict=True)]
    kind = "c" if any(d.kind == "c" for d in inner) else inner[0].kind
    text, level = _numpy_text(ufunc, casts, kind)
    if outer.kind in "iu" and outer != INT64 and ufunc not in COMPARISONS:
        text, level = f"np.{outer}({text})", ATOM
    if outer in SINGLE and outer.kind in record_of(ufunc).doubled:
        text, level = f"np.{outer}({text})", ATOM
    return Term(text, level, numpy_number(outer))


def _arithmetic(ufunc: np.ufunc, term: Term, dtype: np.dtype[Any]) -> Term:
    """An argument in the loop's dtype, without casts that Numba makes by itself."""
    plain = ufunc in (np.add, np.subtract, np.multiply) or ufunc in COMPARISONS
    if plain and dtype == FLOAT64 and term.type.dtype == INT64:
        return term._replace(type=numpy_number(dtype))
    if ufunc in COMPARISONS and dtype.kind in "iu" and term.type.python:
        return term  # compared as it is, even if it does not fit
    return number_cast(term, dtype)


def _numpy_text(ufunc: np.ufunc, terms: Sequence[Term], kind: str) -> tuple[str, int]:
    args = ", ".join(t.text for t in terms)
    name = ufunc.__name__
    if kind == "b":
        return bool_text(ufunc, terms)
    if ufunc is np.divide:
        if kind == "c":
            return f"complex_divide({args})", ATOM
        divisor = terms[1].constant
        if divisor is not None and divisor != 0:
            return f"{terms[0].at(6)} / {terms[1].at(7)}", 6
        return f"divide({args})", ATOM
    if ufunc in ORDERINGS and kind == "c":
        raise CannotCompileError("an ordering of complex numbers")
    if ufunc in SYMBOLS:
        symbol, level = SYMBOLS[ufunc]
        return f"{terms[0].at(level + (level == 0))} {symbol} {terms[1].at(level + 1)}", level
    if ufunc in (np.power, np.float_power):
        return _power_text(terms, kind)
    if ufunc is np.negative:
        return f"-{terms[0].at(7)}", 7
    if ufunc is np.positive or (ufunc is np.conjugate and kind != "c"):
        return terms[0].text, terms[0].level
    if ufunc is np.absolute:
        return f"abs({args})", ATOM
    if ufunc is np.invert:
        return f"~{terms[0].at(7)}", 7
    if ufunc in (np.floor_divide, np.remainder):
        prefix = {"f": "float", "i": "int"}.get(kind)
        if prefix is None:
            raise CannotCompileError(f"np.{name} of unsigned ints")
        return f"{prefix}_{name}({args})", ATOM
    if ufunc is np.fmod and kind in "if":
        return f"{'np.fmod' if kind == 'f' else 'int_fmod'}({args})", ATOM
    if ufunc in (np.left_shift, np.right_shift):
        return f"{name}({args})", ATOM
    if ufunc in (np.logical_and, np.logical_or, np.logical_xor, np.logical_not):
        return bool_text(ufunc, [cast(t, BOOL) for t in terms])
    record = record_of(ufunc)
    if kind == "f" and record.libm and not record.numba:  # without the exceptions of `math`
        return f"math.{record.libm}({args})", ATOM
    if ufunc is np.square:
        return _repeated(terms[0], 2) or f"np.square({args})", 6 if terms[0].level == ATOM else ATOM
    if ufunc is np.reciprocal and kind == "f":
        one = literal(1.0, terms[0].type)
        return f"divide({one}, {args})", ATOM
    if record.numba_complex if kind == "c" else record.numba:
        return f"np.{name}({args})", ATOM
    if kind == "c" and f"{UFUNC_PREFIX}{name}" in UFUNC_HELPERS:
        return f"{UFUNC_PREFIX}{name}({args})", ATOM
    if kind == "f" and f"special_{name}" in SPECIAL_HELPERS and _is_scipy(ufunc):
        wide = [cast(t, FLOAT64).text for t in terms]
        text = f"special_{name}({', '.join(wide)})"
        return f"np.float32({text})" if terms[0].type.dtype == np.float32 else text, ATOM
    raise CannotCompileError(f"the function {name}")


def _is_scipy(ufunc: np.ufunc) -> bool:
    """Whether a ufunc is SciPy's: NumPy has some of the same names."""
    return getattr(np, ufunc.__name__, None) is not ufunc


def bool_text(ufunc: np.ufunc, terms: Sequence[Term]) -> tuple[str, int]:
    """A ufunc of bools as source, and its precedence."""
    both = {np.bitwise_and: "and", np.logical_and: "and", np.multiply: "and", np.minimum: "and",
            np.bitwise_or: "or", np.logical_or: "or", np.add: "or", np.maximum: "or"}  # fmt: skip
    if ufunc in both:
        return f"{terms[0].at(1)} {both[ufunc]} {terms[1].at(1)}", -2
    if ufunc in (np.bitwise_xor, np.logical_xor, np.not_equal):
        return f"{terms[0].at(1)} != {terms[1].at(1)}", 0
    if ufunc is np.equal:
        return f"{terms[0].at(1)} == {terms[1].at(1)}", 0
    if ufunc in (np.invert, np.logical_not):
        return f"not {terms[0].at(1)}", -1
    if ufunc in (np.positive, np.absolute):
        return terms[0].text, terms[0].level
    raise CannotCompileError(f"np.{ufunc.__name__} of bools")


def _repeated(term: Term, n: int) -> str | None:
    return " * ".join([term.text] * n) if term.level == ATOM and term.text.isidentifier() else None


def _power_text(terms: Sequence[Term], kind: str) -> tuple[str, int]:
    base, exponent = terms
    n = exponent.constant
    if kind == "c":
        if n is not None and n == 2:
            return f"np.square({base.text})", ATOM
        return f"{UFUNC_PREFIX}power({base.text}, {exponent.text})", ATOM
    if kind == "i":
        return f"numpy_int_power({base.text}, {exponent.text})", ATOM
    if kind != "f":
        raise CannotCompileError("powers of unsigned ints")
    if n is not None and n in (2, 3):
        repeated = _repeated(base, int(n))
        return (repeated, 6) if repeated else (f"{base.at(9)}**{int(n)}", 8)
    return f"math.pow({base.text}, {exponent.text})", ATOM


def where_term(condition: Term, a: Term, b: Term, dtype: np.dtype[Any]) -> Term:
    """One of two terms."""
    a, b = cast(a, dtype), cast(b, dtype)
    term = cast(condition, BOOL)
    return Term(f"{a.at(1)} if {term.at(1)} else {b.at(1)}", -2, numpy_number(dtype))
