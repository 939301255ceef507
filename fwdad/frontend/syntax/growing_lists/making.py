"""Lists as a program makes them: which of them are arrays, and of which kind."""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.frontend.syntax.control import NotOneBodyError
from fwdad.frontend.syntax.growing_lists.growing import Growing
from fwdad.frontend.syntax.growing_lists.growing_tuples import Tuples
from fwdad.frontend.syntax.growing_lists.items import (
    LISTS,
    ONE_BODY,
    ONE_BY_ONE,
    Items,
    ListGrows,
    Shape,
    root,
)
from fwdad.frontend.syntax.growing_lists.storing import stored_deque, stored_list
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import number_type

_LARGE = 100  # operations, of an iteration that changes a list: some of them do not unroll a loop


def growing_list(tracer: Tracer, head: list[Any], place: Any, shape: Shape | None = None) -> Items:
    """A list that grows when the program runs, made at ``place`` with the items ``head``.

    ``shape`` is that of items that are tuples; by default, what an earlier trace has found.
    """
    known = tracer.growing.get(place) if shape is None else shape
    if tracer.growing.get((place, "stored")) or known == LISTS:
        return stored_list(tracer, head, place, known)
    if not isinstance(known, Shape):
        return Growing(tracer, head, known, place)
    tuples = Tuples(tracer, known.kind, [])
    parts = [tuples.parts_of(x, len(known.parts)) for x in head]
    tuples.columns.extend(
        growing_list(tracer, [p[k] for p in parts], (place, k), part)
        for k, part in enumerate(known.parts)
    )
    return tuples


def list_of(tracer: Tracer, items: Any) -> Any:
    """A new list, made at the location that is being evaluated."""
    place = _here(tracer, "list")
    if tracer.growing.get((place, "stored")):
        return stored_list(tracer, items, place, None)
    if isinstance(items, Items):
        items.made_at(place)
        return items
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
    at = tracer.position.exact()
    return None if at is None else (*dataclasses.astuple(at)[:5], kind)


def stored_instead(tracer: Tracer, x: Any, what: str) -> None:
    """Begin the trace anew with a list in memory, where what changes in one is computed.

    In the body of a loop that is first tried without one: a short loop is unrolled. Nothing is done
    where there is no place at which the list is made, or items that memory cannot hold.
    """
    recorder, place = tracer.recorder, _place(tracer, x)
    if place is None or (type(x) is not list and tracer.growing.get((place, "stored"))):
        return
    message = f"{what} a list depends on a value that is not known when the program is traced"
    error = NotOneBodyError(message, tracer.position.location())
    error.place, error.size = place, _LARGE
    error.what = what if isinstance(x, Items) or x else None  # what will be on it is not known yet
    if not can_grow(tracer, error):
        return
    if recorder.ways is not None and recorder.ways.in_loop:
        raise error
    raise ListGrows(*error.found)


def one_in_memory(tracer: Tracer, lists: tuple[Any, ...]) -> None:
    """Begin the trace anew with two lists in memory, where values choose between them."""
    if lists and all(_place(tracer, x) is not None for x in lists):
        for x in lists:
            stored_instead(tracer, x, "choosing")


def _place(tracer: Tracer, x: Any) -> Any:
    """Where a list is made; None if that is not known, or memory cannot hold it."""
    if isinstance(x, Items):
        return None if x.place is None else root(x.place)
    made, place = tracer.recorder.places.get(id(x), (None, None))
    return place if made is x and type(x) is list and _fit(x) else None


def _fit(items: Any) -> bool:
    """Whether memory can hold items: tuples of numbers, numbers of one kind, lists of them, arrays.

    An int that became a float beside others would be no index any more.
    """
    if items and all(type(x) is list or isinstance(x, Items) for x in items):
        return all(_fit(x) if type(x) is list else not x.arrays for x in items)
    items = [x for x in items if x is not None]
    arrays = [x for x in items if isinstance(x, np.ndarray) or (type(x) is Symbol and x.is_array)]
    if arrays:
        return len(arrays) == len(items) and len({(x.dtype, x.ndim) for x in arrays}) == 1
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
    if error.found[0] in tracer.growing:
        return False
    return tracer.growing.setdefault((error.place, "how"), ONE_BODY) is ONE_BODY


def fill_one_by_one(growing: dict[Any, Any]) -> bool:
    """Give up all lists that are filled by loops; returns whether there were any."""
    keys = [key for key, how in growing.items() if how is ONE_BODY]
    for key in keys:
        growing[key] = ONE_BY_ONE
        for kind in ("stored", "resized", "front", "row", "apart", "optional"):
            growing.pop((key[0], kind), None)
        growing.pop(key[0], None)
    return bool(keys)
