"""The cotangents of a program's variables, and how an expression pulls one back."""

from __future__ import annotations

import ast
from typing import Any

from fwdad.api.jit import jit
from fwdad.api.transforms import grad
from fwdad.reversible.arguments.kinds import Exact, Kind
from fwdad.reversible.language.places import renamed_root, text, without_attributes
from fwdad.reversible.language.program import Variable, root_of
from fwdad.reversible.lowering.expression_kinds import place_kind
from fwdad.reversible.lowering.expressions import Expressions
from fwdad.reversible.lowering.source import Source


class Cotangents:
    """The variables that hold cotangents, in ``bars`` by the name of what they belong to.

    ``helpers`` has the source of the weighted expressions whose gradients are taken, to be shown.
    """

    def __init__(self, source: Source, expressions: Expressions) -> None:
        self.source = source
        self.expressions = expressions
        self.bars: dict[str, str] = {}
        for p in source.program.params:
            if source.kinds[p].active:
                self.bars[p] = source.names.fresh(f"{p}_bar")
        self.helpers: list[str] = []

    def bar(self, place: ast.expr) -> str:
        """The cotangent's place."""
        return text(renamed_root(place, self.bars[root_of(place)]))

    def begin(self, variable: Variable) -> None:
        """A cotangent of zero for a new variable."""
        kind = self.source.kinds[variable]
        if not kind.active:
            return
        if variable.name not in self.bars:
            self.bars[variable.name] = self.source.names.fresh(f"{variable.name}_bar")
        zero = zero_like(variable.name, kind, self.source.np)
        self.source.line(f"{self.bars[variable.name]} = {zero}")

    def pull(self, value: ast.expr, bar: str, kind: Kind) -> None:
        """Add to the cotangents of what an expression reads."""
        whole = without_attributes(value)[0] is value
        if isinstance(value, (ast.Name, ast.Subscript)) and whole and root_of(value) in self.bars:
            # a number itself; of arrays one may have been broadcast, or its elements gathered
            of = place_kind(value, self.source.env, self.expressions.kind_of_expression)
            if of is not None and _same_space(of, kind) and not kind.is_array:
                sign, rest = ("-", bar[1:]) if bar.startswith("-") else ("+", bar)
                self.source.line(f"{self.bar(value)} {sign}= {rest}")
                return
        read, shapes = self.expressions.parts(value)
        active = [k for k, (_, of) in enumerate(read) if of.active]
        if not active:
            return
        name, args = self._pull_of(value, read, shapes, active, kind)
        call = f"{name}({', '.join([bar, *args])})"
        places = [self.bar(read[k][0]) for k in active]
        if len(places) == 1:
            self.source.line(f"{places[0]} += {call}")
            return
        parts = [self.source.names.fresh("part") for _ in places]
        self.source.line(f"{', '.join(parts)} = {call}")
        for place, part in zip(places, parts, strict=True):
            self.source.line(f"{place} += {part}")

    def _pull_of(
        self,
        value: ast.expr,
        read: list[tuple[ast.expr, Kind]],
        shapes: list[ast.expr],
        active: list[int],
        kind: Kind,
    ) -> tuple[str, list[str]]:
        """A function that pulls a cotangent back through an expression, and its other arguments."""
        complex_ = kind.is_complex or any(of.is_complex for _, of in read)
        product = "{np}.real({np}.conj(w) * ({{}}))" if complex_ else "w * ({{}})"
        if kind.is_array:
            product = f"{{np}}.sum({product})"
        weighted = self.expressions.as_function(
            "weighted", value, read, shapes, before="w", wrap=product.format(np=self.source.np)
        )
        self.helpers.append(weighted.code)
        argnums: Any = tuple(k + 1 for k in active)
        if len(active) == 1:
            argnums = argnums[0]
        pull = self.source.names.fresh(weighted.name.replace("weighted", "pull"))
        pulling = jit(grad(self.source.namespace[weighted.name], argnums=argnums), backend="numpy")
        self.source.namespace[pull] = pulling
        self.helpers.append(f"{pull} = jit(grad({weighted.name}, argnums={argnums}))\n")
        return pull, weighted.arguments


def zero_like(name: str, kind: Kind, np: str) -> str:
    """The source of a cotangent of zero for a variable; ``np`` is NumPy's name there."""
    if kind.is_array:
        return f"{np}.zeros_like({name})"
    return "0j" if kind.is_complex else "0.0"


def _same_space(kind: Any, other: Any) -> bool:
    """Whether cotangents of two kinds are the same numbers."""
    if kind == other:
        return True
    names = ("dtype", "ndim", "is_array")
    if not isinstance(kind, Exact) and not isinstance(other, Exact):
        return False
    return all(getattr(kind, n, None) == getattr(other, n, None) for n in names)
