"""Inlining of calls of programs that are not recursive."""

from __future__ import annotations

from fwdad.ir.clone import Cloner
from fwdad.ir.ops import Block, Call, Op, Operand, Program, Value
from fwdad.ir.rewrite import blocks_of, substitute


def inline(program: Program, *, adjoints: bool = True) -> bool:
    """Inline calls of programs; return whether there were any.

    Calls that have a reverse pass of their own are inlined only if ``adjoints``.
    """
    mapping: dict[Value, Operand] = {}
    for block in list(blocks_of(program.block)):
        _inline(block, mapping, adjoints)
    if mapping:
        substitute(program.block, mapping)
    return bool(mapping)


def _inline(block: Block, mapping: dict[Value, Operand], adjoints: bool) -> None:
    ops: list[Op] = []
    for op in block.ops:
        wanted = isinstance(op, Call) and (adjoints or op.adjoint is None)
        if not (wanted and isinstance(op, Call)) or _reaches(op.program, op.program):
            ops.append(op)
            continue
        params = op.program.block.params
        cloner = Cloner(dict(zip(params, op.args, strict=True)))
        made = Block([], [cloner.op(inner) for inner in op.program.block.ops])
        for inside in blocks_of(made):
            _inline(inside, mapping, adjoints)
        ops.extend(made.ops)
        results = [cloner.operand(r) for r in op.program.block.results]
        mapping.update(zip(op.outputs, results, strict=True))
    block.ops = ops


def _reaches(program: Program, target: Program, seen: set[int] | None = None) -> bool:
    """Whether a program calls another one, directly or through others."""
    seen = set() if seen is None else seen
    for op in program.walk():
        if isinstance(op, Call) and id(op.program) not in seen:
            seen.add(id(op.program))
            if op.program is target or _reaches(op.program, target, seen):
                return True
    return False
