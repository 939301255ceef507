"""Expressions: constants, displays, formatted texts, and calls."""

from __future__ import annotations

import ast
from typing import Any

from fwdad.frontend.calls.calls import Calls
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.syntax import iteration
from fwdad.frontend.syntax.attributes import Attributes
from fwdad.frontend.syntax.comprehensions import Comprehensions
from fwdad.frontend.syntax.growing_lists.making import list_of
from fwdad.frontend.syntax.symbols import AppendedTo
from fwdad.frontend.syntax.texts import joined, known_part
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import UnknownText


class Expressions:
    """Evaluation of constants, displays, texts and calls."""

    def __init__(
        self, tracer: Tracer, attributes: Attributes, comprehensions: Comprehensions, calls: Calls
    ) -> None:
        self.tracer = tracer
        self.recorder = tracer.recorder
        self.position = tracer.position
        self.outside = tracer.outside
        self.values = tracer.values
        self.attributes = attributes
        self.comprehensions = comprehensions
        self.calls = calls

    def eval_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def _items(self, nodes: list[ast.expr]) -> list[Any]:
        items = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                items.extend(iteration.items(self.tracer, self.tracer.evaluate(node.value)))
            else:
                items.append(self.tracer.evaluate(node))
        return items

    def eval_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self._items(node.elts))

    def eval_List(self, node: ast.List) -> Any:
        items = self._items(node.elts)
        self.position.at(node)
        return list_of(self.tracer, items)

    def eval_Set(self, node: ast.Set) -> Any:
        return self.recorder.journal.fresh(set(self._items(node.elts)))

    def eval_Dict(self, node: ast.Dict) -> Any:
        result = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                result.update(self.tracer.evaluate(value))
            else:
                name = self.values.known(self.tracer.evaluate(key))
                result[name] = self.tracer.evaluate(value)
        return self.recorder.journal.fresh(result)

    def eval_JoinedStr(self, node: ast.JoinedStr) -> Any:
        parts, unknown = [], False
        texts: list[Any] = []  # what the text is made of when the program runs
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(str(part.value))
                texts.append(parts[-1])
                continue
            assert isinstance(part, ast.FormattedValue)
            value = self.tracer.evaluate(part.value)
            if mentions_symbols(value):
                unknown = True
                parts.append(known_part(value))
                format_spec = self.eval_JoinedStr(part.format_spec) if part.format_spec else ""  # type: ignore[arg-type]
                texts.append((value, part.conversion, format_spec))
                continue
            convert: Any = {115: str, 114: repr, 97: ascii}.get(part.conversion, lambda x: x)
            converted = self.outside.in_c(convert, value)
            spec = self.eval_JoinedStr(part.format_spec) if part.format_spec is not None else ""  # type: ignore[arg-type]
            if mentions_symbols(spec):
                unknown = True
                parts.append("…")
                texts.append((value, part.conversion, spec))
                continue
            parts.append(self.outside.in_c(format, converted, spec))
            texts.append(parts[-1])
        text = "".join(parts)
        return UnknownText(self.position.location(), text, (joined, *texts)) if unknown else text

    def _appended_to(self, node: ast.Call) -> Any:
        """The list from outside in ``history.append(x)``; None for any other call."""
        f = node.func
        if not isinstance(f, ast.Attribute) or f.attr != "append" or len(node.args) != 1:
            return None
        if node.keywords or not isinstance(f.value, (ast.Name, ast.Attribute)):
            return None
        outer, self.outside.appends = self.outside.appends, True
        try:
            owner = self.tracer.evaluate(f.value)
        finally:
            self.outside.appends = outer
        return owner.items if isinstance(owner, AppendedTo) else None

    def eval_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            return self.attributes.super()
        if self.comprehensions.is_sum_of_generator(node):
            return self.comprehensions.sum_of_generator(node)
        outside = self._appended_to(node)
        f = self.tracer.evaluate(node.func) if outside is None else outside.append
        args = self._items(self.comprehensions.taken_whole(f, node.args))
        if outside is not None:
            self.position.at(node)
            return self.calls.appended_outside(outside, *args)
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.tracer.evaluate(keyword.value)
            if keyword.arg is None:
                kwargs.update(value)
            else:
                kwargs[keyword.arg] = value
        self.position.at(node)
        return self.tracer.call(f, tuple(args), kwargs)
