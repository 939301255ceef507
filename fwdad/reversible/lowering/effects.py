"""What a block updates: variables and fields, also in the functions that it calls."""

from __future__ import annotations

import ast
from typing import Any

from fwdad.reversible.language.places import METADATA, steps, text
from fwdad.reversible.language.program import (
    Block,
    Call,
    Fields,
    walk,
    written_places,
)
from fwdad.reversible.lowering.call_resolution import World, function_of
from fwdad.reversible.lowering.outside import Outside


def path_of(place: ast.expr) -> str:
    """The variable or field that a place is a part of: ``p.v`` for ``p.v[0]``."""
    root, path = steps(place)
    parts = [root]
    for step in path:
        if not isinstance(step, ast.Attribute) or step.attr in METADATA:
            break
        parts.append(step.attr)
    return ".".join(parts)


def touches(updated: set[str], path: str) -> bool:
    """Whether an update of some paths changes the value at another."""
    return any(w == path or w.startswith(f"{path}.") or path.startswith(f"{w}.") for w in updated)


def updated_paths(outside: Outside, block: Block, known: dict[str, Any]) -> set[str]:
    """The variables and fields that a block updates; its calls are resolved."""
    paths: set[str] = set()
    for s in walk(block):
        if not isinstance(s, Call):
            paths |= {path_of(p) for p in written_places(s)}
        elif s.meant is not None:
            inner = s.meant.definition
            arguments = dict(zip(inner.forward.params, s.args, strict=True))
            for path in inner.updated_paths(_inner_world(outside, arguments, known), outside):
                name, _, rest = path.partition(".")
                paths |= _paths_of(s, arguments[name], rest)
    return paths


def _paths_of(s: Call, a: ast.expr, rest: str) -> set[str]:
    """What a path that begins with an argument is here."""
    fields = s.fields.get(a.id) if isinstance(a, ast.Name) else None
    if fields is not None:
        return _field_paths(fields, rest)
    here = path_of(a)
    whole = text(a) == here
    return {f"{here}.{rest}" if rest and whole else here}


def _field_paths(fields: Fields, rest: str) -> set[str]:
    if not rest:
        parts = fields[1].values()
        return {p for v in parts for p in ({v} if isinstance(v, str) else _field_paths(v, ""))}
    name, _, later = rest.partition(".")
    part = fields[1][name]
    if isinstance(part, str):
        return {f"{part}.{later}" if later else part}
    return _field_paths(part, later)


def _inner_world(outside: Outside, arguments: dict[str, ast.expr], known: dict[str, Any]) -> World:
    """The functions and classes among the arguments of a call."""
    world: list[tuple[str, Any]] = []
    for name, a in arguments.items():
        here = text(a)
        inside = [
            (name + path[len(here) :], value)
            for path, value in known.items()
            if path == here or path.startswith(f"{here}.")
        ]
        f = None if inside else function_of(outside, known, a)
        world += inside if f is None else [(name, f)]
    return tuple(world)
