"""Values that are not there on every way: nobody uses them then, but a stand-in is copied.

Lengths of theirs say nothing of another array, though its type has the same ones.
"""

from __future__ import annotations

from typing import Any

from fwdad.ir.ops import Apply, Branch, Call, Loop, Missing, Program, Value
from fwdad.ir.primitives.stacks import new_stack, pop, push, top


def missing_on_some_way(program: Program) -> set[Value]:
    """What branches return, loops carry and stacks hold that is not there on every way.

    Parameters
    ----------
    program : Program
        Any.
    """
    return _missing(program, {})


def _missing(program: Program, known: dict[int, set[Value]]) -> set[Value]:
    """:func:`missing_on_some_way`, with the results for programs that call this one, and others."""
    found = known[id(program)] = set(program.absent)
    sources: list[tuple[Value, Any]] = []
    own: set[Value] = set()  # stacks of which all is seen here
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
            own.update(op.outputs)
        elif isinstance(op, Apply) and op.function is push:
            sources.append((op.args[0], op.args[1]))
        elif isinstance(op, Apply) and op.function in (pop, top):
            sources.append((op.outputs[0], op.args[0]))
            taken.append(op.args[0])
    found.update(s for s in taken if s not in own or s in handed)
    while True:
        more = {
            v for v, x in sources if isinstance(x, Missing) or (isinstance(x, Value) and x in found)
        } - found
        if not more:
            return found
        found |= more


__all__ = ["missing_on_some_way"]
