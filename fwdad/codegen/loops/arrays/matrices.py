"""Diagonals and triangles of matrices, for the Numba source."""

from __future__ import annotations

import numpy as np

from fwdad.codegen.loops.arrays.functions import handles, reading
from fwdad.codegen.loops.arrays.reductions import SUM
from fwdad.codegen.loops.notation import length_text, lengths_of, subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.terms.number_terms import Term, literal, numpy_number
from fwdad.ir.notation import ATOM
from fwdad.ir.ops import is_array


@handles(np.diag)
def _diag(w: Parts, op, a, k=0):
    if a.type.ndim == 2:
        _diagonal(w, op, a, k)
        return
    if not isinstance(k, int):
        raise TypeError("on a diagonal that is no constant")
    out, name = w.names.name(op.outputs[0]), w.operands.array(a)
    (i,) = w.loops.index_names(1)
    n = length_text(a.type.shape[0], name, 0)
    side = n if not k else f"{n} + {abs(k)}"
    w.arrays.new(op.outputs[0], [side, side], zeros=True)
    w.code.line(f"for {i} in range({n}):")
    w.code.line(f"    {out}[{i} + {max(-k, 0)}, {i} + {max(k, 0)}] = {name}[{i}]")


@handles(np.diagonal)
def _diagonal(w: Parts, op, a, offset=0, axis1=0, axis2=1):
    """A copy of the diagonal, allowed only where nobody writes to the matrix afterwards."""
    ndim, (out,) = a.type.ndim, op.outputs
    axes = [axis1 % ndim, axis2 % ndim]
    if not isinstance(offset, int) or w.memory.is_written_later(out):
        raise TypeError("whose result is written, or on a diagonal that is no constant")
    name, matrix, made = w.names.name(out), w.operands.array(a), w.names.temporary("n")
    lengths = lengths_of(a, matrix)
    down, right = max(-offset, 0), max(offset, 0)
    rows, columns = f"{lengths[axes[0]]} - {down}", f"{lengths[axes[1]]} - {right}"
    shorter = f"{w.helpers.use('smaller')}({rows}, {columns})"
    w.code.line(f"{made} = {w.helpers.use('larger')}({shorter}, 0)", op)
    remaining = [k for k in range(ndim) if k not in axes]
    w.arrays.new(out, [*(lengths[k] for k in remaining), made])
    with w.loops.nest([*(lengths[k] for k in remaining), made]) as index:
        at = dict(zip(remaining, index, strict=False))
        at[axes[0]] = f"{index[-1]} + {down}" if down else index[-1]
        at[axes[1]] = f"{index[-1]} + {right}" if right else index[-1]
        w.code.line(
            f"{name}[{subscript(index)}] = {matrix}[{subscript([at[k] for k in range(ndim)])}]"
        )


@handles(np.trace)
def _trace(w: Parts, op, a):
    dtype = op.outputs[0].type.dtype
    if a.type.ndim != 2:
        raise TypeError("of a stack of matrices")
    name = w.operands.array(a)
    total = w.names.temporary("total", numpy_number(dtype))
    (i,) = w.loops.index_names(1)
    w.code.line(f"{total} = {literal(0, numpy_number(dtype))}")
    w.code.line(f"for {i} in range({w.helpers.use('smaller')}({name}.shape[0], {name}.shape[1])):")
    item = Term(f"{name}[{i}, {i}]", ATOM, numpy_number(a.type.dtype))
    w.code.line("    " + SUM.step(w, total, item, dtype))
    return total


@handles(np.tri)
def _tri(w: Parts, op, N, M=None, k=0, dtype=None):  # noqa: ARG001 (the output has it; NumPy's names)
    (out,) = op.outputs
    lengths = [w.operands.index_text(N), w.operands.index_text(N if M is None else M)]
    name, inside = w.names.name(out), literal(1, numpy_number(out.type.dtype))
    outside = literal(0, numpy_number(out.type.dtype))
    w.arrays.new(out, lengths, op)
    with w.loops.nest(lengths, inner=True) as index:
        (i, j) = index
        edge = f"{i} + {w.operands.index_text(k)}"
        w.code.line(f"{name}[{subscript(index)}] = {inside} if {j} <= {edge} else {outside}")


@handles(np.tril, np.triu)
def _triangle(w: Parts, op, m, k=0):
    (out,) = op.outputs
    if not is_array(m) or m.type.ndim < 2:
        raise TypeError("of a vector")
    sign = "<=" if op.function is np.tril else ">="
    zero = literal(0, numpy_number(out.type.dtype))
    with reading(w, m) as (value, lengths, steps):
        name = w.names.name(out)
        w.arrays.new(out, lengths, op)
        with w.loops.nest(lengths, inner=True) as index:
            (*_, i, j) = index
            item = w.operands.stored(w.elements.element(value, index, steps), out.type.dtype)
            edge = f"{i} + {w.operands.index_text(k)}"
            w.code.line(f"{name}[{subscript(index)}] = {item} if {j} {sign} {edge} else {zero}")
