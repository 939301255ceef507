"""Python's operators: their syntax, their functions, and the special methods that define them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator: its node in a syntax tree, its sign, and its function in :mod:`operator`.

    ``method`` is the special method of the (left) operand, ``reflected`` that of the right one.
    ``in_place`` computes the augmented assignment, by the method ``in_place_method``.
    """

    syntax: type[ast.AST]
    sign: str
    function: Callable[..., Any]
    method: str
    reflected: str = ""
    in_place: Callable[[Any, Any], Any] | None = None
    in_place_method: str = ""

    @property
    def name(self) -> str:
        """The name of its function."""
        return self.function.__name__

    @property
    def in_place_name(self) -> str:
        """The name of the function that works in place."""
        return "i" + self.name.rstrip("_")


def _binary(syntax: type[ast.operator], sign: str, function: Callable[..., Any]) -> Operator:
    stem = function.__name__.rstrip("_")
    in_place = getattr(operator, f"i{stem}")
    return Operator(syntax, sign, function, f"__{stem}__", f"__r{stem}__", in_place, f"__i{stem}__")


BINARY = (
    _binary(ast.Add, "+", operator.add),
    _binary(ast.Sub, "-", operator.sub),
    _binary(ast.Mult, "*", operator.mul),
    _binary(ast.Div, "/", operator.truediv),
    _binary(ast.FloorDiv, "//", operator.floordiv),
    _binary(ast.Mod, "%", operator.mod),
    _binary(ast.Pow, "**", operator.pow),
    _binary(ast.MatMult, "@", operator.matmul),
    _binary(ast.LShift, "<<", operator.lshift),
    _binary(ast.RShift, ">>", operator.rshift),
    _binary(ast.BitOr, "|", operator.or_),
    _binary(ast.BitXor, "^", operator.xor),
    _binary(ast.BitAnd, "&", operator.and_),
)
COMPARISONS = (
    Operator(ast.Eq, "==", operator.eq, "__eq__", "__eq__"),
    Operator(ast.NotEq, "!=", operator.ne, "__ne__", "__ne__"),
    Operator(ast.Lt, "<", operator.lt, "__lt__", "__gt__"),
    Operator(ast.LtE, "<=", operator.le, "__le__", "__ge__"),
    Operator(ast.Gt, ">", operator.gt, "__gt__", "__lt__"),
    Operator(ast.GtE, ">=", operator.ge, "__ge__", "__le__"),
)
UNARY = (
    Operator(ast.USub, "-", operator.neg, "__neg__"),
    Operator(ast.UAdd, "+", operator.pos, "__pos__"),
    Operator(ast.Invert, "~", operator.invert, "__invert__"),
)
"""All that may meet a derivative: ``not`` asks for the truth of a value."""

OPERATORS: dict[type[ast.AST], Operator] = {o.syntax: o for o in (*BINARY, *COMPARISONS, *UNARY)}
"""By their nodes."""

BY_FUNCTION: dict[Callable[..., Any], Operator] = {o.function: o for o in OPERATORS.values()}


def numpy_defers(o: Any, *, number: bool = False) -> bool:
    """Whether an operator of an array of NumPy's, or of a number, is left to the operand ``o``.

    It is by ``__array_ufunc__ = None`` or a higher ``__array_priority__`` (NEP 13); other operands
    are read as arrays, also where their class has the operator.
    """
    ufunc = getattr(type(o), "__array_ufunc__", ...)
    if ufunc is not ...:
        return ufunc is None
    lowest = -1e6  # also that of NumPy's numbers
    return bool(getattr(o, "__array_priority__", lowest) > (lowest if number else 0.0))


def reads_as_array(o: Any) -> bool:
    """Whether NumPy reads an object as an array by its ``__array__`` or as a sequence."""
    if hasattr(o, "__array__") or hasattr(o, "__array_interface__"):
        return True
    return hasattr(o, "__getitem__") and hasattr(o, "__len__") and not isinstance(o, (dict, str))
