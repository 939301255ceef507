"""Generated source that tracebacks, tracers and errors can find as long as its function lives."""

from __future__ import annotations

import linecache
import weakref
from types import CodeType, FunctionType
from typing import Any

PLACES: dict[str, Any] = {}
"""The user's location of each line of generated sources, by their names; not all have any."""
_HELD: dict[str, list[weakref.ref[CodeType]]] = {}  # the same source may be defined more than once


def define(
    text: str, filename: str, namespace: dict[str, Any], name: str, places: Any = None
) -> FunctionType:
    """The function ``name`` that a source defines in ``namespace``.

    ``filename`` is what tracebacks show, ``places`` the user's location of each line. The text is
    dropped with its last function, so that a long-lived process that keeps tracing does not leak.
    """
    exec(compile(text, filename, "exec"), namespace)  # noqa: S102  (our own text)
    function: FunctionType = namespace[name]

    def forget(_dead: object) -> None:
        held = _HELD.get(filename, [])
        held[:] = [ref for ref in held if ref() is not None]
        if not held:
            _HELD.pop(filename, None)
            PLACES.pop(filename, None)
            linecache.cache.pop(filename, None)

    _HELD.setdefault(filename, []).append(weakref.ref(function.__code__, forget))
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    if places is not None:
        PLACES[filename] = places
    return function
