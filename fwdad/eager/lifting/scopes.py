"""The scopes around the code that is lifted, and the names that lifting adds to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fwdad.eager.lifting.nodes import PREFIX


class Scopes:
    """The functions and classes around a node, the innermost last.

    ``classes`` are their names, by which private names are mangled; ``declared``, of each
    function, the names that it declares global or nonlocal.
    """

    def __init__(self, classes: tuple[str, ...]) -> None:
        self.classes = list(classes)
        self.declared: list[set[str]] = [set()]
        self._temporaries = 0
        self._kept: list[list[str] | None] = []
        """Of each scope: the temporaries of a class body, None for a function."""

    @property
    def in_class(self) -> bool:
        """Whether the innermost scope is the body of a class."""
        return bool(self._kept) and self._kept[-1] is not None

    @contextmanager
    def function(self, declared: set[str] | None = None) -> Iterator[None]:
        """The inside of a function; a lambda declares nothing itself."""
        self._kept.append(None)
        self.declared.append(self.declared[-1] if declared is None else declared)
        yield
        self.declared.pop()
        self._kept.pop()

    @contextmanager
    def class_body(self, name: str) -> Iterator[list[str]]:
        """The inside of a class; the result are the temporaries that are bound there."""
        names: list[str] = []
        self.classes.append(name)
        self._kept.append(names)
        yield names
        self._kept.pop()
        self.classes.pop()

    def mangled(self, name: str) -> str:
        """A private name as Python mangles it inside a class."""
        if not name.startswith("__") or name.endswith("__") or not self.classes:
            return name
        stem = self.classes[-1].lstrip("_")
        return f"_{stem}{name}" if stem else name

    def temporary(self) -> str:
        """A new name."""
        self._temporaries += 1
        return f"{PREFIX}t{self._temporaries}"

    def kept_temporary(self) -> str:
        """A new name, bound by an expression; a class body deletes such names at its end."""
        name = self.temporary()
        if self._kept and self._kept[-1] is not None:
            self._kept[-1].append(name)
        return name
