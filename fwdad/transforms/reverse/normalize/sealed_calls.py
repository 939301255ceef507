"""Calls that run again read from outside, instead of being given, what they begin with.

A call is a loop that runs once. It is written without carried values, but passes of an inner
derivative may have let it carry some, such as the elements of a small array.
"""

from __future__ import annotations

from fwdad.ir.ops import Block, Loop, Missing, Program
from fwdad.ir.rewrite import substitute


def open_calls(block: Block) -> None:
    """Replace what sealed loops carry by its initial values, which their one iteration reads."""
    for op in Program("", block).walk():
        if not isinstance(op, Loop) or not op.sealed:
            continue
        pairs = list(zip(op.carried, op.initial, strict=True))
        substitute(op.body, {p: x for p, x in pairs if not isinstance(x, Missing)})
        op.initial = [Missing(p.type) for p, _ in pairs]
