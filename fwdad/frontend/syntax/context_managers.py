"""Context managers: `with` of the user's classes and generators, and of some of Python's."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwdad.eager.lifting.source import find_source
from fwdad.errors import UntraceableError, is_library_file, with_article
from fwdad.frontend.calls.tables import ATTRIBUTES_OF, CALLED, builtin
from fwdad.frontend.syntax import catching, iterators
from fwdad.frontend.syntax import inside_managers as inside
from fwdad.frontend.syntax.assignments import Assignments
from fwdad.frontend.syntax.blocks import Blocks
from fwdad.frontend.syntax.frame import Closure, Method
from fwdad.frontend.syntax.raising import (
    AlwaysRaises,
    exception_of,
    exceptions_of,
    may_raise,
    refuse_vanishing,
)
from fwdad.frontend.syntax.symbols import OfFunction, OfTrace
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.ops import Block, Op

_Leave = Callable[[AlwaysRaises | None], Any]
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_QUIET = (np.errstate, warnings.catch_warnings, contextlib.nullcontext, *_LOCKS)
"""Managers that do nothing at their ends that the program could see."""


def acts(manager: Any) -> bool:
    """Whether a manager does something at its end that the program could see."""
    return not isinstance(manager, _QUIET)


class OfGenerator(OfTrace):
    """The manager that a function under ``contextlib.contextmanager`` returns.

    ``items`` is the generator, which yields once.
    """

    def __init__(self, items: iterators.Iterator) -> None:
        self.items = items


class ContextManagers:
    """Execution of ``with``."""

    def __init__(self, tracer: Tracer, assignments: Assignments, blocks: Blocks) -> None:
        self.tracer = tracer
        self.assignments = assignments
        self.blocks = blocks

    def run_With(self, node: ast.With) -> None:
        with contextlib.ExitStack() as stack:
            for k, item in enumerate(node.items):
                manager = self.tracer.evaluate(item.context_expr)
                if type(manager) is contextlib.suppress:
                    self._suppressing(manager, item, node, node.items[k + 1 :])
                    return
                stack.enter_context(self.entered(item, node, manager))
            self.blocks.run_block(node.body)

    def _suppressing(
        self,
        manager: contextlib.suppress,
        item: ast.withitem,
        node: ast.With,
        inner: list[ast.withitem],
    ) -> None:
        """``with suppress(…)`` as the ``try`` that it stands for."""
        body: list[ast.stmt] = node.body
        if inner:
            body = [ast.copy_location(ast.With(inner, node.body), node)]
        caught = ast.copy_location(ast.Constant(vars(manager)["_exceptions"]), item.context_expr)
        handler = ast.ExceptHandler(caught, None, [ast.copy_location(ast.Pass(), node)])
        if item.optional_vars is not None:
            self.assignments.assign(item.optional_vars, None)
        statement = ast.Try(body, [ast.copy_location(handler, node)], [], [])
        self.tracer.run(ast.copy_location(statement, node))

    @contextlib.contextmanager
    def entered(self, item: ast.withitem, node: ast.AST, manager: Any) -> Iterator[None]:
        """Enter and leave a manager around what is traced inside."""
        self.tracer.position.at(item.context_expr)
        value, leave, suppressed = _enter(self.tracer, manager, item)
        if item.optional_vars is not None:
            self.assignments.assign(item.optional_vars, value)
        ops = self.tracer.recorder.block.ops
        before = len(ops)
        try:
            with _around(self.tracer, manager):
                yield
        except AlwaysRaises as raised:
            self._check_body(manager, ops, before, node)
            _refuse_raising(self.tracer, manager, (leave, suppressed), ops[before:], node)
            if not _leave(self.tracer, leave, raised, before, node):
                raise
            return
        self._check_body(manager, ops, before, node)
        _refuse_raising(self.tracer, manager, (leave, suppressed), ops[before:], node)
        _leave(self.tracer, leave, None, before, node)

    def _check_body(self, manager: Any, ops: list[Op], before: int, node: ast.AST) -> None:
        """Check, or refuse, what has been traced inside of a manager that acts on operations."""
        place = self.tracer.position.place_of(node)
        if isinstance(manager, _LOCKS):
            inside.refuse_shared(self.tracer.recorder, ops[before:], place)
        elif isinstance(manager, np.errstate) and inside.raises(manager):
            inside.check_finite(self.tracer.recorder, ops, before, place)


def _leave(
    tracer: Tracer, leave: _Leave, raised: AlwaysRaises | None, before: int, node: ast.AST
) -> bool:
    """Leave a manager; returns whether it suppresses the exception that its body has raised."""
    ops, replaced, suppresses = tracer.recorder.block.ops, None, False
    end = len(ops)
    try:
        suppresses = tracer.truth(leave(raised))
    except AlwaysRaises as error:
        replaced = error
    place = tracer.position.place_of(node)
    refuse_vanishing(
        tracer.recorder, ops[before:end], ops[end:], place, replaces=replaced not in (None, raised)
    )
    if replaced is not None:
        raise replaced
    return suppresses


def _around(tracer: Tracer, manager: Any) -> contextlib.AbstractContextManager[None]:
    """The context of a body; if the manager acts at its end, no conditional exception may leave."""
    if isinstance(manager, _QUIET):
        return contextlib.nullcontext()
    return catching.not_through(tracer.recorder)


def _refuse_raising(
    tracer: Tracer, manager: Any, leaving: tuple[_Leave, Any], ops: list[Op], node: ast.AST
) -> None:
    """Refuse operations that may raise what a manager may suppress."""
    leave, suppressed = leaving
    leaves = [leave]
    if isinstance(manager, Stack):
        suppressed = manager.suppressed()
        leaves = [leave for leave, _ in manager.entered]
    if suppressed and _may_suppress(tracer, leave, suppressed, ops):
        does = "may suppress exceptions"
    elif not suppressed and any(_replaces(tracer, leave, ops) for leave in leaves):
        does = "raises others in place of exceptions"
    else:
        return
    message = (
        f"`with` of {with_article(_name(manager))}, which {does}, around operations that may raise "
        "at run time cannot be traced"
    )
    raise UntraceableError(message, tracer.position.place_of(node))


def _may_suppress(
    tracer: Tracer, leave: _Leave, wanted: tuple[type[BaseException], ...], ops: list[Op]
) -> bool:
    """Whether a manager suppresses what operations may raise, found by calling it."""
    exceptions = {e for op in ops if may_raise(op, wanted) for e in exceptions_of(op)}
    for exception in exceptions:
        if exception is Exception:  # or any other one
            return True
        with tracer.recorder.region(Block()) as region:
            try:
                result = tracer.truth(leave(AlwaysRaises(exception.__new__(exception))))
            except AlwaysRaises:
                result = True
            region.undo()
        if result is not False:
            return True
    return False


def _replaces(tracer: Tracer, leave: _Leave, ops: list[Op]) -> bool:
    """Whether a manager raises something else than what operations may raise."""
    if not isinstance(leave, _Exit):
        return False
    wanted = (BaseException,)
    for exception in {e for op in ops if may_raise(op, wanted) for e in exceptions_of(op)}:
        with tracer.recorder.region(Block()) as region:
            try:
                leave(AlwaysRaises(exception.__new__(exception)))
                replaced = False
            except AlwaysRaises as raised:
                replaced = not raised.is_a(exception)
            region.undo()
        if replaced:
            return True
    return False


def _enter(tracer: Tracer, manager: Any, item: ast.AST) -> tuple[Any, _Leave, tuple[Any, ...]]:
    """The entered value, a function that leaves, and the exceptions that may be suppressed."""
    if isinstance(manager, _LOCKS) and not is_library_file(tracer.position.frame.filename):
        return _refuse(tracer, manager)
    if isinstance(manager, np.errstate) and not inside.is_checked(manager):
        message = (
            "`np.errstate` that raises at underflow, or calls, cannot be traced: enter it outside "
            "of the function, or let it raise at `divide`, `over` and `invalid` only"
        )
        raise UntraceableError(message, tracer.position.location())
    if isinstance(manager, (np.errstate, *_LOCKS)):
        return None, lambda _: False, ()
    if isinstance(manager, warnings.catch_warnings):
        if vars(manager)["_record"]:
            message = (
                "recording warnings cannot be traced: enter `warnings.catch_warnings` outside of "
                "the function"
            )
            raise UntraceableError(message, tracer.position.location())
        return None, lambda _: False, ()
    if isinstance(manager, OfGenerator):
        return _next(tracer, manager.items), _left(tracer, manager.items), ()
    if isinstance(manager, Stack):
        return manager, functools.partial(manager.leave, tracer), ()
    if isinstance(manager, contextlib.nullcontext):
        return manager.enter_result, lambda _: False, ()
    if isinstance(manager, contextlib.suppress):
        wanted = vars(manager)["_exceptions"]
        return None, lambda raised: raised is not None and raised.is_a(wanted), wanted
    ends = ("__enter__", "__exit__")
    own_enter, own_leave = (tracer.outside.guard_special(manager, name) for name in ends)
    if not isinstance(own_enter, types.FunctionType) or not isinstance(
        own_leave, types.FunctionType
    ):
        return _refuse(tracer, manager)
    if any(is_library_file(f.__code__.co_filename) for f in (own_enter, own_leave)):
        return _refuse(tracer, manager)

    leave, suppressed = _by_call(tracer, own_leave, (manager,))
    return tracer.call(own_enter, (manager,), {}), leave, suppressed


@dataclasses.dataclass
class _Exit:
    """A call of an ``__exit__``."""

    tracer: Tracer
    function: Any
    args: tuple[Any, ...]

    def __call__(self, raised: AlwaysRaises | None) -> Any:
        given: tuple[Any, ...] = (None, None)
        if raised is not None:
            given = exception_of(raised, self.tracer.call)
        return self.tracer.call(self.function, (*self.args, *given, None), {})


def _by_call(
    tracer: Tracer, function: Any, args: tuple[Any, ...]
) -> tuple[_Leave, tuple[type[BaseException], ...]]:
    """A function that calls an ``__exit__``, and the exceptions that it may suppress."""
    source = find_source(function) if isinstance(function, types.FunctionType) else None
    node: Any = function.node if isinstance(function, Closure) else source and source.node
    known = node is not None and not isinstance(node, ast.Lambda) and _returns_nothing(node)
    return _Exit(tracer, function, args), () if known else (BaseException,)


def _name(manager: Any) -> str:
    return "ExitStack" if isinstance(manager, Stack) else type(manager).__name__


def _refuse(tracer: Tracer, manager: Any) -> Any:
    message = (
        f"`with` of {with_article(_name(manager))} cannot be traced: enter it outside of "
        "the function"
    )
    raise UntraceableError(message, tracer.position.location())


def _returns_nothing(node: ast.AST) -> bool:
    """Whether ``__exit__`` never returns anything that would suppress an exception."""
    results = [n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value is not None]
    return all(isinstance(v, ast.Constant) and not v.value for v in results)


class Stack(OfTrace):
    """The result of ``contextlib.ExitStack()``."""

    def __init__(self, tracer: Tracer) -> None:
        self.entered: list[tuple[_Leave, tuple[Any, ...]]] = tracer.recorder.journal.fresh([])

    def add(self, tracer: Tracer, leave: _Leave, suppressed: tuple[Any, ...] = ()) -> None:
        """Note what to do when the stack is left."""
        tracer.recorder.journal.touch(self.entered)
        self.entered.append((leave, suppressed))

    def suppressed(self) -> tuple[Any, ...]:
        """The exceptions that the entered managers may suppress."""
        return tuple(e for _, wanted in self.entered for e in wanted)

    def leave(self, tracer: Tracer, raised: AlwaysRaises | None) -> bool:
        """Leave all managers, the latest first; returns whether an exception was suppressed."""
        pending = raised
        while self.entered:
            tracer.recorder.journal.touch(self.entered)
            leave, _ = self.entered.pop()
            try:
                if tracer.truth(leave(pending)):
                    pending = None
            except AlwaysRaises as error:
                pending = error
        if pending is not None and pending is not raised:
            raise pending
        return pending is not raised


@dataclasses.dataclass
class OfStack(OfFunction):
    """A method of a :class:`Stack`."""

    kind = types.MethodType

    stack: Stack
    name: str

    @property
    def owner(self) -> Stack:
        """The stack."""
        return self.stack

    @property
    def like(self) -> Any:
        """The method of the class."""
        return getattr(contextlib.ExitStack, self.name)


def _call_stack(tracer: Tracer, f: OfStack, args: Any, kwargs: Any) -> Any:
    stack, (first, *rest) = f.stack, args or (None,)
    if f.name == "close":
        stack.leave(tracer, None)
        return None
    if f.name == "enter_context":
        if isinstance(first, _LOCKS) or (isinstance(first, np.errstate) and inside.raises(first)):
            _refuse(tracer, first)  # where it is left decides what is inside
        assert tracer.position.node is not None
        value, leave, suppressed = _enter(tracer, first, tracer.position.node)
        stack.add(tracer, leave, suppressed)
        return value
    if f.name == "callback":

        def call_back(_raised: AlwaysRaises | None) -> bool:
            tracer.call(first, tuple(rest), kwargs)
            return False

        stack.add(tracer, call_back)
        return first
    attribute = tracer.outside.guard_special(first, "__exit__")
    if isinstance(attribute, types.FunctionType) and not is_library_file(
        attribute.__code__.co_filename
    ):
        stack.add(tracer, *_by_call(tracer, attribute, (first,)))
    elif isinstance(first, (types.FunctionType, Closure, Method)):
        stack.add(tracer, *_by_call(tracer, first, ()))
    else:
        _refuse(tracer, first)
    return first


CALLED[OfStack] = _call_stack


@builtin(contextlib.ExitStack)
def _stack(tracer: Tracer) -> Stack:
    return Stack(tracer)


def _of_stack(tracer: Tracer, stack: Stack, name: str) -> OfStack:
    """An attribute of a stack."""
    if name in ("enter_context", "callback", "push", "close"):
        return OfStack(stack, name)
    raise UntraceableError(f"`{name}` of an ExitStack cannot be traced", tracer.position.location())


ATTRIBUTES_OF[Stack] = _of_stack


def _next(tracer: Tracer, items: iterators.Iterator) -> Any:
    try:
        return items.advance(tracer)
    except iterators.Ended:
        raise AlwaysRaises(RuntimeError, ("generator didn't yield",)) from None


def _left(tracer: Tracer, items: iterators.Iterator) -> _Leave:
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
