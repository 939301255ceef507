"""LAPACK's factorisations for generated code, from the library that SciPy ships.

Importing this module needs Numba.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba import njit
from numba.core import cgutils
from numba.core import types as _types
from numba.extending import get_cython_function_address, intrinsic, overload
from numba.np import linalg as _numba

from fwdad.codegen.llvm.unwinding import UnwindingCompiler
from fwdad.codegen.numba_support import CHECK_BOUNDS
from fwdad.tangents.adjugate import WELL_CONDITIONED

types: Any = _types
_OPTIONS = {"pipeline_class": UnwindingCompiler}
_njit = njit(boundscheck=CHECK_BOUNDS, **_OPTIONS)
_KINDS = {types.float32: "s", types.float64: "d", types.complex64: "c", types.complex128: "z"}
_INT = ir.IntType(32)


def provide(_names: set[str]) -> None:
    """Register LAPACK's functions for machine code: before any that calls them is linked."""
    _register()


@functools.cache
def _register() -> None:
    for kind in _KINDS.values():
        for name in ("getrf", "getrs"):
            address = get_cython_function_address("scipy.linalg.cython_lapack", f"{kind}{name}")
            llvm.add_symbol(f"fwdad_{kind}{name}", address)


def _pointer(builder: Any, value: Any) -> Any:
    place = cgutils.alloca_once(builder, value.type)
    builder.store(value, place)
    return place


def _call(context: Any, builder: Any, name: str, array_type: Any, given: list[Any]) -> Any:
    """Call a function of LAPACK, and return the status from its last argument."""
    info = _pointer(builder, ir.Constant(_INT, 0))
    byte = cgutils.voidptr_t
    args = [builder.bitcast(p, byte) for p in (*given, info)]
    kind = _KINDS[array_type.dtype]
    function_type = ir.FunctionType(ir.VoidType(), [byte] * len(args))
    function = cgutils.get_or_insert_function(builder.module, function_type, f"fwdad_{kind}{name}")
    builder.call(function, args)
    return context.cast(builder, builder.load(info), types.int32, types.intp)


def _arrays(context: Any, builder: Any, sig: Any, args: Any) -> list[Any]:
    return [context.make_array(t)(context, builder, a) for t, a in zip(sig.args, args, strict=True)]


def _length(builder: Any, array: Any, axis: int) -> Any:
    return _pointer(builder, builder.trunc(builder.extract_value(array.shape, axis), _INT))


@intrinsic
def _getrf(_typing, columns, pivots):
    """Factorise a matrix, whose columns are the rows of an array, in place."""

    def code(context, builder, sig, args):
        a, p = _arrays(context, builder, sig, args)
        n = _length(builder, a, 0)
        return _call(context, builder, "getrf", sig.args[0], [n, n, a.data, n, p.data])

    return types.intp(columns, pivots), code


@intrinsic
def _getrs(_typing, columns, pivots, right):
    """Solve for right-hand sides that are the rows of an array, in place."""

    def code(context, builder, sig, args):
        a, p, b = _arrays(context, builder, sig, args)
        n, count = _length(builder, a, 0), _length(builder, b, 0)
        plain = _pointer(builder, ir.Constant(ir.IntType(8), ord("N")))
        arguments = [plain, n, count, a.data, n, p.data, b.data, n]
        return _call(context, builder, "getrs", sig.args[0], arguments)

    return types.intp(columns, pivots, right), code


@_njit
def lu_factor(a):
    """The LU factors of a square matrix, stored by columns, and the row exchanges."""
    n = a.shape[0]
    if a.shape[1] != n:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    columns = np.empty((n, n), a.dtype)
    for i in range(n):
        for j in range(n):
            columns[j, i] = a[i, j]
    pivots = np.empty(n, np.int32)
    if n > 0 and _getrf(columns, pivots) != 0:
        raise np.linalg.LinAlgError("Singular matrix")
    return columns, pivots


@_njit
def lu_solve_vector(columns, pivots, b):
    """Solve for one right-hand side, from the factors."""
    n = columns.shape[0]
    if b.shape[0] != n:
        raise ValueError("solve: the right-hand side does not fit the matrix")
    x = np.empty((1, n), columns.dtype)
    for i in range(n):
        x[0, i] = b[i]
    if n > 0:
        _getrs(columns, pivots, x)
    return x[0]


@_njit
def lu_solve_matrix(columns, pivots, b):
    """Solve for the columns of a matrix, from the factors."""
    n, count = b.shape
    if columns.shape[0] != n:
        raise ValueError("solve: the right-hand sides do not fit the matrix")
    x = np.empty((count, n), columns.dtype)
    for i in range(n):
        for k in range(count):
            x[k, i] = b[i, k]
    if n > 0 and count > 0:
        _getrs(columns, pivots, x)
    return x.T


# -- what Numba has, compiled so that it leaks nothing where it raises


def _of_numba(name: str, implementation: Any) -> Any:
    """A function that compiled code calls, with one of Numba's implementations."""

    def call(*_args: Any) -> Any:
        raise NotImplementedError

    call.__name__ = call.__qualname__ = f"lapack_{name}"
    overload(call, jit_options=_OPTIONS, strict=False)(implementation)
    return call


lapack_cholesky = _of_numba("cholesky", _numba.cho_impl)
lapack_eigh = _of_numba("eigh", _numba.eigh_impl)
lapack_eigvalsh = _of_numba("eigvalsh", _numba.eigvalsh_impl)
lapack_inv = _of_numba("inv", _numba.inv_impl)
lapack_lstsq = _of_numba("lstsq", _numba.lstsq_impl)
lapack_pinv = _of_numba("pinv", _numba.pinv_impl)
lapack_qr = _of_numba("qr", _numba.qr_impl)
_wide_slogdet = _of_numba("slogdet", _numba.slogdet_impl)
lapack_svd = _of_numba("svd", _numba.svd_impl)


@_njit
def lapack_slogdet(a):
    """The sign and the logarithm of a determinant, in the precision of the matrix."""
    sign, logarithm = _wide_slogdet(a)
    return a.dtype.type(sign), a.real.dtype.type(logarithm)


@_njit
def lapack_det(a):
    """The determinant of a matrix."""
    sign, logarithm = _wide_slogdet(a)
    return a.dtype.type(sign * np.exp(logarithm))


@_njit
def lapack_qr_r(a):
    """The triangular factor of a matrix."""
    return lapack_qr(a)[1]


@_njit
def lapack_svdvals(a):
    """The singular values of a matrix."""
    return lapack_svd(a, 0)[1]


# -- functions of our own of matrices


@_njit
def matrix_power(a, n):
    """A power of a square matrix, by repeated squaring, as NumPy forms it."""
    if a.shape[0] != a.shape[1]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    if n == 0:
        return np.eye(a.shape[0]).astype(a.dtype)
    square = lapack_inv(a) if n < 0 else a.copy()
    left, power, made = abs(n), square, False
    while left > 0:
        if left & 1:
            power = np.dot(power, square) if made else square
            made = True
        left >>= 1
        if left > 0:
            square = np.dot(square, square)
    return power


def eigh_upper(a):
    """Eigenvalues and vectors of a matrix by its upper triangle; for compiled code only."""
    raise NotImplementedError


@overload(eigh_upper, jit_options=_OPTIONS)
def _eigh_upper(a):
    """Like Numba's ``eigh``, which reads the lower triangle: there, vectors have other signs."""
    evd = _numba._LAPACK().numba_ez_xxxevd(a.dtype)
    kind = ord(_numba.get_blas_kind(a.dtype, "eigh"))
    vectors, upper = ord("V"), ord("U")
    real = np.dtype(str(getattr(a.dtype, "underlying_float", a.dtype)))

    def eigh(a):
        n = a.shape[0]
        if a.shape[1] != n:
            raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
        columns = _numba._copy_to_fortran_order(a)
        w = np.empty(n, real)
        if n > 0:
            left = evd(kind, vectors, upper, n, columns.ctypes, n, w.ctypes)
            _numba._handle_err_maybe_convergence_problem(left)
            _numba._dummy_liveness_func([columns.size, w.size])
        return w, columns

    return eigh


@_njit
def cofactors(a, determinant):
    """The matrix of cofactors; of an ill-conditioned matrix from its singular values."""
    n = a.shape[0]
    if n == 0:
        return np.empty((0, 0), a.dtype)
    if determinant != 0:  # so no pivot is zero
        inverse = lapack_inv(a)
        if not _largest_column(a) * _largest_column(inverse) >= WELL_CONDITIONED:
            return determinant * inverse.T
    u, s, vh = lapack_svd(a, 1)
    left = np.conj(u)
    for k in range(n):
        others = 1.0
        for j in range(n):
            if j != k:
                others *= s[j]
        for i in range(n):
            left[i, k] *= others
    return lapack_det(u) * lapack_det(vh) * np.dot(left, np.conj(vh))


@_njit
def _largest_column(a):
    most = 0.0
    for j in range(a.shape[1]):
        total = 0.0
        for i in range(a.shape[0]):
            total += abs(a[i, j])
        if not total <= most:
            most = total
    return most
