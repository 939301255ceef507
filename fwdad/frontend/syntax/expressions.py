"""Expressions: names, subscripts, attributes, displays and calls."""

from __future__ import annotations

import ast
import operator
from collections import defaultdict
from typing import Any

import numpy as np

from fwdad.errors import Location, UntraceableError, is_library_file, type_in_words
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.syntax import growing, iteration
from fwdad.frontend.syntax.frame import WORLD, Closure, Frame
from fwdad.frontend.syntax.growing_tuples import growing_list
from fwdad.frontend.syntax.iterators import (
    Enumerated,
    Iterator,
    Range,
    Repeated,
    Reversed,
    Zipped,
)
from fwdad.frontend.syntax.operators import Operators
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.symbols import AppendedTo, Maybe, Poison
from fwdad.frontend.syntax.texts import joined, known_part
from fwdad.ir.symbol import UNBOUND, Symbol, UnknownText
from fwdad.ir.types import Number


class Expressions(Operators):
    """Evaluation of expressions."""

    # -- where we are

    def at(self, node: ast.AST) -> None:
        """Note the node that is being evaluated."""
        self.node = node

    def location(self) -> Location | None:
        """The location being evaluated; in a library's code, that of the user's call of it."""
        if self.node is None:
            return None
        library = is_library_file(self.frame.filename)
        return self.called_at if library else self.location_of(self.node)

    def place_of(self, node: ast.AST) -> Location | None:
        """A node's location; in a library's code, that of the user's call of it, if any."""
        return self.called_at if is_library_file(self.frame.filename) else self.location_of(node)

    def location_of(self, node: ast.AST) -> Location:
        """A node's location in the user's file."""
        end = getattr(node, "end_col_offset", None)
        return Location(
            self.frame.filename,
            getattr(node, "lineno", 1),
            getattr(node, "col_offset", 0) + 1,
            getattr(node, "end_lineno", None),
            None if end is None else end + 1,
        )

    # -- values

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression."""
        self.at(node)
        handle = getattr(self, f"eval_{type(node).__name__}", None)
        if handle is None:
            message = f"{type_in_words(node)} expression cannot be traced"
            raise UntraceableError(message, self.location())
        value = handle(node)
        self.at(node)
        return value

    def eval_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def eval_Name(self, node: ast.Name) -> Any:
        return self.lookup(node.id)

    def lookup(self, name: str) -> Any:
        """The content of a name, in Python's order of scopes."""
        home = self.frame.home(name)
        if home is not None:
            held = home.locals.get(name, UNBOUND)
            return self.readable(held, name, home.locals)
        cell = self.frame.find_cell(name)
        if cell is not None:
            return self.captured(cell.cell_contents, ("cell", cell), name)
        held = self.frame.globals.get(name, UNBOUND)
        if held is not UNBOUND:
            world = self.frame.globals.get(WORLD)
            path = ("item", self.frame.globals, name) if world is None else world(name)
            return held if path is None else self.captured(held, path, name)
        held = self.frame.find_builtin(name)
        if held is UNBOUND:
            raise AlwaysRaises(NameError, (f"name {name!r} is not defined",))
        return held

    def readable(
        self,
        held: Any,
        name: str,
        namespace: dict[str, Any],
        missing: tuple[type[Exception], str] | None = None,
    ) -> Any:
        """The value of a name with the content ``held``, or the exception that Python would raise.

        ``missing`` is that exception and its message; the default is that of a local name.
        """
        message = f"cannot access local variable {name!r} where it is not associated with a value"
        cls, message = missing or (UnboundLocalError, message)
        if held is UNBOUND:
            raise AlwaysRaises(cls, (message,))
        if isinstance(held, Poison):
            message = f"`{name}` cannot be used here: {held.reason}"
            raise UntraceableError(message, self.location())
        if isinstance(held, Maybe):
            self.recorder.check(held.flag, cls, (message,))
            self.recorder.journal.bind(namespace, name, held.value)
            return held.value
        return held

    def statement(self) -> Any:
        """A key of the statement that is executed, and of its call."""
        return id(self.frame), id(getattr(self.frame, "statement", None))

    def listed(self, x: Any) -> Any:
        """An iterable for code without a Python source, as a list."""
        lazy = (Iterator, Range, Enumerated, Zipped,
                Reversed, Repeated)  # fmt: skip
        return iteration.items(self, x) if isinstance(x, lazy) else x

    def eval_NamedExpr(self, node: ast.NamedExpr) -> Any:
        value = self.evaluate(node.value)
        self.assign(node.target, value)
        return value

    # -- subscripts

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        o, index = self.evaluate(node.value), self.evaluate_index(node.slice)
        self.at(node)
        return self.subscript(o, index)

    def evaluate_index(self, node: ast.expr) -> Any:
        """An index, with slices."""
        if isinstance(node, ast.Slice):
            parts = [node.lower, node.upper, node.step]
            return slice(*(None if p is None else self.number(self.evaluate(p)) for p in parts))
        if isinstance(node, ast.Tuple):
            found: list[Any] = []
            for item in node.elts:
                if isinstance(item, ast.Starred):
                    found.extend(iteration.items(self, self.evaluate(item.value)))
                else:
                    found.append(self.evaluate_index(item))
            return tuple(found)
        return self.number(self.evaluate(node))

    def subscript(self, o: Any, index: Any) -> Any:
        """``o[index]``."""
        o = self.number(o)
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
        method = self.python_method(o, "__getitem__")
        if method is not None:
            return self.call(method, (o, index), {})
        if isinstance(o, growing.Items):
            return o.item(index)
        if isinstance(o, Range):
            return self.binary_add(o.start, self.binary_mul(self._place(o, index), o.step))
        if isinstance(o, (Zipped, Enumerated, Iterator)):
            message = "an iterator has no items that can be taken by an index"
            raise UntraceableError(message, self.location())
        index = self.known(index)
        if isinstance(o, defaultdict) and index not in o:
            return self.missing(o, index)
        found = self.native(operator.getitem, o, index)
        if isinstance(found, (Maybe, Poison)):
            return self.readable(found, str(index), o)
        return self.made(found) if isinstance(index, slice) else found

    def _place(self, o: Range, index: Any) -> Any:
        """The offset of an item of a range from its start, in items."""
        length = self.range_length(o.start, o.stop, o.step)
        if isinstance(index, slice) or type(index) is Symbol:
            message = "only a known item of a range of unknown length can be taken"
            raise UntraceableError(message, self.location())
        k = index if index >= 0 else self.binary(operator.add, length, index)
        fits = self.truth(self.binary(operator.lt if index >= 0 else operator.ge, k,
                                      length if index >= 0 else 0))  # fmt: skip
        self.recorder.check(fits, IndexError, ("range object index out of range",))
        return k

    def set_subscript(self, o: Any, index: Any, value: Any) -> None:
        """``o[index] = value``."""
        if type(o) is Symbol or isinstance(o, np.ndarray):
            try:
                self.recorder.store(o, index, self.number(value))
            except IndexError as error:
                raise AlwaysRaises(error) from error
            return
        method = self.python_method(o, "__setitem__")
        if method is not None:
            self.call(method, (o, index, value), {})
            return
        if isinstance(o, growing.Items):
            o.refused("changing an item of")
        self.may_change(o)
        self.recorder.journal.touch(o)
        if isinstance(o, list) and isinstance(index, slice):
            value = iteration.items(self, value)
        self.native(operator.setitem, o, self.known(index), value)

    def known(self, x: Any) -> Any:
        """A value that must be known at tracing time; an input is assumed to keep its value."""
        if type(x) is Symbol:
            return self.force(x)
        if isinstance(x, UnknownText):
            self.refuse_text()
        if isinstance(x, tuple):
            return tuple(self.known(item) for item in x)
        if isinstance(x, slice):
            return slice(self.known(x.start), self.known(x.stop), self.known(x.step))
        return x

    # -- attributes

    def eval_Attribute(self, node: ast.Attribute) -> Any:
        o = self.evaluate(node.value)
        self.at(node)
        return self.attribute(o, self.mangled(node.attr))

    def mangled(self, name: str) -> str:
        """A private name as Python mangles it inside a class."""
        if not name.startswith("__") or name.endswith("__") or not self.frame.classes:
            return name
        stem = self.frame.classes[-1].lstrip("_")
        return f"_{stem}{name}" if stem else name

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
        self.at(node)
        return self.list_of(items)

    def list_of(self, items: list[Any]) -> Any:
        """A new list, made at the location that is being evaluated."""
        where = self.location()
        place = None if where is None else (where.filename, where.line, where.column)
        if place in self.growing:
            return growing_list(self, items, place)
        made = self.recorder.journal.fresh(items)
        self.recorder.places[id(made)] = (made, place)
        return made

    def eval_Set(self, node: ast.Set) -> Any:
        return self.recorder.journal.fresh(set(self._items(node.elts)))

    def eval_Dict(self, node: ast.Dict) -> Any:
        made = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                made.update(self.evaluate(value))
            else:
                made[self.known(self.evaluate(key))] = self.evaluate(value)
        return self.recorder.journal.fresh(made)

    def eval_Lambda(self, node: ast.Lambda) -> Any:
        return self.closure(node)

    def closure(self, node: Any) -> Closure:
        """A function that is defined here."""
        a = node.args
        frame: Frame | None = self.frame
        while frame is not None:
            frame.captured = True
            frame = frame.outer
        made = Closure(
            node,
            self.frame,
            tuple(self.evaluate(d) for d in a.defaults),
            {
                p.arg: self.evaluate(d)
                for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)
                if d is not None
            },
        )
        self.recorder.journal.own(made.held, namespace=True)
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
        return UnknownText(self.location(), text, (joined, *made)) if unknown else text

    def _appended_to(self, node: ast.Call) -> Any:
        """The list from outside in ``history.append(x)``; None for any other call."""
        f = node.func
        if not isinstance(f, ast.Attribute) or f.attr != "append" or len(node.args) != 1:
            return None
        if node.keywords or not isinstance(f.value, (ast.Name, ast.Attribute)):
            return None
        outer, self.appends = self.appends, True
        try:
            owner = self.evaluate(f.value)
        finally:
            self.appends = outer
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
            self.at(node)
            return self.appended_outside(outside, *args)
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            if keyword.arg is None:
                kwargs.update(value)
            else:
                kwargs[keyword.arg] = value
        self.at(node)
        return self.call(f, tuple(args), kwargs)
