"""A reversible program as Python source: plain NumPy code, for the kinds of its arguments."""

from __future__ import annotations

import ast

import numpy as np

from fwdad.reversible import exact
from fwdad.reversible.control import Control
from fwdad.reversible.kinds import Exact, Kind
from fwdad.reversible.places import part_of, text
from fwdad.reversible.program import Allocate, Flip, Free, Instruct, Statement, Swap, Update


class Writer(Control):
    """Writes statements, in the direction of time."""

    def _write_update(self, s: Update) -> None:
        self.update(s, s.op)

    def update(self, s: Update, op: str) -> None:
        """``place op= value``."""
        s = self.whole_numbers(s)
        kind = self.kind(s.place)
        if isinstance(kind, Exact):
            exact.update(self, s, op, kind)
            return
        if op in "*/" and np.dtype(kind.dtype).kind == "i":
            self.multiply(s, op, kind)
            return
        if op in "*/":
            message = (
                f"'{text(s.place)} {op}= ...' is not exact for {kind.dtype} numbers: use "
                "fwdad.Logarithmic numbers, or compute the product in an ancilla"
            )
            raise self.refuse(message, s)
        if not kind.active:
            given = self.kind_of_expression(s.value)
            if given.active or (op == "^") != (op == "^" and np.dtype(kind.dtype).kind in "biu"):
                message = (
                    f"'{text(s.place)}' is of dtype {kind.dtype}: what is added would be cut off; "
                    "begin it as a float (0.0)"
                )
                raise self.refuse(message, s)
        elif op == "^":
            message = f"'^=' is for integers and bools; '{text(s.place)}' is {kind.dtype}"
            raise self.refuse(message, s)
        elif not kind.is_complex and self.is_complex(s.value):
            message = f"'{text(s.place)}' is {kind.dtype}: what is added to it is complex"
            raise self.refuse(message, s)
        self.line(f"{text(s.place)} {op}= {self.code(s.value)}")

    def is_complex(self, value: ast.expr) -> bool:
        """Whether an expression is complex; not asked of those that begin with real numbers."""
        from_reads = any(k.is_complex for _, k in self.parts(value)[0])
        constants = (n.value for n in ast.walk(value) if isinstance(n, ast.Constant))
        if from_reads or any(isinstance(c, complex) for c in constants):
            return bool(self.kind_of_expression(value).is_complex)
        return False

    def whole_numbers(self, s: Update) -> Update:
        """Write an update of real or imaginary parts as one of the complex numbers."""
        part, place = part_of(s.place)
        if not part or not self.kind(place).is_complex:
            return s
        if self.kind_of_expression(s.value).is_complex or s.op not in "+-":
            message = f"'{text(s.place)}' is real: only real numbers are added to it"
            raise self.refuse(message, s)
        value = s.value
        if part == "imag":
            value = ast.copy_location(ast.BinOp(ast.Constant(1j), ast.Mult(), value), value)
        made = Update(s.node, place, s.op, ast.fix_missing_locations(value))
        made.apart = s.apart
        return made

    def multiply(self, s: Update, op: str, kind: Kind) -> None:
        """``place *= value`` or ``place /= value`` of ints: exact, or it raises."""
        given = self.kind_of_expression(s.value)
        if np.dtype(given.dtype).kind not in "bi":
            message = f"'{text(s.place)}' is of dtype {kind.dtype}: only ints multiply it exactly"
            raise self.refuse(message, s)
        place = text(s.place)
        factor, new = self.names.fresh("factor"), self.names.fresh("new")
        every = f"{self.np}.all({{}})" if kind.is_array else "{}"
        self.line(f"{factor} = {self.code(s.value)}")
        if self.checked:
            test = f"{self.np}.all({factor} != 0)" if given.is_array else f"{factor} != 0"
            self.line(f"if not {test}:")
            self.raise_it(s, f"a factor of '{place}'", text(s.value), "'not zero'", factor)
        sign = "*" if op == "*" else "//"
        back = f"{new} // {factor}" if op == "*" else f"{new} * {factor}"
        self.line(f"{new} = {place} {sign} {factor}")
        if self.checked:  # wrapped around, or not divisible
            self.line(f"if not {every.format(f'{back} == {place}')}:")
            what = "a product" if op == "*" else "a quotient"
            self.raise_it(s, f"{what} of ints", place, "'exact'", new)
        self.line(f"{place}{'[...]' if kind.is_array else ''} = {new}")

    def _write_swap(self, s: Swap) -> None:
        self.swap(text(s.a), text(s.b), self.kind(s.a), self.kind(s.b), s)

    def swap(self, a: str, b: str, kind: Kind, other: Kind, s: Statement) -> None:
        """Exchange two values, or the contents of two arrays."""
        if kind != other:
            message = f"'{a}' and '{b}' are of different kinds: they cannot be swapped"
            raise self.refuse(message, s)
        if not kind.is_array:
            self.line(f"{a}, {b} = {b}, {a}")
            return
        kept = self.names.fresh("kept")
        self.line(f"{kept} = {self.np}.copy({a})")
        self.line(f"{a}[...] = {b}")
        self.line(f"{b}[...] = {kept}")

    def _write_flip(self, s: Flip) -> None:
        self.flip(text(s.place), s.op, self.kind(s.place), s)

    def flip(self, place: str, op: str, kind: Kind, s: Statement) -> None:
        """Negate."""
        dtype = np.dtype(kind.dtype)
        allowed = {"-": "ifc", "~": "biu", "not ": "b"}[op]
        if isinstance(kind, Exact) and kind.is_log:
            message = f"'{place}' is a Logarithmic number: it is never negative"
            raise self.refuse(message, s)
        if dtype.kind not in allowed or (op == "not " and kind.is_array):
            message = f"'{op}{place}' cannot be undone for dtype {dtype}"
            raise self.refuse(message, s)
        if op == "~" and dtype.kind == "b" and not kind.is_array:
            op = "not "
        self.line(f"{place}{'[...]' if kind.is_array else ''} = {op}{place}")

    def _write_instruct(self, s: Instruct) -> None:
        self.instruct(s, s.inverse)

    def instruct(self, s: Instruct, inverse: bool) -> None:
        """Call the function of an instruction, and store what it returns."""
        function = s.instruction.inverse if inverse else s.instruction.forward
        name = self.given(function.__name__.lstrip("_"), function)
        updated = s.args[: s.instruction.updated]
        exact.refuse_kept(self, s, map(self.kind, updated), f"'{s.name}'")
        self.assign(updated, f"{name}({', '.join(map(self.code, s.args))})")

    def assign(self, places: list[ast.expr], value: str) -> None:
        """Give places new values."""
        targets, stores = [], []
        for place in places:
            if self.kind(place).is_array:
                new = self.names.fresh("new")
                targets.append(new)
                stores.append(f"{text(place)}[...] = {new}")
            else:
                targets.append(text(place))
        self.line(f"{', '.join(targets)} = {value}")
        for store in stores:
            self.line(store)

    def _write_allocate(self, s: Allocate) -> None:
        self.begin(s)

    def begin(self, s: Allocate | Free) -> None:
        """Begin a variable."""
        variable, value = s.variable, s.value
        kind = self.kinds[variable]
        if isinstance(kind, Exact):
            exact.begin(self, s, kind)
            self.env[variable.name] = kind
            return
        code = self.code(value)
        if kind.is_array:
            code = code if self.is_new(value) else f"{self.np}.copy({code})"
        elif np.dtype(kind.dtype).kind == "f" and isinstance(value, ast.Constant):
            code = repr(float(value.value))  # type: ignore[arg-type]
        elif np.dtype(kind.dtype).kind == "c" and isinstance(value, ast.Constant):
            code = repr(complex(value.value))  # type: ignore[arg-type]
        self.line(f"{variable.name} = {code}")
        self.env[variable.name] = kind

    def is_new(self, value: ast.expr) -> bool:
        """Whether an expression makes an array that nothing else refers to."""
        if not isinstance(value, ast.Call):
            return isinstance(value, ast.BinOp)
        name = value.func.attr if isinstance(value.func, ast.Attribute) else ""
        return name in {"zeros", "ones", "empty", "full", "array", "copy", "zeros_like", "arange"}

    def _write_free(self, s: Free) -> None:
        self.end(s)

    def end(self, s: Allocate | Free) -> None:
        """End a variable, if it has the value that it must have."""
        kind = self.kinds[s.variable]
        name = s.variable.name
        if self.checked and isinstance(kind, Exact):
            exact.check_value(self, s, name, kind)
        elif self.checked:
            value = self.code(s.value)
            self.check_value(s, f"ancilla '{name}'", name, name, value, kind)
        self.env.pop(name, None)
