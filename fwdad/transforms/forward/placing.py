"""Placed lanes, which are zero except for coefficients at known places: primitive and runs.

A run is ``(element, lane, steps)``: from there, elements and lanes advance in nested arithmetic
steps ``(count, elements, lanes)``, outermost first. The bands of a matrix are a few runs each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Value
from fwdad.ir.types import ArrayType
from fwdad.ops.record import Layout, own_op
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.placed import NOWHERE, Placed
from fwdad.tangents.scaling import scale_lanes
from fwdad.tangents.zero import ZERO
from fwdad.transforms.forward.slots import Slots, View

MAX_RUNS = 64  # of one coefficient; more are no pattern that is worth its code

Run = tuple[int, int, tuple[tuple[int, int, int], ...]]


@own_op(layout=Layout.C)
def place_lanes(
    n: int, shape: tuple[int, ...], dtype: Any, runs: Any, *coefficients: Any
) -> np.ndarray:
    """Lanes ``(n, *shape)`` that are zero except for coefficients at their places.

    ``shape`` is the primal's. ``runs`` has a tuple of runs for each coefficient, a scalar or an
    array that broadcasts to ``shape``.
    """
    size = math.prod(shape)
    flat = np.zeros(n * size, dtype)
    for own, d in zip(runs, coefficients, strict=True):
        values = np.broadcast_to(d, shape).reshape(-1) if np.ndim(d) else d
        for element, lane, steps in own:
            at, of = indices(element, lane, steps, size)
            flat[at] += values[of] if np.ndim(d) else values
    return flat.reshape((n, *shape))


def indices(element: int, lane: int, steps: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The flat indices of a run in the lanes and in the primal."""
    of, lanes = points_of((element, lane, steps))
    return lanes * size + of, of


def points_of(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """The elements of a run, and their lanes."""
    element, lane, steps = run
    elements, lanes = np.array(element), np.array(lane)
    for count, by_element, by_lane in steps:
        k = np.arange(count)
        elements = np.add.outer(elements, k * by_element)
        lanes = np.add.outer(lanes, k * by_lane)
    return elements, lanes


def places_meet(size: int, places: Iterable[np.ndarray]) -> bool:
    """Whether one of ``size`` places is taken more than once."""
    taken, count = np.zeros(size, bool), 0
    for some in places:
        taken[some] = True
        count += some.size
    return int(np.count_nonzero(taken)) < count


def runs_of(places: np.ndarray) -> tuple[Run, ...]:
    """The places of a primal as runs."""
    flat = places.ravel()
    elements = np.flatnonzero(flat >= 0)
    return runs_through(elements, flat[elements])


def runs_through(elements: np.ndarray, lanes: np.ndarray) -> tuple[Run, ...]:
    """Elements and the lane of each as runs."""
    runs: list[Run] = []
    for (element, lane), step in _progressions(np.stack([elements, lanes], 1)):
        runs.append((element, lane, (step,) if step[0] > 1 else ()))
    while True:
        before = len(runs)
        runs = _grouped(runs)
        if len(runs) == before:
            return tuple(runs)


def _grouped(runs: list[Run]) -> list[Run]:
    """Runs of the same form merged into one with an additional step, as far as they go evenly."""
    forms: dict[Any, list[tuple[int, int]]] = {}
    for element, lane, steps in runs:
        forms.setdefault(steps, []).append((element, lane))
    return [
        (element, lane, ((step,) if step[0] > 1 else ()) + steps)
        for steps, firsts in forms.items()
        for (element, lane), step in _progressions(np.array(firsts))
    ]


def _progressions(
    points: np.ndarray,
) -> list[tuple[tuple[int, int], tuple[int, int, int]]]:
    """Points, of shape (k, 2), split into progressions: first point, (count, step, step)."""
    progressions = []
    last = len(points) - 1
    steps = np.diff(points, axis=0)
    elements, lanes = (steps[1:] != steps[:-1]).T
    turns = np.flatnonzero(elements | lanes) + 1
    ends = [*turns.tolist(), last]  # where each stretch of equal steps ends
    k = stretch = 0
    while k <= last:
        while ends[stretch] <= k < last:
            stretch += 1
        stop = max(ends[stretch], k)
        if stop == k + 1 < last and ends[stretch + 1] > stop + 1:
            stop = k  # a single point, before a longer progression
        step = steps[k].tolist() if stop > k else (0, 0)
        first_element, first_lane = points[k].tolist()
        progressions.append(((first_element, first_lane), (stop - k + 1, step[0], step[1])))
        k = stop + 1
    return progressions


class Placer:
    """Records placed lanes on one tape."""

    only = False  # whether lanes are to be kept by places

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __call__(self, n: int, shape: tuple[int, ...], terms: dict[Any, Any]) -> Any:
        """The lanes of a sum of scaled placed lanes."""
        runs: list[Any] = []
        coefficients: list[Any] = []
        dense: Any = None
        dtype = Chunk.of(n, shape, terms).dtype
        for lanes, d in terms.items():
            places = np.broadcast_to(lanes.places, shape)
            own = runs_of(places)
            if len(own) > MAX_RUNS:
                array = self.recorder.as_symbol(_written_out(n, places, lanes.dtype))
                term = array if d is None else scale_lanes(d, array)
                dense = term if dense is None else dense + term
            elif own:
                runs.append(own)
                coefficients.append(1.0 if d is None else d)
        if dense is not None and not runs:
            return dense
        t = ArrayType(dtype, (n, *shape))
        args = (n, tuple(shape), dtype, tuple(runs), *coefficients)
        placed = self.recorder.apply_typed(place_lanes, args, t)
        return placed if dense is None else dense + placed

    def joined(self, shape: tuple[int, ...], parts: list[tuple[Any, Chunk]]) -> Chunk | None:
        """The tangent of an array assembled from parts at indices; None for too many terms."""
        first = parts[0][1]
        dtype = np.result_type(*(t.dtype for _, t in parts))
        whole = View(Slots(self.recorder, first.n, shape, dtype, self))
        if not all(whole.store(index, t) for index, t in parts):
            return None
        return whole.chunk(copy=False)


class OnlyPlaced(Placer):
    """Refuses to write lanes out, where only coefficients at places are wanted."""

    only = True

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Raise, whatever the lanes are."""
        raise NotPlacedError(set())


class NotPlacedError(Exception):
    """The tangent of some memory cannot be kept by places; it needs dense lanes."""

    def __init__(self, memory: set[Value]) -> None:
        super().__init__()
        self.memory = memory


def _written_out(n: int, places: np.ndarray, dtype: Any) -> np.ndarray:
    flat = places.ravel()
    (elements,) = np.nonzero(flat >= 0)
    array = np.zeros((n, flat.size), dtype)
    array[flat[elements], elements] = 1
    return array.reshape((n, *places.shape))


def places_of(shape: tuple[int, ...], runs: tuple[Run, ...]) -> np.ndarray:
    """The places that runs stand for; the inverse of :func:`runs_of`."""
    size = math.prod(shape)
    flat = np.full(size, NOWHERE)
    for element, lane, steps in runs:
        at, of = indices(element, lane, steps, size)
        flat[of] = at // size
    return flat.reshape(shape)


def pushed_places(recorder: Recorder, of: tuple[Any, ...], dots: list[Any]) -> Any:
    """The tangent of placed lanes, for higher derivatives.

    ``of`` is ``(n, shape, dtype, runs)`` as in :func:`place_lanes`, ``dots`` are the tangents of
    the coefficients.
    """
    n, shape, dtype, runs = of
    total: Any = ZERO
    for own, t in zip(runs, dots, strict=True):
        if not isinstance(t, Chunk):
            continue
        t = t.broadcast_to(shape)
        if all(lanes.placed for lanes in t.terms):
            held = np.result_type(dtype, t.dtype)
            for lanes, d in t.terms.items():
                assert isinstance(lanes, Placed)
                outer = lanes.moved(_placed_again(n, np.broadcast_to(lanes.places, shape), own))
                placed = recorder.apply_typed(
                    place_lanes,
                    (n, shape, held, (own,), 1.0 if d is None else d),
                    ArrayType(held, (n, *shape)),
                )
                total = total + Chunk.of(t.n, (n, *shape), {outer: placed})
            continue
        wide = (t.n, *shape)
        places = runs_of(np.broadcast_to(places_of(shape, own), wide))
        lanes_dtype = np.result_type(dtype, t.dtype)
        placed = recorder.apply_typed(
            place_lanes, (n, wide, lanes_dtype, (places,), t.lanes),
            ArrayType(lanes_dtype, (n, *wide)),
        )  # fmt: skip
        total = total + Chunk(recorder.apply(np.moveaxis, (placed, 1, 0), {}))
    return total


def pulled_places(recorder: Recorder, of: tuple[Any, ...], lanes_bar: Any) -> list[Any]:
    """The cotangents of the coefficients of placed lanes, each of the primal's shape.

    ``of`` are the arguments of :func:`place_lanes`.
    """
    n, shape, _, runs = of[:4]
    size = math.prod(shape)
    flat = recorder.apply(np.reshape, (lanes_bar, (n * size,)), {})
    pulled = []
    for own in runs:
        places = np.full(size, NOWHERE)
        for element, lane, steps in own:
            at, elements = indices(element, lane, steps, size)
            places[elements] = at
        inside = places != NOWHERE
        where = np.where(inside, places, 0).reshape(shape)
        bar = recorder.load(flat, recorder.as_symbol(where) if shape else int(where))
        if not inside.all():
            inside_symbol = recorder.as_symbol(inside.reshape(shape))
            bar = recorder.apply(np.where, (inside_symbol, bar, 0.0), {})
        pulled.append(bar)
    return pulled


def _placed_again(n: int, outer: np.ndarray, runs: tuple[Run, ...]) -> np.ndarray:
    """The places of placed lanes' elements, whose coefficients have placed lanes themselves."""
    flat = np.full(n * outer.size, NOWHERE)
    for element, lane, steps in runs:
        at, of = indices(element, lane, steps, outer.size)
        flat[at] = outer.reshape(-1)[of]
    return flat.reshape((n, *outer.shape))


__all__ = [
    "NotPlacedError",
    "OnlyPlaced",
    "Placer",
    "indices",
    "place_lanes",
    "places_meet",
    "places_of",
    "points_of",
    "pulled_places",
    "pushed_places",
    "runs_of",
    "runs_through",
]
