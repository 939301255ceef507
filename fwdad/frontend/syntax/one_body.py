"""Loops with one body, which is traced until what is carried, and its types, no longer change."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fwdad.errors import Location
from fwdad.frontend.syntax import catching, left_generators
from fwdad.frontend.syntax.control import (
    NotOneBodyError,
    branch,
    content_at,
    converted,
    differing,
    truth,
    write,
)
from fwdad.frontend.syntax.merge import Build, Leaf, Merger
from fwdad.frontend.syntax.raising import AlwaysRaises, BodyRaises
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Apply, Block, Loop, Value, walk
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import INT, ArrayType, Dimension, Size, Type, covers, join, paths_of, unsized

_ATTEMPTS = 16  # types settle in as many passes over a loop as there are wider types, and some


class TestChangesError(Exception):
    """The condition of a ``while`` changes something, and so is part of the body."""


@dataclass
class _Place:
    """A name or item that changes from one iteration to the next."""

    container: Any
    key: Any
    initial: Any
    build: Build
    leaves: slice

    @property
    def where(self) -> tuple[int, Any]:
        return id(self.container), self.key


@dataclass
class _Carried:
    """All that a loop carries: places, and the leaves of their contents."""

    places: list[_Place]
    leaves: list[Leaf]
    types: list[Type]
    since: Size  # lengths from before the loop are older
    own: set[Size] = field(default_factory=set)  # lengths that may be others in each iteration

    def bind(self, recorder: Recorder, symbols: list[Symbol]) -> None:
        """Give every place the content that is built from these leaves."""
        write(recorder, [(p.container, p.key, p.build, str(p.key)) for p in self.places], symbols)


@dataclass
class _Attempt:
    body: Block
    test: Block | None
    leaves: Any
    now: dict[tuple[int, Any], Any]
    before: dict[tuple[int, Any], tuple[Any, Any, Any]]
    fresh: set[int]


def loop(
    recorder: Recorder,
    span: tuple[Any, Any, Any] | None,
    test: Callable[[], Any] | None,
    body: Callable[[Symbol | None], Any],
) -> Any:
    """Trace a loop's body until its carried values and their types no longer change.

    ``span`` is that of a range, or ``test`` evaluates the condition of a ``while``. ``body`` traces
    one iteration for a counter, and returns whether to leave the loop. Returns how often the body
    ran, 0 if the condition is known to fail at once. ``NotOneBodyError`` if the iterations differ
    in structure, or types do not settle.
    """
    here, ways = recorder.place(), recorder.ways
    own = None if ways is None else ways.begin_loop()
    carried = _Carried([], [], [], Size())
    checkpoint, recorder.checkpoint = recorder.checkpoint, None  # it is for the outermost loops
    outer = recorder.in_checkpoint
    recorder.in_checkpoint |= checkpoint is not None
    try:
        for _ in range(_ATTEMPTS):
            attempt = _trace_body(recorder, span, test, body, carried)
            if attempt is None:
                return 0
            settled, carried = _settle(recorder, attempt, carried, own)
            if settled:
                made = _emit_loop(recorder, span, attempt, carried, here)
                made.checkpoint = checkpoint
                catching.again(recorder, None, dead=False)
                return Symbol(made.exec_count, recorder)
    except BodyRaises as found:
        _raise_in_loop(recorder, span, test, found)
        return 0
    finally:
        recorder.checkpoint = checkpoint
        recorder.in_checkpoint = outer
        if ways is not None:
            ways.end_loop()
    message = (
        "the types of names that this loop changes differ from iteration to iteration: give each "
        "its final type before the loop, such as 0.0 for a float"
    )
    raise NotOneBodyError(message, recorder.place())


def _raise_in_loop(
    recorder: Recorder, span: Any, test: Callable[[], Any] | None, found: BodyRaises
) -> None:
    """Write a loop whose first iteration raises: a branch on whether the loop begins."""

    def iteration() -> None:
        params = found.block.params
        if params:
            first = recorder.operand(span[0])
            recorder.emit(Apply(operator.add, (first, 0), outputs=tuple(params)))
        recorder.adopt(found.block.ops)
        raise found.raised

    branch(recorder, test() if test else _begins(recorder, *span), iteration, lambda: None)


def _begins(recorder: Recorder, start: Any, stop: Any, step: Any) -> Any:
    """Whether a range is not empty."""
    if all(isinstance(b, int) for b in (start, stop, step)):
        return bool(range(start, stop, step))
    way = recorder.apply(operator.sub, (stop, start), {})
    return recorder.apply(operator.gt, (recorder.apply(operator.mul, (way, step), {}), 0), {})


def _trace_body(
    recorder: Recorder,
    span: Any,
    test: Callable[[], Any] | None,
    body: Callable[[Symbol | None], Any],
    carried: _Carried,
) -> _Attempt | None:
    block = Block()
    counter = Symbol(Value(INT), recorder) if span is not None else None
    params = [Symbol(Value(t), recorder) for t in carried.types]
    recorder.definitions.carried.update(p.value for p in params)
    test_block, pending = None, set(recorder.pending)
    with recorder.region(block) as region:
        region.repeats = True
        carried.bind(recorder, params)
        catching.begin_iteration(recorder)
        region.passes = True
        if test is not None:
            test_block = Block()
            with recorder.region(test_block) as inner:
                goes_on = _of_first(recorder, carried, Block(), lambda: truth(recorder, test()))
                writes = any(op.writes() for op in walk(test_block))
                if recorder.journal.regions[-1] is not inner or inner.changes() or writes:
                    raise TestChangesError
            if goes_on is False and not carried.places:
                region.undo()
                return None
            test_block.results.append(recorder.operand(goes_on))
        block.params = [counter.value] if counter is not None else []
        leaves = _of_first(recorder, carried, block, lambda: body(counter))
        left_generators.refuse(recorder, pending)
        if recorder.journal.regions[-1] is not region:  # of a comprehension, say
            message = "an exception that is caught outside the loop may end it"
            raise NotOneBodyError(message, recorder.place())
        now, before = {}, {}
        for place in carried.places:
            before[place.where] = (place.container, place.key, place.initial)
            now[place.where] = content_at(place.container, place.key)
        try:
            for o, old, new in region.changes():
                for key, x, y in differing(recorder, o, old, new):
                    if (id(o), key) not in before:
                        before[id(o), key] = (o, key, x)
                        now[id(o), key] = y
        except NotOneBodyError as error:
            error.size = sum(1 for _ in walk(block))
            raise
        region.undo()
        fresh = region.fresh
    block.params += (p.value for p in params)
    return _Attempt(block, test_block, leaves, now, before, fresh)


def _of_first(recorder: Recorder, carried: _Carried, block: Block, run: Callable[[], Any]) -> Any:
    """Run a part of an iteration; if it always raises, that must happen in the first one."""
    try:
        return run()
    except AlwaysRaises as raised:
        if recorder.journal.regions[-1].point is not None:
            message = (
                "an exception that is caught outside the loop may end it, and another one is "
                "always raised"
            )
            raise NotOneBodyError(message, recorder.place()) from raised
        if not carried.places:
            raise BodyRaises(raised, block) from None
        message = f"its iterations differ: a later one always raises ({raised})"
        raise NotOneBodyError(message, recorder.place()) from raised


def _settle(
    recorder: Recorder, attempt: _Attempt, carried: _Carried, here: Any
) -> tuple[bool, _Carried]:
    """Whether the loop carries what the latest attempt needs, and what to carry next."""
    merger = Merger(recorder, set(), attempt.fresh, here)
    known = {p.where: p for p in carried.places}
    places, types = [], []
    for where, (o, key, initial) in attempt.before.items():
        first = len(merger.leaves)
        build = merger.place(initial, initial, attempt.now[where])
        leaves_of_first = slice(first, len(merger.leaves))
        leaves = merger.leaves[leaves_of_first]
        unsized_types = [unsized(leaf.type) for leaf in leaves]
        old = carried.types[known[where].leaves] if where in known else []
        if len(old) == len(unsized_types):
            unsized_types = [
                _widened(a, b, leaf.first, attempt, carried)
                for a, b, leaf in zip(old, unsized_types, leaves, strict=True)
            ]
        places.append(_Place(o, key, initial, build, leaves_of_first))
        types.extend(unsized_types)
    settled = list(known) == [p.where for p in places] and types == carried.types
    settled = settled and [*map(paths_of, types)] == [*map(paths_of, carried.types)]
    return settled, _Carried(places, merger.leaves, types, carried.since, carried.own)


def _widened(old: Type, new: Type, first: Any, attempt: _Attempt, carried: _Carried) -> Type:
    """The type to carry, from the one that the latest attempt began with and the one it found."""
    if not (isinstance(old, ArrayType) and isinstance(new, ArrayType) and covers(old, new)):
        return join(old, new) or new
    begun = first.type.shape if type(first) is Symbol else ()
    dims: list[Dimension] = []
    for k, (m, n) in enumerate(zip(old.shape, new.shape, strict=True)):
        changes = isinstance(m, Size) and m is not n and m not in carried.own
        if changes and (m is begun[k] if begun else _is_used(m, attempt, carried)):
            m = Size()
        if m is not n and isinstance(m, Size):
            carried.own.add(m)  # stands for any
        dims.append(m)
    return ArrayType(old.dtype, tuple(dims))


def _is_used(d: Dimension, attempt: _Attempt, carried: _Carried) -> bool:
    """Whether a length is also that of something else in an attempt, or outside of the loop."""
    assert isinstance(d, Size)
    return d.number < carried.since.number or any(
        d in v.type.shape for op in walk(attempt.body) for v in op.outputs
    )


def _as_left(t: Type, own: set[Size]) -> Type:
    """The type of a value after the loop, in which the loop's own lengths are new ones."""
    if not isinstance(t, ArrayType):
        return t
    return ArrayType(t.dtype, tuple(Size() if d in own else d for d in t.shape))


def _emit_loop(
    recorder: Recorder, span: Any, attempt: _Attempt, carried: _Carried, here: Location | None
) -> Loop:
    initial, outputs = [], []
    for leaf, t in zip(carried.leaves, carried.types, strict=True):
        initial.append(converted(recorder, recorder.block, leaf.first, t, leaf.guards[0]))
        attempt.body.results.append(
            converted(recorder, attempt.body, leaf.second, t, leaf.guards[1])
        )
        outputs.append(Value(_as_left(t, carried.own)))
    leaving = attempt.leaves is not False
    if leaving:
        attempt.body.results.append(recorder.operand(attempt.leaves))
    op = Loop(
        recorder.operand(span) if span is not None else None,
        initial,
        attempt.body,
        attempt.test,
        leaving,
        outputs=tuple(outputs),
        location=here,
    )
    recorder.emit(op)
    carried.bind(recorder, [Symbol(v, recorder) for v in outputs])
    return op
