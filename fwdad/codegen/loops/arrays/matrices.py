"""Diagonals and triangles of matrices, for the Numba source."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.codegen.loops.arrays.functions import handles, length_text, reading
from fwdad.codegen.loops.arrays.reductions import SUM
from fwdad.codegen.loops.number_terms import Term, literal, numpy_number
from fwdad.ir.notation import ATOM
from fwdad.ir.ops import is_array

Writer = Any  # the NumbaWriter: it knows this module, not the other way round


@handles(np.diag)
def _diag(w, op, a, k=0):
    if a.type.ndim == 2:
        _diagonal(w, op, a, k)
        return
    if not isinstance(k, int):
        message = "at a place that is not known"
        raise TypeError(message)
    out, name = w.name(op.outputs[0]), w.array(a)
    (i,) = w.index_names(1)
    n = length_text(a.type.shape[0], name, 0)
    side = n if not k else f"{n} + {abs(k)}"
    w.line(f"{out} = np.zeros(({side}, {side}), {w.dtype(a.type.dtype)})")
    w.line(f"for {i} in range({n}):")
    w.line(f"    {out}[{i} + {max(-k, 0)}, {i} + {max(k, 0)}] = {name}[{i}]")


@handles(np.diagonal)
def _diagonal(w, op, a, offset=0, axis1=0, axis2=1):
    """A copy of the diagonal, allowed only where nobody writes to the matrix afterwards."""
    ndim, (out,) = a.type.ndim, op.outputs
    axes = [axis1 % ndim, axis2 % ndim]
    if not isinstance(offset, int) or w.is_written_later(out):
        message = "that is written into, or at a place that is not known"
        raise TypeError(message)
    name, matrix, made = w.name(out), w.array(a), w.temporary("n")
    lengths = [length_text(d, matrix, k) for k, d in enumerate(a.type.shape)]
    down, right = max(-offset, 0), max(offset, 0)
    shorter = f"{w.help('smaller')}({lengths[axes[0]]} - {down}, {lengths[axes[1]]} - {right})"
    w.line(f"{made} = {w.help('larger')}({shorter}, 0)", op)
    kept = [k for k in range(ndim) if k not in axes]
    w.line(f"{name} = {w.empty([*(lengths[k] for k in kept), made], a.type.dtype)}")
    index = w.open_loops([*(lengths[k] for k in kept), made])
    at = dict(zip(kept, index, strict=False))
    at[axes[0]] = f"{index[-1]} + {down}" if down else index[-1]
    at[axes[1]] = f"{index[-1]} + {right}" if right else index[-1]
    w.line(f"{name}[{w.at(index)}] = {matrix}[{w.at([at[k] for k in range(ndim)])}]")
    w.close_loops(index)


@handles(np.trace)
def _trace(w, op, a):
    dtype = op.outputs[0].type.dtype
    if a.type.ndim != 2:
        message = "of a stack of matrices"
        raise TypeError(message)
    name = w.array(a)
    total = w.temporary("total", numpy_number(dtype))
    (i,) = w.index_names(1)
    w.line(f"{total} = {literal(0, numpy_number(dtype))}")
    w.line(f"for {i} in range({w.help('smaller')}({name}.shape[0], {name}.shape[1])):")
    item = Term(f"{name}[{i}, {i}]", ATOM, numpy_number(a.type.dtype))
    w.line("    " + SUM.step(w, total, item, dtype))
    return total


@handles(np.tri)
def _tri(w, op, N, M=None, k=0, dtype=None):  # noqa: ARG001 (the output has it; NumPy's names)
    (out,) = op.outputs
    lengths = [w.index_text(N), w.index_text(N if M is None else M)]
    name, inside = w.name(out), literal(1, numpy_number(out.type.dtype))
    outside = literal(0, numpy_number(out.type.dtype))
    w.line(f"{name} = {w.empty(lengths, out.type.dtype)}", op)
    i, j = index = w.open_loops(lengths)
    w.line(f"{name}[{w.at(index)}] = {inside} if {j} <= {i} + {w.index_text(k)} else {outside}")
    w.close_loops(index)


@handles(np.tril, np.triu)
def _triangle(w, op, m, k=0):
    (out,) = op.outputs
    if not is_array(m) or m.type.ndim < 2:
        message = "of a vector"
        raise TypeError(message)
    sign = "<=" if op.function is np.tril else ">="
    zero = literal(0, numpy_number(out.type.dtype))
    with reading(w, m) as (value, lengths, steps):
        name = w.name(out)
        w.line(f"{name} = {w.empty(lengths, out.type.dtype)}", op)
        *_, i, j = index = w.open_loops(lengths)
        item = w.stored(w.element(value, index, steps), out.type.dtype)
        w.line(f"{name}[{w.at(index)}] = {item} if {j} {sign} {i} + {w.index_text(k)} else {zero}")
        w.close_loops(index)
