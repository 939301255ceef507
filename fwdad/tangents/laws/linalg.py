"""The closed list: products along chosen axes, and NumPy's array-API names.

The transposes of these functions are next to their rules in ``fwdad/rules``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import NonlinearTangentError
from fwdad.tangents.chunk import LAWS, Chunk
from fwdad.tangents.laws.listing import law
from fwdad.tangents.laws.products import matmul
from fwdad.tangents.plain import plain


def _along_axes(
    core: Callable[[Any, Any], Any], *, cores: tuple[int, int, int]
) -> Callable[..., Any]:
    """Give a product of trailing axes the ``axes``, ``axis`` and ``keepdims`` of a ``gufunc``.

    ``core`` takes two operands, primals or chunks, whose core axes are the last ones; ``cores``
    are the numbers of core axes of either operand and of the result.
    """

    def product(
        x1: Any,
        x2: Any,
        out: None = None,
        *,
        axes: Any = None,
        axis: int | None = None,
        keepdims: bool = False,
    ) -> Any:
        if axes is None:
            if axis is None and not keepdims:
                return core(x1, x2)
            k = -1 if axis is None else axis
            axes = [k, k, k if keepdims else ()]
        entries = [(e,) if isinstance(e, (int, np.integer)) else tuple(e) for e in axes]
        y = core(_to_end(x1, entries[0]), _to_end(x2, entries[1]))
        if keepdims:
            y = y[..., None]
        elif not cores[2]:
            return y
        return np.moveaxis(y, tuple(range(-len(entries[2]), 0)), entries[2])

    return product


def _to_end(x: Any, axes: tuple[int, ...]) -> Any:
    return np.moveaxis(x, axes, tuple(range(-len(axes), 0)))


law(np.matmul, np.linalg.matmul)(_along_axes(matmul, cores=(2, 2, 2)))


def _vecdot(x1: Any, x2: Any) -> Any:
    return (np.conjugate(x1) * x2).sum(axis=-1)


law(np.vecdot, np.linalg.vecdot)(_along_axes(_vecdot, cores=(1, 1, 0)))

if hasattr(np, "matvec"):  # NumPy >= 2.2

    def _matvec(x1: Any, x2: Any) -> Any:
        return (x1 @ x2[..., None])[..., 0]

    def _vecmat(x1: Any, x2: Any) -> Any:
        return (np.conjugate(x1)[..., None, :] @ x2)[..., 0, :]

    law(np.matvec)(_along_axes(_matvec, cores=(2, 1, 1)))
    law(np.vecmat)(_along_axes(_vecmat, cores=(1, 2, 1)))


@law(np.vdot)
def _vdot(a: Any, b: Any) -> Any:
    a, b = (x.reshape(-1) if isinstance(x, Chunk) else np.ravel(x) for x in (a, b))
    return (np.conjugate(a) * b).sum()


@law(np.cross)
def _cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    if isinstance(a, Chunk) and isinstance(b, Chunk):
        message = f"numpy.cross({a!r}, {b!r}): a product of two tangents is not linear"
        raise NonlinearTangentError(message)
    if axis is not None:
        axisa = axisb = axisc = axis
    of_a, of_b = _to_end(a, (axisa,)), _to_end(b, (axisb,))
    rank = max(np.ndim(plain(x)) if not isinstance(x, Chunk) else x.ndim for x in (of_a, of_b))
    parts = [
        x.reshape((1,) * (rank - x.ndim) + x.shape).lanes if isinstance(x, Chunk) else x
        for x in (of_a, of_b)
    ]
    y_dot = Chunk(np.cross(*parts))
    planar = a.shape[axisa] == b.shape[axisb] == 2
    return y_dot if planar else LAWS[np.moveaxis](y_dot, -1, axisc)


@law(np.linalg.cross)
def _linalg_cross(x1: Any, x2: Any, *, axis: int = -1) -> Any:
    return _cross(x1, x2, axis=axis)


@law(np.linalg.outer)
def _linalg_outer(x1: Any, x2: Any) -> Any:
    return LAWS[np.outer](x1, x2)


@law(np.linalg.tensordot)
def _linalg_tensordot(x1: Any, x2: Any, *, axes: Any = 2) -> Any:
    return LAWS[np.tensordot](x1, x2, axes)


@law(np.linalg.trace)
def _linalg_trace(x_dot: Chunk, *, offset: int = 0, dtype: Any = None) -> Chunk:
    return LAWS[np.trace](x_dot, offset, -2, -1, dtype)


@law(np.linalg.diagonal)
def _linalg_diagonal(x_dot: Chunk, *, offset: int = 0) -> Chunk:
    return LAWS[np.diagonal](x_dot, offset, -2, -1)


@law(np.linalg.matrix_transpose, np.matrix_transpose)
def _matrix_transpose(x_dot: Chunk) -> Chunk:
    return LAWS[np.swapaxes](x_dot, -1, -2)
