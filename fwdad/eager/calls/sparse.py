"""SciPy's sparse arrays: handlers of those methods and kernels that cannot simply be lifted.

SciPy's Python code is lifted like any other, down to its C kernels (``sparse_kernels.py``). Some
methods are handled before that: products, to spare a detour through memory, and those that test
values for zeros, because an active element is stored even where it is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from fwdad.eager.activity import is_active
from fwdad.eager.calls.dispatch import HANDLERS, call
from fwdad.eager.calls.sparse_kernels import KERNELS, diagonals, guarded, product
from fwdad.eager.duals.explicit import explicit
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.lifting.lift import lift
from fwdad.errors import UnsupportedTypeError
from fwdad.rules.core.registry import when_imported
from fwdad.tangents.plain import plain
from fwdad.tangents.sparse import sparse_solve


def _matmul(method: Any) -> Callable[..., Any]:
    """The handler of products with dense vectors and matrices, which are computed in one step."""

    def handle(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        a, x = args[0], explicit(args[1])
        dense = plain(x)
        if (
            type(dense) is not np.ndarray
            or not 1 <= dense.ndim <= 2
            or dense.shape[0] != a.shape[-1]
            or a.format in ("dok", "lil")
        ):
            return _lifted(method, args, kwargs)
        if not is_active((a.data, x)):
            return method(*args, **kwargs)
        data, shape = explicit(a.data), a.shape if a.ndim == 2 else (1, *a.shape)
        if a.format in ("csr", "csc"):
            y = product(a.format, (a.indptr, a.indices), shape, data, x)
            return y[0] if a.ndim == 1 else y
        if a.format == "dia":
            *places, stored = diagonals(a.offsets, plain(data).shape, shape)
            return product("coo", tuple(places), shape, data[stored], x)
        if a.format == "coo" and a.ndim == 2:
            return product("coo", (a.row, a.col), shape, data, x)
        return _lifted(method, args, kwargs)

    return handle


def _from_dense(init: Any) -> Callable[..., Any]:
    """The handler of ``__init__``: an active dense array stores every element, even zeros."""

    def handle(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        a, source, *rest = args
        dense = explicit(source)
        if is_active((dense,)) and isinstance(dense, (np.ndarray, list)):
            dense = call(np.asarray, dense)
            if not hasattr(type(a), "from_dense") and plain(dense).ndim < 2 and _is_matrix(a):
                dense = np.reshape(dense, (1, -1))
            shape = plain(dense).shape
            coords = tuple(np.reshape(index, -1) for index in np.indices(shape))
            source = (np.reshape(dense, -1), coords)
            kwargs = dict(zip(("shape", "dtype", "copy"), rest, strict=False)) | kwargs
            return _lifted(init, (a, source), kwargs | {"shape": shape})
        return _lifted(init, args, kwargs)

    return handle


def _is_matrix(a: Any) -> bool:
    from scipy.sparse import spmatrix  # noqa: PLC0415  (a sparse array is here already)

    return isinstance(a, spmatrix)


def _from_diagonals(method: Any, then: str) -> Callable[..., Any]:
    """The handler of conversions of DIA, which would skip zeros among the values."""

    def handle(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        a, *_ = args
        data = explicit(a.data)
        if not is_active((data,)):
            return _lifted(method, args, kwargs)
        rows, cols, stored = diagonals(a.offsets, plain(data).shape, a.shape)
        coo = call(a._coo_container, (data[stored], (rows, cols)), shape=a.shape)
        return coo if then == "tocoo" else call(getattr(coo, then))

    return handle


def _through_csr(method: Any, name: str) -> Callable[..., Any]:
    """The handler of a method of DIA or BSR that goes through CSR where elements are active."""

    def handle(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        a, *rest = args
        sparse = [other for other in rest if hasattr(other, "tocsr")]
        if not is_active((a.data, *rest, *(other.data for other in sparse))):
            return _lifted(method, args, kwargs)
        value = call(getattr(call(a.tocsr), name), *rest, **kwargs)
        if not hasattr(value, "tocsr"):
            return value
        if a.format == "dia":
            return call(value.todia) if all(other.format == "dia" for other in sparse) else value
        (m, n), (p, q) = value.shape, a.blocksize
        return call(value.tobsr, blocksize=(p if m % p == 0 else 1, q if n % q == 0 else 1))

    return handle


def _keeping_zeros(method: Any) -> Callable[..., Any]:
    def handle(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return None if is_active((args[0].data,)) else _lifted(method, args, kwargs)

    return handle


def _no_matrix(make: Any) -> Callable[..., Any]:
    """The handler of ``numpy.matrix``, which cannot carry tangents: ``*`` is a matrix product."""

    def handle(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if is_active(args):
            message = (
                "a value that carries a derivative would become a numpy.matrix, whose `*` is a "
                "matrix product: use sparse arrays (csr_array, …), which give ndarrays, instead of "
                "sparse matrices, and numpy.asarray instead of numpy.asmatrix"
            )
            raise UnsupportedTypeError(message)
        return make(*args, **kwargs)

    return handle


def _sum(method: Any) -> Callable[..., Any]:
    """The handler of the sum over a sparse matrix, which SciPy computes by a ``numpy.matrix``."""

    def handle(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        bound = dict(zip(("a", "axis", "dtype", "out"), args, strict=False)) | kwargs
        a, data = bound["a"], explicit(bound["a"].data)
        if not is_active((data,)) or not _is_matrix(a) or bound.get("axis") is not None:
            return _lifted(method, args, kwargs)
        if a.format == "dia":
            data = data[diagonals(a.offsets, plain(data).shape, a.shape)[2]]
        return call(np.sum, data, dtype=bound.get("dtype"), out=bound.get("out"))

    return handle


def _absolute(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    """``abs(x)``, by the class's own method where that is written in Python."""
    x = explicit(args[0])
    method = getattr(type(x), "__abs__", None)
    python = isinstance(method, FunctionType) and not isinstance_dual(x)
    return call(method, x) if python else abs(x)


HANDLERS[np.matrix] = _no_matrix(np.matrix)
HANDLERS[np.asmatrix] = _no_matrix(np.asmatrix)
HANDLERS.setdefault(abs, _absolute)


def _lifted(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return (lift(f) or f)(*args, **kwargs)


def _install(_module: Any) -> None:
    """Install the handlers when ``scipy.sparse`` has been imported."""
    from scipy.sparse import (  # noqa: PLC0415
        _base,
        _bsr,
        _compressed,
        _coo,
        _dia,
        _sparsetools,
        _sputils,
    )

    for name, (writes, body) in KERNELS.items():
        kernel = getattr(_sparsetools, name, None)  # older releases have fewer
        if kernel is not None:
            HANDLERS[kernel] = guarded(kernel, writes, body)
    cs, coo, dia = _compressed._cs_matrix, _coo._coo_base, _dia._dia_base
    bsr = _bsr._bsr_base
    for name in ("_matmul_vector", "_matmul_multivector"):
        for cls in (cs, dia):
            if name in vars(cls):  # DIA had no second one before SciPy 1.16
                HANDLERS[vars(cls)[name]] = _matmul(vars(cls)[name])
    for method in (_base._spbase.__matmul__, _base._spbase._matmul_dispatch):
        HANDLERS[method] = _matmul(method)
    for cls in (_base._spbase, cs, dia):
        HANDLERS[cls.sum] = _sum(cls.sum)
    for make in (_sputils.matrix, _sputils.asmatrix):
        HANDLERS[make] = _no_matrix(make)
    HANDLERS[coo.__init__] = _from_dense(coo.__init__)
    HANDLERS[coo.eliminate_zeros] = _keeping_zeros(coo.eliminate_zeros)
    for name in ("tocoo", "tocsr", "tocsc"):
        if name in vars(dia):
            HANDLERS[vars(dia)[name]] = _from_diagonals(vars(dia)[name], name)
    for name in ("_matmul_vector", "_matmul_multivector", "_matmul_sparse", "_binopt", "diagonal"):
        for cls in (bsr, dia):
            method = vars(cls).get(name)
            if method is not None and method not in HANDLERS:
                HANDLERS[method] = _through_csr(method, name)


def _install_solver(gssv: Any) -> None:
    """Install the handler of SuperLU's driver, the only part of ``spsolve`` that is not Python."""

    def drive(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not is_active(args):
            return gssv(*args, **kwargs)
        _n, stored, data, indices, indptr, b, flag = args
        layout = "csc" if flag else "csr"
        places = (indptr, indices[:stored], kwargs.get("options", {}))
        return call(sparse_solve, explicit(data)[:stored], explicit(b), layout, *places)

    HANDLERS[gssv] = drive


when_imported("scipy.sparse._sparsetools.csr_matvec", _install)
when_imported("scipy.sparse.linalg._dsolve._superlu.gssv", _install_solver)
