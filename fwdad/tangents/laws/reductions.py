"""The closed list: sums, means, traces, and adding up at places.

The transposes of these functions are next to their rules in ``fwdad/rules``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fwdad.tangents.chunk import LAWS, Chunk
from fwdad.tangents.laws.listing import axes_of, axis_of, cast, law, or_default
from fwdad.tangents.plain import plain
from fwdad.tangents.scattered import added, stays_placed, summed
from fwdad.tangents.symbolic import apply, array_of, is_known
from fwdad.tangents.zero import ZERO


@law(np.sum)
def _sum(
    x_dot: Chunk,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Chunk:
    keepdims, where = bool(or_default(keepdims, False)), or_default(where, True)
    x_dot = cast(x_dot, dtype)
    if where is not True:
        x_dot = LAWS[np.where](where, x_dot, ZERO)
    axes = axes_of(axis, x_dot.ndim)
    if stays_placed(x_dot):
        return summed(x_dot, tuple(a - 1 for a in axes), keepdims=keepdims)
    if len(axes) == x_dot.ndim and not keepdims:
        return Chunk(_total(x_dot))
    return Chunk(np.sum(x_dot.lanes, axis=axes, keepdims=keepdims))


def _total(x_dot: Chunk) -> Any:
    """Sum all elements, without multiplying deferred scalings out: one product ``V @ d`` each."""
    total = None
    for lanes, d in x_dot.terms.items():
        array = lanes.array
        full = array.shape[1:] == x_dot.shape
        if d is None or not getattr(d, "shape", ()) or not full or not _finite(d):
            return np.sum(x_dot.lanes, axis=tuple(range(1, x_dot.ndim + 1)))
        term = array.reshape(x_dot.n, x_dot.size) @ d.reshape(-1)
        total = term if total is None else total + term
    return np.zeros(x_dot.n) if total is None else total


def _finite(d: Any) -> bool:
    d = plain(d)
    if hasattr(d, "__fwdad_symbolic__"):  # not known when a tape is written
        return False
    return bool(np.isfinite(np.vdot(d, d)))


@law(np.mean)
def _mean(
    x_dot: Chunk,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Chunk:
    total = _sum(x_dot, axis, dtype, out, keepdims, None, where)
    if or_default(where, True) is True:
        count = math.prod(x_dot.shape[a - 1] for a in axes_of(axis, x_dot.ndim))
        if not is_known(count):
            return total.scale(apply(float, apply(np.true_divide, 1.0, count)))
        # A Python float scales single precision without widening it; of no elements, it is inf.
        return total.scale(1 / count if count else math.inf)
    mask = np.broadcast_to(where, x_dot.shape)
    counts = np.sum(mask, axis=axis, keepdims=bool(or_default(keepdims, False)))
    with np.errstate(all="ignore"):
        return total * (1 / counts.astype(total.dtype))


@law(np.cumsum)
def _cumsum(
    x_dot: Chunk,
    axis: int | None = None,
    dtype: Any = None,
    out: None = None,
) -> Chunk:
    if axis is None or x_dot.ndim == 0:
        x_dot, axis = x_dot.reshape(-1), 0
    return Chunk(np.cumsum(cast(x_dot, dtype).lanes, axis=axis_of(axis, x_dot.ndim)))


@law(np.trace)
def _trace(
    x_dot: Chunk,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Any = None,
    out: None = None,
) -> Chunk:
    ndim = x_dot.ndim
    lanes = cast(x_dot, dtype).lanes
    return Chunk(np.trace(lanes, offset, axis_of(axis1, ndim), axis_of(axis2, ndim)))


@law(np.add.reduceat)
def _add_reduceat(
    x_dot: Chunk,
    indices: Any,
    axis: int = 0,
    dtype: Any = None,
    out: None = None,
) -> Chunk:
    lanes = cast(x_dot, dtype).lanes
    return Chunk(np.add.reduceat(lanes, indices, axis_of(axis, x_dot.ndim)))


@law(np.bincount)
def _bincount(x: Any, weights: Chunk, minlength: int = 0) -> Chunk:
    """Add up the weights of each bin: the closed list's way to scatter with repeated places."""
    x = array_of(x)
    length = max(minlength, int(x.max()) + 1 if x.size else 0)
    if stays_placed(weights):
        return added(weights, x, (length,))
    bins = (np.arange(weights.n)[:, None] * length + x).reshape(-1)
    lanes = weights.lanes.reshape(-1)
    total = weights.n * length
    if weights.dtype.kind == "c":
        real, imag = (np.bincount(bins, part, total) for part in (lanes.real, lanes.imag))
        summed = real + 1j * imag
    else:
        summed = np.bincount(bins, lanes, total)
    return Chunk(summed.reshape((weights.n, length)))
