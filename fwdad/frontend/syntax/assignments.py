"""Assignments: plain, augmented, in `:=`, and `del`."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.operators import BY_FUNCTION, OPERATORS
from fwdad.errors import UntraceableError
from fwdad.frontend.syntax import iteration
from fwdad.frontend.syntax.attributes import Attributes
from fwdad.frontend.syntax.growing_lists import growing_use
from fwdad.frontend.syntax.growing_lists.items import Items
from fwdad.frontend.syntax.raising import AlwaysRaises, recorded
from fwdad.frontend.syntax.scopes import Scopes
from fwdad.frontend.syntax.subscripts import Subscripts
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.ops import Block, Load, walk
from fwdad.ir.symbol import UNBOUND, Symbol


class Assignments:
    """Execution of assignments to targets of any kind."""

    def __init__(
        self, tracer: Tracer, subscripts: Subscripts, scopes: Scopes, attributes: Attributes
    ) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.position = tracer.position
        self.outside = tracer.outside
        self.values = tracer.values
        self.subscripts = subscripts
        self.scopes = scopes
        self.attributes = attributes

    def run_Assign(self, node: ast.Assign) -> None:
        value = self.tracer.unread(node.value)
        for target in node.targets:
            self.assign(target, value)

    def run_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.tracer.unread(node.value))

    def eval_NamedExpr(self, node: ast.NamedExpr) -> Any:
        value = self.tracer.evaluate(node.value)
        self.assign(node.target, value)
        return value

    def assign(self, target: ast.AST, value: Any) -> None:
        """Bind a target to a value."""
        if isinstance(target, ast.Name):
            self.scopes.bind_name(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value)
        elif isinstance(target, ast.Subscript):
            o, index = self.subscripts.parts_of(target)
            self.position.at(target)
            self.subscripts.set_subscript(o, index, value)
        elif isinstance(target, ast.Attribute):
            o = self.tracer.evaluate(target.value)
            self.position.at(target)
            self.attributes.set_attribute(o, self.position.frame.mangled(target.attr), value)
        else:
            message = "this assignment target cannot be traced"
            raise UntraceableError(message, self.position.place_of(target))

    def _unpack(self, target: ast.Tuple | ast.List, value: Any) -> None:
        names = target.elts
        starred = [k for k, t in enumerate(names) if isinstance(t, ast.Starred)]
        most = math.inf if starred else len(names) + 1  # of an iterator, Python asks for no more
        items = iteration.first_items(self.tracer, value, most)
        if starred:
            (k,) = starred
            after = len(names) - k - 1
            middle = self.recorder.journal.fresh(list(items[k : len(items) - after]))
            items = [*items[:k], middle, *items[len(items) - after :]]
        if len(items) != len(names):
            few = len(items) < len(names)
            what = "not enough values to unpack" if few else "too many values to unpack"
            raise AlwaysRaises(ValueError, (f"{what} (expected {len(names)})",))
        for t, item in zip(names, items, strict=True):
            self.assign(t.value if isinstance(t, ast.Starred) else t, item)

    def run_AugAssign(self, node: ast.AugAssign) -> None:
        function = OPERATORS[type(node.op)].function
        target = node.target
        if isinstance(target, ast.Name):
            old = self.tracer.evaluate(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            value = self.tracer.evaluate(node.value)
            self.position.at(node)
            if not _is_memory(old):
                self.assign(target, self.augmented(function, old, value))
                return
            self.update(old, Ellipsis, function, value)
            home = self.position.frame.home(target.id)
            if home is not None and home.locals.get(target.id) is not old:  # the value rebinds it
                self.assign(target, old)
        elif isinstance(target, ast.Subscript):
            o, index = self.subscripts.parts_of(target)
            if _is_memory(o):
                block, begin = self.recorder.block, len(self.recorder.block.ops)
                value = self.tracer.evaluate(node.value)
                self.position.at(node)
                if not self._is_written(o, block, begin):
                    self.update(o, index, function, value)
                elif self.recorder.block is block:
                    self._update_as_read(o, index, function, value, begin)
                else:  # what an exception leaves is open
                    message = (
                        "what is added in place writes into the same array, and may raise what "
                        "the program catches: compute it before, and give it a name"
                    )
                    raise UntraceableError(message, self.position.location())
                return
            old = self.tracer.subscript(o, index)
            value = self.tracer.evaluate(node.value)
            self.position.at(node)
            if not _is_memory(old):
                self.subscripts.set_subscript(o, index, self.augmented(function, old, value))
                return
            self.update(old, Ellipsis, function, value)
            is_kept = type(o) in (list, dict) and self.tracer.subscript(o, index) is old
            known = isinstance(o, (list, dict, tuple)) and not is_kept
            if known or self.values.python_method(o, "__setitem__") is not None:
                # as Python does: it may have been a copy, or computing the value has replaced it
                self.subscripts.set_subscript(o, index, old)
        else:
            assert isinstance(target, ast.Attribute)
            o, name = self.tracer.evaluate(target.value), self.position.frame.mangled(target.attr)
            old = self.tracer.attribute(o, name)
            value = self.tracer.evaluate(node.value)
            self.position.at(node)
            if not _is_memory(old):
                self.attributes.set_attribute(o, name, self.augmented(function, old, value))
                return
            self.update(old, Ellipsis, function, value)
            self.attributes.set_updated(o, name, old)

    def _is_written(self, a: Any, block: Block, begin: int) -> bool:
        """Whether what was traced since a place in a block may write into an array."""
        opened = self.recorder.blocks[self.recorder.blocks.index(block) + 1 :]
        since = [*block.ops[begin:], *(op for b in opened for op in b.ops)]
        written = [v for op in walk(Block(ops=since)) for v in op.writes()]
        return any(self.recorder.may_share(v, self.recorder.as_symbol(a).value) for v in written)

    def _update_as_read(
        self, a: Any, index: Any, function: Callable[..., Any], value: Any, begin: int
    ) -> None:
        """``a[index] op= value`` where what computes the value, at ``begin``, writes into a."""
        ops = self.recorder.block.ops
        since, ops[begin:] = ops[begin:], []
        old = self.tracer.subscript(a, index)  # which Python reads first
        ops += since
        made_by = self.recorder.definitions.made_by(old.value) if type(old) is Symbol else None
        if isinstance(made_by, Load) and made_by.view:
            self.update(a, index, function, value)
        else:
            self.recorder.store(a, index, self.augmented(function, old, value))

    def augmented(self, function: Callable[..., Any], held: Any, value: Any) -> Any:
        """``held op= value`` for anything but an array."""
        known = BY_FUNCTION[function]
        method = self.values.python_method(held, known.in_place_method)
        if method is not None:
            made = self.tracer.call(method, (held, value), {})
            if made is not NotImplemented:
                return made
        if isinstance(held, Items) and function is operator.add:
            growing_use.extend(self.tracer, held, value)
            return held
        if isinstance(held, (list, dict, set)):
            self.outside.may_change(held)
            self.recorder.journal.touch(held)
            if isinstance(held, list):
                times = function is operator.mul
                value = self.values.known(value) if times else iteration.items(self.tracer, value)
            assert known.in_place is not None
            return known.in_place(held, value)
        return self.tracer.binary(function, held, value)

    def update(self, a: Any, index: Any, function: Callable[..., Any], value: Any) -> None:
        """``a[index] op= value`` for an array."""
        whole = function is operator.floordiv and a.dtype.kind == "f"  # of which no update is known
        if function is operator.matmul or whole:  # NumPy computes the whole product first
            old = self.tracer.subscript(a, index)
            self.recorder.store(a, index, self.augmented(function, old, value))
            return
        recorded(self.recorder.update, self.recorder.as_symbol(a), index, function, value)

    def run_Delete(self, node: ast.Delete) -> None:
        for target in _flat(node.targets):
            if isinstance(target, ast.Name):
                self.recorder.journal.bind(self.position.frame.locals, target.id, UNBOUND)
            elif isinstance(target, ast.Subscript):
                self.subscripts.delete_subscript(*self.subscripts.parts_of(target))
            else:
                assert isinstance(target, ast.Attribute)
                o = self.tracer.evaluate(target.value)
                self.position.at(target)
                self.attributes.delete_attribute(o, self.position.frame.mangled(target.attr))


def _is_memory(x: Any) -> bool:
    return (type(x) is Symbol and x.is_array) or isinstance(x, np.ndarray)


def _flat(targets: list[ast.expr]) -> list[ast.expr]:
    """The targets of ``del a, (b, c)``, one by one."""
    found: list[ast.expr] = []
    for target in targets:
        if isinstance(target, (ast.Tuple, ast.List)):
            found.extend(_flat(target.elts))
        else:
            found.append(target)
    return found
