"""NumPy's rearrangements and running sums expressed by simpler functions (``decompositions``)."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import numpy as np

from fwdad.codegen.passes.decompositions import bool_of, expands, has_axes, kind_of
from fwdad.ir.symbol import Symbol


def _lengths(a: Symbol) -> list[Any]:
    return [a.recorder.length(a, k) for k in range(a.ndim)]


def _along(axis: int, part: Any) -> tuple[Any, ...]:
    return (*[slice(None)] * axis, part)


# -- the same elements more than once


@expands("numpy.tile")
def _tile(A: Any, reps: Any) -> Any:
    repeats = tuple(reps) if isinstance(reps, (tuple, list)) else (reps,)
    if not has_axes(A) or not all(isinstance(r, (int, np.integer)) for r in repeats):
        return None
    rank = max(A.ndim, len(repeats))
    counts = [1] * (rank - len(repeats)) + [int(r) for r in repeats]
    lengths = [1] * (rank - A.ndim) + _lengths(A)
    return _interleaved(A, [(r, n) for r, n in zip(counts, lengths, strict=True)], rank - A.ndim)


def _interleaved(a: Any, pairs: list[tuple[Any, Any]], lead: int) -> Any:
    """An array each of whose axes merges a broadcast axis with one of the array's own."""
    index = (*[None] * (2 * lead), *[part for _ in pairs[lead:] for part in (None, slice(None))])
    wide = np.broadcast_to(a[index], tuple(n for pair in pairs for n in pair))
    return np.reshape(wide, tuple(m * n for m, n in pairs))


@expands("numpy.repeat", arrays=1)
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    if not isinstance(repeats, (int, np.integer)):
        return None
    if axis is None:
        a, axis = np.ravel(a), 0
    axis = axis % a.ndim
    lengths = _lengths(a)
    n = lengths[axis]
    wide = (*lengths[: axis + 1], int(repeats), *lengths[axis + 1 :])
    wider = np.broadcast_to(a[(*_along(axis, slice(None)), None)], wide)
    return np.reshape(wider, (*lengths[:axis], n * int(repeats), *lengths[axis + 1 :]))


@expands("numpy.kron", arrays=2)
def _kron(a: Any, b: Any) -> Any:
    rank = max(a.ndim, b.ndim)
    m, n = ([1] * (rank - x.ndim) + _lengths(x) for x in (a, b))
    left = a[(*[None] * (2 * (rank - a.ndim)), *[slice(None), None] * a.ndim)]
    right = b[(*[None] * (2 * (rank - b.ndim)), *[None, slice(None)] * b.ndim)]
    return np.reshape(left * right, tuple(i * j for i, j in zip(m, n, strict=True)))


@expands("numpy.full")
def _full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    if not has_axes(fill_value):
        return None
    wide = np.broadcast_to(fill_value, shape)
    return np.copy(wide) if dtype is None else wide.astype(dtype)


@expands("numpy.meshgrid")
def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if not has_axes(*xi) or any(x.ndim != 1 for x in xi) or len(xi) < 2 or not copy:
        return None
    order = list(range(len(xi)))
    if indexing == "xy":
        order[:2] = [1, 0]
    lengths: list[Any] = [0] * len(xi)
    for x, k in zip(xi, order, strict=True):
        lengths[k] = x.recorder.length(x, 0)
    grids = []
    for x, k in zip(xi, order, strict=True):
        row = x[tuple(slice(None) if j == k else None for j in range(len(xi)))]
        grids.append(np.copy(row if sparse else np.broadcast_to(row, tuple(lengths))))
    return tuple(grids)


# -- other places


@expands("numpy.roll", arrays=1)
def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        if a.ndim == 1 or isinstance(shift, (tuple, list)):
            return None
        return np.reshape(np.roll(np.ravel(a), shift), tuple(_lengths(a)))
    if not isinstance(axis, (tuple, list)):
        return None
    shifts = shift if isinstance(shift, (tuple, list)) else [shift] * len(axis)
    if len(shifts) != len(axis):
        return None
    for by, k in zip(shifts, axis, strict=True):
        a = np.roll(a, by, k)
    return a


@expands("numpy.fft.fftshift")
def _fftshift(x: Any, axes: Any = None) -> Any:
    return _shifted(x, axes, lambda n: n // 2)


@expands("numpy.fft.ifftshift")
def _ifftshift(x: Any, axes: Any = None) -> Any:
    return _shifted(x, axes, lambda n: -(n // 2))


def _shifted(x: Any, axes: Any, by: Any) -> Any:
    if not has_axes(x):
        return None
    shifted_axes = range(x.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
    for k in shifted_axes:
        x = np.roll(x, by(x.recorder.length(x, k % x.ndim)), k)
    return x


@expands("numpy.take", arrays=1)
def _take(a: Any, indices: Any, axis: Any = None, mode: str = "raise") -> Any:
    if axis is not None or a.ndim == 1 or mode != "raise":
        return None
    return np.take(np.ravel(a), indices, axis=0)


@expands("numpy.concatenate")
def _concatenate(arrays: Any, axis: Any = 0) -> Any:
    if axis is not None or not isinstance(arrays, (list, tuple)) or not has_axes(*arrays):
        return None
    first = arrays[0]
    return first.recorder.apply(np.concatenate, ([np.ravel(a) for a in arrays],), {"axis": 0})


@expands("numpy.compress")
def _compress(condition: Any, a: Any, axis: Any = None) -> Any:
    if not has_axes(a, condition):
        return None
    if axis is None:
        a, axis = np.ravel(a), 0
    return np.take(a, np.flatnonzero(condition), axis=axis)


@expands("numpy.argwhere", arrays=1)
def _argwhere(a: Any) -> Any:
    if a.ndim == 1:
        return np.flatnonzero(a)[:, None]
    return np.stack(np.nonzero(a), axis=1)


# -- running sums


@expands("numpy.cumsum", arrays=1)
def _cumsum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    if axis is not None or a.ndim == 1 or dtype is not None:
        return None
    return np.cumsum(np.ravel(a), axis=0)


@expands("numpy.cumprod", arrays=1)
def _cumprod(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    if axis is not None or a.ndim == 1 or dtype is not None:
        return None
    return np.cumprod(np.ravel(a), axis=0)


@expands("numpy.nancumsum", kinds="f")
def _nancumsum(a: Any, axis: Any = None) -> Any:
    return _running(np.cumsum, np.where(np.isnan(a), 0.0, a), axis)


@expands("numpy.nancumprod", kinds="f")
def _nancumprod(a: Any, axis: Any = None) -> Any:
    return _running(np.cumprod, np.where(np.isnan(a), 1.0, a), axis)


def _running(f: Any, a: Any, axis: Any) -> Any:
    return f(np.ravel(a), axis=0) if axis is None else f(a, axis=axis)


@expands("numpy.unwrap", kinds="f", arrays=1)
def _unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 2 * np.pi) -> Any:
    if not isinstance(axis, int):
        return None
    axis = axis % p.ndim
    high = period / 2
    jump = p[_along(axis, slice(1, None))] - p[_along(axis, slice(None, -1))]
    small = np.remainder(jump + high, period) - high
    small = np.where((small == -high) & (jump > 0), high, small)
    least = high if discont is None else np.maximum(discont, high)
    by = np.where(np.abs(jump) < least, 0.0, small - jump)
    rest = p[_along(axis, slice(1, None))] + np.cumsum(by, axis=axis)
    return np.concatenate([p[_along(axis, slice(None, 1))], rest], axis=axis)


# -- products


@expands("numpy.cross", "numpy.linalg.cross")
def _cross(
    a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    if not has_axes(a, b) or (a.type.shape[axisa], b.type.shape[axisb]) != (3, 3):
        return None
    x, y = ([np.moveaxis(v, k, -1)[..., j] for j in range(3)] for v, k in ((a, axisa), (b, axisb)))
    parts = [x[i] * y[j] - x[j] * y[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    if not has_axes(parts[0]):
        return a.recorder.apply(np.array, (parts,), {})
    return np.moveaxis(np.stack(parts, axis=-1), -1, axisc)


@expands("numpy.inner", arrays=2)
def _inner(a: Any, b: Any) -> Any:
    if a.ndim == b.ndim == 1:
        return None
    return np.tensordot(a, b, (a.ndim - 1, b.ndim - 1))


@expands("numpy.trace")
def _trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    plain = offset == 0 and {axis1, axis2} == {0, 1}
    if not has_axes(a) or (a.ndim == 2 and plain):
        return None
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1)


@expands("numpy.linalg.trace")
def _trace_of_each(x: Any, *, offset: Any = 0) -> Any:
    return np.sum(np.diagonal(x, offset, -2, -1), axis=-1)


@expands("numpy.vecmat")
def _vecmat(x1: Any, x2: Any) -> Any:
    left = np.conjugate(x1) if kind_of(x1) == "c" else x1
    return (left[..., None, :] @ x2)[..., 0, :]


# -- spread, and queries


@expands("numpy.var", kinds="fc", arrays=1)
def _var(a: Any, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    if dtype is not None:
        return None
    axes = _axes(a, axis)
    if len(axes) == a.ndim and not keepdims and kind_of(a) == "f":
        return None
    off = a - np.mean(a, axis=axes, keepdims=True)
    square = np.real(np.conjugate(off) * off) if kind_of(a) == "c" else off * off
    count: Any = 1
    for k in axes:
        count = a.recorder.length(a, k) * count
    return np.sum(square, axis=axes, keepdims=keepdims) / (count - ddof)


@expands("numpy.std")
def _std(a: Any, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    variance = _var(a, axis, dtype, ddof, keepdims)
    return None if variance is None else np.sqrt(variance)


def _axes(a: Any, axis: Any) -> tuple[int, ...]:
    axes = range(a.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return tuple(k % a.ndim for k in axes)


@expands("numpy.sinc", kinds="f")
def _sinc(x: Any) -> Any:
    y = np.pi * np.where(x == 0.0, 1e-20, x)
    return np.sin(y) / y


@expands("numpy.modf", kinds="f")
def _modf(x: Any) -> Any:
    whole = np.trunc(x)
    return np.copysign(np.where(np.isinf(x), 0.0, x - whole), x), whole


@expands("numpy.isreal", arrays=1)
def _isreal(x: Any) -> Any:
    return np.imag(x) == 0 if kind_of(x) == "c" else np.ones_like(x, dtype=bool)


@expands("numpy.iscomplex", arrays=1)
def _iscomplex(x: Any) -> Any:
    return np.imag(x) != 0 if kind_of(x) == "c" else np.zeros_like(x, dtype=bool)


@expands("numpy.array_equal", arrays=2)
def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    if equal_nan or a1.ndim != a2.ndim:
        return None
    pairs = zip_longest(a1.type.shape, a2.type.shape)
    return bool_of(np.all(a1 == a2)) if all(m is n or m == n for m, n in pairs) else None


@expands("numpy.linalg.matrix_rank", arrays=1)
def _matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    if A.ndim != 2 or hermitian or tol is not None or rtol is not None:
        return None
    s = np.linalg.svd(A, compute_uv=False)
    m, n = _lengths(A)
    most = A.recorder.apply(max, (m, n), {})
    return np.sum(s > np.max(s) * most * np.finfo(s.dtype).eps)
