"""Stacks of reversible programs: memory that numbers are moved to, and a count."""

from __future__ import annotations

import ast
import copy
from typing import Any

import numpy as np

from fwdad.errors import UnsupportedTypeError
from fwdad.reversible.places import text
from fwdad.reversible.program import Block, Require, Swap, Update
from fwdad.tangents.registrations import Registration, register


class Stack:
    """A stack of numbers for traces whose length depends on values.

    In a reversible program ``fwdad.push(s, v)`` moves the number v onto the stack s and leaves
    zero, and ``fwdad.pop(s, v)`` moves the latest one to v, which must be zero. A stack is a
    parameter, or an ancilla: ``s = fwdad.ancilla(fwdad.Stack(100))``, which is freed empty, by
    ``fwdad.free(s, fwdad.Stack(100))``.

    Parameters
    ----------
    capacity : int
        How many numbers it can hold: one more raises ``InvertibilityError``.
    dtype : dtype, default float
        That of its numbers.

    Attributes
    ----------
    values : ndarray
        The numbers, and zeros behind them.
    count : int
        How many there are.
    """

    __fwdad_record__ = "values"  # the attribute whose tangents are the stack's

    def __init__(self, capacity: int, dtype: Any = float) -> None:
        self.values = np.zeros(capacity, dtype)
        if self.values.ndim != 1 or self.values.dtype.kind not in "biufc":
            message = "a Stack has a capacity, an int, and holds numbers"
            raise UnsupportedTypeError(message)
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        held = ", ".join(map(repr, self.values[: self.count].tolist()))
        return f"<Stack of {self.count} among {len(self.values)}: [{held}]>"


def _made(count: int, values: Any) -> Stack:
    made = Stack.__new__(Stack)
    made.values, made.count = values, count
    return made


register(
    Stack,
    Registration(
        lambda s: ((s.values,), s.count),
        lambda count, parts: _made(count, parts[0]),
        tangent=lambda _, parts: parts[0],
    ),
)


# -- statements on stacks


def pushed(node: ast.AST, name: str, values: ast.expr, count: ast.expr, place: ast.expr) -> Block:
    """What ``push`` does: its inverse is ``pop``.

    Parameters
    ----------
    node : ast.AST
        The user's statement.
    name : str
        The stack's.
    values, count, place : ast.expr
        Its memory and its count, and the number.
    """
    top = placed_at(ast.Subscript(values, count, ast.Load()), node)
    size = _parsed(f"{text(count)} < len({text(values)})", node)
    return [
        Require(node, size, f"there is no room on the stack '{name}'", name),
        Swap(node, top, place),
        Update(node, count, "+", ast.Constant(1)),
        Require(node, _parsed(f"{text(count)} > 0", node), f"the stack '{name}'", name),
        Require(
            node, _parsed(f"{text(place)} == 0", node),
            "the place that a number is moved to", text(place),
        ),
    ]  # fmt: skip


def field_of(owner: ast.expr, name: str) -> ast.expr:
    """A field of what an expression answers."""
    return ast.Attribute(copy.deepcopy(owner), name, ast.Load())


def placed_at(made: ast.expr, node: ast.AST) -> ast.expr:
    """A new expression that stands where a node of the source does."""
    for n in ast.walk(made):
        ast.copy_location(n, node)
    return made


def _parsed(code: str, node: ast.AST) -> ast.expr:
    return placed_at(ast.parse(code, mode="eval").body, node)
