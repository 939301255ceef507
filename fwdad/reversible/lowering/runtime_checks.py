"""Run-time checks of a reversible program as source."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fwdad.errors import InvertibilityError
from fwdad.reversible.arguments.kinds import Kind
from fwdad.reversible.language.aliasing import meet
from fwdad.reversible.language.places import names_in, text
from fwdad.reversible.language.program import Block, Call, Statement, root_of
from fwdad.reversible.lowering.expressions import Expressions
from fwdad.reversible.lowering.source import Source


class RuntimeChecks:
    """Writes what must hold when the program runs.

    ``updated_in`` returns the variables that a block updates.
    """

    def __init__(
        self,
        source: Source,
        expressions: Expressions,
        updated_in: Callable[[Block], set[str]],
        tolerance: float,
    ) -> None:
        self.source = source
        self.expressions = expressions
        self.updated_in = updated_in
        self.tolerance = tolerance
        self.fixed: list[str] = []  # what must not change now

    def check_value(
        self, s: Statement, what: str, variable: str, actual: str, expected: str, kind: Kind
    ) -> None:
        """Raise if a value is not what it must be."""
        np = self.source.np
        if kind.active:
            if kind.is_array:
                largest = f"{np}.maximum(1.0, {np}.abs({expected}))"
            else:
                largest = f"max(1.0, abs({expected}))"
            try:
                bound = repr(self.tolerance * max(1.0, abs(complex(expected))))
            except ValueError:
                bound = f"{self.tolerance!r} * {largest}"
            if kind.is_array:
                test = f"not {np}.all({np}.abs({actual} - ({expected})) <= {bound})"
            else:
                gap = actual if expected in ("0.0", "0") else f"{actual} - ({expected})"
                test = f"not abs({gap}) <= {bound}"
        else:
            test = f"{actual} != {expected}"
            if kind.is_array:
                test = f"{np}.any({test})"
        self.source.line(f"if {test}:")
        self.raise_it(s, what, variable, expected, actual)

    def check_apart(self, s: Statement) -> None:
        """Raise if two elements that must differ are the same."""
        if not self.source.checked:
            return
        for pairs in s.apart:
            tests = [meet(i, j, text(length)) for i, j, length in pairs]
            self.source.line(f"if {' and '.join(tests)}:")
            what = "an element that is updated and read at once, at the indices"
            self.raise_it(s, what, text(pairs[0][0]), "'two different elements'", text(pairs[0][0]))

    def raise_it(
        self,
        s: Statement,
        what: str,
        variable: str,
        expected: str,
        actual: str,
        cls: type = InvertibilityError,
    ) -> None:
        """The line that raises."""
        error = self.source.bind(cls.__name__, cls)
        place = (self.source.program.filename, getattr(s.node, "lineno", 0))
        with self.source.indented():
            self.source.line(
                f"raise {error}({what!r}, {variable!r}, {place[0]!r}, {place[1]}, {expected}, "
                f"{actual})"
            )

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
                    "or a loop goes through it: use fwdad.ancilla"
                )
                raise self.source.refuse(message, s)
