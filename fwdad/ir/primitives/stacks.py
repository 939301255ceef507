"""Stacks: what a loop saves in the forward pass, and the reverse pass reads.

A stack is memory of the tape, which pushing and popping write. Backends implement each of these
functions in their own way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.ir.types import ArrayType, Size, Type
from fwdad.ops.record import own_op


@own_op()
def new_stack() -> list[Any]:
    """An empty stack."""
    return []


@own_op()
def push(stack: list[Any], x: Any) -> None:
    """Push a value; an array is not copied."""
    stack.append(x)


@own_op()
def pop(stack: list[Any]) -> Any:
    """Pop the latest value."""
    return stack.pop()


@own_op()
def top(stack: list[Any]) -> Any:
    """The latest value, which stays on the stack and must not be written into."""
    return stack[-1]


@own_op()
def thin(stack: list[Any]) -> None:
    """Remove every second value of a stack, starting with the second."""
    del stack[1::2]


def turn() -> None:
    """Mark the end of the forward pass, in programs whose memory is measured."""


@own_op()
def bar_of(k: int) -> Any:
    """Stands for the cotangent of the k-th leaf of a value, in a program that will be cut."""
    message = f"cotangent {k} is an input of the reverse pass: the program has to be cut"
    raise AssertionError(message)


def stack_type(of: Type) -> ArrayType:
    """The type of a stack of such values: memory of unknown extent."""
    dtype = of.dtype if of.dtype.kind in "biufc" else np.dtype(float)
    return ArrayType(dtype, (Size(),))
