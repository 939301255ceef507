"""A Python function that is being written: its statements, its names, and what they mean."""

from __future__ import annotations

import ast
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from fwdad.core import generated_source
from fwdad.errors import IrreversibleError, Location
from fwdad.reversible.arguments.kinds import Kind
from fwdad.reversible.language import nodes
from fwdad.reversible.language.program import Program, Statement
from fwdad.reversible.language.syntax import location


class Names:
    """Names for generated code that the user's source does not have."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = set(taken)

    def fresh(self, name: str) -> str:
        """A new name like the given one, with a number appended if it is taken."""
        candidate, k = name, 1
        while candidate in self.taken:
            k += 1
            candidate = f"{name}_{k}"
        self.taken.add(candidate)
        return candidate


def define_function(
    definition: ast.FunctionDef,
    namespace: dict[str, Any],
    locations: dict[ast.stmt, Location | None] | None = None,
) -> Any:
    """Define a generated function, whose lines tracebacks and tracers find.

    ``locations`` has the user's locations of its statements.
    """
    places: list[Location | None] = [None]
    _add_places(definition.body, locations or {}, places)
    return define_source(ast.unparse(definition), definition.name, namespace, places)


def define_source(
    code: str, name: str, namespace: dict[str, Any], places: list[Location | None] | None = None
) -> Any:
    """Define a function of generated source; ``places`` has the user's location of each line."""
    filename = f"<fwdad reversible {name} {zlib.crc32(code.encode()):08x}>"
    return generated_source.define(code + "\n", filename, namespace, name, places)


def _add_places(
    body: list[ast.stmt],
    locations: dict[ast.stmt, Location | None],
    places: list[Location | None],
) -> None:
    """Add the location of each line that Python writes for some statements."""
    for statement in body:
        place = locations.get(statement)
        places.append(place)
        if isinstance(statement, (ast.If, ast.For, ast.While)):
            _add_places(statement.body, locations, places)
            orelse = statement.orelse
            if orelse:
                if not (len(orelse) == 1 and isinstance(orelse[0], ast.If)):
                    places.append(place)  # of `else:`, which an `elif` does not have
                _add_places(orelse, locations, places)


class FunctionBuilder:
    """A function that is being written, and what its names mean.

    ``kinds`` has parameters by name, other variables by ``Variable``; ``env`` has by name those
    that have a value now. The function runs in ``namespace``, to which whatever it needs is added.
    """

    def __init__(
        self,
        program: Program,
        kinds: dict[Any, Kind],
        namespace: dict[str, Any],
        *,
        checked: bool,
    ) -> None:
        self.program = program
        self.kinds = kinds
        self.namespace = namespace
        self.checked = checked
        self.env: dict[str, Kind] = {p: kinds[p] for p in program.params}
        self.names = Names(program.names | set(namespace))
        self.body: list[ast.stmt] = []
        self.locations: dict[ast.stmt, Location | None] = {}
        self._location: Location | None = None
        self._np = self.bind("np", np)

    def begin(self, s: Statement) -> None:
        """Whatever is added from now on comes from this statement of the user's."""
        self._location = location(self.program.filename, s.node)

    def add(self, statement: ast.stmt) -> None:
        """Add a statement."""
        self.locations[statement] = self._location
        self.body.append(statement)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        """Add ``target = value``."""
        self.add(nodes.assign(target, value))

    def assign_results(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        """Add an assignment of what a call returns, if it returns anything."""
        self.add(nodes.assign(nodes.tuple_of(targets), value) if targets else ast.Expr(value))

    def fresh(self, name: str) -> ast.Name:
        """A new name."""
        return nodes.name(self.names.fresh(name))

    @contextmanager
    def block(self) -> Iterator[list[ast.stmt]]:
        """The statements that are added inside; ``pass`` if there are none."""
        outer, self.body = self.body, []
        yield self.body
        if not self.body:
            self.add(ast.Pass())
        self.body = outer

    def bind(self, name: str, value: Any) -> ast.Name:
        """A name of the namespace for a value."""
        if self.namespace.get(name) is value:
            return nodes.name(name)
        for known, other in self.namespace.items():
            if other is value and known.startswith(name):
                return nodes.name(known)
        name = self.names.fresh(name) if name in self.names.taken else name
        self.names.taken.add(name)
        self.namespace[name] = value
        return nodes.name(name)

    def numpy(self, name: str, *args: ast.expr) -> ast.expr:
        """A call of a function of NumPy's; without arguments its name."""
        function = nodes.attribute(self._np, name)
        return nodes.call(function, *args) if args else function

    @contextmanager
    def unchecked(self) -> Iterator[None]:
        """Write no run-time checks inside."""
        before, self.checked = self.checked, False
        yield
        self.checked = before

    def function(self, name: str, params: Sequence[str], results: Sequence[str]) -> ast.FunctionDef:
        """The function whose body has been written, and which returns some variables."""
        body = list(self.body)
        if results:
            body.append(ast.Return(nodes.tuple_of([nodes.name(r) for r in results])))
        return nodes.define(name, params, body)

    def refuse(self, message: str, s: Statement) -> IrreversibleError:
        """An error at the user's line."""
        return IrreversibleError(message, location(self.program.filename, s.node))
