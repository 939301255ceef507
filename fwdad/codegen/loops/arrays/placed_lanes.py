"""Lanes and entries that are written one by one, for the Numba source: loops over runs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fwdad.codegen.loops.arrays.functions import handles, reading
from fwdad.codegen.loops.notation import subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.ir.ops import Apply, Operand, is_array
from fwdad.transforms.forward import (
    indices,
    place_entries,
    place_lanes,
    places_meet,
    points_of,
)


@handles(place_lanes)
def _place_lanes(
    w: Parts, op: Apply, n: int, shape: Any, dtype: Any, runs: Any, *coefficients: Operand
) -> None:
    name = w.names.name(op.outputs[0])
    w.code.line(f"{name} = {w.arrays.zeros(op.outputs[0], [str(m) for m in (n, *shape)])}", op)
    each = math.prod(shape)
    places = [indices(e, k, steps, each)[0] for own in runs for e, k, steps in own]
    sign = "+=" if places_meet(n * each, places) else "="

    def store(lane: str, index: list[str], number: str) -> None:
        w.code.line(f"{name}[{subscript([lane, *index])}] {sign} {number}")

    _coefficients(w, [shape] * len(runs), dtype, runs, coefficients, store)


@handles(place_entries)
def _place_entries(
    w: Parts, op: Apply, size: int, dtype: Any, runs: Any, *coefficients: Operand
) -> None:
    y, lengths = op.outputs[0], [str(size)]
    name = w.names.name(y)
    places = [points_of(run)[1] for own in runs for run in own]
    apart = not places_meet(size, places)
    full = apart and sum(p.size for p in places) == size
    made = w.arrays.empty(lengths, dtype, y) if full else w.arrays.zeros(y, lengths)
    w.code.line(f"{name} = {made}", op)

    def store(place: str, _: list[str], number: str) -> None:
        w.code.line(f"{name}[{place}] {'=' if apart else '+='} {number}")

    shapes = [d.type.shape if is_array(d) else () for d in coefficients]
    _coefficients(w, shapes, dtype, runs, coefficients, store)


Store = Callable[[str, list[str], str], None]


def _coefficients(
    w: Parts,
    shapes: list[Any],
    dtype: Any,
    runs: Any,
    coefficients: Sequence[Operand],
    store: Store,
) -> None:
    """Write the loops that store each coefficient along its runs."""
    for own, d, shape in zip(runs, coefficients, shapes, strict=True):
        if len(own) > 1 and is_array(d) and d in w.elements.lazy:
            w.elements.materialize(d)  # once, not for each run
        if is_array(d):
            with reading(w, d) as (a, _, repeats):
                item = functools.partial(w.elements.element, a, steps=repeats)
                for run in own:
                    _run(w, shape, run, dtype, item, store)
        else:
            number = w.operands.atom(w.operands.number(d))
            for run in own:
                _run(w, shape, run, dtype, lambda _: number, store)  # noqa: B023


def _run(w: Parts, shape: Any, run: Any, dtype: np.dtype[Any], item: Any, store: Store) -> None:
    """Write nested loops that store a coefficient along one run of indices."""
    element, lane, steps = run
    with w.loops.nest([str(count) for count, *_ in steps]) as names:
        index = _index(w, _affine(element, names, [e for _, e, _ in steps]), shape)
        at = _affine(lane, names, [k for *_, k in steps])
        store(at, index, w.operands.stored(item(index), dtype))


def _affine(first: int, names: list[str], factors: list[int]) -> str:
    """A sum of indices with factors, as source."""
    pairs = zip(names, factors, strict=True)
    parts = [name if by == 1 else f"{by} * {name}" for name, by in pairs if by]
    return " + ".join([*parts, str(first)] if first or not parts else parts)


def _index(w: Parts, flat: str, shape: tuple[int, ...]) -> list[str]:
    """The indices of an element that is counted in C order, as sources."""
    if len(shape) < 2:
        return [flat][: len(shape)]
    name = w.names.temporary("k")
    w.code.line(f"{name} = {flat}")
    made, stride = [], 1
    for m in reversed(shape):
        made.append(f"{name} // {stride} % {m}" if stride > 1 else f"{name} % {m}")
        stride *= m
    return made[::-1]
