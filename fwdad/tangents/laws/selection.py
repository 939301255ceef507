"""The closed list: elements picked, moved and repeated.

The transposes of these functions are next to their rules in ``fwdad/rules``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fwdad.errors import ChunkMismatchError, NonlinearTangentError
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import Lanes, lane_last_index
from fwdad.tangents.laws.listing import axes_of, axis_of, law
from fwdad.tangents.placed import rearranged
from fwdad.tangents.plain import plain
from fwdad.tangents.shapes import broadcast_shapes
from fwdad.tangents.symbolic import arange, is_known, recorder_of
from fwdad.tangents.zero import ZERO, Zero


def _gathered(
    x_dot: Chunk,
    size: int,
    of_lanes: Callable[[Any], Any],
    of_scaling: Callable[[Any], Any],
    *,
    fixed: bool,
) -> Chunk:
    """Gather from the lanes and from their scalings apart, if that is less than to multiply out."""
    if fixed:
        placed = rearranged(x_dot.shape, x_dot.terms, of_scaling)
        if placed:
            return Chunk.of(x_dot.n, next(iter(placed)).shape, placed)
    if not is_known(size, x_dot.shape) or size > x_dot.size:
        return Chunk(of_lanes(x_dot.lanes))
    full = (x_dot.n, *x_dot.shape)
    terms: dict[Lanes, Any] = {}
    shape: tuple[int, ...] = ()
    for lanes, d in x_dot.terms.items():
        array = lanes.array
        picked = of_lanes(array if array.shape == full else np.broadcast_to(array, full))
        shape = tuple(picked.shape[1:])
        terms[Lanes(picked)] = of_scaling(d) if getattr(d, "shape", ()) else d
    return Chunk.of(x_dot.n, shape, terms)


@law(np.take)
def _take(
    a_dot: Chunk,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str = "raise",
) -> Chunk:
    if axis is None:
        a_dot, axis = a_dot.reshape(-1), 0
    behind = axis_of(axis, a_dot.ndim)
    size = np.size(indices) * math.prod(s for k, s in enumerate(a_dot.shape) if k + 1 != behind)
    return _gathered(
        a_dot,
        size,
        lambda lanes: np.take(lanes, indices, behind, mode=mode),
        lambda d: np.take(d, indices, behind - 1, mode=mode),
        fixed=is_known(indices),
    )


@law(np.take_along_axis)
def _take_along_axis(arr_dot: Chunk, indices: Any, axis: int | None = -1) -> Chunk:
    if axis is None:
        arr_dot, axis = arr_dot.reshape(-1), 0
    if arr_dot.ndim == 1:
        return _take(arr_dot, indices, 0)
    # One flat index serves every lane: a gather by it is quicker than one along the axis.
    if not is_known(arr_dot.shape):
        return Chunk(_take_lanes_along(arr_dot, indices, axis_of(axis, arr_dot.ndim)))
    positions = np.arange(arr_dot.size).reshape(arr_dot.shape)
    positions = np.take_along_axis(positions, indices, axis_of(axis, arr_dot.ndim) - 1)
    return _take(arr_dot, positions)


def _take_lanes_along(arr_dot: Chunk, indices: Any, axis: int) -> Any:
    return np.take_along_axis(arr_dot.lanes, indices[None], axis)


@law(np.where)
def _where(condition: Any, x_dot: Any, y_dot: Any) -> Any:
    """Select tangents; a lane is never multiplied by a mask."""
    chunks = [t for t in (x_dot, y_dot) if isinstance(t, Chunk)]
    for t in (x_dot, y_dot):
        if not isinstance(t, (Chunk, Zero)) and not np.all(np.equal(t, 0)):
            message = "np.where(c, tangent, constant): the constant must be 0 for a linear rule"
            raise NonlinearTangentError(message)
    if len({c.n for c in chunks}) > 1:
        raise ChunkMismatchError(f"chunks of widths {[c.n for c in chunks]} meet in numpy.where")
    shape = np.shape(condition)
    for c in chunks:
        if c.shape != shape:
            shape = broadcast_shapes(shape, c.shape)
    known = is_known(condition) and all(lanes.known for c in chunks for lanes in c.terms)
    if (
        known
        and all(lanes.finite for c in chunks for lanes in c.terms)
        and len(chunks[0].terms) <= 2
    ):
        return _selected(condition, shape, x_dot) + _selected(
            np.logical_not(condition), shape, y_dot
        )
    if shape and all(lanes.placed for c in chunks for lanes in c.terms):
        return _selected_places(condition, shape, x_dot, keep=True) + _selected_places(
            condition, shape, y_dot, keep=False
        )
    sides = [_aligned(t, len(shape)) if isinstance(t, Chunk) else 0 for t in (x_dot, y_dot)]
    return Chunk(np.where(condition, *sides))


def _aligned(x_dot: Chunk, ndim: int) -> Any:
    """Lanes that are broadcast as the values are: new axes come after the lane axis."""
    missing = ndim - x_dot.ndim
    return x_dot.lanes[(slice(None), *[None] * missing)] if missing else x_dot.lanes


def _selected(mask: Any, shape: tuple[int, ...], x_dot: Any) -> Any:
    """Select in the scalings, which stay deferred; the lanes are known to be finite."""
    if not isinstance(x_dot, Chunk):
        return ZERO
    mask = np.broadcast_to(mask, shape)
    terms = {}
    for lanes, d in x_dot.broadcast_to(shape).terms.items():
        one = np.ones((), lanes.dtype) if d is None else d
        if type(one) in (int, float, complex):  # Python's numbers do not widen
            one = np.asarray(one, np.result_type(lanes.dtype, one))
        terms[lanes] = np.where(mask, one, np.zeros((), np.asarray(plain(one)).dtype))
    return Chunk.of(x_dot.n, shape, terms)


def _selected_places(condition: Any, shape: tuple[int, ...], x_dot: Any, *, keep: bool) -> Any:
    """Select coefficients of placed lanes, which are never infinite."""
    if not isinstance(x_dot, Chunk):
        return ZERO
    terms: dict[Lanes, Any] = {}
    for lanes, d in x_dot.broadcast_to(shape).terms.items():
        one = 1.0 if d is None else d
        chosen = np.where(condition, one, 0.0) if keep else np.where(condition, 0.0, one)
        terms[lanes] = chosen if chosen.shape == shape else np.broadcast_to(chosen, shape)
    return Chunk.of(x_dot.n, shape, terms)


@law(np.flip)
def _flip(m_dot: Chunk, axis: Any = None) -> Chunk:
    axes = axes_of(axis, m_dot.ndim)
    index = tuple(
        slice(None, None, -1) if a + 1 in axes else slice(None) for a in range(m_dot.ndim)
    )
    return m_dot[index]


@law(np.roll)
def _roll(a_dot: Chunk, shift: Any, axis: Any = None) -> Chunk:
    if axis is None:
        return _roll(a_dot.reshape(-1), shift, 0).reshape(a_dot.shape)
    if is_known(shift):
        placed = rearranged(a_dot.shape, a_dot.terms, lambda d: np.roll(d, shift, axis))
        if placed:
            return Chunk.of(a_dot.n, a_dot.shape, placed)
    if isinstance(axis, Sequence) or isinstance(shift, Sequence):
        axes = axis if isinstance(axis, Sequence) else (axis,) * len(shift)
        return Chunk(np.roll(a_dot.lanes, shift, tuple(axis_of(a, a_dot.ndim) for a in axes)))
    return Chunk(np.roll(a_dot.lanes, shift, axis_of(axis, a_dot.ndim)))


@law(np.diagonal)
def _diagonal(a_dot: Chunk, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Chunk:
    ndim = a_dot.ndim
    return Chunk(np.diagonal(a_dot.lanes, offset, axis_of(axis1, ndim), axis_of(axis2, ndim)))


@law(np.diag)
def _diag(v_dot: Chunk, k: int = 0) -> Chunk:
    if v_dot.ndim == 2:
        return _diagonal(v_dot, k)
    n = v_dot.shape[0] + abs(k)
    rows = arange(v_dot.shape[0]) + max(-k, 0)
    lanes = v_dot.lanes
    shape, dtype = (v_dot.n, n, n), plain(lanes).dtype
    recorder = recorder_of(n, plain(lanes))
    if recorder is not None:
        placed = recorder.apply(np.zeros, (shape, dtype), {})
        placed[:, rows, rows + k] = lanes
        return Chunk(placed)
    return Chunk(_scatter(np.zeros(shape, dtype), (rows, rows + k), lanes))


def _scatter(zeros: np.ndarray, index: tuple[Any, ...], lanes: Any) -> Any:
    """Put lanes at distinct places of zero lanes, also when the lanes are duals themselves."""
    if not hasattr(lanes, "__fwdad_tag__"):
        np.moveaxis(zeros, 0, -1)[lane_last_index(index)] = np.moveaxis(lanes, 0, -1)
        return zeros
    shape = zeros.shape[1:]
    flat = np.arange(math.prod(shape)).reshape(shape)[index].ravel()
    # gather from the lanes with one zero appended: a linear function that duals know
    source = np.full(math.prod(shape), len(flat))
    source[flat] = np.arange(len(flat))
    padded = np.concatenate(
        [lanes.reshape((zeros.shape[0], -1)), np.zeros((zeros.shape[0], 1))], axis=1
    )
    return padded[:, source].reshape(zeros.shape)


@law(np.tril)
def _tril(m_dot: Chunk, k: int = 0) -> Chunk:
    return Chunk(np.tril(_rows(m_dot).lanes, k))


@law(np.triu)
def _triu(m_dot: Chunk, k: int = 0) -> Chunk:
    return Chunk(np.triu(_rows(m_dot).lanes, k))


def _rows(m_dot: Chunk) -> Chunk:
    """NumPy takes the triangle of a vector as that of a matrix with all rows equal to it."""
    return m_dot.broadcast_to(m_dot.shape * 2) if m_dot.ndim == 1 else m_dot


@law(np.repeat)
def _repeat(a_dot: Chunk, repeats: Any, axis: int | None = None) -> Chunk:
    if axis is None:
        a_dot, axis = a_dot.reshape(-1), 0
    if is_known(repeats):
        placed = rearranged(a_dot.shape, a_dot.terms, lambda d: np.repeat(d, repeats, axis))
        if placed:
            return Chunk.of(a_dot.n, next(iter(placed)).shape, placed)
    return Chunk(np.repeat(a_dot.lanes, repeats, axis_of(axis, a_dot.ndim)))


@law(np.tile)
def _tile(a_dot: Chunk, reps: Any) -> Chunk:
    reps = (reps,) if np.ndim(reps) == 0 else tuple(reps)
    a_dot = a_dot.reshape((1,) * max(len(reps) - a_dot.ndim, 0) + a_dot.shape)
    reps = (1,) * (a_dot.ndim - len(reps)) + reps
    return Chunk(np.tile(a_dot.lanes, (1, *reps)))
