"""Indices of running extremes, W elements at a time, for the Numba source."""

from __future__ import annotations

import numpy as np

from fwdad.codegen.loops.arrays.functions import as_array, handles
from fwdad.codegen.loops.notation import subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.terms.number_terms import numpy_number
from fwdad.codegen.loops.vectors.vector_terms import lanes_of
from fwdad.codegen.runtime import libmvec
from fwdad.ir.ops import Apply, Operand
from fwdad.ir.primitives.running_extremes import place_of_extreme, place_of_larger, place_of_smaller

_SIGNS = {">", "<"}  # comparisons that have vector functions


def _place(
    w: Parts, op: Apply, sign: str, a: Operand, begin: Operand, start: Operand, stop: Operand,
    axis: int, others: tuple[Operand, ...],
) -> str:  # fmt: skip
    value = as_array(w, a)
    dtype = value.type.dtype
    number = w.operands.atom(w.operands.number(begin))
    first, last = (w.operands.atom(w.operands.term(x)).text for x in (start, stop))
    place, row = w.names.temporary("place"), w.names.temporary("row")
    w.code.line(f"{place} = -1", op)
    w.code.line(f"if {first} < {last}:")
    with w.code.indented():
        index = [w.operands.index_text(i) for i in others]
        index.insert(axis, f"{first}:{last}")
        w.code.line(f"{row} = {w.operands.array(value)}[{subscript(index)}]")
        n = f"{row}.shape[0]"
        w.code.line(f"if {n} != {last} - {first}:")
        # the NumPy program reports which
        w.code.line("    raise IndexError('index is out of bounds')")
        (k,) = w.loops.index_names(1)
        fits = sign in _SIGNS and axis == value.type.ndim - 1
        if fits and dtype == np.float64 and libmvec.register_bits():
            _by_vectors(w, sign, w.operands.stored(number, dtype), (place, row, k))
        else:
            best, item = (w.names.temporary(t, numpy_number(dtype)) for t in ("best", "item"))
            w.code.line(f"{best} = {w.operands.stored(number, dtype)}")
            w.code.line(f"for {k} in range({n}):")
            w.code.line(f"    {item} = {row}[{k}]")
            negation, _, compared = sign.rpartition(" ")
            w.code.line(f"    if {negation} {item} {compared} {best}:")
            w.code.line(f"        {best} = {item}")
            w.code.line(f"        {place} = {k}")
        w.code.line(f"if {place} >= 0:")
        w.code.line(f"    {place} += {first}")
    return place


def _by_vectors(w: Parts, sign: str, begin: str, names: tuple[str, str, str]) -> None:
    """Write a search for an extreme in a row of doubles; the index stays negative if it fails."""
    place, row, k = names
    width = lanes_of(np.dtype(np.float64))
    bests, items, places, hit = (w.names.temporary(t) for t in ("bests", "items", "places", "hit"))
    name = "vector_place_of_largest" if sign == ">" else "vector_place_of_smallest"
    lines = [
        f"{bests} = vector_filled({width}, {begin})",
        f"{places} = vector_filled({width}, {-width}.0)",  # negative in each of the W lanes
        f"for {k} in range(0, {row}.shape[0], {width}):",
        f"    {items} = vector_read({width}, {row}.shape[0], {row}, {k})",
        f"    {hit} = {items} {sign} {bests}",
        f"    {bests} = vector_where({hit}, {items}, {bests})",
        f"    {places} = vector_where({hit}, float({k}), {places})",
        f"{place} = {name}({bests}, {places})",
    ]
    for line in lines:
        w.draft.vector_line(line)


@handles(place_of_larger)
def _larger(w: Parts, op, a, begin, start, stop, axis, *others):
    return _place(w, op, ">", a, begin, start, stop, axis, others)


@handles(place_of_smaller)
def _smaller(w: Parts, op, a, begin, start, stop, axis, *others):
    return _place(w, op, "<", a, begin, start, stop, axis, others)


@handles(place_of_extreme)
def _extreme(w: Parts, op, a, begin, start, stop, axis, comparison, *others):
    return _place(w, op, comparison, a, begin, start, stop, axis, others)
