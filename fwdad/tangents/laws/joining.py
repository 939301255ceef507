"""The closed list: several arrays made one, and padding with zeros.

The transposes of these functions are next to their rules in ``fwdad/rules``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fwdad.errors import ChunkMismatchError, NonlinearTangentError
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.laws.listing import axis_of, law


def _join(chunks: Sequence[Any]) -> int:
    widths = {c.n for c in chunks if isinstance(c, Chunk)}
    if len(widths) != 1:
        raise ChunkMismatchError(f"chunks of widths {sorted(widths)} meet in one operation")
    if not all(isinstance(c, Chunk) for c in chunks):
        raise ChunkMismatchError(
            "a ZERO has no shape: make it an array of zeros with dense(x_dot, x, n) before joining"
        )
    return widths.pop()


def _joined(shape: tuple[Any, ...], parts: list[tuple[Any, Any]]) -> Chunk | None:
    """Tangents at indices of an array of zeros, place by place; None if not all are placed."""
    placed: Any = None
    for _, t in parts:
        for lanes in t.terms:
            if lanes.placed:
                placed = lanes
            elif not lanes.zero:
                return None
    if placed is None or not all(type(m) is int for m in shape):
        return None
    nonzero = [(index, t) for index, t in parts if any(lanes.placed for lanes in t.terms)]
    joined: Chunk | None = placed.placer.joined(shape, nonzero)
    return joined


@law(np.concatenate)
def _concatenate(
    chunks: Sequence[Any], axis: int | None = 0, out: None = None, **_options: Any
) -> Chunk:
    _join(chunks)
    if axis is None:
        return Chunk(np.concatenate([c.reshape(-1).lanes for c in chunks], axis=1))
    behind = axis_of(axis, chunks[0].ndim)
    shape, parts = list(chunks[0].shape), []
    shape[behind - 1] = 0
    for c in chunks:
        start = shape[behind - 1]
        shape[behind - 1] = start + c.shape[behind - 1]
        parts.append(((slice(None),) * (behind - 1) + (slice(start, shape[behind - 1]),), c))
    joined = _joined(tuple(shape), parts)
    if joined is not None:
        return joined
    return Chunk(np.concatenate([c.lanes for c in chunks], axis=behind))


@law(np.stack)
def _stack(chunks: Sequence[Any], axis: int = 0, out: None = None, **_options: Any) -> Chunk:
    _join(chunks)
    behind = axis_of(axis, chunks[0].ndim + 1)
    head = chunks[0].shape[: behind - 1]
    parts = [((slice(None),) * (behind - 1) + (k,), c) for k, c in enumerate(chunks)]
    joined = _joined((*head, len(chunks), *chunks[0].shape[behind - 1 :]), parts)
    if joined is not None:
        return joined
    return Chunk(np.stack([c.lanes for c in chunks], axis=behind))


@law(np.pad)
def _pad(x_dot: Chunk, pad_width: Any, mode: str = "constant", **options: Any) -> Chunk:
    values = options.pop("constant_values", 0)
    if mode != "constant" or options or np.any(np.not_equal(values, 0)):
        message = f"numpy.pad(tangent, mode={mode!r}): only padding with zeros is linear here"
        raise NonlinearTangentError(message)
    lanes = x_dot.lanes
    # by concatenation, which knows lanes that are duals of an enclosing derivative
    for axis, widths in enumerate(np.broadcast_to(pad_width, (x_dot.ndim, 2)).tolist(), 1):
        if any(widths):
            before, after = (
                np.zeros((*lanes.shape[:axis], n, *lanes.shape[axis + 1 :]), x_dot.dtype)
                for n in widths
            )
            lanes = np.concatenate([before, lanes, after], axis=axis)
    return Chunk(lanes)
