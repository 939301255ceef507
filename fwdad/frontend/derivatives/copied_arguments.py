"""Copies of arguments that a differentiated function writes, which must keep their memory order.

Such a function runs on copies of the arrays that it writes, and copies on a tape are C-contiguous.
Where it takes a ``ravel`` or ``reshape`` of one and somebody writes, the memory order of the array
becomes visible: a view of one that is C-contiguous may be a copy of another.
"""

from __future__ import annotations

from typing import Any

from fwdad.errors import UntraceableError
from fwdad.ir.analysis.layout import Order, Orders
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Apply, Block, Branch, Call, Load, Loop, Op, Program, Value, values_in
from fwdad.rules.core.registry import function_name


def check_orders(recorder: Recorder, f: Any, block: Block, copied: list[Value]) -> None:
    """Raise if a copy may have another memory order than its array, where f can tell.

    ``copied`` are the values that f writes; those that are inputs are entered in the recorder's
    ``alone`` and ``copied`` instead, and the tape checks them at each call.
    """
    inner = Orders(Program("", block))
    if not inner.sensitive(lambda v, _: inner.of(v) is not Order.ROWS):
        return
    for v in copied:
        while v in recorder.given:  # by a function that is differentiated, too
            v = recorder.given[v]
        if v in recorder.lengths.inputs:
            recorder.alone.add(v)
            recorder.copied.add(v)
        elif order_of(recorder, v) is not Order.ROWS:
            message = (
                f"{function_name(f)} writes into an argument and calls `ravel` or `reshape` on "
                "it: whether these return views depends on its memory layout, and this array may "
                "not be C-contiguous. Pass a copy of it (`.copy()`)"
            )
            raise UntraceableError(message, recorder.place())


def order_of(recorder: Recorder, v: Value) -> Order:
    """The memory order of an array that the program has made."""
    needed: dict[Op, None] = {}
    waiting = [v]
    while waiting:
        op = recorder.definitions.made_by(waiting.pop())
        if op is None or op in needed:
            continue
        needed[op] = None
        if isinstance(op, (Apply, Load)):
            waiting.extend(values_in(op.operands()))
        elif not isinstance(op, (Branch, Loop, Call)):
            return Order.ANY
    inputs = [p for op in needed for p in values_in(op.operands()) if p in recorder.lengths.inputs]
    program = Program(
        "", Block(list(dict.fromkeys(inputs)), recorder.definitions.in_order(needed), [v])
    )
    program.rows = recorder.rows
    return Orders(program).of(v)
