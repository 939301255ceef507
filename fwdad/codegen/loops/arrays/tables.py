"""Look-ups, convolutions, distinct elements and repeats, for the Numba source."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.codegen.loops.arrays.functions import FLOAT64, as_array, handles, reading
from fwdad.codegen.loops.arrays.products import as_dtype
from fwdad.codegen.loops.notation import length_text, subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.terms.number_terms import Term, cast, numpy_number
from fwdad.ir.notation import ATOM
from fwdad.ir.ops import Operand, is_array

_INT = np.dtype(np.int64)


def _of_each(w: Parts, op: Any, v: Operand, call: Any) -> str | None:
    """Apply a scalar function to each element of an array; ``call(term)`` is its source."""
    out = op.outputs[0]
    if not is_array(v):
        text = call(w.operands.atom(w.operands.number(v)))
        return w.operands.stored(Term(text, ATOM, numpy_number(out.type.dtype)), out.type.dtype)
    with reading(w, v) as (value, lengths, steps):
        if not is_array(out):  # of a 0-d array
            text = call(w.elements.element(value, [], steps))
            return w.operands.stored(Term(text, ATOM, numpy_number(out.type.dtype)), out.type.dtype)
        w.arrays.new(out, lengths)
        with w.loops.nest(lengths, inner=True) as index:
            name, item = w.names.name(out), call(w.elements.element(value, index, steps))
            w.code.line(f"{name}[{subscript(index)}] = {item}")
    return None


def _vector(w: Parts, a: Operand, kinds: str) -> Any:
    a = as_array(w, a)
    if a.type.ndim != 1 or a.type.dtype.kind not in kinds:
        raise TypeError("of an array that is no vector, or whose dtype does not compile")
    return a


def _is_real(w: Parts, *xs: Operand) -> None:
    """Refuse numbers that have no order."""
    alone = [x for x in xs if not isinstance(x, (list, tuple))]
    if any(w.operands.type_of(x).dtype.kind not in "iuf" for x in alone):
        raise TypeError("of numbers without an order")


@handles(np.searchsorted)
def _searchsorted(w: Parts, op, a, v, side="left"):
    _is_real(w, v)
    table, right = w.operands.array(_vector(w, a, "iuf")), side == "right"
    return _of_each(w, op, v, lambda x: f"{w.helpers.use('search')}({table}, {x.text}, {right})")


@handles(np.digitize)
def _digitize(w: Parts, op, x, bins, right=False):
    _is_real(w, x)
    table, way = w.operands.array(_vector(w, bins, "iuf")), w.names.temporary("way")
    w.code.line(f"{way} = {w.helpers.use('direction')}({table})", op)
    call = f"{w.helpers.use('bin_of')}({table}, {{}}, {bool(right)}, {way})"
    return _of_each(w, op, x, lambda item: call.format(item.text))


@handles(np.interp)
def _interp(w: Parts, op, x, xp, fp, left=None, right=None):
    _is_real(w, x)
    knots, values = (as_dtype(w, _vector(w, a, "iuf"), FLOAT64) for a in (xp, fp))
    w.code.line(f"{w.helpers.use('check_table')}({knots}, {values})", op)
    ends = []
    for end, at in ((left, "0"), (right, f"{values}.shape[0] - 1")):
        if end is None:
            ends.append(f"{values}[{at}]")
        else:
            ends.append(w.operands.atom(cast(w.operands.number(end), FLOAT64)).text)
    call = f"{w.helpers.use('interpolate')}({{}}, {knots}, {values}, {', '.join(ends)})"
    return _of_each(w, op, x, lambda item: call.format(cast(item, FLOAT64).text))


_MODES = {"valid": 0, "same": 1, "full": 2, 0: 0, 1: 1, 2: 2}


@handles(np.convolve, np.correlate)
def _convolve(w: Parts, op, a, v, mode=None):
    turned = op.function is not np.convolve
    mode = ("valid" if turned else "full") if mode is None else mode
    dtype = op.outputs[0].type.dtype
    if mode not in _MODES or dtype.kind not in "fc":
        raise TypeError(f"of {dtype}, or in an unknown mode")
    m, n = (as_dtype(w, _vector(w, x, "biufc"), dtype) for x in (a, v))
    start, length = w.names.temporary("start"), w.names.temporary("length")
    text = f"{m}.shape[0], {n}.shape[0], {_MODES[mode]}, {turned}"
    w.code.line(f"{start}, {length} = {w.helpers.use('part_of_full')}({text})", op)
    if turned:
        n = f"np.conj({n})[::-1]" if dtype.kind == "c" else f"{n}[::-1]"
    return f"{w.helpers.use('convolved')}({m}, {n}, {start}, {length})"


@handles(np.unique)
def _unique(
    w: Parts, op, ar, return_index=False, return_inverse=False, return_counts=False, axis=None,
    *, equal_nan=True, sorted=True,  # noqa: A002 (NumPy's name)
):  # fmt: skip
    a = _vector(w, ar, "biuf")
    if axis not in (None, 0) or not sorted:
        raise TypeError("along an axis, or unsorted")
    parts = [w.names.temporary(t) for t in ("values", "first", "inverse", "counts")]
    call = f"{w.helpers.use('distinct')}({w.operands.array(a)}, {bool(equal_nan)})"
    w.code.line(f"{', '.join(parts)} = {call}", op)
    flags = (True, return_index, return_inverse, return_counts)
    return ", ".join(part for part, flag in zip(parts, flags, strict=True) if flag)


@handles(np.repeat)
def _repeat(w: Parts, op, a, repeats, axis=None):
    """``np.repeat`` by an array of counts; a single count is decomposed before."""
    a, counts = as_array(w, a), _vector(w, repeats, "iu")
    if axis not in (None, 0) or a.type.ndim != 1:
        raise TypeError("along an axis")
    source, by, name = w.operands.array(a), w.operands.array(counts), w.names.name(op.outputs[0])
    n = length_text(a.type.shape[0], source, 0)
    w.code.line(f"{w.helpers.use('equal_length')}({by}.shape[0], {n})", op)
    total, (i, j) = w.names.temporary("total"), w.loops.index_names(2)
    w.code.line(f"{total} = 0")
    w.code.line(f"for {i} in range({n}):")
    w.code.line(f"    if {by}[{i}] < 0:")
    w.code.line("        raise ValueError('repeats may not contain negative values.')")
    w.code.line(f"    {total} += {by}[{i}]")
    w.arrays.new(op.outputs[0], [total])
    w.code.line(f"{total} = 0")
    w.code.line(f"for {i} in range({n}):")
    w.code.line(f"    for {j} in range({by}[{i}]):")
    w.code.line(f"        {name}[{total} + {j}] = {source}[{i}]")
    w.code.line(f"    {total} += {by}[{i}]")
