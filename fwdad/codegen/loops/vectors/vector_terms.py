"""Expressions of W elements at once: the vector counterpart of ``elementwise``.

What has no form here is computed one element at a time.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fwdad.codegen.loops.terms.number_terms import Term, cast, literal, numpy_number
from fwdad.codegen.loops.terms.numpy_terms import SYMBOLS, as_ufunc, loop_types
from fwdad.codegen.numba_support import CannotCompileError
from fwdad.codegen.runtime import libmvec
from fwdad.ir.analysis.costs import small_power
from fwdad.ir.notation import ATOM
from fwdad.ir.ops import Apply, Operand, is_array, type_of_operand
from fwdad.ir.types import Number
from fwdad.ops import Algebra, Cost, record_of
from fwdad.tangents.scaling import scale_lanes
from fwdad.tangents.straight import with_derivative_of

_BOOL = np.dtype(bool)
_FLOATS = {np.dtype(np.float64), np.dtype(np.float32)}
_READABLE = {np.dtype(t) for t in (bool, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
                                   np.uint32, np.uint64, np.float32, np.float64)}  # fmt: skip

_BITS = {record_of(f).stands_for for f in (operator.and_, operator.or_, operator.xor)}
_SELECTING = {np.where: 3, np.clip: 3, scale_lanes: 2, with_derivative_of: 2}
"""Functions that are no ufuncs, and how many arguments they have."""


class Elements(NamedTuple):
    """An operand in a loop of vectors: its term, and whether it is a vector or a number."""

    term: Term
    is_vector: bool


def float_dtype(op: Apply) -> np.dtype[Any] | None:
    """The dtype in which a vector operation computes; None if it has masks only."""
    ufunc = as_ufunc(op.function)
    if ufunc is None:
        return op.outputs[0].type.dtype
    inner = _loop(op)[0]
    return inner if inner in _FLOATS else None


def _loop(op: Apply) -> tuple[np.dtype[Any], ...]:
    ufunc = as_ufunc(op.function)
    assert ufunc is not None
    return loop_types(ufunc, [_type_of(a) for a in op.args])


def lanes_of(dtype: np.dtype[Any]) -> int:
    """How many elements of a dtype form one vector."""
    return libmvec.register_bits() // (8 * dtype.itemsize)


def is_transcendental(op: Apply) -> bool:
    """Whether a vector operation is a function of the C library."""
    return bool(_library_name(as_ufunc(op.function))) and small_power(op) is None


def _library_name(ufunc: np.ufunc | None) -> str:
    """The C library's name of a ufunc that no instruction computes, else an empty string."""
    record = record_of(ufunc)
    return record.libm if record.cost is Cost.LIBRARY else ""


def library_name(function: Any) -> str | None:
    """The C library's name of a function of one number, of NumPy or :mod:`math`, or None."""
    ufunc = as_ufunc(function)
    if ufunc is None and getattr(function, "__module__", "") == "math":
        name: str = function.__name__
        return name if libmvec.ARGUMENTS.get(name) == 1 else None
    return (_library_name(ufunc) or None) if ufunc is not None and ufunc.nin == 1 else None


def has_vector_form(op: Apply) -> bool:
    """Whether an elementwise operation on arrays and numbers can be computed with vectors."""
    if op.kwargs or not libmvec.register_bits():
        return False
    dtype = op.outputs[0].type.dtype
    if not all(_type_of(a).dtype in _READABLE for a in op.args):
        return False
    ufunc = as_ufunc(op.function)
    if ufunc is None:
        try:
            known = op.function in _SELECTING
        except TypeError:
            return False
        return known and dtype in _FLOATS and len(op.args) == _SELECTING[op.function]
    if len(op.args) != ufunc.nin:
        return False
    try:
        *inner, outer = _loop(op)
    except CannotCompileError:
        return False
    if len(set(inner)) != 1 or outer != dtype:
        return False
    if inner[0] == _BOOL:
        return (record_of(ufunc).on_bools or ufunc) in _BITS or ufunc in (np.logical_not, np.invert)
    if inner[0] not in _FLOATS:
        return False
    if is_transcendental(op):
        name, size = _library_name(ufunc), inner[0].itemsize
        return libmvec.symbol(name, size, lanes_of(inner[0])) is not None
    if record_of(ufunc).simd or ufunc in (np.square, np.reciprocal, np.power):
        return True
    signed = (Algebra.NEGATION, Algebra.IDENTITY)
    return (ufunc in SYMBOLS and ufunc not in _BITS) or record_of(ufunc).algebra in signed


def _type_of(a: Operand) -> Number:
    """The type of an operand's elements."""
    if is_array(a):
        return numpy_number(a.type.dtype)
    t = type_of_operand(a)
    assert isinstance(t, Number)
    return t


def convert(x: Elements, dtype: np.dtype[Any]) -> Term:
    """An operand as another dtype."""
    if not x.is_vector:
        return cast(x.term, dtype)
    if x.term.type.dtype == dtype:
        return x.term
    wanted = numpy_number(dtype)
    if dtype == _BOOL:
        return Term(f"{x.term.at(1)} != 0", 0, wanted)
    return Term(f"vector_{dtype}({x.term.text})", ATOM, wanted)


def vector_term(op: Apply, given: Sequence[Elements], atom: Callable[[Term], Term]) -> Term:
    """An operation that has a vector form, on W elements.

    ``atom`` names a term, so that it may be written twice.
    """
    dtype = op.outputs[0].type.dtype
    vector = functools.partial(Term, type=numpy_number(dtype))
    if op.function is np.where:
        condition = convert(given[0], _BOOL)
        a, b = (convert(x, dtype) for x in given[1:])
        return vector(f"vector_where({condition.text}, {a.text}, {b.text})", ATOM)
    if op.function is np.clip:
        x, low, high = (convert(x, dtype).text for x in given)
        return vector(f"vector_minimum(vector_maximum({x}, {low}), {high})", ATOM)
    if op.function is scale_lanes:
        d, lanes = (convert(x, dtype).text for x in given)
        return vector(f"vector_scale({d}, {lanes})", ATOM)
    if op.function is with_derivative_of:
        return convert(given[0], dtype)
    ufunc = as_ufunc(op.function)
    assert ufunc is not None
    terms = [convert(x, d) for x, d in zip(given, _loop(op), strict=False)]
    first = terms[0]
    power = 2 if ufunc is np.square else small_power(op)
    if power is not None:
        first = atom(first)
        return vector(" * ".join([first.text] * power), 6)
    infix = SYMBOLS.get(record_of(ufunc).on_bools or ufunc)
    if infix is not None:
        symbol, level = infix
        left, right = first.at(level + (level == 0)), terms[1].at(level + 1)
        return vector(f"{left} {symbol} {right}", level)
    if ufunc is np.negative:
        return vector(f"-{first.at(7)}", 7)
    if ufunc is np.positive:
        return first
    if ufunc is np.reciprocal:
        return vector(f"{literal(1.0, first.type)} / {first.at(7)}", 6)
    if ufunc in (np.logical_not, np.invert):
        return vector(f"~{first.at(7)}", 7)
    name = _library_name(ufunc) or record_of(ufunc).simd
    return vector(f"vector_{name}({', '.join(t.text for t in terms)})", ATOM)
