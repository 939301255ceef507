"""Assignments in the Numba source: named now, or written where they are used."""

from __future__ import annotations

from collections.abc import Sequence

from fwdad.codegen.loops.draft import Draft
from fwdad.codegen.loops.nan_guards import without_tests
from fwdad.ir.notation import words
from fwdad.ir.ops import Load, Op
from fwdad.ir.types import FLOAT


class Assignments:
    """Writes what operations on numbers define."""

    def __init__(self, draft: Draft) -> None:
        self.code, self.names, self.helpers = draft.code, draft.names, draft.helpers
        self.usage, self.inlined = draft.usage, draft.inlined

    def define(self, op: Op, text: str, level: int) -> None:
        """Define the result of an operation, inlined if it is used once."""
        (value,) = op.outputs
        if value in self.usage.single:
            self.inlined.hold(value, text, level)
            # operations that may raise keep their order with checks and stores, too
            self.inlined.wait(value)
            return
        if not self.usage.count[value] and isinstance(op, Load):
            self.code.line(text, op)
            return
        self.assign(self.names.name(value), text, op)

    def assign(self, target: str, text: str, op: Op | None = None) -> None:
        """Write an assignment; a sum of tested products gets one shared test."""
        plain = without_tests(text)
        if plain is not None:
            direct = target.isidentifier() and target not in words(text)
            name = target if direct else self.names.temporary("t", FLOAT)
            self.write_tested([(name, plain, text)], name, op)
            text = name
        if text != target:
            self.code.line(f"{target} = {text}", op)

    def write_tested(
        self, lines: Sequence[tuple[str, str, str]], asked: str, op: Op | None = None
    ) -> None:
        """Write names with their values, and with the exact ones where ``asked`` is NaN."""
        for name, plain, _ in lines:
            self.code.line(f"{name} = {plain}", op)
        self.code.line(f"if {self.helpers.use('is_odd')}({asked}):")
        for name, _, exact in lines:
            self.code.line(f"    {name} = {exact}", op)
