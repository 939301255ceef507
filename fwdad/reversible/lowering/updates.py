"""Updates, and the beginning and end of variables, as source."""

from __future__ import annotations

import ast

import numpy as np

from fwdad.reversible.arguments.kinds import Exact, Kind
from fwdad.reversible.language.places import part_of, text
from fwdad.reversible.language.program import (
    Allocate,
    Flip,
    Free,
    Instruct,
    Statement,
    Swap,
    Update,
)
from fwdad.reversible.lowering.exact_updates import ExactUpdates
from fwdad.reversible.lowering.expressions import Expressions
from fwdad.reversible.lowering.runtime_checks import RuntimeChecks
from fwdad.reversible.lowering.source import Source


class Updates:
    """Writes the statements that update, begin and end variables."""

    def __init__(
        self,
        source: Source,
        expressions: Expressions,
        checks: RuntimeChecks,
        exact: ExactUpdates,
    ) -> None:
        self.source = source
        self.expressions = expressions
        self.checks = checks
        self.exact = exact

    def update(self, s: Update, op: str) -> None:
        """``place op= value``."""
        s = self.whole_numbers(s)
        kind = self.expressions.kind(s.place)
        if isinstance(kind, Exact):
            self.exact.update(s, op, kind)
            return
        if op in "*/" and np.dtype(kind.dtype).kind == "i":
            self._multiply(s, op, kind)
            return
        if op in "*/":
            message = (
                f"'{text(s.place)} {op}= ...' is not exact for {kind.dtype} numbers: use "
                "fwdad.Logarithmic numbers, or compute the product in an ancilla"
            )
            raise self.source.refuse(message, s)
        if not kind.active:
            value_kind = self.expressions.kind_of_expression(s.value)
            if value_kind.active or (op == "^") != (
                op == "^" and np.dtype(kind.dtype).kind in "biu"
            ):
                message = (
                    f"'{text(s.place)}' is of dtype {kind.dtype}: what is added would be cut off; "
                    "begin it as a float (0.0)"
                )
                raise self.source.refuse(message, s)
        elif op == "^":
            message = f"'^=' is for integers and bools; '{text(s.place)}' is {kind.dtype}"
            raise self.source.refuse(message, s)
        elif not kind.is_complex and self._is_complex(s.value):
            message = f"'{text(s.place)}' is {kind.dtype}: what is added to it is complex"
            raise self.source.refuse(message, s)
        self.source.line(f"{text(s.place)} {op}= {self.expressions.code(s.value)}")

    def _is_complex(self, value: ast.expr) -> bool:
        """Whether an expression is complex; not asked of those that begin with real numbers."""
        from_reads = any(k.is_complex for _, k in self.expressions.parts(value)[0])
        constants = (n.value for n in ast.walk(value) if isinstance(n, ast.Constant))
        if from_reads or any(isinstance(c, complex) for c in constants):
            return bool(self.expressions.kind_of_expression(value).is_complex)
        return False

    def whole_numbers(self, s: Update) -> Update:
        """Write an update of real or imaginary parts as one of the complex numbers."""
        part, place = part_of(s.place)
        if not part or not self.expressions.kind(place).is_complex:
            return s
        if self.expressions.kind_of_expression(s.value).is_complex or s.op not in "+-":
            message = f"'{text(s.place)}' is real: only real numbers can be added to it"
            raise self.source.refuse(message, s)
        value = s.value
        if part == "imag":
            value = ast.copy_location(ast.BinOp(ast.Constant(1j), ast.Mult(), value), value)
        update = Update(s.node, place, s.op, ast.fix_missing_locations(value))
        update.apart = s.apart
        return update

    def _multiply(self, s: Update, op: str, kind: Kind) -> None:
        """``place *= value`` or ``place /= value`` of ints: exact, or it raises."""
        value_kind = self.expressions.kind_of_expression(s.value)
        if np.dtype(value_kind.dtype).kind not in "bi":
            message = f"'{text(s.place)}' is of dtype {kind.dtype}: only ints multiply it exactly"
            raise self.source.refuse(message, s)
        place = text(s.place)
        factor, new = self.source.names.fresh("factor"), self.source.names.fresh("new")
        every = f"{self.source.np}.all({{}})" if kind.is_array else "{}"
        self.source.line(f"{factor} = {self.expressions.code(s.value)}")
        if self.source.checked:
            test = (
                f"{self.source.np}.all({factor} != 0)" if value_kind.is_array else f"{factor} != 0"
            )
            self.source.line(f"if not {test}:")
            self.checks.raise_it(s, f"a factor of '{place}'", text(s.value), "'not zero'", factor)
        sign = "*" if op == "*" else "//"
        back = f"{new} // {factor}" if op == "*" else f"{new} * {factor}"
        self.source.line(f"{new} = {place} {sign} {factor}")
        if self.source.checked:  # wrapped around, or not divisible
            self.source.line(f"if not {every.format(f'{back} == {place}')}:")
            what = "a product" if op == "*" else "a quotient"
            self.checks.raise_it(s, f"{what} of ints", place, "'exact'", new)
        self.source.line(f"{place}{'[...]' if kind.is_array else ''} = {new}")

    def swap_places(self, s: Swap) -> None:
        """``a, b = b, a``."""
        kind, other = self.expressions.kind(s.a), self.expressions.kind(s.b)
        self.swap(text(s.a), text(s.b), kind, other, s)

    def swap(self, a: str, b: str, kind: Kind, other: Kind, s: Statement) -> None:
        """Exchange two values, or the contents of two arrays."""
        if kind != other:
            message = f"'{a}' and '{b}' are of different kinds: they cannot be swapped"
            raise self.source.refuse(message, s)
        if not kind.is_array:
            self.source.line(f"{a}, {b} = {b}, {a}")
            return
        kept = self.source.names.fresh("kept")
        self.source.line(f"{kept} = {self.source.np}.copy({a})")
        self.source.line(f"{a}[...] = {b}")
        self.source.line(f"{b}[...] = {kept}")

    def flip_place(self, s: Flip) -> None:
        """``v = -v``, ``v = ~v`` or ``v = not v``."""
        self.flip(text(s.place), s.op, self.expressions.kind(s.place), s)

    def flip(self, place: str, op: str, kind: Kind, s: Statement) -> None:
        """Negate."""
        dtype = np.dtype(kind.dtype)
        allowed = {"-": "ifc", "~": "biu", "not ": "b"}[op]
        if isinstance(kind, Exact) and kind.is_log:
            message = (
                f"'{place}' is a Logarithmic number, which is never negative: it cannot be negated"
            )
            raise self.source.refuse(message, s)
        if dtype.kind not in allowed or (op == "not " and kind.is_array):
            message = f"'{op}{place}' cannot be undone for dtype {dtype}"
            raise self.source.refuse(message, s)
        if op == "~" and dtype.kind == "b" and not kind.is_array:
            op = "not "
        self.source.line(f"{place}{'[...]' if kind.is_array else ''} = {op}{place}")

    def instruct(self, s: Instruct, inverse: bool) -> None:
        """Call the function of an instruction, and store what it returns."""
        function = s.instruction.inverse if inverse else s.instruction.forward
        name = self.source.bind(function.__name__.lstrip("_"), function)
        updated = s.args[: s.instruction.updated]
        self.exact.refuse_rounding(s, map(self.expressions.kind, updated), f"'{s.name}'")
        self._assign(updated, f"{name}({', '.join(map(self.expressions.code, s.args))})")

    def _assign(self, places: list[ast.expr], value: str) -> None:
        """Give places new values."""
        targets, stores = [], []
        for place in places:
            if self.expressions.kind(place).is_array:
                new = self.source.names.fresh("new")
                targets.append(new)
                stores.append(f"{text(place)}[...] = {new}")
            else:
                targets.append(text(place))
        self.source.line(f"{', '.join(targets)} = {value}")
        for store in stores:
            self.source.line(store)

    def begin(self, s: Allocate | Free) -> None:
        """Begin a variable."""
        variable, value = s.variable, s.value
        kind = self.source.kinds[variable]
        if isinstance(kind, Exact):
            self.exact.begin(s, kind)
            self.source.env[variable.name] = kind
            return
        code = self.expressions.code(value)
        if kind.is_array:
            code = code if self._is_new(value) else f"{self.source.np}.copy({code})"
        elif np.dtype(kind.dtype).kind == "f" and isinstance(value, ast.Constant):
            code = repr(float(value.value))  # type: ignore[arg-type]
        elif np.dtype(kind.dtype).kind == "c" and isinstance(value, ast.Constant):
            code = repr(complex(value.value))  # type: ignore[arg-type]
        self.source.line(f"{variable.name} = {code}")
        self.source.env[variable.name] = kind

    def _is_new(self, value: ast.expr) -> bool:
        """Whether an expression makes an array that nothing else refers to."""
        if not isinstance(value, ast.Call):
            return isinstance(value, ast.BinOp)
        name = value.func.attr if isinstance(value.func, ast.Attribute) else ""
        return name in {"zeros", "ones", "empty", "full", "array", "copy", "zeros_like", "arange"}

    def end(self, s: Allocate | Free) -> None:
        """End a variable, if it has the value that it must have."""
        kind = self.source.kinds[s.variable]
        name = s.variable.name
        if self.source.checked and isinstance(kind, Exact):
            self.exact.check_value(s, name, kind)
        elif self.source.checked:
            value = self.expressions.code(s.value)
            self.checks.check_value(s, f"ancilla '{name}'", name, name, value, kind)
        self.source.env.pop(name, None)
