"""Generated source that tracebacks, tracers and errors can find as long as its function lives."""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any

PLACES: dict[str, Any] = {}
"""The user's location of each line of generated sources, by their names; not all have any."""
TRACES: dict[CodeType, Callable[[FrameType], Any]] = {}
"""What reads, from a frame of a tracer's code, where in the traced source the trace is."""
_HELD: dict[str, list[weakref.ref[CodeType]]] = {}  # the same source may be defined more than once
_DEAD: list[str] = []


def define(
    text: str, filename: str, namespace: dict[str, Any], name: str, places: Any = None
) -> FunctionType:
    """The function ``name`` that a source defines in ``namespace``.

    ``filename`` is what tracebacks show, ``places`` the user's location of each line. The text is
    dropped after its last function, so that a long-lived process that keeps tracing does not leak.
    """
    drop_dead()
    exec(compile(text, filename, "exec"), namespace)  # noqa: S102  (our own text)
    function: FunctionType = namespace[name]

    def forget(_dead: object) -> None:
        held = _HELD.get(filename, [])
        held[:] = [ref for ref in held if ref() is not None]
        if not held:
            _HELD.pop(filename, None)
            PLACES.pop(filename, None)
            _DEAD.append(filename)  # not from linecache here, which may be walking over its entries

    _HELD.setdefault(filename, []).append(weakref.ref(function.__code__, forget))
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    if places is not None:
        PLACES[filename] = places
    return function


def drop_dead() -> None:
    """Drop the texts whose functions are gone."""
    while _DEAD:
        filename = _DEAD.pop()
        if filename not in _HELD:
            linecache.cache.pop(filename, None)
