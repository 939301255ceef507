"""Source that is being written: its lines, its names, and what they mean."""

from __future__ import annotations

import linecache
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fwdad.core.generated_source import define
from fwdad.errors import IrreversibleError
from fwdad.reversible.arguments.kinds import Kind
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


def make_function(code: str, name: str, namespace: dict[str, Any]) -> Any:
    """Define a function of generated source, whose lines tracebacks and tracers find."""
    filename = f"<fwdad reversible {name} {zlib.crc32(code.encode()):08x}>"
    return define(code, filename, namespace, name)


class Source:
    """Source that is being written, and what its names mean.

    ``kinds`` has parameters by name, other variables by ``Variable``; ``env`` has by name those
    that have a value now. The source runs in ``namespace``, to which whatever it needs is added.
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
        self.lines: list[str] = []
        self.depth = 1
        self.np = self.bind("np", np)

    def line(self, code: str) -> None:
        """Write one line."""
        self.lines.append("    " * self.depth + code)

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Indent the lines written inside by one level; ``pass`` if there are none."""
        self.depth += 1
        before = len(self.lines)
        yield
        if all(line.lstrip().startswith("#") for line in self.lines[before:]):
            self.line("pass")
        self.depth -= 1

    def bind(self, name: str, value: Any) -> str:
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

    @contextmanager
    def unchecked(self) -> Iterator[None]:
        """Write no run-time checks inside."""
        before, self.checked = self.checked, False
        yield
        self.checked = before

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

    def function(self, name: str, params: list[str], results: list[str]) -> str:
        """The function whose body has been written, and which returns some variables."""
        if results:
            self.line(f"return {', '.join(results)}")
        elif all(line.lstrip().startswith("#") for line in self.lines):
            self.line("pass")
        body = "\n".join(self.lines)
        return f"def {name}({', '.join(params)}):\n{body}\n"

    def refuse(self, message: str, s: Statement) -> IrreversibleError:
        """An error at the user's line."""
        return IrreversibleError(message, location(self.program.filename, s.node))
