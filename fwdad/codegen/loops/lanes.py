"""Lanes that are kept in registers, in the Numba source."""

from __future__ import annotations

import numpy as np

from fwdad.codegen.loops.numbers import NumberWriter
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
from fwdad.ir.notation import ATOM
from fwdad.ir.ops import Apply, Load, Missing, Operand, Store, Update, Value
from fwdad.tangents.scaling import scale_lanes
from fwdad.transforms.forward import load_lanes, unit_lanes, zero_lanes


class LaneWriter(NumberWriter):
    """Writes lanes."""

    def lane_function(self, what: str, n: int) -> str:
        """The name of a function of N lanes."""
        for name, known in self.lane_functions.items():
            if known == (what, n):
                return name
        name = self._unique(f"{what}_{n}")
        self.lane_functions[name] = (what, n)
        return name

    def lane_text(self, operand: Operand, n: int, level: int = -2) -> str:
        """Lanes as source: from registers, or loaded from an array."""
        if isinstance(operand, Missing):
            return f"{self.lane_function('zeros', n)}()"
        if operand not in self.lanes:
            return f"{self.lane_function('load', n)}({self.array(operand)})"
        if operand in self._inlined:
            text, own = self._take(operand)
            return f"({text})" if own < level else text
        return self.name(operand)

    def _array_of_lanes(self, operand: Value) -> str:
        n = width(operand)
        text = self.lane_text(operand, n)
        made = self.temporary("a", operand.type)
        self.line(f"{made} = np.empty(({n},), np.float64)")
        self.line(f"{self.lane_function('store', n)}({made}, {text})")
        return made

    def _lane_definition(self, op: Apply | Load) -> tuple[str, int]:
        (out,) = op.outputs
        n = width(out)
        if isinstance(op, Load):
            index = "".join(f", {self.index_text(i)}" for i in op.index[1:])
            return f"{self.lane_function('load', n)}({self.array(op.array)}{index})", ATOM
        f, args = op.function, op.args
        if f is load_lanes:
            index = "".join(f", {self.index_text(i)}" for i in args[1:])
            return f"{self.lane_function('load', n)}({self.array(args[0])}{index})", ATOM
        if f is zero_lanes:
            return f"{self.lane_function('zeros', n)}()", ATOM
        if f is unit_lanes:
            return f"{self.lane_function('unit', n)}({self.index_text(args[1])})", ATOM
        if f in GATHERING:
            items = ", ".join(self.real(a).text for a in args[0])
            return f"{self.lane_function('build', n)}({items})", ATOM
        if f is scale_lanes:
            d = self.real(args[0])
            if d.constant is not None and np.isfinite(d.constant):
                return f"{d.at(6)} * {self.lane_text(args[1], n, 7)}", 6
            name = self.lane_function("scale", n)
            return f"{name}({d.text}, {self.lane_text(args[1], n)})", ATOM
        if f in SUMS:
            left, right = self.lane_text(args[0], n, 5), self.lane_text(args[1], n, 6)
            return f"{left} {SUMS[f]} {right}", 5
        if f in PRODUCTS:
            left, right = (
                self.real(a).at(level) if is_real(a) else self.lane_text(a, n, level)
                for a, level in zip(args, (6, 7), strict=True)
            )
            return f"{left} * {right}", 6
        if f in QUOTIENTS:
            return f"{self.lane_text(args[0], n, 6)} / {self.real(args[1]).at(7)}", 6
        assert f in NEGATIONS
        return f"-{self.lane_text(args[0], n, 7)}", 7

    def _store_lanes(self, op: Store | Update) -> bool:
        t = op.array.type
        assert isinstance(op.value, Value)
        n = width(op.value)
        plain = isinstance(op, Store) or op.function in SUMS
        if not plain or t.dtype != np.dtype(float) or t.shape[0] != n:
            return False
        if not is_lane_index(op.index) or t.ndim != len(op.index):
            return False
        value = self.lane_text(op.value, n, 6)
        at = "".join(f", {self.index_text(i)}" for i in op.index[1:])
        array, store = self.array(op.array), self.lane_function("store", n)
        if isinstance(op, Update):
            load = self.lane_function("load", n)
            value = f"{load}({array}{at}) {SUMS[op.function]} {value}"
        self.line(f"{store}({array}, {value}{at})", op)
        return True
