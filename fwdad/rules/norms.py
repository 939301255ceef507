"""Norms: ``numpy.linalg.norm``, ``vector_norm`` and ``matrix_norm``.

Where a norm has a kink its tangent is a choice, the same as elsewhere: the norm of a zero vector
or matrix has tangent zero, of equal maxima (minima) the first one counts, |x| at 0 has tangent
zero, and so has a singular value that is zero to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.rules.core.define import frule
from fwdad.rules.decompositions import singular_tangents
from fwdad.rules.reductions import element_at
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import ZERO


@frule(np.linalg.norm, argnums=0)
def norm_frule(primals, tangents, ord=None, axis=None, keepdims=False):  # noqa: A002
    r"""Push tangents through ``numpy.linalg.norm``.

    The 2-norm and Frobenius norm change at Re⟨x, ẋ⟩ / ‖x‖, a p-norm at
    Σ (\|x\|/‖x‖)^{p−1} d\|x\|, those of a matrix at the rates of the sums, or of the singular
    values, that they are.
    """
    (x,), (x_dot,) = primals, tangents
    y = np.linalg.norm(x, ord, axis, keepdims)
    return y, norm_tangent(x, x_dot, y, ord, axis, keepdims)


def norm_tangent(x: Any, x_dot: Any, y: Any, ord: Any, axis: Any, keepdims: bool) -> Any:  # noqa: A002
    """The tangent of the norm y of x, as ``numpy.linalg.norm`` reads ``ord`` and ``axis``."""
    ndim = np.ndim(plain(x))
    if axis is None:
        if ord is None or (ord == 2 and ndim == 1) or (ord in ("f", "fro") and ndim == 2):
            return _vector_tangent(x, x_dot, y, 2, tuple(range(ndim)), keepdims)
        axis = tuple(range(ndim))
    axes = (axis,) if isinstance(axis, (int, np.integer)) else tuple(axis)
    if len(axes) == 1:
        return _vector_tangent(x, x_dot, y, 2 if ord is None else ord, axes, keepdims)
    return _matrix_tangent(x, x_dot, y, "fro" if ord is None else ord, axes, keepdims)


@frule(np.linalg.vector_norm, argnums=0)
def vector_norm_frule(primals, tangents, *, axis=None, keepdims=False, ord=2):  # noqa: A002
    """Push tangents through ``numpy.linalg.vector_norm``: of all axes, if none is given."""
    (x,), (x_dot,) = primals, tangents
    y = np.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
    if axis is None:
        axes = tuple(range(np.ndim(plain(x))))
    else:
        axes = (axis,) if isinstance(axis, (int, np.integer)) else tuple(axis)
    return y, _vector_tangent(x, x_dot, y, ord, axes, keepdims)


@frule(np.linalg.matrix_norm, argnums=0)
def matrix_norm_frule(primals, tangents, *, keepdims=False, ord="fro"):  # noqa: A002
    """Push tangents through ``numpy.linalg.matrix_norm``: of the last two axes."""
    (x,), (x_dot,) = primals, tangents
    y = np.linalg.matrix_norm(x, keepdims=keepdims, ord=ord)
    return y, _matrix_tangent(x, x_dot, y, ord, (-2, -1), keepdims)


def _with_kept_axes(y: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """A norm with the axes that it was taken over, of length one."""
    over = {a % len(shape) for a in axes}
    return np.reshape(y, tuple(1 if k in over else n for k, n in enumerate(shape)))


def _magnitude_tangent(x: Any, x_dot: Any) -> Any:
    """The tangent of |x|, zero at 0: the sign times ẋ, or Re(conj(x) ẋ) / |x|."""
    if x.dtype.kind != "c":
        return np.sign(x) * x_dot
    size = np.abs(x)
    return np.real(np.conjugate(_quotient(x, size)) * x_dot)


def _quotient(x: Any, y: Any) -> Any:
    """Divide x by y, a zero y giving zero."""
    zero = np.equal(plain(y), 0)
    return np.where(zero, 0, x / np.where(zero, 1, y))


def _vector_tangent(
    x: Any, x_dot: Any, y: Any, order: Any, axes: tuple[int, ...], keepdims: bool
) -> Any:
    if order == 0:
        return ZERO  # a count
    x = x if hasattr(x, "dtype") else np.asarray(x)
    x = x.astype(np.float64) if x.dtype.kind in "biu" else x
    wide = _with_kept_axes(y, np.shape(x), axes)
    if order in (np.inf, -np.inf):
        chosen = np.argmax if order > 0 else np.argmin
        return _selected(_magnitude_tangent(x, x_dot), np.abs(plain(x)), chosen, axes, keepdims)
    if order == 1:
        weighed = _magnitude_tangent(x, x_dot)
    elif order == 2:
        inner = np.sum(np.conjugate(x) * x_dot, axis=axes, keepdims=keepdims)
        inner = np.real(inner) if x.dtype.kind == "c" else inner
        return inner * _quotient(1.0, y)
    else:
        size = np.abs(x)
        off = np.equal(plain(size), 0) | np.equal(plain(wide), 0)
        ratio = np.where(off, 1, size) / np.where(off, 1, wide)
        weighed = np.where(off, 0, ratio ** (order - 1)) * _magnitude_tangent(x, x_dot)
    return np.sum(weighed, axis=axes, keepdims=keepdims)


def _selected(values: Any, by: Any, choose: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Take, over some axes at once, the element where ``by`` is extreme, the first of equals."""
    ndim = by.ndim
    over = [a % ndim for a in axes]
    rest = [k for k in range(ndim) if k not in over]
    order = (*rest, *over)
    shape = tuple(by.shape[k] for k in rest)
    flat_by = np.transpose(by, order).reshape((*shape, -1))
    flat = np.transpose(values, order).reshape(flat_by.shape)
    taken = element_at(flat, choose(flat_by, axis=-1))
    if not keepdims:
        return taken
    return taken.reshape(tuple(1 if k in over else n for k, n in enumerate(by.shape)))


def _matrix_tangent(
    x: Any, x_dot: Any, y: Any, order: Any, axes: tuple[int, ...], keepdims: bool
) -> Any:
    x = x if hasattr(x, "dtype") else np.asarray(x)
    x = x.astype(np.float64) if x.dtype.kind in "biu" else x
    if order in ("f", "fro"):
        return _vector_tangent(x, x_dot, y, 2, axes, keepdims)
    x, x_dot = np.moveaxis(x, axes, (-2, -1)), np.moveaxis(x_dot, axes, (-2, -1))
    if order in (1, -1, np.inf, -np.inf):
        # the largest or smallest sum of a column (1) or of a row (inf)
        along = -2 if abs(order) == 1 else -1
        sums = np.sum(np.abs(plain(x)), axis=along)
        sums_dot = np.sum(_magnitude_tangent(x, x_dot), axis=along)
        y_dot = _selected(sums_dot, sums, np.argmax if order > 0 else np.argmin, (-1,), False)
    else:
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        s_dot = singular_tangents(x_dot, u, s, vh)
        y_dot = np.sum(s_dot, axis=-1) if order == "nuc" else s_dot[..., 0 if order > 0 else -1]
    return _kept_tangent(y_dot, axes) if keepdims else y_dot


def _kept_tangent(y_dot: Any, axes: tuple[int, ...]) -> Any:
    """Put the two axes that a matrix norm was taken over back, of length one."""
    ndim = y_dot.ndim + 2
    return np.expand_dims(y_dot, tuple(sorted(a % ndim for a in axes)))
