"""Builtins on iterables: ``len``, ``range``, ``zip``, ``list``, ``sum``, ``max``."""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.calls.tables import BUILTINS, builtin
from fwdad.frontend.syntax import early_ends, iteration
from fwdad.frontend.syntax.control import branch
from fwdad.frontend.syntax.growing_lists import filled
from fwdad.frontend.syntax.growing_lists.growing_use import extreme, summed
from fwdad.frontend.syntax.growing_lists.items import Items
from fwdad.frontend.syntax.growing_lists.making import list_of
from fwdad.frontend.syntax.iterators import (
    ITERATORS,
    Ended,
    Enumerated,
    Iterator,
    Mapped,
    Range,
    Repeated,
    Reversed,
    Zipped,
)
from fwdad.frontend.syntax.lengths import binary_add, length_of_range
from fwdad.frontend.syntax.raising import AlwaysRaises, native
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Number, is_static_array


def _whole(tracer: Tracer, x: Any) -> Any:
    """All items of an iterable."""
    return x if isinstance(x, Items) else filled.list_all(tracer, x)


@builtin(len)
def _len(tracer: Tracer, x: Any) -> Any:
    if isinstance(x, np.ndarray) and not is_static_array(x):
        x = tracer.recorder.as_symbol(x)
    if type(x) is Symbol:
        if not x.type.ndim:
            raise AlwaysRaises(TypeError, ("len() of unsized object",))
        return tracer.recorder.length(x, 0)
    if isinstance(x, Items):
        return x.length()
    if type(x) is Range:
        return length_of_range(tracer.recorder, x.start, x.stop, x.step)
    return native(len, x)


@builtin(range)
def _range(tracer: Tracer, *bounds: Any) -> Any:
    bounds = tuple(map(tracer.values.number, bounds))
    own = [tracer.values.python_method(b, "__index__") for b in bounds]
    bounds = tuple(b if f is None else tracer.call(f, (b,), {})
                   for f, b in zip(own, bounds, strict=True))  # fmt: skip
    if not any(type(b) is Symbol for b in bounds):
        return tracer.outside.in_c(range, *bounds)
    for b in bounds:
        if type(b) is Symbol and not (isinstance(b.type, Number) and b.type.dtype.kind in "biu"):
            message = f"'{b.type}' object cannot be interpreted as an integer"
            raise AlwaysRaises(TypeError, (message,))
    start, stop, step = {1: (0, *bounds, 1), 2: (*bounds, 1)}.get(len(bounds), bounds)
    return Range(start, stop, step)


@builtin(enumerate)
def _enumerate(tracer: Tracer, iterable: Any, start: Any = 0) -> Any:
    if not iteration.is_lazy(tracer, iterable):
        return Enumerated(iterable, start)
    items = iteration.walk(tracer, iterable)
    pairs = ((binary_add(tracer, k, start), item) for k, item in enumerate(items))
    return Iterator(tracer, pairs)


@builtin(map)
def _map(tracer: Tracer, f: Any, *xs: Any) -> Any:
    rows = xs[0] if len(xs) == 1 else _zip(tracer, *xs)

    def item(x: Any) -> Any:
        return tracer.call(f, (x,) if len(xs) == 1 else x, {})

    if not iteration.is_lazy(tracer, rows):
        return Mapped(rows, lambda: item)
    return Iterator(tracer, map(item, iteration.walk(tracer, rows)))


@builtin(zip)
def _zip(tracer: Tracer, *xs: Any, strict: bool = False) -> Any:
    if len(set(map(id, xs))) < len(xs):  # an iterator gives its items to each in turn
        xs = tuple(iteration.iterator(tracer, x) if isinstance(x, ITERATORS) else x for x in xs)
    lazy = any(iteration.is_lazy(tracer, x) for x in xs)
    if not lazy and any(iteration.sequence(x) is None for x in xs) and not strict:
        return Zipped(xs)
    columns = [iteration.walk(tracer, x) for x in xs]
    rows = zip(*columns, strict=strict)
    return Iterator(tracer, _raising(tracer, rows))


def _raising(tracer: Tracer, rows: Any) -> Any:
    """The items of an iterator whose ``ValueError`` is raised by the program."""
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except ValueError as error:
            raise AlwaysRaises(ValueError, (str(error),)) from error
        yield row


@builtin(reversed)
def _reversed(tracer: Tracer, x: Any) -> Any:
    if iteration.sequence(x) is None:
        return Reversed(x)
    return Iterator(tracer, _in_c(native(reversed, x)))


def _in_c(rest: Any) -> Any:
    """The items of one of Python's own iterators, which sees what its container has become."""
    end = object()
    while (item := native(next, rest, end)) is not end:
        yield item


@builtin(iter)
def _iter(tracer: Tracer, x: Any, *sentinel: Any) -> Any:
    if not sentinel:
        return iteration.iterator(tracer, x)

    def run() -> Any:
        while True:
            item = tracer.call(x, (), {})
            same = tracer.truth(tracer.binary(operator.eq, item, sentinel[0]))
            if tracer.values.decided(same, iteration.ENDS_BY_VALUES):
                return
            yield item

    return Iterator(tracer, run())


@builtin(next)
def _next(tracer: Tracer, x: Any, *default: Any) -> Any:
    following = tracer.values.python_method(x, "__next__")
    if following is not None:
        if default:
            message = "`next` with a default, of an object with its own __next__, cannot be traced"
            raise UntraceableError(message, tracer.position.location())
        return tracer.call(following, (x,), {})
    if not isinstance(x, (*ITERATORS, Iterator, Repeated)):
        raise AlwaysRaises(TypeError, (f"'{type(x).__name__}' object is not an iterator",))
    try:
        return iteration.iterator(tracer, x).advance(tracer)
    except Ended as end:
        if default:
            return default[0]
        arguments = () if end.value is None else (end.value,)
        raise AlwaysRaises(StopIteration, arguments) from None


@builtin(list)
def _list(tracer: Tracer, x: Any = ()) -> Any:
    made = x.copied() if isinstance(x, Items) else filled.list_all(tracer, x)
    return list_of(tracer, made)


@builtin(tuple)
def _tuple(tracer: Tracer, x: Any = ()) -> Any:
    return tuple(iteration.items(tracer, x))


@builtin(dict)
def _dict(tracer: Tracer, *args: Any, **kwargs: Any) -> Any:
    args = tuple(x if isinstance(x, dict) else _pairs(tracer, x) for x in args)
    return tracer.recorder.journal.fresh(native(lambda: dict(*args, **kwargs)))


def _pairs(tracer: Tracer, x: Any) -> list[Any]:
    pairs = [iteration.items(tracer, pair) for pair in iteration.items(tracer, x)]
    return [(tracer.values.known(pair[0]), *pair[1:]) for pair in pairs]


@builtin(set)
def _set(tracer: Tracer, x: Any = ()) -> Any:
    return tracer.recorder.journal.fresh(set(iteration.items(tracer, x)))


@builtin(sum)
def _sum(tracer: Tracer, xs: Any, start: Any = 0) -> Any:
    values = _whole(tracer, xs)
    if isinstance(values, Items):
        return tracer.call(summed, (values, start), {})
    total = start
    for x in values:
        total = tracer.binary(operator.add, total, x)
    return total


def _extreme(name: str, better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    function = getattr(builtins, name)

    def handle(tracer: Tracer, *args: Any, key: Any = None, **kwargs: Any) -> Any:
        values = _whole(tracer, args[0]) if len(args) == 1 else list(args)
        if isinstance(values, Items):
            return extreme(tracer, function, values, key, kwargs)
        if not values:
            if "default" in kwargs:
                return kwargs["default"]
            raise AlwaysRaises(ValueError, (f"{name}() arg is an empty sequence",))
        keys = [v if key is None else tracer.call(key, (v,), {}) for v in values]
        if not mentions_symbols(keys):
            tracer.outside.read_compared(*keys)
            return values[keys.index(function(keys))]
        best, best_key = values[0], keys[0]
        for value, k in zip(values[1:], keys[1:], strict=True):
            wins = tracer.truth(tracer.binary(better, k, best_key))
            sides = (value, k), (best, best_key)
            then, other = (functools.partial(tuple, side) for side in sides)
            best, best_key = branch(tracer.recorder, wins, then, other)
        return best

    return handle


BUILTINS[max] = _extreme("max", operator.gt)
BUILTINS[min] = _extreme("min", operator.lt)


@builtin(any)
def _any(tracer: Tracer, xs: Any) -> Any:
    return early_ends.met(tracer, xs, tracer.truth)


@builtin(all)
def _all(tracer: Tracer, xs: Any) -> Any:
    return early_ends.met(tracer, xs, tracer.truth, at=False)


@builtin(tuple.__new__)
def _tuple_new(tracer: Tracer, cls: Any, x: Any = ()) -> Any:
    return tuple.__new__(cls, iteration.items(tracer, x))
