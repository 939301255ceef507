"""Sums, extremes and other reductions as loops, for the Numba source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fwdad.codegen.loops import parallel_sums
from fwdad.codegen.loops.arrays.functions import FLOAT64, as_array, axes_of, handles, reading
from fwdad.codegen.loops.notation import lengths_of, subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.terms.number_terms import Term, cast, literal, numpy_number
from fwdad.codegen.loops.terms.numpy_terms import numpy_term
from fwdad.codegen.loops.vectors.vector_rows import Rows, add_rows, sum_of_row
from fwdad.ir.notation import ATOM
from fwdad.ir.ops import Apply, Operand
from fwdad.ir.types import Number


class _Fold:
    """A reduction: its identity, and how an element joins the accumulator."""

    def __init__(self, ufunc: np.ufunc, identity: Any) -> None:
        self.ufunc = ufunc
        self.identity = identity

    def step(
        self, w: Parts, place: str, element: Term, dtype: np.dtype[Any], *, ordered: bool = False
    ) -> str:
        """The line that joins an element; sums may be reassociated unless ``ordered``."""
        item = cast(element, dtype)
        if self.ufunc is np.add and dtype.kind == "f" and not ordered:
            w.helpers.note(item.text)
            return f"{place} = {w.helpers.use('summed')}({place}, {item.text})"
        term = numpy_term(self.ufunc, [Term(place, ATOM, numpy_number(dtype)), item])
        return f"{place} = {w.operands.stored(term, dtype)}"


SUM, PROD = _Fold(np.add, 0), _Fold(np.multiply, 1)
_ANY, _ALL = _Fold(np.logical_or, False), _Fold(np.logical_and, True)
WIDE = {np.dtype(np.float32): FLOAT64, np.dtype(np.complex64): np.dtype(complex)}


def count_of(lengths: Sequence[str], axes: Sequence[int]) -> str:
    """How many elements are reduced to one, as source."""
    return " * ".join(lengths[k] for k in axes) or "1"


def _reduce(
    w: Parts, op: Apply, fold: _Fold, a: Operand, axis: Any, keepdims: bool, mean: bool = False,
    power: int = 1,
) -> str | None:  # fmt: skip
    out = op.outputs[0]
    dtype = out.type.dtype
    wide = WIDE.get(dtype, dtype)
    with reading(w, a) as (value, lengths, steps):
        ndim = value.type.ndim
        axes = axes_of(axis, ndim)
        remaining = [k for k in range(ndim) if k not in axes]
        count = count_of(lengths, axes)
        element = lambda index: _power(w, w.elements.element(value, index, steps), power)  # noqa: E731
        start = literal(fold.identity, numpy_number(wide))
        if not remaining:
            total = w.names.temporary("total", numpy_number(wide))
            first = len(w.code.lines)
            w.code.line(f"{total} = {start}")
            with w.loops.nest(lengths, inner=True) as index:
                w.code.line(fold.step(w, total, element(index), wide))
            spread(w, first, fold, wide)
            finished = _finish(w, Term(total, ATOM, numpy_number(wide)), count, dtype, mean)
            if isinstance(out.type, Number):
                return finished
            name = w.names.name(out)
            w.arrays.new(out, ["1"] * out.type.ndim)
            w.code.line(f"{name}[{subscript(['0'] * out.type.ndim)}] = {finished}")
            return None
        rows = Rows(w, value, lengths, steps)
        _Along(op, fold, axes, remaining, keepdims, count, mean).write(w, rows, element, power)
    return None


class _Along:
    """A reduction along some of the axes: the result is an array.

    ``axes`` are reduced, ``kept`` are the others; with ``mean`` the sum is divided by ``count``.
    """

    def __init__(
        self, op: Apply, fold: _Fold, axes: Sequence[int], kept: Sequence[int], keepdims: bool,
        count: str, mean: bool,
    ) -> None:  # fmt: skip
        self.op = op
        self.fold = fold
        self.axes = axes
        self.kept = kept
        self.there = [k for k in range(len(axes) + len(kept)) if keepdims or k in kept]
        self.count = count
        self.mean = mean
        self.dtype = op.outputs[0].type.dtype

    def write(self, w: Parts, rows: Rows, element: Any, power: int) -> None:
        """Write the loops over what is read."""
        out, lengths = self.op.outputs[0], rows.lengths
        ndim = len(lengths)
        index, name = w.loops.index_names(ndim, inner=True), w.names.name(out)
        place = subscript(["0" if k in self.axes else index[k] for k in self.there])
        adds = self.fold is SUM and bool(self.axes) and self.dtype == FLOAT64
        vectors = adds and rows.fits
        over_rows = vectors and self.kept[-1] == ndim - 1
        shape = ["1" if k in self.axes else lengths[k] for k in self.there]
        w.arrays.new(out, shape, zeros=over_rows and len(self.axes) == 1)
        if over_rows:
            add_rows(rows, name, place, index, self.axes, power)
            if self.mean:
                with w.loops.over(index, lengths, self.kept):
                    term = self._made(w, f"{name}[{place}]", self.dtype)
                    w.code.line(f"{name}[{place}] = {term}")
            return
        wide = WIDE.get(self.dtype, self.dtype)
        first = len(w.code.lines)
        with w.loops.over(index, lengths, self.kept):
            total = w.names.temporary("total", numpy_number(wide))
            if vectors and ndim > 2 and power == 1:
                sum_of_row(rows, total, index, self.axes)
            else:
                w.code.line(f"{total} = {literal(self.fold.identity, numpy_number(wide))}")
                with w.loops.over(index, lengths, self.axes):
                    w.code.line(self.fold.step(w, total, element(index), wide))
            w.code.line(f"{name}[{place}] = {self._made(w, total, wide)}")
        if w.loops.spreads and lengths:
            parallel_sums.spread_rows(w.loops, first)

    def _made(self, w: Parts, text: str, dtype: np.dtype[Any]) -> str:
        term = Term(text, ATOM, numpy_number(dtype))
        return _finish(w, term, self.count, self.dtype, self.mean)


def spread(w: Parts, start: int, fold: _Fold, dtype: np.dtype[Any]) -> None:
    """Let a long reduction to a number, written from line ``start`` on, use several cores."""
    if w.loops.spreads and len(w.code.lines) - start > 2:
        total = w.code.lines[start].partition(" = ")[0].strip()
        part = Term("partial[part]", ATOM, numpy_number(dtype))
        parallel_sums.spread_total(w.loops, start, fold.step(w, total, part, dtype))


def _power(_w: Parts, term: Term, power: int) -> Term:
    if power == 1:
        return term
    size = numpy_term(np.absolute, [term]) if term.kind == "c" else term
    return numpy_term(np.multiply, [size, size])


def _finish(w: Parts, total: Term, count: str, dtype: np.dtype[Any], mean: bool) -> str:
    if not mean:
        return w.operands.stored(total, dtype)
    n = Term(f"float({count})", ATOM, numpy_number(FLOAT64))
    return w.operands.stored(numpy_term(np.divide, [total, n]), dtype)


@handles(np.sum, np.add.reduce)
def _sum(w: Parts, op, a, axis=None, dtype=None, keepdims=False):  # noqa: ARG001 (the output has it)
    if op.function == np.add.reduce and "axis" not in op.kwargs and len(op.args) < 2:
        axis = 0
    return _reduce(w, op, SUM, a, axis, keepdims)


@handles(np.prod)
def _prod(w: Parts, op, a, axis=None, dtype=None, keepdims=False):  # noqa: ARG001
    return _reduce(w, op, PROD, a, axis, keepdims)


@handles(np.mean)
def _mean(w: Parts, op, a, axis=None, dtype=None, keepdims=False):  # noqa: ARG001
    return _reduce(w, op, SUM, a, axis, keepdims, mean=True)


@handles(np.any)
def _any(w: Parts, op, a, axis=None, keepdims=False):
    return _reduce(w, op, _ANY, a, axis, keepdims)


@handles(np.all)
def _all(w: Parts, op, a, axis=None, keepdims=False):
    return _reduce(w, op, _ALL, a, axis, keepdims)


@handles(np.var)
def _var(w: Parts, op, a, axis=None, dtype=None, ddof=0, keepdims=False):  # noqa: ARG001
    return w.operands.stored(_variance(w, a, axis, ddof, keepdims), op.outputs[0].type.dtype)


@handles(np.std)
def _std(w: Parts, op, a, axis=None, dtype=None, ddof=0, keepdims=False):  # noqa: ARG001
    variance = _variance(w, a, axis, ddof, keepdims)
    return w.operands.stored(numpy_term(np.sqrt, [variance]), op.outputs[0].type.dtype)


def _variance(w: Parts, a, axis, ddof, keepdims):
    value = as_array(w, a)
    if (
        len(axes_of(axis, value.type.ndim)) != value.type.ndim
        or keepdims
        or value.type.dtype.kind == "c"
    ):
        raise TypeError("along an axis")
    name = w.operands.array(value)
    lengths = lengths_of(value, name)
    mean, total = (w.names.temporary(t, numpy_number(FLOAT64)) for t in ("mean", "total"))
    count = count_of(lengths, range(len(lengths)))
    first = len(w.code.lines)
    w.code.line(f"{mean} = 0.0")
    with w.loops.nest(lengths, inner=True) as index:
        w.code.line(SUM.step(w, mean, w.elements.element(value, index), FLOAT64))
    spread(w, first, SUM, FLOAT64)
    w.code.line(f"{mean} = {w.helpers.use('divide')}({mean}, float({count}))")
    first = len(w.code.lines)
    w.code.line(f"{total} = 0.0")
    with w.loops.nest(lengths, inner=True):
        square = f"({w.elements.element(value, index).text} - {mean})**2"
        w.code.line(SUM.step(w, total, Term(square, ATOM, numpy_number(FLOAT64)), FLOAT64))
    spread(w, first, SUM, FLOAT64)
    text = f"{w.helpers.use('divide')}({total}, float({count} - {w.operands.text(ddof, ATOM)}))"
    return Term(text, ATOM, numpy_number(FLOAT64))


@handles(np.count_nonzero)
def _count_nonzero(w: Parts, op, a):
    value = as_array(w, a)
    name = w.operands.array(value)
    total = w.names.temporary("count")
    w.code.line(f"{total} = 0")
    with w.loops.nest(lengths_of(value, name), inner=True) as index:
        w.code.line(f"if {w.elements.element(value, index).text} != 0:")
        w.code.line(f"    {total} += 1")
    return w.operands.stored(Term(total, ATOM, numpy_number(np.int64)), op.outputs[0].type.dtype)


def _cumulative(w: Parts, op, fold, a, axis):
    value = as_array(w, a)
    if axis is None and value.type.ndim != 1:
        raise TypeError("of a flattened array")
    out = op.outputs[0]
    dtype, ndim = out.type.dtype, value.type.ndim
    (at,) = axes_of(axis if axis is not None else 0, ndim)
    name, source = w.names.name(out), w.operands.array(value)
    lengths = lengths_of(value, source)
    w.arrays.new(out, lengths)
    index = w.loops.index_names(ndim, inner=True)
    total = w.names.temporary("total", numpy_number(dtype))
    with w.loops.over(index, lengths, [k for k in range(ndim) if k != at]):
        w.code.line(f"{total} = {literal(fold.identity, numpy_number(dtype))}")
        with w.loops.over(index, lengths, [at]):
            w.code.line(fold.step(w, total, w.elements.element(value, index), dtype, ordered=True))
            w.code.line(f"{name}[{subscript(index)}] = {total}")


@handles(np.cumsum)
def _cumsum(w: Parts, op, a, axis=None, dtype=None):  # noqa: ARG001
    return _cumulative(w, op, SUM, a, axis)


@handles(np.cumprod)
def _cumprod(w: Parts, op, a, axis=None, dtype=None):  # noqa: ARG001
    return _cumulative(w, op, PROD, a, axis)
