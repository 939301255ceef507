"""Checks inside LLVM code: a condition, and exits of the function that are shared.

Numba writes the exception anew wherever it may be raised, which is most of the code of an element
access. Importing this module needs Numba.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir
from numba.core import types as _types

from fwdad.codegen.llvm.outlining import call_own
from fwdad.codegen.numba_support import CHECK_BOUNDS
from fwdad.errors import BoundsError

types: Any = _types
OWNERS = "_fwdad_owners"
"""The attribute of a builder: the variables that may own memory where it writes now."""
_LINE = "_fwdad_line"  # the attribute of a builder: the source line that is being lowered


def say_where(builder: Any, line: int) -> None:
    """Record the line of generated source that is being lowered, for errors in its code."""
    setattr(builder, _LINE, line)


def require_inside(context: Any, builder: Any, first: Any, length: Any, count: Any = None) -> None:
    """Where bounds are checked, raise unless ``count`` elements from ``first`` on are inside.

    A check of indices that are known to be inside; ``first`` does not count from the end, and
    ``count`` is one by default.
    """
    if not CHECK_BOUNDS:
        return
    word = first.type
    count = word(1) if count is None else count
    inside = builder.icmp_signed("<=", first, builder.sub(length, count))
    for n in (first, count):
        inside = builder.and_(inside, builder.icmp_signed(">=", n, word(0)))
    line = getattr(builder, _LINE, 0)
    with builder.if_then(builder.not_(inside), likely=False):
        arguments = [word(line), builder.function.args[1], first, count, length]
        write = partial(_write_outside, context)
        builder.ret(call_own(builder, "fwdad_outside", ir.IntType(32), arguments, write))


def _write_outside(context: Any, builder: Any, given: Any) -> None:
    """Write the function that creates the exception; its caller returns what it returns."""
    line, _, *elements = given
    numbers = (line, *elements)
    context.call_conv.return_dynamic_user_exc(
        builder, BoundsError, numbers, (types.intp,) * len(numbers)
    )


def require(
    context: Any, builder: Any, condition: Any, exception: type[Exception], message: str
) -> None:
    """Go on if a condition (one bit) holds, else leave the function with an exception."""
    function = builder.function
    go_on = function.append_basic_block("holds")
    branch = builder.cbranch(condition, go_on, _exit(context, builder, exception, message))
    branch.set_weights([99, 1])
    builder.position_at_end(go_on)


def _exit(context: Any, builder: Any, exception: type[Exception], message: str) -> Any:
    """The block that raises, shared by all checks with the same message and live arrays."""
    exits = vars(builder.function).setdefault("_fwdad_exits", {})
    handler = getattr(builder, "_in_try_block", False)  # where a raise is a jump, not a return
    owners = frozenset(getattr(builder, OWNERS, ()))  # whose references the block drops
    key = (exception, message, id(handler) if handler else None, owners)
    if key not in exits:
        exits[key] = builder.function.append_basic_block("raises")
        with builder.goto_block(exits[key]):
            context.call_conv.return_user_exc(builder, exception, (message,))
    return exits[key]
