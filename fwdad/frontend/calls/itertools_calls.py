"""``itertools``: lazy, as in Python; over ranges and the rows of arrays it is one loop."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fwdad.frontend.calls import iterables  # noqa: F401  (`zip` and `enumerate` are its own)
from fwdad.frontend.calls.tables import BUILTINS, builtin
from fwdad.frontend.syntax import iteration
from fwdad.frontend.syntax.iteration import ENDLESS, walk
from fwdad.frontend.syntax.iterators import Count, Iterator, Repeated, Zipped
from fwdad.frontend.syntax.raising import native
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.ops import functions_with, record_of
from fwdad.ops.parameters import Parameters, Result, Role
from fwdad.ops.record import Record


@builtin(itertools.pairwise)
def _pairwise(tracer: Tracer, x: Any) -> Any:
    if isinstance(x, np.ndarray):
        x = tracer.recorder.as_symbol(x)
    if type(x) is Symbol and x.is_array and x.type.ndim:
        parts = (slice(None, -1), slice(1, None))
        return Zipped(tuple(tracer.recorder.load(x, part) for part in parts))
    return Iterator(tracer, itertools.pairwise(walk(tracer, x)))


def _decided(tracer: Tracer, name: str, test: Any) -> Callable[[Any], bool]:
    """A test of items whose results must be known; None tests the items themselves."""

    def holds(x: Any) -> bool:
        result = tracer.truth(x if test is None else tracer.call(test, (x,), {}))
        undecided = (
            f"`{name}` by values that are unknown at trace time cannot be traced, since "
            "its length would depend on them: use np.where or a mask"
        )
        return tracer.values.decided(result, undecided)

    return holds


def _key(tracer: Tracer, f: Any) -> Callable[[Any], Any]:
    return lambda x: tracer.values.known(x if f is None else tracer.call(f, (x,), {}))


def _walking(function: Any, parameters: Parameters) -> None:
    """Give a function in C that reads iterables its meaning: it is called on their items."""
    module = "itertools." if function.__module__ == "itertools" else ""
    name = f"{module}{function.__name__}"
    read = iteration.items if parameters.result is Result.ITERATOR else walk

    @builtin(function)
    def call(tracer: Tracer, *args: Any, **kwargs: Any) -> Any:
        converted = parameters.converter({
            Role.ITEMS: partial(read, tracer),
            Role.ROWS: lambda rows: (walk(tracer, row) for row in walk(tracer, rows)),
            Role.TRUTHS: lambda xs: map(_decided(tracer, name, None), walk(tracer, xs)),
            Role.FUNCTION: lambda f: lambda *items: tracer.call(f, items, {}),
            Role.TEST: partial(_decided, tracer, name),
            Role.KEY: partial(_key, tracer),
            Role.OPTION: tracer.values.known,
            Role.VALUE: lambda x: x,
        })  # fmt: skip
        given, options = converted(args, kwargs)
        result = native(lambda: function(*given, **options))
        return result if parameters.result is Result.VALUE else _iterators(tracer, result)


def _iterators(tracer: Tracer, result: Any) -> Any:
    """An iterator in C, or several, as those of the trace."""
    if isinstance(result, tuple):
        return tuple(Iterator(tracer, item) for item in result)
    if isinstance(result, itertools.groupby):
        return Iterator(tracer, ((key, Iterator(tracer, items)) for key, items in result))
    return Iterator(tracer, result)


def _returns_iterator(record: Record) -> bool:
    return record.parameters.result is not Result.VALUE


for _function in (*functions_with(_returns_iterator), functools.reduce):
    if _function not in BUILTINS:
        _walking(_function, record_of(_function).parameters)


@builtin(itertools.repeat)
def _repeat(tracer: Tracer, object: Any, times: Any = None) -> Any:  # noqa: A002  (Python's name)
    if times is None:
        return Repeated(object, ENDLESS)
    return Iterator(tracer, itertools.repeat(object, tracer.values.known(times)))


@builtin(itertools.count)
def _count(tracer: Tracer, start: Any = 0, step: Any = 1) -> Any:
    if isinstance(start, int) and isinstance(step, int) and step:
        return Count(start, start + step * ENDLESS, step)
    return Iterator(
        tracer,
        itertools.accumulate(
            itertools.repeat(start), lambda a, _: tracer.binary(operator.add, a, step)
        ),
    )
