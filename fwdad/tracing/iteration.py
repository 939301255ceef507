"""What a loop runs over: how long it is, and its k-th item."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.tape.ops import Apply, Check, Load, Op, Store, Update
from fwdad.tape.symbol import Symbol
from fwdad.tape.types import Number
from fwdad.tracing.row_by_row import Flat

if TYPE_CHECKING:
    from fwdad.tracing.expressions import Expressions


class Once(list):  # type: ignore[type-arg]
    """The items of an iterator, which can be taken once.

    Attributes
    ----------
    used : bool
        Whether they have been.
    place : object
        If they had to be computed when the iterator was made: the statement that must use it.
    """

    used = False
    place: Any = None


@dataclass
class Range:
    """``range`` with symbolic bounds."""

    start: Any
    stop: Any
    step: Any


@dataclass
class Enumerated:
    """``enumerate``."""

    iterable: Any
    start: Any
    used: bool = False


@dataclass
class Zipped:
    """``zip``."""

    iterables: tuple[Any, ...]
    used: bool = False


@dataclass
class Reversed:
    """``reversed``."""

    iterable: Any
    used: bool = False


@dataclass
class Steps:
    """How to run over something.

    Attributes
    ----------
    length : int or Symbol
        How many items there are.
    item : callable
        The item for a counter of ``span``, or for a position if not ``one_body``.
    span : tuple
        start, stop and step of the counter.
    one_body : bool
        Whether the items are alike, so that one body serves all.
    more : callable, optional
        Whether there is a k-th item, asked when its turn has come; else ``length`` tells.
    """

    length: Any
    item: Callable[[Any], Any]
    span: tuple[Any, Any, Any]
    one_body: bool
    more: Callable[[int], bool] | None = None


def steps(tracer: Expressions, x: Any) -> Steps:
    """How to run over an iterable.

    Raises
    ------
    UntraceableError
        If it is none that is known.
    """
    _use(tracer, x)
    if isinstance(x, Flat):
        x = tracer.call(np.ravel, (x.array,), {})
    if isinstance(x, range):
        x = Range(x.start, x.stop, x.step)
    if isinstance(x, Range):
        ints = all(isinstance(b, int) for b in (x.start, x.stop, x.step))
        length = len(range(x.start, x.stop, x.step)) if ints else None
        return Steps(
            length,
            lambda k: k if type(k) is Symbol else x.start + k * x.step,
            (x.start, x.stop, x.step),
            one_body=True,
        )
    if isinstance(x, np.ndarray):
        x = tracer.recorder.as_symbol(x)
    if type(x) is Symbol and x.is_array:
        if not x.type.ndim:
            message = "iteration over a 0-d array"
            raise TypeError(message)
        length = tracer.recorder.length(x, 0)
        return Steps(length, lambda k: tracer.recorder.load(x, k), (0, length, 1), one_body=True)
    if isinstance(x, Enumerated):
        inner = _from_zero(tracer, x.iterable)
        start = x.start
        return Steps(
            inner.length,
            lambda k: (tracer.binary_add(k, start) if start != 0 else k, inner.item(k)),
            (0, inner.length, 1),
            one_body=inner.one_body,
        )
    if isinstance(x, Zipped):
        parts = [_from_zero(tracer, p) for p in x.iterables]
        length = tracer.shortest([p.length for p in parts]) if parts else 0
        return Steps(
            length,
            lambda k: tuple(p.item(k) for p in parts),
            (0, length, 1),
            one_body=bool(parts) and all(p.one_body for p in parts),
        )
    if isinstance(x, Reversed):
        inner = _from_zero(tracer, x.iterable)
        last = tracer.binary_sub(inner.length, 1)
        return Steps(
            inner.length,
            lambda k: inner.item(tracer.binary_sub(last, k)),
            (0, inner.length, 1),
            one_body=inner.one_body,
        )
    held = sequence(x)
    if held is None:
        message = f"a loop over a {type(x).__name__} cannot be traced"
        raise UntraceableError(message, tracer.location())
    if isinstance(x, (list, dict, set, deque)):
        return Steps(
            len(held), lambda k: held[k], (0, len(held), 1), one_body=False,
            more=lambda k: _more(tracer, x, held, k),
        )  # fmt: skip
    return Steps(len(held), lambda k: held[k], (0, len(held), 1), one_body=False)


def _more(tracer: Expressions, x: Any, held: list[Any], k: int) -> bool:
    """Whether there is a k-th item of a container, which may have changed; it is put in place."""
    if isinstance(x, list):
        if k < len(x):
            held[k:] = x[k:]
        return k < len(x)
    if len(x) != len(held):
        kind = "deque mutated" if isinstance(x, deque) else f"{type(x).__name__} changed size"
        tracer.raise_always(RuntimeError, f"{kind} during iteration")
    return k < len(held)


def _use(tracer: Expressions, x: Any) -> None:
    """Note that an iterator is used; what would be left of it then is not followed."""
    if not isinstance(x, (Once, Enumerated, Zipped, Reversed)):
        return
    late = isinstance(x, Once) and x.place is not None and x.place != tracer.statement()
    if x.used or late:
        message = (
            "an iterator that is used a second time" if x.used
            else "a generator or `map` that is kept for another statement"
        )  # fmt: skip
        raise UntraceableError(f"{message} cannot be traced: make a list of it", tracer.location())
    x.used = True


def _from_zero(tracer: Expressions, x: Any) -> Steps:
    """The same with a counter that starts at zero and counts by one."""
    found = steps(tracer, x)
    start, stop, step = found.span
    if (isinstance(start, int) and start == 0) and (isinstance(step, int) and step == 1):
        return Steps(stop, found.item, found.span, one_body=found.one_body)
    length = found.length
    if length is None:
        length = tracer.range_length(start, stop, step)
    return Steps(
        length,
        lambda k: tracer.binary_add(start, tracer.binary_mul(k, step)),
        (0, length, 1),
        one_body=True,
    )


def sequence(x: Any) -> list[Any] | None:
    """The items of a container whose structure is known, or None."""
    if isinstance(x, (list, tuple, str, bytes, dict, deque)):
        return list(x)
    if isinstance(x, (set, frozenset)):
        return sorted(x, key=repr)
    if isinstance(x, (type({}.keys()), type({}.values()), type({}.items()))):
        return list(x)
    return None


def items(tracer: Expressions, x: Any) -> list[Any]:
    """All items of an iterable whose length is known, or is assumed to be the traced one.

    Raises
    ------
    UntraceableError
        If the length depends on values.
    """
    held = sequence(x)
    if held is not None:
        _use(tracer, x)
        return held
    if isinstance(x, Flat):
        x = tracer.call(np.ravel, (x.array,), {})
    if isinstance(x, np.ndarray):
        x = tracer.recorder.as_symbol(x)
    if type(x) is Symbol and x.is_array:
        return [tracer.recorder.load(x, k) for k in range(tracer.recorder.known_length(x, 0))]
    found = steps(tracer, x)
    length = found.length
    if type(length) is Symbol or length is None:
        if length is None:
            length = tracer.range_length(*found.span)
        length = tracer.force(length)
    if isinstance(x, (range, Range)):
        start, _, step = found.span
        return [tracer.binary_add(start, tracer.binary_mul(k, step)) for k in range(length)]
    return [found.item(k) for k in range(length)]


_TOTAL = {operator.add, operator.sub, operator.mul, operator.neg, operator.lt, operator.le,
          operator.gt, operator.ge, operator.eq, operator.ne, operator.not_, bool, abs}  # fmt: skip
_SAFE = (Load, Store, Update)


def may_raise(op: Op) -> bool:
    """Whether an operation may raise an exception when it runs."""
    if isinstance(op, Check) or any(may_raise(o) for b in op.blocks() for o in b.ops):
        return True
    if isinstance(op, Apply):
        numbers = all(isinstance(v.type, Number) for v in op.outputs)
        return not (isinstance(op.function, np.ufunc) or (numbers and op.function in _TOTAL))
    return isinstance(op, _SAFE)
