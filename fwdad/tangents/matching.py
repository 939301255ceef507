"""Seeds and cotangents beside the structure that they must have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import SeedError, type_in_words, with_article
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.composite import WITHOUT, Structure, flatten, parts_of, step_of, unflatten
from fwdad.tangents.registrations import registration_of
from fwdad.tangents.zero import ZERO, NoTangent, Zero


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
    elif node.kind not in WITHOUT and not any(node is a for a in above):
        path, what = names
        for child, part, step in _pairs(node, v, path, what):
            _gather(child, part, (path + step, what), gathered, (*above, node))


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
    if node.kind in WITHOUT or (id(node), id(v)) in seen:
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
    steps = [step_of(node, k) for k in range(len(node.children))]
    if isinstance(v, Zero):
        return [(child, ZERO, step) for child, step in zip(node.children, steps, strict=True)]
    parts = parts_of(v)
    if parts is None and node.kind == "custom" and len(node.children) == 1:
        return [(node.children[0], v, "")]
    if parts is None or parts[0] != node.kind or not _as_many(node, parts[2]):
        raise SeedError(f"the {what} for {path} is {_other(node, v, parts, path)}")
    _, keys, children, data = parts
    reason = _mismatch(node, v, data, path) if node.kind == "custom" else None
    if reason is not None:
        raise SeedError(f"the {what} for {path} is {reason}")
    if node.kind == "object":
        return _fields(node, (keys, children), steps, path, what)
    if node.keys:
        if set(keys) != set(node.keys):
            raise SeedError(f"the {what} for {path} has the keys {keys}; {path} has {node.keys}")
        by_key = dict(zip(keys, children, strict=True))
        children = [by_key[key] for key in node.keys]
    return list(zip(node.children, children, steps, strict=True))


def _as_many(node: Structure, children: list[Any]) -> bool:
    return node.kind == "object" or len(children) == len(node.children)


def _mismatch(node: Structure, v: Any, data: Any, path: str) -> str | None:
    """Why an instance of a registered class has not the structure of a node; None if it has."""
    registration = registration_of(type(node.value))
    if type(v) is not type(node.value):
        return f"{type_in_words(v)}, and {path} is {type_in_words(node.value)}"
    if registration is None or registration.mismatch is None:
        return None
    return registration.mismatch(node.data, data)


def _fields(
    node: Structure, parts: tuple[list[str], list[Any]], steps: list[str], path: str, what: str
) -> list[tuple[Structure, Any, str]]:
    """As :func:`_pairs`, for an object: fields without a tangent space need not be there."""
    given = dict(zip(*parts, strict=True))
    found = []
    for key, child, step in zip(node.keys, node.children, steps, strict=True):
        if key in given:
            found.append((child, given.pop(key), step))
        elif child.kind not in WITHOUT:
            raise SeedError(
                f"the {what} for {path} has the fields {parts[0]}; {path} has {node.keys}"
            )
    if given:
        raise SeedError(f"the {what} for {path} has the fields {parts[0]}; {path} has {node.keys}")
    return found


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
