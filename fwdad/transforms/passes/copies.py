"""Elimination of copies: of arrays that are neither written nor returned."""

from __future__ import annotations

import numpy as np

from fwdad.ir.analysis.alias import memory, memory_of
from fwdad.ir.analysis.def_use import count_uses
from fwdad.ir.analysis.layout import Order, Orders
from fwdad.ir.ops import Apply, Op, Operand, Program, Value, is_array, values_in
from fwdad.ir.primitives.stacks import pop, top
from fwdad.ir.rewrite import blocks_of, give_name, substitute
from fwdad.ops import record_of


def drop_copies(program: Program) -> bool:
    """Replace copies by their sources where neither is written, or the source has no other use.

    An array that is broadcast to the shape that it has is its source as well.
    """
    copies = [op for block in blocks_of(program.block) for op in block.ops if _is_copy(op)]
    if not copies:
        return False
    roots = memory_of(program)
    orders = observable_orders(program)
    used: set[Value] = memory(program.block.results, roots)
    for op in program.walk():
        used |= memory(op.writes(), roots)
    returned = {v for block in blocks_of(program.block) for v in values_in(block.results)}
    uses = count_uses(program.block)
    mapping: dict[Value, Operand] = {}
    touched: set[Value] = set()  # one copy of a memory at a time: what is known of it changes
    for block in blocks_of(program.block):
        made_here = {v for op in block.ops if _is_own(op) for v in op.outputs}
        for op in block.ops:
            if not (isinstance(op, Apply) and _is_copy(op)):
                continue
            (copy,), x = op.outputs, op.args[0]
            together = memory([copy, x], roots) if is_array(x) else set()
            if not is_array(x) or together & touched:
                continue
            if orders is not None and orders.of(x) is not Order.ROWS:
                continue
            only = x in made_here and uses[x] == 1 and roots.get(x) == {x}
            if op.function is np.broadcast_to:
                unneeded = copy not in returned  # which is read-only
            else:
                unneeded = only or not together & used
            if unneeded:
                mapping[copy] = x
                touched |= together
    if not mapping:
        return False
    gone = {op for op in copies if op.outputs[0] in mapping}
    for block in blocks_of(program.block):
        block.ops = [op for op in block.ops if op not in gone]
    give_name(mapping)
    substitute(program.block, mapping)
    return True


def observable_orders(program: Program) -> Orders | None:
    """The layouts of arrays, if removing copies could change a result; else None."""
    found = Orders(program, copied=False)
    return found if found.on_other_orders() else None


def _is_own(op: Op) -> bool:
    """Whether the result of an operation has memory of its own, with distinct elements."""
    return not (
        isinstance(op, Apply) and (op.function in (top, pop) or record_of(op.function).read_only)
    )


def _is_copy(op: Op) -> bool:
    """Whether an operation returns its argument again: a copy, or a view of all of it."""
    if not isinstance(op, Apply) or op.kwargs:
        return False
    if op.function is np.broadcast_to and len(op.args) == 2:
        return is_array(op.args[0]) and op.args[0].type == op.outputs[0].type
    return op.function is np.ndarray.copy and op.args[1:] in ((), ("K",))
