"""Expressions of a reversible program as source, and the kinds of its variables."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from fwdad.errors import IrreversibleError
from fwdad.reversible import exact
from fwdad.reversible.kinds import (
    Exact,
    Function,
    Kind,
    Numeric,
    Other,
    kind_of,
    place_kind,
    traced_kind,
)
from fwdad.reversible.lines import Lines, Names, make_function
from fwdad.reversible.places import leaves, metadata, replaced, text, without_attributes
from fwdad.reversible.program import (
    Allocate,
    Block,
    Compute,
    Define,
    For,
    If,
    Program,
    Unchecked,
    While,
)
from fwdad.reversible.syntax import location


class Expressions(Lines):
    """What expressions are, and how they are written."""

    @property
    def numeric(self) -> set[str]:
        """The variables that are numbers or arrays now."""
        return {n for n, k in self.env.items() if not isinstance(k, (Function, Other))}

    def kind(self, place: ast.expr) -> Kind:
        """The kind of a place that is updated."""
        found = place_kind(place, self.env, self.kind_of_expression)
        if found is None:
            message = f"'{text(place)}' has an array for an index: two of its elements may be one"
            raise IrreversibleError(message, location(self.program.filename, place))
        return found

    def parts(self, expression: ast.expr) -> tuple[list[tuple[ast.expr, Kind]], list[ast.expr]]:
        """The places that an expression reads, with their kinds, and the shapes it asks for."""
        found: dict[str, tuple[ast.expr, Kind]] = {}
        todo = leaves(expression, self.numeric)
        shapes = {text(m): m for m in metadata(expression, self.numeric)}
        while todo:
            leaf, indices = without_attributes(todo.pop(0))
            for index in indices:  # x.T[i] reads x, and i
                todo.extend(leaves(index, self.numeric))
                shapes |= {text(m): m for m in metadata(index, self.numeric)}
            kind = place_kind(leaf, self.env, self.kind_of_expression)
            if kind is not None:
                found[text(leaf)] = (leaf, kind)
                continue
            # an array as an index: the base is read, and the index is a part of the expression
            base = leaf
            while place_kind(base, self.env, self.kind_of_expression) is None:
                if not isinstance(base, ast.Subscript):
                    break
                todo.extend(leaves(base.slice, self.numeric))
                shapes |= {text(m): m for m in metadata(base.slice, self.numeric)}
                base = base.value
            found[text(base)] = (base, place_kind(base, self.env, self.kind_of_expression))
        return list(found.values()), list(shapes.values())

    def kind_of_expression(self, e: ast.expr) -> Kind:
        """The kind of any value."""
        try:
            value = ast.literal_eval(e)
        except ValueError:
            pass
        else:
            return kind_of(value)
        made = exact.constructed(self, e)
        if made is not None:
            of = self.kind_of_expression(made[2])
            return Exact("float64", of.ndim, of.is_array, *made[:2])
        read, shapes = self.parts(e)
        if len(read) == 1 and text(read[0][0]) == text(e):
            return read[0][1]
        name, args = self.as_function("value", e, [(leaf, k) for leaf, k in read], shapes)
        kinds = [k for _, k in read]
        samples = [*kinds, *(_ShapeSample(m, self) for m in shapes)]
        del args
        return traced_kind(self.namespace[name], samples)

    def as_function(
        self,
        name: str,
        e: ast.expr,
        read: list[tuple[ast.expr, Kind]],
        shapes: list[ast.expr],
        *,
        before: str = "",
        wrap: str = "{}",
    ) -> tuple[str, list[str]]:
        """A function of what an expression reads; its name, and its arguments as they are here."""
        names = Names(self.program.names | set(self.namespace) | {before})
        by: dict[str, ast.expr] = {}
        args = []
        for leaf in (*(leaf for leaf, _ in read), *shapes):
            by[text(leaf)] = ast.Name(names.fresh(_readable(leaf)), ast.Load())
            args.append(self.code(leaf))
        params = [n.id for n in by.values()]  # type: ignore[attr-defined]
        if before:
            params.insert(0, before)
        body = wrap.format(text(replaced(e, by)))
        found = self.names.fresh(name)
        code = f"def {found}({', '.join(params)}):\n    return {body}\n"
        make_function(code, found, self.namespace)
        self.helper(found, code)
        return found, args

    def code(self, e: ast.expr) -> str:
        """An expression as source."""
        return exact.read(self, e)

    def helper(self, name: str, code: str) -> None:
        """Called with each function that is defined for the source."""

    def outside(self, node: ast.expr) -> Any:
        """What an expression of the world outside means."""
        return eval(text(node), self.namespace)  # noqa: S307  (a name of the user's source)


class _ShapeSample:
    """Stands among kinds for a length or a shape."""

    def __init__(self, node: ast.expr, writer: Expressions) -> None:
        base = node.args[0] if isinstance(node, ast.Call) else node.value  # type: ignore[attr-defined]
        kind = writer.kind(base)
        shape = (2,) * kind.ndim
        length = isinstance(node, ast.Call)
        name = "len" if length else node.attr  # type: ignore[attr-defined]
        values = {"len": 2, "shape": shape, "ndim": kind.ndim, "size": 2**kind.ndim}
        self._value: Any = np.dtype(kind.dtype) if name == "dtype" else values[name]

    def sample(self) -> Any:
        """Any value of it."""
        return self._value


def infer_kinds(program: Program, writer: Expressions) -> None:
    """Find the kinds of all variables of a program, in the direction in which it was written."""
    _infer(program.body, writer)


def _infer(block: Block, w: Expressions) -> None:
    for s in block:
        if isinstance(s, (Allocate, Define)):
            kind = w.kind_of_expression(s.value)
            if isinstance(s, Define):
                read, _ = w.parts(s.value)
                if kind.active and any(k.active for _, k in read):
                    message = (
                        f"'{s.variable.name}' depends on numbers that are differentiated: it needs "
                        "a place of its own, fwdad.ancilla(...)"
                    )
                    raise w.refuse(message, s)
            w.kinds[s.variable] = w.env[s.variable.name] = kind
        elif isinstance(s, For):
            w.env[s.variable.name] = Numeric("int64")
        if isinstance(s, If):
            _infer(s.body, w)
            _infer(s.orelse, w)
        elif isinstance(s, Compute):
            _infer(s.body, w)
            _infer(s.inside, w)
        elif isinstance(s, (Define, While, For, Unchecked)):
            _infer(s.body, w)


def _readable(node: ast.expr) -> str:
    """A name for what an expression reads."""
    parts = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    word = "_".join(dict.fromkeys(parts)) or "value"
    for n in ast.walk(node):
        if isinstance(n, ast.Attribute):
            word += f"_{n.attr}"
    return word if word.isidentifier() else "value"
