"""Values that are undefined on some paths, where they are unused and a placeholder is copied.

Their lengths say nothing about another array, though its type may have the same ones.
"""

from __future__ import annotations

from typing import Any

from fwdad.ir.ops import Apply, Branch, Call, Loop, Missing, Program, Value
from fwdad.ir.primitives.stacks import new_stack, pop, push, top


def missing_on_some_way(program: Program) -> set[Value]:
    """The results of branches, carried values and stacks that may be undefined."""
    return _missing(program, {})


def _missing(program: Program, known: dict[int, set[Value]]) -> set[Value]:
    """:func:`missing_on_some_way`, with the results of the programs seen so far."""
    found = known[id(program)] = set(program.absent)
    sources: list[tuple[Value, Any]] = []
    values: set[Value] = set()  # stacks of which all is seen here
    handed: set[Value] = set()
    taken: list[Value] = []
    for op in program.walk():
        if isinstance(op, Branch):
            for side in op.blocks():
                sources.extend(zip(op.outputs, side.results, strict=True))
        elif isinstance(op, Loop):
            sources.extend(zip(op.carried, op.initial, strict=True))
            sources.extend(zip(op.carried, op.body.results, strict=False))
            sources.extend(zip(op.outputs, op.carried, strict=True))
        elif isinstance(op, Call):
            handed.update(a for a in op.args if isinstance(a, Value))
            if id(op.program) not in known:
                _missing(op.program, known)
            inside = known[id(op.program)]
            for v, r in zip(op.outputs, op.program.block.results, strict=False):
                if isinstance(r, Missing) or (isinstance(r, Value) and r in inside):
                    found.add(v)
        elif isinstance(op, Apply) and op.function is new_stack:
            values.update(op.outputs)
        elif isinstance(op, Apply) and op.function is push:
            sources.append((op.args[0], op.args[1]))
        elif isinstance(op, Apply) and op.function in (pop, top):
            sources.append((op.outputs[0], op.args[0]))
            taken.append(op.args[0])
    found.update(s for s in taken if s not in values or s in handed)
    while True:
        more = {
            v for v, x in sources if isinstance(x, Missing) or (isinstance(x, Value) and x in found)
        } - found
        if not more:
            return found
        found |= more


__all__ = ["missing_on_some_way"]
