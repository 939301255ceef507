"""Statements on fixed-point and logarithmic numbers as source."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from fwdad.reversible.arguments.kinds import Exact, Kind
from fwdad.reversible.language.places import text
from fwdad.reversible.language.program import Allocate, Free, Statement, Update
from fwdad.reversible.lowering.expressions import Expressions
from fwdad.reversible.lowering.runtime_checks import RuntimeChecks
from fwdad.reversible.lowering.source import Source
from fwdad.reversible.numbers.fixed import Fixed
from fwdad.reversible.numbers.grid import on_grid
from fwdad.reversible.numbers.logarithmic import (
    Logarithmic,
    log_of,
    over,
    over_kept,
    times,
    times_kept,
)

_PRODUCTS: dict[tuple[str, bool], Any] = {
    ("*", False): times, ("*", True): times_kept, ("/", False): over, ("/", True): over_kept,
}  # fmt: skip
"""Of ``*`` and ``/`` the function of a number and of a logarithmic number, which is exact."""


class ExactUpdates:
    """Writes statements on fixed-point and logarithmic numbers."""

    def __init__(self, source: Source, expressions: Expressions, checks: RuntimeChecks) -> None:
        self.source = source
        self.expressions = expressions
        self.checks = checks

    def kept(self, e: ast.expr, kind: Exact) -> str:
        """What is kept of a value."""
        form, _, value = self.expressions.constructed(e) or (None, None, e)
        if form is None and self._is_place(e, kind):
            return text(e)
        if _is_number(value):
            number = ast.literal_eval(value)
            if kind.is_log and number == 0:
                return f"-{self.source.np}.inf"
            return repr(float(_of_constant(kind, number)))
        to_kept = log_of if kind.is_log else on_grid
        function = self.source.bind(to_kept.__name__, to_kept)
        return f"{function}({self.expressions.code(value)}, {kind.format.scale!r})"

    def begin(self, s: Allocate | Free, kind: Exact) -> None:
        """A variable begins."""
        name, value = s.variable.name, self.expressions.constructed_from(s.value)
        if (
            self.source.checked
            and kind.is_log
            and not self._is_place(value, kind)
            and not _is_number(value)
        ):
            code = self.expressions.code(value)
            self.source.line(
                f"if not {self.source.np}.all({code} >= 0.0):"
                if kind.is_array
                else f"if not {code} >= 0.0:"
            )
            self.checks.raise_it(
                s, f"the logarithmic number '{name}'", name, "'positive or zero'", code
            )
        code = self.kept(s.value, kind)
        self.source.line(f"{name} = {f'{self.source.np}.copy({code})' if kind.is_array else code}")
        if not _is_number(value):
            self._check_range(s, name, kind)

    def _is_place(self, e: ast.expr, kind: Exact) -> bool:
        if not isinstance(e, (ast.Name, ast.Attribute, ast.Subscript)):
            return False
        read, _ = self.expressions.parts(e)
        return (
            len(read) == 1 and text(read[0][0]) == text(e) and read[0][1].format_of == kind.format
        )

    def update(self, s: Update, op: str, kind: Exact) -> None:
        """``place op= value``."""
        place = text(s.place)
        if op not in ("*/" if kind.is_log else "+-"):
            message = f"'{place} {op}= ...' has no inverse: {place} is {_described(kind)}"
            raise self.source.refuse(message, s)
        value_kind = self.expressions.kind_of_expression(s.value)
        if value_kind.is_complex:
            message = f"'{text(s.value)}' is complex, but '{place}' is real"
            raise self.source.refuse(message, s)
        if kind.is_log:
            self._multiply(s, op, kind, value_kind)
        else:
            rounded = self.source.bind("on_grid", on_grid)
            value = self.expressions.code(s.value)
            self.source.line(f"{place} {op}= {rounded}({value}, {kind.format.scale!r})")
        self._check_range(s, place, kind)

    def _multiply(self, s: Update, op: str, kind: Exact, factor_kind: Kind) -> None:
        place = text(s.place)
        exact = isinstance(factor_kind, Exact) and self._is_place(s.value, kind)
        product = _PRODUCTS[op, exact]
        function = self.source.bind(product.__name__, product)
        factor = self.source.names.fresh("factor")
        self.source.line(f"{factor} = {text(s.value) if exact else self.expressions.code(s.value)}")
        if self.source.checked:
            low = f"-{self.source.np}.inf" if exact else "0.0"
            test = f"({factor} > {low}) & ({factor} < {self.source.np}.inf)"
            if not factor_kind.is_array:
                test = f"{low} < {factor} < {self.source.np}.inf"
            self.source.line(
                f"if not {self.source.np}.all({test}):"
                if factor_kind.is_array
                else f"if not {test}:"
            )
            shown = self.expressions.value(factor, kind) if exact else factor
            what = f"a factor of the logarithmic number '{place}'"
            self.checks.raise_it(s, what, text(s.value), "'a positive number'", shown)
        rest = "" if exact else f", {kind.format.scale!r}"
        target = f"{place}[...]" if kind.is_array else place
        self.source.line(f"{target} = {function}({place}, {factor}{rest})")

    def _check_range(self, s: Statement, place: str, kind: Exact) -> None:
        """Raise if a number has left its format."""
        if not self.source.checked:
            return
        limit = repr(kind.format.limit)
        if kind.is_array:
            inside = f"{self.source.np}.abs({place}) < {limit}"
            if kind.is_log:
                inside = f"({inside}) | ({place} == -{self.source.np}.inf)"
            self.source.line(f"if not {self.source.np}.all({inside}):")
        else:
            inside = f"abs({place}) < {limit}"
            if kind.is_log:
                inside = f"({inside} or {place} == -{self.source.np}.inf)"
            self.source.line(f"if not {inside}:")
        size = "the logarithm of a number" if kind.is_log else "a number"
        what = f"{size} of {kind.format!r}"
        self.checks.raise_it(s, what, place, repr(f"less than {kind.format.limit:g}"), place)

    def check_value(self, s: Allocate | Free, name: str, kind: Exact) -> None:
        """Raise if a variable that ends is not exactly what it must be."""
        expected = self.kept(s.value, kind)
        test = f"{name} != {expected}"
        self.source.line(f"if {self.source.np}.any({test}):" if kind.is_array else f"if {test}:")
        self.checks.raise_it(
            s,
            f"ancilla '{name}'",
            name,
            self.expressions.value(f"({expected})", kind),
            self.expressions.value(name, kind),
        )

    def refuse_rounding(self, s: Statement, kinds: Iterable[Kind], what: str) -> None:
        """Refuse what would round exact numbers."""
        if any(isinstance(k, Exact) for k in kinds):
            message = (
                f"{what} cannot update Fixed or Logarithmic numbers: what it returns would be "
                "rounded"
            )
            raise self.source.refuse(message, s)


def _described(kind: Exact) -> str:
    if kind.is_log:
        return "a Logarithmic number, which is multiplied and divided only"
    return (
        f"a number of {kind.format!r}, whose products are rounded; fwdad.Logarithmic numbers are "
        "multiplied exactly, and an ancilla can hold a product"
    )


def _is_number(e: ast.expr) -> bool:
    try:
        return isinstance(ast.literal_eval(e), (int, float))
    except ValueError:
        return False


def _of_constant(kind: Exact, number: Any) -> Any:
    exact = (
        kind.format(number)
        if isinstance(kind.format, Fixed)
        else Logarithmic(number, kind.format.bits)
    )
    return exact.kept
