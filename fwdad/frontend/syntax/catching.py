"""Exceptions raised depending on a value and caught by a ``try``, which are branches of the tape.

Where one side of a branch raises what is caught, a *point* is opened: what is traced from there on,
to the end of the ``try``, is the side on which nothing was raised. When the ``try`` ends, its
points are closed, the latest first: the handler is traced on the other side, from the state at the
raise, and the sides are merged. A point inside a branch or loop is closed where that ends: what was
raised is bound in a namespace of the catcher, merged or carried as any name is, and after the
branch or loop a point is opened again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fwdad.errors import Location, UntraceableError
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.syntax import left_generators
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.symbols import Maybe
from fwdad.ir.builder.heap_journal import Region, set_content
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Apply, Block
from fwdad.ir.symbol import UNBOUND, Symbol


@dataclass
class Side:
    """One side of a branch.

    ``changes`` of the heap are ``(container, before, now)``; ``raises`` is what it ends in, if it
    does; ``fresh`` are ids of containers made on it. It is ``dead`` if all its paths have raised
    something that is bound for a catcher.
    """

    block: Block
    value: Any = None
    changes: Any = ()
    raises: AlwaysRaises | None = None
    fresh: set[int] = field(default_factory=set)
    dead: bool = False


class Catcher:
    """A ``try`` whose body is traced; ``wanted`` are the exceptions that its handlers catch."""

    def __init__(self, recorder: Recorder, wanted: tuple[type[BaseException], ...]) -> None:
        self.wanted = wanted
        self.depth = len(recorder.journal.regions)
        self.held: dict[str, Any] = {}  # what was raised inside branches and loops
        self.exceptions: dict[str, Any] = {}
        self.pending = set(recorder.pending)
        recorder.journal.own(self.held, namespace=True)

    def bind(self, recorder: Recorder, raised: AlwaysRaises) -> None:
        """Note on the path that is traced that something was raised."""
        exception = raised.exception
        if isinstance(exception, type):
            key = f"${exception.__name__}{id(exception)} {len(raised.arguments)}"
        elif mentions_symbols((exception.args, vars(exception))):
            message = (
                f"a {type(exception).__name__} that was created before it is raised, and holds "
                "values unknown until run time, is caught by a `try` around a branch or loop, "
                "which cannot be traced: raise it by its class and arguments"
            )
            raise UntraceableError(message, raised.location)
        else:
            key = f"${id(exception)}"
        self.exceptions[key] = exception
        recorder.journal.bind(self.held, key, raised.arguments)


@dataclass
class Point:
    """A point where something may have been raised."""

    condition: Symbol  # whether it was
    side: Side
    raised: AlwaysRaises
    catcher: Catcher
    block: Block  # what is traced if not
    here: Location | None


Merge = Callable[[Recorder, Symbol, Side, Side, Location | None], Any]
Join = Callable[[Recorder, Symbol, Side, Side, Location | None], tuple[Any, Any, bool]]


@contextmanager
def not_through(recorder: Recorder) -> Iterator[None]:
    """Trace code that no conditional exception may leave: it becomes a check, and is refused."""
    outer, recorder.catchers = recorder.catchers, []
    try:
        yield
    finally:
        recorder.catchers = outer


def find(recorder: Recorder, raised: AlwaysRaises) -> Catcher | None:
    """The ``try`` that catches an exception; None if a region in between cannot be left."""
    for catcher in reversed(recorder.catchers):
        if raised.is_a(catcher.wanted):
            left_generators.refuse(recorder, catcher.pending)
            between = recorder.journal.regions[catcher.depth :]
            return catcher if all(region.passes for region in between) else None
    return None


def open_point(
    recorder: Recorder, condition: Symbol, side: Side, raised: AlwaysRaises, catcher: Catcher
) -> None:
    """Continue on the path on which nothing is raised."""
    block, here = Block(), recorder.place()
    raised.location = raised.location or here
    region = recorder.enter(block)
    region.passes = True
    region.point = Point(condition, side, raised, catcher, block, here)


def trailing(recorder: Recorder, depth: int) -> list[Point]:
    """The points that are open inside a region."""
    points = [region.point for region in recorder.journal.regions[depth:]]
    assert all(point is not None for point in points)
    return points


def reapply(recorder: Recorder, changes: Any) -> None:
    """Apply a side's changes to the heap."""
    for o, _, now in changes:
        recorder.journal.touch(o)
        set_content(o, now)


def trace_side(recorder: Recorder, run: Callable[[], Any], side: Side, join: Join) -> None:
    """Trace more of a side, after what it has done before; the points that it opens are closed."""
    with recorder.region(side.block) as region:
        region.passes = True
        depth = len(recorder.journal.regions)
        reapply(recorder, side.changes)
        value, failed = None, None
        try:
            value = run()
        except AlwaysRaises as raised:
            failed = raised
        side.value, side.raises, side.dead = close(recorder, depth, join, value, failed)
        _keep(region, side)


def _keep(region: Region, side: Side) -> None:
    side.changes = region.changes()
    side.fresh |= region.fresh
    region.undo()


def bind_raised(recorder: Recorder, side: Side, catcher: Catcher) -> None:
    """End a side that raises without raising: it binds the exception for the catcher."""
    raised = side.raises
    assert raised is not None
    with recorder.region(side.block) as region:
        reapply(recorder, side.changes)
        catcher.bind(recorder, raised)
        _keep(region, side)
    side.raises, side.value, side.dead = None, UNBOUND, True


def close(
    recorder: Recorder,
    depth: int,
    join: Join,
    value: Any = None,
    failed: AlwaysRaises | None = None,
    catcher: Catcher | None = None,
    handle: Callable[[AlwaysRaises], Any] | None = None,
) -> tuple[Any, AlwaysRaises | None, bool]:
    """Close the points that are open beyond ``depth`` regions, the latest first.

    ``value`` and ``failed`` are the result of the path on which nothing was raised. ``catcher`` is
    a ``try`` that ends here, whose handlers ``handle`` traces. Returns the merged value, what is
    always raised, and whether all paths have raised something.
    """
    dead = False
    while len(recorder.journal.regions) > depth:
        region = recorder.journal.regions[-1]
        point: Any = region.point
        way = Side(point.block, value, raises=failed, dead=dead)
        _keep(region, way)
        recorder.leave(region)
        side = point.side
        if point.catcher is catcher and handle is not None:
            trace_side(recorder, lambda: handle(point.raised), side, join)  # noqa: B023
        else:
            side.raises = point.raised
        value, failed, dead = join(recorder, point.condition, side, way, point.here)
    return value, failed, dead


def again(recorder: Recorder, value: Any, *, dead: bool) -> Any:
    """Open points for what was raised inside a branch or loop that ends here."""
    pending = [(c, key, x) for c in recorder.catchers for key, x in list(c.held.items())]
    for k, (catcher, key, content) in enumerate(pending):
        recorder.journal.bind(catcher.held, key, UNBOUND)
        flag: Any = content.flag if isinstance(content, Maybe) else True
        given = content.value if isinstance(content, Maybe) else content
        raised = AlwaysRaises(catcher.exceptions[key], given)
        if flag is True or (dead and k == len(pending) - 1):
            raise raised
        open_point(recorder, flag, Side(Block()), raised, catcher)
        _assume_not(recorder, flag)
    return value.value if pending and isinstance(value, Maybe) else value


def flags(recorder: Recorder) -> list[Any]:
    """For each exception that may have been raised on the paths that end here, whether it was."""
    all_flags = [x for c in recorder.catchers for x in c.held.values()]
    return [x.flag if isinstance(x, Maybe) else True for x in all_flags]


def begin_iteration(recorder: Recorder) -> None:
    """Mark everything as not raised: if it were, the loop would have been left."""
    for catcher in recorder.catchers:
        for key in list(catcher.held):
            recorder.journal.bind(catcher.held, key, UNBOUND)


def are_opposite(recorder: Recorder, a: Any, b: Any) -> bool:
    """Whether one truth value is known to be the negation of another."""
    if type(a) is bool and type(b) is bool:
        return a is not b
    if type(a) is not Symbol or type(b) is not Symbol:
        return False
    return _is_not(recorder, a, b) or _is_not(recorder, b, a)


def _is_not(recorder: Recorder, a: Symbol, b: Symbol) -> bool:
    op = recorder.definitions.made_by(a.value)
    return isinstance(op, Apply) and op.function is operator.not_ and op.args[0] is b.value


def _assume_not(recorder: Recorder, flag: Symbol) -> None:
    """On the path on which a flag is not set, resolve what depends on the flag."""

    def resolved(x: Any) -> Any:
        if type(x) is not Symbol:
            return x
        if x.value is flag.value:
            return False
        return True if _is_not(recorder, x, flag) else x

    for o in recorder.journal.heap():
        if not recorder.journal.is_namespace(o):
            continue
        for key, content in list(o.items()):
            if isinstance(content, Maybe):
                known = resolved(content.flag)
                if known is True or known is False:
                    recorder.journal.bind(o, key, content.value if known else UNBOUND)
            elif resolved(content) is not content:
                recorder.journal.bind(o, key, resolved(content))
