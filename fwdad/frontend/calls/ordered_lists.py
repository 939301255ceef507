"""`heapq` and `bisect`: functions in C that compare the items of a list.

On a list in memory, whose items values order, they are programs that are traced. The items end up
in the places in which CPython's functions put them.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.frontend.calls.containers import are_numbers
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.syntax.growing_lists.items import Items
from fwdad.frontend.syntax.growing_lists.making import stored_instead
from fwdad.frontend.syntax.raising import native
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ops import functions_with


def _rise(heap: Any, first: int, place: int) -> None:
    """Let the item at a place rise above those that are larger, not beyond ``first``."""
    item = heap[place]
    while place > first:
        above = (place - 1) // 2
        if not item < heap[above]:
            break
        heap[place] = heap[above]
        place = above
    heap[place] = item


def _sink(heap: Any, first: int) -> None:
    """Let the item at a place sink to the end of the smaller items below it, then rise again."""
    place, item = first, heap[first]
    below = 2 * place + 1
    while below < len(heap):
        if below + 1 < len(heap) and not heap[below] < heap[below + 1]:
            below += 1
        heap[place] = heap[below]
        place = below
        below = 2 * place + 1
    heap[place] = item
    _rise(heap, first, place)


def _push(heap: Any, item: Any) -> None:
    heap.append(item)
    _rise(heap, 0, len(heap) - 1)


def _pop(heap: Any) -> Any:
    if not heap:
        raise IndexError("index out of range")
    least = heap[0]
    last = heap.pop()
    if heap:
        heap[0] = last
        _sink(heap, 0)
    return least


def _replace(heap: Any, item: Any) -> Any:
    if not heap:
        raise IndexError("index out of range")
    least = heap[0]
    heap[0] = item
    _sink(heap, 0)
    return least


def _push_and_pop(heap: Any, item: Any) -> Any:
    if heap and heap[0] < item:
        return _replace(heap, item)
    return item


def _order(heap: Any) -> None:
    for place in range(len(heap) // 2 - 1, -1, -1):
        _sink(heap, place)


def _bisect_left(a: Any, x: Any, lo: Any, hi: Any) -> Any:
    while lo < hi:
        mid = (lo + hi) // 2
        if a[mid] < x:
            lo = mid + 1
        else:
            hi = mid
    return lo


def _bisect_right(a: Any, x: Any, lo: Any, hi: Any) -> Any:
    while lo < hi:
        mid = (lo + hi) // 2
        if x < a[mid]:
            hi = mid
        else:
            lo = mid + 1
    return lo


def _insort_left(a: Any, x: Any, lo: Any = 0, hi: Any = None) -> None:
    a.insert(_bisect_left(a, x, lo, len(a) if hi is None else hi), x)


def _insort_right(a: Any, x: Any, lo: Any = 0, hi: Any = None) -> None:
    a.insert(_bisect_right(a, x, lo, len(a) if hi is None else hi), x)


_PROGRAMS = {
    heapq.heappush: _push,
    heapq.heappop: _pop,
    heapq.heapreplace: _replace,
    heapq.heappushpop: _push_and_pop,
    heapq.heapify: _order,
    bisect.insort_left: _insort_left,
    bisect.insort_right: _insort_right,
}


def _changing(f: Callable[..., Any]) -> None:
    """Register a function that changes a list by comparing its items."""

    @builtin(f)
    def call(tracer: Tracer, held: Any, *args: Any, **kwargs: Any) -> Any:
        if mentions_symbols((held, args, kwargs)):
            stored_instead(tracer, held, f"`{f.__name__}` of")
        if isinstance(held, Items) and f in _PROGRAMS and "key" not in kwargs:
            return tracer.call(_PROGRAMS[f], (held, *args), kwargs)
        if mentions_symbols((held, args, kwargs)) or not isinstance(held, list):
            message = (
                f"`{f.__name__}` compares values that are unknown at trace time: use numpy.sort"
            )
            raise UntraceableError(message, tracer.position.location())
        tracer.outside.may_change(held)
        tracer.recorder.journal.touch(held)
        return native(lambda: f(held, *args, **kwargs))


for _f in functions_with(lambda record: record.changes_list):
    _changing(_f)


def _bisection(f: Callable[..., Any], written: Callable[..., Any]) -> None:
    @builtin(f)
    def call(
        tracer: Tracer, a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None
    ) -> Any:
        if not mentions_symbols((a, x, lo, hi, key)):
            return native(lambda: f(a, x, lo, hi, key=key))
        if key is not None:
            message = f"`{f.__name__}` with a key cannot be traced: pass a list of the keys"
            raise UntraceableError(message, tracer.position.location())
        if isinstance(a, (list, tuple)):
            if not are_numbers(a):
                message = f"`{f.__name__}` on a list of anything but numbers cannot be traced"
                raise UntraceableError(message, tracer.position.location())
            a = tracer.call(np.array, (list(a),), {})
        hi = tracer.call(len, (a,), {}) if hi is None else hi
        return tracer.call(written, (a, x, lo, hi), {})


_bisection(bisect.bisect_left, _bisect_left)
_bisection(bisect.bisect_right, _bisect_right)
