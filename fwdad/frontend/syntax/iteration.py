"""What a loop iterates over: its length, and its k-th item."""

from __future__ import annotations

import enum
import functools
import math
import types
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError, type_in_words
from fwdad.frontend.numpy_sources.row_by_row import Flat
from fwdad.frontend.syntax.iterators import (
    ITERATORS,
    Count,
    Ended,
    Enumerated,
    Iterator,
    Mapped,
    Range,
    Repeated,
    Reversed,
    Zipped,
)
from fwdad.frontend.syntax.lengths import (
    binary_add,
    binary_mul,
    binary_sub,
    length_of_range,
    shortest,
)
from fwdad.frontend.syntax.raising import AlwaysRaises, native
from fwdad.frontend.syntax.symbols import Poison
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.ops import Check
from fwdad.ir.symbol import Length, Symbol
from fwdad.ir.types import Number, is_static_array

MOST = 100_000  # items of an iterator that are traced one by one
ENDLESS = 1 << 40  # the length of what has no end


@dataclass
class Steps:
    """How to iterate over something.

    ``item`` returns the item for a counter of ``span`` (start, stop, step), or for a position if
    not ``one_body``, which says that one body serves all items. ``more`` tells whether there is a
    k-th item when its turn has come; without it ``length`` does. ``unchanged`` refuses what has
    changed and cannot be followed. ``pending`` tells whether a generator would have something to do
    if it were left now.
    """

    length: Any
    item: Callable[[Any], Any]
    span: tuple[Any, Any, Any]
    one_body: bool
    more: Callable[[int], bool] | None = None
    unchanged: Callable[[], None] = lambda: None
    pending: Callable[[], bool] = lambda: False


@dataclass
class _Stepped:
    """What has been asked how to iterate over it."""

    steps: Steps


def steps(tracer: Tracer, x: Any) -> Steps:
    """How to iterate over an iterable; ``UntraceableError`` for one that is not supported."""
    x = iterable(tracer, x)
    if isinstance(x, Iterator):
        return _one_by_one(tracer, x)
    _use(tracer, x)
    if isinstance(x, Repeated):
        return Steps(x.times, lambda _: x.item, (0, x.times, 1), one_body=True)
    if isinstance(x, range):
        x = Range(x.start, x.stop, x.step)
    if is_static_array(x):
        x = list(x)
    if isinstance(x, np.ndarray):
        x = tracer.recorder.as_symbol(x)
    if type(x) is Symbol and x.is_array:
        return _over_array(tracer, x)
    over: Callable[[Any, Any], Steps] = OVER.get(type(x), _over_items)
    return over(tracer, x)


def _over_range(_tracer: Tracer, x: Range) -> Steps:
    ints = all(isinstance(b, int) for b in (x.start, x.stop, x.step))
    return Steps(
        len(range(x.start, x.stop, x.step)) if ints else None,
        lambda k: k if type(k) is Symbol else x.start + k * x.step,
        (x.start, x.stop, x.step),
        one_body=True,
    )


def _over_array(tracer: Tracer, x: Symbol) -> Steps:
    if not x.type.ndim:
        raise TypeError("iteration over a 0-d array")
    length = tracer.recorder.length(x, 0)
    return Steps(length, lambda k: tracer.recorder.load(x, k), (0, length, 1), one_body=True)


def _over_flat(tracer: Tracer, x: Flat) -> Steps:
    """Over the elements of an array, each read in its turn: the loop may write them."""
    if tracer.attribute(x.array, "ndim") == 1:
        return _over_array(tracer, tracer.recorder.as_symbol(x.array))
    size = tracer.attribute(x.array, "size")
    return Steps(size, lambda k: tracer.call(Flat.at, (x, k), {}), (0, size, 1), one_body=True)


def _enumerated(tracer: Tracer, x: Enumerated) -> Steps:
    inner = _from_zero(tracer, x.iterable)
    start = x.start
    return Steps(
        inner.length,
        lambda k: (binary_add(tracer, k, start) if start != 0 else k, inner.item(k)),
        (0, inner.length, 1),
        one_body=inner.one_body,
        more=inner.more,
        unchanged=inner.unchanged,
    )


def _zipped(tracer: Tracer, x: Zipped) -> Steps:
    parts = [_from_zero(tracer, p) for p in x.iterables]
    length = shortest(tracer.recorder, [p.length for p in parts]) if parts else 0
    more = None
    if any(p.more for p in parts):
        length = tracer.values.force(length)
        more = functools.partial(_all_have_more, tracer, parts, length)

    def unchanged() -> None:
        for p in parts:
            p.unchanged()

    return Steps(
        length,
        lambda k: tuple(p.item(k) for p in parts),
        (0, length, 1),
        one_body=bool(parts) and all(p.one_body for p in parts),
        more=more,
        unchanged=unchanged,
    )


def _all_have_more(tracer: Tracer, parts: list[Steps], length: int, k: int) -> bool:
    """Whether each part of a ``zip`` has a k-th item; ``length`` is that of the shortest before."""
    if not all(p.more(k) for p in parts if p.more is not None):
        return False
    fixed = [p.length for p in parts if p.more is None]
    if k < length or not fixed:
        return True
    return k < tracer.values.force(shortest(tracer.recorder, fixed))  # those that change have grown


def _reversed(tracer: Tracer, x: Reversed) -> Steps:
    inner = _from_zero(tracer, x.iterable)
    has, last = inner.more, binary_sub(tracer, inner.length, 1)
    return Steps(
        inner.length,
        lambda k: inner.item(binary_sub(tracer, last, k)),
        (0, inner.length, 1),
        one_body=inner.one_body,
        more=has and (lambda k: has(max(last - k, 0)) and k <= last),
        unchanged=inner.unchanged,
    )


def _mapped(tracer: Tracer, x: Mapped) -> Steps:
    inner, in_turn = _from_zero(tracer, x.iterable), x.begin()

    def item(k: Any) -> Any:
        in_loop = type(k) is Symbol  # whose iterations see nothing of one another
        return (x.begin() if in_loop else in_turn)(inner.item(k))

    return replace(inner, item=item, span=(0, inner.length, 1))


def _over_items(tracer: Tracer, x: Any) -> Steps:
    """How to iterate over a container whose items are known one by one."""
    if type(x) is Poison:
        tracer.values.refuse_poison(x, "what a loop goes over")
    held = sequence(x)
    if held is None:
        message = f"a loop over {type_in_words(x)} cannot be traced"
        raise UntraceableError(message, tracer.position.location())
    more = None
    if isinstance(x, (list, dict, set, deque, *_VIEWS)):
        more = functools.partial(_more, x, held)
    return Steps(len(held), lambda k: held[k], (0, len(held), 1), one_body=False, more=more)


OVER: dict[type, Callable[[Any, Any], Steps]] = {
    Range: _over_range, Count: _over_range, Flat: _over_flat,
    Enumerated: _enumerated, Zipped: _zipped, Reversed: _reversed, Mapped: _mapped,
    _Stepped: lambda _tracer, x: x.steps,
}  # fmt: skip


def _more(x: Any, held: list[Any], k: int) -> bool:
    """Whether a container, which may have changed, has a k-th item; ``held`` is updated."""
    if isinstance(x, list):
        if k < len(x):
            held[k:] = x[k:]
        return k < len(x)
    if len(x) != len(held):
        kind = "deque mutated" if isinstance(x, deque) else f"{_in_words(x)} changed size"
        raise AlwaysRaises(RuntimeError, (f"{kind} during iteration",))
    if not isinstance(x, (dict, set)):
        held[k:] = list(x)[k:]
    return k < len(held)


def _in_words(x: Any) -> str:
    """What Python calls a container whose size has changed."""
    return "Set" if isinstance(x, set) else "dictionary"


def _one_by_one(tracer: Tracer, x: Iterator) -> Steps:
    held: list[Any] = []

    def more(_: int) -> bool:
        try:
            held[:] = [x.advance(tracer)]
        except Ended:
            return False
        return True

    pending = lambda: x.pending  # noqa: E731
    return Steps(None, lambda _: held[0], (0, 0, 1), one_body=False, more=more, pending=pending)


def _use(tracer: Tracer, x: Any) -> None:
    """Note that an iterator is used; a second use is refused, since its position is not tracked."""
    if not isinstance(x, ITERATORS):
        return
    if x.used:
        message = "an iterator that is used a second time cannot be traced: make a list of it"
        raise UntraceableError(message, tracer.position.location())
    x.used = True


def iterable(tracer: Tracer, x: Any) -> Any:
    """What is iterated over: x, or what a user's object returns from ``__iter__``."""
    if isinstance(x, ITERATORS) and x.begun is not None:
        return x.begun
    if isinstance(x, Poison):
        tracer.values.refuse_poison(x, "what is iterated over")
    x = tracer.values.settled(x)
    if isinstance(x, enum.EnumMeta):
        return list(x)
    method = tracer.values.python_method(x, "__iter__")
    if method is None or isinstance(x, Flat):
        _refuse_number(tracer, x)
        return x
    result = tracer.call(method, (x,), {})
    following = tracer.values.python_method(result, "__next__")
    if following is not None:
        return Iterator(tracer, _calls(tracer, following, result))
    return iterable(tracer, result)


def _refuse_number(tracer: Tracer, x: Any) -> None:
    """Raise Python's error for a number, by which programs tell numbers from sequences."""
    symbolic = type(x) is Symbol
    if isinstance(x, (int, float, complex, np.number, np.bool_)) or x is None:
        native(iter, x)
    if type(x) is Length or (symbolic and isinstance(x.type, Number)):
        native(iter, _like(x.type) if symbolic else 0)
    if (symbolic and x.is_array and not x.type.ndim) or (type(x) is np.ndarray and not x.ndim):
        raise AlwaysRaises(TypeError, ("iteration over a 0-d array",))


def _like(t: Number) -> Any:
    """A number of a type, for which Python raises the same errors."""
    one = t.dtype.type(1)
    return one.item() if t.python else one


def _calls(tracer: Tracer, following: Any, x: Any) -> Any:
    """The items that ``__next__`` returns."""
    ops = tracer.recorder.block.ops
    while True:
        before = len(ops)
        try:
            item = tracer.call(following, (x,), {})
        except AlwaysRaises as raised:
            if raised.is_a(StopIteration):
                return
            raise
        if any(isinstance(op, Check) and op.exception is StopIteration for op in ops[before:]):
            raise UntraceableError(ENDS_BY_VALUES, tracer.position.location())
        yield item


ENDS_BY_VALUES = (
    "where this iterator ends depends on a value, which cannot be traced: make a list first"
)


def end(tracer: Tracer, x: Any) -> None:
    """Note that all items of an iterable have been taken: an iterator has no more."""
    if isinstance(x, ITERATORS):
        x.begun = Iterator(tracer, iter(()))


def iterator(tracer: Tracer, x: Any) -> Iterator:
    """``iter(x)``."""
    x = iterable(tracer, x)
    if isinstance(x, Iterator):
        return x
    if not isinstance(x, ITERATORS):
        return Iterator(tracer, walk(tracer, x))
    x.begun = Iterator(tracer, walk(tracer, replace(x)))
    return x.begun


def first_items(tracer: Tracer, x: Any, number: float) -> list[Any]:
    """The first items of an iterator, which is asked for no more; all of another iterable."""
    x = iterable(tracer, x)
    if number == math.inf or not isinstance(x, (Iterator, *ITERATORS)):
        return items(tracer, x)
    run = iterator(tracer, x)
    taken: list[Any] = []
    while len(taken) < number:
        try:
            taken.append(run.advance(tracer))
        except Ended:
            break
    return taken


def listed(tracer: Tracer, x: Any) -> Any:
    """An iterable for code without a Python source, as a list."""
    lazy = (Iterator, Range, Repeated, *ITERATORS)
    return items(tracer, x) if isinstance(x, lazy) else x


def is_lazy(tracer: Tracer, x: Any) -> bool:
    """Whether the items of something are traced one by one."""
    begun = isinstance(x, ITERATORS) and x.begun is not None
    has_iter = tracer.values.python_method(x, "__iter__") is not None and not isinstance(x, Flat)
    return isinstance(x, Iterator) or begun or has_iter


def walk(tracer: Tracer, x: Any) -> Any:
    """The items of an iterable, each traced when it is asked for."""
    x = iterable(tracer, x)
    if isinstance(x, Iterator):
        while True:
            try:
                item = x.advance(tracer)
            except Ended:
                return
            yield item
    yield from walk_steps(tracer, from_zero(tracer, steps(tracer, x)))


def walk_steps(tracer: Tracer, found: Steps) -> Any:
    """The items by a counter from zero, each traced when it is asked for."""
    if found.more is not None:
        k = 0
        while found.more(k):
            yield found.item(k)
            k += 1
        return
    for k in range(number_of(tracer, found)):
        yield found.item(k)
    found.unchanged()


def number_of(tracer: Tracer, found: Steps) -> int:
    """The number of items, which the tape assumes from now on."""
    length = found.length
    if length is None:
        length = length_of_range(tracer.recorder, *found.span)
    return tracer.values.force(length)


def _from_zero(tracer: Tracer, x: Any) -> Steps:
    """How to iterate over an iterable with a counter from zero in steps of one."""
    return from_zero(tracer, steps(tracer, x))


def again(tracer: Tracer, x: Any) -> Any:
    """The same items, which can be asked for any number of times."""
    if not isinstance(x, ITERATORS):
        return x
    found = _from_zero(tracer, x)
    end(tracer, x)
    return _Stepped(found)


def from_zero(tracer: Tracer, found: Steps) -> Steps:
    """The same items by a counter from zero in steps of one."""
    if found.more is not None:
        return found
    start, stop, step = found.span
    if (isinstance(start, int) and start == 0) and (isinstance(step, int) and step == 1):
        return replace(found, length=stop)
    length = found.length
    if length is None:
        length = length_of_range(tracer.recorder, start, stop, step)
    return Steps(
        length,
        lambda k: binary_add(tracer, start, binary_mul(tracer, k, step)),
        (0, length, 1),
        one_body=True,
    )


_VIEWS: Any = (type({}.keys()), type({}.values()), type({}.items()), types.MappingProxyType)


def sequence(x: Any) -> list[Any] | None:
    """The items of a container whose structure is known; or None."""
    if isinstance(x, (list, tuple, str, bytes, dict, deque)):
        return list(x)
    if isinstance(x, (set, frozenset)):
        return sorted(x, key=repr)
    if isinstance(x, _VIEWS):
        view: Any = x
        return list(view)
    return None


def items(tracer: Tracer, x: Any) -> list[Any]:
    """All items of an iterable whose length is known, or assumed as in the example.

    ``UntraceableError`` if the length depends on values.
    """
    x = iterable(tracer, x)
    items_of_x = sequence(x)
    if items_of_x is not None:
        return items_of_x
    if isinstance(x, Iterator):
        items_of_x = []
        for item in walk(tracer, x):
            items_of_x.append(item)
            if len(items_of_x) > MOST:
                message = "an iterator without an end, or a very long one, cannot be traced"
                raise UntraceableError(message, tracer.position.location())
        return items_of_x
    if isinstance(x, Flat):
        x = tracer.call(np.ravel, (x.array,), {})
    if is_static_array(x):
        x = list(x)
    if isinstance(x, np.ndarray):
        x = tracer.recorder.as_symbol(x)
    if type(x) is Symbol and x.is_array:
        return [
            tracer.recorder.load(x, k) for k in range(tracer.recorder.lengths.known_length(x, 0))
        ]
    found = _from_zero(tracer, x)
    if found.more is None and number_of(tracer, found) >= ENDLESS:
        message = "an iterator without an end cannot be traced here"
        raise UntraceableError(message, tracer.position.location())
    end(tracer, x)
    return list(walk_steps(tracer, found))
