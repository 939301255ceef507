"""The entries of a sparse Jacobian, read from the coefficients of placed lanes.

Where a program only moves and scales the elements of its argument, its tangent for all unit
directions is a sum of coefficients at known places: these are the entries, and no lanes are needed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType
from fwdad.ops.record import Layout, own_op
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.placed import Placed
from fwdad.tangents.zero import ZERO
from fwdad.transforms.forward.placing import MAX_RUNS, Run, points_of, runs_through

Runs = tuple[tuple[Run, ...], ...]


@own_op(layout=Layout.C)
def place_entries(
    size: int, shape: tuple[int, ...], dtype: Any, runs: Runs, *coefficients: Any
) -> np.ndarray:
    """A vector of zeros to which elements of coefficients are added at their places.

    ``runs`` are as in :func:`~fwdad.transforms.forward.placing.place_lanes`, with places in the
    vector instead of lanes: a tuple for each coefficient, a scalar or an array that broadcasts to
    ``shape``.
    """
    entries = np.zeros(size, dtype)
    for own, d in zip(runs, coefficients, strict=True):
        values = np.broadcast_to(d, shape).reshape(-1) if np.ndim(d) else d
        for run in own:
            elements, places = points_of(run)
            entries[places] += values[elements] if np.ndim(d) else values
    return entries


def entries_of(recorder: Recorder, t: Any, y: Symbol, positions: Any, size: int) -> Any:
    """The entries of a Jacobian whose columns the lanes of a tangent are; None if not placed.

    ``positions(rows, columns)`` is where entries are in the answer, of length ``size``; None if one
    is not among them.
    """
    shape = tuple(recorder.static_length(d) for d in y.type.shape)
    if not all(type(m) is int for m in shape):
        return None
    terms = t.broadcast_to(shape).terms if isinstance(t, Chunk) else {}
    runs: list[tuple[Run, ...]] = []
    for lanes in terms:
        if not isinstance(lanes, Placed):
            return None
        flat = np.broadcast_to(lanes.places, shape).reshape(-1)
        rows = np.flatnonzero(flat >= 0)
        found = positions(rows, flat[rows])
        if found is None:
            return None
        own = runs_through(rows, found)
        if len(own) > MAX_RUNS:
            return None
        runs.append(own)
    coefficients = [1.0 if d is None else d for d in terms.values()]
    args = (size, shape, y.dtype, tuple(runs), *coefficients)
    return recorder.apply_typed(place_entries, args, ArrayType(y.dtype, (size,)))


def pushed_entries(recorder: Recorder, of: tuple[Any, ...], dots: list[Any], n: int) -> Any:
    """The tangent of entries, of which the coefficients have these tangents.

    ``of`` is ``(size, shape, dtype, runs)`` as in :func:`place_entries`.
    """
    size, shape, dtype, runs = of
    each = math.prod(shape)
    active = [
        (tuple((e, p, ((n, each, size), *steps)) for e, p, steps in own), t.broadcast_to(shape))
        for own, t in zip(runs, dots, strict=True)
        if isinstance(t, Chunk)
    ]
    if not active:
        return ZERO
    wide = [own for own, _ in active], [t.lanes for _, t in active]
    made = np.result_type(dtype, *(t.dtype for _, t in active))
    args = (n * size, (n, *shape), made, tuple(wide[0]), *wide[1])
    flat = recorder.apply_typed(place_entries, args, ArrayType(made, (n * size,)))
    return Chunk(recorder.apply(np.reshape, (flat, (n, size)), {}))


def pulled_entries(recorder: Recorder, of: tuple[Any, ...], bar: Any) -> list[Any]:
    """The cotangents of the coefficients of entries, each of the shape that it broadcasts to."""
    _, shape, _, runs = of
    size = math.prod(shape)
    t = ArrayType(bar.dtype, (size,))
    pulled = []
    for own in runs:  # the same map with elements and places exchanged
        back = tuple((p, e, tuple((m, q, k) for m, k, q in steps)) for e, p, steps in own)
        args = (size, bar.type.shape, bar.dtype, (back,), bar)
        flat = recorder.apply_typed(place_entries, args, t)
        whole = recorder.apply(np.reshape, (flat, shape), {}) if shape else recorder.load(flat, 0)
        pulled.append(whole)
    return pulled
