"""Lanes in registers: values that are one SIMD vector, in the Numba source."""

from __future__ import annotations

from fwdad.codegen.loops.draft import Draft
from fwdad.ir.notation import LOWEST
from fwdad.ir.ops import Value


class Registers:
    """The values whose ``lanes`` are in registers, and functions of them."""

    def __init__(self, draft: Draft, lanes: set[Value]) -> None:
        self.draft = draft
        self.lanes = lanes

    def function(self, what: str, n: int) -> str:
        """The name of a function of N lanes."""
        known = self.draft.helpers.lane_functions
        for name, function in known.items():
            if function == (what, n):
                return name
        name = self.draft.names.temporary(f"{what}_{n}")
        known[name] = (what, n)
        return name

    def text(self, value: Value, level: int = LOWEST) -> str:
        """The lanes of a value in registers as source."""
        inlined = self.draft.inlined
        return inlined.text(value, level) if value in inlined.held else self.draft.names.name(value)
