"""Checks inside LLVM code: a condition, and one way out of the function for each message.

Numba writes the exception anew wherever it may be raised, which is most of the code of an access to
an element. Importing this module needs Numba.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir
from numba.core import types as _types
from numba.core.callconv import excinfo_ptr_t

from fwdad.codegen.llvm.outlining import own_function
from fwdad.codegen.numba_support import CHECK_BOUNDS
from fwdad.errors import BoundsError

types: Any = _types
_LINE = "_fwdad_line"  # the attribute of a builder: the line of the source that is written now


def say_where(builder: Any, line: int) -> None:
    """Note which line of the generated source is written now, for what its code may raise."""
    setattr(builder, _LINE, line)


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
    word = first.type
    count = word(1) if count is None else count
    inside = builder.icmp_signed("<=", first, builder.sub(length, count))
    for n in (first, count):
        inside = builder.and_(inside, builder.icmp_signed(">=", n, word(0)))
    line = getattr(builder, _LINE, 0)
    with builder.if_then(builder.not_(inside), likely=False):
        arguments = [word, excinfo_ptr_t.as_pointer(), *[word] * 3]
        kind = ir.FunctionType(ir.IntType(32), arguments)
        outside = own_function(builder, "fwdad_outside", kind, partial(_write_outside, context))
        raised = builder.function.args[1]
        builder.ret(builder.call(outside, [word(line), raised, first, count, length]))


def _write_outside(context: Any, builder: Any, given: Any) -> None:
    """The function that makes the exception, and returns what its caller returns then."""
    line, _, *elements = given
    numbers = (line, *elements)
    context.call_conv.return_dynamic_user_exc(
        builder, BoundsError, numbers, (types.intp,) * len(numbers)
    )


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
