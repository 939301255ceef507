"""LLVM functions that a module holds once, however often a program needs them.

What is inlined at each place is compiled at each place: LLVM's time grows with it, and Numba's.
Importing this module needs Numba.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core import types as _types

types: Any = _types


def own_function(
    builder: Any, name: str, function_type: Any, write: Callable[[Any, Any], None]
) -> Any:
    """The function of a name in the builder's module, which LLVM does not inline.

    The name must include the types. ``write(builder, arguments)`` writes the body if the module
    does not have it yet.
    """
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, function_type, name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        write(ir.IRBuilder(function.append_basic_block("entry")), function.args)
    return function


def call_own(
    builder: Any, name: str, result: Any, args: Sequence[Any], write: Callable[[Any, Any], None]
) -> Any:
    """Call the :func:`own_function` of some values, which returns an LLVM type."""
    kind = ir.FunctionType(result, [x.type for x in args])
    return builder.call(own_function(builder, name, kind, write), args)


def casts(
    context: Any, builder: Any, kinds: Sequence[Any], values: Sequence[Any], wanted: Any
) -> list[Any]:
    """LLVM values of some types as another type."""
    return [context.cast(builder, x, t, wanted) for t, x in zip(kinds, values, strict=True)]


class OpaqueCallable(types.Callable, types.Opaque):  # type: ignore[misc]
    """The type of a function whose code is written at each call of it."""

    def get_call_signatures(self) -> Any:
        """No signatures are listed; the type is a template."""
        return (), True

    def get_impl_key(self, sig: Any) -> Any:
        """The key of an implementation, which is written at the call."""
        return type(self), sig


def call_apart(
    context: Any,
    builder: Any,
    name: str,
    signature: Any,
    args: Sequence[Any],
    write: Callable[[Any, Sequence[Any]], Any],
) -> Any:
    """Call a function of the module that may raise, and write it if the module has none.

    The signature becomes part of its name. ``write(builder, arguments)`` writes the body and
    returns the result.
    """
    convention, result = context.call_conv, signature.return_type
    kinds = hashlib.sha256(repr(signature).encode()).hexdigest()[:16]

    def body(inside: Any, _: Any) -> None:
        function = inside.function
        names = [f"p{k}" for k in range(len(args))]
        convention.decorate_function(function, names, signature.args)
        returned_value = write(
            inside, convention.decode_arguments(inside, signature.args, function)
        )
        convention.return_value(inside, context.get_return_value(inside, result, returned_value))

    function_type = convention.get_function_type(result, signature.args)
    function = own_function(builder, f"{name}_{kinds}", function_type, body)
    return call_raising(context, builder, function, signature, args)


def call_raising(
    context: Any, builder: Any, function: Any, signature: Any, args: Sequence[Any]
) -> Any:
    """Call a function of the module that may raise; its exception is passed on to the caller.

    The function has Numba's calling convention, but no ``try`` around the call is considered:
    programs have none.
    """
    result, raised = signature.return_type, builder.function.args[1]
    returned = cgutils.alloca_once(builder, context.call_conv.get_return_type(result).pointee)
    packed = context.get_arg_packer(signature.args).as_arguments(builder, args)
    code = builder.call(function, [returned, raised, *packed])
    with cgutils.if_unlikely(builder, builder.icmp_signed("!=", code, code.type(0))):
        builder.ret(code)
    if result == types.none:
        return context.get_dummy_value()
    return context.get_returned_value(builder, result, builder.load(returned))
