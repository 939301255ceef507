"""Records among the arguments: dataclasses and the like, whose fields become variables."""

from __future__ import annotations

import ast
import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

from fwdad.reversible.kinds import Exact, Function, Kind, Other, Record
from fwdad.reversible.numbers import made_of
from fwdad.reversible.program import Block, Program, Statement


def field_variable(owner: str, name: str) -> str:
    """The variable that a field becomes."""
    return f"{owner}_{name}"


def variables(name: str, kind: Kind) -> list[tuple[str, Kind]]:
    """A parameter's variables: itself, or one for each field."""
    if not isinstance(kind, Record):
        return [(name, kind)]
    found = []
    for f, k in kind.fields:
        found.extend(variables(field_variable(name, f), k))
    return found


def flat_kinds(kinds: tuple[Kind, ...]) -> list[Kind]:
    """The kinds of values that generated code is given."""
    found = [k for kind in kinds for _, k in variables("", kind)]
    return [k for k in found if not isinstance(k, (Function, Other))]


def flat_values(args: tuple[Any, ...], kinds: tuple[Kind, ...]) -> list[Any]:
    """The values that generated code is given."""
    found: list[Any] = []
    for a, k in zip(args, kinds, strict=True):
        if isinstance(k, Record):
            inner = tuple(getattr(a, name) for name, _ in k.fields)
            found.extend(flat_values(inner, tuple(kind for _, kind in k.fields)))
        elif isinstance(k, Exact):
            found.append(a.kept)
        elif not isinstance(k, (Function, Other)):
            found.append(a)
    return found


def rebuilt(args: tuple[Any, ...], kinds: tuple[Kind, ...], values: Iterator[Any]) -> list[Any]:
    """Arguments with new values, in the order of :func:`flat_values`."""
    found: list[Any] = []
    for a, k in zip(args, kinds, strict=True):
        if isinstance(k, Record):
            inner = tuple(getattr(a, name) for name, _ in k.fields)
            new = rebuilt(inner, tuple(kind for _, kind in k.fields), values)
            found.append(_with_fields(a, k, new))
        elif isinstance(k, (Function, Other)):
            found.append(a)
        elif isinstance(k, Exact):
            found.append(made_of(k.cls, next(values), k.format))
        else:
            found.append(next(values))
    return found


def _with_fields(a: Any, kind: Record, new: list[Any]) -> Any:
    by_name = dict(zip((name for name, _ in kind.fields), new, strict=True))
    if isinstance(a, tuple):
        return a._replace(**by_name)  # type: ignore[attr-defined]
    made = copy.copy(a)
    for name, value in by_name.items():
        object.__setattr__(made, name, value)
    return made


def flattened(program: Program, kinds: dict[str, Kind]) -> Program:
    """A program whose records are variables of their own; names of records stay in calls.

    Parameters
    ----------
    program : Program
        As it was read.
    kinds : dict
        The kinds of its parameters; those of the fields are added.
    """
    records = {p: k for p, k in kinds.items() if isinstance(k, Record)}
    if not records:
        return program
    params = []
    for p in program.params:
        for name, kind in variables(p, kinds[p]):
            params.append(name)
            kinds[name] = kind
    rename = _Fields(records)
    body = mapped(program.body, lambda e: rename.visit(copy.deepcopy(e)))
    return Program(program.name, params, body, program.filename, program.names | set(params))


def mapped(block: Block, f: Any) -> Block:
    """A block with other expressions; its variables are the same."""
    return [_mapped(s, f) for s in block]


def _mapped(s: Statement, f: Any) -> Statement:
    made = copy.copy(s)
    for field in dataclasses.fields(s):
        value = getattr(s, field.name)
        if field.name == "node":
            continue
        if isinstance(value, ast.expr):
            value = f(value)
        elif field.name == "apart":
            value = [[tuple(f(e) for e in pair) for pair in pairs] for pairs in value]
        elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
            value = [f(e) for e in value]
        elif isinstance(value, list):
            value = mapped(value, f)
        setattr(made, field.name, value)
    return made


class _Fields(ast.NodeTransformer):
    """Variables for fields."""

    def __init__(self, records: dict[str, Record]) -> None:
        self.records = dict(records)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        value = self.visit(node.value)
        record = self.records.get(value.id) if isinstance(value, ast.Name) else None
        kinds = dict(record.fields) if record is not None else {}
        if node.attr in kinds:
            name = field_variable(value.id, node.attr)
            if isinstance(kinds[node.attr], Record):
                self.records[name] = kinds[node.attr]
            return ast.copy_location(ast.Name(name, node.ctx), node)
        return ast.copy_location(ast.Attribute(value, node.attr, node.ctx), node)
