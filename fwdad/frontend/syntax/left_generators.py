"""Generators that are left inside a ``try`` or ``with``, the end of which is still to be run.

Python runs it when nobody refers to the generator any more. When that is, a trace knows of what a
loop goes over and only the loop has; it is closed where the loop ends. Any other one is refused if
the program ends, or an iteration of a loop with one body, and it has been left like that.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from fwdad.errors import Location, UntraceableError
from fwdad.frontend.syntax.raising import AlwaysRaises, has_check
from fwdad.frontend.syntax.symbols import Maybe
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.symbol import UNBOUND

_NUMBERS = itertools.count()


@contextmanager
def inside(recorder: Recorder, items: Any, place: Location | None) -> Iterator[None]:
    """Note that a generator is inside a statement at ``place`` that does something at its end."""
    key = f"${next(_NUMBERS)}"
    recorder.journal.bind(recorder.pending, key, place)
    items.statements.append(key)

    def leave() -> None:
        recorder.journal.bind(recorder.pending, key, UNBOUND)
        items.statements.remove(key)

    try:
        yield
    except Exception:  # but not where Python itself closes what the trace has dropped
        leave()
        raise
    leave()


@contextmanager
def running(items: Any, inner: Any) -> Iterator[None]:
    """Note that a generator, if it is one, runs another one, which is closed with it."""
    held = [] if items is None else items.inner
    held.append(inner)
    try:
        yield
    except Exception:
        held.remove(inner)
        raise
    held.remove(inner)


def close(tracer: Tracer, items: Any) -> None:
    """Close a generator that nobody has any more."""
    ops, raises = tracer.recorder.block.ops, False
    before = len(ops)
    try:
        items.close(tracer)
    except AlwaysRaises:
        raises = True
    if raises or has_check(ops[before:]):
        message = (
            "a generator is left here, the end of which may raise an exception. Python reports "
            "that and goes on, which cannot be traced: call its `close()`"
        )
        raise UntraceableError(message, tracer.position.location())


def refuse(recorder: Recorder, known: Collection[str] = ()) -> None:
    """Refuse generators that are inside such statements, but for those that are ``known``."""
    for key, place in recorder.pending.items():
        if key not in known:
            message = (
                "a generator is left inside this statement. When Python would run the end of it "
                "depends on who else refers to the generator, which cannot be traced: call its "
                "`close()`, or run it to its end"
            )
            raise UntraceableError(message, place.value if isinstance(place, Maybe) else place)
