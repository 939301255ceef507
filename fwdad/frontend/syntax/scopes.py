"""The scopes of names, and the statements that import."""

from __future__ import annotations

import ast
from typing import Any

from fwdad.errors import UntraceableError, is_library_file
from fwdad.frontend.captures import fetch
from fwdad.frontend.syntax.frame import WORLD
from fwdad.frontend.syntax.raising import AlwaysRaises, native
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import UNBOUND, Symbol


def _absolute(node: ast.ImportFrom, names: dict[str, Any]) -> str:
    """The name of the module from which a statement in a module with some names imports."""
    if not node.level:
        return node.module or ""
    package = str(names.get("__package__") or "").rsplit(".", node.level - 1)[0]
    return f"{package}.{node.module}" if node.module else package


class Scopes:
    """Reading and binding names, in Python's order of scopes."""

    def __init__(self, tracer: Tracer) -> None:
        self.recorder = tracer.recorder
        self.position = tracer.position
        self.outside = tracer.outside
        self.values = tracer.values

    def eval_Name(self, node: ast.Name) -> Any:
        return self.lookup(node.id)

    def lookup(self, name: str) -> Any:
        """The content of a name, in Python's order of scopes."""
        home = self.position.frame.home(name)
        if home is not None:
            value = home.locals.get(name, UNBOUND)
            return self.values.readable(value, name, home.locals)
        cell = self.position.frame.find_cell(name)
        if cell is not None:
            path: Any = ("cell", cell)
            value = fetch(path)
            if value is UNBOUND:
                self.outside.guard(path, UNBOUND)
                message = f"cannot access free variable {name!r}, which has no value"
                raise AlwaysRaises(NameError, (message,))
            return self.outside.captured(value, path, name)
        value = self.position.frame.globals.get(name, UNBOUND)
        if value is not UNBOUND:
            world = self.position.frame.globals.get(WORLD)
            path = ("item", self.position.frame.globals, name) if world is None else world(name)
            return value if path is None else self.outside.captured(value, path, name)
        value = self.position.frame.builtins.get(name, UNBOUND)
        if value is UNBOUND:
            self.outside.guard(("item", self.position.frame.builtins, name), UNBOUND)
        if value is UNBOUND or not is_library_file(self.position.frame.filename):
            self.outside.guard(("item", self.position.frame.globals, name), UNBOUND)
        if value is UNBOUND:
            raise AlwaysRaises(NameError, (f"name {name!r} is not defined",))
        return value

    def bind_name(self, name: str, value: Any) -> None:
        """Bind a local name, or one of an enclosing traced function."""
        home = self.position.frame.home(name)
        if home is None:
            message = (
                f"`{name}` is a global name, or belongs to a function that is not traced, so "
                "assigning to it cannot be traced: pass it as an argument and return it"
            )
            raise UntraceableError(message, self.position.location())
        if type(value) is Symbol and value.value.name is None:
            value.value.name = name
        self.recorder.journal.bind(home.locals, name, value)

    def run_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            first, *inner = alias.name.split(".")
            module = self._imported((first, alias.name), alias.name)
            if alias.asname:
                for part in inner:
                    module = self.outside.of_module(module, part, getattr(module, part))
            self.recorder.journal.bind(self.position.frame.locals, alias.asname or first, module)

    def _imported(self, names: tuple[str, ...], *call: Any) -> Any:
        """What ``__import__`` returns; the modules that it finds by their names are guarded."""
        try:
            return native(__import__, *call)
        finally:
            for name in names:
                self.outside.guard_module(name)

    def run_ImportFrom(self, node: ast.ImportFrom) -> None:
        names = [a.name for a in node.names]
        found = _absolute(node, self.position.frame.globals)
        where = (node.module or "", self.position.frame.globals, None, names, node.level)
        module = self._imported((found,), *where)
        for alias in node.names:
            name = alias.asname or alias.name
            if not hasattr(module, alias.name):
                self.outside.guard_absence(module, alias.name)
                message = f"cannot import name {alias.name!r} from {module.__name__!r}"
                raise AlwaysRaises(ImportError, (message,))
            value = self.outside.of_module(module, alias.name, getattr(module, alias.name))
            self.recorder.journal.bind(self.position.frame.locals, name, value)
