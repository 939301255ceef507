"""Products of SciPy's sparse arrays from outside with traced vectors and matrices."""

from __future__ import annotations

from typing import Any

from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.tangents.sparse import sparse_product

_PRODUCTS = ("__matmul__", "dot")


def is_product(f: Any, args: Any) -> bool:
    """Whether a call of a sparse array's method is ``A @ x`` of a csr or csc array from outside."""
    if getattr(f, "__name__", "") not in _PRODUCTS or len(args) != 2:
        return False
    a, x = args
    if getattr(a, "format", "") not in ("csr", "csc") or a.ndim != 2:
        return False
    return type(x) is Symbol and x.is_array and 1 <= x.type.ndim <= 2


def product(tracer: Tracer, args: Any) -> Any:
    """``A @ x``; the elements of A, and where they are, are read at each run."""
    a, x = args
    parts = [tracer.attribute(a, name) for name in ("data", "indptr", "indices")]
    data, indptr, indices = map(tracer.recorder.as_symbol, parts)
    return tracer.call(_times, (data, x, a.format, indptr, indices, a.shape), {})


def _times(data: Any, x: Any, layout: str, indptr: Any, indices: Any, shape: Any) -> Any:
    """It is traced: SciPy's kernels do not look at lengths."""
    if x.shape[0] != shape[1]:
        raise ValueError("matmul: dimension mismatch with signature (n,k=?),(k,m)->(n,m)")
    return sparse_product(data, x, layout, indptr, indices, shape)
