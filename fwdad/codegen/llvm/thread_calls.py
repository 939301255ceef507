"""Runs parts of a range on several cores: a call of Numba's thread pool, as LLVM code.

Numba's ``prange`` would do the same; its analysis takes longer than everything else that is
compiled, and an exception that leaves a thread is lost. Importing this module needs Numba.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core import types as _types
from numba.extending import intrinsic

types: Any = _types
_BYTE = ir.IntType(8)
_BYTES = _BYTE.as_pointer()


@intrinsic  # type: ignore[untyped-decorator]
def on_threads(typingctx: Any, function: Any, args: Any, first: Any, length: Any, step: Any) -> Any:
    """Run ``function(*args, begin, end)`` for parts of a range, one on each thread.

    Returns whether a call has raised, once all have ended.
    """
    del first, length, step  # types only: the values are known at run time
    if not isinstance(function, types.Dispatcher) or not isinstance(args, types.BaseTuple):
        return None
    called = typingctx.resolve_function_type(function, (*args.types, types.intp, types.intp), {})

    def code(context: Any, builder: Any, _sig: Any, values: Any) -> Any:
        _, given, begin, n, by = values
        compiled = function.dispatcher.get_compile_result(called)
        context.active_code_library.add_linking_library(compiled.library)
        word = context.get_value_type(types.intp)
        ask = ir.FunctionType(word, [])
        threads = builder.call(
            cgutils.get_or_insert_function(builder.module, ask, "get_num_threads"), []
        )
        arguments = [*cgutils.unpack_tuple(builder, given), begin, n, by, threads, _BYTE(0)]
        data = builder.alloca(ir.LiteralStructType([v.type for v in arguments]))
        for k, v in enumerate(arguments):
            builder.store(v, _field(builder, data, k))
        kernel = _kernel(context, builder.module, compiled, [*args.types], data.type)
        count, stride = cgutils.alloca_once(builder, word), cgutils.alloca_once(builder, word)
        base = cgutils.alloca_once(builder, _BYTES)
        builder.store(threads, count)
        builder.store(word(1), stride)
        builder.store(_BYTES(None), base)  # a thread's pointer is the number of its part
        wanted = [kernel, base, count, stride, data]
        launch = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [_BYTES] * 5 + [word] * 3),
            "numba_parallel_for",
        )
        pointers = [builder.bitcast(x, _BYTES) for x in wanted]
        builder.call(launch, [*pointers, word(0), word(1), threads])
        raised = builder.load(_field(builder, data, len(arguments) - 1))
        return builder.icmp_unsigned("!=", raised, _BYTE(0))

    number = types.intp
    return types.boolean(function, args, number, number, number), code


def _field(builder: Any, data: Any, k: int) -> Any:
    return builder.gep(data, [ir.IntType(32)(0), ir.IntType(32)(k)], inbounds=True)


def _kernel(context: Any, module: Any, made: Any, given: list[Any], data_type: Any) -> Any:
    """The function that Numba's pool calls with some of the parts, like a generalised ufunc."""
    word = context.get_value_type(types.intp)
    name = module.get_unique_name(f"{made.fndesc.mangled_name}.parts")
    kernel_type = ir.FunctionType(
        ir.VoidType(), [_BYTES.as_pointer(), word.as_pointer(), word.as_pointer(), _BYTES]
    )
    kernel = ir.Function(module, kernel_type, name=name)
    kernel.linkage = "internal"
    builder = ir.IRBuilder(kernel.append_basic_block("entry"))
    base, dimensions, _, raw = kernel.args
    data = builder.bitcast(raw, data_type)
    n = len(given)
    values = [builder.load(_field(builder, data, k)) for k in range(n)]
    first, length, step, parts = (builder.load(_field(builder, data, n + k)) for k in range(4))
    start = builder.ptrtoint(builder.load(base), word)
    with cgutils.for_range(builder, builder.load(dimensions), intp=word) as loop:
        part = builder.add(start, loop.index)

        def at(p: Any) -> Any:
            place = builder.sdiv(builder.mul(p, length), parts)
            return builder.add(first, builder.mul(place, step))

        signature = made.signature
        callee = context.declare_function(module, made.fndesc)
        bounds = [at(part), at(builder.add(part, word(1)))]
        argument_types = [*given, types.intp, types.intp]
        values = [*values, *bounds]
        cast = [
            context.cast(builder, v, t, wanted)
            for v, t, wanted in zip(values, argument_types, signature.args, strict=True)
        ]
        status, _ = context.call_conv.call_function(
            builder, callee, signature.return_type, signature.args, cast
        )
        with builder.if_then(status.is_error, likely=False):
            builder.store(_BYTE(1), _field(builder, data, n + 4))
    builder.ret_void()
    return kernel
