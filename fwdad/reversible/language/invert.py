"""The inverse of a reversible program: its statements inverted, in the opposite order."""

from __future__ import annotations

from typing import Any

from fwdad.reversible.language.program import (
    Allocate,
    Block,
    Call,
    Compute,
    Define,
    Flip,
    For,
    Free,
    If,
    Instruct,
    Program,
    Require,
    Statement,
    Swap,
    Unchecked,
    Update,
    While,
)

OPPOSITE = {"+": "-", "-": "+", "*": "/", "/": "*", "^": "^"}


def inverted_block(block: Block) -> Block:
    """A block that undoes what this one does."""
    return [inverted(s) for s in reversed(block)]


def inverted(s: Statement) -> Statement:
    """The statement that undoes this one."""
    inverse: Statement = _INVERSES[type(s)](s)
    inverse.apart = s.apart
    return inverse


_INVERSES: dict[type, Any] = {
    Update: lambda s: Update(s.node, s.place, OPPOSITE[s.op], s.value),
    Swap: lambda s: Swap(s.node, s.a, s.b),
    Flip: lambda s: Flip(s.node, s.place, s.op),
    Instruct: lambda s: Instruct(s.node, s.name, s.instruction, s.args, not s.inverse),
    Allocate: lambda s: Free(s.node, s.variable, s.value),
    Free: lambda s: Allocate(s.node, s.variable, s.value),
    Define: lambda s: Define(s.node, s.variable, s.value, inverted_block(s.body)),
    If: lambda s: If(s.node, s.post, s.pre, inverted_block(s.body), inverted_block(s.orelse)),
    While: lambda s: While(s.node, s.post, s.pre, inverted_block(s.body)),
    For: lambda s: For(
        s.node, s.variable, s.start, s.stop, s.step, inverted_block(s.body), not s.backwards,
        s.moving,
    ),
    Call: lambda s: Call(
        s.node, s.function, s.args, not s.inverse, s.keywords, s.owner, s.meant, s.fields
    ),
    Compute: lambda s: Compute(s.node, s.body, inverted_block(s.inside)),
    Require: lambda s: Require(
        s.node, s.test, s.what, s.variable, s.found, s.expected, s.error
    ),
    Unchecked: lambda s: Unchecked(s.node, inverted_block(s.body)),
}  # fmt: skip


def inverted_program(program: Program, name: str) -> Program:
    """The program that undoes another."""
    return Program(
        name, program.params, inverted_block(program.body), program.filename, program.names
    )
