"""Checks inside LLVM code: a condition, and one way out of the function for each message.

Numba writes the exception anew wherever it may be raised, which is most of the code of an access to
an element. Importing this module needs Numba.
"""

from __future__ import annotations

from typing import Any


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
