"""The closed list: the shape, the order and the number of axes.

These keep deferred scalings deferred. The transposes are next to the rules in ``fwdad/rules``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import Lanes
from fwdad.tangents.laws.listing import axes_of, axis_of, law
from fwdad.tangents.placed import rearranged


def _termwise(
    x_dot: Chunk, on_lanes: Callable[[Any], Any], on_scaling: Callable[[Any], Any], key: Any
) -> Chunk:
    """Apply one rearrangement of the primal's axes to both the lanes and their scalings."""
    placed = rearranged(x_dot.shape, x_dot.terms, on_scaling)
    if placed:
        return Chunk.of(x_dot.n, next(iter(placed)).shape, placed)
    terms: dict[Lanes, Any] = {}
    shape: tuple[int, ...] = ()
    full = (x_dot.n, *x_dot.shape)
    for lanes, d in x_dot.terms.items():

        def make(lanes: Lanes) -> Lanes:
            array = lanes.array
            return Lanes(on_lanes(array if array.shape == full else np.broadcast_to(array, full)))

        moved = lanes.part((key, x_dot.shape), make)
        assert moved is not None
        shape = moved.shape
        terms[moved] = on_scaling(d) if getattr(d, "shape", ()) else d
    return Chunk.of(x_dot.n, shape, terms)


@law(np.reshape)
def _reshape(x_dot: Chunk, shape: Any, order: str = "C", **_options: Any) -> Chunk:
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if -1 in shape:
        known = math.prod(s for s in shape if s != -1)
        rest = 0 if type(known) is int and not known else x_dot.size // known
        shape = tuple(rest if s == -1 else s for s in shape)
    if order == "C":
        return _termwise(
            x_dot,
            lambda lanes: lanes.reshape((x_dot.n, *shape)),
            lambda d: d.reshape(shape),
            ("reshape", shape),
        )
    placed = rearranged(x_dot.shape, x_dot.terms, lambda d: d.reshape(shape, order=_order(order)))
    if placed:
        return Chunk.of(x_dot.n, tuple(shape), placed)
    lanes = np.moveaxis(x_dot.lanes, 0, -1).reshape((*shape, x_dot.n), order=_order(order))
    return Chunk(np.moveaxis(lanes, -1, 0))


def _order(order: str) -> Any:
    if order not in ("F", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K', got {order!r}")
    return "F" if order == "F" else "C"


@law(np.ravel)
def _ravel(x_dot: Chunk, order: str = "C") -> Chunk:
    return _reshape(x_dot, -1, order)


@law(np.transpose, np.permute_dims)
def _transpose(x_dot: Chunk, axes: Any = None) -> Chunk:
    ndim = x_dot.ndim
    if axes is None:
        axes = tuple(range(ndim))[::-1]
    else:  # of one axis a number
        axes = tuple(int(a) % ndim for a in (axes if np.ndim(axes) else (axes,)))
    return _termwise(
        x_dot,
        lambda lanes: lanes.transpose((0, *(a + 1 for a in axes))),
        lambda d: d.transpose(axes),
        ("transpose", axes),
    )


@law(np.swapaxes)
def _swapaxes(x_dot: Chunk, axis1: int, axis2: int) -> Chunk:
    axes = list(range(x_dot.ndim))
    i, j = axis_of(axis1, x_dot.ndim) - 1, axis_of(axis2, x_dot.ndim) - 1
    axes[i], axes[j] = axes[j], axes[i]
    return _transpose(x_dot, axes)


@law(np.moveaxis)
def _moveaxis(x_dot: Chunk, source: Any, destination: Any) -> Chunk:
    order = np.moveaxis(
        np.empty(tuple(range(x_dot.ndim)) and (1,) * x_dot.ndim), source, destination
    )
    del order  # NumPy's own checks and messages; the permutation itself follows
    sources = [a - 1 for a in axes_of(source, x_dot.ndim)]
    destinations = [a - 1 for a in axes_of(destination, x_dot.ndim)]
    axes = [a for a in range(x_dot.ndim) if a not in sources]
    for to, of in sorted(zip(destinations, sources, strict=True)):
        axes.insert(to, of)
    return _transpose(x_dot, axes)


@law(np.squeeze)
def _squeeze(x_dot: Chunk, axis: Any = None) -> Chunk:
    if axis is None:
        axes = tuple(k for k, n in enumerate(x_dot.shape) if type(n) is int and n == 1)
    else:
        axes = tuple(a - 1 for a in axes_of(axis, x_dot.ndim))
        for a in axes:
            if x_dot.shape[a] != 1:
                message = "cannot select an axis to squeeze out which has size not equal to one"
                raise ValueError(message)
    return _reshape(x_dot, tuple(n for k, n in enumerate(x_dot.shape) if k not in axes))


@law(np.expand_dims)
def _expand_dims(x_dot: Chunk, axis: Any) -> Chunk:
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = x_dot.ndim + len(axes)
    new_axes = {axis_of(a, rank) - 1 for a in axes}
    if len(new_axes) < len(axes):
        raise ValueError("repeated axis")
    rest = iter(x_dot.shape)
    return _reshape(x_dot, tuple(1 if k in new_axes else next(rest) for k in range(rank)))


@law(np.broadcast_to)
def _broadcast_to(x_dot: Chunk, shape: Any, subok: bool = False) -> Chunk:
    return x_dot.broadcast_to((shape,) if isinstance(shape, int) else tuple(shape))


@law(np.shape)
def _shape(x_dot: Chunk) -> tuple[int, ...]:
    return x_dot.shape


@law(np.ndim)
def _ndim(x_dot: Chunk) -> int:
    return x_dot.ndim


@law(np.size)
def _size(x_dot: Chunk, axis: int | None = None) -> int:
    return x_dot.size if axis is None else x_dot.shape[axis]
