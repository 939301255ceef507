"""Context managers: `with`, of the user's classes and generators, and of some of Python's."""

from __future__ import annotations

import ast
import contextlib
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwdad.builder.lifting.source import find_source
from fwdad.errors import UntraceableError, is_library_file
from fwdad.tape.ops import Op
from fwdad.tracing.syntax import iterators
from fwdad.tracing.syntax.attributes import class_attribute
from fwdad.tracing.syntax.raising import AlwaysRaises, may_raise
from fwdad.tracing.syntax.symbols import OfTrace

_Leave = Callable[[AlwaysRaises | None], Any]


class OfGenerator(OfTrace):
    """What a function under ``contextlib.contextmanager`` answers.

    Parameters
    ----------
    items : iterators.Iterator
        The generator: it yields once.
    """

    def __init__(self, items: iterators.Iterator) -> None:
        self.items = items


@contextlib.contextmanager
def entered(tracer: Any, item: ast.withitem, node: ast.AST) -> Iterator[None]:
    """Enter and leave a manager around what is traced inside."""
    manager = tracer.evaluate(item.context_expr)
    tracer.at(item.context_expr)
    value, leave, suppressed = _enter(tracer, manager, item)
    if item.optional_vars is not None:
        tracer.assign(item.optional_vars, value)
    ops = tracer.recorder.block.ops
    before = len(ops)
    try:
        yield
    except AlwaysRaises as raised:
        _refuse_raising(tracer, manager, suppressed, ops[before:], node)
        if not tracer.truth(leave(raised)):
            raise
        return
    _refuse_raising(tracer, manager, suppressed, ops[before:], node)
    leave(None)


def _refuse_raising(
    tracer: Any, manager: Any, suppressed: tuple[Any, ...], ops: list[Op], node: ast.AST
) -> None:
    """Refuse operations that may raise what a manager may suppress."""
    if suppressed and any(may_raise(op, suppressed) for op in ops):
        message = (
            f"`with` of a {type(manager).__name__}, which may suppress exceptions, around "
            "operations that may raise when the program runs cannot be traced"
        )
        raise UntraceableError(message, tracer.place_of(node))


def _enter(tracer: Any, manager: Any, item: ast.withitem) -> tuple[Any, _Leave, tuple[Any, ...]]:
    """What is entered, how it is left, and the exceptions that are then suppressed."""
    if isinstance(manager, np.errstate) and any(
        isinstance(k, ast.Constant) and k.value in ("raise", "call")
        for k in ast.walk(item.context_expr)
    ):
        message = "floating-point errors that raise or call cannot be traced"
        raise UntraceableError(message, tracer.location())
    if isinstance(manager, np.errstate):
        return None, lambda _: False, ()
    if isinstance(manager, warnings.catch_warnings):
        if manager._record:
            message = "warnings that are recorded cannot be traced"
            raise UntraceableError(message, tracer.location())
        return None, lambda _: False, ()
    if isinstance(manager, OfGenerator):
        return _next(tracer, manager.items), _left(tracer, manager.items), ()
    if isinstance(manager, contextlib.nullcontext):
        return manager.enter_result, lambda _: False, ()
    if isinstance(manager, contextlib.suppress):
        wanted = manager._exceptions
        return None, lambda raised: raised is not None and raised.is_a(wanted), wanted
    own_enter, own_leave = (class_attribute(type(manager), n) for n in ("__enter__", "__exit__"))
    if not isinstance(own_enter, types.FunctionType) or not isinstance(
        own_leave, types.FunctionType
    ):
        return _refuse(tracer, manager)
    if any(is_library_file(f.__code__.co_filename) for f in (own_enter, own_leave)):
        return _refuse(tracer, manager)

    def leave(raised: AlwaysRaises | None) -> Any:
        given = (None, None, None) if raised is None else (*tracer.exception_of(raised), None)
        return tracer.call(own_leave, (manager, *given), {})

    source = find_source(own_leave)
    suppressed = () if source is not None and _answers_nothing(source.node) else (BaseException,)
    return tracer.call(own_enter, (manager,), {}), leave, suppressed


def _refuse(tracer: Any, manager: Any) -> Any:
    message = (
        f"`with` of a {type(manager).__name__} cannot be traced: enter it outside of the function"
    )
    raise UntraceableError(message, tracer.location())


def _answers_nothing(node: ast.AST) -> bool:
    """Whether ``__exit__`` answers nothing that would suppress an exception."""
    answers = [n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value is not None]
    return all(isinstance(v, ast.Constant) and not v.value for v in answers)


def _next(tracer: Any, items: iterators.Iterator) -> Any:
    try:
        return items.advance(tracer)
    except iterators.Ended:
        raise AlwaysRaises(RuntimeError, ("generator didn't yield",)) from None


def _left(tracer: Any, items: iterators.Iterator) -> _Leave:
    def leave(raised: AlwaysRaises | None) -> bool:
        if raised is not None:
            items.throw(tracer, raised)
            return False
        try:
            items.advance(tracer)
        except iterators.Ended:
            return False
        raise AlwaysRaises(RuntimeError, ("generator didn't stop",))

    return leave
