"""``numpy.linalg``, for the Numba source: LAPACK through Numba, or by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.backends.array_functions import FLOAT64, as_array, axes_of, handles, reading
from fwdad.backends.array_order import extreme
from fwdad.backends.array_products import as_dtype, stack
from fwdad.backends.elementwise import Term, numpy_number
from fwdad.tape.notation import ATOM
from fwdad.tape.ops import Value, is_array

Writer = Any  # the NumbaWriter: it knows this module, not the other way round


@handles(np.linalg.norm)
def _norm(w, op, a, ord=None, axis=None, keepdims=False):  # noqa: A002 (NumPy's name)
    if is_array(a) and ord in (np.inf, -np.inf) and len(axes_of(axis, a.type.ndim)) == 1:
        return extreme(
            w, op, [np.maximum if ord > 0 else np.minimum], a, axis, keepdims, of=np.absolute
        )
    if not is_array(a) or a.type.dtype.kind not in "fc" or ord not in (None, 2) or keepdims:
        message = "of this kind"
        raise TypeError(message)
    if ord == 2 and len(axes_of(axis, a.type.ndim)) != 1:
        message = "of a matrix"
        raise TypeError(message)
    dtype = op.outputs[0].type.dtype
    with reading(w, a) as (value, lengths, steps):
        axes = axes_of(axis, value.type.ndim)
        kept = [k for k in range(value.type.ndim) if k not in axes]
        index = w.index_names(value.type.ndim)
        total = w.temporary("total", numpy_number(FLOAT64))
        item = w.temporary("item", numpy_number(value.type.dtype))
        if kept:
            w.line(f"{w.name(op.outputs[0])} = {w.empty([lengths[k] for k in kept], dtype)}")
        for k in kept:
            w.line(f"for {index[k]} in range({lengths[k]}):")
            w._indent += 1
        w.line(f"{total} = 0.0")
        for k in axes:
            w.line(f"for {index[k]} in range({lengths[k]}):")
            w._indent += 1
        w.line(f"{item} = {w.element(value, index, steps).text}")
        square = (
            f"{item}.real**2 + {item}.imag**2"
            if value.type.dtype.kind == "c"
            else f"{item} * {item}"
        )
        w.line(f"{total} += {square}")
        w._indent -= len(axes)
        made = w.stored(Term(f"math.sqrt({total})", ATOM, numpy_number(FLOAT64)), dtype)
        if not kept:
            return made
        w.line(f"{w.name(op.outputs[0])}[{w.at([index[k] for k in kept])}] = {made}")
        w._indent -= len(kept)
    return None


@handles(np.linalg.solve)
def _solve(w, op, a, b):
    a, b = as_array(w, a), as_array(w, b)
    dtype = op.outputs[0].type.dtype
    if a.type.ndim < 2 or dtype.kind not in "fc":
        message = "of such arrays"
        raise TypeError(message)
    vector = b.type.ndim == 1
    solve = w.help("lu_solve_vector" if vector else "lu_solve_matrix")
    if a.type.ndim == 2 and b.type.ndim <= 2:
        factors = _factors(w, a, dtype)
        return f"{solve}({factors}, {as_dtype(w, b, dtype)})"
    name, m, n = w.name(op.outputs[0]), as_dtype(w, a, dtype), as_dtype(w, b, dtype)
    core = [f"{m}.shape[{a.type.ndim - 1}]"]
    core += [] if vector else [f"{n}.shape[{b.type.ndim - 1}]"]
    shared = _factors(w, a, dtype) if a.type.ndim == 2 else None
    ranks = [2, min(2, b.type.ndim)]
    lengths, index, (matrix, right) = stack(w, (m, a), (n, b), core=ranks)
    w.line(f"{name} = {w.empty([*lengths, *core], dtype)}")
    w.open_loops(lengths)
    factors = shared or _factorized(w, matrix)
    w.line(f"{name}[{w.at(index)}] = {solve}({factors}, {right})")
    w.close_loops(index)
    return None


def _factors(w: Writer, a: Value, dtype: np.dtype[Any]) -> str:
    """The factors of a matrix: once for all systems with it, unless it is written into."""
    if (a, dtype) in w.factors:
        return str(w.factors[(a, dtype)])
    made = _factorized(w, as_dtype(w, a, dtype))
    if not w.is_written(a):
        w.factors[(a, dtype)] = made
    return made


def _factorized(w: Writer, matrix: str) -> str:
    columns, pivots = w.temporary("lu"), w.temporary("pivots")
    w.line(f"{columns}, {pivots} = {w.help('lu_factor')}({matrix})")
    return f"{columns}, {pivots}"


@handles(np.linalg.inv, np.linalg.cholesky, np.linalg.det)
def _of_matrices(w, op, a, upper=False):
    wide, name = _wide(a, upper is False, op), f"np.linalg.{op.function.__name__}"
    if a.type.ndim == 2:
        return f"{name}({as_dtype(w, a, wide)})"
    m, out = as_dtype(w, a, wide), w.name(op.outputs[0])
    lengths, index, (matrix,) = stack(w, (m, a), core=[2])
    core = [f"{m}.shape[{a.type.ndim - 1}]"] * (op.outputs[0].type.ndim - len(lengths))
    w.line(f"{out} = {w.empty([*lengths, *core], op.outputs[0].type.dtype)}")
    w.open_loops(lengths)
    w.line(f"{out}[{w.at(index)}] = {name}({matrix})")
    w.close_loops(index)
    return None


@handles(np.linalg.eigvalsh, np.linalg.eigh)
def _eigenvalues(w, op, a, UPLO="L"):
    wide = _wide(a, a.type.ndim == 2 and UPLO in ("L", "U") and a.type.dtype.kind == "f", op)
    m = as_dtype(w, a, wide)  # Numba reads the lower triangle
    return f"np.linalg.{op.function.__name__}({m if UPLO == 'L' else f'{m}.T'})"


@handles(np.linalg.qr, np.linalg.slogdet)
def _of_matrix(w, op, a):
    wide = _wide(a, a.type.ndim == 2, op)
    return f"np.linalg.{op.function.__name__}({as_dtype(w, a, wide)})"


@handles(np.linalg.svd)
def _svd(w, op, a, full_matrices=True):
    wide = _wide(a, a.type.ndim == 2 and isinstance(full_matrices, bool), op)
    return f"np.linalg.svd({as_dtype(w, a, wide)}, {int(full_matrices)})"


def _wide(a: Any, known: bool, op: Any) -> np.dtype[Any]:
    """The dtype that LAPACK computes in."""
    if not known or not is_array(a) or a.type.ndim < 2 or a.type.dtype.kind not in "fc":
        message = f"of such arrays by {op.function.__name__}"
        raise TypeError(message)
    return np.dtype(np.result_type(a.type.dtype, np.float32))
