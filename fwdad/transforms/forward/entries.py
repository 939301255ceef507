"""The entries of a sparse Jacobian, read from the coefficients of placed lanes.

Where a program only moves and scales the elements of its argument, its tangent for all unit
directions is a sum of coefficients at known places: these are the entries, and no lanes are needed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Value
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType
from fwdad.ops.record import Layout, own_op
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.scattered import picked, pieces_of
from fwdad.tangents.zero import ZERO, Zero
from fwdad.transforms.forward.placing import MAX_RUNS, Run, points_of, runs_through
from fwdad.transforms.forward.slots import View

_FEW = 8  # runs that are worth their code, and elements of a run if there are more

Runs = tuple[tuple[Run, ...], ...]


@own_op(layout=Layout.C)
def place_entries(size: int, dtype: Any, runs: Runs, *coefficients: Any) -> np.ndarray:
    """A vector of zeros to which elements of coefficients are added at their places.

    ``runs`` has a tuple for each coefficient, a number or an array:
    ``(element, place, steps)`` as in :func:`~fwdad.transforms.forward.placing.place_lanes`, but
    with places in the vector, and elements of the coefficient.
    """
    entries = np.zeros(size, dtype)
    for own, d in zip(runs, coefficients, strict=True):
        values = np.ravel(d)
        for run in own:
            elements, places = points_of(run)
            np.add.at(entries, places, values[elements])
    return entries


def entries_of(recorder: Recorder, t: Any, y: Symbol, positions: Any, size: int) -> Any:
    """The entries of a Jacobian whose columns the lanes of a tangent are; None if not placed.

    ``t`` is the chunk of y, or the view of memory with slots. ``positions(rows, columns)`` is where
    entries are in the answer, of length ``size``; None if one is not among them.
    """
    runs: list[tuple[Run, ...]] = []
    coefficients: list[Any] = []
    scattered: list[tuple[Any, Any]] = []
    shape = tuple(recorder.static_length(d) for d in y.type.shape)
    if not all(type(m) is int for m in shape):
        return None
    pieces: Any = (
        () if isinstance(t, Zero) else t.pieces() if isinstance(t, View) else pieces_of(t, shape)
    )
    if pieces is None:
        return None
    for rows, columns, elements, d, of in pieces:
        found = positions(rows, columns)
        if found is None:
            return None
        is_array = bool(getattr(d, "shape", ()))
        own = _few_runs(elements if is_array else elements * 0, found)
        d = 1.0 if d is None else np.broadcast_to(d, of) if is_array and d.type.shape != of else d
        if own is None:
            scattered.append((found, picked(d, of, elements) if is_array else d))
        else:
            runs.append(own)
            coefficients.append(d)
    args = (size, y.dtype, tuple(runs), *coefficients)
    made = recorder.apply_typed(place_entries, args, ArrayType(y.dtype, (size,)))
    for found, d in scattered:
        recorder.mutate(np.add.at, (made, recorder.as_symbol(found), d), {})
    return made


def _few_runs(elements: np.ndarray, places: np.ndarray) -> tuple[Run, ...] | None:
    """Elements and the place of each as runs; None if there are too many, or they are short."""
    turns = np.diff(elements, 2).astype(bool) | np.diff(places, 2).astype(bool)
    if np.count_nonzero(turns) > max(elements.size // 2, MAX_RUNS * MAX_RUNS):
        return None  # without looking for them one by one
    runs = runs_through(elements, places)
    return runs if len(runs) <= min(MAX_RUNS, max(_FEW, elements.size // _FEW)) else None


def pushed_entries(recorder: Recorder, of: tuple[Any, ...], dots: list[Any], n: int) -> Any:
    """The tangent of entries, of which the coefficients have these tangents.

    ``of`` are the arguments of :func:`place_entries`.
    """
    size, dtype, runs = of[:3]
    active = [(own, t) for own, t in zip(runs, dots, strict=True) if isinstance(t, Chunk)]
    if not active:
        return ZERO
    wide = tuple(
        tuple((e, p, ((n, math.prod(t.shape), size), *steps)) for e, p, steps in own)
        for own, t in active
    )
    made = np.result_type(dtype, *(t.dtype for _, t in active))
    args = (n * size, made, wide, *(t.lanes for _, t in active))
    flat = recorder.apply_typed(place_entries, args, ArrayType(made, (n * size,)))
    return Chunk(recorder.apply(np.reshape, (flat, (n, size)), {}))


def pulled_entries(recorder: Recorder, of: tuple[Any, ...], bar: Any) -> list[Any]:
    """The cotangents of the coefficients of entries.

    ``of`` are the arguments of :func:`place_entries`.
    """
    pulled = []
    for own, d in zip(of[2], of[3:], strict=True):  # the same map, elements and places exchanged
        back = tuple((p, e, tuple((m, q, k) for m, k, q in steps)) for e, p, steps in own)
        shape: Any = d.type.shape if isinstance(d, Value) else ()
        size = math.prod(shape)
        args, t = (size, bar.dtype, (back,), bar), ArrayType(bar.dtype, (size,))
        flat = recorder.apply_typed(place_entries, args, t)
        whole = recorder.apply(np.reshape, (flat, shape), {}) if shape else recorder.load(flat, 0)
        pulled.append(whole)
    return pulled
