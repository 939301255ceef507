"""Look-ups, convolutions, distinct elements and repeats, for the Numba source."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.codegen.loops.arrays.functions import FLOAT64, as_array, handles, length_text, reading
from fwdad.codegen.loops.arrays.products import as_dtype
from fwdad.codegen.loops.number_terms import Term, cast, numpy_number
from fwdad.ir.notation import ATOM
from fwdad.ir.ops import Operand, is_array

Writer = Any  # the NumbaWriter: it knows this module, not the other way round

_INT = np.dtype(np.int64)


def _of_each(w: Writer, op: Any, v: Operand, call: Any) -> str | None:
    """Apply a scalar function to each element of an array; ``call(term)`` is its source."""
    out = op.outputs[0]
    if not is_array(v):
        return w.stored(Term(call(w.atom(w.number(v))), ATOM, numpy_number(out.type.dtype)),
                        out.type.dtype)  # fmt: skip
    with reading(w, v) as (value, lengths, steps):
        if not is_array(out):  # of a 0-d array
            text = call(w.element(value, [], steps))
            return w.stored(Term(text, ATOM, numpy_number(out.type.dtype)), out.type.dtype)
        w.new_array(out, lengths)
        index = w.open_loops(lengths)
        w.line(f"{w.name(out)}[{w.at(index)}] = {call(w.element(value, index, steps))}")
        w.close_loops(index)
    return None


def _vector(w: Writer, a: Operand, kinds: str) -> Any:
    a = as_array(w, a)
    if a.type.ndim != 1 or a.type.dtype.kind not in kinds:
        message = "of such arrays"
        raise TypeError(message)
    return a


def _is_real(w: Writer, *xs: Operand) -> None:
    """Refuse numbers that have no order."""
    if any(w.type_of(x).dtype.kind not in "iuf" for x in xs if not isinstance(x, (list, tuple))):
        message = "of such numbers"
        raise TypeError(message)


@handles(np.searchsorted)
def _searchsorted(w, op, a, v, side="left"):
    _is_real(w, v)
    table, right = w.array(_vector(w, a, "iuf")), side == "right"
    return _of_each(w, op, v, lambda x: f"{w.help('search')}({table}, {x.text}, {right})")


@handles(np.digitize)
def _digitize(w, op, x, bins, right=False):
    _is_real(w, x)
    table, way = w.array(_vector(w, bins, "iuf")), w.temporary("way")
    w.line(f"{way} = {w.help('direction')}({table})", op)
    call = f"{w.help('bin_of')}({table}, {{}}, {bool(right)}, {way})"
    return _of_each(w, op, x, lambda item: call.format(item.text))


@handles(np.interp)
def _interp(w, op, x, xp, fp, left=None, right=None):
    _is_real(w, x)
    knots, values = (as_dtype(w, _vector(w, a, "iuf"), FLOAT64) for a in (xp, fp))
    w.line(f"{w.help('check_table')}({knots}, {values})", op)
    ends = []
    for end, at in ((left, "0"), (right, f"{values}.shape[0] - 1")):
        if end is None:
            ends.append(f"{values}[{at}]")
        else:
            ends.append(w.atom(cast(w.number(end), FLOAT64)).text)
    call = f"{w.help('interpolate')}({{}}, {knots}, {values}, {', '.join(ends)})"
    return _of_each(w, op, x, lambda item: call.format(cast(item, FLOAT64).text))


_MODES = {"valid": 0, "same": 1, "full": 2, 0: 0, 1: 1, 2: 2}


@handles(np.convolve, np.correlate)
def _convolve(w, op, a, v, mode=None):
    turned = op.function is not np.convolve
    mode = ("valid" if turned else "full") if mode is None else mode
    dtype = op.outputs[0].type.dtype
    if mode not in _MODES or dtype.kind not in "fc":
        message = f"of {dtype}"
        raise TypeError(message)
    m, n = (as_dtype(w, _vector(w, x, "biufc"), dtype) for x in (a, v))
    start, length = w.temporary("start"), w.temporary("length")
    given = f"{m}.shape[0], {n}.shape[0], {_MODES[mode]}, {turned}"
    w.line(f"{start}, {length} = {w.help('part_of_full')}({given})", op)
    if turned:
        n = f"np.conj({n})[::-1]" if dtype.kind == "c" else f"{n}[::-1]"
    return f"{w.help('convolved')}({m}, {n}, {start}, {length})"


@handles(np.unique)
def _unique(
    w, op, ar, return_index=False, return_inverse=False, return_counts=False, axis=None,
    *, equal_nan=True, sorted=True,  # noqa: A002 (NumPy's name)
):  # fmt: skip
    a = _vector(w, ar, "biuf")
    if axis not in (None, 0) or not sorted:
        message = "of this kind"
        raise TypeError(message)
    parts = [w.temporary(t) for t in ("values", "first", "inverse", "counts")]
    w.line(f"{', '.join(parts)} = {w.help('distinct')}({w.array(a)}, {bool(equal_nan)})", op)
    flags = (True, return_index, return_inverse, return_counts)
    return ", ".join(part for part, flag in zip(parts, flags, strict=True) if flag)


@handles(np.repeat)
def _repeat(w, op, a, repeats, axis=None):
    """``np.repeat`` by an array of counts; a single count is decomposed before."""
    a, counts = as_array(w, a), _vector(w, repeats, "iu")
    if axis not in (None, 0) or a.type.ndim != 1:
        message = "along an axis"
        raise TypeError(message)
    source, by, name = w.array(a), w.array(counts), w.name(op.outputs[0])
    n = length_text(a.type.shape[0], source, 0)
    w.line(f"{w.help('equal_length')}({by}.shape[0], {n})", op)
    total, (i, j) = w.temporary("total"), w.index_names(2)
    w.line(f"{total} = 0")
    w.line(f"for {i} in range({n}):")
    w.line(f"    if {by}[{i}] < 0:")
    w.line("        raise ValueError('repeats may not contain negative values.')")
    w.line(f"    {total} += {by}[{i}]")
    w.line(f"{name} = {w.empty([total], a.type.dtype)}")
    w.line(f"{total} = 0")
    w.line(f"for {i} in range({n}):")
    w.line(f"    for {j} in range({by}[{i}]):")
    w.line(f"        {name}[{total} + {j}] = {source}[{i}]")
    w.line(f"    {total} += {by}[{i}]")
