"""Composite values: the chunk is pushed to the leaves of tuples, lists, dicts and objects.

A value is flattened into its differentiable leaves and a structure to put leaves back into. An
array or container that appears twice is one leaf, and a container may hold itself.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import SeedError, UnsupportedTypeError
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO, NoTangent

Flatten = Callable[[Any], tuple[tuple[Any, ...], Any]]
Unflatten = Callable[[Any, tuple[Any, ...]], Any]

REGISTERED: dict[type, tuple[Flatten, Unflatten]] = {}


class Structure:
    """A composite with its differentiable leaves taken out.

    Attributes
    ----------
    kind : str
        ``"leaf"``, ``"static"``, ``"list"``, ``"tuple"``, ``"dict"``, ``"object"`` or ``"custom"``.
    children : list of Structure
        The parts, in order.
    """

    __slots__ = ("children", "data", "index", "keys", "kind", "value")

    def __init__(self, kind: str, value: Any = None) -> None:
        self.kind = kind
        self.value = value
        self.children: list[Structure] = []
        self.keys: list[Any] = []
        self.index = -1
        self.data: Any = None


def is_leaf(x: Any) -> bool:
    """Whether a value has a tangent space of its own: a float or complex number or array."""
    if hasattr(x, "__fwdad_tag__"):
        return True
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "fc"
    return isinstance(x, (float, complex, np.floating, np.complexfloating))


def flatten(x: Any) -> tuple[list[Any], Structure]:
    """Take a value apart.

    Returns
    -------
    leaves : list
        The differentiable leaves, each once.
    structure : Structure
        What is left; :func:`unflatten` puts leaves back.
    """
    leaves: list[Any] = []
    known: dict[int, Structure] = {}
    alive: list[Any] = []

    def visit(x: Any) -> Structure:
        if is_leaf(x):
            shared = isinstance(x, np.ndarray)
            if shared and id(x) in known:
                return known[id(x)]
            leaf = Structure("leaf")
            leaf.index = len(leaves)
            leaves.append(x)
            if shared:
                known[id(x)] = leaf
            return leaf
        parts = _parts(x)
        if parts is None:
            return Structure("static", x)
        if id(x) in known:
            return known[id(x)]
        kind, keys, children, data = parts
        node = known[id(x)] = Structure(kind, x)
        alive.append(children)
        node.keys, node.data = keys, data
        for child in children:
            node.children.append(visit(child))
        return node

    return leaves, visit(x)


def _parts(x: Any) -> tuple[str, list[Any], list[Any], Any] | None:
    t = type(x)
    if t in REGISTERED:
        children, data = REGISTERED[t][0](x)
        return "custom", [], list(children), data
    if isinstance(x, tuple):
        return "tuple", [], list(x), None
    if isinstance(x, list):
        return "list", [], list(x), None
    if isinstance(x, dict):
        return "dict", list(x), list(x.values()), None
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        names = [f.name for f in dataclasses.fields(x) if hasattr(x, f.name)]
        return "object", names, [getattr(x, n) for n in names], None
    return None


def unflatten(structure: Structure, leaves: list[Any], static: Callable[[Any], Any] | None = None) -> Any:
    """Put leaves into a structure; static parts are kept, or replaced by ``static(value)``."""
    made: dict[int, Any] = {}

    def build(node: Structure) -> Any:
        if node.kind == "leaf":
            return leaves[node.index]
        if node.kind == "static":
            return node.value if static is None else static(node.value)
        if id(node) in made:
            return made[id(node)]
        return _build(node, build, made)

    return build(structure)


def _build(node: Structure, build: Callable[[Structure], Any], made: dict[int, Any]) -> Any:
    x = node.value
    if node.kind == "list":
        out: Any = copy.copy(x) if type(x) is not list else []
        out.clear()
        made[id(node)] = out
        out.extend(build(c) for c in node.children)
    elif node.kind == "dict":
        out = copy.copy(x)
        made[id(node)] = out
        for key, child in zip(node.keys, node.children, strict=True):
            out[key] = build(child)
    elif node.kind == "object":
        out = copy.copy(x)
        made[id(node)] = out
        for key, child in zip(node.keys, node.children, strict=True):
            object.__setattr__(out, key, build(child))
    else:
        children = [build(c) for c in node.children]
        if node.kind == "custom":
            out = REGISTERED[type(x)][1](node.data, tuple(children))
        elif hasattr(x, "_fields"):
            out = type(x)(*children)
        else:
            out = type(x)(children)
        made[id(node)] = out
    return out


def match(structure: Structure, other: Any, path: str = "x") -> list[Any]:
    """The parts of another value at the places of a structure's leaves.

    Raises
    ------
    SeedError
        If the other value has another structure, naming the place.
    """
    found: dict[int, Any] = {}
    seen: set[tuple[int, int]] = set()

    def visit(node: Structure, v: Any, path: str) -> None:
        if node.kind == "leaf":
            if node.index in found and not _same(found[node.index], v):
                message = (
                    f"{path} is the same array as another part of the argument, so it has one "
                    "tangent; two different seeds came for it"
                )
                raise SeedError(message)
            found[node.index] = v
            return
        if node.kind == "static" or (id(node), id(v)) in seen:
            return
        seen.add((id(node), id(v)))
        parts = _parts(v)
        if parts is None or parts[0] != node.kind or len(parts[2]) != len(node.children):
            wanted = f"{type(node.value).__name__} of {len(node.children)} parts"
            message = f"the seed for {path} is a {type(v).__name__}; {path} is a {wanted}"
            raise SeedError(message)
        if node.keys and set(parts[1]) != set(node.keys):
            message = f"the seed for {path} has the keys {parts[1]}; {path} has {node.keys}"
            raise SeedError(message)
        by_key = dict(zip(parts[1], parts[2], strict=False))
        for k, child in enumerate(node.children):
            key = node.keys[k] if node.keys else k
            part = by_key[key] if node.keys else parts[2][k]
            step = f".{key}" if node.kind == "object" else f"[{key!r}]"
            visit(child, part, path + step)

    visit(structure, other, path)
    count = 1 + max(found) if found else 0
    return [found[k] for k in range(count)]


def _same(a: Any, b: Any) -> bool:
    return a is b or bool(np.array_equal(np.asarray(a), np.asarray(b)))


def map_tree(f: Callable[[Any, Any], Any], x: Any, t: Any) -> Any:
    """Apply ``f(leaf, tangent)`` at every leaf of x."""
    if not isinstance(t, (tuple, list, dict)) and not isinstance(t, Chunk):
        return x
    leaves, structure = flatten(x)
    tangents = match(structure, t)
    return unflatten(structure, [f(a, b) for a, b in zip(leaves, tangents, strict=True)])


def unzip(f: Callable[[Any], tuple[Any, Any]], y: Any) -> tuple[Any, Any]:
    """Split every leaf of y in two by ``f``; parts without a tangent space get ``NoTangent``."""
    leaves, structure = flatten(y)
    pairs = [f(leaf) for leaf in leaves]
    primal = unflatten(structure, [p for p, _ in pairs])
    return primal, unflatten(structure, [t for _, t in pairs], lambda _: NoTangent)


def lanes_of(tangents: Any) -> int | None:
    """The number of lanes of the first chunk in a composite of tangents."""
    if isinstance(tangents, Chunk):
        return tangents.n
    if isinstance(tangents, dict):
        tangents = list(tangents.values())
    if isinstance(tangents, (tuple, list)):
        for t in tangents:
            n = lanes_of(t)
            if n is not None:
                return n
    return None


def register(cls: type, flatten_: Flatten, unflatten_: Unflatten) -> None:
    """Enter a class whose instances are composites of leaves."""
    if not isinstance(cls, type):
        message = f"register_tangent_type wants a class; a {type(cls).__name__} came"
        raise UnsupportedTypeError(message)
    REGISTERED[cls] = (flatten_, unflatten_)


__all__ = ["ZERO", "flatten", "is_leaf", "map_tree", "match", "register", "unflatten", "unzip"]
