"""Operations on lanes that are kept in registers, in the Numba source."""

from __future__ import annotations

import numpy as np

from fwdad.codegen.loops.draft import Draft
from fwdad.codegen.loops.operands import Operands
from fwdad.codegen.loops.registers import Registers
from fwdad.codegen.passes.registers import (
    GATHERING,
    NEGATIONS,
    PRODUCTS,
    QUOTIENTS,
    SUMS,
    is_lane_index,
    is_real,
    width,
)
from fwdad.ir.notation import ATOM, LOWEST
from fwdad.ir.ops import Apply, Load, Missing, Operand, Store, Update, Value
from fwdad.tangents.scaling import scale_lanes
from fwdad.transforms.forward import load_lanes, unit_lanes, zero_lanes


class Lanes:
    """Writes lanes."""

    def __init__(self, draft: Draft, registers: Registers, operands: Operands) -> None:
        self.code = draft.code
        self.registers = registers
        self.operands = operands

    def text(self, operand: Operand, n: int, level: int = LOWEST) -> str:
        """Lanes as source: from registers, or loaded from an array."""
        if isinstance(operand, Missing):
            return f"{self.registers.function('zeros', n)}()"
        if operand not in self.registers.lanes:
            return self._loaded(operand, n)
        return self.registers.text(operand, level)

    def _loaded(self, array: Value, n: int, index: str = "") -> str:
        return f"{self.registers.function('load', n)}({self.operands.array(array)}{index})"

    def definition(self, op: Apply | Load) -> tuple[str, int]:
        """An operation whose result is in registers, and how tightly it binds."""
        (out,) = op.outputs
        n = width(out)
        if isinstance(op, Load):
            index = "".join(f", {self.operands.index_text(i)}" for i in op.index[1:])
            return self._loaded(op.array, n, index), ATOM
        f, args = op.function, op.args
        if f is load_lanes:
            index = "".join(f", {self.operands.index_text(i)}" for i in args[1:])
            return self._loaded(args[0], n, index), ATOM
        if f is zero_lanes:
            return f"{self.registers.function('zeros', n)}()", ATOM
        if f is unit_lanes:
            name = self.registers.function("unit", n)
            return f"{name}({self.operands.index_text(args[1])})", ATOM
        if f in GATHERING:
            items = ", ".join(self.operands.real(a).text for a in args[0])
            return f"{self.registers.function('build', n)}({items})", ATOM
        if f is scale_lanes:
            d = self.operands.real(args[0])
            if d.constant is not None and np.isfinite(d.constant):
                return f"{d.at(6)} * {self.text(args[1], n, 7)}", 6
            name = self.registers.function("scale", n)
            return f"{name}({d.text}, {self.text(args[1], n)})", ATOM
        if f in SUMS:
            left, right = self.text(args[0], n, 5), self.text(args[1], n, 6)
            return f"{left} {SUMS[f]} {right}", 5
        if f in PRODUCTS:
            left, right = (
                self.operands.real(a).at(level) if is_real(a) else self.text(a, n, level)
                for a, level in zip(args, (6, 7), strict=True)
            )
            return f"{left} * {right}", 6
        if f in QUOTIENTS:
            return f"{self.text(args[0], n, 6)} / {self.operands.real(args[1]).at(7)}", 6
        assert f in NEGATIONS
        return f"-{self.text(args[0], n, 7)}", 7

    def store(self, op: Store | Update) -> bool:
        """Store lanes into an array's neighbours; returns whether they are."""
        t = op.array.type
        assert isinstance(op.value, Value)
        n = width(op.value)
        plain = isinstance(op, Store) or op.function in SUMS
        if not plain or t.dtype != np.dtype(float) or t.shape[0] != n:
            return False
        if not is_lane_index(op.index) or t.ndim != len(op.index):
            return False
        value = self.text(op.value, n, 6)
        at = "".join(f", {self.operands.index_text(i)}" for i in op.index[1:])
        array, store = self.operands.array(op.array), self.registers.function("store", n)
        if isinstance(op, Update):
            load = self.registers.function("load", n)
            value = f"{load}({array}{at}) {SUMS[op.function]} {value}"
        self.code.line(f"{store}({array}, {value}{at})", op)
        return True
