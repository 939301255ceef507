"""Iterables for which Python would call C code: iterators, ranges, ``zip`` and its relatives."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fwdad.errors import Location, UntraceableError
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.symbols import OfTrace
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import UNBOUND


class Ended(Exception):  # noqa: N818  (no error: there are no more items)
    """An iterator has no more items; ``value`` is what a generator returns."""

    def __init__(self, value: Any = None) -> None:
        super().__init__()
        self.value = value


class Iterator(OfTrace):
    """An iterator of the traced program, each of whose items is traced when it is asked for.

    Its position is known if it is used in one place: in the loop or branch in which it was made, or
    inside a branch that is the last to use it. ``called_at`` is where a generator function was
    called that it is the result of, ``statements`` are those that this is inside of, and which do
    something at their ends, and ``inner`` the generators that it runs and nobody else has.
    """

    def __init__(self, tracer: Tracer, run: Any, called_at: Location | None = None) -> None:
        self._run = run
        regions = tracer.recorder.journal.regions
        self._place: Any = regions[-1] if regions else None
        self._busy = False
        self.called_at = called_at
        self.statements: list[str] = []
        self.inner: list[Iterator] = []

    @property
    def pending(self) -> bool:
        """Whether a generator would have something to do if it were left now."""
        return bool(self.statements) or any(items.pending for items in self.inner)

    def advance(self, tracer: Tracer, sent: Any = None) -> Any:
        """The next item; raises ``Ended`` if there is none.

        ``UntraceableError`` if the iterator's position depends on a value.
        """
        self._move(tracer)
        for watch in tracer.recorder.journal.watches:
            watch.advanced.append(self)
        self._busy = True
        try:
            return next(self._run) if sent is None else self._run.send(sent)
        except StopIteration as end:
            raise Ended(end.value) from None
        finally:
            self._busy = False

    def throw(self, tracer: Tracer, raised: AlwaysRaises) -> None:
        """Raise an exception inside a generator, at its current ``yield``."""
        self._move(tracer)
        try:
            self._run.throw(raised)
        except AlwaysRaises as again:
            if again is not raised:
                raise
        except StopIteration:
            raise AlwaysRaises(RuntimeError, ("generator didn't stop after throw()",)) from None

    def leave(self, tracer: Tracer, raised: AlwaysRaises) -> None:
        """Pass on to a generator what is raised in the one that yields from it."""
        if raised.is_a(GeneratorExit):
            self.close(tracer)
        else:
            self.throw(tracer, raised)

    def close(self, tracer: Tracer) -> None:
        """Close a generator at its current ``yield``."""
        self._move(tracer)
        try:
            self._run.throw(AlwaysRaises(GeneratorExit))
        except AlwaysRaises as raised:
            if not raised.is_a(GeneratorExit):
                raise
        except StopIteration:
            return
        else:
            raise AlwaysRaises(RuntimeError, ("generator ignored GeneratorExit",))

    def lose(self) -> None:
        """Note that the position depends on values from now on."""
        self._place = UNBOUND

    def _move(self, tracer: Tracer) -> None:
        if self._busy:
            raise AlwaysRaises(ValueError, ("generator already executing",))
        regions = tracer.recorder.journal.regions
        here = regions[-1] if regions else None
        if here is self._place:
            return
        depths = [k for k, r in enumerate(regions) if r is self._place]
        since = None if self._place is not None and not depths else sum(depths) + bool(depths)
        if since is None or any(r.repeats for r in regions[since:]):
            message = (
                "an iterator is used inside a loop or branch and was made, or is used again, "
                "outside of it, so its position would depend on values: make a list of it"
            )
            raise UntraceableError(message, tracer.position.location())
        self._place = here


@dataclass
class Range:
    """``range`` with symbolic bounds."""

    start: Any
    stop: Any
    step: Any


@dataclass
class Count(Range):
    """``itertools.count`` of ints."""

    used: bool = False
    begun: Iterator | None = None


@dataclass
class Enumerated:
    """``enumerate``."""

    iterable: Any
    start: Any
    used: bool = False
    begun: Iterator | None = None


@dataclass
class Zipped:
    """``zip``."""

    iterables: tuple[Any, ...]
    used: bool = False
    begun: Iterator | None = None


@dataclass
class Reversed:
    """``reversed``."""

    iterable: Any
    used: bool = False
    begun: Iterator | None = None


@dataclass
class Mapped(OfTrace):
    """``map``, or a generator expression: what a function makes of each item.

    ``begin`` returns the function for a run through the items: functions that are defined in it see
    the names of its last item.
    """

    iterable: Any
    begin: Callable[[], Callable[[Any], Any]]
    used: bool = False
    begun: Iterator | None = None


ITERATORS = (Count, Enumerated, Zipped, Reversed, Mapped)
"""Iterators that one body of a loop can run over, as long as nobody has asked for an item."""


@dataclass
class Repeated:
    """``itertools.repeat``, perhaps endless."""

    item: Any
    times: Any


CLASSES: dict[type, tuple[type, ...]] = {
    Range: (range,),
    Count: (itertools.count,),
    Enumerated: (enumerate,),
    Zipped: (zip,),
    Reversed: (reversed,),
    Repeated: (itertools.repeat,),
    Mapped: (types.GeneratorType, map),
    Iterator: (types.GeneratorType, map, filter, zip, enumerate, reversed, itertools.chain),
}
"""What stands for iterables of Python's, and the classes that these may have."""
