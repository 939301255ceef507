"""Extremes, sorting and gathering along an axis, as loops for the Numba source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from fwdad.codegen.loops.arrays.functions import as_array, axes_of, handles, reading
from fwdad.codegen.loops.notation import length_text, lengths_of, subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.terms.number_terms import Term, numpy_number
from fwdad.codegen.loops.terms.numpy_terms import numpy_term
from fwdad.codegen.loops.vectors.vector_rows import (
    Rows,
    extreme_of_row,
    first_of_row,
    is_absolute,
    place_in_row,
)
from fwdad.ir.notation import ATOM
from fwdad.ir.ops import Apply, Operand, is_array
from fwdad.ir.types import Number
from fwdad.tangents.sparse import scatter_add


def extreme(
    w: Parts, op: Apply, ufuncs: Sequence[np.ufunc], a: Operand, axis: Any, keepdims: bool,
    of: np.ufunc | None = None, initial: Operand = None,
) -> str | None:  # fmt: skip
    """The largest or smallest element (one ufunc), or their difference (two), along axes.

    ``ufuncs`` are one or two of ``np.maximum`` and ``np.minimum``; ``of`` is applied to each
    element first, and ``initial`` is one more element.
    """
    out = op.outputs[0]
    dtype = out.type.dtype
    with reading(w, a) as (value, lengths, steps):
        ndim = value.type.ndim
        axes = axes_of(axis, ndim)
        if value.type.dtype.kind not in "iuf":
            raise TypeError(f"of {value.type.dtype}")
        start = None
        if initial is not None:
            start = w.operands.stored(w.operands.atom(w.operands.number(initial)), dtype)
        else:
            _not_empty(w, lengths, axes, "zero-size array to reduction operation "
                       f"{ufuncs[0].__name__} which has no identity")  # fmt: skip
        index = w.loops.index_names(ndim)
        bests = [w.names.temporary("best", numpy_number(dtype)) for _ in ufuncs]
        item = w.names.temporary("item", numpy_number(dtype))
        nan = f" or {item} != {item}" if dtype.kind == "f" else ""

        def element(at: Sequence[str]) -> str:
            term = w.elements.element(value, at, steps)
            return w.operands.stored(term if of is None else numpy_term(of, [term]), dtype)

        rows = Rows(w, value, lengths, steps)
        alone = len(ufuncs) == 1 and initial is None and (of is None or is_absolute(of))
        if alone and axes and axes[-1] == ndim - 1 and rows.fits:
            with _rows(w, op, lengths, axes, keepdims) as result:
                return result(extreme_of_row(rows, ufuncs[0], of, index, axes))
        with _rows(w, op, lengths, axes, keepdims) as result:
            w.code.line(f"{' = '.join(bests)} = {start or element(first_of_row(index, axes))}")
            with w.loops.over(index, lengths, axes):
                w.code.line(f"{item} = {element(index)}")
                for best, ufunc in zip(bests, ufuncs, strict=True):
                    w.code.line(f"if {item} {'>' if ufunc is np.maximum else '<'} {best}{nan}:")
                    w.code.line(f"    {best} = {item}")
            return result(w.operands.stored(_difference(bests, dtype), dtype))


def _difference(names: Sequence[str], dtype: np.dtype[Any]) -> Term:
    terms = [Term(name, ATOM, numpy_number(dtype)) for name in names]
    return terms[0] if len(terms) == 1 else numpy_term(np.subtract, terms)


def _not_empty(w: Parts, lengths: Sequence[str], axes: Sequence[int], message: str) -> None:
    for n in (lengths[k] for k in axes):
        if not n.isdigit() or n == "0":
            w.code.line(f"if {n} == 0:")
            w.code.line(f"    raise ValueError({message!r})")


@contextmanager
def _rows(
    w: Parts, op: Apply, lengths: Sequence[str], axes: Sequence[int], keepdims: bool
) -> Iterator[Callable[[str], str | None]]:
    """Open the loops over kept axes; yields a function of a row's result, as source.

    It stores the result, or returns it if the whole result is a number.
    """
    out, ndim = op.outputs[0], len(lengths)
    remaining = [k for k in range(ndim) if k not in axes]
    if not remaining and isinstance(out.type, Number):
        yield lambda text: text
        return
    there = [k for k in range(ndim) if keepdims or k in remaining]
    w.arrays.new(out, ["1" if k in axes else lengths[k] for k in there])
    index = w.loops.index_names(ndim)
    with w.loops.over(index, lengths, remaining):
        at = first_of_row(index, axes)
        place = f"{w.names.name(out)}[{subscript([at[k] for k in there])}]"
        yield lambda text: w.code.line(f"{place} = {text}")


@handles(np.max, np.amax)
def _max(w: Parts, op, a, axis=None, keepdims=False, initial=None):
    return extreme(w, op, [np.maximum], a, axis, keepdims, initial=initial)


@handles(np.min, np.amin)
def _min(w: Parts, op, a, axis=None, keepdims=False, initial=None):
    return extreme(w, op, [np.minimum], a, axis, keepdims, initial=initial)


@handles(np.ptp)
def _ptp(w: Parts, op, a, axis=None, keepdims=False):
    return extreme(w, op, [np.maximum, np.minimum], a, axis, keepdims)


def _position(w: Parts, op, symbol, a, axis, keepdims):
    """The index of the first extreme of a row, or of its first NaN."""
    value = as_array(w, a)
    dtype, ndim = value.type.dtype, value.type.ndim
    if dtype.kind not in "biuf" or ndim == 0:
        raise TypeError(f"of {value.type}")
    axes = axes_of(axis, ndim)
    with reading(w, value) as (value, lengths, steps):
        _not_empty(w, lengths, axes, "attempt to get argmax of an empty sequence")
        best, item = (w.names.temporary(t, numpy_number(dtype)) for t in ("best", "item"))
        where, k = w.names.temporary("where"), w.names.temporary("k")
        index = w.loops.index_names(ndim)
        nan = f" or ({item} != {item} and {best} == {best})" if dtype.kind == "f" else ""
        rows = Rows(w, value, lengths, steps)
        if tuple(axes) == (ndim - 1,) and rows.fits and dtype == np.float64:
            with _rows(w, op, lengths, axes, keepdims) as result:
                return result(place_in_row(rows, symbol, index))
        with _rows(w, op, lengths, axes, keepdims) as result:
            first = w.elements.element(value, first_of_row(index, axes), steps)
            w.code.line(f"{best} = {w.operands.stored(first, dtype)}")
            w.code.line(f"{where} = {k} = 0")
            with w.loops.over(index, lengths, axes):
                text = w.operands.stored(w.elements.element(value, index, steps), dtype)
                w.code.line(f"{item} = {text}")
                w.code.line(f"if {item} {symbol} {best}{nan}:")
                w.code.line(f"    {best} = {item}")
                w.code.line(f"    {where} = {k}")
                w.code.line(f"{k} += 1")
            return result(where)


@handles(np.argmax)
def _argmax(w: Parts, op, a, axis=None, keepdims=False):
    return _position(w, op, ">", a, axis, keepdims)


@handles(np.argmin)
def _argmin(w: Parts, op, a, axis=None, keepdims=False):
    return _position(w, op, "<", a, axis, keepdims)


# -- sorting


def _sorted_rows(w: Parts, op: Apply, a: Operand, axis: Any, call: str) -> str | None:
    """Apply a function to each row along an axis."""
    if not is_array(a) or a.type.dtype.kind not in "iuf" or not isinstance(axis, int):
        raise TypeError("of complex numbers, or along an axis that is no int")
    ((along,), ndim, out) = (axes_of(axis, a.type.ndim), a.type.ndim, op.outputs[0])
    name = w.operands.array(a)
    if ndim == 1:
        return call.format(name)
    lengths = lengths_of(a, name)
    w.arrays.new(out, lengths)
    index = w.loops.index_names(ndim)
    with w.loops.over(index, lengths, [k for k in range(ndim) if k != along]):
        row = subscript([":" if k == along else index[k] for k in range(ndim)])
        w.code.line(f"{w.names.name(out)}[{row}] = {call.format(f'{name}[{row}]')}")
    return None


@handles(np.sort)
def _sort(w: Parts, op, a, axis=-1):
    return _sorted_rows(w, op, a, axis, "np.sort({})")


@handles(np.argsort)
def _argsort(w: Parts, op, a, axis=-1, kind=None):
    if kind not in ("stable", "mergesort"):
        raise TypeError('without kind="stable"')
    return _sorted_rows(w, op, a, axis, "np.argsort({}, kind='mergesort')")


# -- places


@handles(np.take_along_axis)
def _take_along_axis(w: Parts, op, arr, indices, axis=-1):
    out = op.outputs[0]
    arr, indices = as_array(w, arr), as_array(w, indices)
    ndim = arr.type.ndim
    if indices.type.ndim != ndim or indices.type.dtype.kind not in "iu" or axis is None:
        raise TypeError("with indices of another rank, or without an axis")
    (along,) = axes_of(axis, ndim)
    source, where = w.operands.array(arr), w.operands.array(indices)
    lengths = []
    for k, (d, e) in enumerate(zip(arr.type.shape, indices.type.shape, strict=True)):
        own, its = length_text(d, source, k), length_text(e, where, k)
        if k != along and d != e:
            if 1 in (d, e):
                raise TypeError("of lengths that are broadcast")
            w.code.line(f"{w.helpers.use('equal_length')}({own}, {its})")
        lengths.append(its if k == along else own)
    w.arrays.new(out, lengths)
    with w.loops.nest(lengths) as index:
        at = list(index)
        at[along] = f"{where}[{subscript(index)}]"
        w.code.line(f"{w.names.name(out)}[{subscript(index)}] = {source}[{subscript(at)}]")


@handles(scatter_add)
def _scatter_add(w: Parts, op, values, places, size):
    out = op.outputs[0]
    values, places = as_array(w, values), as_array(w, places)
    if values.type.ndim != 1 or places.type.ndim != 1 or places.type.dtype.kind not in "iu":
        raise TypeError("with indices that are no vector of ints")
    m, n = w.operands.array(values), w.operands.array(places)
    w.arrays.new(out, [w.operands.index_text(size)], zeros=True)
    if values.type.shape != places.type.shape:
        w.code.line(f"{w.helpers.use('equal_length')}({m}.shape[0], {n}.shape[0])")
    dtype = out.type.dtype
    (i,) = w.loops.index_names(1)
    place = f"{w.names.name(out)}[{n}[{i}]]"
    old = Term(place, ATOM, numpy_number(dtype))
    term = numpy_term(np.add, [old, w.elements.element(values, [i])])
    w.code.line(f"for {i} in range({n}.shape[0]):")
    w.code.line(f"    {place} = {w.operands.stored(term, dtype)}")
