"""Indices whose values are known while tangents are pushed forward by places.

What is read from outside is known if the tape assumes it, and so is what NumPy computes from that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.ir.abstract_eval.purity import is_pure
from fwdad.ir.builder.shape_env import length_of
from fwdad.ir.ops import Apply, Block, Load, Op, Operand, Value, map_values, walk
from fwdad.ir.primitives.identity import identity

Contents = Callable[[Value], Any]
"""The int, or array of ints, that a value from outside always is; None if it may be another."""


class _UnknownError(Exception):
    """A value depends on arguments, or on memory that is written."""


class KnownIndices:
    """The values of a block that are known, as numbers and arrays.

    ``stays`` tells whether the memory of an array is never written, ``length`` returns a length as
    an int if it is one.
    """

    def __init__(
        self,
        block: Block,
        contents: Contents,
        stays: Callable[[Value], bool],
        length: Callable[[Any], Any],
    ) -> None:
        self._contents = contents
        self._stays = stays
        self._length = length
        self._made: dict[Value, Op] = {v: op for op in walk(block) for v in op.outputs}
        self._found: dict[Value, Any] = {}

    def of(self, index: tuple[Operand, ...]) -> tuple[Any, ...] | None:
        """An index as numbers and arrays, or None if not all of it is known."""
        try:
            known: Any = map_values(self._value, index)
        except _UnknownError:
            return None
        return known

    def get(self, v: Value) -> Any:
        """The value of v, or None if it is unknown."""
        try:
            return self._value(v)
        except _UnknownError:
            return None

    def shape_of(self, op: Apply) -> tuple[int, ...] | None:
        """The shape of what a call returns, which only depends on shapes and ints; or None."""
        try:
            args, kwargs = map_values(self._alike, (op.args, op.kwargs))
            with np.errstate(all="ignore"):
                return np.shape(op.function(*args, **kwargs))
        except (_UnknownError, IndexError, TypeError, ValueError):
            return None

    def _alike(self, v: Value) -> Any:
        """A value, or another one of its type and shape where it is unknown."""
        known = self.get(v)
        if known is not None or v.type.dtype.kind in "iub":
            return self._value(v)
        shape = tuple(map(self._length, v.type.shape))
        if not all(type(m) is int for m in shape):
            raise _UnknownError
        return np.broadcast_to(np.ones((), v.type.dtype), shape) if shape else v.type.dtype.type(1)

    def _value(self, v: Value) -> Any:
        if v not in self._found:
            self._found[v] = self._computed(v) if v.type.dtype.kind in "iub" else None
        if self._found[v] is None:
            raise _UnknownError
        return self._found[v]

    def _computed(self, v: Value) -> Any:
        op = self._made.get(v)
        if not self._stays(v):
            return None
        if op is None:
            return self._contents(v)
        try:
            if isinstance(op, Load):
                return self._value(op.array)[map_values(self._value, op.index)]
            if isinstance(op, Apply) and op.function is length_of:
                n = self._length(op.args[0].type.shape[op.args[1]])
                return n if type(n) is int else None
            if isinstance(op, Apply) and _is_repeatable(op):
                args, kwargs = map_values(self._value, (op.args, op.kwargs))
                with np.errstate(all="ignore"):
                    return op.function(*args, **kwargs)
        except _UnknownError:
            return None
        except (ArithmeticError, LookupError, TypeError, ValueError):  # the program raises it
            return None
        return None


def _is_repeatable(op: Apply) -> bool:
    """Whether a call writes nothing, and returns the same whenever its arguments are the same."""
    return op.pure and len(op.outputs) == 1 and (op.function is identity or is_pure(op.function))
