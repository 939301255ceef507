"""Checks inside LLVM code: a condition, and one way out of the function for each message.

Numba writes the exception anew wherever it may be raised, which is most of the code of an access to
an element.

With ``FWDAD_CHECK_BOUNDS=1`` in the environment when fwdad is imported, compiled code also checks
what is known to be inside of an array or a stack, and raises where it is not. Stacks then have room
for what is asked for and no more, and every growth moves them and overwrites what they leave.
"""

from __future__ import annotations

import os
from typing import Any

from fwdad.errors import BoundsError

CHECK_BOUNDS = os.environ.get("FWDAD_CHECK_BOUNDS", "") not in ("", "0")
_WHERE = "_fwdad_where"  # the attribute of a builder: what is written now, and its line


def say_where(builder: Any, text: str, line: int) -> None:
    """Note which statement is written now, for the error that its code may raise.

    Parameters
    ----------
    builder : LLVM builder
        Who writes.
    text : str
        The statement.
    line : int
        Of the generated source; 0 if it is not known.
    """
    setattr(builder, _WHERE, (text, line))


def require_inside(context: Any, builder: Any, first: Any, length: Any, count: Any = None) -> None:
    """Where bounds are checked: raise unless elements are inside, though they are known to be.

    Parameters
    ----------
    context, builder
        Numba's target context and LLVM builder.
    first : LLVM value
        The index of the first of them, which is not counted from the end.
    length : LLVM value
        How many elements there are.
    count : LLVM value, optional
        How many are read or written; one by default.
    """
    if not CHECK_BOUNDS:
        return
    from numba.core import types

    count = first.type(1) if count is None else count
    last = builder.sub(length, count)
    inside = builder.icmp_signed("<=", first, last)
    for n in (first, count):
        inside = builder.and_(inside, builder.icmp_signed(">=", n, n.type(0)))
    text, line = getattr(builder, _WHERE, ("compiled code", 0))
    with builder.if_then(builder.not_(inside), likely=False):
        context.call_conv.return_dynamic_user_exc(
            builder, BoundsError, (text, line, first, count, length),
            (None, None, types.intp, types.intp, types.intp),
        )  # fmt: skip


def require(
    context: Any, builder: Any, condition: Any, exception: type[Exception], message: str
) -> None:
    """Go on if a condition holds, else leave the function with an exception.

    Parameters
    ----------
    context, builder
        Numba's target context and LLVM builder.
    condition : LLVM value
        One bit.
    exception : type
        The class to raise.
    message : str
        Its only argument.
    """
    function = builder.function
    go_on = function.append_basic_block("holds")
    branch = builder.cbranch(condition, go_on, _exit(context, builder, exception, message))
    branch.set_weights([99, 1])
    builder.position_at_end(go_on)


def _exit(context: Any, builder: Any, exception: type[Exception], message: str) -> Any:
    """The block that raises, which all checks of a function with the same message share."""
    exits = vars(builder.function).setdefault("_fwdad_exits", {})
    handler = getattr(builder, "_in_try_block", False)  # where a raise is a jump, not a return
    key = (exception, message, id(handler) if handler else None)
    if key not in exits:
        exits[key] = builder.function.append_basic_block("raises")
        with builder.goto_block(exits[key]):
            context.call_conv.return_user_exc(builder, exception, (message,))
    return exits[key]
