"""How often the values of a program are used, and which are used once in their own block."""

from __future__ import annotations

from collections import Counter

from fwdad.ir.ops import (
    Apply,
    Block,
    Load,
    Loop,
    Op,
    Value,
    values_in,
    walk,
)


def count_uses(block: Block) -> Counter[Value]:
    """How often each value is an operand or a result, also in the blocks inside."""
    used: list[Value] = []
    for op in walk(block):
        used += values_in(op.operands())
        if op.nests:
            used += values_in([inner.results for inner in op.blocks()])
    used += values_in(block.results)
    return Counter(used)


def count_repeated_uses(block: Block) -> Counter[Value]:
    """The same, but a use inside a loop of a value from outside counts twice."""
    uses = count_uses(block)
    for op in walk(block):
        if isinstance(op, Loop):
            inside = [i for b in op.blocks() for i in walk(b)]
            defined = {v for i in inside for v in i.outputs}
            uses.update(v for i in inside for v in values_in(i.operands()) if v not in defined)
    return uses


def used_in_own_block(
    block: Block, uses: Counter[Value], *, named: bool = False
) -> dict[Value, Op]:
    """The operations whose only result is used once, later in the block that defines it.

    Includes the blocks inside. Values that carry a name of the user's are left out unless
    ``named``.
    """
    definitions: dict[Value, Op] = {}
    made: dict[Value, Op] = {}
    for op in block.ops:
        for v in values_in(op.operands()):
            if v in made:
                definitions[v] = made[v]
        for inner in op.blocks() if op.nests else ():
            definitions.update(used_in_own_block(inner, uses, named=named))
        if len(op.outputs) == 1 and isinstance(op, (Apply, Load)) and op.pure:
            (value,) = op.outputs
            if (named or value.name is None) and uses[value] == 1:
                made[value] = op
    for v in values_in(block.results):
        if v in made:
            definitions[v] = made[v]
    return definitions
