"""Where the trace is: the frame and the node that is evaluated, and the calls around them."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fwdad.errors import Location, is_library_file, is_package_file
from fwdad.frontend.syntax.frame import Frame


class Position:
    """Where the trace is; outside of all calls the frame has no names, and there is no location."""

    def __init__(self) -> None:
        self.frame = Frame(ast.Module([], []), "", {})
        self.node: ast.AST | None = None
        self.called_at: Location | None = None  # where the user called the library that is traced
        self.depth = 0
        self.active: list[Any] = []  # code objects and definitions that are being traced
        self.returned: Location | None = None  # the last `return` of the function itself

    @contextlib.contextmanager
    def inside(self, frame: Frame, key: Any) -> Iterator[None]:
        """Be in the frame of a call; ``key`` is the code object or definition that is called."""
        outer = self.frame, self.node, self.called_at
        self.called_at = self.location()
        frame.caller = outer[0], outer[2]
        self.frame = frame
        self.depth += 1
        self.active.append(key)
        try:
            yield
        finally:
            self.depth -= 1
            self.active.pop()
            self.frame, self.node, self.called_at = outer

    @contextlib.contextmanager
    def within(self, frame: Frame) -> Iterator[None]:
        """Be in another frame of the same call: that of a comprehension."""
        outer, self.frame = self.frame, frame
        try:
            yield
        finally:
            self.frame = outer

    def returns_at(self, node: ast.AST) -> None:
        """Note where the function itself returns; not the functions that it calls."""
        if self.depth == 1:
            self.returned = self.location_of(node)

    def at(self, node: ast.AST) -> None:
        """Note the node that is being evaluated."""
        self.node = node

    def location(self) -> Location | None:
        """The location being evaluated; in a library's code, that of the user's call of it."""
        return None if self.node is None else self.place_of(self.node)

    def exact(self) -> Location | None:
        """The location being evaluated, in a library's code, too."""
        return None if self.node is None else self.location_of(self.node)

    def deepest(self) -> Location | None:
        """The user's location, or where no code of the user's is traced, the package's."""
        return self.location() or self.exact()

    def place_of(self, node: ast.AST) -> Location | None:
        """A node's location; in a library's code, that of the user's call of it, if any."""
        if not is_library_file(self.frame.filename):
            return self.location_of(node)
        if self.called_at is None or not is_package_file(self.frame.filename):
            return self.called_at
        return replace(self.called_at, inside=self.location_of(node))

    def location_of(self, node: ast.AST) -> Location:
        """A node's location in the user's file."""
        end = getattr(node, "end_col_offset", None)
        return Location(
            self.frame.filename,
            getattr(node, "lineno", 1),
            getattr(node, "col_offset", 0) + 1,
            getattr(node, "end_lineno", None),
            None if end is None else end + 1,
        )
