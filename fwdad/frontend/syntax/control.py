"""Branches: every path is traced on the same heap, and the paths are merged."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import Location, UntraceableError, type_in_words
from fwdad.frontend.syntax import catching
from fwdad.frontend.syntax.catching import Side
from fwdad.frontend.syntax.merge import Leaf, Merger
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.symbols import Mergeable
from fwdad.ir.builder.heap_journal import set_content
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Block, Branch, Check, Missing, Operand, Value
from fwdad.ir.symbol import UNBOUND, Symbol
from fwdad.ir.types import (
    BOOL,
    Number,
    Type,
    number_type,
)

SEQUENCES = (list, deque)


class NotOneBodyError(UntraceableError):
    """A loop's iterations differ in structure."""

    of_numbers = True  # whether a list of them may grow when the program runs
    place: Any = None  # where the list is made whose length differs between paths
    what: str | None = None  # is asked of that list, that takes memory
    grows: type | None = None  # the class of what has another length after an iteration
    size = 0  # how many operations one iteration has

    @property
    def found(self) -> tuple[Any, Any]:
        """What the next trace knows of a list, and the key of that."""
        return (self.place, None) if self.what is None else ((self.place, "stored"), self.what)


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
    """Trace both sides of a branch and merge what they return and what they changed.

    A side that always raises becomes a check, and the other is taken in line. What a ``try``
    catches is no check: see ``catching``.
    """
    ways = recorder.ways
    here = recorder.place() if ways is None else ways.here()
    condition = truth(recorder, condition)
    if type(condition) is Symbol and ways is not None and here in ways.places:
        taken = ways.assumed(condition)
        condition = condition if taken is UNBOUND else bool(taken)
    if type(condition) is not Symbol:
        return then() if condition else other()
    sides = Side(Block()), Side(Block())
    try:
        catching.trace_side(recorder, then, sides[0], join_sides)
        catching.trace_side(recorder, other, sides[1], join_sides)
    except UntraceableError as error:  # perhaps on a way that the example does not take
        raise (error if ways is None else ways.needed(here, error)) from error.__cause__
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
    """Merge the sides of a point; what a side raises for an outer ``try`` is bound there."""
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
    """Write a side that always raises, with what it does before."""
    raised = side.raises
    assert raised is not None
    location = raised.location or recorder.place()
    if not side.block.ops:
        raising = condition if wanted else negation(recorder, condition)
        recorder.check(raising, raised.exception, raised.arguments, location)
        return
    arguments = recorder.exception_arguments(raised.arguments)
    side.block.ops.append(Check(False, raised.exception, arguments, location=location))
    blocks = (Block(), side.block) if wanted else (side.block, Block())
    recorder.emit(Branch(condition.value, *blocks, location=here))


def _merge_sides(
    recorder: Recorder, condition: Symbol, then: Side, other: Side, here: Location | None
) -> Any:
    merger = Merger(recorder, then.fresh, other.fresh, here, (then.changes, other.changes))
    value = merger.pair(*_values(then, other))
    try:
        changed = _places(recorder, then.changes, other.changes)
    except NotOneBodyError as error:
        if recorder.ways is None or error.of_numbers:
            raise
        raise recorder.ways.needed(here, UntraceableError(error.msg, here)) from None
    places = [
        (o, key, merger.place(content_at(o, key), a, b), _named(key)) for o, key, a, b in changed
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
    write(recorder, places, symbols)
    return value(symbols)


def _values(then: Side, other: Side) -> tuple[Any, Any]:
    """The values of the sides; a dead side has none, like a statement."""
    if then.dead and other.value is None:
        return None, None
    return (None, None) if other.dead and then.value is None else (then.value, other.value)


def _opposite(recorder: Recorder, leaves: list[Leaf], k: int) -> int | None:
    """The index of an earlier leaf that is the negation of the k-th one on both sides; or None."""
    if not recorder.catchers or leaves[k].type != BOOL:
        return None
    for j, leaf in enumerate(leaves[:k]):
        pairs = ((leaf.first, leaves[k].first), (leaf.second, leaves[k].second))
        if leaf.type == BOOL and all(catching.are_opposite(recorder, a, b) for a, b in pairs):
            return j
    return None


def _is_condition(recorder: Recorder, condition: Symbol, leaf: Leaf) -> Symbol | None:
    """For a leaf that is True on one side and False on the other, the condition or its negation."""
    if leaf.first is True and leaf.second is False and leaf.type == BOOL:
        return condition if condition.type == BOOL else recorder.apply(bool, (condition,), {})
    if leaf.first is False and leaf.second is True and leaf.type == BOOL:
        return negation(recorder, condition)
    return None


def _places(recorder: Recorder, first: Any, second: Any) -> list[tuple[Any, Any, Any, Any]]:
    """The places that changed on either path, with both contents."""
    one = {id(o): (o, before, now) for o, before, now in first}
    two = {id(o): (o, before, now) for o, before, now in second}
    places: list[tuple[Any, Any, Any, Any]] = []
    for key in {**one, **two}:
        o, before, _ = one.get(key) or two[key]
        a = one[key][2] if key in one else before
        b = two[key][2] if key in two else before
        differing(recorder, o, a, b)  # whether it can be one
        names = dict.fromkeys([*before, *a, *b]) if isinstance(o, dict) else range(len(a))
        if isinstance(o, SEQUENCES) and len(before) != len(a):
            recorder.journal.touch(o)
            set_content(o, a)
        contents = [(p, *(content_at(x, p) for x in (before, a, b))) for p in names]
        places.extend((o, p, x, y) for p, old, x, y in contents if not x is y is old)
    return places


def content_at(o: Any, key: Any) -> Any:
    """The content of a place; ``UNBOUND`` if there is none."""
    if isinstance(o, SEQUENCES):
        return o[key] if key < len(o) else UNBOUND
    return o.get(key, UNBOUND)


def _may_be_rows(x: Any) -> bool:
    """Whether the items of a list that grows when the program runs may be like this one."""
    if isinstance(x, (tuple, list)):
        return all(map(_may_be_rows, x))
    return isinstance(x, (Symbol, np.ndarray, Mergeable)) or number_type(x) is not None


def differing(recorder: Recorder, o: Any, a: Any, b: Any) -> list[tuple[Any, Any, Any]]:
    """The places of a container whose two contents are not the same object."""
    if isinstance(o, dict) and (recorder.journal.is_namespace(o) or a.keys() == b.keys()):
        keys = list(dict.fromkeys([*a, *b]))
        pairs = [(key, a.get(key, UNBOUND), b.get(key, UNBOUND)) for key in keys]
        return [(key, x, y) for key, x, y in pairs if x is not y]
    if isinstance(o, SEQUENCES) and len(a) == len(b):
        return [(k, x, y) for k, (x, y) in enumerate(zip(a, b, strict=True)) if x is not y]
    message = (
        f"{type_in_words(o)} grows or shrinks on one path and not on another: its length must be "
        "the same on every path"
    )
    error = NotOneBodyError(message, recorder.place())
    error.grows = type(o)
    error.of_numbers = all(map(_may_be_rows, (*a, *b)))
    made, place = recorder.places.get(id(o), (None, None))
    error.place = place if made is o else None
    raise error


def converted(
    recorder: Recorder, block: Block, x: Any, t: Type, guard: Symbol | None = None
) -> Operand:
    """One side's value of a leaf, as an operand of the joined type."""
    if isinstance(x, Missing):
        return Missing(t)
    condition_type = x.type if type(x) is Symbol else None
    if condition_type == t or not isinstance(t, Number):
        return recorder.operand(x)
    was = condition_type if condition_type is not None else number_type(x)
    if isinstance(was, Number) and was.dtype != t.dtype:
        recorder.widened += 1
    function: Any = t.dtype.type
    if t.python:
        function = {"b": bool, "i": int, "f": float, "c": complex}[t.dtype.kind]
    if type(x) is not Symbol:
        try:
            return function(x)
        except OverflowError as error:
            message = f"a name is {x} on one path, which is too large for {t}"
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


def write(recorder: Recorder, places: Any, symbols: list[Symbol]) -> None:
    """Give places of containers the contents that are built from some leaves."""
    for o, key, build, name in places:
        content = build(symbols)
        if type(content) is Symbol and content.value.name is None and not name.startswith("$"):
            content.value.name = name
        recorder.journal.touch(o)
        if content is UNBOUND:
            o.pop(key, None)
        else:
            o[key] = content


def _named(key: Any) -> str:
    """A name or a key in words; a user's object is not asked for its own."""
    return str(key) if isinstance(key, (str, int)) else type(key).__name__
