"""Products with matrices whose rows, or columns, are all equal, without a matrix product.

The cotangent of a sum is one number everywhere. What a program multiplies it with is summed
instead, and what is multiplied with the resulting rows is multiplied with one row. Products of the
user's stay as they are, to the last bit.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np

from fwdad.ir.analysis.alias import memory, memory_of
from fwdad.ir.analysis.def_use import count_uses
from fwdad.ir.analysis.reassociation import is_product
from fwdad.ir.builder.shape_env import length_of
from fwdad.ir.clone import copied
from fwdad.ir.ops import Apply, Op, Operand, Program, Value, is_array
from fwdad.ir.rewrite import definitions, replace_ops
from fwdad.ir.types import INT, ArrayType, Dimension, Type, number_type

_DOUBLE = np.dtype(np.float64)


def with_single_rows(program: Program) -> Program:
    """A program whose products with matrices of equal rows are products with one row.

    The program is not changed, and returned itself if there are none.
    """
    if not has_constant_matrix(program):
        return program
    copy = copied(program)
    multiply_one_row(copy)
    return copy


def multiply_one_row(program: Program) -> None:
    """Replace products with matrices of equal rows, or columns, in place, by products with one."""
    _Constant(program).rewrite()


def has_constant_matrix(program: Program) -> bool:
    """Whether there is a matrix of equal rows or columns, and a product of cotangents."""
    return any(map(_is_full, program.walk())) and any(map(_is_product, program.walk()))


class _Constant:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._made = definitions(program)
        self._roots = memory_of(program)
        ops = program.walk()
        self._written = set().union(*(memory(op.writes(), self._roots) for op in ops))

    def rewrite(self) -> None:
        """Rewrite the program, and remove matrices that are no longer needed."""
        changed = replace_ops(self._program.block, self._instead)
        while changed:
            uses = count_uses(self._program.block)
            changed = replace_ops(
                self._program.block,
                lambda op: [] if _is_idle(op) and not uses[op.outputs[0]] else None,  # noqa: B023
            )

    def _instead(self, op: Op) -> list[Op] | None:
        """The operations that replace a product with a constant factor; None for all others."""
        if not _is_product(op):
            return None
        left, right = op.args
        filled, other = self._filled(left), self._filled(right)
        new = _New(op)
        if filled is not None:
            (rows, _), fill = filled
            if _varies(fill, 1):
                part = new.apply(operator.matmul, (fill, right))
            else:  # all columns are equal
                part = new.times(fill, new.apply(np.sum, (right,), axis=0))
            product = new.filled(part, lambda: (rows, new.length(right, 1)))
        elif other is not None:
            (_, columns), fill = other
            if _varies(fill, 0):
                part = new.apply(operator.matmul, (left, fill))
            else:
                part = new.times(new.apply(np.sum, (left,), axis=1, keepdims=True), fill)
            product = new.filled(part, lambda: (new.length(left, 0), columns))
        else:
            return None
        self._made.update({v: each for each in product for v in each.outputs})
        return product

    def _filled(self, a: Value) -> tuple[tuple[Operand, Operand], Operand] | None:
        """The lengths of a matrix of equal rows or columns, and what fills it."""
        op = self._made.get(a)
        if op is None or not _is_full(op) or not isinstance(op, Apply):
            return None
        shape, fill = op.args if op.function is np.full else op.args[::-1]
        if memory([a, fill], self._roots) & self._written:
            return None
        return (shape[0], shape[1]), fill


class _New:
    """New operations that replace a product."""

    def __init__(self, op: Apply) -> None:
        self._op = op
        self._ops: list[Op] = []

    def apply(self, function: Any, args: tuple[Any, ...], **options: Any) -> Value:
        """Add an operation on matrices, rows and columns."""
        return self._emit(
            ArrayType(_DOUBLE, _shape(function, args, options)), function, args, options
        )

    def _emit(self, t: Type, function: Any, args: Any, options: Any) -> Value:
        value = Value(t)
        where = self._op.location
        self._ops.append(Apply(function, args, options, outputs=(value,), location=where))
        return value

    def length(self, a: Value, axis: int) -> Operand:
        """One length of an array."""
        d = a.type.shape[axis]
        return d if isinstance(d, int) else self._emit(INT, length_of, (a, axis), {})

    def times(self, a: Operand, b: Operand) -> Value:
        """The product of two operands, either of which may be the number 1."""
        for x, other in ((a, b), (b, a)):
            if not isinstance(x, Value) and x == 1:
                return other
        return self.apply(operator.mul, (a, b))

    def filled(self, part: Value, lengths: Callable[[], tuple[Operand, Operand]]) -> list[Op]:
        """All operations; the last one returns what the product returned."""
        if part.type == self._op.outputs[0].type:  # the whole already
            self._ops[-1].outputs = self._op.outputs
        else:
            call = Apply(np.full, (lengths(), part), outputs=self._op.outputs)
            call.location = self._op.location
            self._ops.append(call)
        return self._ops


def _shape(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Dimension, ...]:
    """The shape that an operation of :class:`_New` returns."""
    shapes: list[tuple[Dimension, ...]] = [a.type.shape if is_array(a) else () for a in args]
    if function is np.sum:
        return (shapes[0][0], 1) if options["axis"] else shapes[0][1:]
    first, second = shapes
    if function is operator.matmul:
        return (*first[:-1], *second[1:])
    ndim = max(len(first), len(second))
    pairs = zip(*((1,) * (ndim - len(s)) + tuple(s) for s in shapes), strict=True)
    return tuple(n if type(m) is int and m == 1 else m for m, n in pairs)


def _varies(fill: Operand, axis: int) -> bool:
    """Whether what fills a matrix may have more than one element along one of its axes."""
    if not is_array(fill) or fill.type.ndim < 2 - axis:
        return False
    d = fill.type.shape[axis - 2]
    return not (isinstance(d, int) and d == 1)


def _is_product(op: Op) -> TypeGuard[Apply]:
    """Whether an operation is a product of two matrices of doubles that may be reassociated."""
    if not isinstance(op, Apply) or not op.any_order:
        return False
    if not is_product(op) or op.kwargs:
        return False
    return all(is_array(a) and a.type.ndim == 2 and a.type.dtype == _DOUBLE for a in op.args)


def _is_full(op: Op) -> bool:
    """Whether an operation makes a matrix of doubles whose rows or columns are equal."""
    if not isinstance(op, Apply) or op.kwargs or len(op.args) != 2:
        return False
    if op.function is not np.full and op.function is not np.broadcast_to:
        return False
    shape, fill = op.args if op.function is np.full else op.args[::-1]
    if not isinstance(shape, tuple) or len(shape) != 2 or op.outputs[0].type.dtype != _DOUBLE:
        return False
    if not is_array(fill):
        return isinstance(fill, Value) or number_type(fill) is not None
    return fill.type.ndim in (1, 2) and not (_varies(fill, 0) and _varies(fill, 1))


def _is_idle(op: Op) -> bool:
    """Whether an operation is not the user's, and may be removed if it is not needed."""
    return _is_full(op) or (isinstance(op, Apply) and op.function is length_of)
