"""Helpers for Python's syntax trees: locations, the meaning of names, and replacing nodes."""

from __future__ import annotations

import ast
import builtins
from types import FunctionType
from typing import Any

from fwdad.errors import Location
from fwdad.reversible.language import nodes


def place_outside(f: FunctionType, name: str) -> tuple[Any, ...] | None:
    """Where a name stands that a function does not assign, as tapes write it; not for builtins."""
    code = f.__code__
    if name in code.co_freevars and f.__closure__ is not None:
        return ("cell", f.__closure__[code.co_freevars.index(name)])
    return ("item", f.__globals__, name) if name in f.__globals__ else None


def outside(f: FunctionType, name: str, default: Any = None) -> Any:
    """What a name means in a function that does not assign it."""
    place = place_outside(f, name)
    if place is None:
        return getattr(builtins, name, default)
    if place[0] == "item":
        return f.__globals__[name]
    try:
        return place[1].cell_contents
    except ValueError:
        return default


def location(filename: str, node: ast.AST) -> Location | None:
    """The location of a node of the source."""
    line = getattr(node, "lineno", None)
    if line is None:
        return None
    end = getattr(node, "end_col_offset", None)
    return Location(
        filename,
        line,
        node.col_offset + 1,  # type: ignore[attr-defined]
        getattr(node, "end_lineno", None),
        None if end is None else end + 1,
    )


def is_docstring(node: ast.stmt) -> bool:
    """Whether a statement is a text by itself."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def stored(node: ast.AST) -> list[ast.Name]:
    """The names that a statement assigns."""
    return [n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


class Replace(ast.NodeTransformer):
    """An expression for a name."""

    def __init__(self, name: str, by: ast.expr) -> None:
        self.name = name
        self.by = by

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """The expression, where the name is read."""
        if node.id != self.name or isinstance(node.ctx, ast.Store):
            return node
        return ast.copy_location(nodes.copy_of(self.by), node)


def beginning(value: ast.expr, name: str) -> ast.expr:
    """What a field of a new container is."""
    return ast.Constant(0) if name == "count" else placed_at(field_of(value, name), value)


class ContainerFields(ast.NodeTransformer):
    """Variables for the fields of ancillas."""

    def __init__(self, variables: dict[str, dict[str, Any]]) -> None:
        self.variables = variables

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """The variable of a field."""
        value = node.value
        parts = self.variables.get(value.id) if isinstance(value, ast.Name) else None
        if parts is not None and node.attr in parts:
            return ast.copy_location(ast.Name(parts[node.attr], node.ctx), node)
        self.generic_visit(node)
        return node


def field_of(owner: ast.expr, name: str) -> ast.expr:
    """A field of what an expression returns."""
    return ast.Attribute(nodes.copy_of(owner), name, ast.Load())


def placed_at(expression: ast.expr, node: ast.AST) -> ast.expr:
    """A copy of an expression with the location of a node of the source."""
    expression = nodes.copy_of(expression)
    for n in ast.walk(expression):
        ast.copy_location(n, node)
    return expression


def evaluated(expression: ast.expr, namespace: dict[str, Any]) -> Any:
    """The value of an expression in a namespace."""
    tree = ast.fix_missing_locations(ast.Expression(expression))
    return eval(compile(tree, "<fwdad reversible>", "eval"), namespace)  # noqa: S307  (the user's)
