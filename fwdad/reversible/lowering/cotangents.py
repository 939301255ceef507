"""The cotangents of a program's variables, and how an expression pulls one back."""

from __future__ import annotations

import ast
from typing import Any

from fwdad.api.jit import jit
from fwdad.api.transforms import grad
from fwdad.reversible.arguments.kinds import Exact, Kind
from fwdad.reversible.language import nodes
from fwdad.reversible.language.places import renamed_root, without_attributes
from fwdad.reversible.language.program import Variable, root_of
from fwdad.reversible.lowering.expression_kinds import place_kind
from fwdad.reversible.lowering.expressions import Expressions
from fwdad.reversible.lowering.function_builder import FunctionBuilder


class Cotangents:
    """The variables that hold cotangents, in ``bars`` by the name of what they belong to."""

    def __init__(self, builder: FunctionBuilder, expressions: Expressions) -> None:
        self.builder = builder
        self.expressions = expressions
        self.bars: dict[str, str] = {}
        for p in builder.program.params:
            if builder.kinds[p].active:
                self.bars[p] = builder.names.fresh(f"{p}_bar")

    def bar(self, place: ast.expr) -> ast.expr:
        """The cotangent's place."""
        return renamed_root(place, self.bars[root_of(place)])

    def begin(self, variable: Variable) -> None:
        """A cotangent of zero for a new variable."""
        kind = self.builder.kinds[variable]
        if not kind.active:
            return
        if variable.name not in self.bars:
            self.bars[variable.name] = self.builder.names.fresh(f"{variable.name}_bar")
        zero = zero_like(variable.name, kind, self.builder.numpy("zeros_like"))
        self.builder.assign(nodes.name(self.bars[variable.name]), zero)

    def pull(self, value: ast.expr, bar: ast.expr, kind: Kind) -> None:
        """Add to the cotangents of what an expression reads; ``bar`` may be ``-bar``."""
        whole = without_attributes(value)[0] is value
        if isinstance(value, (ast.Name, ast.Subscript)) and whole and root_of(value) in self.bars:
            # a number itself; of arrays one may have been broadcast, or its elements gathered
            of = place_kind(value, self.builder.env, self.expressions.kind_of_expression)
            if of is not None and _same_space(of, kind) and not kind.is_array:
                op, bar = ("-", bar.operand) if isinstance(bar, ast.UnaryOp) else ("+", bar)
                self.builder.add(nodes.augment(self.bar(value), op, bar))
                return
        read, shapes = self.expressions.parts(value)
        active = [k for k, (_, of) in enumerate(read) if of.active]
        if not active:
            return
        name, args = self._pull_of(value, read, shapes, active, kind)
        pulled = nodes.call(name, bar, *args)
        places = [self.bar(read[k][0]) for k in active]
        if len(places) == 1:
            self.builder.add(nodes.augment(places[0], "+", pulled))
            return
        parts = [self.builder.fresh("part") for _ in places]
        self.builder.assign(nodes.tuple_of(parts), pulled)
        for place, part in zip(places, parts, strict=True):
            self.builder.add(nodes.augment(place, "+", part))

    def _pull_of(
        self,
        value: ast.expr,
        read: list[tuple[ast.expr, Kind]],
        shapes: list[ast.expr],
        active: list[int],
        kind: Kind,
    ) -> tuple[str, list[ast.expr]]:
        """A function that pulls a cotangent back through an expression, and its other arguments."""
        numpy = self.builder.numpy
        is_complex = kind.is_complex or any(of.is_complex for _, of in read)

        def weighted_by(w: ast.expr, y: ast.expr) -> ast.expr:
            product = nodes.binary(numpy("conj", w) if is_complex else w, "*", y)
            product = numpy("real", product) if is_complex else product
            return numpy("sum", product) if kind.is_array else product

        weighted = self.expressions.as_function(
            "weighted", value, read, shapes, weighted=weighted_by
        )
        argnums: Any = tuple(k + 1 for k in active)
        if len(active) == 1:
            argnums = argnums[0]
        pull = self.builder.names.fresh(weighted.name.replace("weighted", "pull"))
        pulling = jit(grad(self.builder.namespace[weighted.name], argnums=argnums), backend="numpy")
        self.builder.namespace[pull] = pulling
        return pull, weighted.arguments


def zero_like(name: str, kind: Kind, zeros_like: ast.expr) -> ast.expr:
    """A cotangent of zero for a variable; ``zeros_like`` is NumPy's function."""
    if kind.is_array:
        return nodes.call(zeros_like, nodes.name(name))
    return ast.Constant(0j if kind.is_complex else 0.0)


def _same_space(kind: Any, other: Any) -> bool:
    """Whether cotangents of two kinds are the same numbers."""
    if kind == other:
        return True
    names = ("dtype", "ndim", "is_array")
    if not isinstance(kind, Exact) and not isinstance(other, Exact):
        return False
    return all(getattr(kind, n, None) == getattr(other, n, None) for n in names)
