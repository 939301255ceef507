"""Expressions: names, subscripts, attributes, displays and calls."""

from __future__ import annotations

import ast
import operator
from collections import defaultdict
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError, type_in_words
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.syntax import growing, iteration
from fwdad.frontend.syntax.frame import WORLD, Closure, Frame
from fwdad.frontend.syntax.growing_tuples import list_of
from fwdad.frontend.syntax.iterators import (
    Enumerated,
    Iterator,
    Range,
    Zipped,
)
from fwdad.frontend.syntax.lengths import binary_add, binary_mul, length_of_range
from fwdad.frontend.syntax.operators import Operators
from fwdad.frontend.syntax.raising import AlwaysRaises, native
from fwdad.frontend.syntax.symbols import AppendedTo, Maybe, Poison
from fwdad.frontend.syntax.texts import joined, known_part
from fwdad.ir.symbol import UNBOUND, Symbol, UnknownText
from fwdad.ir.types import Number


class Expressions(Operators):
    """Evaluation of expressions."""

    # -- where we are

    # -- values

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression."""
        self.position.at(node)
        handle = getattr(self, f"eval_{type(node).__name__}", None)
        if handle is None:
            message = f"{type_in_words(node)} expression cannot be traced"
            raise UntraceableError(message, self.position.location())
        value = handle(node)
        self.position.at(node)
        return value

    def eval_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def eval_Name(self, node: ast.Name) -> Any:
        return self.lookup(node.id)

    def lookup(self, name: str) -> Any:
        """The content of a name, in Python's order of scopes."""
        home = self.position.frame.home(name)
        if home is not None:
            held = home.locals.get(name, UNBOUND)
            return self.values.readable(held, name, home.locals)
        cell = self.position.frame.find_cell(name)
        if cell is not None:
            return self.outside.captured(cell.cell_contents, ("cell", cell), name)
        held = self.position.frame.globals.get(name, UNBOUND)
        if held is not UNBOUND:
            world = self.position.frame.globals.get(WORLD)
            path = ("item", self.position.frame.globals, name) if world is None else world(name)
            return held if path is None else self.outside.captured(held, path, name)
        held = self.position.frame.find_builtin(name)
        if held is UNBOUND:
            raise AlwaysRaises(NameError, (f"name {name!r} is not defined",))
        return held

    def eval_NamedExpr(self, node: ast.NamedExpr) -> Any:
        value = self.evaluate(node.value)
        self.assign(node.target, value)
        return value

    # -- subscripts

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        o, index = self.evaluate(node.value), self.evaluate_index(node.slice)
        self.position.at(node)
        return self.subscript(o, index)

    def evaluate_index(self, node: ast.expr) -> Any:
        """An index, with slices."""
        if isinstance(node, ast.Slice):
            parts = [node.lower, node.upper, node.step]
            return slice(
                *(None if p is None else self.values.number(self.evaluate(p)) for p in parts)
            )
        if isinstance(node, ast.Tuple):
            found: list[Any] = []
            for item in node.elts:
                if isinstance(item, ast.Starred):
                    found.extend(iteration.items(self, self.evaluate(item.value)))
                else:
                    found.append(self.evaluate_index(item))
            return tuple(found)
        return self.values.number(self.evaluate(node))

    def subscript(self, o: Any, index: Any) -> Any:
        """``o[index]``."""
        o = self.values.number(o)
        if isinstance(o, np.ndarray):
            o = self.recorder.as_symbol(o)
        if type(o) is Symbol:
            if not o.is_array:
                if isinstance(o.type, Number) and o.type.python:
                    message = f"'{o.type}' object is not subscriptable"
                    raise AlwaysRaises(TypeError, (message,))
                if isinstance(index, tuple) and not index:
                    return o
                o = self.recorder.apply(np.asarray, (o,), {})
            try:
                return self.recorder.load(o, index)
            except IndexError as error:
                raise AlwaysRaises(error) from error
        method = self.values.python_method(o, "__getitem__")
        if method is not None:
            return self.call(method, (o, index), {})
        if isinstance(o, growing.Items):
            return o.item(index)
        if isinstance(o, Range):
            return binary_add(self, o.start, binary_mul(self, self._place(o, index), o.step))
        if isinstance(o, (Zipped, Enumerated, Iterator)):
            message = "an iterator has no items that can be taken by an index"
            raise UntraceableError(message, self.position.location())
        index = self.values.known(index)
        if isinstance(o, defaultdict) and index not in o:
            return self.missing(o, index)
        found = native(operator.getitem, o, index)
        if isinstance(found, (Maybe, Poison)):
            return self.values.readable(found, str(index), o)
        return self.values.made(found) if isinstance(index, slice) else found

    def _place(self, o: Range, index: Any) -> Any:
        """The offset of an item of a range from its start, in items."""
        length = length_of_range(self.recorder, o.start, o.stop, o.step)
        if isinstance(index, slice) or type(index) is Symbol:
            message = "only a known item of a range of unknown length can be taken"
            raise UntraceableError(message, self.position.location())
        k = index if index >= 0 else self.binary(operator.add, length, index)
        fits = self.truth(self.binary(operator.lt if index >= 0 else operator.ge, k,
                                      length if index >= 0 else 0))  # fmt: skip
        self.recorder.check(fits, IndexError, ("range object index out of range",))
        return k

    def set_subscript(self, o: Any, index: Any, value: Any) -> None:
        """``o[index] = value``."""
        if type(o) is Symbol or isinstance(o, np.ndarray):
            try:
                self.recorder.store(o, index, self.values.number(value))
            except IndexError as error:
                raise AlwaysRaises(error) from error
            return
        method = self.values.python_method(o, "__setitem__")
        if method is not None:
            self.call(method, (o, index, value), {})
            return
        if isinstance(o, growing.Items):
            o.refused("changing an item of")
        self.outside.may_change(o)
        self.recorder.touch(o)
        if isinstance(o, list) and isinstance(index, slice):
            value = iteration.items(self, value)
        native(operator.setitem, o, self.values.known(index), value)

    # -- attributes

    def eval_Attribute(self, node: ast.Attribute) -> Any:
        o = self.evaluate(node.value)
        self.position.at(node)
        return self.attribute(o, self.position.frame.mangled(node.attr))

    # -- displays and comprehensions

    def _items(self, nodes: list[ast.expr]) -> list[Any]:
        made = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                made.extend(iteration.items(self, self.evaluate(node.value)))
            else:
                made.append(self.evaluate(node))
        return made

    def eval_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self._items(node.elts))

    def eval_List(self, node: ast.List) -> Any:
        items = self._items(node.elts)
        self.position.at(node)
        return list_of(self, items)

    def eval_Set(self, node: ast.Set) -> Any:
        return self.recorder.fresh(set(self._items(node.elts)))

    def eval_Dict(self, node: ast.Dict) -> Any:
        made = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                made.update(self.evaluate(value))
            else:
                made[self.values.known(self.evaluate(key))] = self.evaluate(value)
        return self.recorder.fresh(made)

    def eval_Lambda(self, node: ast.Lambda) -> Any:
        return self.closure(node)

    def closure(self, node: Any) -> Closure:
        """A function that is defined here."""
        a = node.args
        frame: Frame | None = self.position.frame
        while frame is not None:
            frame.captured = True
            frame = frame.outer
        made = Closure(
            node,
            self.position.frame,
            tuple(self.evaluate(d) for d in a.defaults),
            {
                p.arg: self.evaluate(d)
                for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)
                if d is not None
            },
        )
        self.recorder.own(made.held, namespace=True)
        return made

    def eval_JoinedStr(self, node: ast.JoinedStr) -> Any:
        parts, unknown = [], False
        made: list[Any] = []  # what the text is made of when the program runs
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(str(part.value))
                made.append(parts[-1])
                continue
            assert isinstance(part, ast.FormattedValue)
            value = self.evaluate(part.value)
            if mentions_symbols(value):
                unknown = True
                parts.append(known_part(value))
                given = self.eval_JoinedStr(part.format_spec) if part.format_spec else ""  # type: ignore[arg-type]
                made.append((value, part.conversion, given))
                continue
            convert: Any = {115: str, 114: repr, 97: ascii}.get(part.conversion, lambda x: x)
            converted = convert(value)
            spec = self.eval_JoinedStr(part.format_spec) if part.format_spec is not None else ""  # type: ignore[arg-type]
            if mentions_symbols(spec):
                unknown = True
                parts.append("…")
                made.append((value, part.conversion, spec))
                continue
            parts.append(format(converted, spec))
            made.append(parts[-1])
        text = "".join(parts)
        return UnknownText(self.position.location(), text, (joined, *made)) if unknown else text

    def _appended_to(self, node: ast.Call) -> Any:
        """The list from outside in ``history.append(x)``; None for any other call."""
        f = node.func
        if not isinstance(f, ast.Attribute) or f.attr != "append" or len(node.args) != 1:
            return None
        if node.keywords or not isinstance(f.value, (ast.Name, ast.Attribute)):
            return None
        outer, self.outside.appends = self.outside.appends, True
        try:
            owner = self.evaluate(f.value)
        finally:
            self.outside.appends = outer
        return owner.items if isinstance(owner, AppendedTo) else None

    def eval_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            return self.super()
        if self._is_sum_of_generator(node):
            return self._sum(node)
        outside = self._appended_to(node)
        f = self.evaluate(node.func) if outside is None else outside.append
        args = self._items(node.args)
        if outside is not None:
            self.position.at(node)
            return self.appended_outside(outside, *args)
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            if keyword.arg is None:
                kwargs.update(value)
            else:
                kwargs[keyword.arg] = value
        self.position.at(node)
        return self.call(f, tuple(args), kwargs)
