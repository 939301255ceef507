"""``itertools``: lazy, as in Python; over ranges and the rows of arrays it is one loop."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.frontend.calls.iterables import kept
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.syntax import iteration
from fwdad.frontend.syntax.iteration import ENDLESS, walk
from fwdad.frontend.syntax.iterators import Count, Iterator, Repeated, Zipped
from fwdad.frontend.syntax.raising import native
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol


@builtin(itertools.pairwise)
def _pairwise(tracer: Tracer, x: Any) -> Any:
    if isinstance(x, np.ndarray):
        x = tracer.recorder.as_symbol(x)
    if type(x) is Symbol and x.is_array and x.type.ndim:
        parts = (slice(None, -1), slice(1, None))
        return Zipped(tuple(tracer.recorder.load(x, part) for part in parts))
    return Iterator(tracer, itertools.pairwise(walk(tracer, x)))


def _of_items(function: Callable[..., Any], several: bool, lazy: bool) -> None:
    """Register a function of one iterable, or of several, that only rearranges their items."""

    @builtin(function)
    def call(tracer: Tracer, *args: Any, **options: Any) -> Any:
        count = len(args) if several else 1
        sequences = [walk(tracer, x) if lazy else iteration.items(tracer, x) for x in args[:count]]
        rest = [tracer.values.known(a) for a in args[count:]]
        return Iterator(tracer, native(lambda: function(*sequences, *rest, **options)))


_of_items(itertools.chain, several=True, lazy=True)
_of_items(itertools.zip_longest, several=True, lazy=True)
_of_items(itertools.islice, several=False, lazy=True)
_of_items(itertools.cycle, several=False, lazy=True)
_of_items(itertools.product, several=True, lazy=False)
_of_items(itertools.combinations, several=False, lazy=False)
_of_items(itertools.combinations_with_replacement, several=False, lazy=False)
_of_items(itertools.permutations, several=False, lazy=False)
if hasattr(itertools, "batched"):
    _of_items(itertools.batched, several=False, lazy=True)


@builtin(itertools.chain.from_iterable)
def _from_iterable(tracer: Tracer, xs: Any) -> Any:
    return Iterator(tracer, (item for x in walk(tracer, xs) for item in walk(tracer, x)))


@builtin(itertools.accumulate)
def _accumulate(tracer: Tracer, x: Any, func: Any = None, *, initial: Any = None) -> Any:
    function = operator.add if func is None else func
    items = walk(tracer, x)
    if initial is not None:
        items = itertools.chain([initial], items)
    return Iterator(
        tracer, itertools.accumulate(items, lambda a, b: tracer.call(function, (a, b), {}))
    )


@builtin(itertools.starmap)
def _starmap(tracer: Tracer, f: Any, xs: Any) -> Any:
    rows = (tuple(iteration.items(tracer, row)) for row in walk(tracer, xs))
    return Iterator(tracer, (tracer.call(f, row, {}) for row in rows))


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


def _decided(tracer: Tracer, f: Any, x: Any, name: str) -> bool:
    decided = tracer.truth(tracer.call(f, (x,), {}))
    if type(decided) is Symbol:
        message = (
            f"`itertools.{name}` by values that are unknown at trace time cannot be traced, since "
            "its length would depend on them: use np.where or a mask"
        )
        raise UntraceableError(message, tracer.position.location())
    return bool(decided)


@builtin(itertools.takewhile)
def _takewhile(tracer: Tracer, f: Any, xs: Any) -> Any:
    def holds(x: Any) -> bool:
        return _decided(tracer, f, x, "takewhile")

    return Iterator(tracer, itertools.takewhile(holds, walk(tracer, xs)))


@builtin(itertools.dropwhile)
def _dropwhile(tracer: Tracer, f: Any, xs: Any) -> Any:
    def holds(x: Any) -> bool:
        return _decided(tracer, f, x, "dropwhile")

    return Iterator(tracer, itertools.dropwhile(holds, walk(tracer, xs)))


@builtin(itertools.filterfalse)
def _filterfalse(tracer: Tracer, f: Any, xs: Any) -> Any:
    return kept(tracer, f, xs, wanted=False)


@builtin(itertools.compress)
def _compress(tracer: Tracer, data: Any, selectors: Any) -> Any:
    chosen = (_decided(tracer, bool, s, "compress") for s in walk(tracer, selectors))
    return Iterator(tracer, itertools.compress(walk(tracer, data), chosen))


@builtin(itertools.groupby)
def _groupby(tracer: Tracer, iterable: Any, key: Any = None) -> Any:
    def of(item: Any) -> Any:
        return tracer.values.known(item if key is None else tracer.call(key, (item,), {}))

    groups = itertools.groupby(walk(tracer, iterable), of)
    return Iterator(tracer, ((k, Iterator(tracer, items)) for k, items in groups))


@builtin(itertools.tee)
def _tee(tracer: Tracer, iterable: Any, n: Any = 2) -> Any:
    copies = itertools.tee(walk(tracer, iterable), tracer.values.known(n))
    return tuple(Iterator(tracer, copy) for copy in copies)
