"""Lanes and entries that are written one by one, for the Numba source: loops over runs."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fwdad.codegen.loops.arrays.functions import handles, reading
from fwdad.codegen.loops.notation import Leaf, subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.ir.ops import Apply, Operand, is_array
from fwdad.transforms.forward import (
    indices,
    place_entries,
    place_lanes,
    places_meet,
    points_of,
)

_MOST_TOGETHER = 8  # runs in one loop: beyond it LLVM does not store vectors


@handles(place_lanes)
def _place_lanes(
    w: Parts, op: Apply, n: int, shape: Any, dtype: Any, runs: Any, *coefficients: Operand
) -> None:
    name = w.names.name(op.outputs[0])
    w.arrays.new(op.outputs[0], [str(m) for m in (n, *shape)], op, zeros=True)
    each = math.prod(shape)
    places = [indices(e, k, steps, each)[0] for own in runs for e, k, steps in own]
    apart = not places_meet(n * each, places)

    def store(lane: str, index: list[str], number: str) -> None:
        w.code.line(f"{name}[{subscript([lane, *index])}] {'=' if apart else '+='} {number}")

    _coefficients(w, [shape] * len(runs), dtype, runs, coefficients, store, apart=apart)


@handles(place_entries)
def _place_entries(
    w: Parts, op: Apply, size: int, dtype: Any, runs: Any, *coefficients: Operand
) -> None:
    y, lengths = op.outputs[0], [str(size)]
    name = w.names.name(y)
    places = [points_of(run)[1] for own in runs for run in own]
    apart = not places_meet(size, places)
    full = apart and sum(p.size for p in places) == size
    w.arrays.new(y, lengths, op, zeros=not full)

    def store(place: str, _: list[str], number: str) -> None:
        w.code.line(f"{name}[{place}] {'=' if apart else '+='} {number}")

    shapes = [d.type.shape if is_array(d) else () for d in coefficients]
    _coefficients(w, shapes, dtype, runs, coefficients, store, apart=apart)


Store = Callable[[str, list[str], str], None]


class _Run(NamedTuple):
    """A run of indices, and the coefficient whose elements are stored along it."""

    coefficient: Operand
    shape: Any
    first: int
    place: int
    steps: Any


def _coefficients(
    w: Parts,
    shapes: list[Any],
    dtype: Any,
    runs: Any,
    coefficients: Sequence[Operand],
    store: Store,
    *,
    apart: bool,
) -> None:
    """Write the loops that store each coefficient along its runs.

    Runs of the same steps are one loop, if no two of all places are the same: the entries of
    a row are written together.
    """
    nests: dict[Any, list[_Run]] = {}
    for own, d, shape in zip(runs, coefficients, shapes, strict=True):
        if len(own) > 1 and is_array(d) and d in w.elements.lazy:
            w.elements.materialize(d)  # once, not for each run
        for first, place, steps in own:
            alike = tuple((count, k) for count, _, k in steps) if apart else len(nests)
            nests.setdefault(alike, []).append(_Run(d, shape, first, place, steps))
    for together in nests.values():
        for k in range(0, len(together), _MOST_TOGETHER):
            _nest(w, together[k : k + _MOST_TOGETHER], dtype, store)


def _nest(w: Parts, runs: Sequence[_Run], dtype: np.dtype[Any], store: Store) -> None:
    """Write nested loops that store coefficients along runs; they compute all before they store."""
    with contextlib.ExitStack() as stack:
        items = [_item(w, run.coefficient, run.shape, stack) for run in runs]
        counts = [str(count) for count, *_ in runs[0].steps]
        names = stack.enter_context(w.loops.nest(counts, inner=True))
        stored = []
        for run, item in zip(runs, items, strict=True):
            element = _affine(w, run.first, names, [e for _, e, _ in run.steps])
            index = _index(w, element, run.shape)
            number = w.operands.stored(item(index), dtype)
            if len(runs) > 1:
                name = w.names.temporary("entry")
                w.code.line(f"{name} = {number}")
                number = name
            place = _affine(w, run.place, names, [k for *_, k in run.steps])
            stored.append((place, index, number))
        for each in stored:
            store(*each)


def _item(
    w: Parts, d: Operand, shape: tuple[int, ...], stack: contextlib.ExitStack
) -> Callable[[list[str]], Any]:
    """What gives an element of a coefficient, which broadcasts to a shape, inside a loop."""
    if not is_array(d):
        number = w.operands.atom(w.operands.number(d))
        return lambda _: number
    a, lengths, repeats = stack.enter_context(reading(w, d))
    wanted = [str(m) for m in shape]
    if a not in w.elements.lazy:
        w.elements.compare([Leaf(w.operands.array(a), a.type.shape, a)], wanted, {})
        return functools.partial(w.elements.element, a, steps=repeats)
    for n, m, own in zip(reversed(lengths), reversed(wanted), reversed(a.type.shape), strict=False):
        if own != 1 and n != m:
            w.elements.equal([n, m])
    return functools.partial(w.elements.element, a, steps=repeats)


def _affine(w: Parts, first: int, names: list[str], factors: list[int]) -> str:
    """A sum of indices with factors, as source; it is inside what it indexes."""
    pairs = zip(names, factors, strict=True)
    parts = [name if by == 1 else f"{by} * {name}" for name, by in pairs if by]
    return _inside(w, " + ".join([*parts, str(first)] if first or not parts else parts))


def _inside(w: Parts, text: str) -> str:
    """A name for an index that needs no check."""
    if text.isidentifier() or text.isdecimal():
        return text
    name = w.names.temporary("k")
    w.code.line(f"{name} = {text}")
    w.loops.inside.append(name)
    return name


def _index(w: Parts, flat: str, shape: tuple[int, ...]) -> list[str]:
    """The indices of an element that is counted in C order, as sources."""
    if len(shape) < 2:
        return [flat][: len(shape)]
    made, stride = [], 1
    for m in reversed(shape):
        made.append(_inside(w, f"{flat} // {stride} % {m}" if stride > 1 else f"{flat} % {m}"))
        stride *= m
    return made[::-1]
