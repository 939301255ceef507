"""The inverse of a reversible program: its statements inverted, in the opposite order."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, TypeVar

from fwdad.reversible.language.program import (
    Allocate,
    Block,
    Call,
    Compute,
    For,
    Free,
    If,
    Instruct,
    Program,
    Statement,
    Update,
    While,
    with_blocks,
)

S = TypeVar("S", bound=Statement)

_OPPOSITE = {"+": "-", "-": "+", "*": "/", "/": "*", "^": "^"}


def inverted_block(block: Block) -> Block:
    """A block that undoes what this one does."""
    return [inverted(s) for s in reversed(block)]


def inverted(s: Statement) -> Statement:
    """The statement that undoes this one."""
    if isinstance(s, (Allocate, Free)):
        opposite = Free if isinstance(s, Allocate) else Allocate
        inverse = opposite(s.node, s.variable, s.value)
        inverse.apart = s.apart
        return inverse
    if isinstance(s, Compute):  # its first block runs forwards and is undone in both directions
        compute = copy.copy(s)
        compute.inside = inverted_block(s.inside)
        return compute
    return with_blocks(turned(s), inverted_block)


def turned(s: S) -> S:
    """The statement that undoes this one if its blocks are undone.

    The statement neither begins nor ends a variable.
    """
    turned = copy.copy(s)
    for name, value in _changes(s).items():
        setattr(turned, name, value)
    return turned


def _changes(s: Statement) -> dict[str, Any]:
    """What is different in the statement that undoes another one."""
    if isinstance(s, Update):
        return {"op": _OPPOSITE[s.op]}
    if isinstance(s, (If, While)):
        return {"pre": s.post, "post": s.pre}
    if isinstance(s, For):
        return {"backwards": not s.backwards}
    if isinstance(s, (Call, Instruct)):
        return {"inverse": not s.inverse}
    return {}  # it is its own inverse


def inverted_program(program: Program, name: str) -> Program:
    """The program that undoes another."""
    return dataclasses.replace(program, name=name, body=inverted_block(program.body))
