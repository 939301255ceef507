"""Calls of reversible functions in Python."""

from __future__ import annotations

import ast
from typing import Protocol

from fwdad.reversible.arguments.kinds import Function, Kind, Record, is_value, kind_of
from fwdad.reversible.arguments.records import leaf_kinds
from fwdad.reversible.language import nodes
from fwdad.reversible.language.places import leaves
from fwdad.reversible.language.program import Call, Fields
from fwdad.reversible.lowering.expressions import Expressions
from fwdad.reversible.lowering.function_builder import FunctionBuilder
from fwdad.reversible.lowering.runtime_checks import RuntimeChecks


class Callee(Protocol):
    """Finds what a call runs: the name of a generated function, and which values it updates."""

    def __call__(
        self, s: Call, kinds: list[Kind], *, inverse: bool, adjoint: bool
    ) -> tuple[str, set[int]]:
        """For arguments of these kinds, in one direction, with or without cotangents."""


class Calls:
    """Writes calls."""

    def __init__(
        self,
        builder: FunctionBuilder,
        expressions: Expressions,
        checks: RuntimeChecks,
        callee: Callee,
    ) -> None:
        self.builder = builder
        self.expressions = expressions
        self.checks = checks
        self.callee = callee

    def call(self, s: Call) -> None:
        """Call a reversible function; numbers come back, arrays are updated in place."""
        function, updated, values = self.target(s, adjoint=False)
        targets = [a for k, (a, of) in enumerate(values) if k in updated and not of.is_array]
        call = nodes.call(function, *(a for a, _ in values))
        self.builder.assign_results(targets, call)

    def target(
        self, s: Call, *, adjoint: bool
    ) -> tuple[str, set[int], list[tuple[ast.expr, Kind]]]:
        """The function that a call runs, which values it updates, and these values."""
        kinds = [self.argument_kind(a, s) for a in s.args]
        function, updated = self.callee(s, kinds, inverse=s.inverse, adjoint=adjoint)
        values = self.values(s, kinds)
        self.checks.check_fixed(s, values, updated)
        return function, updated, values

    def values(self, s: Call, kinds: list[Kind]) -> list[tuple[ast.expr, Kind]]:
        """What a call passes: the fields of records, no functions."""
        values: list[tuple[ast.expr, Kind]] = []
        for a, kind in zip(s.args, kinds, strict=True):
            values += zip(s.places(a), leaf_kinds(kind), strict=True)
        return [(a, k) for a, k in values if is_value(k)]

    def argument_kind(self, a: ast.expr, s: Call) -> Kind:
        """The kind of an argument of a call, which may be a function."""
        if isinstance(a, ast.UnaryOp):  # the inverse of a function
            return Function(~self.argument_kind(a.operand, s).value)
        fields = s.fields.get(a.id) if isinstance(a, ast.Name) else None
        if fields is not None:
            return self._record(fields)
        if isinstance(a, ast.Name) and a.id in self.builder.env:
            return self.builder.env[a.id]
        if isinstance(a, (ast.Name, ast.Attribute)) and not leaves(a, self.expressions.numeric):
            return kind_of(self.expressions.outside(a))
        return self.expressions.kind(a)

    def _record(self, fields: Fields) -> Record:
        parts = (
            (f, self.builder.env[v] if isinstance(v, str) else self._record(v))
            for f, v in fields[1].items()
        )
        return Record(fields[0], tuple(parts))
