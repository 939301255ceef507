"""Composite values: the chunk is pushed to the leaves of tuples, lists, dicts and objects.

A value is flattened into its differentiable leaves and a structure to put leaves back into. An
array or container that appears twice is one leaf, and a container may hold itself.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import defaultdict
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from fwdad.errors import SeedError, UnsupportedTypeError, type_in_words, with_article
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.refused import refusal
from fwdad.tangents.registrations import OWN, registration_of
from fwdad.tangents.zero import ZERO, NoTangent, Zero


class Structure:
    """A composite with its differentiable leaves taken out; ``children`` are its parts, in order.

    ``kind`` is ``"leaf"``, ``"static"``, ``"list"``, ``"tuple"``, ``"dict"``, ``"object"`` or
    ``"custom"``.
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
    return is_leaf(x) or _parts(x) is None


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
    return apart.leaves, apart.visit(x, None)


class _Apart:
    """A value that is being flattened; a closure that calls itself would keep it alive."""

    def __init__(self, *, strict: bool, leaf: Callable[[Any], bool]) -> None:
        self.strict = strict
        self.leaf = leaf
        self.leaves: list[Any] = []
        self.known: dict[int, Structure] = {}
        self.alive: list[Any] = []  # what has its id among the known

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
        parts = _parts(x)
        if parts is None:
            reason = _refusal(x) if self.strict else None
            if reason is not None:
                raise UnsupportedTypeError(_written(path) + reason)
            return Structure("static", x)
        kind, keys, children, data = parts
        node = self.known[id(x)] = Structure(kind, x)
        self.alive.append((x, children))
        node.keys, node.data = keys, data
        for k, child in enumerate(children):
            node.children.append(self.visit(child, (path, node, k)))
        return node


def _refusal(x: Any) -> str | None:
    registration = registration_of(type(x))
    return refusal(x) if registration is None else registration.refused


_Path = tuple[Any, Structure, int] | None


def _written(path: _Path) -> str:
    steps = ""
    while path is not None:
        path, node, k = path
        steps = _step(node, k) + steps
    return f"x{steps} is " if steps else "the argument is "


def _step(node: Structure, k: int) -> str:
    if node.kind == "object":
        return f".{node.keys[k]}"
    return f"[{node.keys[k] if node.keys else k!r}]"


def _parts(x: Any) -> tuple[str, list[Any], list[Any], Any] | None:
    """Kind, keys, children and data; the data are a copy, because x may change afterwards."""
    registration = registration_of(type(x))
    if registration is not None and registration.refused is None:
        parts, data = registration.flatten(x)
        return "custom", [], list(parts), data
    if registration is not None:
        return None
    if isinstance(x, tuple):
        return "tuple", [], list(x), dict(namespace_of(x) or {})
    if isinstance(x, (list, dict)):
        keys, values = (list(x), list(x.values())) if isinstance(x, dict) else ([], list(x))
        twin = None if type(x) in (list, dict) else _twin(x)
        return "list" if isinstance(x, list) else "dict", keys, values, twin
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        names = [f.name for f in dataclasses.fields(x) if hasattr(x, f.name)]
        return "object", names, [getattr(x, n) for n in names], _twin(x)
    return None


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
    if node.kind == "static":
        return node.value if static is None else static(node.value)
    if id(node) in made:
        return made[id(node)]
    kind, data = node.kind, node.data
    out: Any
    if kind == "list":
        out = made[id(node)] = [] if data is None else _twin(data)
        list.extend(out, [_build(c, leaves, static, made) for c in node.children])
    elif kind == "dict":
        out = made[id(node)] = {} if data is None else _twin(data)
        store = _in_c(type(out), "__setitem__")
        for key, child in zip(node.keys, node.children, strict=True):
            store(out, key, _build(child, leaves, static, made))
    elif kind == "object":
        out = made[id(node)] = _twin(data)
        for key, child in zip(node.keys, node.children, strict=True):
            object.__setattr__(out, key, _build(child, leaves, static, made))
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
    """A second instance with x's attributes and no items; no code of x's class is run."""
    cls = type(x)
    out = _in_c(cls, "__new__")(cls)
    for name in _slots(cls):
        if hasattr(x, name):
            object.__setattr__(out, name, getattr(x, name))
    for name, value in (namespace_of(x) or {}).items():
        # a cached property was computed from plain parts: kept, it would lose the derivative
        if not isinstance(getattr(cls, name, None), functools.cached_property):
            object.__setattr__(out, name, value)
    if isinstance(x, defaultdict):
        out.default_factory = x.default_factory
    return out


def _in_c(cls: type, name: str) -> Any:
    """The method of a class's builtin base, beneath any Python override."""
    for base in cls.__mro__:
        member = base.__dict__.get(name)
        if member is not None and not isinstance(member, (FunctionType, staticmethod)):
            return member
    raise TypeError(f"{cls.__qualname__} has no {name}")


def _slots(cls: type) -> list[str]:
    """The names of a class's slots, as Python mangles them."""
    names = []
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            private = name.startswith("__") and not name.endswith("__")
            names.append(f"_{base.__name__.lstrip('_')}{name}" if private else name)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def match(structure: Structure, other: Any, path: str = "x", what: str = "seed") -> list[Any]:
    """The parts of another value at the places of a structure's leaves.

    ``ZERO`` in place of a composite stands for zeros at all its leaves, and an array in place of a
    registered object with one leaf for that leaf. Raises SeedError if the structures differ.
    """
    if structure.kind == "leaf":
        return [other]
    tangents: dict[int, Any] = {}
    _match(structure, other, path, what, tangents, {})
    count = 1 + max(tangents) if tangents else 0
    return [tangents[k] for k in range(count)]


def gather(
    structure: Structure, other: Any, path: str = "x", what: str = "seed"
) -> list[list[Any]]:
    """As :func:`match`, with all parts that stand for a leaf: an array may be at several places."""
    gathered: dict[int, list[Any]] = {}
    _gather(structure, other, (path, what), gathered, ())
    return [gathered[k] for k in range(len(gathered))]


def _gather(
    node: Structure,
    v: Any,
    names: tuple[str, str],
    gathered: dict[int, list[Any]],
    above: tuple[Structure, ...],
) -> None:
    if node.kind == "leaf":
        gathered.setdefault(node.index, []).append(v)
    elif node.kind != "static" and not any(node is a for a in above):
        path, what = names
        for child, part, step in _pairs(node, v, path, what):
            _gather(child, part, (path + step, what), gathered, (*above, node))


def leaf_order(structure: Structure) -> list[int]:
    """The leaf of each place, in order: an array at two places counts twice."""
    return list(_leaf_order(structure, ()))


def _leaf_order(node: Structure, above: tuple[Structure, ...]) -> Iterator[int]:
    if node.kind == "leaf":
        yield node.index
    elif not any(node is a for a in above):
        for child in node.children:
            yield from _leaf_order(child, (*above, node))


def _match(
    node: Structure,
    v: Any,
    path: str,
    what: str,
    tangents: dict[int, Any],
    seen: dict[tuple[int, int], Any],
) -> None:
    if node.kind == "leaf":
        if node.index in tangents and not _same(tangents[node.index], v):
            raise SeedError(
                f"{path} is the same array as another part of the argument, so it has one "
                f"tangent; got two different {what}s for it"
            )
        tangents[node.index] = v
        return
    # a shared container may meet another value the second time; a cycle meets the same one
    if node.kind == "static" or (id(node), id(v)) in seen:
        return
    seen[id(node), id(v)] = v
    for child, part, step in _pairs(node, v, path, what):
        _match(child, part, path + step, what, tangents, seen)


def match_or_none(structure: Structure, other: Any) -> list[Any] | None:
    """As :func:`match`; None if the structures differ."""
    try:
        return match(structure, other)
    except SeedError:
        return None


def _pairs(node: Structure, v: Any, path: str, what: str) -> list[tuple[Structure, Any, str]]:
    """The children of a structure, each with the part of v at its place."""
    steps = [_step(node, k) for k in range(len(node.children))]
    if isinstance(v, Zero):
        return [(child, ZERO, step) for child, step in zip(node.children, steps, strict=True)]
    parts = _parts(v)
    if parts is None and node.kind == "custom" and len(node.children) == 1:
        return [(node.children[0], v, "")]
    if parts is None or parts[0] != node.kind or len(parts[2]) != len(node.children):
        raise SeedError(f"the {what} for {path} is {_other(node, v, parts, path)}")
    _, keys, children, data = parts
    if node.kind == "custom":
        registration = registration_of(type(node.value))
        reason = None
        if type(v) is not type(node.value):
            reason = f"{type_in_words(v)}, and {path} is {type_in_words(node.value)}"
        elif registration is not None and registration.mismatch is not None:
            reason = registration.mismatch(node.data, data)
        if reason is not None:
            raise SeedError(f"the {what} for {path} is {reason}")
    if node.keys:
        if set(keys) != set(node.keys):
            raise SeedError(f"the {what} for {path} has the keys {keys}; {path} has {node.keys}")
        by_key = dict(zip(keys, children, strict=True))
        children = [by_key[key] for key in node.keys]
    return list(zip(node.children, children, steps, strict=True))


def _other(node: Structure, v: Any, parts: Any, path: str) -> str:
    """What v is, and what has its place in the structure."""
    came, name = type_in_words(v), type(node.value).__name__
    if parts is None or parts[0] != node.kind:
        return f"{came}; {path} is {with_article(name)} of {_counted(node.children)}"
    if node.keys:
        return f"{came} with the keys {parts[1]}; {path} has {node.keys}"
    return (
        f"{came} of {_counted(parts[2])}; {path} is {with_article(name)} of "
        f"{_counted(node.children)}"
    )


def _counted(parts: list[Any]) -> str:
    return f"{len(parts)} part" + "s" * (len(parts) != 1)


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, (Chunk, Zero)) or isinstance(b, (Chunk, Zero)):
        both = isinstance(a, Chunk) and isinstance(b, Chunk)
        return both and bool(np.array_equal(a.lanes, b.lanes))
    return bool(np.array_equal(np.asarray(a), np.asarray(b)))


def map_tree(f: Callable[[Any, Any], Any], x: Any, t: Any) -> Any:
    """Apply ``f(leaf, tangent)`` at every leaf of x."""
    leaves, structure = flatten(x)
    if not leaves or isinstance(t, Zero) or t is NoTangent:
        return x
    tangents = match(structure, t, what="tangent")
    return unflatten(structure, [f(a, b) for a, b in zip(leaves, tangents, strict=True)])


def opaque_parts(y: Any) -> Iterator[tuple[Any, str, list[Any]]]:
    """Yield ``(object, attribute, leaves)`` for the attributes that hold leaves.

    The objects are tuples, and objects without a tangent type.
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
            attributes = namespace_of(o) if node.kind in ("static", "tuple") else None
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


__all__ = [
    "ZERO",
    "Structure",
    "flatten",
    "gather",
    "is_leaf",
    "is_part",
    "lanes_of",
    "leaf_order",
    "map_tree",
    "match",
    "match_or_none",
    "opaque_parts",
    "unflatten",
    "unzip",
]
