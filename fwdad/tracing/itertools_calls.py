"""``itertools`` of what has a known length, and of the rows of arrays."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.tape.symbol import Symbol
from fwdad.tracing import iteration
from fwdad.tracing.builtin_calls import builtin
from fwdad.tracing.iteration import Once, Zipped


@builtin(itertools.pairwise)
def _pairwise(tracer: Any, x: Any) -> Any:
    if isinstance(x, np.ndarray):
        x = tracer.recorder.as_symbol(x)
    if type(x) is Symbol and x.is_array and x.type.ndim:
        parts = (slice(None, -1), slice(1, None))
        return Zipped(tuple(tracer.recorder.load(x, part) for part in parts))
    return Once(itertools.pairwise(iteration.items(tracer, x)))


def _of_items(function: Callable[..., Any]) -> None:
    """A function of one iterable, or of several, that only arranges their items."""

    @builtin(function)
    def call(tracer: Any, *args: Any, **options: Any) -> Any:
        several = function in (itertools.chain, itertools.product, itertools.zip_longest)
        count = len(args) if several else 1
        held = [iteration.items(tracer, x) for x in args[:count]]
        rest = [tracer.known(a) for a in args[count:]]
        return Once(tracer.native(lambda: list(function(*held, *rest, **options))))


for _function in (
    itertools.chain, itertools.product, itertools.zip_longest, itertools.combinations,
    itertools.combinations_with_replacement, itertools.permutations, itertools.islice,
):  # fmt: skip
    _of_items(_function)


@builtin(itertools.chain.from_iterable)
def _from_iterable(tracer: Any, xs: Any) -> Any:
    parts = [iteration.items(tracer, x) for x in iteration.items(tracer, xs)]
    return Once(itertools.chain.from_iterable(parts))


@builtin(itertools.accumulate)
def _accumulate(tracer: Any, x: Any, func: Any = None, *, initial: Any = None) -> Any:
    items = [*([] if initial is None else [initial]), *iteration.items(tracer, x)]
    made = items[:1]
    for item in items[1:]:
        made.append(tracer.call(operator.add if func is None else func, (made[-1], item), {}))
    return tracer.at_once(made)


@builtin(itertools.starmap)
def _starmap(tracer: Any, f: Any, xs: Any) -> Any:
    rows = [iteration.items(tracer, row) for row in iteration.items(tracer, xs)]
    return tracer.at_once([tracer.call(f, tuple(row), {}) for row in rows])


@builtin(itertools.repeat)
def _repeat(tracer: Any, x: Any, times: Any = None) -> Any:
    if times is None:
        message = "`itertools.repeat` without an end cannot be traced: say how often"
        raise UntraceableError(message, tracer.location())
    return Once([x] * max(tracer.known(times), 0))
