"""Reductions with vectors, for the Numba source: extremes along rows, sums over them.

LLVM keeps comparisons of floats, which may be NaN, in their order, one at a time; and it sums over
axes other than the last one element at a time. Here W neighbours are taken at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fwdad.codegen.loops.notation import subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.terms.number_terms import Term, constant, numpy_number
from fwdad.codegen.loops.terms.numpy_terms import as_ufunc
from fwdad.codegen.loops.vectors.vector_terms import (
    Elements,
    has_vector_form,
    lanes_of,
    vector_term,
)
from fwdad.ir.notation import ATOM
from fwdad.ir.ops import Apply, Operand, Value, is_array

_FLOATS = {np.dtype(np.float64), np.dtype(np.float32)}
_SHORT = 64  # elements of rows whose sums stay in registers
_FEWEST = 4  # elements of a last axis whose length is known, for which a vector is worth while


class Rows:
    """An array, or a deferred value, whose last axis is read W elements at a time.

    ``value`` must have been prepared; ``steps`` are those of axes that may repeat.
    """

    def __init__(
        self, w: Parts, value: Value, lengths: Sequence[str], steps: dict[tuple[str, int], str]
    ) -> None:
        self.w = w
        self.line = w.draft.vector_line
        self.value = value
        self.lengths = lengths
        self.stop = lengths[-1] if lengths else ""
        self.dtype = value.type.dtype
        self.steps = steps
        self.width = lanes_of(self.dtype) if self.dtype in _FLOATS else 0

    @property
    def fits(self) -> bool:
        """Whether all of it has a vector form."""
        if (
            not self.width
            or not self.lengths
            or self.w.loops.spreads
            or self.value in self.w.registers.lanes
        ):
            return False
        last = self.value.type.shape[-1]
        if isinstance(last, int) and last < _FEWEST:
            return False
        return self._is_vector(self.value)

    def _is_vector(self, a: Operand) -> bool:
        """Whether an operand is W elements, not a number; False also if it has no vector form."""
        if a in self.w.elements.lazy:
            op = self.w.elements.lazy[a]
            return self._has_form(op) and any(map(self._is_vector, filter(is_array, op.args)))
        return a.type.ndim > 0 and a.type.shape[-1] != 1

    def _has_form(self, op: Apply) -> bool:
        if not has_vector_form(op):
            return False
        arrays = list(filter(is_array, op.args))
        waiting = [self.w.elements.lazy[a] for a in arrays if a in self.w.elements.lazy]
        ends = [
            (self.w.operands.array(a), a.type.ndim - 1)
            for a in arrays
            if a not in self.w.elements.lazy
        ]
        return not any(end in self.steps for end in ends) and all(map(self._has_form, waiting))

    def at(self, index: Sequence[str]) -> Term:
        """The W elements that begin at an index."""
        return self._elements(self.value, index).term

    def _elements(self, a: Operand, index: Sequence[str]) -> Elements:
        w = self.w
        if not is_array(a):
            term = w.elements.terms.get(a) if isinstance(a, Value) else constant(a)
            return Elements(term if term is not None else w.operands.term(a), False)
        if a in w.elements.lazy:
            op = w.elements.lazy[a]
            terms = [self._elements(x, index) for x in op.args]
            if any(x.is_vector for x in terms):
                return Elements(vector_term(op, terms, self.w.draft.vector_atom), True)
            return Elements(w.elements.element_of(op, index, self.steps), False)
        own = w.elements.index_into(w.operands.array(a), a.type.shape, index, self.steps)
        t = numpy_number(a.type.dtype)
        if not a.type.ndim or a.type.shape[-1] == 1:
            return Elements(Term(f"{w.operands.array(a)}[{subscript(own)}]", ATOM, t), False)
        text = f"vector_read({self.width}, {self.stop}, {w.operands.array(a)}, {subscript(own)})"
        return Elements(Term(text, ATOM, t), True)


def extreme_of_row(
    rows: Rows, ufunc: np.ufunc, of: np.ufunc | None, index: Sequence[str], axes: Sequence[int]
) -> str:
    """Source for the extreme element along the last axis and others; NaN if there is one.

    ``of`` is ``np.absolute``, or None; ``index`` has the indices of all axes.
    """
    w = rows.w
    best, item, odd = (w.names.temporary(name) for name in ("bests", "items", "odd"))

    def element(at: Sequence[str]) -> str:
        text = rows.at(at).text
        return text if of is None else f"vector_abs({text})"

    rows.line(f"{best} = {element(first_of_row(index, axes))}")
    rows.line(f"{odd} = vector_isnan({best})")
    with w.loops.over(index, rows.lengths, axes[:-1]):
        w.code.line(f"for {index[-1]} in range(0, {rows.stop}, {rows.width}):")
        with w.code.indented():
            rows.line(f"{item} = {element(index)}")
            rows.line(f"{odd} = {odd} | vector_isnan({item})")
            sign = ">" if ufunc is np.maximum else "<"
            rows.line(f"{best} = vector_where({item} {sign} {best}, {item}, {best})")
    name = "vector_largest" if ufunc is np.maximum else "vector_smallest"
    w.helpers.vector_functions.add(name)
    return f"{name}({best}, {odd})"


def place_in_row(rows: Rows, sign: str, index: Sequence[str]) -> str:
    """Source for the index of the first extreme of floats along the last axis, or of the first NaN.

    ``sign`` is ``">"`` for the largest.
    """
    w = rows.w
    best, item, where, hit = (
        w.names.temporary(name) for name in ("bests", "items", "places", "hit")
    )
    rows.line(f"{best} = {rows.at([*index[:-1], '0']).text}")
    rows.line(f"{where} = vector_filled({rows.width}, 0.0)")
    w.code.line(f"for {index[-1]} in range(0, {rows.stop}, {rows.width}):")
    other = "<=" if sign == ">" else ">="
    with w.code.indented():
        rows.line(f"{item} = {rows.at(index).text}")
        rows.line(f"{hit} = ~({item} {other} {best}) & ({best} == {best})")  # a NaN is one, too
        rows.line(f"{best} = vector_where({hit}, {item}, {best})")
        rows.line(f"{where} = vector_where({hit}, float({index[-1]}), {where})")
    name = "vector_place_of_largest" if sign == ">" else "vector_place_of_smallest"
    w.helpers.vector_functions.add(name)
    return f"{name}({best}, {where})"


def add_rows(
    rows: Rows, out: str, place: str, index: Sequence[str], axes: Sequence[int], power: int
) -> None:
    """Add up rows of doubles along ``axes``, not the last one, into ``out[place]``.

    Sums of short rows stay in registers: a vector that has just been written is slow to read, more
    so if it is part of one. Long rows of one axis are read in the order of memory.
    ``out`` must be zeros if one axis is reduced; with a ``power`` of 2 squares are added.
    """
    w = rows.w

    def term() -> Term:
        row = rows.at(index)
        if power == 2:
            row = w.draft.vector_atom(row)
            row = row._replace(text=f"{row.text} * {row.text}", level=6)
        return row

    there = f"{rows.stop}, {out}, {place}"
    along = f"for {index[-1]} in range(0, {rows.stop}, {rows.width}):"
    outer = range(len(index) - 1)

    def in_order() -> None:
        with w.loops.over(index, rows.lengths, outer):
            w.code.line(along)
            with w.code.indented():
                new = term()
                old = f"vector_read({rows.width}, {there})"
                rows.line(f"vector_write({old} + {new.at(6)}, {there})")

    def in_registers() -> None:
        total = w.names.temporary("totals")
        with w.loops.over(index, rows.lengths, [k for k in outer if k not in axes]):
            w.code.line(along)
            with w.code.indented():
                rows.line(f"{total} = vector_filled({rows.width}, 0.0)")
                with w.loops.over(index, rows.lengths, axes):
                    rows.line(f"{total} = {total} + {term().at(6)}")
                rows.line(f"vector_write({total}, {there})")

    length = rows.value.type.shape[-1]
    if len(axes) > 1 or (isinstance(length, int) and length <= _SHORT):
        in_registers()
    elif isinstance(length, int):
        in_order()
    else:
        w.code.line(f"if {rows.stop} <= {_SHORT}:")
        with w.code.indented():
            in_registers()
        w.code.line("else:")
        with w.code.indented():
            in_order()


def sum_of_row(rows: Rows, total: str, index: Sequence[str], axes: Sequence[int]) -> None:
    """Add up doubles along the last axis and others into ``total``; LLVM is slow at short rows."""
    w = rows.w
    totals, whole = w.names.temporary("totals"), w.names.temporary("whole")
    rows.line(f"{totals} = vector_filled({rows.width}, 0.0)")
    w.code.line(f"{whole} = {rows.stop} - {rows.stop} % {rows.width}")
    with w.loops.over(index, rows.lengths, axes[:-1]):
        w.code.line(f"for {index[-1]} in range(0, {whole}, {rows.width}):")
        with w.code.indented():
            rows.line(f"{totals} = {totals} + {rows.at(index).at(6)}")
    rows.line(f"{total} = vector_total({totals})")
    with w.loops.over(index, rows.lengths, axes[:-1]):
        w.code.line(f"for {index[-1]} in range({whole}, {rows.stop}):")
        with w.code.indented():
            term = w.elements.element(rows.value, index, rows.steps)
            w.helpers.note(term.text)
            w.code.line(f"{total} = {total} + {term.at(6)}")


def first_of_row(index: Sequence[str], axes: Sequence[int]) -> list[str]:
    """The index of the first element of a row."""
    return ["0" if k in axes else name for k, name in enumerate(index)]


def is_absolute(f: Any) -> bool:
    """Whether a function is the absolute value of floats."""
    return as_ufunc(f) in (np.absolute, np.fabs)
