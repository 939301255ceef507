"""Run-time checks of a reversible program in Python."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fwdad.errors import InvertibilityError
from fwdad.reversible.arguments.kinds import Kind
from fwdad.reversible.language import nodes
from fwdad.reversible.language.aliasing import meet
from fwdad.reversible.language.places import names_in, text
from fwdad.reversible.language.program import Block, Call, Statement, root_of
from fwdad.reversible.lowering.expressions import Expressions
from fwdad.reversible.lowering.function_builder import FunctionBuilder


class RuntimeChecks:
    """Writes what must hold when the program runs.

    ``updated_in`` returns the variables that a block updates.
    """

    def __init__(
        self,
        builder: FunctionBuilder,
        expressions: Expressions,
        updated_in: Callable[[Block], set[str]],
        tolerance: float,
    ) -> None:
        self.builder = builder
        self.expressions = expressions
        self.updated_in = updated_in
        self.tolerance = tolerance
        self.fixed: list[str] = []  # what must not change now

    def check_value(
        self, s: Statement, what: str, name: str, expected: ast.expr, kind: Kind
    ) -> None:
        """Raise if a variable does not have the value that it must have."""
        value, numpy = nodes.name(name), self.builder.numpy
        if not kind.active:
            differs = nodes.compare(value, "!=", expected)
            failed = numpy("any", differs) if kind.is_array else differs
            self.raise_if(failed, s, what, name, expected, value)
            return
        number = nodes.number_in(expected)
        tolerance, one = nodes.constant(self.tolerance), ast.Constant(1.0)
        if number is not None:
            bound = nodes.constant(self.tolerance * max(1.0, abs(number)))
        elif kind.is_array:
            largest = numpy("maximum", one, numpy("abs", expected))
            bound = nodes.binary(tolerance, "*", largest)
        else:
            largest = nodes.call("max", one, nodes.call("abs", expected))
            bound = nodes.binary(tolerance, "*", largest)
        if kind.is_array:
            gap = numpy("abs", nodes.binary(value, "-", expected))
            near = numpy("all", nodes.compare(gap, "<=", bound))
        else:
            gap = value if number == 0 else nodes.binary(value, "-", expected)
            near = nodes.compare(nodes.call("abs", gap), "<=", bound)
        self.raise_if(nodes.negated(near), s, what, name, expected, value)

    def check_apart(self, s: Statement) -> None:
        """Raise if two elements that must differ are the same."""
        if not self.builder.checked:
            return
        for pairs in s.apart:
            same = nodes.all_of([meet(i, j, length) for i, j, length in pairs])
            what = "an element that is updated and read at once, at the indices"
            index = pairs[0][0]
            expected = ast.Constant("two different elements")
            self.raise_if(same, s, what, text(index), expected, index)

    def raise_if(
        self,
        failed: ast.expr,
        s: Statement,
        what: str,
        variable: str,
        expected: ast.expr,
        actual: ast.expr,
        cls: type = InvertibilityError,
    ) -> None:
        """Raise at the user's line if a check has failed."""
        error = nodes.call(
            self.builder.bind(cls.__name__, cls),
            ast.Constant(what),
            ast.Constant(variable),
            ast.Constant(self.builder.program.filename),
            ast.Constant(getattr(s.node, "lineno", 0)),
            expected,
            actual,
        )
        with self.builder.block() as body:
            self.builder.add(ast.Raise(error, None))
        self.builder.add(ast.If(failed, body, []))

    def stays(self, pre: ast.expr, post: ast.expr, block: Block) -> bool:
        """Whether a condition cannot change."""
        if text(pre) != text(post):
            return False
        changed = self.updated_in(block)
        read, _ = self.expressions.parts(pre)
        return not any(n.id in changed for leaf, _ in read for n in names_in(leaf))

    @contextmanager
    def keeping(self, name: str, *values: ast.expr) -> Iterator[None]:
        """While a name holds, neither it nor what it stands for is updated by a call."""
        read = [
            n.id for v in values for leaf, _ in self.expressions.parts(v)[0] for n in names_in(leaf)
        ]
        before = len(self.fixed)
        self.fixed += [name, *read]
        yield
        del self.fixed[before:]

    def check_fixed(self, s: Call, values: list[tuple[ast.expr, Kind]], updated: set[int]) -> None:
        """Raise if a call updates what a name stands for."""
        for k, (a, _) in enumerate(values):
            if k in updated and root_of(a) in self.fixed:
                message = (
                    f"'{text(a)}' is updated by this call, but a name stands for its value here, "
                    "or a loop goes through it: use fwdad.reversible.ancilla"
                )
                raise self.builder.refuse(message, s)
