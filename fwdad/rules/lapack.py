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

import ctypes
import functools
from typing import Any

import numpy as np

from fwdad.tangents.chunk import Chunk, plain

SINGULAR = "Singular matrix"
# Fortran compilers append the length of each character argument; where they do not, it is ignored.
_ARGUMENTS = {"gesv": 8, "getrs": 9 + 1, "trtrs": 10 + 3}
_ROUTINES = ("dgesv", "zgesv", "dgetrs", "zgetrs", "dtrtrs", "ztrtrs")
# How builds of NumPy name LAPACK's routines: wheels, ILP64 builds, Apple's Accelerate, the rest.
_ILP64_NAMES = ("scipy_{}_64_", "{}_64_", "{}$NEWLAPACK$ILP64")
_LP64_NAMES = ("scipy_{}_", "{}$NEWLAPACK", "{}_")


_FLAGS = ctypes.create_string_buffer(b"NTU")
_N, _T, _U = (ctypes.addressof(_FLAGS) + k for k in range(3))


_BYTE = ctypes.c_char.from_buffer


def _at(array: np.ndarray) -> int:
    """The address of a writeable C-contiguous array (``array.ctypes`` takes five times as long)."""
    return ctypes.addressof(_BYTE(array))  # type: ignore[arg-type]


class NumpyLapack:
    """The routines that NumPy's linear algebra is made of.

    Parameters
    ----------
    routines : dict
        Foreign functions by LAPACK name.
    integer : type
        LAPACK's integer, ``ctypes.c_int64`` or ``ctypes.c_int32``.
    """

    _dgesv: Any
    _zgesv: Any
    _dgetrs: Any
    _zgetrs: Any
    _dtrtrs: Any
    _ztrtrs: Any

    def __init__(self, routines: dict[str, Any], integer: Any) -> None:
        for name, routine in routines.items():
            routine.restype = None
            routine.argtypes = [ctypes.c_void_p] * _ARGUMENTS[name[1:]]
            setattr(self, f"_{name}", routine)
        self._integers = integer * 3
        self._size = ctypes.sizeof(integer)
        self._pivots = np.dtype(integer)

    def _addresses(self, integers: Any) -> tuple[int, int, int]:
        at = ctypes.addressof(integers)
        return at, at + self._size, at + 2 * self._size

    def gesv(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Any]:
        """Solve a x = b as ``numpy.linalg.solve`` does, and keep the factors.

        Parameters
        ----------
        a : ndarray
            Shape (n, n), double or complex double.
        b : ndarray
            Shape (n,) or (n, m), of a's dtype.
        """
        n = len(a)
        # a C-contiguous copy of the transpose is the Fortran-contiguous copy that LAPACK wants
        lu, x = np.array(a.T, order="C", copy=True), np.array(b.T, order="C", copy=True)
        pivots = np.empty(n, self._pivots)
        integers = self._integers(n, 1 if b.ndim == 1 else len(x), 0)
        first, second, info = self._addresses(integers)
        routine = self._zgesv if lu.dtype.kind == "c" else self._dgesv
        routine(first, second, _at(lu), first, _at(pivots), _at(x), first, info)
        if integers[2] > 0:
            raise np.linalg.LinAlgError(SINGULAR)
        return (x if b.ndim == 1 else np.ascontiguousarray(x.T)), (lu, pivots)

    def getrs(self, factors: Any, columns: np.ndarray) -> None:
        """Solve in place for the rows of a C-contiguous array, shape (k, n)."""
        lu, pivots = factors
        integers = self._integers(len(lu), len(columns), 0)
        n, k, info = self._addresses(integers)
        routine = self._zgetrs if lu.dtype.kind == "c" else self._dgetrs
        routine(_N, n, k, _at(lu), n, _at(pivots), _at(columns), n, info, 1)

    def trtrs(self, lower: np.ndarray, columns: np.ndarray) -> None:
        """Solve in place with a lower triangle, for the rows of a C-contiguous array (k, n)."""
        integers = self._integers(len(lower), len(columns), 0)
        n, k, info = self._addresses(integers)
        routine = self._ztrtrs if lower.dtype.kind == "c" else self._dtrtrs
        # a C-contiguous lower triangle is, to Fortran, the transpose of an upper one
        routine(_U, _T, _N, n, k, _at(lower), n, _at(columns), n, info, 1, 1, 1)
        if integers[2] > 0:
            raise np.linalg.LinAlgError(SINGULAR)


class SciPyLapack:
    """The same through SciPy's own LAPACK, which need not be the one that NumPy uses."""

    def __init__(self) -> None:
        from scipy.linalg import lapack  # noqa: PLC0415  (0.4 s: only where it is needed)

        self._lapack = lapack

    def gesv(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Any]:
        """Solve a x = b by NumPy, and factorise once more for the tangents."""
        x = np.linalg.solve(a, b)
        getrf = self._lapack.zgetrf if a.dtype.kind == "c" else self._lapack.dgetrf
        lu, pivots, _ = getrf(a)
        return x, (lu, pivots)

    def getrs(self, factors: Any, columns: np.ndarray) -> None:
        """Solve in place for the rows of a C-contiguous array, shape (k, n)."""
        lu, pivots = factors
        getrs = self._lapack.zgetrs if lu.dtype.kind == "c" else self._lapack.dgetrs
        columns[...] = getrs(lu, pivots, columns.T)[0].T

    def trtrs(self, lower: np.ndarray, columns: np.ndarray) -> None:
        """Solve in place with a lower triangle, for the rows of a C-contiguous array (k, n)."""
        trtrs = self._lapack.ztrtrs if lower.dtype.kind == "c" else self._lapack.dtrtrs
        solution, info = trtrs(lower.T, columns.T, lower=0, trans=1)
        if info > 0:
            raise np.linalg.LinAlgError(SINGULAR)
        columns[...] = solution.T


def _numpy_lapack() -> NumpyLapack | None:
    """Find NumPy's LAPACK, or None where its symbols are out of reach."""
    module = getattr(np.linalg, "_umath_linalg", None)
    try:
        library = ctypes.CDLL(module.__file__)  # type: ignore[union-attr]
    except (AttributeError, OSError, TypeError):
        return None
    wide = bool(getattr(module, "_ilp64", False))
    for pattern in _ILP64_NAMES if wide else _LP64_NAMES:
        routines = {name: getattr(library, pattern.format(name), None) for name in _ROUTINES}
        if all(routines.values()):
            found = NumpyLapack(routines, ctypes.c_int64 if wide else ctypes.c_int32)
            return found if _agrees(found) else None
    return None


def _agrees(found: NumpyLapack) -> bool:
    """Whether the routines answer what NumPy answers, on one small system per field."""
    a = np.array([[1.0, 2.0, 0.5], [4.0, -3.0, 3.0], [0.25, 7.0, 1.0]])
    for field in (1.0, 1.0 + 0.5j):
        matrix, b = a * field + np.eye(3), np.array([1.0, -2.0, 0.75]) * field
        x, factors = found.gesv(matrix, b)
        again = b[None].copy()
        found.getrs(factors, again)
        lower = np.tril(matrix)
        third = (lower @ b)[None]
        found.trtrs(lower, third)
        if not (
            np.array_equal(x, np.linalg.solve(matrix, b))
            and np.allclose(again, x, rtol=1e-12)
            and np.allclose(third, b, rtol=1e-12)
        ):
            return False
    return True


@functools.cache
def lapack() -> NumpyLapack | SciPyLapack:
    """The LAPACK to use: NumPy's own where it can be reached, else SciPy's."""
    return _numpy_lapack() or SciPyLapack()


class Factors:
    """An LU factorisation that solves for tangents, all lanes at once.

    Parameters
    ----------
    a : ndarray
        The matrix, for tangents that are no plain lanes.
    factors : tuple
        What ``gesv`` left: the triangles and the pivots.
    """

    def __init__(self, a: Any, factors: Any) -> None:
        self._a = a
        self._factors = factors

    def solve(self, b_dot: Any) -> Any:
        """Answer A⁻¹ b_dot, for a tangent of shape (n,) or (n, m)."""
        if not _has_plain_lanes(b_dot):
            return np.linalg.solve(self._a, b_dot)
        dtype = self._factors[0].dtype
        columns, single = _as_rows(b_dot, dtype)
        lapack().getrs(self._factors, columns.reshape(-1, columns.shape[-1]))
        return _from_rows(columns, single)


class Unfactorised:
    """Solves with a matrix, or a stack of them, for which there are no factors to keep."""

    def __init__(self, a: Any) -> None:
        self._a = a

    def solve(self, b_dot: Any) -> Any:
        """Answer A⁻¹ b_dot, all lanes as columns of one system."""
        return np.linalg.solve(self._a, b_dot)


def solve_and_factorize(a: Any, b: Any) -> tuple[Any, Factors | Unfactorised]:
    """Solve a x = b, bit-equal to ``numpy.linalg.solve``, and keep the factors of a.

    Parameters
    ----------
    a, b : array_like
        Any arguments of ``numpy.linalg.solve``. The factors are kept for one real or complex
        matrix; a stack of matrices, and the primals of an enclosing derivative, keep none.
    """
    if not (_is_matrix(a) and _is_plain(b) and b.ndim in (1, 2) and len(b) == len(a)):
        return np.linalg.solve(a, b), Unfactorised(a)
    result = np.result_type(a, b)
    dtype = np.complex128 if result.kind == "c" else np.float64  # NumPy computes in double
    x, factors = lapack().gesv(a.astype(dtype, copy=False), b.astype(dtype, copy=False))
    single = result in (np.float32, np.complex64)
    return (x.astype(result) if single else x), Factors(a, factors)


def solve_lower(lower: Any, b_dot: Any) -> Any:
    """Answer L⁻¹ b_dot for a lower triangle and a tangent of shape (n, m).

    Parameters
    ----------
    lower : array_like
        Shape (..., n, n).
    b_dot : Chunk
        A tangent of shape (..., n, m).
    """
    if not (_is_matrix(lower) and _has_plain_lanes(b_dot)):
        return np.linalg.solve(lower, b_dot)
    dtype = np.complex128 if np.result_type(lower, b_dot.dtype).kind == "c" else np.float64
    columns, single = _as_rows(b_dot, dtype)
    triangle = np.ascontiguousarray(lower, dtype)
    if not triangle.flags.writeable:
        triangle = triangle.copy()
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
