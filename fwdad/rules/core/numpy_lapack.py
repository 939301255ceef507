"""NumPy's own LAPACK, called through :mod:`ctypes` in the library that NumPy is linked with."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

SINGULAR = "Singular matrix"
BASE = 64
"""Triangles up to this size are not split any further."""
# Fortran compilers append the length of each character argument; where they do not, it is ignored.
_ARGUMENTS = {
    "dgesv": 8,
    "zgesv": 8,
    "dgetrs": 9 + 1,
    "zgetrs": 9 + 1,
    "dtrtrs": 10 + 3,
    "ztrtrs": 10 + 3,
    "dscal": 4,
    "zdscal": 4,
    "dsygst": 8 + 1,
    "zhegst": 8 + 1,
    "dtrmm": 11 + 4,
    "ztrmm": 11 + 4,
    "dgemm": 13 + 2,
    "zgemm": 13 + 2,
    "dtrsm": 11 + 4,
    "ztrsm": 11 + 4,
    "dsyr2k": 12 + 2,
    "zher2k": 12 + 2,
    "dger": 9,
}
# How builds of NumPy name LAPACK's routines: wheels, ILP64 builds, Apple's Accelerate, the rest.
_ILP64_NAMES = ("scipy_{}_64_", "{}_64_", "{}$NEWLAPACK$ILP64")
_LP64_NAMES = ("scipy_{}_", "{}$NEWLAPACK", "{}_")


_FLAGS = ctypes.create_string_buffer(b"NTURLC")
_N, _T, _U, _R, _L, _C = (ctypes.addressof(_FLAGS) + k for k in range(6))
_SIGNS = (ctypes.c_double * 5)(1.0, 0.0, -1.0, 0.0, 0.5)
_UNITY = ctypes.addressof(_SIGNS)  # the factor 1, real or complex
_MINUS = _UNITY + 2 * ctypes.sizeof(ctypes.c_double)
_HALF = _UNITY + 4 * ctypes.sizeof(ctypes.c_double)


_BYTE = ctypes.c_char.from_buffer


def _at(array: Any) -> int:
    """The address of an array."""
    if array.flags.c_contiguous:  # and writeable: a third of the time
        return ctypes.addressof(_BYTE(array))
    address: int = array.__array_interface__["data"][0]
    return address


def _row_length(matrix: np.ndarray) -> int:
    """The distance between two rows in elements: LAPACK's leading dimension."""
    return max(matrix.strides[0] // matrix.itemsize, 1)


class NumpyLapack:
    """The routines that NumPy's linear algebra is made of.

    ``routines`` are foreign functions by LAPACK name, ``integer`` is LAPACK's integer type:
    ``ctypes.c_int64`` or ``ctypes.c_int32``.
    """

    _dgesv: Any
    _zgesv: Any
    _dgetrs: Any
    _zgetrs: Any
    _dtrtrs: Any
    _ztrtrs: Any
    _dger: Any
    _dgemm: Any

    def __init__(self, routines: dict[str, Any], integer: Any) -> None:
        for name, routine in routines.items():
            routine.restype = None
            routine.argtypes = [ctypes.c_void_p] * _ARGUMENTS[name]
            setattr(self, f"_{name}", routine)
        self._for_cholesky = {
            kind: tuple([routines[name] for name in names])
            for kind, names in (
                ("d", ("dsygst", "dscal", "dtrmm", "dgemm", "dtrsm", "dsyr2k")),
                ("z", ("zhegst", "zdscal", "ztrmm", "zgemm", "ztrsm", "zher2k")),
            )
        }
        self._numbers: dict[int, tuple[Any, int]] = {}  # never written, so shared by all threads
        self._integer = integer
        self._integers = integer * 3
        self._size = ctypes.sizeof(integer)
        self._pivots = np.dtype(integer)

    def _address(self, k: int) -> int:
        """The address of an integer: a dimension, of which there are few."""
        entry = self._numbers.get(k)
        if entry is None:
            number = self._integers(k, 0, 0)
            entry = self._numbers.setdefault(k, (number, ctypes.addressof(number)))
        return entry[1]

    def _addresses(self, integers: Any) -> tuple[int, int, int]:
        at = ctypes.addressof(integers)
        return at, at + self._size, at + 2 * self._size

    def gesv(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Any]:
        """Solve a x = b as ``numpy.linalg.solve`` does, and keep the factors.

        Shapes: a (n, n), b (n,) or (n, m), both double or both complex double.
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
        integers = self._integers(len(lower), len(columns), _row_length(lower))
        n, k, stride = self._addresses(integers)
        info = self._integers(0, 0, 0)
        routine = self._ztrtrs if lower.dtype.kind == "c" else self._dtrtrs
        # a C-ordered lower triangle is, to Fortran, the transpose of an upper one
        routine(
            *(_U, _T, _N, n, k, _at(lower), stride, _at(columns), n),
            *(ctypes.addressof(info), 1, 1, 1),
        )
        if info[0] > 0:
            raise np.linalg.LinAlgError(SINGULAR)

    def add_outer(self, a: np.ndarray, u: np.ndarray, v: np.ndarray) -> None:
        """Add ``u[:, None] * v`` to a matrix of doubles whose rows are dense, without a temporary.

        Shapes: a (m, n), u (m,), v (n,); u and v are doubles with positive steps, in other memory.
        """
        lengths = (self._integer * 5)(
            len(v), len(u), v.strides[0] // 8, u.strides[0] // 8, a.strides[0] // 8
        )
        at, size = ctypes.addressof(lengths), self._size
        self._dger(
            *(at, at + size, _UNITY, _at(v), at + 2 * size),
            *(_at(u), at + 3 * size, _at(a), at + 4 * size),
        )

    def add_product(self, a: np.ndarray, u: np.ndarray, v: np.ndarray) -> None:
        """Add ``u.T @ v`` to a matrix of doubles whose rows are dense, without a temporary.

        Shapes: a (m, n), u (k, m), v (k, n); u and v are doubles with dense rows, in other memory.
        """
        (k, m), n = u.shape, v.shape[1]
        sizes = (self._integer * 6)(n, m, k, *map(_row_length, (v, u, a)))
        at = [ctypes.addressof(sizes) + j * self._size for j in range(6)]
        self._dgemm(
            *(_N, _T, *at[:3], _UNITY, _at(v), at[3], _at(u), at[4], _UNITY, _at(a), at[5], 1, 1)
        )

    def differentiate_cholesky(self, lower: np.ndarray, lanes: np.ndarray) -> None:
        r"""Turn the lower triangle of each lane from Ȧ into L̇; the upper one holds zeros.

        Block by block, so that most of the n³ multiplications are matrix products:
        L̇₂₁ = (Ȧ₂₁ − L₂₁ L̇₁₁ᴴ) L₁₁⁻ᴴ, Ȧ₂₂ becomes Ȧ₂₂ − L₂₁ L̇₂₁ᴴ − L̇₂₁ L₂₁ᴴ, and small blocks are
        L Φ(L⁻¹ Ȧ L⁻ᴴ). It works in the lanes themselves and with bare addresses: intermediate
        arrays, and views of blocks, cost as much as the products.

        To Fortran all matrices are transposed, and a lower triangle is an upper one.
        Source: Murray (2016), "Differentiation of the Cholesky decomposition", section 4.2, here
        recursive. https://arxiv.org/abs/1602.07527
        """
        of_kind = self._for_cholesky["z" if lower.dtype.kind == "c" else "d"]
        reduce, scale, trmm, gemm, trsm, her2k = of_kind
        item = lower.itemsize
        of_l, of_d = _row_length(lower), _row_length(lanes[0])
        address = self._address
        row_l, row_d, one = address(of_l), address(of_d), address(1)
        status = self._integers(0, 0, 0)
        info = ctypes.addressof(status)

        def block(l11: int, d11: int, n: int) -> None:
            if n <= BASE:
                reduce(one, _U, address(n), d11, row_d, l11, row_l, info, 1)
                scale(address(n), _HALF, d11, address(of_d + 1))
                trmm(
                    *(_R, _U, _N, _N, address(n), address(n), _UNITY, l11, row_l, d11, row_d),
                    *(1, 1, 1, 1),
                )
                return
            m = n // 2
            l21, d21 = l11 + m * of_l * item, d11 + m * of_d * item
            l22, d22 = l21 + m * item, d21 + m * item
            first, rest = address(m), address(n - m)
            block(l11, d11, m)
            gemm(
                *(_C, _N, first, rest, first, _MINUS, d11, row_d, l21, row_l),
                *(_UNITY, d21, row_d, 1, 1),
            )
            trsm(*(_L, _U, _C, _N, first, rest, _UNITY, l11, row_l, d21, row_d), *(1, 1, 1, 1))
            her2k(
                *(_U, _C, rest, first, _MINUS, l21, row_l, d21, row_d),
                *(_UNITY, d22, row_d, 1, 1),
            )
            block(l22, d22, n - m)

        for lane in lanes:
            block(_at(lower), _at(lane), len(lower))


def numpy_lapack() -> NumpyLapack | None:
    """Find NumPy's LAPACK, or None where its symbols are out of reach."""
    module = getattr(np.linalg, "_umath_linalg", None)
    try:
        library = ctypes.CDLL(module.__file__)  # type: ignore[union-attr]
    except (AttributeError, OSError, TypeError):
        return None
    wide = bool(getattr(module, "_ilp64", False))
    for pattern in _ILP64_NAMES if wide else _LP64_NAMES:
        routines = {name: getattr(library, pattern.format(name), None) for name in _ARGUMENTS}
        if all(routines.values()):
            lapack = NumpyLapack(routines, ctypes.c_int64 if wide else ctypes.c_int32)
            return lapack if agrees(lapack) else None
    return None


def _block_lower(n: int) -> np.ndarray:
    """A lower triangle that is differentiated in blocks, and well conditioned."""
    return np.tril(np.cos(np.arange(n * n, dtype=float)).reshape(n, n)) / n


def agrees(lapack: NumpyLapack) -> bool:
    """Whether the routines return what NumPy returns, on one small system per field."""
    a = np.array([[1.0, 2.0, 0.5], [4.0, -3.0, 3.0], [0.25, 7.0, 1.0]])
    for field in (1.0, 1.0 + 0.5j):
        matrix, b = a * field + np.eye(3), np.array([1.0, -2.0, 0.75]) * field
        x, factors = lapack.gesv(matrix, b)
        again = b[None].copy()
        lapack.getrs(factors, again)
        lower = np.tril(matrix, -1) + np.diag([1.0, 2.0, 3.0])  # as a Cholesky factor's
        third = (lower @ b)[None]
        lapack.trtrs(lower, third)
        lanes = np.tril(lower @ np.conjugate(lower.T))[None]  # for Ȧ = A, L̇ = L / 2
        lapack.differentiate_cholesky(lower, lanes)
        view = np.zeros((3, 5))
        lapack.add_outer(view[:, 1:4], matrix.real[:, 1], matrix.real[2])
        left, right, sums = matrix.real[:2].copy(), np.arange(8.0).reshape(2, 4), np.ones((3, 5))
        lapack.add_product(sums[:, 1:4], left, right[:, 1:])
        wide = _block_lower(BASE + 7).astype(matrix.dtype) * field
        np.einsum("ii->i", wide)[...] = 2.0
        blocks = np.tril(wide @ np.conjugate(wide.T))[None]
        lapack.differentiate_cholesky(wide, blocks)
        if not (
            np.array_equal(x, np.linalg.solve(matrix, b))
            and np.allclose(again, x, rtol=1e-12)
            and np.allclose(third, b, rtol=1e-12)
            and np.allclose(lanes[0], 0.5 * lower, rtol=1e-12)
            and np.allclose(blocks[0], 0.5 * wide, rtol=1e-12)
            and np.allclose(view[:, 1:4], np.outer(matrix.real[:, 1], matrix.real[2]))
            and not view[:, ::4].any()
            and np.allclose(sums[:, 1:4], 1.0 + left.T @ right[:, 1:])
            and np.array_equal(sums[:, ::4], np.ones((3, 2)))
        ):
            return False
    return True
