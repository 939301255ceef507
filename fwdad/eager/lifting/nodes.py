"""Nodes of syntax trees, at the positions of those that they stand for."""

from __future__ import annotations

import ast
from typing import Any

PREFIX = "_fwdad_"
"""With which the names begin that lifting adds."""


def hook(name: str, at: ast.AST, *args: ast.expr) -> ast.Call:
    """A call of a hook."""
    function = ast.copy_location(ast.Name(PREFIX + name, ast.Load()), at)
    return ast.copy_location(ast.Call(function, list(args), []), at)


def name_of(name: str, context: ast.expr_context, at: ast.AST) -> ast.Name:
    """A name."""
    return ast.copy_location(ast.Name(name, context), at)


def constant(value: Any, at: ast.AST) -> ast.Constant:
    """A constant."""
    return ast.copy_location(ast.Constant(value), at)


def forget(name: str, at: ast.AST) -> ast.stmt:
    """A statement that deletes a name."""
    return ast.copy_location(ast.Delete([name_of(name, ast.Del(), at)]), at)


def function_of(names: list[str], body: ast.expr, at: ast.AST) -> ast.Lambda:
    """A ``lambda``."""
    arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    return ast.copy_location(ast.Lambda(arguments, body), at)


def subscript_index(node: ast.expr) -> ast.expr:
    """A subscript's index as an expression that is valid anywhere: slices become calls."""
    if isinstance(node, ast.Slice):
        parts = [
            p if p is not None else ast.Constant(None) for p in (node.lower, node.upper, node.step)
        ]
        call = ast.Call(ast.Name(PREFIX + "slice", ast.Load()), parts, [])
        return ast.copy_location(call, node)
    if isinstance(node, ast.Tuple) and any(isinstance(e, ast.Slice) for e in node.elts):
        return ast.copy_location(
            ast.Tuple([subscript_index(e) for e in node.elts], ast.Load()), node
        )
    return node
