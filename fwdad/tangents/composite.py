"""Composite values: the chunk is pushed to the leaves of tuples, lists, dicts and objects.

A value is flattened into its differentiable leaves and a structure to put leaves back into. An
array or container that appears twice is one leaf, and a container may hold itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from types import MethodType, ModuleType
from typing import Any

import numpy as np

from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.tangents.back_references import READ_AS_CONSTANT, is_simple, reaches
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.fields import constants_of, fields_of, is_composite, why_not_plain
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.objects import attributes_of, blank, in_c, set_attributes
from fwdad.tangents.refused import refusal
from fwdad.tangents.registrations import OWN, registration_of
from fwdad.tangents.zero import NoTangent


class Structure:
    """A composite with its differentiable leaves taken out; ``children`` are its parts, in order.

    ``kind`` is ``"leaf"``, ``"static"``, ``"list"``, ``"tuple"``, ``"dict"``, ``"object"``,
    ``"method"`` or ``"custom"``.
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
    """Whether a value has a tangent space of its own: a number, an array, a class with its own."""
    if type(x) is np.ndarray:  # the commonest
        return x.dtype.kind in "fc"
    if hasattr(type(x), "__fwdad_tag__"):
        return True
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "fc" and type(x) in _ARRAYS
    return isinstance(x, (float, complex, np.floating, np.complexfloating)) or type(x) in OWN


_ARRAYS = (np.ndarray, np.memmap)


def is_part(x: Any) -> bool:
    """Whether a value is not a composite: a leaf, or something without a tangent space."""
    return is_leaf(x) or parts_of(x) is None


def flatten(
    x: Any, *, strict: bool = False, leaf: Callable[[Any], bool] = is_leaf
) -> tuple[list[Any], Structure]:
    """The differentiable leaves of a value, each once, and the structure for :func:`unflatten`.

    With ``strict``, parts that hold numbers in a form without tangents (masked arrays, pandas
    objects, …) raise UnsupportedTypeError; otherwise they are constants.
    """
    if leaf(x):  # the commonest case
        node = Structure("leaf")
        node.index = 0
        return [x], node
    apart = _Apart(strict=strict, leaf=leaf)
    structure = apart.visit(x, None)
    apart.finish()
    return apart.leaves, structure


WITHOUT = ("static", "method")
"""The kinds of nodes that have no tangent."""


class _Apart:
    """A value that is being flattened; a closure that calls itself would keep it alive."""

    def __init__(self, *, strict: bool, leaf: Callable[[Any], bool]) -> None:
        self.strict = strict
        self.leaf = leaf
        self.leaves: list[Any] = []
        self.known: dict[int, Structure] = {}
        self.alive: list[Any] = []  # what has its id among the known
        self.methods: list[Structure] = []
        self.others: list[tuple[Any, _Path]] = []  # without a tangent space, but with references

    def visit(self, x: Any, path: _Path) -> Structure:
        if id(x) in self.known:
            return self.known[id(x)]
        if self.leaf(x):
            node = Structure("leaf")
            node.index = len(self.leaves)
            self.leaves.append(x)
            if isinstance(x, (np.ndarray, Chunk)):  # numbers are values: two of them are no alias
                self.known[id(x)] = node
            return node
        parts = parts_of(x)
        if parts is None:
            return self._static(x, path)
        kind, keys, children, data = parts
        node = self.known[id(x)] = Structure(kind, x)
        self.alive.append((x, children))
        node.keys, node.data = keys, data
        constants = constants_of(type(x)) if kind == "object" else ()
        for k, child in enumerate(children):
            is_constant = constants and keys[k] in constants
            node.children.append(
                Structure("static", child) if is_constant else self.visit(child, (path, node, k))
            )
        if self.strict and kind == "dict":
            self.others += [(key, path) for key in keys if not is_simple(key)]
        return node

    def _static(self, x: Any, path: _Path) -> Structure:
        if type(x) is MethodType:
            node = Structure("method", x)
            self.methods.append(node)
            return node
        if self.strict and not is_simple(x):
            reason = why_no_constant(x)
            if reason is not None:
                raise UnsupportedTypeError(_written(path) + reason)
            self.others.append((x, path))
        return Structure("static", x)

    def finish(self) -> None:
        """Rebind methods of parts, and refuse what refers to a part in any other way."""
        for node in self.methods:
            bound = self.known.get(id(node.value.__self__))
            if bound is None:
                node.kind = "static"
            else:
                node.data = bound
        if not self.others or not self.leaves:
            return
        active = _holding_leaves(self.known)
        for x, path in self.others:
            if reaches(x, active):
                message = f"{_written(path)}{type_in_words(x)}: {READ_AS_CONSTANT}"
                raise UnsupportedTypeError(message)


def _holding_leaves(known: dict[int, Structure]) -> set[int]:
    """The addresses of the parts that hold leaves."""
    holding: set[int] = set()
    found = True
    while found:  # there may be cycles
        found = False
        for address, node in known.items():
            if address in holding:
                continue
            if node.kind == "leaf" or any(
                c.kind == "leaf" or id(c.value) in holding for c in node.children
            ):
                holding.add(address)
                found = True
    return holding


def why_no_constant(x: Any) -> str | None:
    """Why a value must not pass for a constant, or None."""
    registration = registration_of(type(x))
    if registration is not None:
        return registration.refused
    reason = refusal(x)
    why = None if reason is not None else why_not_plain(type(x))
    if not why or not flatten(list(attributes_of(x).values()))[0]:
        return reason
    return (
        f"{type_in_words(x)}, which has numbers that would be constants: {why}. Tell how it is "
        "taken apart with register_tangent_type, or exclude its field by @fwdad.constant_fields"
    )


_Path = tuple[Any, Structure, int] | None


def _written(path: _Path) -> str:
    steps = ""
    while path is not None:
        path, node, k = path
        steps = step_of(node, k) + steps
    return f"x{steps} is " if steps else "the argument is "


def step_of(node: Structure, k: int) -> str:
    """The child k of a node, as a subscript or an attribute."""
    if node.kind == "object":
        return f".{node.keys[k]}"
    return f"[{node.keys[k] if node.keys else k!r}]"


def parts_of(x: Any) -> tuple[str, list[Any], list[Any], Any] | None:
    """Kind, keys, children and data; the data are a copy, because x may change afterwards."""
    registration = registration_of(type(x))
    if registration is not None:
        if registration.refused is not None:
            return None
        parts, data = registration.flatten(x)
        return "custom", [], list(parts), data
    if isinstance(x, tuple):
        return "tuple", [], list(x), dict(namespace_of(x) or {})
    if isinstance(x, (list, dict)):
        keys, values = (list(x), list(x.values())) if isinstance(x, dict) else ([], list(x))
        twin = None if type(x) in (list, dict) else _twin(x)
        return "list" if isinstance(x, list) else "dict", keys, values, twin
    if not is_composite(type(x)):
        return None
    held = fields_of(x)
    return "object", list(held), list(held.values()), type(x)


def unflatten(
    structure: Structure, leaves: list[Any], static: Callable[[Any], Any] | None = None
) -> Any:
    """Put leaves into a structure; static parts are kept, or replaced by ``static(value)``.

    No constructor of a tuple, dict or dataclass is run: what it checks, or computes anew, was done
    when the value was made, and tangents need not pass its checks.
    """
    if structure.kind == "leaf":  # the commonest
        return leaves[structure.index]
    return _build(structure, leaves, static, {})


def _build(
    node: Structure,
    leaves: list[Any],
    static: Callable[[Any], Any] | None,
    made: dict[int, Any],
) -> Any:
    if node.kind == "leaf":
        return leaves[node.index]
    if node.kind == "static" or (node.kind == "method" and static is not None):
        return node.value if static is None else static(node.value)
    if node.kind == "method":
        return MethodType(node.value.__func__, _build(node.data, leaves, static, made))
    if id(node) in made:
        return made[id(node)]
    kind, data = node.kind, node.data
    out: Any
    if kind == "list":
        out = made[id(node)] = [] if data is None else _twin(data)
        list.extend(out, [_build(c, leaves, static, made) for c in node.children])
    elif kind == "dict":
        out = made[id(node)] = {} if data is None else _twin(data)
        store = in_c(type(out), "__setitem__")
        for key, child in zip(node.keys, node.children, strict=True):
            store(out, key, _build(child, leaves, static, made))
    elif kind == "object":
        out = made[id(node)] = blank(data)
        parts = [_build(child, leaves, static, made) for child in node.children]
        set_attributes(out, dict(zip(node.keys, parts, strict=True)))
    else:
        children = [_build(c, leaves, static, made) for c in node.children]
        out = made[id(node)] = _custom_or_tuple(
            node, children, tangent=static is not None and static(None) is NoTangent
        )
    return out


def _custom_or_tuple(node: Structure, children: list[Any], *, tangent: bool) -> Any:
    cls = type(node.value)
    registration = registration_of(cls)
    if registration is not None:
        if tangent and registration.tangent is not None:
            return registration.tangent(node.data, tuple(children))
        return registration.unflatten(node.data, tuple(children))
    if cls is tuple:
        return tuple(children)
    try:
        out: Any = tuple.__new__(cls, children)
    except TypeError:  # a structure sequence written in C, such as os.stat_result
        return cls(children)
    if node.data:  # a property may have the name of what is held under it
        out.__dict__.update(node.data)
    return out


def _twin(x: Any) -> Any:
    """A second list or dict with x's attributes and no items; no code of x's class is run."""
    out = blank(type(x))
    set_attributes(out, fields_of(x))
    if isinstance(x, defaultdict):
        out.default_factory = x.default_factory
    return out


def map_attributes(node: Structure, f: Callable[[Any], Any]) -> None:
    """Replace what a tuple, list or dict of its own class holds beside its items."""
    if node.kind == "tuple":
        node.data = {name: f(held) for name, held in node.data.items()}
    elif node.data is not None:
        set_attributes(node.data, {name: f(held) for name, held in fields_of(node.data).items()})


def leaf_order(structure: Structure) -> list[int]:
    """The leaf of each place, in order: an array at two places counts twice."""
    return list(_leaf_order(structure, ()))


def _leaf_order(node: Structure, above: tuple[Structure, ...]) -> Iterator[int]:
    if node.kind == "leaf":
        yield node.index
    elif not any(node is a for a in above):
        for child in node.children:
            yield from _leaf_order(child, (*above, node))


_BESIDE = ("static", "tuple", "list", "dict")


def opaque_parts(y: Any) -> Iterator[tuple[Any, str, list[Any]]]:
    """Yield ``(object, attribute, leaves)`` for the attributes that hold leaves.

    The objects are tuples, lists and dicts of classes of their own, whose tangents have items
    alone, and objects without a tangent type.
    """
    objects = [] if is_leaf(y) else [y]
    seen: dict[int, Any] = {}  # kept, so that nothing else gets their addresses
    while objects:
        nodes = [flatten(objects.pop())[1]]
        while nodes:
            node = nodes.pop()
            nodes.extend(node.children if id(node) not in seen else ())
            seen[id(node)] = node
            o = node.value
            attributes = attributes_of(o) if node.kind in _BESIDE else None
            if not attributes or callable(o) or isinstance(o, ModuleType) or id(o) in seen:
                continue
            seen[id(o)] = o
            for name, value in attributes.items():
                leaves, _ = flatten(value)
                if leaves:
                    yield o, name, leaves
                objects.append(value)


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
    leaves, _ = flatten(tangents, leaf=lambda t: isinstance(t, Chunk))
    return leaves[0].n if leaves else None
