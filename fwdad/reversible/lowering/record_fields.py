"""Programs whose records are flattened: each field is a variable of its own."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from fwdad.reversible.arguments.kinds import Kind, Record
from fwdad.reversible.language import nodes
from fwdad.reversible.language.program import (
    Block,
    Call,
    Fields,
    Program,
    Statement,
    walk,
    with_blocks,
)
from fwdad.reversible.lowering.function_builder import Names


def flattened(program: Program, kinds: dict[str, Kind]) -> Program:
    """A program whose records are flattened into variables; calls keep the names of records.

    Calls must be resolved. The kinds of the fields are added to ``kinds``.
    """
    if not any(isinstance(kinds[p], Record) for p in program.params):
        return program
    names = Names(program.names)
    rename = _Fields()
    params: list[str] = []
    for p in program.params:
        kind = kinds[p]
        if isinstance(kind, Record):
            params += rename.spread(p, kind, kinds, names)
        else:
            params.append(p)
    body = mapped(program.body, lambda e: rename.visit(nodes.copy_of(e)))
    for s in walk(body):
        if isinstance(s, Call):
            passed = [a.id for a in s.args if isinstance(a, ast.Name)]
            s.fields = s.fields | {
                name: rename.fields[name] for name in passed if name in rename.fields
            }
    return Program(program.name, params, body, program.filename, program.names | set(params))


def mapped(block: Block, f: Any) -> Block:
    """A block with other expressions; its variables are the same."""
    return [_mapped(s, f) for s in block]


def _mapped(s: Statement, f: Any) -> Statement:
    copied = with_blocks(s, lambda block: mapped(block, f))
    for field in dataclasses.fields(s):
        value = getattr(s, field.name)
        if field.name == "apart":
            copied.apart = [[tuple(f(e) for e in pair) for pair in pairs] for pairs in value]
        elif isinstance(value, ast.expr) and field.name != "node":
            setattr(copied, field.name, f(value))
        elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
            setattr(copied, field.name, [f(e) for e in value])
    return copied


class _Fields(ast.NodeTransformer):
    """Replace fields of records by variables; a variable may be a record again."""

    def __init__(self) -> None:
        self.fields: dict[str, Fields] = {}
        self.variables: dict[tuple[str, str], str] = {}

    def spread(self, name: str, kind: Record, kinds: dict[str, Kind], names: Names) -> list[str]:
        """Name a record's variables, and return those that are not records."""
        variables: list[str] = []
        parts: dict[str, str | Fields] = {}
        for f, k in kind.fields:
            variable = self.variables[name, f] = names.fresh(f"{name}_{f}")
            kinds[variable] = k
            if isinstance(k, Record):
                variables += self.spread(variable, k, kinds, names)
                parts[f] = self.fields[variable]
            else:
                variables.append(variable)
                parts[f] = variable
        self.fields[name] = kind.cls, parts
        return variables

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        value = self.visit(node.value)
        variable = (
            self.variables.get((value.id, node.attr)) if isinstance(value, ast.Name) else None
        )
        if variable is not None:
            return ast.copy_location(ast.Name(variable, node.ctx), node)
        return ast.copy_location(ast.Attribute(value, node.attr, node.ctx), node)
