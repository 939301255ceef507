"""Stacks: what a loop writes down in its forward pass, and is read in the reverse pass.

A stack is memory of the tape: pushing and popping write it. Backends have their own way for each
of these functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.ir.types import ArrayType, Size, Type


def new_stack() -> list[Any]:
    """An empty stack."""
    return []


def push(stack: list[Any], x: Any) -> None:
    """Put a value on a stack; an array is not copied."""
    stack.append(x)


def pop(stack: list[Any]) -> Any:
    """Take the latest value off a stack."""
    return stack.pop()


def top(stack: list[Any]) -> Any:
    """The latest value on a stack, which stays there; nobody may write into it."""
    return stack[-1]


def thin(stack: list[Any]) -> None:
    """Take every second value off a stack, the one after the first to begin with."""
    del stack[1::2]


def turn() -> None:
    """Stand where the forward pass ends, in programs whose memory is to be measured."""


def bar_of(k: int) -> Any:
    """Stand for the cotangent of the k-th leaf of a value: a program with it is cut in two."""
    message = f"cotangent {k} is an input of the reverse pass: the program has to be cut"
    raise AssertionError(message)


def stack_type(of: Type) -> ArrayType:
    """The type of a stack: memory of unknown extent.

    Parameters
    ----------
    of : Type
        That of the values on it.
    """
    dtype = of.dtype if of.dtype.kind in "biufc" else np.dtype(float)
    return ArrayType(dtype, (Size(),))
