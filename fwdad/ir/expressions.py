"""Operations as Python's expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.ir.builder.shape_env import length_of
from fwdad.ir.inlining import Inlined
from fwdad.ir.literals import Literals
from fwdad.ir.notation import ATOM, INFIX, LOWEST, PREFIX
from fwdad.ir.ops import Apply, Load, Missing, Operand, Store, Update, Value
from fwdad.ir.primitives.identity import identity
from fwdad.ir.primitives.local_arrays import local_array
from fwdad.ir.primitives.ranges import range_length
from fwdad.ir.types import ArrayType, least_shape


class Expressions:
    """Writes operands and operations as expressions; ``name`` names values."""

    def __init__(
        self,
        name: Callable[[Value], str],
        inlined: Inlined,
        literals: Literals,
    ) -> None:
        self.name = name
        self.inlined = inlined
        self.literals = literals

    def text(self, operand: Operand, level: int = LOWEST) -> str:
        """An operand as source, in parentheses if it binds more weakly than ``level``."""
        if isinstance(operand, Value):
            if operand in self.inlined.held:
                return self.inlined.text(operand, level)
            return self.name(operand)
        if isinstance(operand, Missing):
            return self._missing(operand.type)
        return self.literals.text(operand, level, self.text)

    def _missing(self, t: Any) -> str:
        """What is never used, but may be copied."""
        if not isinstance(t, ArrayType):
            return "None"
        shape, dtype = self.text(least_shape(t)), self.text(t.dtype)
        return f"{self.literals.function(np.empty)}({shape}, {dtype})"

    def _slice(self, s: slice) -> str:
        start, stop = ("" if x is None else self.text(x) for x in (s.start, s.stop))
        return f"{start}:{stop}" + ("" if s.step is None else f":{self.text(s.step)}")

    def _index(self, index: tuple[Operand, ...]) -> str:
        if not index:
            return "()"
        inner = ", ".join(self._slice(i) if isinstance(i, slice) else self.text(i) for i in index)
        return f"{inner}," if len(index) == 1 and isinstance(index[0], tuple) else inner

    def element(self, op: Load | Store | Update) -> str:
        """What an operation reads or writes: an array with an index."""
        return f"{self.text(op.array, ATOM)}[{self._index(op.index)}]"

    def operation(self, op: Apply | Load) -> tuple[str, int]:
        """An operation, and how tightly it binds."""
        if isinstance(op, Load):
            return self.element(op), ATOM
        f, args = op.function, op.args
        if f in INFIX and len(args) == 2 and not op.kwargs:
            symbol, level = INFIX[f]
            if level == 8:
                return f"{self.text(args[0], 9)}**{self.text(args[1], 8)}", 8
            left, right = self.text(args[0], level + (level == 0)), self.text(args[1], level + 1)
            return f"{left} {symbol} {right}", level
        if f in PREFIX and len(args) == 1:
            symbol, level = PREFIX[f]
            return f"{symbol}{self.text(args[0], level + (level < 0))}", level
        if f in _SPECIAL:
            return _SPECIAL[f](self, *args), ATOM
        kwargs = [f"{key}={self.text(x)}" for key, x in op.kwargs.items()]
        if type(f).__name__ == "method_descriptor":
            rest = ", ".join([*(self.text(a) for a in args[1:]), *kwargs])
            return f"{self.text(args[0], ATOM)}.{f.__name__}({rest})", ATOM
        name = self.literals.function(f)
        return f"{name}({', '.join([*(self.text(a) for a in args), *kwargs])})", ATOM


def range_text(span: tuple[Operand, ...], text: Callable[[Operand], str]) -> str:
    """The range that a loop goes over; ``text`` writes its ends."""
    start, stop, step = span
    parts = [start, stop, step] if step != 1 or isinstance(step, Value) else [start, stop]
    if len(parts) == 2 and not isinstance(start, Value) and start == 0:
        parts = [stop]
    return f"range({', '.join(map(text, parts))})"


_SPECIAL: dict[Callable[..., Any], Callable[..., str]] = {
    length_of: lambda w, a, axis: f"{w.text(a, ATOM)}.shape[{axis}]",
    range_length: lambda w, *bounds: f"len(range({', '.join(w.text(b) for b in bounds)}))",
    identity: lambda w, x: w.text(x),
    local_array: lambda w, *of: f"cuda.local.array({', '.join(map(w.text, of))})",
}
