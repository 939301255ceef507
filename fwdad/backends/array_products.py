"""Products and linear systems, for the Numba source."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fwdad.backends.array_functions import (
    FLOAT64,
    as_array,
    fill_new,
    handles,
    length_text,
    reading,
)
from fwdad.backends.array_reductions import SUM, WIDE
from fwdad.backends.elementwise import Term, literal, numpy_number, numpy_term
from fwdad.tape.notation import ATOM
from fwdad.tape.ops import Value, is_array
from fwdad.tape.types import ArrayType

Writer = Any  # the NumbaWriter: it knows this module, not the other way round


def _as_dtype(w: Writer, a: Value, dtype: np.dtype[Any]) -> str:
    name = w.array(a)
    if a.type.dtype == dtype:
        return name
    made = w.temporary("a")
    fill_new(w, made, ArrayType(dtype, a.type.shape), a)
    return made


@handles(operator.matmul, np.matmul, np.dot)
def _dot(w, op, a, b):
    a, b = as_array(w, a), as_array(w, b)
    ranks = (a.type.ndim, b.type.ndim)
    if not set(ranks) <= {1, 2}:
        message = f"of ranks {ranks}"
        raise TypeError(message)
    out = op.outputs[0]
    dtype = out.type.dtype
    if dtype.kind in "fc" and ranks != (1, 1):
        return f"np.dot({_as_dtype(w, a, dtype)}, {_as_dtype(w, b, dtype)})"
    m, n = w.array(a), w.array(b)
    depth, other = f"{m}.shape[{ranks[0] - 1}]", f"{n}.shape[0]"
    if a.type.shape[-1] != b.type.shape[0]:
        w.line(f"if {depth} != {other}:")
        w.line("    raise ValueError('shapes are not aligned for a product')")
    wide = WIDE.get(dtype, dtype)
    total = w.temporary("total", numpy_number(wide))
    i, j, k = w.index_names(3)
    kept = [(i, f"{m}.shape[0]")] if ranks[0] == 2 else []
    kept += [(j, f"{n}.shape[1]")] if ranks[1] == 2 else []
    left = [i, k] if ranks[0] == 2 else [k]
    right = [k, j] if ranks[1] == 2 else [k]
    if kept:
        w.line(f"{w.name(out)} = {w.empty([length for _, length in kept], dtype)}")
    for index, length in kept:
        w.line(f"for {index} in range({length}):")
        w._indent += 1
    w.line(f"{total} = {literal(0, numpy_number(wide))}")
    w.line(f"for {k} in range({depth}):")
    item = numpy_term(np.multiply, [
        Term(f"{m}[{w.at(left)}]", ATOM, numpy_number(a.type.dtype)),
        Term(f"{n}[{w.at(right)}]", ATOM, numpy_number(b.type.dtype)),
    ])  # fmt: skip
    w.line("    " + SUM.step(w, total, item, wide))
    result = w.stored(Term(total, ATOM, numpy_number(wide)), dtype)
    if not kept:
        return result
    w.line(f"{w.name(out)}[{w.at([index for index, _ in kept])}] = {result}")
    w._indent -= len(kept)
    return None


@handles(np.outer)
def _outer(w, op, a, b):
    a, b = as_array(w, a), as_array(w, b)
    if (a.type.ndim, b.type.ndim) != (1, 1):
        message = "of matrices"
        raise TypeError(message)
    dtype, name = op.outputs[0].type.dtype, w.name(op.outputs[0])
    m, n = w.array(a), w.array(b)
    lengths = [length_text(a.type.shape[0], m, 0), length_text(b.type.shape[0], n, 0)]
    w.line(f"{name} = {w.empty(lengths, dtype)}")
    i, j = w.open_loops(lengths)
    item = numpy_term(np.multiply, [w.element(a, [i]), w.element(b, [j])])
    w.line(f"{name}[{i}, {j}] = {w.stored(item, dtype)}")
    w.close_loops([i, j])


@handles(np.linalg.norm)
def _norm(w, op, a):
    if not is_array(a) or a.type.dtype.kind not in "fc":
        message = "of ints"
        raise TypeError(message)
    dtype = op.outputs[0].type.dtype
    total = w.temporary("total", numpy_number(FLOAT64))
    w.line(f"{total} = 0.0")
    with reading(w, a) as (value, lengths, steps):
        index = w.open_loops(lengths)
        item = w.temporary("item", numpy_number(value.type.dtype))
        w.line(f"{item} = {w.element(value, index, steps).text}")
        square = (
            f"{item}.real**2 + {item}.imag**2"
            if value.type.dtype.kind == "c"
            else f"{item} * {item}"
        )
        w.line(f"{total} += {square}")
        w.close_loops(index)
    return w.stored(Term(f"math.sqrt({total})", ATOM, numpy_number(FLOAT64)), dtype)


@handles(np.linalg.solve)
def _solve(w, op, a, b):
    if a.type.ndim != 2 or b.type.ndim not in (1, 2):
        message = "of a stack of systems"
        raise TypeError(message)
    dtype = op.outputs[0].type.dtype
    return f"np.linalg.solve({_as_dtype(w, a, dtype)}, {_as_dtype(w, b, dtype)})"


@handles(np.linalg.inv, np.linalg.cholesky, np.linalg.det, np.linalg.eigvalsh, np.linalg.eigh,
         np.linalg.qr, np.linalg.slogdet)  # fmt: skip
def _of_matrix(w, op, a):
    wide = np.result_type(a.type.dtype, np.float32)
    if a.type.ndim != 2 or a.type.dtype.kind not in "fc":
        message = "of such matrices"
        raise TypeError(message)
    return f"np.linalg.{op.function.__name__}({_as_dtype(w, a, wide)})"
