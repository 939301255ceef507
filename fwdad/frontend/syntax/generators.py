"""Generator functions, traced step by step, as Python runs them, when their items are asked for.

What decides how far a generator goes must be known when the program is traced: loops around a
``yield`` are unrolled, and conditions around one must be known.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from fwdad.eager.lifting.source import children_of
from fwdad.errors import UntraceableError, type_in_words
from fwdad.frontend.calls.tables import CALLED, MANAGED, builtin
from fwdad.frontend.syntax import catching, context_managers, iteration
from fwdad.frontend.syntax.frame import Closure
from fwdad.frontend.syntax.iterators import Ended, Iterator
from fwdad.frontend.syntax.raising import AlwaysRaises, refuse_vanishing
from fwdad.frontend.syntax.symbols import OfTrace
from fwdad.ir.symbol import Symbol

_Items = Generator[Any, Any, Any]
_LONGEST = 1280


def resumed(tracer: Any, frame: Any, key: Any, run: _Items) -> _Items:
    """The items of a run, each traced in the generator's own frame."""
    sent, thrown = None, None
    while True:
        outer = tracer.frame, tracer.node, tracer.called_at
        tracer.called_at = tracer.location() if tracer.frame is not None else None
        frame.caller = outer[0], outer[2]
        tracer.frame = frame
        tracer.depth += 1
        tracer.active.append(key)
        try:
            with catching.not_through(tracer.recorder):
                item = run.send(sent) if thrown is None else run.throw(thrown)
        except StopIteration as end:
            return end.value
        finally:
            tracer.depth -= 1
            tracer.active.pop()
            tracer.frame, tracer.node, tracer.called_at = outer
        sent, thrown = None, None
        try:
            sent = yield item
        except AlwaysRaises as raised:
            thrown = raised


def executed(tracer: Any, frame: Any, node: ast.FunctionDef) -> _Items:
    """The body of a generator function, executed as a generator."""
    try:
        yield from _block(tracer, node.body)
    except AlwaysRaises as raised:
        if not raised.is_a(StopIteration):
            raise
        raise AlwaysRaises(RuntimeError, ("generator raised StopIteration",)) from None
    return frame.locals.get("$value")


def yields(node: ast.AST) -> bool:
    """Whether a statement has a ``yield`` outside of functions that it defines."""
    if isinstance(node, (ast.Yield, ast.YieldFrom)):
        return True
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return False
    return any(yields(child) for child in children_of(node))


def _block(tracer: Any, statements: Sequence[ast.stmt]) -> _Items:
    for statement in statements:
        if yields(statement):
            tracer.at(statement)
            tracer.frame.statement = statement
            yield from _statement(tracer, statement)
        else:
            tracer.run(statement)
        if _known(tracer, tracer.stopped(), statement):
            return


def _known(tracer: Any, condition: Any, node: ast.AST) -> bool:
    if type(condition) is Symbol:
        message = "how far a generator goes depends on a value, which cannot be traced"
        raise UntraceableError(message, tracer.place_of(node))
    return bool(condition)


def _statement(tracer: Any, node: ast.stmt) -> _Items:
    if isinstance(node, ast.If):
        held = tracer.truth(tracer.evaluate(node.test))
        yield from _block(tracer, node.body if _known(tracer, held, node) else node.orelse)
    elif isinstance(node, ast.For):
        yield from _for(tracer, node)
    elif isinstance(node, ast.While):
        yield from _while(tracer, node)
    elif isinstance(node, ast.Try) and not node.handlers:
        ops = tracer.recorder.block.ops
        before = len(ops)
        try:
            yield from _block(tracer, [*node.body, *node.orelse])
        except AlwaysRaises:
            tracer.run_block(node.finalbody)
            raise
        end = len(ops)
        # either the generator raises, or its caller between two items
        jumps, place = (yield from _finally(tracer, node.finalbody)), tracer.place_of(node)
        refuse_vanishing(tracer.recorder, ops[before:end], ops[end:], place, replaces=jumps)
    elif isinstance(node, ast.With):
        yield from _with(tracer, node.items, node)
    elif isinstance(node, ast.Expr):
        yield from _value(tracer, node.value)
    elif isinstance(node, ast.Assign):
        value = yield from _value(tracer, node.value)
        for target in node.targets:
            tracer.assign(target, value)
    elif isinstance(node, ast.Return) and node.value is not None:
        value = yield from _value(tracer, node.value)
        tracer.recorder.journal.bind(tracer.frame.locals, "$value", value)
        tracer.recorder.journal.bind(tracer.frame.locals, "$return", True)
    else:
        message = "a `yield` in this statement cannot be traced: let it be a statement by itself"
        raise UntraceableError(message, tracer.place_of(node))


def _finally(tracer: Any, statements: list[ast.stmt]) -> Generator[Any, Any, bool]:
    """Execute ``finally``, deferring an earlier jump; returns whether it jumps itself."""
    held = tracer.frame.locals
    flags = {name: held[name] for name in ("$break", "$continue", "$return")}
    for name in flags:
        tracer.recorder.journal.bind(held, name, False)
    yield from _block(tracer, statements)
    if tracer.stopped():
        return True
    for name, flag in flags.items():
        tracer.recorder.journal.bind(held, name, flag)
    return False


def _value(tracer: Any, node: ast.expr) -> _Items:
    """The value of a ``yield``: what is sent, or what another generator returns."""
    if isinstance(node, ast.Yield):
        return (yield None if node.value is None else tracer.evaluate(node.value))
    if isinstance(node, ast.YieldFrom):
        inner = iteration.iterator(tracer, tracer.evaluate(node.value))
        sent = None
        while True:
            try:
                item = inner.advance(tracer, sent)
            except Ended as end:
                return end.value
            sent = yield item
    message = "a `yield` inside an expression cannot be traced: give it a name first"
    raise UntraceableError(message, tracer.place_of(node))


def _for(tracer: Any, node: ast.For) -> _Items:
    tracer.start_loop()
    for k, item in enumerate(iteration.walk(tracer, tracer.evaluate(node.iter))):
        _count(tracer, k, node)
        tracer.assign(node.target, item)
        yield from _block(tracer, node.body)
        if _known(tracer, tracer.leaving(), node):
            break
    yield from _end(tracer, node)


def _while(tracer: Any, node: ast.While) -> _Items:
    tracer.start_loop()
    k = 0
    while _known(tracer, tracer.truth(tracer.evaluate(node.test)), node):
        _count(tracer, k, node)
        k += 1
        yield from _block(tracer, node.body)
        if _known(tracer, tracer.leaving(), node):
            break
    yield from _end(tracer, node)


def _end(tracer: Any, node: ast.For | ast.While) -> _Items:
    held = tracer.frame.locals
    left = held["$break"] or held["$return"]
    tracer.recorder.journal.bind(held, "$break", False)
    if not left:
        yield from _block(tracer, node.orelse)


def _count(tracer: Any, k: int, node: ast.stmt) -> None:
    if k > _LONGEST:
        message = "a generator that has no end, or a very long one, cannot be traced"
        raise UntraceableError(message, tracer.place_of(node))


def _with(tracer: Any, items: list[ast.withitem], node: ast.With) -> _Items:
    if not items:
        yield from _block(tracer, node.body)
        return
    with context_managers.entered(tracer, items[0], node):
        yield from _with(tracer, items[1:], node)


# -- methods of generators


class Sender(OfTrace):
    """A generator's bound ``send``, ``close`` or ``__next__``."""

    def __init__(self, items: Iterator, name: str) -> None:
        self.items = items
        self.name = name


def attribute(tracer: Any, o: Any, name: str) -> Any:
    """An attribute of an iterator."""
    if isinstance(o, Iterator) and name in ("send", "close", "__next__"):
        return Sender(o, name)
    if isinstance(o, context_managers.Stack):
        return context_managers.of_stack(tracer, o, name)
    message = f"`{name}` of {type_in_words(o)} cannot be traced"
    raise UntraceableError(message, tracer.location())


def _send(tracer: Any, f: Sender, args: Any, _kwargs: Any) -> Any:
    if f.name == "close":
        f.items.close(tracer)
        return None
    try:
        return f.items.advance(tracer, *args)
    except Ended as end:
        arguments = () if end.value is None else (end.value,)
        raise AlwaysRaises(StopIteration, arguments) from None


CALLED[Sender] = _send


def _managed(tracer: Any, f: Any, args: Any, kwargs: Any) -> context_managers.OfGenerator:
    """Call a function under ``contextlib.contextmanager``."""
    items = tracer.call(f.__wrapped__, args, kwargs)
    if not isinstance(items, Iterator):
        message = f"{f.__name__} is no generator function"
        raise UntraceableError(message, tracer.location())
    return context_managers.OfGenerator(items)


MANAGED.append(_managed)


class ManagerFunction(OfTrace):
    """A function of the traced program under ``contextlib.contextmanager``."""

    def __init__(self, function: Any) -> None:
        self.__wrapped__ = function


@builtin(contextlib.contextmanager)
def _contextmanager(tracer: Any, f: Any) -> Any:
    return (
        ManagerFunction(f)
        if isinstance(f, Closure)
        else tracer.native(contextlib.contextmanager, f)
    )


CALLED[ManagerFunction] = _managed


def _decorates(tracer: Any, _f: Any, _args: Any, _kwargs: Any) -> Any:
    message = "a context manager that decorates a function cannot be traced: write `with` inside"
    raise UntraceableError(message, tracer.location())


CALLED[context_managers.OfGenerator] = _decorates


@builtin(np.printoptions)
def _printoptions(_tracer: Any, *_args: Any, **_kwargs: Any) -> Any:
    return contextlib.nullcontext()
