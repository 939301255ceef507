"""Statements on fixed-point and logarithmic numbers in Python."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from fwdad.reversible.arguments.kinds import Exact, Kind
from fwdad.reversible.language import nodes
from fwdad.reversible.language.places import text
from fwdad.reversible.language.program import Allocate, Free, Statement, Update
from fwdad.reversible.lowering.expressions import Expressions
from fwdad.reversible.lowering.function_builder import FunctionBuilder
from fwdad.reversible.lowering.runtime_checks import RuntimeChecks
from fwdad.reversible.numbers.fixed import Fixed
from fwdad.reversible.numbers.grid import on_grid
from fwdad.reversible.numbers.logarithmic import (
    Logarithmic,
    log_of,
    over,
    over_stored,
    times,
    times_stored,
)

_PRODUCTS: dict[tuple[str, bool], Any] = {
    ("*", False): times, ("*", True): times_stored, ("/", False): over, ("/", True): over_stored,
}  # fmt: skip
"""Of ``*`` and ``/`` the function of a number and of a logarithmic number, which is exact."""


class ExactUpdates:
    """Writes statements on fixed-point and logarithmic numbers."""

    def __init__(
        self, builder: FunctionBuilder, expressions: Expressions, checks: RuntimeChecks
    ) -> None:
        self.builder = builder
        self.expressions = expressions
        self.checks = checks

    def stored(self, e: ast.expr, kind: Exact) -> ast.expr:
        """What is stored of a value."""
        form, _, value = self.expressions.constructed(e) or (None, None, e)
        if form is None and self._is_place(e, kind):
            return e
        number = _number_in(value)
        if number is not None:
            if kind.is_log and number == 0:
                return nodes.prefix("-", self.builder.numpy("inf"))
            return nodes.constant(float(_of_constant(kind, number)))
        to_stored = log_of if kind.is_log else on_grid
        return self._rounded(kind, to_stored, self.expressions.lowered(value))

    def _rounded(self, kind: Exact, function: Any, *args: ast.expr) -> ast.expr:
        """A call of a function that rounds to a format, whose scale is its last argument."""
        name = self.builder.bind(function.__name__, function)
        return nodes.call(name, *args, nodes.constant(kind.format.scale))

    def begin(self, s: Allocate | Free, kind: Exact) -> None:
        """A variable begins."""
        value = self.expressions.constructed_from(s.value)
        variable, known = nodes.name(s.variable.name), _number_in(value) is not None
        if self.builder.checked and kind.is_log and not known and not self._is_place(value, kind):
            lowered = self.expressions.lowered(value)
            positive = nodes.compare(lowered, ">=", ast.Constant(0.0))
            what = f"the logarithmic number '{variable.id}'"
            expected = ast.Constant("positive or zero")
            failed = nodes.negated(self._every(positive, kind))
            self.checks.raise_if(failed, s, what, variable.id, expected, lowered)
        stored = self.stored(s.value, kind)
        self.builder.assign(
            variable, self.builder.numpy("copy", stored) if kind.is_array else stored
        )
        if not known:
            self._check_range(s, variable, kind)

    def _every(self, test: ast.expr, kind: Kind) -> ast.expr:
        """Whether a test holds, of an array for every element."""
        return self.builder.numpy("all", test) if kind.is_array else test

    def _is_place(self, e: ast.expr, kind: Exact) -> bool:
        if not isinstance(e, (ast.Name, ast.Attribute, ast.Subscript)):
            return False
        read, _ = self.expressions.parts(e)
        return (
            len(read) == 1 and text(read[0][0]) == text(e) and read[0][1].format_of == kind.format
        )

    def update(self, s: Update, kind: Exact) -> None:
        """``place op= value``."""
        op, place = s.op, text(s.place)
        if op not in ("*/" if kind.is_log else "+-"):
            message = f"'{place} {op}= ...' has no inverse: {place} is {_described(kind)}"
            raise self.builder.refuse(message, s)
        value_kind = self.expressions.kind_of_expression(s.value)
        if value_kind.is_complex:
            message = f"'{text(s.value)}' is complex, but '{place}' is real"
            raise self.builder.refuse(message, s)
        if kind.is_log:
            self._multiply(s, kind, value_kind)
        else:
            value = self._rounded(kind, on_grid, self.expressions.lowered(s.value))
            self.builder.add(nodes.augment(s.place, op, value))
        self._check_range(s, s.place, kind)

    def _multiply(self, s: Update, kind: Exact, factor_kind: Kind) -> None:
        exact = isinstance(factor_kind, Exact) and self._is_place(s.value, kind)
        product = _PRODUCTS[s.op, exact]
        factor = self.builder.fresh("factor")
        self.builder.assign(factor, s.value if exact else self.expressions.lowered(s.value))
        if self.builder.checked:
            infinity = self.builder.numpy("inf")
            low = nodes.prefix("-", infinity) if exact else ast.Constant(0.0)
            above, below = (
                nodes.compare(factor, op, end) for op, end in ((">", low), ("<", infinity))
            )
            test = nodes.compare(low, "<", factor, "<", infinity)
            if factor_kind.is_array:
                test = self.builder.numpy("all", nodes.binary(above, "&", below))
            what = f"a factor of the logarithmic number '{text(s.place)}'"
            expected = ast.Constant("a positive number")
            shown = self.expressions.value(factor, kind) if exact else factor
            self.checks.raise_if(nodes.negated(test), s, what, text(s.value), expected, shown)
        if exact:
            new = nodes.call(self.builder.bind(product.__name__, product), s.place, factor)
        else:
            new = self._rounded(kind, product, s.place, factor)
        self.builder.assign(nodes.element(s.place) if kind.is_array else s.place, new)

    def _check_range(self, s: Statement, place: ast.expr, kind: Exact) -> None:
        """Raise if a number has left its format."""
        if not self.builder.checked:
            return
        absolute = self.builder.numpy("abs") if kind.is_array else nodes.name("abs")
        limit = nodes.constant(kind.format.limit)
        inside = nodes.compare(nodes.call(absolute, place), "<", limit)
        if kind.is_log:
            infinity = nodes.prefix("-", self.builder.numpy("inf"))
            is_zero = nodes.compare(place, "==", infinity)
            either = [inside, is_zero]
            inside = (
                nodes.binary(inside, "|", is_zero)
                if kind.is_array
                else ast.BoolOp(ast.Or(), either)
            )
        size = "the logarithm of a number" if kind.is_log else "a number"
        what = f"{size} of {kind.format!r}"
        expected = ast.Constant(f"less than {kind.format.limit:g}")
        failed = nodes.negated(self._every(inside, kind))
        self.checks.raise_if(failed, s, what, text(place), expected, place)

    def check_value(self, s: Allocate | Free, name: str, kind: Exact) -> None:
        """Raise if a variable that ends is not exactly what it must be."""
        variable, stored = nodes.name(name), self.stored(s.value, kind)
        differs = nodes.compare(variable, "!=", stored)
        failed = self.builder.numpy("any", differs) if kind.is_array else differs
        expected, actual = (self.expressions.value(x, kind) for x in (stored, variable))
        self.checks.raise_if(failed, s, f"ancilla '{name}'", name, expected, actual)

    def refuse_rounding(self, s: Statement, kinds: Iterable[Kind], what: str) -> None:
        """Refuse what would round exact numbers."""
        if any(isinstance(k, Exact) for k in kinds):
            message = (
                f"{what} cannot update Fixed or Logarithmic numbers: what it returns would be "
                "rounded"
            )
            raise self.builder.refuse(message, s)


def _described(kind: Exact) -> str:
    if kind.is_log:
        return "a Logarithmic number, which is multiplied and divided only"
    return (
        f"a number of {kind.format!r}, whose products are rounded; "
        "fwdad.reversible.Logarithmic "
        "numbers are multiplied exactly, and an ancilla can hold a product"
    )


def _number_in(e: ast.expr) -> int | float | None:
    """The real number that is written out as an expression, if it is one."""
    number = nodes.number_in(e)
    return None if isinstance(number, complex) else number


def _of_constant(kind: Exact, number: Any) -> Any:
    exact = (
        kind.format(number)
        if isinstance(kind.format, Fixed)
        else Logarithmic(number, kind.format.bits)
    )
    return exact.stored
