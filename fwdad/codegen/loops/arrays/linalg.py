"""``numpy.linalg`` for the Numba source: LAPACK, called by Numba or directly."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.codegen.loops.arrays.functions import FLOAT64, as_array, axes_of, handles, reading
from fwdad.codegen.loops.arrays.order import extreme
from fwdad.codegen.loops.arrays.products import as_dtype, stack
from fwdad.codegen.loops.notation import subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.terms.number_terms import Term, cast, numpy_number
from fwdad.ir.notation import ATOM
from fwdad.ir.ops import Value, is_array
from fwdad.tangents.adjugate import cofactors

MIN = -1
"""Among the axes of a result: the smaller length of the matrix."""


@handles(np.linalg.norm)
def _norm(w: Parts, op, a, ord=None, axis=None, keepdims=False):  # noqa: A002 (NumPy's name)
    if is_array(a) and ord in (np.inf, -np.inf) and len(axes_of(axis, a.type.ndim)) == 1:
        return extreme(
            w, op, [np.maximum if ord > 0 else np.minimum], a, axis, keepdims, of=np.absolute
        )
    if not is_array(a) or a.type.dtype.kind not in "fc" or ord not in (None, 2) or keepdims:
        raise TypeError("of such an order, of ints, or with keepdims=")
    if ord == 2 and len(axes_of(axis, a.type.ndim)) != 1:
        raise TypeError("of a matrix")
    dtype = op.outputs[0].type.dtype
    with reading(w, a) as (value, lengths, steps):
        axes = axes_of(axis, value.type.ndim)
        remaining = [k for k in range(value.type.ndim) if k not in axes]
        index = w.loops.index_names(value.type.ndim)
        total = w.names.temporary("total", numpy_number(FLOAT64))
        item = w.names.temporary("item", numpy_number(value.type.dtype))
        if remaining:
            w.arrays.new(op.outputs[0], [lengths[k] for k in remaining])
        with w.loops.over(index, lengths, remaining):
            w.code.line(f"{total} = 0.0")
            with w.loops.over(index, lengths, axes):
                w.code.line(f"{item} = {w.elements.element(value, index, steps).text}")
                square = f"{item} * {item}"
                if value.type.dtype.kind == "c":
                    square = f"{item}.real**2 + {item}.imag**2"
                w.code.line(f"{total} += {square}")
            root = Term(f"math.sqrt({total})", ATOM, numpy_number(FLOAT64))
            norm = w.operands.stored(root, dtype)
            if remaining:
                place = subscript([index[k] for k in remaining])
                w.code.line(f"{w.names.name(op.outputs[0])}[{place}] = {norm}")
    return None if remaining else norm


@handles(np.linalg.solve)
def _solve(w: Parts, op, a, b):
    a, b = as_array(w, a), as_array(w, b)
    dtype = op.outputs[0].type.dtype
    if a.type.ndim < 2 or dtype.kind not in "fc":
        raise TypeError("of a vector, or of ints")
    vector = b.type.ndim == 1
    solve = w.helpers.use("lu_solve_vector" if vector else "lu_solve_matrix")
    if a.type.ndim == 2 and b.type.ndim <= 2:
        factors = _factors(w, a, dtype)
        return f"{solve}({factors}, {as_dtype(w, b, dtype)})"
    name, m, n = w.names.name(op.outputs[0]), as_dtype(w, a, dtype), as_dtype(w, b, dtype)
    core = [f"{m}.shape[{a.type.ndim - 1}]"]
    core += [] if vector else [f"{n}.shape[{b.type.ndim - 1}]"]
    shared = _factors(w, a, dtype) if a.type.ndim == 2 else None
    ranks = [2, min(2, b.type.ndim)]
    lengths, index, (matrix, right) = stack(w, (m, a), (n, b), core=ranks)
    w.arrays.new(op.outputs[0], [*lengths, *core])
    with w.loops.nest(lengths):
        factors = shared or _factorized(w, matrix)
        w.code.line(f"{name}[{subscript(index)}] = {solve}({factors}, {right})")
    return None


def _factors(w: Parts, a: Value, dtype: np.dtype[Any]) -> str:
    """The LU factors of a matrix, shared by all systems with it unless it is written to."""
    if (a, dtype) in w.facts.factors:
        return str(w.facts.factors[(a, dtype)])
    factors = _factorized(w, as_dtype(w, a, dtype))
    if not w.memory.is_written(a):
        w.facts.factors[(a, dtype)] = factors
    return factors


def _factorized(w: Parts, matrix: str) -> str:
    columns, pivots = w.names.temporary("lu"), w.names.temporary("pivots")
    w.code.line(f"{columns}, {pivots} = {w.helpers.use('lu_factor')}({matrix})")
    return f"{columns}, {pivots}"


@handles(np.linalg.inv, np.linalg.cholesky, np.linalg.det)
def _of_matrices(w: Parts, op, a, upper=False):
    wide, name = _wide(a, upper is False), _lapack(w, op.function.__name__)
    return _each(w, op, a, wide, name + "({})", [[0, 0]] if name[-3:] != "det" else [[]])


@handles(np.linalg.eigvalsh, np.linalg.eigh)
def _eigenvalues(w: Parts, op, a, UPLO="L"):
    wide = _wide(a, UPLO in ("L", "U"))
    if UPLO == "U" and op.function is np.linalg.eigh:
        return _each(w, op, a, wide, f"{w.helpers.use('eigh_upper')}({{}})", [[0], [0, 0]])
    turned = "{}" if UPLO == "L" else "{}.T" if wide.kind == "f" else "np.conj({}.T)"
    # Numba reads the lower triangle
    return _each(w, op, a, wide, f"{_lapack(w, op.function.__name__)}({turned})", [[0], [0, 0]])


@handles(np.linalg.slogdet)
def _slogdet(w: Parts, op, a):
    return _each(w, op, a, _wide(a, True), _lapack(w, "slogdet") + "({})", [[], []])


@handles(np.linalg.qr)
def _qr(w: Parts, op, a, mode="reduced"):
    wide = _wide(a, mode in ("reduced", "r"))
    if mode == "r":
        return _each(w, op, a, wide, _lapack(w, "qr_r") + "({})", [[MIN, 1]])
    return _each(w, op, a, wide, _lapack(w, "qr") + "({})", [[0, MIN], [MIN, 1]])


@handles(np.linalg.svd)
def _svd(w: Parts, op, a, full_matrices=True, compute_uv=True, hermitian=False):
    known = isinstance(full_matrices, bool) and isinstance(compute_uv, bool) and hermitian is False
    wide = _wide(a, known)
    if not compute_uv:
        return _each(w, op, a, wide, _lapack(w, "svdvals") + "({})", [[MIN]])
    cores: Any = [[0, 0], [MIN], [1, 1]] if full_matrices else [[0, MIN], [MIN], [MIN, 1]]
    return _each(w, op, a, wide, f"{_lapack(w, 'svd')}({{}}, {int(full_matrices)})", cores)


@handles(np.linalg.svdvals)
def _svdvals(w: Parts, op, x):
    return _each(w, op, x, _wide(x, True), _lapack(w, "svdvals") + "({})", [[MIN]])


@handles(np.linalg.pinv)
def _pinv(w: Parts, op, a, rcond=None, hermitian=False):
    wide = _wide(a, hermitian is False and not is_array(rcond))
    cut = "1e-15" if rcond is None else w.operands.real(rcond).text
    return _each(w, op, a, wide, f"{_lapack(w, 'pinv')}({{}}, {cut})", [[1, 0]])


@handles(cofactors)
def _cofactors(w: Parts, op, a, determinant):
    wide, index = _wide(a, True), w.loops.index_names(max(a.type.ndim - 2, 0))
    if is_array(determinant):
        one = Term(f"{w.operands.array(determinant)}[{subscript(index)}]", ATOM,
                   numpy_number(determinant.type.dtype))  # fmt: skip
    else:
        one = w.operands.atom(w.operands.term(determinant))
    call = f"{w.helpers.use('cofactors')}({{}}, {cast(one, wide).text})"
    return _each(w, op, a, wide, call, [[0, 0]])


@handles(np.linalg.matrix_power)
def _matrix_power(w: Parts, op, a, n):
    wide = _wide(a, not is_array(n))
    call = f"{w.helpers.use('matrix_power')}({{}}, {w.operands.index_text(n)})"
    return _each(w, op, a, wide, call, [[0, 0]])


@handles(np.linalg.lstsq)
def _lstsq(w: Parts, op, a, b, rcond=None):
    a, b = as_array(w, a), as_array(w, b)
    dtype = np.dtype(np.result_type(a.type.dtype, b.type.dtype, np.float64))  # as in NumPy
    if a.type.ndim != 2 or dtype.kind not in "fc" or is_array(rcond):
        raise TypeError("of stacks, of ints, or with an array rcond=")
    m, n = as_dtype(w, a, dtype), as_dtype(w, b, dtype)
    unit = float(np.finfo(np.float64).eps)
    cut = f"{unit!r} * max({m}.shape[0], {m}.shape[1])"
    if rcond is not None:
        cut = w.operands.real(rcond).text
    x, residuals, rank, s = op.outputs
    name = w.names.temporary("rank")
    if any(v.type.dtype not in (dtype, np.float64) for v in (x, residuals, s)):
        raise TypeError("in single precision")
    names = f"{w.names.name(x)}, {w.names.name(residuals)}, {name}, {w.names.name(s)}"
    w.code.line(f"{names} = {_lapack(w, 'lstsq')}({m}, {n}, {cut})", op)
    text = w.operands.stored(Term(name, ATOM, numpy_number(np.int64)), rank.type.dtype)
    w.code.line(f"{w.names.name(rank)} = {text}")


def _lapack(w: Parts, name: str) -> str:
    """The name of a function of Numba's, compiled so that it leaks nothing where it raises."""
    return w.helpers.use(f"lapack_{name}")


def _each(
    w: Parts, op: Any, a: Value, wide: np.dtype[Any], call: str, cores: list[list[int]]
) -> str | None:
    """The source of a function of one matrix, or None if loops over a stack of them were written.

    ``call`` is its source with a ``{}`` for the matrix, ``wide`` the dtype that LAPACK computes in.
    ``cores`` lists for each result the matrix axes whose lengths it has; ``MIN`` means the smaller
    one.
    """
    m = as_dtype(w, a, wide)
    if a.type.ndim == 2:
        return call.format(m)
    lengths, index, (matrix,) = stack(w, (m, a), core=[2])
    sides = [f"{m}.shape[{a.type.ndim - 2}]", f"{m}.shape[{a.type.ndim - 1}]"]
    sides.append(f"{w.helpers.use('smaller')}({sides[0]}, {sides[1]})")
    for out, core in zip(op.outputs, cores, strict=False):
        w.arrays.new(out, [*lengths, *(sides[k] for k in core)])
    places = [f"{w.names.name(out)}[{subscript(index)}]" for out in op.outputs]
    with w.loops.nest(lengths):
        if len(places) == 1:
            w.code.line(f"{places[0]} = {call.format(matrix)}")
            return None
        parts = [w.names.temporary("part") for _ in places]
        w.code.line(f"{', '.join(parts)} = {call.format(matrix)}")
        for place, part in zip(places, parts, strict=True):
            w.code.line(f"{place} = {part}")
    return None


def _wide(a: Any, known: bool) -> np.dtype[Any]:
    """The dtype that LAPACK computes in."""
    if not known or not is_array(a) or a.type.ndim < 2 or a.type.dtype.kind not in "fc":
        raise TypeError("of a vector, of ints, or with an option that has no compiled form")
    return np.dtype(np.result_type(a.type.dtype, np.float32))
