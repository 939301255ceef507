"""Expressions of a reversible program in Python, and the kinds of its variables."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fwdad.errors import FwdadError, IrreversibleError
from fwdad.reversible.arguments.kinds import (
    Exact,
    Kind,
    Numeric,
    is_value,
    kind_of,
)
from fwdad.reversible.language import nodes
from fwdad.reversible.language.places import (
    leaves,
    load,
    metadata,
    replaced,
    text,
    without_attributes,
)
from fwdad.reversible.language.program import (
    Allocate,
    Block,
    Define,
    For,
    Program,
    children,
)
from fwdad.reversible.language.syntax import evaluated, location
from fwdad.reversible.lowering.expression_kinds import place_kind, traced_kind
from fwdad.reversible.lowering.function_builder import FunctionBuilder, Names, define_function
from fwdad.reversible.numbers.fixed import Fixed, FixedNumber
from fwdad.reversible.numbers.logarithmic import Logarithmic, LogarithmicFormat, value_of


class ExpressionFunction(NamedTuple):
    """A function of what an expression reads, and its arguments where the expression stands."""

    name: str
    arguments: list[ast.expr]


class Expressions:
    """What expressions are, and how they are written."""

    def __init__(self, builder: FunctionBuilder) -> None:
        self.builder = builder

    @property
    def numeric(self) -> set[str]:
        """The variables that are numbers or arrays now."""
        return {n for n, k in self.builder.env.items() if is_value(k)}

    def kind(self, place: ast.expr) -> Kind:
        """The kind of a place that is updated."""
        kind = place_kind(place, self.builder.env, self.kind_of_expression)
        if kind is None:
            message = (
                f"'{text(place)}' has an array for an index: two of its elements may be the same"
            )
            raise IrreversibleError(message, location(self.builder.program.filename, place))
        return kind

    def parts(self, expression: ast.expr) -> tuple[list[tuple[ast.expr, Kind]], list[ast.expr]]:
        """The places that an expression reads, with their kinds, and the shapes that it reads."""
        read: dict[str, tuple[ast.expr, Kind]] = {}
        todo = leaves(expression, self.numeric)
        shapes = {text(m): m for m in metadata(expression, self.numeric)}
        while todo:
            leaf, indices = without_attributes(todo.pop(0))
            for index in indices:  # x.T[i] reads x, and i
                todo.extend(leaves(index, self.numeric))
                shapes |= {text(m): m for m in metadata(index, self.numeric)}
            kind = place_kind(leaf, self.builder.env, self.kind_of_expression)
            if kind is not None:
                read[text(leaf)] = (leaf, kind)
                continue
            # an array as an index: the base is read, and the index is a part of the expression
            base = leaf
            while place_kind(base, self.builder.env, self.kind_of_expression) is None:
                if not isinstance(base, ast.Subscript):
                    break
                todo.extend(leaves(base.slice, self.numeric))
                shapes |= {text(m): m for m in metadata(base.slice, self.numeric)}
                base = base.value
            read[text(base)] = (base, place_kind(base, self.builder.env, self.kind_of_expression))
        return list(read.values()), list(shapes.values())

    def kind_of_expression(self, e: ast.expr) -> Kind:
        """The kind of any value."""
        try:
            value = ast.literal_eval(e)
        except ValueError:
            pass
        else:
            return kind_of(value)
        exact = self.constructed(e)
        if exact is not None:
            of = self.kind_of_expression(exact[2])
            return Exact("float64", of.ndim, of.is_array, *exact[:2])
        read, shapes = self.parts(e)
        if len(read) == 1 and text(read[0][0]) == text(e):
            return read[0][1]
        name = self.as_function("value", e, read, shapes).name
        samples = [*(k for _, k in read), *(_ShapeSample(m, self) for m in shapes)]
        return traced_kind(self.builder.namespace[name], samples)

    def as_function(
        self,
        name: str,
        e: ast.expr,
        read: list[tuple[ast.expr, Kind]],
        shapes: list[ast.expr],
        *,
        weighted: Callable[[ast.expr, ast.expr], ast.expr] | None = None,
    ) -> ExpressionFunction:
        """A function of what an expression reads.

        With ``weighted`` it takes a weight before that, and returns ``weighted(weight, value)``.
        """
        weight = "w"
        names = Names(self.builder.program.names | set(self.builder.namespace) | {weight})
        by: dict[str, ast.expr] = {}
        arguments = []
        for leaf in (*(leaf for leaf, _ in read), *shapes):
            by[text(leaf)] = nodes.name(names.fresh(_readable(leaf)))
            arguments.append(self.lowered(leaf))
        params = [n.id for n in by.values()]  # type: ignore[attr-defined]
        value = replaced(e, by)
        if weighted is not None:
            params.insert(0, weight)
            value = weighted(nodes.name(weight), value)
        function = self.builder.names.fresh(name)
        define_function(nodes.define(function, params, [ast.Return(value)]), self.builder.namespace)
        return ExpressionFunction(function, arguments)

    def lowered(self, e: ast.expr) -> ast.expr:
        """An expression that reads values: of logarithmic numbers, logarithms are stored."""
        if not any(isinstance(k, Exact) and k.is_log for k in self.builder.env.values()):
            return e
        read, shapes = self.parts(e)
        by = {text(m): m for m in shapes}
        for leaf, kind in read:
            if isinstance(kind, Exact) and kind.is_log:
                by[text(leaf)] = self.value(leaf, kind)
        return replaced(e, by)

    def value(self, stored: ast.expr, kind: Exact) -> ast.expr:
        """The value of an exact number, from what is stored of it."""
        return (
            nodes.call(self.builder.bind("value_of", value_of), stored) if kind.is_log else stored
        )

    def outside(self, node: ast.expr) -> Any:
        """What an expression of the world outside means."""
        return evaluated(load(node), self.builder.namespace)

    def constructed(self, e: ast.expr) -> tuple[Any, type, ast.expr] | None:
        """Format, class and value, if an expression makes an exact number: ``F(0.0)``."""
        if not isinstance(e, ast.Call) or len(e.args) < 1:
            return None
        f = self._constructor(e.func)
        if isinstance(f, Fixed) and len(e.args) == 1 and not e.keywords:
            return f, FixedNumber, e.args[0]
        if f is Logarithmic:
            options = [*e.args[1:], *(k.value for k in e.keywords)]
            bits = ast.literal_eval(options[0]) if options else Logarithmic.BITS
            return LogarithmicFormat(bits), Logarithmic, e.args[0]
        return None

    def _constructor(self, f: ast.expr) -> Any:
        """What a function's expression means in the world outside; None if nothing."""
        if leaves(f, set(self.builder.env)):
            return None
        if isinstance(f, ast.Call) and self._constructor(f.func) is not Fixed:
            return None
        if not isinstance(f, (ast.Name, ast.Attribute, ast.Call)):
            return None
        try:
            return self.outside(f)
        except (NameError, AttributeError, FwdadError):
            return None

    def constructed_from(self, e: ast.expr) -> ast.expr:
        """The value that an expression makes an exact number from; else the expression."""
        exact = self.constructed(e)
        return e if exact is None else exact[2]


class _ShapeSample:
    """Stands among kinds for a length or a shape."""

    def __init__(self, node: ast.expr, expressions: Expressions) -> None:
        base = node.args[0] if isinstance(node, ast.Call) else node.value  # type: ignore[attr-defined]
        kind = expressions.kind(base)
        shape = (2,) * kind.ndim
        length = isinstance(node, ast.Call)
        name = "len" if length else node.attr  # type: ignore[attr-defined]
        values = {"len": 2, "shape": shape, "ndim": kind.ndim, "size": 2**kind.ndim}
        self._value: Any = np.dtype(kind.dtype) if name == "dtype" else values[name]

    def sample(self) -> Any:
        """Any value of it."""
        return self._value


def infer_kinds(program: Program, expressions: Expressions) -> None:
    """Find the kinds of all variables of a program, in the direction in which it was written."""
    _infer(program.body, expressions)


def _infer(block: Block, expressions: Expressions) -> None:
    builder = expressions.builder
    for s in block:
        if isinstance(s, (Allocate, Define)):
            kind = expressions.kind_of_expression(s.value)
            if isinstance(s, Define):
                read, _ = expressions.parts(s.value)
                if kind.active and any(k.active for _, k in read):
                    message = (
                        f"'{s.variable.name}' depends on numbers that are differentiated: begin it "
                        "as fwdad.reversible.ancilla(...)"
                    )
                    raise builder.refuse(message, s)
            builder.kinds[s.variable] = builder.env[s.variable.name] = kind
        elif isinstance(s, For):
            builder.env[s.variable.name] = Numeric("int64")
        for inner in children(s):
            _infer(inner, expressions)


def _readable(node: ast.expr) -> str:
    """A name for what an expression reads."""
    parts = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    word = "_".join(dict.fromkeys(parts)) or "value"
    for n in ast.walk(node):
        if isinstance(n, ast.Attribute):
            word += f"_{n.attr}"
    return word if word.isidentifier() else "value"
