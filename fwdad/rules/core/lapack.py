"""The LAPACK that NumPy itself calls, so that a factorisation can be kept and used again.

``numpy.linalg.solve`` factorises, solves, and throws the factors away; NumPy has no call that
returns them. A rule needs them once more, for the tangents. Two honest ways remain:

1. Call the very routine that NumPy calls (``gesv``) in the very library that NumPy is linked with,
   through :mod:`ctypes`. The solution is then NumPy's to the last bit, and the factors are there.
2. Where that library cannot be reached (its symbols are hidden), call ``numpy.linalg.solve`` for
   the primal and factorise again with SciPy's LAPACK for the tangents.

SciPy's ``gesv`` cannot stand in for NumPy's: wheels of the two bundle OpenBLAS separately, and with
NumPy 2.4 (OpenBLAS 0.3.31) and SciPy 1.17 (0.3.30) on two threads the solutions differ in their
last bits from n = 100 on. The first way costs 1.0 factorisation per call, the second 2.0.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fwdad.rules.core.numpy_lapack import NumpyLapack, numpy_lapack
from fwdad.rules.core.scipy_lapack import SciPyLapack
from fwdad.rules.triangles import adjoint, from_lower
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain
from fwdad.tangents.symbolic import apply, array_of


@functools.cache
def lapack() -> NumpyLapack | SciPyLapack:
    """The LAPACK to use: NumPy's own where it can be reached, else SciPy's."""
    return numpy_lapack() or SciPyLapack()


class Factors:
    """An LU factorisation that solves for tangents, all lanes at once.

    ``a`` is the matrix, used for tangents that are not plain lanes; ``factors`` are the triangles
    and the pivots from ``gesv``.
    """

    def __init__(self, a: Any, factors: Any) -> None:
        self._a = a
        self._factors = factors

    def solve(self, b_dot: Any) -> Any:
        """Return A⁻¹ b_dot, for a tangent of shape (n,) or (n, m)."""
        dtype = self._factors[0].dtype
        if not _has_plain_lanes(b_dot) or np.result_type(b_dot.dtype, dtype) != dtype:
            return np.linalg.solve(self._a, b_dot)
        columns, single = _as_rows(b_dot, dtype)
        lapack().getrs(self._factors, columns.reshape(-1, columns.shape[-1]))
        return _from_rows(columns, single)


class Unfactorised:
    """Solves with a matrix, or a stack of them, for which there are no factors to keep."""

    def __init__(self, a: Any) -> None:
        self._a = a

    def solve(self, b_dot: Any) -> Any:
        """Return A⁻¹ b_dot, all lanes as columns of one system."""
        return np.linalg.solve(self._a, b_dot)


def solve_and_factorize(a: Any, b: Any) -> tuple[Any, Factors | Unfactorised]:
    """Solve a x = b, bit-equal to ``numpy.linalg.solve``, and keep the factors of a.

    Factors are kept for one real or complex matrix; a stack of matrices, and the primals of an
    enclosing derivative, keep none.
    """
    if not (_is_matrix(a) and _is_plain(b) and b.ndim in (1, 2) and len(b) == len(a)):
        return np.linalg.solve(a, b), Unfactorised(a)
    result = np.result_type(a, b)
    dtype = np.complex128 if result.kind == "c" else np.float64  # NumPy computes in double
    x, factors = lapack().gesv(a.astype(dtype, copy=False), b.astype(dtype, copy=False))
    single = result in (np.float32, np.complex64)
    return (x.astype(result) if single else x), Factors(a, factors)


def cholesky_tangent(lower: Any, a_dot: Any) -> Any:
    """Return L Φ(L⁻¹ Ȧ L⁻ᴴ), Φ the lower triangle with half the diagonal.

    Shape of L and Ȧ: (..., n, n). Of Ȧ only the lower triangle is read, and of its diagonal the
    real part.
    """
    if not (_is_matrix(lower) and _has_plain_lanes(a_dot)):
        n = lower.shape[-1]
        half = np.linalg.solve(lower, from_lower(a_dot))
        p = np.linalg.solve(lower, adjoint(half))  # L⁻¹ Ȧ L⁻ᴴ is Hermitian
        phi = apply(np.tri, n) - 0.5 * apply(np.eye, n)
        phi = phi.astype(np.real(array_of(lower)).dtype)
        return lower @ (phi * p)
    lanes = a_dot.lanes
    result = np.result_type(lower.dtype, lanes.dtype)
    dtype = np.complex128 if result.kind == "c" else np.float64
    triangle = _writeable(lower, dtype)
    triangles = np.zeros(lanes.shape, dtype)
    np.copyto(triangles, lanes, where=_lower(len(triangle)))
    lapack().differentiate_cholesky(triangle, triangles)
    return Chunk(triangles.astype(result, copy=False))


@functools.lru_cache(maxsize=64)
def _lower(n: int) -> np.ndarray:
    """A mask of the lower triangle, with its diagonal."""
    return np.tri(n, dtype=bool)


def _writeable(a: np.ndarray, dtype: Any) -> np.ndarray:
    """A C-contiguous array of that dtype whose address may be taken."""
    a = np.ascontiguousarray(a, dtype)
    return a if a.flags.writeable else a.copy()


def solve_lower(lower: Any, b_dot: Any) -> Any:
    """Return L⁻¹ b_dot for a lower triangle (..., n, n) and a tangent of shape (..., n, m)."""
    if not (_is_matrix(lower) and _has_plain_lanes(b_dot)):
        return np.linalg.solve(lower, b_dot)
    dtype = np.complex128 if np.result_type(lower, b_dot.dtype).kind == "c" else np.float64
    columns, single = _as_rows(b_dot, dtype)
    triangle = _writeable(lower, dtype)
    lapack().trtrs(triangle, columns.reshape(-1, columns.shape[-1]))
    return _from_rows(columns, single)


def _is_plain(x: Any) -> bool:
    raw = plain(x)
    return raw is x and type(raw) is np.ndarray and raw.dtype.char in "fdFDlqi?" and raw.size > 0


def _is_matrix(a: Any) -> bool:
    return _is_plain(a) and a.ndim == 2 and a.shape[0] == a.shape[1]


def _has_plain_lanes(x_dot: Any) -> bool:
    """Whether a tangent is a chunk of plain lanes: not one that records, nor one of duals."""
    return type(x_dot) is Chunk and _is_plain(x_dot.lanes)


def _as_rows(b_dot: Chunk, dtype: Any) -> tuple[np.ndarray, Any]:
    """Copy the lanes so that every column of every lane is a contiguous row."""
    lanes = b_dot.lanes
    single = lanes.dtype if lanes.dtype.char in "fF" else None
    if lanes.ndim == 3:
        lanes = np.swapaxes(lanes, 1, 2)
    return np.array(lanes, dtype, order="C", copy=True), single


def _from_rows(columns: np.ndarray, single: Any) -> Chunk:
    if single is not None:
        # a real right side of a complex system has complex lanes
        columns = columns.astype(np.complex64 if columns.dtype.kind == "c" else single)
    return Chunk(np.swapaxes(columns, 1, 2) if columns.ndim == 3 else columns)
