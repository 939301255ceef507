"""Products and linear systems, for the Numba source."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fwdad.codegen.loops import parallel_sums
from fwdad.codegen.loops.arrays.functions import as_array, fill_new, handles
from fwdad.codegen.loops.arrays.reductions import SUM, WIDE, spread
from fwdad.codegen.loops.arrays.row_sums import Factor, sum_rows
from fwdad.codegen.loops.notation import Leaf, length_text, subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.terms.number_terms import Term, literal, numpy_number
from fwdad.codegen.loops.terms.numpy_terms import numpy_term
from fwdad.ir.analysis.layout import multiplies_few_rows
from fwdad.ir.einsum_letters import written_out
from fwdad.ir.notation import ATOM, tuple_text
from fwdad.ir.ops import Value, is_array
from fwdad.ir.types import ArrayType, Size


def as_dtype(w: Parts, a: Value, dtype: np.dtype[Any]) -> str:
    """The name of an array, converted to a dtype if need be."""
    name = w.operands.array(a)
    if a.type.dtype == dtype:
        return name
    copy = Value(ArrayType(dtype, a.type.shape))
    fill_new(w, copy, a)
    return w.names.name(copy)


def stack(
    w: Parts, *arrays: tuple[str, Value], core: Sequence[int]
) -> tuple[list[str], list[str], list[str]]:
    """A loop over broadcast stacks: its lengths, its indices, and one item of each as source.

    ``core`` are the ranks of the items.
    """
    stacked = [
        (name, v, v.type.shape[: v.type.ndim - rank])
        for (name, v), rank in zip(arrays, core, strict=True)
    ]
    ndim = max(len(shape) for _, _, shape in stacked)
    lengths, steps = w.elements.lengths([Leaf(name, shape, v) for name, v, shape in stacked], ndim)
    index = w.loops.index_names(ndim)
    parts = [
        f"{name}[{subscript(w.elements.index_into(name, shape, index, steps))}]" if shape else name
        for name, _, shape in stacked
    ]
    return lengths, index, parts


@handles(operator.matmul, np.matmul)
def _matmul(w: Parts, op, a, b):
    a, b = as_array(w, a), as_array(w, b)
    if max(a.type.ndim, b.type.ndim) <= 2:
        return _dot(w, op, a, b)
    dtype = op.outputs[0].type.dtype
    if dtype.kind not in "fc" or min(a.type.ndim, b.type.ndim) < 1:
        raise TypeError("of stacks of ints")
    m, n = as_dtype(w, a, dtype), as_dtype(w, b, dtype)
    if b.type.ndim <= 2:
        return _rows_times(a, m, n, b.type.ndim)
    name, ranks = w.names.name(op.outputs[0]), [min(2, a.type.ndim), 2]
    lengths, index, (left, right) = stack(w, (m, a), (n, b), core=ranks)
    rows = [f"{m}.shape[{a.type.ndim - 2}]"] if ranks[0] == 2 else []
    shape = [*lengths, *rows, f"{n}.shape[{b.type.ndim - 1}]"]
    w.arrays.new(op.outputs[0], shape)
    with w.loops.nest(lengths):
        w.code.line(f"np.dot({left}, {right}, {name}[{subscript(index)}])")
    return None


def _rows_times(a: Value, m: str, n: str, rank: int) -> str:
    """A stack of matrices times one matrix or vector, as one product of all their rows."""
    *outer, depth = [f"{m}.shape[{k}]" for k in range(a.type.ndim)]
    rows = f"np.ascontiguousarray({m}).reshape(({' * '.join(outer)}, {depth}))"
    shape = [*outer, f"{n}.shape[1]"] if rank == 2 else outer
    return f"np.dot({rows}, {n}).reshape({tuple_text(shape)})"


@handles(np.dot)
def _dot(w: Parts, op, a, b):
    a, b = as_array(w, a), as_array(w, b)
    ranks = (a.type.ndim, b.type.ndim)
    if not set(ranks) <= {1, 2}:
        raise TypeError(f"of ranks {ranks}")
    out = op.outputs[0]
    dtype = out.type.dtype
    if dtype.kind in "fc" and ranks != (1, 1) and not multiplies_few_rows(op):
        factors = f"{as_dtype(w, a, dtype)}, {as_dtype(w, b, dtype)}"
        if not w.arrays.has_workspace(out):
            return f"np.dot({factors})"
        w.arrays.new(out, [])
        w.code.line(f"np.dot({factors}, {w.names.name(out)})")
        return None
    m, n = w.operands.array(a), w.operands.array(b)
    depth, other = f"{m}.shape[{ranks[0] - 1}]", f"{n}.shape[0]"
    if w.facts.length_of(a.type.shape[-1]) != w.facts.length_of(b.type.shape[0]):
        w.code.line(f"if {depth} != {other}:")
        w.code.line("    raise ValueError('shapes are not aligned for a product')")
        w.facts.note_equal(a.type.shape[-1], b.type.shape[0])
    wide = WIDE.get(dtype, dtype)
    total = w.names.temporary("total", numpy_number(wide))
    i, j, k = w.loops.index_names(3, inner=True)
    lengths = [(i, length_text(a.type.shape[0], m, 0))] if ranks[0] == 2 else []
    lengths += [(j, f"{n}.shape[1]")] if ranks[1] == 2 else []
    left = [i, k] if ranks[0] == 2 else [k]
    right = [k, j] if ranks[1] == 2 else [k]
    if lengths:
        w.arrays.new(out, [length for _, length in lengths])
    for index, length in lengths:
        w.code.line(f"for {index} in range({length}):")
        w.code.indent += 1
    first = len(w.code.lines)
    w.code.line(f"{total} = {literal(0, numpy_number(wide))}")
    w.code.line(f"for {k} in range({depth}):")
    item = numpy_term(np.multiply, [
        Term(f"{m}[{subscript(left)}]", ATOM, numpy_number(a.type.dtype)),
        Term(f"{n}[{subscript(right)}]", ATOM, numpy_number(b.type.dtype)),
    ])  # fmt: skip
    w.code.line("    " + SUM.step(w, total, item, wide))
    result = w.operands.stored(Term(total, ATOM, numpy_number(wide)), dtype)
    if not lengths:
        spread(w, first, SUM, wide)
        return result
    w.code.line(f"{w.names.name(out)}[{subscript([index for index, _ in lengths])}] = {result}")
    w.code.indent -= len(lengths)
    return None


@handles(np.outer)
def _outer(w: Parts, op, a, b):
    a, b = as_array(w, a), as_array(w, b)
    if (a.type.ndim, b.type.ndim) != (1, 1):
        raise TypeError("of matrices")
    dtype, name = op.outputs[0].type.dtype, w.names.name(op.outputs[0])
    m, n = w.operands.array(a), w.operands.array(b)
    lengths = [length_text(a.type.shape[0], m, 0), length_text(b.type.shape[0], n, 0)]
    w.arrays.new(op.outputs[0], lengths)
    with w.loops.nest(lengths, inner=True) as (i, j):
        item = numpy_term(np.multiply, [w.elements.element(a, [i]), w.elements.element(b, [j])])
        w.code.line(f"{name}[{i}, {j}] = {w.operands.stored(item, dtype)}")


@handles(np.inner, np.vdot)
def _inner(w: Parts, op, a, b):
    a, b = as_array(w, a), as_array(w, b)
    if (a.type.ndim, b.type.ndim) != (1, 1) or a.type.dtype.kind == "c":
        raise TypeError("of matrices, or of complex vectors")
    return _dot(w, op, a, b)


def _factors(
    w: Parts, terms: Sequence[str], arrays: Sequence[Value]
) -> tuple[list[Factor], dict[str, str]]:
    """The operands of an einsum, and the lengths of the axes by their letters, which must agree."""
    factors = [Factor(term, w.operands.array(a), a.type, {})
               for term, a in zip(terms, arrays, strict=True)]  # fmt: skip
    axes: dict[str, list[tuple[Factor, int]]] = {}
    for x in factors:
        if len(x.letters) != x.type.ndim:
            raise TypeError("whose subscripts do not match the axes")
        for axis, letter in enumerate(x.letters):
            axes.setdefault(letter, []).append((x, axis))
    return factors, {letter: _common_length(w, letter, places) for letter, places in axes.items()}


def _common_length(w: Parts, letter: str, places: Sequence[tuple[Factor, int]]) -> str:
    """The length of the axes that have one letter; notes along which of them steps are needed."""
    texts: dict[str, list[tuple[Factor, Any]]] = {}
    for x, axis in places:
        d = x.type.shape[axis]
        if d != 1:
            texts.setdefault(length_text(d, x.name, axis), []).append((x, d))
    total, *others = texts or ["1"]
    may_be_one = any(isinstance(d, Size) and d.may_be_one for xs in texts.values() for _, d in xs)
    if not may_be_one:
        for length in others:
            w.code.line(f"if {length} != {total}:")
            w.code.line("    raise ValueError('operands of einsum do not fit')")
        return total
    if not others:
        return total
    for length in others:
        total = f"{w.helpers.use('broadcast_length')}({total}, {length})"
    n = w.names.temporary("n")
    w.code.line(f"{n} = {total}")
    for length, xs in texts.items():
        if any(isinstance(d, Size) and d.may_be_one for _, d in xs):
            step = w.loops.step(f"1 if {length} == {n} else 0", length)
            for x, _ in xs:
                x.steps[letter] = step
    return n


def _axis_order(terms: Sequence[str]) -> list[str]:
    """The letters in an order that all terms have them in; none if there is no such order."""
    letters = list(dict.fromkeys("".join(terms)))
    found: list[str] = []
    while len(found) < len(letters):
        left = [[c for c in term if c not in found] for term in terms]
        first = next(
            (c for c in letters if c not in found and all(c not in t[1:] for t in left)), ""
        )
        if not first:
            return []
        found.append(first)
    return found


@handles(np.einsum)
def _einsum(
    w: Parts, op, subscripts, *operands, optimize=False, dtype=None, order="K", casting="safe"
):
    """Loops over all letters: those of the result outside, the sums inside.

    Sums along rows of one operand are formed in registers (:func:`sum_rows`). Else, where the
    result's last axis is innermost in an order that all arrays are in, the sums are formed in the
    result: no array is read across its memory.
    """
    if dtype is not None or order not in ("K", "C") or casting != "safe":
        raise TypeError("in another dtype or order")
    out = op.outputs[0]
    dtype = out.type.dtype
    plain = isinstance(subscripts, str) and subscripts.count(",") + 1 == len(operands)
    if not plain or dtype.kind not in "iufc" or (optimize and len(operands) > 2):
        raise TypeError("with subscripts in lists, or optimize= of three operands or more")
    arrays = [as_array(w, a) for a in operands]
    terms, result = written_out(subscripts, [a.type.ndim for a in arrays])
    factors, lengths = _factors(w, terms, arrays)
    summed = [c for c in lengths if c not in result]
    if len(operands) == 1 and not summed and w.memory.is_written_later(out):
        raise TypeError("that is a view, and is written")
    names_of = w.loops.index_names(len(lengths), inner=True)
    index = dict(zip([*result, *summed], names_of, strict=True))
    wide = WIDE.get(dtype, dtype)
    if summed and wide == dtype and sum_rows(w, out, result, factors, lengths):
        return None
    product = functools.reduce(
        lambda x, y: numpy_term(np.multiply, [x, y]),
        [Term(x.element(index), ATOM, numpy_number(x.type.dtype)) for x in factors],
    )
    in_order = _axis_order([*terms, result])
    if summed and in_order and in_order[-1] in result and wide == dtype and not w.loops.spreads:
        w.arrays.new(out, [lengths[c] for c in result], zeros=True)
        item = f"{w.names.name(out)}[{subscript([index[c] for c in result])}]"
        for letter in in_order:
            w.code.line(f"for {index[letter]} in range({lengths[letter]}):")
            w.code.indent += 1
        w.code.line(f"{item} = {item} + {product.at(5)}")
        w.code.indent -= len(in_order)
        return None
    total = w.names.temporary("total", numpy_number(wide))
    if result:
        w.arrays.new(out, [lengths[c] for c in result])
    first = len(w.code.lines)
    w.loops.open([lengths[c] for c in result], inner=True)
    w.code.line(f"{total} = {literal(0, numpy_number(wide))}")
    for letter in summed:
        w.code.line(f"for {index[letter]} in range({lengths[letter]}):")
        w.code.indent += 1
    w.code.line(SUM.step(w, total, product, wide))
    w.code.indent -= len(summed)
    text = w.operands.stored(Term(total, ATOM, numpy_number(wide)), dtype)
    if not result:
        spread(w, first, SUM, wide)
        if not is_array(out):
            return text
        w.arrays.new(out, [])  # an optimised einsum returns a 0-d array
        w.code.line(f"{w.names.name(out)}[()] = {text}")
        return None
    w.code.line(f"{w.names.name(out)}[{subscript([index[c] for c in result])}] = {text}")
    w.code.indent -= len(result)
    if w.loops.spreads and summed:
        parallel_sums.spread_rows(w.loops, first)
    return None
