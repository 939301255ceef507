"""Updates, and the beginning and end of variables, in Python."""

from __future__ import annotations

import ast

import numpy as np

from fwdad.reversible.arguments.kinds import Exact, Kind
from fwdad.reversible.language import nodes
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
from fwdad.reversible.lowering.function_builder import FunctionBuilder
from fwdad.reversible.lowering.runtime_checks import RuntimeChecks


class Updates:
    """Writes the statements that update, begin and end variables."""

    def __init__(
        self,
        builder: FunctionBuilder,
        expressions: Expressions,
        checks: RuntimeChecks,
        exact: ExactUpdates,
    ) -> None:
        self.builder = builder
        self.expressions = expressions
        self.checks = checks
        self.exact = exact

    def update(self, s: Update) -> None:
        """``place op= value``."""
        s = self.whole_numbers(s)
        op, kind = s.op, self.expressions.kind(s.place)
        if isinstance(kind, Exact):
            self.exact.update(s, kind)
            return
        if op in "*/" and np.dtype(kind.dtype).kind == "i":
            self._multiply(s, kind)
            return
        if op in "*/":
            message = (
                f"'{text(s.place)} {op}= ...' is not exact for {kind.dtype} numbers: use "
                "fwdad.reversible.Logarithmic numbers, or compute the product in an ancilla"
            )
            raise self.builder.refuse(message, s)
        if not kind.active:
            value_kind = self.expressions.kind_of_expression(s.value)
            if value_kind.active or (op == "^") != (
                op == "^" and np.dtype(kind.dtype).kind in "biu"
            ):
                message = (
                    f"'{text(s.place)}' is of dtype {kind.dtype}: what is added would be cut off; "
                    "begin it as a float (0.0)"
                )
                raise self.builder.refuse(message, s)
        elif op == "^":
            message = f"'^=' is for integers and bools; '{text(s.place)}' is {kind.dtype}"
            raise self.builder.refuse(message, s)
        elif not kind.is_complex and self._is_complex(s.value):
            message = f"'{text(s.place)}' is {kind.dtype}: what is added to it is complex"
            raise self.builder.refuse(message, s)
        self.builder.add(nodes.augment(s.place, op, self.expressions.lowered(s.value)))

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
            raise self.builder.refuse(message, s)
        value = s.value
        if part == "imag":
            value = ast.copy_location(ast.BinOp(ast.Constant(1j), ast.Mult(), value), value)
        update = Update(s.node, place, s.op, ast.fix_missing_locations(value))
        update.apart = s.apart
        return update

    def _multiply(self, s: Update, kind: Kind) -> None:
        """``place *= value`` or ``place /= value`` of ints: exact, or it raises."""
        value_kind = self.expressions.kind_of_expression(s.value)
        if np.dtype(value_kind.dtype).kind not in "bi":
            message = f"'{text(s.place)}' is of dtype {kind.dtype}: only ints multiply it exactly"
            raise self.builder.refuse(message, s)
        place, lowered = text(s.place), self.expressions.lowered(s.value)
        factor, new = self.builder.fresh("factor"), self.builder.fresh("new")
        self.builder.assign(factor, lowered)
        if self.builder.checked:
            test = nodes.compare(factor, "!=", ast.Constant(0))
            if value_kind.is_array:
                test = self.builder.numpy("all", test)
            what, expected = f"a factor of '{place}'", ast.Constant("not zero")
            self.checks.raise_if(nodes.negated(test), s, what, text(s.value), expected, factor)
        forwards, backwards = ("*", "//") if s.op == "*" else ("//", "*")
        self.builder.assign(new, nodes.binary(s.place, forwards, factor))
        if self.builder.checked:  # wrapped around, or not divisible
            same = nodes.compare(nodes.binary(new, backwards, factor), "==", s.place)
            if kind.is_array:
                same = self.builder.numpy("all", same)
            what = "a product of ints" if s.op == "*" else "a quotient of ints"
            expected = ast.Constant("exact")
            self.checks.raise_if(nodes.negated(same), s, what, place, expected, new)
        self._store(s.place, kind, new)

    def _store(self, place: ast.expr, kind: Kind, value: ast.expr) -> None:
        """Give a place a value; an array is updated."""
        self.builder.assign(nodes.element(place) if kind.is_array else place, value)

    def swap_places(self, s: Swap) -> None:
        """``a, b = b, a``."""
        self.swap(s.a, s.b, self.expressions.kind(s.a), self.expressions.kind(s.b), s)

    def swap(self, a: ast.expr, b: ast.expr, kind: Kind, other: Kind, s: Statement) -> None:
        """Exchange two values, or the contents of two arrays."""
        if kind != other:
            message = f"'{text(a)}' and '{text(b)}' are of different kinds: they cannot be swapped"
            raise self.builder.refuse(message, s)
        if not kind.is_array:
            self.builder.assign(nodes.tuple_of([a, b]), nodes.tuple_of([b, a]))
            return
        kept = self.builder.fresh("kept")
        self.builder.assign(kept, self.builder.numpy("copy", a))
        self._store(a, kind, b)
        self._store(b, kind, kept)

    def flip_place(self, s: Flip) -> None:
        """``v = -v``, ``v = ~v`` or ``v = not v``."""
        self.flip(s.place, s.op, self.expressions.kind(s.place), s)

    def flip(self, place: ast.expr, op: str, kind: Kind, s: Statement) -> None:
        """Negate."""
        dtype = np.dtype(kind.dtype)
        allowed = {"-": "ifc", "~": "biu", "not ": "b"}[op]
        if isinstance(kind, Exact) and kind.is_log:
            message = (
                f"'{text(place)}' is a Logarithmic number, which is never negative: it cannot be "
                "negated"
            )
            raise self.builder.refuse(message, s)
        if dtype.kind not in allowed or (op == "not " and kind.is_array):
            message = f"'{op}{text(place)}' cannot be undone for dtype {dtype}"
            raise self.builder.refuse(message, s)
        if op == "~" and dtype.kind == "b" and not kind.is_array:
            op = "not "
        self._store(place, kind, nodes.prefix(op, place))

    def instruct(self, s: Instruct) -> None:
        """Call the function of an instruction, and store what it returns."""
        function = s.instruction.inverse if s.inverse else s.instruction.forward
        name = self.builder.bind(function.__name__.lstrip("_"), function)
        updated = s.args[: s.instruction.updated]
        self.exact.refuse_rounding(s, map(self.expressions.kind, updated), f"'{s.name}'")
        self._assign(updated, nodes.call(name, *map(self.expressions.lowered, s.args)))

    def _assign(self, places: list[ast.expr], value: ast.expr) -> None:
        """Give places new values."""
        targets: list[ast.expr] = []
        stores: list[ast.stmt] = []
        for place in places:
            if self.expressions.kind(place).is_array:
                new = self.builder.fresh("new")
                targets.append(new)
                stores.append(nodes.assign(nodes.element(place), new))
            else:
                targets.append(place)
        self.builder.assign(nodes.tuple_of(targets), value)
        for store in stores:
            self.builder.add(store)

    def begin(self, s: Allocate | Free) -> None:
        """Begin a variable."""
        variable, value = s.variable, s.value
        kind = self.builder.kinds[variable]
        if isinstance(kind, Exact):
            self.exact.begin(s, kind)
            self.builder.env[variable.name] = kind
            return
        lowered = self.expressions.lowered(value)
        if kind.is_array:
            lowered = lowered if self._is_new(value) else self.builder.numpy("copy", lowered)
        elif isinstance(value, ast.Constant) and np.dtype(kind.dtype).kind in "fc":
            convert = complex if kind.is_complex else float
            lowered = ast.Constant(convert(value.value))  # type: ignore[arg-type]
        self.builder.assign(nodes.name(variable.name), lowered)
        self.builder.env[variable.name] = kind

    def _is_new(self, value: ast.expr) -> bool:
        """Whether an expression makes an array that nothing else refers to."""
        if not isinstance(value, ast.Call):
            return isinstance(value, ast.BinOp)
        name = value.func.attr if isinstance(value.func, ast.Attribute) else ""
        return name in {"zeros", "ones", "empty", "full", "array", "copy", "zeros_like", "arange"}

    def end(self, s: Allocate | Free) -> None:
        """End a variable, if it has the value that it must have."""
        kind = self.builder.kinds[s.variable]
        name = s.variable.name
        if self.builder.checked and isinstance(kind, Exact):
            self.exact.check_value(s, name, kind)
        elif self.builder.checked:
            value = self.expressions.lowered(s.value)
            self.checks.check_value(s, f"ancilla '{name}'", name, value, kind)
        self.builder.env.pop(name, None)
