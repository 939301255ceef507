"""Places, or lvalues: the parts of expressions that can be updated."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

from fwdad.reversible.language import nodes

PARTS = frozenset({"real", "imag"})
METADATA = frozenset({"shape", "ndim", "size", "dtype"})


def text(node: ast.AST) -> str:
    """An expression as Python writes it: equal texts are equal expressions."""
    return ast.unparse(node)


def load(node: ast.expr) -> ast.expr:
    """The expression that reads a place."""
    read = nodes.copy_of(node)
    for n in ast.walk(read):
        if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript)):
            n.ctx = ast.Load()
    return read


def steps(place: ast.expr) -> tuple[str, list[ast.expr]]:
    """A place's root and what follows it, outermost first, as ``Attribute`` and ``Subscript``."""
    path: list[ast.expr] = []
    while isinstance(place, (ast.Subscript, ast.Attribute)):
        path.append(place)
        place = place.value
    return (place.id if isinstance(place, ast.Name) else ""), path[::-1]


def names_in(node: ast.AST) -> Iterator[ast.Name]:
    """The names in an expression."""
    for n in ast.walk(node):
        if isinstance(n, ast.Name):
            yield n


class _Leaves(ast.NodeVisitor):
    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.bound: list[str] = []
        self.leaves: dict[str, ast.expr] = {}
        self.metadata: dict[str, ast.expr] = {}

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and self._take(node):
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            one = len(node.args) == 1 and not node.keywords
            if node.func.id == "len" and one and steps(node.args[0])[0] in self.names:
                self.metadata.setdefault(text(node), node)
                return
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            names = [n.id for g in node.generators for n in names_in(g.target)]
            self._inside(node, names)
            return
        if isinstance(node, ast.Lambda):
            a = node.args
            self._inside(node, [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)])
            return
        self.generic_visit(node)

    def _inside(self, node: ast.AST, names: list[str]) -> None:
        self.bound.extend(names)
        self.generic_visit(node)
        del self.bound[len(self.bound) - len(names) :]

    def _take(self, node: ast.expr) -> bool:
        root, path = steps(node)
        if root not in self.names or root in self.bound:
            return False
        whole: ast.expr = node
        leading: list[ast.expr] = []
        for step in path:
            if isinstance(step, ast.Attribute) and step.attr in METADATA:
                self.metadata.setdefault(text(step), step)
                return True
            if isinstance(step, ast.Subscript) and any(
                n.id in self.bound for n in names_in(step.slice)
            ):
                break
            leading.append(step)
        else:
            leading = path
        if len(leading) < len(path):
            whole = path[len(leading)].value  # type: ignore[attr-defined]
            for later in path[len(leading) :]:
                if isinstance(later, ast.Subscript):
                    self.visit(later.slice)
        self.leaves.setdefault(text(whole), whole)
        return True


def leaves(expression: ast.expr, names: set[str]) -> list[ast.expr]:
    """The places of some variables that an expression reads, each once, in order.

    The places are maximal: indices inside them are part of them. Lengths and shapes are no reads.
    """
    visitor = _Leaves(names)
    visitor.visit(expression)
    return list(visitor.leaves.values())


def metadata(expression: ast.expr, names: set[str]) -> list[ast.expr]:
    """The lengths and shapes of some variables that an expression reads."""
    visitor = _Leaves(names)
    visitor.visit(expression)
    return list(visitor.metadata.values())


def renamed_root(place: ast.expr, name: str) -> ast.expr:
    """The same place of another variable."""
    renamed = load(place)
    inner = renamed
    while isinstance(inner, (ast.Subscript, ast.Attribute)):
        inner = inner.value
    if isinstance(inner, ast.Name):
        inner.id = name
    return renamed


def reads(expression: ast.expr, names: set[str]) -> list[ast.expr]:
    """Every place that an expression reads, those inside of indices too."""
    places = leaves(expression, names)
    for place in list(places):
        places.extend(index_reads(place, names))
    return places


def index_reads(place: ast.expr, names: set[str]) -> list[ast.expr]:
    """The places that the indices of a place read."""
    places: list[ast.expr] = []
    for step in steps(place)[1]:
        if isinstance(step, ast.Subscript):
            places.extend(reads(step.slice, names))
    return places


def replaced(expression: ast.expr, by: dict[str, ast.expr]) -> ast.expr:
    """An expression with some of its parts, identified by their text, replaced by others."""
    result: ast.expr = _Replace(by).visit(load(expression))
    return result


class _Replace(ast.NodeTransformer):
    def __init__(self, by: dict[str, ast.expr]) -> None:
        self.by = by

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
            replacement = self.by.get(text(node))
            if replacement is not None:
                return nodes.copy_of(replacement)
        return self.generic_visit(node)


def without_attributes(place: ast.expr) -> tuple[ast.expr, list[ast.expr]]:
    """The value that an attribute (``x.T``, ``z.real``) is taken of, and the indices after it."""
    path = steps(place)[1]
    for k, step in enumerate(path):
        if isinstance(step, ast.Attribute):
            return step.value, [s.slice for s in path[k:] if isinstance(s, ast.Subscript)]
    return place, []


def part_of(place: ast.expr) -> tuple[str, ast.expr]:
    """``real`` or ``imag`` if a place is such a part of complex numbers; the place without it."""
    root, path = steps(place)
    parts = [s for s in path if isinstance(s, ast.Attribute) and s.attr in PARTS]
    if len(parts) != 1:
        return "", place
    whole: ast.expr = ast.copy_location(ast.Name(root, ast.Load()), place)
    for step in path:
        if step is not parts[0]:
            whole = _on(step, whole)
    return parts[0].attr, whole


def _on(step: ast.expr, value: ast.expr) -> ast.expr:
    moved = copy.copy(step)
    moved.value = value  # type: ignore[attr-defined]
    return moved
