"""``any``, ``all`` and ``in`` of items that are traced one by one: they end at the first one met.

Tests that only compute are all written down, one after the other, and joined. Where more tests
could be seen to be made (they bind names, put something out, may raise), each is traced on the side
of a branch on which none was met before.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from fwdad.errors import UntraceableError
from fwdad.frontend.syntax import iteration
from fwdad.frontend.syntax.control import branch
from fwdad.frontend.syntax.frame import Frame
from fwdad.frontend.syntax.iterators import Ended, Iterator
from fwdad.frontend.syntax.raising import AlwaysRaises, TraceControl, own_exceptions
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.analysis.effects import risk
from fwdad.ir.builder.heap_journal import Watch
from fwdad.ir.ops import Apply, Block, Call, Effect, Op, walk
from fwdad.ir.symbol import Symbol
from fwdad.ops import Risk

_NESTED_AT_MOST = 64
_IN_TURN = "in turn"


class InTurnFound(TraceControl):
    """Tests at a place have effects: they must be traced in turn. The trace restarts."""

    def __init__(self, place: Any) -> None:
        super().__init__()
        self.place = place


def met(tracer: Tracer, xs: Any, test: Callable[[Any], Any], *, at: bool = True) -> Any:
    """Whether a test of some item is True; or, ``at`` False, whether none is False."""
    items, where = iteration.iterator(tracer, xs), tracer.position.exact()
    place = None if where is None else (where.filename, where.line, where.column, _IN_TURN)
    if place in tracer.growing:
        return tracer.values.python_bool(_in_turn(tracer, items, test, at, 0))
    return tracer.values.python_bool(_all_at_once(tracer, items, test, at, place))


def _all_at_once(
    tracer: Tracer, items: Iterator, test: Callable[[Any], Any], at: bool, place: Any
) -> Any:
    """Make all tests, as if none were met; what must not be is found, and begins anew in turn."""
    recorder = tracer.recorder
    joined: Any = None
    block, watch, begin, tests = recorder.block, Watch(), 0, 0
    join = operator.or_ if at else operator.and_
    try:
        for _ in range(iteration.MOST):
            held = test(items.advance(tracer))
            if type(held) is not Symbol:
                if bool(held) is at:
                    joined = at
                    break
                continue
            tests += 1
            if joined is None:
                joined, begin = held, len(block.ops)
                _begin(tracer, watch)
            else:
                joined = recorder.apply(join, (joined, held), {})
        else:
            message = "an iterator without an end, or a very long one, cannot be traced"
            raise UntraceableError(message, tracer.position.location())
    except Ended:
        pass
    except AlwaysRaises:
        if joined is not None:
            _begin_anew(tracer, place)
        raise
    finally:
        recorder.journal.end_watch(watch)
    if not tests:
        return not at if joined is None else joined
    if watch.touched or recorder.block is not block or _are_seen(tracer, block.ops[begin:], tests):
        _begin_anew(tracer, place)
    for advanced in watch.advanced:
        advanced.lose()
    return joined


def _begin(tracer: Tracer, watch: Watch) -> None:
    """Watch what changes, but for the names of generators that wait for their turn."""
    frame: Frame | None = tracer.position.frame
    active: set[int] = set()
    while frame is not None:
        inner: Frame | None = frame
        while inner is not None:
            active.add(id(inner.locals))
            inner = inner.outer
        frame = frame.caller[0]
    watch.unseen = tracer.recorder.journal.resumed - active
    tracer.recorder.journal.watches.append(watch)


def _begin_anew(tracer: Tracer, place: Any) -> None:
    if place is not None:
        raise InTurnFound(place)
    message = "tests that do more than to compute cannot be traced here: write a loop"
    raise UntraceableError(message, tracer.position.location())


def _are_seen(tracer: Tracer, ops: list[Op], tests: int) -> bool:
    """Whether the program could tell that operations are run.

    Of functions of which nothing is known, too many ``tests`` are taken not to raise.
    """
    definitions, resolved = tracer.recorder.definitions, tracer.recorder.lengths.resolved
    all_ops = list(walk(Block(ops=ops)))
    own = set(map(id, all_ops))
    written = [root for op in all_ops for v in op.writes() for root in definitions.owners(v)]
    if any(map(_puts_out, all_ops)) or any(id(definitions.made_by(r)) not in own for r in written):
        return True
    may_raise = {
        e
        for op in all_ops
        if not isinstance(op, Apply) or risk(op) > Risk.SHAPES
        for e in own_exceptions(op, resolved)
    }
    return bool(may_raise) and (may_raise != {Exception} or tests <= _NESTED_AT_MOST)


def _puts_out(op: Op) -> bool:
    if isinstance(op, Call):
        return any(isinstance(inner, Effect) for inner in op.program.walk())
    return isinstance(op, Effect)


def _in_turn(
    tracer: Tracer, items: Iterator, test: Callable[[Any], Any], at: bool, nested: int
) -> Any:
    """Make tests until one is met, as a loop that is left there."""
    held: Any = not at
    while type(held) is not Symbol:
        if bool(held) is at:
            return at
        try:
            held = test(items.advance(tracer))
        except Ended:
            return not at
    if nested >= _NESTED_AT_MOST:
        message = (
            f"values decide after each of more than {_NESTED_AT_MOST} tests whether another one, "
            "which does more than to compute, is made: this cannot be traced"
        )
        raise UntraceableError(message, tracer.position.location())
    rest = functools.partial(_in_turn, tracer, items, test, at, nested + 1)
    sides = (lambda: True, rest) if at else (rest, lambda: False)
    return branch(tracer.recorder, held, *sides)
