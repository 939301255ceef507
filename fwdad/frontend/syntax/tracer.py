"""What the parts of the interpreter, and the handlers of calls, see of the whole of it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Protocol

from fwdad.frontend.calls.outside import Outside
from fwdad.frontend.syntax.position import Position
from fwdad.frontend.syntax.values import Values
from fwdad.ir.builder.recorder import Recorder


class Tracer(Protocol):
    """The recursion of the interpreter, and the state of its trace.

    ``growing`` are the places where lists are made that grow, and the types of their items.
    """

    recorder: Recorder
    position: Position
    outside: Outside
    values: Values
    growing: dict[Any, Any]

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression, which is used."""

    def unread(self, node: ast.expr) -> Any:
        """The value of an expression that is bound to a name, or returned."""

    def run(self, node: ast.stmt) -> None:
        """Execute one statement."""

    def call(self, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``f(*args, **kwargs)``."""

    def truth(self, x: Any) -> Any:
        """The truth of a value: a bool, or a symbol of one."""

    def test(self, node: ast.expr) -> Any:
        """The truth of an expression that is only asked for it."""

    def binary(self, function: Callable[..., Any], a: Any, b: Any) -> Any:
        """An operator on two values."""

    def attribute(self, o: Any, name: str) -> Any:
        """``o.name``."""

    def subscript(self, o: Any, index: Any) -> Any:
        """``o[index]``."""
