"""What the names of a reversible function mean outside of it, and whether they still mean that."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import numpy as np

from fwdad.reversible.language.instructions import instruction_of
from fwdad.reversible.language.places import load
from fwdad.reversible.language.syntax import evaluated, outside, place_outside
from fwdad.reversible.numbers.grid import Grid

_MISSING = object()


class Outside:
    """The names that a function reads but does not assign, with what they mean.

    ``local`` has its own variables. A number or array that is replaced outside is replaced in
    ``namespaces``, too: in those of the functions that were lowered. ``defaults`` has default
    values of parameters by their names there.
    """

    def __init__(self, f: FunctionType, names: set[str], local: set[str]) -> None:
        self.f = f
        self.local = local
        self.meanings = {n: outside(f, n, _MISSING) for n in names - local}
        self.attributes: list[tuple[ast.expr, Any]] = []  # those that are called
        self.defaults: dict[str, Any] = {}
        self.namespaces: list[dict[str, Any]] = []

    def stands(self) -> bool:
        """Whether functions that were lowered for these meanings are valid now."""
        for name, before in self.meanings.items():
            now = outside(self.f, name, _MISSING)
            if now is before:
                continue
            if not _alike(now, before):
                return False
            self.meanings[name] = now
            for namespace in self.namespaces:
                namespace[name] = now
        return all(self._evaluated(node) is f for node, f in self.attributes)

    def _evaluated(self, node: ast.expr) -> Any:
        try:
            return evaluated(load(node), {"__builtins__": builtins, **self.known()})
        except (NameError, AttributeError):
            return None

    def known(self) -> dict[str, Any]:
        """The names that mean something."""
        return {n: x for n, x in self.meanings.items() if x is not _MISSING}

    def meaning(self, node: ast.expr) -> Any:
        """What a function of the world outside is; None if there is none."""
        if isinstance(node, ast.Name):
            meaning = self.meanings.get(node.id, _MISSING)
            return None if meaning is _MISSING else meaning
        f = self._evaluated(node)
        self.attributes.append((node, f))
        return f

    def assumed(self) -> Iterator[tuple[Any, Any]]:
        """What tapes assume not to be replaced: places, and what stands there."""
        for name, meaning in self.meanings.items():
            path = place_outside(self.f, name)
            kept = (
                isinstance(meaning, (Grid, type))
                or hasattr(meaning, "definition")
                or instruction_of(meaning) is not None
            )
            if path is not None and kept:
                yield path, meaning
        for node, f in self.attributes:
            if isinstance(node, ast.Attribute):
                yield ("attribute", self._evaluated(node.value), node.attr), f

    def place(self, name: str) -> Any:
        """The place of a name of generated code in the user's world; None for our own names."""
        return place_outside(self.f, name) if name in self.meanings else None

    def named(self, taken: set[str], name: str, value: Any) -> ast.expr:
        """A name in generated code for the default value of a parameter."""
        while name in taken or self.defaults.get(name, value) is not value:
            name += "_"
        taken.add(name)
        self.defaults[name] = value
        return ast.Name(name, ast.Load())


def _alike(now: Any, before: Any) -> bool:
    """Whether a function lowered for one meaning of a name is valid for another."""
    if type(now) is not type(before):
        return False
    if isinstance(now, np.ndarray):
        return now.dtype == before.dtype and now.ndim == before.ndim
    return isinstance(now, (float, complex, np.inexact))
