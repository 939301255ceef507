"""The program that one thread of a kernel runs."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np

from fwdad.errors import UnsupportedTypeError, is_library_file
from fwdad.frontend.arguments import EVERY, Flattened
from fwdad.frontend.specialise import trace_optimised
from fwdad.ir.ops import Apply, Call, Op, Operand, Program, Value
from fwdad.ir.rewrite import blocks_of
from fwdad.ir.types import ArrayType, number_type
from fwdad.transforms.passes import inline, optimise


def kernel_program(f: FunctionType, args: tuple[Any, ...]) -> tuple[Program, list[Any]]:
    """Trace a function with the lengths of some arguments, for any numbers.

    The program's parameters are the arguments, and constants from outside, which are returned, too.
    """
    flat = Flattened(args, {})
    tape = trace_optimised(f, flat, lengths=EVERY)
    if any(k < len(flat.leaves) for k in tape.value_guards):
        message = f"{f.__name__}: a kernel serves all values of numbers, and one must be known"
        raise UnsupportedTypeError(message)
    program, constants = tape.program, [c.fetch() for c in tape.captures]
    returned = tape.rebuild(program.block.results)
    if returned is None:
        returned = ()
    program.block.results = list(returned) if isinstance(returned, tuple) else [returned]
    for block in blocks_of(program.block):
        block.ops = [_written_out(op, program, constants) for op in block.ops]
    if inline(program):
        optimise(program)
    return program, constants


def _written_out(op: Op, program: Program, constants: list[Any]) -> Op:
    """A call of a user's function that has a rule as a call of its program."""
    f = op.function if isinstance(op, Apply) and not op.kwargs else None
    if not isinstance(f, FunctionType) or is_library_file(f.__code__.co_filename):
        return op
    args = op.operands()
    samples = tuple(map(_sample, args))
    without_rule = FunctionType(
        f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__
    )
    inner, of_inner = kernel_program(without_rule, samples)
    captured = inner.block.params[len(args) :]
    program.block.params += captured
    program.written += [False] * len(captured)
    constants += of_inner
    return Call(inner, [*args, *captured], outputs=op.outputs, location=op.location)


def _sample(operand: Operand) -> Any:
    """Any value of an operand's type."""
    t = operand.type if isinstance(operand, Value) else number_type(operand)
    if isinstance(t, ArrayType):
        return np.zeros(t.shape, t.dtype)
    if t is None:
        message = f"a kernel has no {type(operand).__name__} for the argument of a function"
        raise UnsupportedTypeError(message)
    return t.dtype.type(1).item() if t.python else t.dtype.type(1)
