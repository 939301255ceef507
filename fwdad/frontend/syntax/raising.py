"""Exceptions: paths that end in one, and operations that may raise, as far as ``try`` matters."""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwdad.core.fallbacks import Raised, origin
from fwdad.eager.lifting.source import find_source
from fwdad.errors import Location, UntraceableError
from fwdad.ir.analysis.effects import risk
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import (
    Apply,
    Block,
    Call,
    Check,
    Effect,
    Load,
    Op,
    Store,
    Update,
    type_of_operand,
)
from fwdad.ir.other_way import OtherWayError
from fwdad.ir.types import Number, Size
from fwdad.ops import Risk

_TOTAL = {operator.add, operator.sub, operator.mul, operator.neg, operator.lt, operator.le,
          operator.gt, operator.ge, operator.eq, operator.ne, operator.not_, bool, abs}  # fmt: skip
_RAISED: dict[Any, tuple[type[BaseException], ...]] = {
    operator.truediv: (ZeroDivisionError, OverflowError),
    operator.floordiv: (ZeroDivisionError,),
    operator.mod: (ZeroDivisionError,),
    operator.pow: (ZeroDivisionError, OverflowError),
}


class TraceControl(Exception):  # noqa: N818  (it steers the trace; the program raises nothing)
    """What parts of a trace say to each other."""


class AlwaysRaises(TraceControl):
    """The traced path ends in an exception, a class or instance; ``arguments`` may be symbols."""

    def __init__(
        self, exception: Any, arguments: tuple[Any, ...] = (), location: Location | None = None
    ) -> None:
        super().__init__(exception)
        if isinstance(exception, BaseException):  # it is the program that raises it
            exception.__traceback__ = None
        self.exception = exception
        self.arguments = arguments
        self.location = location

    def is_a(self, wanted: Any) -> bool:
        """Whether the exception is of a class, or of one of several."""
        cls = self.exception if isinstance(self.exception, type) else type(self.exception)
        return issubclass(cls, wanted)


def exception_of(raised: AlwaysRaises, call: Callable[..., Any]) -> tuple[type, Any]:
    """The class of an exception, and the exception itself; ``call`` is the tracer's."""
    if isinstance(raised.exception, type):
        return raised.exception, call(raised.exception, raised.arguments, {})
    return type(raised.exception), raised.exception


def has_source(function: Any) -> bool:
    """Whether a method is a function in Python whose source can be read."""
    return isinstance(function, types.FunctionType) and find_source(function) is not None


def native(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function on known values; the program raises whatever it raises."""
    around = sys.exception()
    try:
        return function(*args)
    except (UntraceableError, TraceControl, RecursionError):  # the last is the trace's own
        raise
    except Exception as error:  # whatever a function of the user's raises
        for inner in _chain(error, around):
            if isinstance(inner, UntraceableError):  # C code raises its own where a value
                raise inner from None  # refuses to be a number
        raise AlwaysRaises(error) from error


def recorded(record: Callable[..., Any], *args: Any) -> Any:
    """Record an operation; where our code raises what NumPy would, the program raises that."""
    try:
        return record(*args)
    except (TypeError, ValueError, IndexError, RuntimeError) as error:
        if isinstance(error, RecursionError) or origin(error).by is not Raised.MEANT:
            raise
        raise AlwaysRaises(error) from error


def _chain(error: BaseException, around: BaseException | None) -> Iterator[BaseException]:
    """An exception and those that led to it, up to what was handled before; it may be a circle."""
    known: set[int] = {id(around)}
    inner: BaseException | None = error
    while inner is not None and id(inner) not in known:
        yield inner
        known.add(id(inner))
        inner = inner.__context__ if inner.__cause__ is None else inner.__cause__


class BodyRaises(TraceControl):
    """The first iteration of a loop always raises, so that it is also the last one.

    ``block`` is what it does before; its parameter is the counter.
    """

    def __init__(self, raised: AlwaysRaises, block: Block) -> None:
        super().__init__(raised)
        self.raised = raised
        self.block = block


def exceptions_of(op: Op) -> set[type[BaseException]]:
    """The exceptions that an operation may raise when it runs; ``Exception`` stands for any."""
    inside = {e for b in op.blocks() for o in b.ops for e in exceptions_of(o)}
    return inside | set(own_exceptions(op))


def own_exceptions(op: Op, resolved: Callable[[Any], Any] = lambda t: t) -> tuple[Any, ...]:
    """The same without those of the blocks inside; ``resolved`` gives types known lengths."""
    if isinstance(op, Check):
        return (op.exception if isinstance(op.exception, type) else type(op.exception),)
    if isinstance(op, Call):
        return (Exception,)
    if isinstance(op, Apply):
        may = risk(op)
        if may <= Risk.WARNS:
            return ()
        if may == Risk.SHAPES and isinstance(op.function, np.ufunc):
            return (ValueError,)
        numbers = all(isinstance(v.type, Number) for v in op.outputs)
        if isinstance(op.function, np.ufunc) or (numbers and op.function in _TOTAL):
            return ()
        return _RAISED.get(op.function, (Exception,)) if numbers else (Exception,)
    if isinstance(op, Load):
        return () if _is_inside(op, resolved(op.array.type)) else (IndexError,)
    if isinstance(op, (Store, Update)):
        t = type_of_operand(op.value)
        return (IndexError,) if isinstance(t, Number) else (IndexError, ValueError, TypeError)
    return ()


def _is_inside(op: Load, t: Any) -> bool:
    """Whether an index is in bounds; an unknown length of an input is at least two."""
    index, shape = op.index, t.shape
    if len(index) > len(shape) or not all(type(i) is int for i in index):
        return False
    lengths = [2 if isinstance(n, Size) and n.origin is not None else n for n in shape]
    return all(isinstance(n, int) and -n <= i < n for i, n in zip(index, lengths, strict=False))


def may_raise(op: Op, wanted: tuple[Any, ...] = (BaseException,)) -> bool:
    """Whether an operation may raise one of some exceptions when it runs."""
    return any(
        issubclass(e, wanted) or (e is Exception and issubclass(w, e))
        for e in exceptions_of(op)
        for w in wanted
    )


def refuse_vanishing(
    recorder: Recorder,
    body: list[Op],
    end: list[Op],
    place: Location | None,
    *,
    replaces: bool = False,
) -> None:
    """Refuse a visible end of a body that the program may leave by ``raise``.

    ``end`` is what is done when a ``try`` or ``with`` around ``body`` is left. A check in the body
    ends the program at once: output or stores of the end would be missing, as would an exception or
    a jump that ``replaces`` the body's.
    """
    if not has_check(body):
        return
    if replaces or has_check(end):
        what = "an exception, `return`, `break` or `continue`"
    elif _holds(end, lambda op: isinstance(op, Effect) or writes_outside(recorder, op)):
        what = "output, or a store into an array from outside,"
    else:
        return
    message = (
        f"{what} at the end of a `try` or `with` would be missing where its body raises an "
        "exception under a condition that is unknown until run time, which cannot be traced: put "
        "it after the statement, or raise after it"
    )
    raise UntraceableError(message, place)


def writes_outside(recorder: Recorder, op: Op) -> bool:
    """Whether an operation writes into memory that the program has not made."""
    owners = {root for v in op.writes() for root in recorder.definitions.owners(v)}
    return any(recorder.definitions.made_by(root) is None for root in owners)


def has_check(ops: list[Op]) -> bool:
    """Whether there is a check of the program's; where it takes another way, another tape runs."""
    return _holds(ops, lambda op: isinstance(op, Check) and op.exception is not OtherWayError)


def _holds(ops: list[Op], wanted: Callable[[Op], bool]) -> bool:
    return any(wanted(op) or any(_holds(b.ops, wanted) for b in op.blocks()) for op in ops)
