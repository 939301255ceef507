"""Stacks of reversible programs: memory that numbers are moved to, and a count."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

from fwdad.errors import CapacityError
from fwdad.reversible.containers import Container
from fwdad.reversible.places import text
from fwdad.reversible.program import Block, Require, Swap, Update


class Stack(Container):
    """A stack of numbers for traces whose length depends on values.

    In a reversible program ``fwdad.push(s, v)`` moves the number v onto the stack s and leaves
    zero, and ``fwdad.pop(s, v)`` moves the latest one to v, which must be zero. A stack is a
    parameter, or an ancilla: ``s = fwdad.ancilla(fwdad.Stack())``, which is freed empty, by
    ``fwdad.free(s, fwdad.Stack())``.

    Parameters
    ----------
    capacity : int, optional
        How many numbers it can hold: one more raises ``CapacityError``. Without one it grows where
        Python runs the program; under ``jit`` and other transformations, which fix the lengths of
        arrays, it has room for 64 numbers, or for as many as the program has needed in Python.
    dtype : dtype, default float
        That of its numbers.

    Attributes
    ----------
    values : ndarray
        The numbers, and zeros behind them.
    count : int
        How many there are.

    Raises
    ------
    UnsupportedTypeError, ValueError
        If it holds no numbers, or the capacity is negative.

    Notes
    -----
    Moving a number costs one step.
    """

    __fwdad_fields__ = ("values", "count")

    def __repr__(self) -> str:
        held = ", ".join(map(repr, self.values[: self.count].tolist()))
        return f"<Stack of {self.count} among {len(self.values)}: [{held}]>"


# -- statements on stacks


def pushed(node: ast.AST, name: str, values: ast.expr, count: ast.expr, place: ast.expr) -> Block:
    """The statements of ``push``, whose inverse is ``pop``.

    ``values`` and ``count`` are the memory and the count of the stack ``name``.
    """
    top = placed_at(ast.Subscript(values, count, ast.Load()), node)
    some = parsed(f"{text(count)} > 0", node)
    return [
        room(node, f"the stack '{name}'", name, count, values),
        Swap(node, top, place),
        Update(node, count, "+", ast.Constant(1)),
        Require(node, some, f"the length of the stack '{name}'", name, count, "more than 0"),
        is_zero(node, place),
    ]


def room(node: ast.AST, what: str, name: str, count: ast.expr, values: ast.expr) -> Require:
    """The requirement that there is room for one more."""
    test = parsed(f"{text(count)} < len({text(values)})", node)
    size = f"the length of {what}, which does not grow beyond its capacity,"
    expected = "less than that: give it a larger one"
    return Require(node, test, size, name, count, expected, CapacityError)


def is_zero(node: ast.AST, place: ast.expr) -> Require:
    """The requirement that a place that a number is moved to is zero."""
    test = parsed(f"{text(place)} == 0", node)
    return Require(node, test, "the place that a number is moved to", text(place), place, "0")


def contained(fields: Callable[[str], ast.expr], key: ast.expr) -> ast.expr:
    """Whether a dictionary has a key."""
    code = f"({text(fields('keys'))}[:{text(fields('count'))}] == {text(key)}).any()"
    return ast.parse(code, mode="eval").body


def field_of(owner: ast.expr, name: str) -> ast.expr:
    """A field of what an expression returns."""
    return ast.Attribute(copy.deepcopy(owner), name, ast.Load())


def placed_at(made: ast.expr, node: ast.AST) -> ast.expr:
    """A new expression with the location of a node of the source."""
    for n in ast.walk(made):
        ast.copy_location(n, node)
    return made


def parsed(code: str, node: ast.AST) -> ast.expr:
    """An expression parsed from source, with the location of a node of the user's."""
    return placed_at(ast.parse(code, mode="eval").body, node)
