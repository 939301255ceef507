"""Generator functions, traced step by step, as Python runs them, when their items are asked for.

What decides how far a generator goes must be known when the program is traced: loops around a
``yield`` are unrolled, and conditions around one must be known.
"""

from __future__ import annotations

import ast
import contextlib
import types
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from fwdad.eager.lifting.source import children_of
from fwdad.errors import UntraceableError
from fwdad.frontend.calls.tables import ATTRIBUTES_OF, CALLED, builtin
from fwdad.frontend.syntax import catching, context_managers, iteration, left_generators
from fwdad.frontend.syntax.assignments import Assignments
from fwdad.frontend.syntax.attributes import refuse_attribute
from fwdad.frontend.syntax.blocks import Blocks
from fwdad.frontend.syntax.context_managers import ContextManagers
from fwdad.frontend.syntax.frame import Closure, Frame
from fwdad.frontend.syntax.iterators import Ended, Iterator
from fwdad.frontend.syntax.loops import Loops
from fwdad.frontend.syntax.raising import AlwaysRaises, native, refuse_vanishing
from fwdad.frontend.syntax.symbols import OfFunction
from fwdad.frontend.syntax.tracer import Tracer

_Items = Generator[Any, Any, Any]
_LONGEST = 1280


def resumed(tracer: Tracer, frame: Any, key: Any, run: _Items) -> _Items:
    """The items of a run, each traced in the generator's own frame."""
    sent, thrown = None, None
    while True:
        try:
            with tracer.position.inside(frame, key), catching.not_through(tracer.recorder):
                item = run.send(sent) if thrown is None else run.throw(thrown)
        except StopIteration as end:
            return end.value
        sent, thrown = None, None
        try:
            sent = yield item
        except AlwaysRaises as raised:
            thrown = raised


_UNDECIDED = (
    "how far a generator runs depends on a value, which cannot be traced: make a list first"
)


class Generators:
    """Execution of the bodies of generator functions, as generators."""

    def __init__(
        self,
        tracer: Tracer,
        assignments: Assignments,
        blocks: Blocks,
        loops: Loops,
        managers: ContextManagers,
    ) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.position = tracer.position
        self.assignments = assignments
        self.blocks = blocks
        self.loops = loops
        self.managers = managers

    def generator(self, frame: Frame, node: Any, key: Any) -> Iterator:
        """The result of a call of a generator function."""
        self.recorder.journal.own_resumed(frame.locals)
        run = resumed(self.tracer, frame, key, self._executed(frame, node))
        frame.items = Iterator(self.tracer, run, self.position.called_at)
        return frame.items

    def _executed(self, frame: Any, node: ast.FunctionDef) -> _Items:
        """The body of a generator function, executed as a generator."""
        try:
            yield from self._block(node.body)
        except AlwaysRaises as raised:
            if not raised.is_a(StopIteration):
                raise
            raise AlwaysRaises(RuntimeError, ("generator raised StopIteration",)) from None
        return frame.locals.get("$value")

    def _block(self, statements: Sequence[ast.stmt]) -> _Items:
        for statement in statements:
            if yields(statement):
                self.position.at(statement)
                yield from self._statement(statement)
            else:
                self.tracer.run(statement)
            if self._known(self.blocks.stopped(), statement):
                return

    def _known(self, condition: Any, node: ast.AST) -> bool:
        self.position.at(node)
        return self.tracer.values.decided(condition, _UNDECIDED)

    def _statement(self, node: ast.stmt) -> _Items:
        if isinstance(node, ast.If):
            condition = self.tracer.test(node.test)
            yield from self._block(node.body if self._known(condition, node) else node.orelse)
        elif isinstance(node, ast.For):
            yield from self._for(node)
        elif isinstance(node, ast.While):
            yield from self._while(node)
        elif isinstance(node, ast.Try) and not node.handlers:
            yield from self._try(node)
        elif isinstance(node, ast.With):
            yield from self._with(node.items, node)
        elif isinstance(node, ast.Expr):
            yield from self._value(node.value)
        elif isinstance(node, ast.Assign):
            value = yield from self._value(node.value)
            for target in node.targets:
                self.assignments.assign(target, value)
        elif isinstance(node, ast.Return) and node.value is not None:
            value = yield from self._value(node.value)
            self.recorder.journal.bind(self.position.frame.locals, "$value", value)
            self.recorder.journal.bind(self.position.frame.locals, "$return", True)
        else:
            message = (
                "a `yield` in this statement cannot be traced: write it as a statement by itself"
            )
            raise UntraceableError(message, self.position.place_of(node))

    def _try(self, node: ast.Try) -> _Items:
        ops, place = self.recorder.block.ops, self.position.place_of(node)
        before, raised = len(ops), None
        try:
            with left_generators.inside(self.recorder, self.position.frame.items, place):
                yield from self._block([*node.body, *node.orelse])
        except AlwaysRaises as error:
            raised = error
        end = len(ops)
        # either the generator raises, or its caller between two items
        jumps = yield from self._finally(node.finalbody)
        refuse_vanishing(self.recorder, ops[before:end], ops[end:], place, replaces=jumps)
        if raised is not None and not jumps:
            raise raised

    def _finally(self, statements: list[ast.stmt]) -> Generator[Any, Any, bool]:
        """Execute ``finally``, deferring an earlier jump; returns whether it jumps itself."""
        local_names = self.position.frame.locals
        flags = {name: local_names[name] for name in ("$break", "$continue", "$return")}
        for name in flags:
            self.recorder.journal.bind(local_names, name, False)
        yield from self._block(statements)
        if self.blocks.stopped():
            return True
        for name, flag in flags.items():
            self.recorder.journal.bind(local_names, name, flag)
        return False

    def _value(self, node: ast.expr) -> _Items:
        """The value of a ``yield``: what is sent, or what another generator returns."""
        if isinstance(node, ast.Yield):
            return (yield None if node.value is None else self.tracer.evaluate(node.value))
        if isinstance(node, ast.YieldFrom):
            inner = iteration.iterator(self.tracer, self.tracer.evaluate(node.value))
            with left_generators.running(self.position.frame.items, inner):
                return (yield from self._from(inner))
        message = (
            "a `yield` inside an expression cannot be traced: assign its value to a name first"
        )
        raise UntraceableError(message, self.position.place_of(node))

    def _from(self, inner: Iterator) -> _Items:
        """What ``yield from`` yields, and its value."""
        sent = None
        while True:
            try:
                item = inner.advance(self.tracer, sent)
            except Ended as end:
                return end.value
            try:
                sent = yield item
            except AlwaysRaises as raised:
                if inner.called_at is not None:
                    inner.leave(self.tracer, raised)
                raise

    def _for(self, node: ast.For) -> _Items:
        self.loops.start_loop()
        iterable = self.loops.iterable(node)
        with self.loops.closing(node, iterable):
            for k, item in enumerate(iteration.walk(self.tracer, iterable)):
                self._count(k, node)
                self.assignments.assign(node.target, item)
                yield from self._block(node.body)
                if self._known(self.loops.leaving(), node):
                    break
        yield from self._end(node)

    def _while(self, node: ast.While) -> _Items:
        self.loops.start_loop()
        k = 0
        while self._known(self.tracer.test(node.test), node):
            self._count(k, node)
            k += 1
            yield from self._block(node.body)
            if self._known(self.loops.leaving(), node):
                break
        yield from self._end(node)

    def _end(self, node: ast.For | ast.While) -> _Items:
        local_names = self.position.frame.locals
        left = local_names["$break"] or local_names["$return"]
        self.recorder.journal.bind(local_names, "$break", False)
        if not left:
            yield from self._block(node.orelse)

    def _count(self, k: int, node: ast.stmt) -> None:
        if k > _LONGEST:
            message = "a generator that has no end, or a very long one, cannot be traced"
            raise UntraceableError(message, self.position.place_of(node))

    def _with(self, items: list[ast.withitem], node: ast.With) -> _Items:
        if not items:
            yield from self._block(node.body)
            return
        manager = self.tracer.evaluate(items[0].context_expr)
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.managers.entered(items[0], node, manager))
            if context_managers.acts(manager):
                place = self.position.place_of(node)
                of = self.position.frame.items
                stack.enter_context(left_generators.inside(self.recorder, of, place))
            yield from self._with(items[1:], node)


def yields(node: ast.AST) -> bool:
    """Whether a statement has a ``yield`` outside of functions that it defines."""
    if isinstance(node, (ast.Yield, ast.YieldFrom)):
        return True
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return False
    return any(yields(child) for child in children_of(node))


# -- methods of generators


class Sender(OfFunction):
    """A generator's bound ``send``, ``close`` or ``__next__``."""

    def __init__(self, items: Iterator, name: str) -> None:
        self.items = self.owner = items
        self.name = name
        self.like = getattr((_ for _ in ()), name)
        self.kind = type(self.like)


def _attribute(tracer: Tracer, o: Iterator, name: str) -> Sender:
    if name not in ("send", "close", "__next__"):
        refuse_attribute(tracer, o, name)
    return Sender(o, name)


ATTRIBUTES_OF[Iterator] = _attribute


def _send(tracer: Tracer, f: Sender, args: Any, _kwargs: Any) -> Any:
    if f.name == "close":
        f.items.close(tracer)
        return None
    try:
        return f.items.advance(tracer, *args)
    except Ended as end:
        arguments = () if end.value is None else (end.value,)
        raise AlwaysRaises(StopIteration, arguments) from None


CALLED[Sender] = _send


def managed(tracer: Tracer, f: Any, args: Any, kwargs: Any) -> context_managers.OfGenerator:
    """Call a function under ``contextlib.contextmanager``."""
    items = tracer.call(f.__wrapped__, args, kwargs)
    if not isinstance(items, Iterator):
        message = f"{f.__name__} is not a generator function"
        raise UntraceableError(message, tracer.position.location())
    return context_managers.OfGenerator(items)


class ManagerFunction(OfFunction):
    """A function of the traced program under ``contextlib.contextmanager``."""

    kind = types.FunctionType

    def __init__(self, function: Any) -> None:
        self.__wrapped__ = self.like = function


@builtin(contextlib.contextmanager)
def _contextmanager(tracer: Tracer, f: Any) -> Any:
    return ManagerFunction(f) if isinstance(f, Closure) else native(contextlib.contextmanager, f)


CALLED[ManagerFunction] = managed


def _decorates(tracer: Tracer, _f: Any, _args: Any, _kwargs: Any) -> Any:
    message = (
        "a context manager that decorates a function cannot be traced: write `with` inside the "
        "function"
    )
    raise UntraceableError(message, tracer.position.location())


CALLED[context_managers.OfGenerator] = _decorates


@builtin(np.printoptions)
def _printoptions(_tracer: Tracer, *_args: Any, **_kwargs: Any) -> Any:
    return contextlib.nullcontext()
