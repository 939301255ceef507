"""Lines of generated source, and names in it."""

from __future__ import annotations

import linecache
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fwdad.core.generated_source import define
from fwdad.errors import IrreversibleError
from fwdad.reversible.kinds import Kind
from fwdad.reversible.program import Block, Program, Statement, written_roots
from fwdad.reversible.syntax import location


class Names:
    """Names for generated code that the user's source does not have."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = set(taken)

    def fresh(self, name: str) -> str:
        """A new name like the given one, with a number appended if it is taken."""
        found, k = name, 1
        while found in self.taken:
            k += 1
            found = f"{name}_{k}"
        self.taken.add(found)
        return found


def make_function(code: str, name: str, namespace: dict[str, Any]) -> Any:
    """Define a function of generated source, whose lines tracebacks and tracers find."""
    filename = f"<fwdad reversible {name} {zlib.crc32(code.encode()):08x}>"
    return define(code, filename, namespace, name)


class Lines:
    """Source that is being written, and what its names mean.

    ``kinds`` has parameters by name, other variables by ``Variable``. The source runs in
    ``namespace``, to which whatever it needs is added; ``called(function, kinds, inverse,
    statement)`` returns the name of the function that a call runs.
    """

    def __init__(
        self,
        program: Program,
        kinds: dict[Any, Kind],
        namespace: dict[str, Any],
        called: Any,
        *,
        checked: bool,
        tolerance: float,
    ) -> None:
        self.program = program
        self.kinds = kinds
        self.namespace = namespace
        self.called = called
        self.checked = checked
        self.tolerance = tolerance
        self.env: dict[str, Kind] = {p: kinds[p] for p in program.params}
        self.fixed: list[str] = []  # what must not change now
        self.written: Callable[[Block], set[str]] = written_roots
        self.names = Names(program.names | set(namespace))
        self.lines: list[str] = []
        self.depth = 1
        self.np = self.given("np", np)

    def line(self, code: str) -> None:
        """Write one line."""
        self.lines.append("    " * self.depth + code)

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Indent the lines written inside by one level; ``pass`` if there are none."""
        self.depth += 1
        before = len(self.lines)
        yield
        if all(text_.lstrip().startswith("#") for text_ in self.lines[before:]):
            self.line("pass")
        self.depth -= 1

    def given(self, name: str, value: Any) -> str:
        """A name of the namespace for a value."""
        if self.namespace.get(name) is value:
            return name
        for known, other in self.namespace.items():
            if other is value and known.startswith(name):
                return known
        name = self.names.fresh(name) if name in self.names.taken else name
        self.names.taken.add(name)
        self.namespace[name] = value
        return name

    def comment(self, s: Statement) -> None:
        """The user's line."""
        lineno = getattr(s.node, "lineno", None)
        if lineno is None:
            return
        user = linecache.getline(self.program.filename, lineno).strip()
        note = f"# {Path(self.program.filename).name}:{lineno}: {user}"
        indent = "    " * self.depth
        if not self.lines or self.lines[-1].strip() != note:
            self.lines.append(indent + note)

    def refuse(self, message: str, s: Statement) -> IrreversibleError:
        """An error at the user's line."""
        return IrreversibleError(message, location(self.program.filename, s.node))
