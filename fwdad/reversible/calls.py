"""Calls of reversible functions as source."""

from __future__ import annotations

import ast

from fwdad.reversible.kinds import Function, Kind, Other, Record, kind_of
from fwdad.reversible.places import leaves, text
from fwdad.reversible.program import Call, Fields
from fwdad.reversible.records import leaf_kinds
from fwdad.reversible.run_checks import Checks


class Calls(Checks):
    """Writes calls."""

    def _write_call(self, s: Call) -> None:
        self.call(s, inverse=s.inverse)

    def call(self, s: Call, *, inverse: bool) -> None:
        """Call a reversible function; numbers come back, arrays are updated in place."""
        kinds = [self.argument_kind(a, s) for a in s.args]
        name, updated = self.called(s, kinds, inverse, self)
        given = self.values(s, kinds)
        self.check_fixed(s, given, updated)
        targets = [text(a) for k, (a, of) in enumerate(given) if k in updated and not of.is_array]
        call = f"{name}({', '.join(text(a) for a, _ in given)})"
        self.line(f"{', '.join(targets)} = {call}" if targets else call)

    def values(self, s: Call, kinds: list[Kind]) -> list[tuple[ast.expr, Kind]]:
        """What a call is given: the fields of records, no functions."""
        found: list[tuple[ast.expr, Kind]] = []
        for a, kind in zip(s.args, kinds, strict=True):
            found += zip(s.places(a), leaf_kinds(kind), strict=True)
        return [(a, k) for a, k in found if is_value(k)]

    def argument_kind(self, a: ast.expr, s: Call) -> Kind:
        """The kind of an argument of a call, which may be a function."""
        if isinstance(a, ast.UnaryOp):  # the inverse of a function
            return Function(~self.argument_kind(a.operand, s).value)
        own = s.own.get(a.id) if isinstance(a, ast.Name) else None
        if own is not None:
            return self._record(own)
        if isinstance(a, ast.Name) and a.id in self.env:
            return self.env[a.id]
        if isinstance(a, (ast.Name, ast.Attribute)) and not leaves(a, self.numeric):
            return kind_of(self.outside(a))
        return self.kind(a)

    def _record(self, own: Fields) -> Record:
        parts = (
            (f, self.env[v] if isinstance(v, str) else self._record(v)) for f, v in own[1].items()
        )
        return Record(own[0], tuple(parts))


def is_value(kind: Kind) -> bool:
    """Whether arguments of a kind are given to generated code."""
    return not isinstance(kind, (Function, Other))
