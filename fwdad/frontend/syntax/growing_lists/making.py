"""Lists as a program makes them: which kind each is."""

from __future__ import annotations

from typing import Any

from fwdad.frontend.syntax.growing_lists.changing import stored_list
from fwdad.frontend.syntax.growing_lists.growing import Growing
from fwdad.frontend.syntax.growing_lists.growing_tuples import Tuples
from fwdad.frontend.syntax.growing_lists.items import Items, Shape
from fwdad.frontend.syntax.tracer import Tracer


def growing_list(tracer: Tracer, head: list[Any], place: Any, shape: Shape | None = None) -> Items:
    """A list that grows when the program runs, made at ``place`` with the items ``head``.

    ``shape`` is that of items that are tuples; by default, what an earlier trace has found.
    """
    known = tracer.growing.get(place) if shape is None else shape
    if tracer.growing.get((place, "stored")):
        return stored_list(tracer, head, place, known)
    if not isinstance(known, Shape):
        return Growing(tracer, head, known, place)
    tuples = Tuples(tracer, known.kind, [])
    parts = [tuples.parts(x, len(known.parts)) for x in head]
    tuples.columns.extend(
        growing_list(tracer, [p[k] for p in parts], (place, k), part)
        for k, part in enumerate(known.parts)
    )
    return tuples


def list_of(tracer: Tracer, items: list[Any]) -> Any:
    """A new list, made at the location that is being evaluated."""
    where = tracer.position.exact()
    place = None if where is None else (where.filename, where.line, where.column)
    if place in tracer.growing:
        return growing_list(tracer, items, place)
    value = tracer.recorder.journal.fresh(items)
    tracer.recorder.places[id(value)] = (value, place)
    return value
