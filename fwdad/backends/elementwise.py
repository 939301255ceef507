"""One element at a time: functions of numbers as expressions that Numba compiles.

The types are NumPy's and Python's (a Python float does not widen a float32, an int32 stays one),
and so are the exceptions; where Numba's own operators differ, a function of ``compiled_math`` is
called.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fwdad.backends.numba_support import SPECIAL_HELPERS, CannotCompileError
from fwdad.tape.notation import ATOM, INFIX
from fwdad.tape.types import Number, number_type

_FLOAT64 = np.dtype(float)
_INT64 = np.dtype(np.int64)
_UINT64 = np.dtype(np.uint64)
_BOOL = np.dtype(bool)
_DTYPES = {np.dtype(t) for t in (bool, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
                                 np.uint32, np.uint64, np.float32, np.float64, np.complex64,
                                 np.complex128)}  # fmt: skip


class Term(NamedTuple):
    """An expression: its source, how tightly it binds, its type, and its value if it is known."""

    text: str
    level: int
    type: Number
    constant: Any = None
    bits: int = 64  # no int of it has more

    def at(self, level: int) -> str:
        """The source, in parentheses if it binds weaker."""
        return f"({self.text})" if self.level < level else self.text

    @property
    def kind(self) -> str:
        """The kind of its dtype."""
        return self.type.dtype.kind


def numpy_number(dtype: Any) -> Number:
    """The type of a NumPy scalar."""
    return Number(np.dtype(dtype), python=False)


def check_dtype(dtype: np.dtype[Any]) -> None:
    """Refuse what Numba does not know (float16, longdouble, other byte orders)."""
    if dtype not in _DTYPES or not dtype.isnative:
        message = f"values of dtype {dtype}"
        raise CannotCompileError(message)


def literal(x: Any, t: Number) -> str:
    """A constant of a type as source."""
    check_dtype(t.dtype)
    if t.dtype.kind == "b":
        return repr(bool(x))
    if t.dtype.kind in "iu":
        if not -(2**63) <= int(x) < 2**63:
            message = f"the int {x}"
            raise CannotCompileError(message)
        return repr(int(x)) if t.dtype == _INT64 else f"np.{t.dtype}({int(x)})"
    if t.dtype.kind == "f":
        text = _float(float(x))
        return text if t.dtype == _FLOAT64 else f"np.{t.dtype}({text})"
    text = f"complex({_float(complex(x).real)}, {_float(complex(x).imag)})"
    return text if t.dtype == np.dtype(complex) else f"np.{t.dtype}({text})"


def _float(x: float) -> str:
    if math.isnan(x):
        return "np.nan"
    if math.isinf(x):
        return "np.inf" if x > 0 else "-np.inf"
    return repr(x)


def constant(x: Any) -> Term:
    """A known number as a term."""
    t = number_type(x)
    if t is None:
        message = f"a {type(x).__name__} among numbers"
        raise CannotCompileError(message)
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
    if dtype == _FLOAT64 and term.kind in "iu":
        return Term(f"float({source})", ATOM, wanted)
    return Term(f"np.{dtype}({source})", ATOM, wanted, bits=term.bits)


def number_cast(term: Term, dtype: np.dtype[Any]) -> Term:
    """A number as NumPy converts one beside an array, or a scalar, of another dtype.

    Python's ints raise where they do not fit.
    """
    if not (term.type.python and term.kind == "i" and dtype.kind in "iu" and dtype != _INT64):
        return cast(term, dtype)
    low, high = int(np.iinfo(dtype).min), min(int(np.iinfo(dtype).max), 2**63 - 1)
    if term.constant is not None:
        if not low <= term.constant <= high:
            message = f"the int {term.constant} as {dtype}"
            raise CannotCompileError(message)
        return cast(term, dtype)
    wanted = Number(dtype, python=False)
    return Term(f"np.{dtype}(int_within({term.text}, {low}, {high}))", ATOM, wanted, bits=term.bits)


def stored_cast(term: Term, dtype: np.dtype[Any], *, item: bool) -> Term:
    """A number as NumPy stores it into an array: what the array cannot hold raises.

    So do Python's floats, and NumPy's numbers where they are stored as an item of ints with a sign.
    """
    if dtype.kind not in "iu" or term.type.dtype == dtype:
        return cast(term, dtype)
    if not (term.type.python or (item and dtype.kind == "i")) or term.kind in "bc":
        return cast(term, dtype)
    if (term.kind == "f" and (term.constant is not None or dtype == _UINT64)) or (
        term.type.dtype == _UINT64
    ):
        message = f"{term.type} that is stored as {dtype}"
        raise CannotCompileError(message)
    as_int = Number(_INT64, python=True)
    if term.kind == "f":
        return number_cast(Term(f"to_int({term.text})", ATOM, as_int), dtype)
    return number_cast(cast(term, _INT64)._replace(type=as_int), dtype)


# -- which function it is

_OPERATORS: dict[Any, np.ufunc] = {
    operator.add: np.add, operator.sub: np.subtract, operator.mul: np.multiply,
    operator.truediv: np.divide, operator.floordiv: np.floor_divide, operator.mod: np.remainder,
    operator.pow: np.power, operator.neg: np.negative, operator.pos: np.positive,
    operator.invert: np.invert, operator.and_: np.bitwise_and, operator.or_: np.bitwise_or,
    operator.xor: np.bitwise_xor, operator.lshift: np.left_shift, operator.rshift: np.right_shift,
    operator.lt: np.less, operator.le: np.less_equal, operator.gt: np.greater,
    operator.ge: np.greater_equal, operator.eq: np.equal, operator.ne: np.not_equal,
    operator.not_: np.logical_not, builtins.abs: np.absolute,
}  # fmt: skip


def as_ufunc(function: Any) -> np.ufunc | None:
    """The ufunc that a function is, element by element, or None."""
    try:
        found = _OPERATORS.get(function)
    except TypeError:
        return None
    if found is not None:
        return found
    if isinstance(function, np.ufunc) and function.nout == 1 and function.signature is None:
        return function
    return None


_OF_PYTHON: dict[str, Any] = {"b": _BOOL, "i": int, "f": float, "c": complex}


def loop_types(ufunc: np.ufunc, types: Sequence[Number]) -> tuple[np.dtype[Any], ...]:
    """The dtypes with which NumPy runs a ufunc: those of the arguments, then of the result."""
    given: tuple[Any, ...] = tuple(_OF_PYTHON[t.dtype.kind] if t.python else t.dtype for t in types)
    try:
        return tuple(ufunc.resolve_dtypes((*given, None)))
    except TypeError as error:
        message = f"np.{ufunc.__name__} of {', '.join(str(t) for t in types)}"
        raise CannotCompileError(message) from error


def needed_dtypes(ufunc: np.ufunc, types: Sequence[Any]) -> list[np.dtype[Any] | None]:
    """For each argument the dtype into which an int of Python's must fit, or None."""
    weak = [isinstance(t, Number) and t.python and t.dtype.kind == "i" for t in types]
    if not any(weak) or ufunc in _COMPARISONS:
        return [None] * len(types)
    given = [t if isinstance(t, Number) else numpy_number(t.dtype) for t in types]
    wanted = loop_types(ufunc, given)
    return [
        d if is_weak and d.kind in "iu" and d != _INT64 else None
        for d, is_weak in zip(wanted, weak, strict=False)
    ]


# -- expressions of NumPy's types

# those that are written as the operators of the same name are; the others need a function
_INFIX = {
    _OPERATORS[f]: INFIX[f]
    for f in (operator.add, operator.sub, operator.mul, operator.truediv, operator.and_,
              operator.or_, operator.xor, operator.lt, operator.le, operator.gt, operator.ge,
              operator.eq, operator.ne)
}  # fmt: skip
_COMPARISONS = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
_ORDERINGS = _COMPARISONS - {np.equal, np.not_equal}

# ufuncs of floats that are functions of `math`, without its exceptions once they are compiled
_FROM_MATH = {
    np.sin: "sin", np.cos: "cos", np.tan: "tan", np.arcsin: "asin", np.arccos: "acos",
    np.arctan: "atan", np.sinh: "sinh", np.cosh: "cosh", np.tanh: "tanh", np.arcsinh: "asinh",
    np.arccosh: "acosh", np.arctanh: "atanh", np.exp: "exp", np.expm1: "expm1", np.log: "log",
    np.log10: "log10", np.log1p: "log1p", np.log2: "log2", np.sqrt: "sqrt", np.hypot: "hypot",
    np.arctan2: "atan2", np.copysign: "copysign", np.fabs: "fabs",
}  # fmt: skip
# ufuncs that Numba has under the same name, with the same meaning for floats
_OF_NUMBA = {
    np.exp2, np.cbrt, np.sign, np.floor, np.ceil, np.trunc, np.rint, np.isnan,
    np.isfinite, np.isinf, np.signbit, np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp,
    np.logaddexp2, np.deg2rad, np.rad2deg, np.degrees, np.radians, np.nextafter, np.spacing,
    np.conjugate, np.square, np.ldexp,
}  # fmt: skip
_OF_NUMBA_COMPLEX = {
    np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh,
    np.arccosh, np.arctanh, np.exp, np.expm1, np.log, np.log10, np.log1p, np.log2, np.sqrt,
    np.conjugate, np.square, np.isnan, np.isfinite, np.isinf,
}  # fmt: skip


def numpy_term(ufunc: np.ufunc, terms: Sequence[Term]) -> Term:
    """A ufunc of one element, by NumPy's rules."""
    *inner, outer = loop_types(ufunc, [t.type for t in terms])
    for dtype in (*inner, outer):
        check_dtype(dtype)
    casts = [_arithmetic(ufunc, t, d) for t, d in zip(terms, inner, strict=True)]
    kind = "c" if any(d.kind == "c" for d in inner) else inner[0].kind
    text, level = _numpy_text(ufunc, casts, kind)
    if outer.kind in "iu" and outer != _INT64 and ufunc not in _COMPARISONS:
        text, level = f"np.{outer}({text})", ATOM
    if outer == np.dtype(np.float32) and ufunc is np.power:
        text, level = f"np.float32({text})", ATOM
    return Term(text, level, numpy_number(outer))


def _arithmetic(ufunc: np.ufunc, term: Term, dtype: np.dtype[Any]) -> Term:
    """An argument in the loop's dtype; what Numba widens by itself is left to it."""
    plain = ufunc in (np.add, np.subtract, np.multiply) or ufunc in _COMPARISONS
    if plain and dtype == _FLOAT64 and term.type.dtype == _INT64:
        return term._replace(type=numpy_number(dtype))
    if ufunc in _COMPARISONS and dtype.kind in "iu" and term.type.python:
        return term  # compared as it is, also where it does not fit
    return number_cast(term, dtype)


def _numpy_text(ufunc: np.ufunc, terms: Sequence[Term], kind: str) -> tuple[str, int]:
    args = ", ".join(t.text for t in terms)
    name = ufunc.__name__
    if kind == "b":
        return _bool_text(ufunc, terms)
    if ufunc is np.divide:
        if kind == "c":
            return f"complex_divide({args})", ATOM
        divisor = terms[1].constant
        if divisor is not None and divisor != 0:
            return f"{terms[0].at(6)} / {terms[1].at(7)}", 6
        return f"divide({args})", ATOM
    if ufunc in _ORDERINGS and kind == "c":
        message = "an ordering of complex numbers"
        raise CannotCompileError(message)
    if ufunc in _INFIX:
        symbol, level = _INFIX[ufunc]
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
            message = f"np.{name} of unsigned ints"
            raise CannotCompileError(message)
        return f"{prefix}_{name}({args})", ATOM
    if ufunc is np.fmod and kind in "if":
        return f"{'np.fmod' if kind == 'f' else 'int_fmod'}({args})", ATOM
    if ufunc in (np.left_shift, np.right_shift):
        return f"{name}({args})", ATOM
    if ufunc in (np.logical_and, np.logical_or, np.logical_xor, np.logical_not):
        return _bool_text(ufunc, [cast(t, _BOOL) for t in terms])
    if kind == "f" and ufunc in _FROM_MATH:
        return f"math.{_FROM_MATH[ufunc]}({args})", ATOM
    if ufunc is np.square:
        return _repeated(terms[0], 2) or f"np.square({args})", 6 if terms[0].level == ATOM else ATOM
    if ufunc is np.reciprocal and kind == "f":
        one = literal(1.0, terms[0].type)
        return f"divide({one}, {args})", ATOM
    if (kind == "c" and ufunc in _OF_NUMBA_COMPLEX) or (kind != "c" and ufunc in _OF_NUMBA):
        return f"np.{name}({args})", ATOM
    if kind == "f" and f"special_{name}" in SPECIAL_HELPERS and _is_scipy(ufunc):
        wide = [cast(t, _FLOAT64).text for t in terms]
        made = f"special_{name}({', '.join(wide)})"
        return f"np.float32({made})" if terms[0].type.dtype == np.float32 else made, ATOM
    message = f"the function {name}"
    raise CannotCompileError(message)


def _is_scipy(ufunc: np.ufunc) -> bool:
    """Whether a ufunc is one of SciPy's: NumPy has some of the same names."""
    return getattr(np, ufunc.__name__, None) is not ufunc


def _bool_text(ufunc: np.ufunc, terms: Sequence[Term]) -> tuple[str, int]:
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
    message = f"np.{ufunc.__name__} of bools"
    raise CannotCompileError(message)


def _repeated(term: Term, n: int) -> str | None:
    return " * ".join([term.text] * n) if term.level == ATOM and term.text.isidentifier() else None


def _power_text(terms: Sequence[Term], kind: str) -> tuple[str, int]:
    base, exponent = terms
    n = exponent.constant
    if kind == "c":
        if n is not None and n == 2:
            return f"np.square({base.text})", ATOM
        return f"{base.at(9)}**{exponent.at(9)}", 8
    if kind == "i":
        return f"numpy_int_power({base.text}, {exponent.text})", ATOM
    if kind != "f":
        message = "powers of unsigned ints"
        raise CannotCompileError(message)
    if n is not None and n in (2, 3):
        repeated = _repeated(base, int(n))
        return (repeated, 6) if repeated else (f"{base.at(9)}**{int(n)}", 8)
    return f"math.pow({base.text}, {exponent.text})", ATOM


# -- expressions of Python's numbers


def python_term(ufunc: np.ufunc, terms: Sequence[Term], result: Number) -> Term:
    """An operator on Python's numbers, by Python's rules."""
    kinds = {t.kind for t in terms}
    if ufunc in _ORDERINGS and "c" in kinds:
        message = "an ordering of complex numbers"
        raise CannotCompileError(message)
    if ufunc is np.logical_not:
        return Term(f"not {cast(terms[0], _BOOL).at(1)}", -1, result, bits=1)
    if ufunc in _COMPARISONS:
        symbol, _ = _INFIX[ufunc]
        return Term(f"{terms[0].at(1)} {symbol} {terms[1].at(1)}", 0, result, bits=1)
    if kinds <= {"b", "i"} and result.dtype.kind in "bi":
        return _python_int(ufunc, terms, result)
    wide = np.dtype(complex) if "c" in kinds else _FLOAT64
    left = terms[0]
    if ufunc in (np.add, np.subtract, np.multiply, np.divide):
        symbol, level = _INFIX[ufunc]
        terms = [cast(t, _FLOAT64) if t.kind == "b" else t for t in terms]
        return Term(f"{terms[0].at(level)} {symbol} {terms[1].at(level + 1)}", level, result)
    if ufunc is np.power:
        return _python_power(terms, wide, result)
    if ufunc is np.negative:
        return Term(f"-{left.at(7)}", 7, result)
    if ufunc is np.positive:
        return left._replace(type=result)
    if ufunc is np.absolute:
        return Term(f"abs({left.text})", ATOM, result)
    if ufunc in (np.floor_divide, np.remainder) and wide == _FLOAT64:
        args = ", ".join(cast(t, wide).text for t in terms)
        return Term(f"python_{ufunc.__name__}({args})", ATOM, result)
    message = f"the function {ufunc.__name__} of Python's numbers"
    raise CannotCompileError(message)


def _python_power(terms: Sequence[Term], wide: np.dtype[Any], result: Number) -> Term:
    base, exponent = (cast(t, wide) for t in terms)
    if wide.kind == "c":
        return Term(f"{base.at(9)}**{exponent.at(9)}", 8, result)
    n = exponent.constant
    if n is not None and n == 2 and base.text.isidentifier():
        return Term(f"in_range({base.text} * {base.text}, {base.text})", ATOM, result)
    return Term(f"float_power({base.text}, {exponent.text})", ATOM, result)


def _python_int(ufunc: np.ufunc, terms: Sequence[Term], result: Number) -> Term:
    if result.dtype.kind == "b" and all(t.kind == "b" for t in terms):
        return Term(*_bool_text(ufunc, terms), result, bits=1)
    terms = [cast(t, _INT64, python=True) for t in terms]
    args = ", ".join(t.text for t in terms)
    bits = [t.bits for t in terms]
    if ufunc in (np.add, np.subtract, np.multiply):
        need = sum(bits) if ufunc is np.multiply else max(bits) + 1
        if need < 63:
            symbol, level = _INFIX[ufunc]
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
        symbol, level = _INFIX[ufunc]
        return Term(f"{terms[0].at(level)} {symbol} {terms[1].at(level + 1)}", level, result)
    if ufunc is np.invert:
        return Term(f"~{terms[0].at(7)}", 7, result)
    message = f"the operator {ufunc.__name__} of Python's ints"
    raise CannotCompileError(message)


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
            return cast(terms[0], _INT64, python=True)
        return Term(f"to_int(np.{name}({cast(terms[0], _FLOAT64).text}))", ATOM, result)
    if name in ("isnan", "isinf", "isfinite") and len(terms) == 1:
        return Term(f"math.{name}({cast(terms[0], _FLOAT64).text})", ATOM, result, bits=1)
    floats = [cast(t, _FLOAT64).text for t in terms]
    args = ", ".join(floats)
    if name == "pow":
        return Term(f"math_power({args})", ATOM, result)
    if name in ("atan2", "copysign") and len(terms) == 2:
        return Term(f"math.{name}({args})", ATOM, result)
    if name == "fmod" and len(terms) == 2:
        made = f"in_domain(np.fmod({args}), abs({floats[0]}) + abs({floats[1]}))"
        return Term(made, ATOM, result)
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
        re, im = (cast(t, _FLOAT64).text for t in terms)
        return Term(f"complex({re}, {im})", ATOM, result)
    if len(terms) != 1:
        return None
    (x,) = terms
    if cls is int and x.kind == "f":
        return Term(f"to_int({cast(x, _FLOAT64).text})", ATOM, result)
    if x.kind == "c" and result.dtype.kind in "iuf":
        return None
    if not result.python:
        return stored_cast(x, result.dtype, item=False)
    return cast(x, result.dtype, python=True)


def round_term(terms: Sequence[Term], result: Number) -> Term | None:
    """``round(x)`` of a float to an int."""
    if len(terms) != 1:
        return None
    if terms[0].kind in "bi":
        return cast(terms[0], _INT64, python=result.python)
    if terms[0].kind != "f" or result.dtype.kind != "i":
        return None
    return Term(f"to_int(np.rint({cast(terms[0], _FLOAT64).text}))", ATOM, result)


def extreme_term(f: Any, terms: Sequence[Term], result: Number) -> Term:
    """``min`` or ``max`` of ints."""
    of_two = len(terms) == 2 and all(t.type.dtype == _INT64 for t in terms)
    name = {min: "smaller", max: "larger"}[f] if of_two else f.__name__
    args = ", ".join(t.text for t in terms)
    return Term(f"{name}({args})", ATOM, result, bits=max(t.bits for t in terms))


def part_term(real: bool, term: Term, result: Number) -> Term:
    """The real or imaginary part."""
    if term.kind == "c":
        return Term(f"{term.at(ATOM)}.{'real' if real else 'imag'}", ATOM, result)
    return cast(term, result.dtype) if real else Term(literal(0, result), ATOM, result, 0)


def where_term(condition: Term, a: Term, b: Term, dtype: np.dtype[Any]) -> Term:
    """One of two terms."""
    a, b = cast(a, dtype), cast(b, dtype)
    held = cast(condition, _BOOL)
    return Term(f"{a.at(1)} if {held.at(1)} else {b.at(1)}", -2, numpy_number(dtype))
