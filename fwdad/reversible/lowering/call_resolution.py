"""Which functions the calls of a program run, with arguments in the order of the parameters."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from typing import Any

from fwdad.errors import IrreversibleError
from fwdad.reversible.arguments.kinds import Function, Kind, Record, is_number, is_value
from fwdad.reversible.language.places import steps, text
from fwdad.reversible.language.program import (
    Allocate,
    Block,
    Call,
    Free,
    Program,
    Variable,
    expanded,
)
from fwdad.reversible.language.static_checks import check_call
from fwdad.reversible.language.syntax import location
from fwdad.reversible.lowering.outside import Outside

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
    return tuple(entry for name, kind in known.items() for entry in _functions_in(name, kind))


def _functions_in(name: str, kind: Kind) -> list[tuple[str, Any]]:
    if isinstance(kind, Function):
        return [(name, kind.value)]
    if not isinstance(kind, Record):
        return []
    fields = [each for f, k in kind.fields for each in _functions_in(f"{name}.{f}", k)]
    return [(name, Class(kind.cls)), *fields]


def value_paths(name: str, kind: Kind) -> list[str]:
    """Where the numbers and arrays of a parameter stand, in the order of its variables."""
    if isinstance(kind, Record):
        return [path for f, k in kind.fields for path in value_paths(f"{name}.{f}", k)]
    return [name] if is_value(kind) else []


# -- calls


def resolved(outside: Outside, program: Program, world: World) -> Program:
    """A program whose calls know their functions, with arguments in the order of its parameters.

    ``world`` has the functions and classes among the arguments.
    """
    known = dict(world)
    names = set(program.names)
    body = expanded(program.body, lambda s: _resolved_call(outside, program, known, names, s))
    return Program(program.name, program.params, body, program.filename, names)


def _resolved_call(
    outside: Outside, program: Program, known: dict[str, Any], names: set[str], s: Call
) -> Block:
    f, owner = _meant(outside, known, s)
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
            a = outside.named(names, f"{name}_default", parameter.default)
            holds = is_number(parameter.default)
        else:  # ~g of a parameter that is no function
            holds = isinstance(a, ast.UnaryOp) and function_of(outside, known, a) is None
        if not holds:
            args.append(a)
            continue
        variable = Variable(_fresh(names, "value"))
        before.append(Allocate(s.node, variable, a))
        after.append(Free(s.node, variable, a))
        args.append(ast.copy_location(ast.Name(variable.name, ast.Load()), s.node))
    call = Call(s.node, s.function, args, s.inverse, meant=f, fields=s.fields)
    check_call(program, call)
    return [*before, call, *after[::-1]]


def _meant(outside: Outside, known: dict[str, Any], s: Call) -> tuple[Any, ast.expr | None]:
    """The function of a call, and the first argument that it has as a method."""
    function = function_of(outside, known, s.function)
    if s.owner is None or function is not None:
        return function, None
    of = known.get(text(s.owner))
    method = getattr(of.cls, s.function.attr, None) if isinstance(of, Class) else None  # type: ignore[attr-defined]
    return (method, s.owner) if hasattr(method, "definition") else (None, None)


def function_of(outside: Outside, known: dict[str, Any], e: ast.expr) -> Any:
    """The function that an expression means, or None."""
    if isinstance(e, ast.UnaryOp):
        f = function_of(outside, known, e.operand)
        return ~f if hasattr(f, "definition") else None
    argument = known.get(text(e))
    if argument is not None:
        return None if isinstance(argument, Class) else argument
    return None if steps(e)[0] in outside.local else outside.meaning(e)


def _fresh(names: set[str], name: str) -> str:
    candidate, k = name, 1
    while candidate in names:
        k += 1
        candidate = f"{name}_{k}"
    names.add(candidate)
    return candidate


# -- what is updated
