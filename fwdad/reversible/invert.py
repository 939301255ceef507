"""The inverse of a reversible program: its statements inverted, in the opposite order."""

from __future__ import annotations

from fwdad.reversible.program import (
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
    made = _inverted(s)
    made.apart = s.apart
    return made


def _inverted(s: Statement) -> Statement:  # noqa: PLR0911  (one return for each kind)
    if isinstance(s, Update):
        return Update(s.node, s.place, OPPOSITE[s.op], s.value)
    if isinstance(s, (Swap, Flip)):
        return s
    if isinstance(s, Instruct):
        return Instruct(s.node, s.name, s.instruction, s.args, not s.inverse)
    if isinstance(s, Allocate):
        return Free(s.node, s.variable, s.value)
    if isinstance(s, Free):
        return Allocate(s.node, s.variable, s.value)
    if isinstance(s, Define):
        return Define(s.node, s.variable, s.value, inverted_block(s.body))
    if isinstance(s, If):
        return If(s.node, s.post, s.pre, inverted_block(s.body), inverted_block(s.orelse))
    if isinstance(s, While):
        return While(s.node, s.post, s.pre, inverted_block(s.body))
    if isinstance(s, For):
        body = inverted_block(s.body)
        return For(s.node, s.variable, s.start, s.stop, s.step, body, not s.backwards, s.moving)
    if isinstance(s, Call):
        return Call(s.node, s.function, s.args, not s.inverse)
    if isinstance(s, Compute):
        return Compute(s.node, s.body, inverted_block(s.inside))
    if isinstance(s, Unchecked):
        return Unchecked(s.node, inverted_block(s.body))
    message = f"no inverse of {type(s).__name__} is known"
    raise TypeError(message)


def inverted_program(program: Program, name: str) -> Program:
    """The program that undoes another."""
    return Program(
        name, program.params, inverted_block(program.body), program.filename, program.names
    )
