"""The scope of a reversible function while it is read: what names mean, which have values."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from fwdad.errors import IrreversibleError
from fwdad.reversible.language import keywords
from fwdad.reversible.language.places import text
from fwdad.reversible.language.program import Variable
from fwdad.reversible.language.syntax import field_of, location, outside, placed_at

_MISSING = object()


class Scope:
    """What is known of the names of a function while it is read.

    ``room`` is the capacity of stacks and dictionaries without one of their own.
    """

    def __init__(self, f: FunctionType, node: ast.FunctionDef, filename: str, room: int) -> None:
        a = node.args
        self.parameters = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
        self.room = room
        self.grows = False
        self.f = f
        self.filename = filename
        self.names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        self.locals = {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        self.live: list[dict[str, Variable]] = [{}]
        self.defined: list[str] = []
        self.count = 0
        self.containers: dict[
            str, tuple[type, dict[str, str]]
        ] = {}  # ancillas of several variables
        self.ended: set[str] = set()  # those of them that have been freed

    def refuse(self, message: str, node: ast.AST) -> IrreversibleError:
        """The error for a node, with its place."""
        return IrreversibleError(message, location(self.filename, node))

    def has_value(self, name: str) -> bool:
        """Whether a name is a parameter, or has begun and not ended."""
        begun = any(name in names for names in self.live)
        return begun or name in self.defined or name in self.parameters

    def fresh(self, name: str) -> str:
        """A name like the wanted one that the function does not use."""
        while name in self.names:
            self.count += 1
            name = f"{name}_{self.count}"
        self.names.add(name)
        return name

    def meaning(self, node: ast.expr) -> Any:
        """What a name of the world outside refers to now, or a marker for nothing."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            f = self.meaning(node.operand)
            return ~f if callable(f) and hasattr(f, "__invert__") else _MISSING
        if isinstance(node, ast.Attribute):
            owner = self.meaning(node.value)
            return _MISSING if owner is _MISSING else getattr(owner, node.attr, _MISSING)
        if not isinstance(node, ast.Name) or node.id in self.locals:
            return _MISSING
        return outside(self.f, node.id, _MISSING)

    def is_function(self, node: ast.expr) -> bool:
        """Whether an argument is a function of the world outside."""
        return callable(self.meaning(node))

    def place(self, node: ast.expr) -> ast.expr:
        """The expression itself, if it can be updated."""
        if not self.is_place(node):
            message = (
                f"'{text(node)}' cannot be updated: it is not a variable, an element, a slice or a "
                "field"
            )
            raise self.refuse(message, node)
        return node

    def is_place(self, node: ast.expr) -> bool:
        """Whether an expression can be updated."""
        inner = node
        while isinstance(inner, (ast.Subscript, ast.Attribute)):
            inner = inner.value
        return (
            isinstance(inner, ast.Name) and inner.id in self.locals and not self.is_function(node)
        )

    def conditions(self, test: ast.expr) -> tuple[ast.expr, ast.expr]:
        """The conditions before and after a branch or loop."""
        if isinstance(test, ast.Call) and self.meaning(test.func) is keywords.cond:
            message = "cond takes the condition before and the condition after: cond(pre, post)"
            pre, post = self.arguments(keywords.cond, test, message)
            return pre, post
        return test, test

    def arguments(self, function: Any, call: ast.Call, message: str) -> list[ast.expr]:
        """The arguments of a call in the order of the parameters."""
        stars = any(isinstance(a, ast.Starred) for a in call.args)
        named = {k.arg: k.value for k in call.keywords if k.arg is not None}
        if stars or len(named) != len(call.keywords):
            raise self.refuse("a call here cannot have * or **: write out its arguments", call)
        try:
            bound = inspect.signature(function).bind(*call.args, **named)
        except TypeError as error:
            raise self.refuse(f"{message} ({error})", call) from None
        return list(bound.arguments.values())

    def fields(self, owner: ast.expr) -> Callable[[str], ast.expr]:
        """The expression of each field of a container, by the field's name."""
        container = self.containers.get(owner.id) if isinstance(owner, ast.Name) else None
        if container is None:
            return lambda name: placed_at(field_of(owner, name), owner)
        return lambda name: placed_at(ast.Name(container[1][name], ast.Load()), owner)
