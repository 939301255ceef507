"""A reversible program in Python: plain NumPy code, for the kinds of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwdad.reversible.language.program import (
    Allocate,
    Block,
    Call,
    Compute,
    Flip,
    Free,
    Instruct,
    Statement,
    Swap,
    Update,
    Variable,
)
from fwdad.reversible.lowering.calls import Callee, Calls
from fwdad.reversible.lowering.control import Control
from fwdad.reversible.lowering.exact_updates import ExactUpdates
from fwdad.reversible.lowering.expressions import Expressions
from fwdad.reversible.lowering.function_builder import FunctionBuilder
from fwdad.reversible.lowering.runtime_checks import RuntimeChecks
from fwdad.reversible.lowering.updates import Updates


class Writer:
    """Writes statements, in the direction of time.

    ``updated_in`` returns the variables that a block updates; ``began`` is called with each
    ancilla, behind the line that begins it.
    """

    def __init__(
        self,
        builder: FunctionBuilder,
        expressions: Expressions,
        callee: Callee,
        updated_in: Callable[[Block], set[str]],
        *,
        tolerance: float,
        began: Callable[[Variable], None] | None = None,
    ) -> None:
        self.builder = builder
        self.checks = RuntimeChecks(builder, expressions, updated_in, tolerance)
        self.exact = ExactUpdates(builder, expressions, self.checks)
        self.updates = Updates(builder, expressions, self.checks, self.exact)
        self.calls = Calls(builder, expressions, self.checks, callee)
        self.control = Control(builder, expressions, self.checks, updated_in)
        self.began = began

    def block(self, block: Block) -> None:
        """Write a block."""
        for s in block:
            self.builder.begin(s)
            self.checks.check_apart(s)
            write = _WRITE.get(type(s))
            if write is None:
                self.control.statement(s, self.block)
            else:
                write(self, s)

    def allocate(self, s: Allocate) -> None:
        """Begin an ancilla."""
        self.updates.begin(s)
        if self.began is not None:
            self.began(s.variable)


_WRITE: dict[type[Statement], Callable[[Writer, Any], None]] = {
    Update: lambda w, s: w.updates.update(s),
    Swap: lambda w, s: w.updates.swap_places(s),
    Flip: lambda w, s: w.updates.flip_place(s),
    Instruct: lambda w, s: w.updates.instruct(s),
    Allocate: lambda w, s: w.allocate(s),
    Free: lambda w, s: w.updates.end(s),
    Call: lambda w, s: w.calls.call(s),
    Compute: lambda w, s: w.control.compute(s, w.block),
}
