"""What the calls of a reversible program mean, and what it updates."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from typing import Any

from fwdad.errors import IrreversibleError
from fwdad.reversible.check import check_call
from fwdad.reversible.kinds import Function, Kind, Other, Record, is_number
from fwdad.reversible.places import METADATA, steps, text
from fwdad.reversible.program import (
    Allocate,
    Block,
    Call,
    Fields,
    Free,
    Program,
    Variable,
    expanded,
    walk,
    written_places,
)
from fwdad.reversible.syntax import location

World = tuple[tuple[str, Any], ...]
"""The functions among some arguments, and the classes of records: where they stand, what they are.

``(("f", sin), ("model", Class(Model)), ("model.act", tanh))``
"""


@dataclass(frozen=True)
class Class:
    """Stands for a record: its class has methods."""

    cls: type


def world_of(known: dict[str, Kind]) -> World:
    """The functions and classes among parameters of some kinds."""
    return tuple(found for name, kind in known.items() for found in _found(name, kind))


def _found(name: str, kind: Kind) -> list[tuple[str, Any]]:
    if isinstance(kind, Function):
        return [(name, kind.value)]
    if not isinstance(kind, Record):
        return []
    fields = [each for f, k in kind.fields for each in _found(f"{name}.{f}", k)]
    return [(name, Class(kind.cls)), *fields]


def value_paths(name: str, kind: Kind) -> list[str]:
    """Where the numbers and arrays of a parameter stand, in the order of its variables."""
    if isinstance(kind, Record):
        return [path for f, k in kind.fields for path in value_paths(f"{name}.{f}", k)]
    return [] if isinstance(kind, (Function, Other)) else [name]


# -- calls


def resolved(definition: Any, program: Program, world: World) -> Program:
    """A program whose calls know their functions, with arguments in the order of its parameters.

    ``world`` has the functions and classes among the arguments.
    """
    known = dict(world)
    names = set(program.names)
    body = expanded(program.body, lambda s: _resolved_call(definition, program, known, names, s))
    return Program(program.name, program.params, body, program.filename, names)


def _resolved_call(
    definition: Any, program: Program, known: dict[str, Any], names: set[str], s: Call
) -> Block:
    f, owner = _meant(definition, known, s)
    if not hasattr(f, "definition"):
        return [s]  # refused where it is written
    parameters = inspect.signature(f.definition.f).parameters
    count = len(s.args) - len(s.keywords)
    positional = [*([] if owner is None else [owner]), *s.args[:count]]
    try:
        bound = inspect.Signature(list(parameters.values())).bind(
            *positional, **dict(zip(s.keywords, s.args[count:], strict=True))
        )
    except TypeError as error:
        message = f"{text(s.function)}: {error}"
        raise IrreversibleError(message, location(program.filename, s.node)) from None
    before: Block = []
    after: Block = []
    args: list[ast.expr] = []
    for name, parameter in parameters.items():
        a = bound.arguments.get(name)
        if a is None:
            a = definition.named(names, f"{name}_default", parameter.default)
            holds = is_number(parameter.default)
        else:  # ~g of a parameter that is no function
            holds = isinstance(a, ast.UnaryOp) and _function_of(definition, known, a) is None
        if not holds:
            args.append(a)
            continue
        variable = Variable(_fresh(names, "value"))
        before.append(Allocate(s.node, variable, a))
        after.append(Free(s.node, variable, a))
        args.append(ast.copy_location(ast.Name(variable.name, ast.Load()), s.node))
    made = Call(s.node, s.function, args, s.inverse, meant=f, own=s.own)
    check_call(program, made)
    return [*before, made, *after[::-1]]


def _meant(definition: Any, known: dict[str, Any], s: Call) -> tuple[Any, ast.expr | None]:
    """The function of a call, and the first argument that it has as a method."""
    found = _function_of(definition, known, s.function)
    if s.owner is None or found is not None:
        return found, None
    of = known.get(text(s.owner))
    method = getattr(of.cls, s.function.attr, None) if isinstance(of, Class) else None  # type: ignore[attr-defined]
    return (method, s.owner) if hasattr(method, "definition") else (None, None)


def _function_of(definition: Any, known: dict[str, Any], e: ast.expr) -> Any:
    """The function that an expression means, or None."""
    if isinstance(e, ast.UnaryOp):
        f = _function_of(definition, known, e.operand)
        return ~f if hasattr(f, "definition") else None
    held = known.get(text(e))
    if held is not None:
        return None if isinstance(held, Class) else held
    return None if steps(e)[0] in definition.local else definition.meaning(e)


def _fresh(names: set[str], name: str) -> str:
    found, k = name, 1
    while found in names:
        k += 1
        found = f"{name}_{k}"
    names.add(found)
    return found


# -- what is updated


def path_of(place: ast.expr) -> str:
    """The variable or field that a place is a part of: ``p.v`` for ``p.v[0]``."""
    root, path = steps(place)
    parts = [root]
    for step in path:
        if not isinstance(step, ast.Attribute) or step.attr in METADATA:
            break
        parts.append(step.attr)
    return ".".join(parts)


def touches(written: set[str], path: str) -> bool:
    """Whether an update of some paths changes the value at another."""
    return any(w == path or w.startswith(f"{path}.") or path.startswith(f"{w}.") for w in written)


def updated_paths(definition: Any, block: Block, known: dict[str, Any]) -> set[str]:
    """The variables and fields that a block updates; its calls are resolved."""
    found: set[str] = set()
    for s in walk(block):
        if not isinstance(s, Call):
            found |= {path_of(p) for p in written_places(s)}
        elif s.meant is not None:
            inner = s.meant.definition
            given = dict(zip(inner.forward.params, s.args, strict=True))
            for path in inner.updated_paths(_inner_world(definition, given, known), definition):
                name, _, rest = path.partition(".")
                found |= _paths_of(s, given[name], rest)
    return found


def _paths_of(s: Call, a: ast.expr, rest: str) -> set[str]:
    """What a path that begins with an argument is here."""
    own = s.own.get(a.id) if isinstance(a, ast.Name) else None
    if own is not None:
        return _own_paths(own, rest)
    here = path_of(a)
    whole = text(a) == here
    return {f"{here}.{rest}" if rest and whole else here}


def _own_paths(own: Fields, rest: str) -> set[str]:
    if not rest:
        parts = own[1].values()
        return {p for v in parts for p in ({v} if isinstance(v, str) else _own_paths(v, ""))}
    name, _, later = rest.partition(".")
    part = own[1][name]
    if isinstance(part, str):
        return {f"{part}.{later}" if later else part}
    return _own_paths(part, later)


def _inner_world(definition: Any, given: dict[str, ast.expr], known: dict[str, Any]) -> World:
    """The functions and classes among the arguments of a call."""
    found: list[tuple[str, Any]] = []
    for name, a in given.items():
        here = text(a)
        inside = [
            (name + path[len(here) :], value)
            for path, value in known.items()
            if path == here or path.startswith(f"{here}.")
        ]
        f = None if inside else _function_of(definition, known, a)
        found += inside if f is None else [(name, f)]
    return tuple(found)
