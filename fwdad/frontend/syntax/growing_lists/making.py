"""Lists as a program makes them: which of them are arrays, and of which kind."""

from __future__ import annotations

from collections import deque
from typing import Any

from fwdad.errors import UntraceableError
from fwdad.frontend.syntax.control import NotOneBodyError
from fwdad.frontend.syntax.growing_lists.changing import stored_deque, stored_list
from fwdad.frontend.syntax.growing_lists.growing import Growing
from fwdad.frontend.syntax.growing_lists.growing_tuples import Tuples
from fwdad.frontend.syntax.growing_lists.items import Items, ListGrows, Shape
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import number_type

ONE_BODY = object()
ONE_BY_ONE = object()
"""How the list that is made at a place is filled."""


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


def list_of(tracer: Tracer, items: list[Any], kind: str = "") -> Any:
    """A new list, made at the location that is being evaluated.

    ``kind`` tells lists apart that are made by expressions which begin at the same place.
    """
    place = _here(tracer, kind)
    if place in tracer.growing:
        return growing_list(tracer, items, place)
    value = tracer.recorder.journal.fresh(items)
    tracer.recorder.places[id(value)] = (value, place)
    return value


def deque_of(tracer: Tracer, items: list[Any], most: int | None) -> Any:
    """A new deque, as :func:`list_of`."""
    place = _here(tracer, "deque")
    if place in tracer.growing and most != 0:
        return stored_deque(tracer, list(deque(items, most)), place, most)
    value = tracer.recorder.journal.fresh(deque(items, most))
    tracer.recorder.places[id(value)] = (value, place)
    return value


def _here(tracer: Tracer, kind: str) -> Any:
    where = tracer.position.exact()
    return None if where is None else (where.filename, where.line, where.column, kind)


def stored_instead(tracer: Tracer, x: Any, what: str) -> None:
    """Begin the trace anew with a list in memory, where values decide what changes in one.

    In the body of a loop that is first tried without one: a short loop is unrolled. Nothing is done
    where there is no place at which the list is made, or items that memory cannot hold.
    """
    recorder = tracer.recorder
    made, place = recorder.places.get(id(x), (None, None))
    if made is not x or type(x) is not list:
        return
    message = f"{what} a list depends on a value that is not known when the program is traced"
    error = NotOneBodyError(message, tracer.position.location())
    error.place, error.of_numbers = place, _fit(x)
    if not can_grow(tracer, error):
        return
    if recorder.ways is not None and recorder.ways.in_loop:
        raise error
    tracer.growing[place] = None
    raise ListGrows((place, "stored"), what)


def _fit(items: list[Any]) -> bool:
    """Whether memory can hold items: tuples of numbers, or numbers of one kind.

    An int that became a float beside others would be no index any more.
    """
    types = [x.type if type(x) is Symbol else number_type(x) for x in items]
    kinds = {t.dtype.kind for t in types if t is not None}
    return len(kinds) < 2 and all(map(_are_numbers, items))


def _are_numbers(x: Any) -> bool:
    if isinstance(x, tuple):
        return all(map(_are_numbers, x))
    return not x.is_array if type(x) is Symbol else number_type(x) is not None


def can_grow(tracer: Tracer, error: UntraceableError) -> bool:
    """Whether a loop is no one body because of a list that may grow at run time."""
    if not isinstance(error, NotOneBodyError) or error.place is None or not error.of_numbers:
        return False
    if error.place in tracer.growing:
        return False
    return tracer.growing.setdefault((error.place, "how"), ONE_BODY) is ONE_BODY


def fill_one_by_one(growing: dict[Any, Any]) -> bool:
    """Give up all lists that are filled by loops; returns whether there were any."""
    keys = [key for key, how in growing.items() if how is ONE_BODY]
    for key in keys:
        growing[key] = ONE_BY_ONE
        growing.pop(key[0], None)
    return bool(keys)
