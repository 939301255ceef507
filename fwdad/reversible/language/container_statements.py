"""Statements on stacks and dictionaries: what ``push`` does, and what must hold around a move."""

from __future__ import annotations

import ast
from collections.abc import Callable

from fwdad.errors import CapacityError
from fwdad.reversible.language import nodes
from fwdad.reversible.language.places import text
from fwdad.reversible.language.program import Block, Require, Swap, Update
from fwdad.reversible.language.syntax import placed_at


def pushed(node: ast.AST, name: str, values: ast.expr, count: ast.expr, place: ast.expr) -> Block:
    """The statements of ``push``, whose inverse is ``pop``.

    ``values`` and ``count`` are the memory and the count of the stack ``name``.
    """
    top = placed_at(ast.Subscript(values, count, ast.Load()), node)
    some = placed_at(nodes.compare(count, ">", ast.Constant(0)), node)
    return [
        require_room(node, f"the stack '{name}'", name, count, values),
        Swap(node, top, place),
        Update(node, count, "+", ast.Constant(1)),
        Require(node, some, f"the length of the stack '{name}'", name, count, "more than 0"),
        require_zero(node, place),
    ]


def require_room(node: ast.AST, what: str, name: str, count: ast.expr, values: ast.expr) -> Require:
    """The requirement that there is room for one more."""
    test = placed_at(nodes.compare(count, "<", nodes.call("len", values)), node)
    size = f"the length of {what}, which does not grow beyond its capacity,"
    expected = "less than that: give it a larger capacity"
    return Require(node, test, size, name, count, expected, CapacityError)


def require_zero(node: ast.AST, place: ast.expr) -> Require:
    """The requirement that a place that a number is moved to is zero."""
    test = placed_at(nodes.compare(place, "==", ast.Constant(0)), node)
    return Require(node, test, "the place that a number is moved to", text(place), place, "0")


def contains_key(fields: Callable[[str], ast.expr], key: ast.expr) -> ast.expr:
    """Whether a dictionary has a key."""
    kept = nodes.element(fields("keys"), ast.Slice(None, fields("count")))
    return nodes.call(nodes.attribute(nodes.compare(kept, "==", key), "any"))
