"""The statements ``raise``, ``assert`` and ``try``."""

from __future__ import annotations

import ast
import functools
from typing import Any

from fwdad.errors import UntraceableError
from fwdad.frontend.syntax import catching
from fwdad.frontend.syntax.blocks import Blocks
from fwdad.frontend.syntax.control import branch, join_sides, negation, raise_if
from fwdad.frontend.syntax.frame import FLOW
from fwdad.frontend.syntax.raising import (
    AlwaysRaises,
    exception_of,
    has_source,
    may_raise,
    refuse_vanishing,
)
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.ops import Op
from fwdad.ir.symbol import UNBOUND, Symbol


class Exceptions:
    """Execution of statements that raise, and of those that catch."""

    def __init__(self, tracer: Tracer, blocks: Blocks) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.position = tracer.position
        self.blocks = blocks
        self.handled: list[AlwaysRaises] = []  # exceptions whose handlers are traced

    def run_Assert(self, node: ast.Assert) -> None:
        condition = self.tracer.test(node.test)
        arguments = () if node.msg is None else (self.tracer.evaluate(node.msg),)
        self.position.at(node)
        if type(condition) is Symbol:
            raise_if(
                self.recorder, negation(self.recorder, condition), AssertionError, arguments
            ) if self.recorder.catchers else self.recorder.check(
                condition, AssertionError, arguments
            )
        elif not condition:
            raise AlwaysRaises(AssertionError, arguments)

    def run_Raise(self, node: ast.Raise) -> None:
        if node.exc is None:
            if not self.handled:
                raise AlwaysRaises(RuntimeError, ("No active exception to reraise",))
            raise self.handled[-1]
        if isinstance(node.exc, ast.Call) and not node.exc.keywords:
            cls = self.tracer.evaluate(node.exc.func)
            if isinstance(cls, type) and issubclass(cls, BaseException):
                arguments = ast.Tuple(node.exc.args, ast.Load())
                given = self.tracer.evaluate(ast.copy_location(arguments, node.exc))
                raise AlwaysRaises(cls, given)
        raise AlwaysRaises(self.tracer.evaluate(node.exc))

    def run_Try(self, node: ast.Try) -> None:
        depth, ops = len(self.recorder.journal.regions), self.recorder.block.ops
        before, failed, dead = len(ops), None, False
        try:
            self._try(node)
        except AlwaysRaises as raised:
            failed = raised
        if not node.finalbody:
            if failed is not None:
                raise failed
            return
        _, failed, dead = catching.close(self.recorder, depth, join_sides, None, failed)
        end, replaced = len(ops), None
        try:
            jumps = self._finally(node.finalbody, keeps=failed is None)
        except AlwaysRaises as raised:
            replaced, jumps = raised, True
        last = [op for part, first in self._since(end, ops, depth) for op in part[first:]]
        place = self.position.place_of(node)
        refuse_vanishing(self.recorder, ops[before:end], last, place, replaces=jumps)
        if replaced is not None:
            raise replaced
        if failed is None:
            catching.again(self.recorder, None, dead=dead)
        elif self.blocks.stopped() is not True:  # a jump in `finally` swallows the exception
            raise failed

    def _since(self, before: int, ops: list[Op], depth: int) -> list[tuple[list[Op], int]]:
        """What is written into a block since an index, and into those of points still open."""
        points = catching.trailing(self.recorder, depth)
        return [(ops, before), *((b.ops, 0) for p in points for b in (p.block, p.side.block))]

    def _try(self, node: ast.Try) -> None:
        """``try`` without its ``finally``."""
        recorder, ops = self.recorder, self.recorder.block.ops
        before, failed = len(ops), None
        catcher = catching.Catcher(recorder, self._caught(node))
        recorder.catchers.append(catcher)
        try:
            self.blocks.run_block(node.body)
        except AlwaysRaises as raised:
            failed = raised
        finally:
            recorder.catchers.pop()
        self._refuse_raising(node, catcher.wanted, self._since(before, ops, catcher.depth))
        try:
            if failed is not None:
                met, failed = failed, None
                self._handle(node, met)
            else:
                self._else(node)
        except AlwaysRaises as raised:
            failed = raised
        recorder.journal.disown(catcher.held)
        _, failed, dead = catching.close(
            recorder, catcher.depth, join_sides, None, failed, catcher,
            functools.partial(self._handle, node),
        )  # fmt: skip
        if failed is not None:
            raise failed
        catching.again(recorder, None, dead=dead)

    def _else(self, node: ast.Try) -> None:
        stopped = self.blocks.stopped() if node.orelse else True
        if stopped is False:
            self.blocks.run_block(node.orelse)
        elif stopped is not True:
            branch(
                self.recorder,
                stopped,
                self.blocks.has_returned,
                lambda: self.blocks.run_block(node.orelse),
            )

    def _caught(self, node: ast.Try) -> tuple[type[BaseException], ...]:
        """The exceptions that the handlers of a ``try`` catch."""
        wanted: list[Any] = []
        for handler in node.handlers:
            cls = BaseException if handler.type is None else self.tracer.evaluate(handler.type)
            wanted.extend(cls if isinstance(cls, tuple) else (cls,))
        return tuple(wanted)

    def _refuse_raising(self, node: ast.Try, wanted: Any, body: list[tuple[list[Op], int]]) -> None:
        """Refuse operations that may raise what is caught, or assume that they do not."""
        if not any(may_raise(op, wanted) for ops, first in body for op in ops[first:]):
            return
        place = self.position.place_of(node)
        if self.recorder.ways is None:
            message = (
                "a `try` around operations that may raise at run time cannot be traced: test "
                "the condition first"
            )
            raise UntraceableError(message, place)
        self.recorder.ways.catch(body, wanted, place)

    def _finally(self, statements: list[ast.stmt], *, keeps: bool) -> bool:
        """Execute ``finally``; returns whether it jumps. If it ``keeps`` jumps, it defers them."""
        local_names = self.position.frame.locals
        flags = {name: local_names[name] for name in FLOW}
        value = local_names.get("$value")
        if keeps:
            for name in FLOW:
                self.recorder.journal.bind(local_names, name, False)
        self.blocks.run_block(statements)
        jumps = self.blocks.stopped() is not False
        if keeps and not jumps:
            for name, flag in flags.items():
                self.recorder.journal.bind(local_names, name, flag)
            if value is not None:
                self.recorder.journal.bind(local_names, "$value", value)
        return jumps

    def _handle(self, node: ast.Try, raised: AlwaysRaises) -> None:
        for handler in node.handlers:
            wanted = (
                self.tracer.evaluate(handler.type) if handler.type is not None else BaseException
            )
            if raised.is_a(wanted):
                if handler.name or has_source(getattr(raised.exception, "__init__", None)):
                    instance = exception_of(raised, self.tracer.call)[1]
                if handler.name:
                    self.recorder.journal.own(vars(instance), namespace=True)
                    self.recorder.journal.bind(self.position.frame.locals, handler.name, instance)
                self.handled.append(raised)
                try:
                    self.blocks.run_block(handler.body)
                finally:
                    self.handled.pop()
                if handler.name:
                    self.recorder.journal.bind(self.position.frame.locals, handler.name, UNBOUND)
                return
        raise raised
