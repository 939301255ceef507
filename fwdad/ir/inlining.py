"""Expressions that are written where they are used, and what that is decided by."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fwdad.ir.analysis.def_use import count_repeated_uses, used_in_own_block
from fwdad.ir.coalescing import shared_names
from fwdad.ir.lines import Lines
from fwdad.ir.ops import Op, Program, Value


class Usage:
    """How the values of a program are used.

    ``single`` are used once, later in the block that defines them. If variables are untyped
    (``coalesce``), values that can share one are in ``groups``.
    """

    def __init__(self, program: Program, *, coalesce: bool) -> None:
        self.coalesce = coalesce
        self.count: Counter[Value] = count_repeated_uses(program.block)
        self.single: dict[Value, Op] = used_in_own_block(program.block, self.count)
        self.groups: dict[Value, list[Value]] = {}
        if coalesce:
            unused = {v for op in program.walk() for v in op.outputs if not self.count[v]}
            self.groups = shared_names(program, self.single, unused)


class Inlined:
    """Values whose expressions are written where they are used.

    ``held`` has their source and how tightly it binds. ``reading`` are those that read memory, or
    may raise, and ``pending`` those of them that no line uses yet.
    """

    def __init__(self, code: Lines) -> None:
        self.code = code
        self.held: dict[Value, tuple[str, int]] = {}
        self.reading: set[Value] = set()
        self.pending: list[Value] = []
        self._places: dict[Value, Any] = {}

    def hold(self, value: Value, text: str, level: int, place: Any = None) -> None:
        """Keep an expression until it is used; ``place`` is the user's location of it."""
        self.held[value] = text, level
        self._places[value] = place

    def wait(self, value: Value) -> None:
        """Keep the place of an expression among the lines that may write what it reads."""
        self.reading.add(value)
        self.pending.append(value)

    def settle(self, value: Value) -> None:
        """Note that a line uses an expression."""
        if value in self.pending:
            self.pending.remove(value)

    def take(self, value: Value) -> tuple[str, int]:
        """An expression for the next line, and how tightly it binds."""
        self.settle(value)
        self.code.here = self.code.here or self._places.get(value)
        return self.held[value]

    def text(self, value: Value, level: int) -> str:
        """An expression, in parentheses if it binds more weakly than ``level``."""
        text, own = self.take(value)
        return f"({text})" if own < level else text
