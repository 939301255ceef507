"""Scalar expressions of Python's operators and functions, by Python's rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fwdad.codegen.loops.terms.number_terms import (
    BOOL,
    FLOAT64,
    INT64,
    Term,
    cast,
    literal,
    stored_cast,
)
from fwdad.codegen.loops.terms.numpy_terms import COMPARISONS, ORDERINGS, SYMBOLS, bool_text
from fwdad.codegen.numba_support import CannotCompileError
from fwdad.ir.notation import ATOM
from fwdad.ir.types import Number

# -- operators


def python_term(ufunc: np.ufunc, terms: Sequence[Term], result: Number) -> Term:
    """An operator on Python's numbers, by Python's rules."""
    kinds = {t.kind for t in terms}
    if ufunc in ORDERINGS and "c" in kinds:
        raise CannotCompileError("an ordering of complex numbers")
    if ufunc is np.logical_not:
        return Term(f"not {cast(terms[0], BOOL).at(1)}", -1, result, bits=1)
    if ufunc in COMPARISONS:
        symbol, _ = SYMBOLS[ufunc]
        return Term(f"{terms[0].at(1)} {symbol} {terms[1].at(1)}", 0, result, bits=1)
    if kinds <= {"b", "i"} and result.dtype.kind in "bi":
        return _python_int(ufunc, terms, result)
    wide = np.dtype(complex) if "c" in kinds else FLOAT64
    left = terms[0]
    if ufunc in (np.add, np.subtract, np.multiply, np.divide):
        symbol, level = SYMBOLS[ufunc]
        terms = [cast(t, FLOAT64) if t.kind == "b" else t for t in terms]
        return Term(f"{terms[0].at(level)} {symbol} {terms[1].at(level + 1)}", level, result)
    if ufunc is np.power:
        return _python_power(terms, wide, result)
    if ufunc is np.negative:
        return Term(f"-{left.at(7)}", 7, result)
    if ufunc is np.positive:
        return left._replace(type=result)
    if ufunc is np.absolute:
        return Term(f"abs({left.text})", ATOM, result)
    if ufunc in (np.floor_divide, np.remainder) and wide == FLOAT64:
        args = ", ".join(cast(t, wide).text for t in terms)
        return Term(f"python_{ufunc.__name__}({args})", ATOM, result)
    raise CannotCompileError(f"the function {ufunc.__name__} of Python's numbers")


def _python_power(terms: Sequence[Term], wide: np.dtype[Any], result: Number) -> Term:
    base, exponent = (cast(t, wide) for t in terms)
    if wide.kind == "c":
        return Term(f"complex_power({base.text}, {exponent.text})", ATOM, result)
    n = exponent.constant
    if n is not None and n == 2 and base.text.isidentifier():
        return Term(f"in_range({base.text} * {base.text}, {base.text})", ATOM, result)
    return Term(f"float_power({base.text}, {exponent.text})", ATOM, result)


def _python_int(ufunc: np.ufunc, terms: Sequence[Term], result: Number) -> Term:
    if result.dtype.kind == "b" and all(t.kind == "b" for t in terms):
        return Term(*bool_text(ufunc, terms), result, bits=1)
    terms = [cast(t, INT64, python=True) for t in terms]
    args = ", ".join(t.text for t in terms)
    bits = [t.bits for t in terms]
    if ufunc in (np.add, np.subtract, np.multiply):
        need = sum(bits) if ufunc is np.multiply else max(bits) + 1
        if need < 63:
            symbol, level = SYMBOLS[ufunc]
            text = f"{terms[0].at(level)} {symbol} {terms[1].at(level + 1)}"
            return Term(text, level, result, bits=need)
        name = {np.add: "int_add", np.subtract: "int_sub", np.multiply: "int_mul"}[ufunc]
        return Term(f"{name}({args})", ATOM, result)
    if ufunc in (np.floor_divide, np.remainder):
        divisor = terms[1].constant
        if divisor is not None and divisor > 0:
            symbol = "//" if ufunc is np.floor_divide else "%"
            small = bits[0] if ufunc is np.floor_divide else bits[1]
            text = f"{terms[0].at(6)} {symbol} {terms[1].at(7)}"
            return Term(text, 6, result, bits=small)
        name = "python_int_divide" if ufunc is np.floor_divide else "python_int_remainder"
        return Term(f"{name}({args})", ATOM, result, bits=max(bits))
    if ufunc is np.power:
        return Term(f"int_power({args})", ATOM, result)
    if ufunc is np.negative:
        if bits[0] < 63:
            return Term(f"-{terms[0].at(7)}", 7, result, bits=bits[0])
        return Term(f"int_sub(0, {args})", ATOM, result)
    if ufunc is np.positive:
        return terms[0]._replace(type=result)
    if ufunc is np.absolute and bits[0] < 63:
        return Term(f"abs({args})", ATOM, result, bits=bits[0])
    if ufunc is np.absolute:
        return Term(f"larger({args}, int_sub(0, {args}))", ATOM, result)
    if ufunc in (np.bitwise_and, np.bitwise_or, np.bitwise_xor):
        symbol, level = SYMBOLS[ufunc]
        return Term(f"{terms[0].at(level)} {symbol} {terms[1].at(level + 1)}", level, result)
    if ufunc is np.invert:
        return Term(f"~{terms[0].at(7)}", 7, result)
    raise CannotCompileError(f"the operator {ufunc.__name__} of Python's ints")


# -- functions of one number that are no ufuncs

_IN_DOMAIN = {"sqrt", "log", "log2", "log10", "log1p", "asin", "acos", "acosh", "atanh", "sin",
              "cos", "tan", "fmod"}  # fmt: skip
_IN_RANGE = {"exp", "expm1", "sinh", "cosh", "gamma", "lgamma"}
_TOTAL = {"atan", "asinh", "tanh", "erf", "erfc", "fabs"}


def math_term(name: str, terms: Sequence[Term], result: Number) -> Term | None:
    """A function of :mod:`math`, with its exceptions, or None if there is none."""
    if any(t.kind == "c" for t in terms):
        return None
    if name in ("floor", "ceil", "trunc") and len(terms) == 1:
        if terms[0].kind in "bi":
            return cast(terms[0], INT64, python=True)
        return Term(f"to_int(np.{name}({cast(terms[0], FLOAT64).text}))", ATOM, result)
    if name in ("isnan", "isinf", "isfinite") and len(terms) == 1:
        return Term(f"math.{name}({cast(terms[0], FLOAT64).text})", ATOM, result, bits=1)
    floats = [cast(t, FLOAT64).text for t in terms]
    args = ", ".join(floats)
    if name == "pow":
        return Term(f"math_power({args})", ATOM, result)
    if name in ("atan2", "copysign") and len(terms) == 2:
        return Term(f"math.{name}({args})", ATOM, result)
    if name == "fmod" and len(terms) == 2:
        text = f"in_domain(np.fmod({args}), abs({floats[0]}) + abs({floats[1]}))"
        return Term(text, ATOM, result)
    if name == "hypot" and len(terms) == 2:
        return Term(f"in_range(math.hypot({args}), {floats[0]} + {floats[1]})", ATOM, result)
    if len(terms) != 1:
        return None
    if name == "cbrt":
        return Term(f"np.cbrt({args})", ATOM, result)
    if name == "exp2":
        return Term(f"in_range(np.exp2({args}), {args})", ATOM, result)
    if name in ("radians", "degrees") or name in _TOTAL:
        return Term(f"math.{name}({args})", ATOM, result)
    if name in _IN_DOMAIN:
        return Term(f"in_domain(math.{name}({args}), {args})", ATOM, result)
    if name in _IN_RANGE:
        return Term(f"in_range(math.{name}({args}), {args})", ATOM, result)
    return None


def conversion_term(cls: Any, terms: Sequence[Term], result: Number) -> Term | None:
    """``float(x)``, ``int(x)``, ``np.float32(x)`` and the like, or None."""
    if cls is complex and len(terms) == 2:
        if any(t.kind == "c" for t in terms):
            return None
        re, im = (cast(t, FLOAT64).text for t in terms)
        return Term(f"complex({re}, {im})", ATOM, result)
    if len(terms) != 1:
        return None
    (x,) = terms
    if cls is int and x.kind == "f":
        return Term(f"to_int({cast(x, FLOAT64).text})", ATOM, result)
    if x.kind == "c" and result.dtype.kind in "iuf":
        return None
    if not result.python:
        return stored_cast(x, result.dtype, item=False)
    return cast(x, result.dtype, python=True)


def round_term(terms: Sequence[Term], result: Number) -> Term | None:
    """``round(x)`` to an int, or None."""
    if len(terms) != 1:
        return None
    if terms[0].kind in "bi":
        return cast(terms[0], INT64, python=result.python)
    if terms[0].kind != "f" or result.dtype.kind != "i":
        return None
    return Term(f"to_int(np.rint({cast(terms[0], FLOAT64).text}))", ATOM, result)


def extreme_term(f: Any, terms: Sequence[Term], result: Number) -> Term:
    """``min`` or ``max`` of ints."""
    of_two = len(terms) == 2 and all(t.type.dtype == INT64 for t in terms)
    name = {min: "smaller", max: "larger"}[f] if of_two else f.__name__
    args = ", ".join(t.text for t in terms)
    return Term(f"{name}({args})", ATOM, result, bits=max(t.bits for t in terms))


def part_term(real: bool, term: Term, result: Number) -> Term:
    """The real or imaginary part."""
    if term.kind == "c":
        return Term(f"{term.at(ATOM)}.{'real' if real else 'imag'}", ATOM, result)
    return cast(term, result.dtype) if real else Term(literal(0, result), ATOM, result, 0)
