"""Branches and loops: every way is traced on the same heap, and the ways are merged."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fwdad.errors import Location, UntraceableError, type_in_words
from fwdad.tape.journal import set_content
from fwdad.tape.ops import Apply, Block, Branch, Check, Loop, Missing, Operand, Value, walk
from fwdad.tape.recorder import Recorder
from fwdad.tape.symbol import UNBOUND, Symbol
from fwdad.tape.types import (
    BOOL,
    INT,
    ArrayType,
    Dimension,
    Number,
    Size,
    Type,
    covers,
    join,
    unsized,
)
from fwdad.tracing.syntax import catching
from fwdad.tracing.syntax.catching import Side
from fwdad.tracing.syntax.merge import Build, Leaf, Merger
from fwdad.tracing.syntax.raising import AlwaysRaises, BodyRaises

SEQUENCES = (list, deque)
_ATTEMPTS = 16  # types settle in as many passes over a loop as there are wider types, and some


class NotOneBodyError(UntraceableError):
    """A loop's iterations differ in structure."""

    item = None
    place: Any = None  # where the list is made that has another length on another way


class TestChangesError(Exception):
    """The condition of a ``while`` changes something: it is part of the body."""


# -- branches


def truth(recorder: Recorder, x: Any) -> Any:
    """The truth of a value: a bool, or a symbol of one."""
    if type(x) is not Symbol:
        return bool(x)
    if x.type == BOOL or (isinstance(x.type, Number) and x.type.dtype.kind == "b"):
        return x
    return recorder.apply(bool, (x,), {})


def negation(recorder: Recorder, x: Any) -> Any:
    """``not x``."""
    x = truth(recorder, x)
    return recorder.apply(operator.not_, (x,), {}) if type(x) is Symbol else not x


def branch(
    recorder: Recorder,
    condition: Any,
    then: Callable[[], Any],
    other: Callable[[], Any],
) -> Any:
    """Trace both sides of a branch and merge what they answer and what they changed.

    A side that always raises becomes a check, and the other is taken in line. What a ``try``
    catches is no check: ``catching``.
    """
    here = recorder.place()
    condition = truth(recorder, condition)
    if type(condition) is not Symbol:
        return then() if condition else other()
    sides = Side(Block()), Side(Block())
    catching.trace_side(recorder, then, sides[0], join_sides)
    catching.trace_side(recorder, other, sides[1], join_sides)
    for side, alive, wanted in ((sides[0], sides[1], False), (sides[1], sides[0], True)):
        if side.raises is None:
            continue
        catcher = catching.find(recorder, side.raises)
        if catcher is not None:
            raised = negation(recorder, condition) if wanted else condition
            catching.open_point(recorder, raised, side, side.raises, catcher)
        else:
            _raise_on_side(recorder, condition, side, wanted, here)
        recorder.adopt(alive.block.ops)
        catching.reapply(recorder, alive.changes)
        if alive.raises is not None:
            raise alive.raises
        return catching.again(recorder, alive.value, dead=alive.dead)
    value = _merge_sides(recorder, condition, *sides, here)
    return catching.again(recorder, value, dead=sides[0].dead and sides[1].dead)


def join_sides(
    recorder: Recorder, condition: Symbol, then: Side, other: Side, here: Location | None
) -> tuple[Any, AlwaysRaises | None, bool]:
    """Merge the sides of a point; a side that raises what is caught further out has it bound."""
    for side in (then, other):
        if side.raises is not None:
            catcher = catching.find(recorder, side.raises)
            if catcher is not None:
                catching.bind_raised(recorder, side, catcher)
    for side, alive, wanted in ((then, other, False), (other, then, True)):
        if side.raises is not None:
            _raise_on_side(recorder, condition, side, wanted, here)
            recorder.adopt(alive.block.ops)
            catching.reapply(recorder, alive.changes)
            return alive.value, alive.raises, alive.dead
    value = _merge_sides(recorder, condition, then, other, here)
    return value, None, then.dead and other.dead


def raise_if(
    recorder: Recorder, condition: Any, exception: Any, arguments: tuple[Any, ...] = ()
) -> None:
    """Raise an exception if a condition holds."""

    def way() -> None:
        raise AlwaysRaises(exception, arguments)

    branch(recorder, condition, way, lambda: None)


def _raise_on_side(
    recorder: Recorder, condition: Symbol, side: Side, wanted: bool, here: Location | None
) -> None:
    """A side that always raises, with what it does before."""
    raised = side.raises
    assert raised is not None
    location = raised.location or recorder.place()
    if not side.block.ops:
        held = condition if wanted else negation(recorder, condition)
        recorder.check(held, raised.exception, raised.arguments, location)
        return
    given = recorder.exception_arguments(raised.arguments)
    side.block.ops.append(Check(False, raised.exception, given, location=location))
    blocks = (Block(), side.block) if wanted else (side.block, Block())
    recorder.emit(Branch(condition.value, *blocks, location=here))


def _merge_sides(
    recorder: Recorder, condition: Symbol, then: Side, other: Side, here: Location | None
) -> Any:
    merger = Merger(recorder, then.fresh, other.fresh)
    value = merger.pair(*_values(then, other))
    places = [
        (o, key, merger.place(content_at(o, key), a, b), str(key))
        for o, key, a, b in _places(recorder, then.changes, other.changes)
    ]
    outputs: list[Value] = []
    symbols: list[Symbol] = []
    opposite: list[tuple[int, int]] = []
    for k, leaf in enumerate(merger.leaves):
        flag = _is_condition(recorder, condition, leaf)
        if flag is not None:
            symbols.append(flag)
            continue
        known = _opposite(recorder, merger.leaves, k)
        if known is not None:
            opposite.append((k, known))
            symbols.append(symbols[known])
            continue
        then.block.results.append(
            converted(recorder, then.block, leaf.first, leaf.type, leaf.guards[0])
        )
        other.block.results.append(
            converted(recorder, other.block, leaf.second, leaf.type, leaf.guards[1])
        )
        outputs.append(Value(leaf.type))
        symbols.append(Symbol(outputs[-1], recorder))
    if then.block.ops or other.block.ops or outputs:
        sides = then.block, other.block
        recorder.emit(Branch(condition.value, *sides, outputs=tuple(outputs), location=here))
    for k, known in opposite:
        symbols[k] = negation(recorder, symbols[known])
    _write(recorder, places, symbols)
    return value(symbols)


def _values(then: Side, other: Side) -> tuple[Any, Any]:
    """What the sides answer; a side that is dead answers nothing, as a statement does."""
    if then.dead and other.value is None:
        return None, None
    return (None, None) if other.dead and then.value is None else (then.value, other.value)


def _opposite(recorder: Recorder, leaves: list[Leaf], k: int) -> int | None:
    """The first of the truth values of which one more is the negation on both sides."""
    if not recorder.catchers or leaves[k].type != BOOL:
        return None
    for j, leaf in enumerate(leaves[:k]):
        pairs = ((leaf.first, leaves[k].first), (leaf.second, leaves[k].second))
        if leaf.type == BOOL and all(catching.are_opposite(recorder, a, b) for a, b in pairs):
            return j
    return None


def _is_condition(recorder: Recorder, condition: Symbol, leaf: Leaf) -> Symbol | None:
    """True on one side and False on the other: the condition itself, or its negation."""
    if leaf.first is True and leaf.second is False and leaf.type == BOOL:
        return condition if condition.type == BOOL else recorder.apply(bool, (condition,), {})
    if leaf.first is False and leaf.second is True and leaf.type == BOOL:
        return negation(recorder, condition)
    return None


def _places(recorder: Recorder, first: Any, second: Any) -> list[tuple[Any, Any, Any, Any]]:
    """The places that changed on either way, with both contents."""
    one = {id(o): (o, before, now) for o, before, now in first}
    two = {id(o): (o, before, now) for o, before, now in second}
    found: list[tuple[Any, Any, Any, Any]] = []
    for key in {**one, **two}:
        o, before, _ = one.get(key) or two[key]
        a = one[key][2] if key in one else before
        b = two[key][2] if key in two else before
        _differing(recorder, o, a, b)  # whether it can be one
        names = dict.fromkeys([*before, *a, *b]) if isinstance(o, dict) else range(len(a))
        if isinstance(o, SEQUENCES) and len(before) != len(a):
            recorder.touch(o)
            set_content(o, a)
        contents = [(p, *(content_at(x, p) for x in (before, a, b))) for p in names]
        found.extend((o, p, x, y) for p, old, x, y in contents if not x is y is old)
    return found


def _differing(recorder: Recorder, o: Any, a: Any, b: Any) -> list[tuple[Any, Any, Any]]:
    if isinstance(o, dict) and (recorder.is_namespace(o) or a.keys() == b.keys()):
        keys = list(dict.fromkeys([*a, *b]))
        pairs = [(key, a.get(key, UNBOUND), b.get(key, UNBOUND)) for key in keys]
        return [(key, x, y) for key, x, y in pairs if x is not y]
    if isinstance(o, SEQUENCES) and len(a) == len(b):
        return [(k, x, y) for k, (x, y) in enumerate(zip(a, b, strict=True)) if x is not y]
    message = (
        f"{type_in_words(o)} grows or shrinks on one way through the program and not on "
        "another: its length must be the same on all ways"
    )
    error = NotOneBodyError(message, recorder.place())
    made, place = recorder.places.get(id(o), (None, None))
    error.place = place if made is o else None
    raise error


def converted(
    recorder: Recorder, block: Block, x: Any, t: Type, guard: Symbol | None = None
) -> Operand:
    """One side's value of a leaf as an operand of the joined type."""
    if isinstance(x, Missing):
        return Missing(t)
    held = x.type if type(x) is Symbol else None
    if held == t or not isinstance(t, Number):
        return recorder.operand(x)
    function: Any = t.dtype.type
    if t.python:
        function = {"b": bool, "i": int, "f": float, "c": complex}[t.dtype.kind]
    if type(x) is not Symbol:
        try:
            return function(x)
        except OverflowError as error:
            message = f"a name is {x} on one way and {t} on another, which does not hold it"
            raise NotOneBodyError(message, recorder.place()) from error
    outer, recorder.block = recorder.block, block
    try:
        if guard is None:
            return recorder.operand(recorder.apply(function, (x,), {}))
        then = recorder.block = Block()  # what is not there is not converted
        then.results = [recorder.operand(recorder.apply(function, (x,), {}))]
        recorder.block = block
        value = Value(t)
        recorder.emit(Branch(guard.value, then, Block(results=[Missing(t)]), outputs=(value,)))
        return value
    finally:
        recorder.block = outer


def _write(recorder: Recorder, places: Any, symbols: list[Symbol]) -> None:
    for o, key, build, name in places:
        content = build(symbols)
        if type(content) is Symbol and content.value.name is None and not name.startswith("$"):
            content.value.name = name
        recorder.touch(o)
        if content is UNBOUND:
            o.pop(key, None)
        else:
            o[key] = content


# -- loops


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
    """All that a loop carries: its places, and the leaves of their contents."""

    places: list[_Place]
    leaves: list[Leaf]
    types: list[Type]
    since: Size  # lengths from before the loop are older
    own: set[Size] = field(default_factory=set)  # lengths that may be others in each iteration

    def bind(self, recorder: Recorder, symbols: list[Symbol]) -> None:
        """Give every place the content that these leaves make."""
        _write(recorder, [(p.container, p.key, p.build, str(p.key)) for p in self.places], symbols)


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

    Parameters
    ----------
    recorder : Recorder
        Writes the tape.
    span : tuple or None
        start, stop and step of a range.
    test : callable or None
        Evaluates the condition of a ``while``.
    body : callable
        Traces one iteration; takes the counter; answers whether to leave the loop.

    Returns
    -------
    Symbol or int
        How many times the body ran; 0 if the condition is known to fail at once.

    Raises
    ------
    NotOneBodyError
        If the iterations differ in structure, or types do not settle.
    """
    here = recorder.place()
    carried = _Carried([], [], [], Size())
    checkpoint, recorder.checkpoint = recorder.checkpoint, None  # it is for the outermost loops
    outer = recorder.in_checkpoint
    recorder.in_checkpoint |= checkpoint is not None
    try:
        for _ in range(_ATTEMPTS):
            attempt = _trace_body(recorder, span, test, body, carried)
            if attempt is None:
                return 0
            settled, carried = _settle(recorder, attempt, carried)
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
    message = "the types of what this loop carries do not settle"
    raise NotOneBodyError(message, recorder.place())


def _raise_in_loop(
    recorder: Recorder, span: Any, test: Callable[[], Any] | None, found: BodyRaises
) -> None:
    """Write a loop whose first iteration raises: a branch, on whether it begins."""

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
    recorder.carried.update(p.value for p in params)
    test_block = None
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
                if recorder.regions[-1] is not inner or inner.changes() or writes:
                    raise TestChangesError
            if goes_on is False and not carried.places:
                region.undo()
                return None
            test_block.results.append(recorder.operand(goes_on))
        block.params = [counter.value] if counter is not None else []
        leaves = _of_first(recorder, carried, block, lambda: body(counter))
        if recorder.regions[-1] is not region:  # of a comprehension, say
            message = "an exception that is caught outside may end it"
            raise NotOneBodyError(message, recorder.place())
        now, before = {}, {}
        for place in carried.places:
            before[place.where] = (place.container, place.key, place.initial)
            now[place.where] = content_at(place.container, place.key)
        for o, old, new in region.changes():
            for key, x, y in _differing(recorder, o, old, new):
                if (id(o), key) not in before:
                    before[id(o), key] = (o, key, x)
                    now[id(o), key] = y
        region.undo()
        fresh = region.fresh
    block.params += (p.value for p in params)
    return _Attempt(block, test_block, leaves, now, before, fresh)


def _of_first(recorder: Recorder, carried: _Carried, block: Block, run: Callable[[], Any]) -> Any:
    """Run what is part of an iteration; if it always raises, then the first one has to."""
    try:
        return run()
    except AlwaysRaises as raised:
        if recorder.regions[-1].point is not None:
            message = "an exception that is caught outside may end it, and another one always does"
            raise NotOneBodyError(message, recorder.place()) from raised
        if not carried.places:
            raise BodyRaises(raised, block) from None
        message = f"its iterations differ: a later one always raises ({raised})"
        raise NotOneBodyError(message, recorder.place()) from raised


def content_at(o: Any, key: Any) -> Any:
    """What a place holds."""
    if isinstance(o, SEQUENCES):
        return o[key] if key < len(o) else UNBOUND
    return o.get(key, UNBOUND)


def _settle(recorder: Recorder, attempt: _Attempt, carried: _Carried) -> tuple[bool, _Carried]:
    """What has to be carried after one more attempt, and whether that is what was carried."""
    merger = Merger(recorder, set(), attempt.fresh)
    known = {p.where: p for p in carried.places}
    places, types = [], []
    for where, (o, key, initial) in attempt.before.items():
        first = len(merger.leaves)
        build = merger.place(initial, initial, attempt.now[where])
        held = slice(first, len(merger.leaves))
        leaves = merger.leaves[held]
        own = [unsized(leaf.type) for leaf in leaves]
        old = carried.types[known[where].leaves] if where in known else []
        if len(old) == len(own):
            own = [
                _widened(a, b, leaf.first, attempt, carried)
                for a, b, leaf in zip(old, own, leaves, strict=True)
            ]
        places.append(_Place(o, key, initial, build, held))
        types.extend(own)
    settled = list(known) == [p.where for p in places] and types == carried.types
    return settled, _Carried(places, merger.leaves, types, carried.since, carried.own)


def _widened(old: Type, new: Type, first: Any, attempt: _Attempt, carried: _Carried) -> Type:
    """What a loop carries, by what the latest attempt began with (``old``) and what it found."""
    if not (isinstance(old, ArrayType) and isinstance(new, ArrayType) and covers(old, new)):
        return old if covers(old, new) else join(old, new) or new
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
    """Whether a length is one of something else in an attempt, or outside of the loop."""
    assert isinstance(d, Size)
    return d.number < carried.since.number or any(
        d in v.type.shape for op in walk(attempt.body) for v in op.outputs
    )


def _as_left(t: Type, own: set[Size]) -> Type:
    """The type of what a loop leaves: a length of its own is that of one iteration, inside it."""
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
