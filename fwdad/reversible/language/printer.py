"""Reversible programs as text: in their own language, so that an inverse can be read and run."""

from __future__ import annotations

import ast
from typing import Any

from fwdad.reversible.language.places import text
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


def show_program(program: Program) -> str:
    """A program, or its inverse, as the source of a reversible function."""
    lines = [
        "@reversible",
        f"def {program.name}({', '.join(program.params)}):",
        *_block(program.body),
    ]
    return "\n".join(lines) + "\n"


def _block(block: Block) -> list[str]:
    lines = [line for s in block for line in _LINES[type(s)](s)]
    return [f"    {line}" for line in lines] or ["    pass"]


def _head(line: str, block: Block) -> list[str]:
    return [line, *_block(block)]


def _condition(pre: ast.expr, post: ast.expr) -> str:
    same = text(pre) == text(post)
    return text(pre) if same else f"cond({text(pre)}, {text(post)})"


def _if(s: If) -> list[str]:
    lines = _head(f"if {_condition(s.pre, s.post)}:", s.body)
    return [*lines, *_head("else:", s.orelse)] if s.orelse else lines


def _for(s: For) -> list[str]:
    start, stop, step = text(s.start), text(s.stop), s.step
    over = f"range({start}, {stop}, {step})" if step != 1 else f"range({start}, {stop})"
    over = f"range({stop})" if step == 1 and start == "0" else over
    over = f"reversed({over})" if s.backwards else over
    return _head(f"for {s.variable.name} in {over}:", s.body)


def _define(s: Define) -> list[str]:
    inner = [line for t in s.body for line in _LINES[type(t)](t)]
    return [f"{s.variable.name} = {text(s.value)}", *inner]


def _compute(s: Compute) -> list[str]:
    inside = _head("with copy_out():", s.inside) if s.inside else []
    return [*_head("with compute():", s.body), *(f"    {line}" for line in inside)]


def _called(s: Call | Instruct) -> list[str]:
    name = text(s.function) if isinstance(s, Call) else s.name
    keywords = s.keywords if isinstance(s, Call) else ()
    plain = len(s.args) - len(keywords)
    args = [*map(text, s.args[:plain])]
    args += [f"{k}={text(a)}" for k, a in zip(keywords, s.args[plain:], strict=True)]
    return [f"{f'(~{name})' if s.inverse else name}({', '.join(args)})"]


_LINES: dict[type[Statement], Any] = {
    Update: lambda s: [f"{text(s.place)} {s.op}= {text(s.value)}"],
    Swap: lambda s: [f"{text(s.a)}, {text(s.b)} = {text(s.b)}, {text(s.a)}"],
    Flip: lambda s: [f"{text(s.place)} = {s.op}{text(s.place)}"],
    Allocate: lambda s: [f"{s.variable.name} = ancilla({text(s.value)})"],
    Free: lambda s: [f"free({s.variable.name}, {text(s.value)})"],
    Define: _define,
    If: _if,
    While: lambda s: _head(f"while {_condition(s.pre, s.post)}:", s.body),
    For: _for,
    Call: _called,
    Instruct: _called,
    Compute: _compute,
    Require: lambda _: [],  # a part of what stands beside it
    Unchecked: lambda s: _head("with unchecked():", s.body),
}
