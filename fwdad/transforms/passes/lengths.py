"""Unification of lengths that prove to be equal once a program has been rewritten.

The length of ``a[i:]`` is determined by the length of a and the value i: two such views share a
``Size`` if both use the same i. The types of values that were computed twice while the program was
traced, and those of cloned programs, are outdated; here all values get up-to-date types.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fwdad.ir.abstract_eval.broadcasting import BROADCASTING
from fwdad.ir.builder.index_parts import spelled_out
from fwdad.ir.builder.shape_env import length_of
from fwdad.ir.ops import Apply, Block, Load, Op, Operand, Program, Value, is_array, walk
from fwdad.ir.rewrite import give_types
from fwdad.ir.types import ArrayType, Dimension, Size, Type, sliced
from fwdad.ops import record_of
from fwdad.transforms.forward import zero_lanes


def share_lengths(program: Program) -> bool:
    """Give views of equal lengths the same ``Size``; return whether a type changed."""
    return share_lengths_in(program.block)


def share_lengths_in(block: Block) -> bool:
    """:func:`share_lengths` for a block, and the blocks inside it."""
    changed = give_types(block, _Lengths(block).type_of)
    return _asked_of_operands(block) or changed


def _asked_of_operands(block: Block) -> bool:
    """Read lengths from what an array was computed from, so that the array itself may be dead."""
    asking = [
        op for op in walk(block) if isinstance(op, Apply) and op.function in (length_of, zero_lanes)
    ]
    definitions = {v: op for op in walk(block) for v in op.outputs} if asking else {}
    changed = False
    for op in asking:
        if op.function is zero_lanes:
            changed |= _zeros_of_source(op, definitions)
        elif is_array(op.args[0]):
            array, axis = op.args
            source = same_length(array, axis, definitions)
            changed |= source[0] is not array
            op.args = source
    return changed


def _zeros_of_source(op: Apply, made: dict[Value, Op]) -> bool:
    """Make zero lanes in the shape of what an array was computed from, or that it was given."""
    n, array = op.args
    if not is_array(array):
        return False
    like = _same_type(array, made)
    shape = _shape_given(made.get(like))
    if shape:
        op.function, op.args = np.zeros, ((n, *shape), op.outputs[0].type.dtype)
    else:
        op.args = (n, like)
    return bool(shape) or like is not array


def _shape_given(op: Op | None) -> tuple[Operand, ...]:
    """The shape that a new array is made in, where it is given as a tuple."""
    if not isinstance(op, Apply) or not op.args:
        return ()
    record, shape = record_of(op.function), op.args[0]
    makes = record.fill is not None and not record.shape_only
    return shape if makes and isinstance(shape, tuple) else ()


def _same_type(array: Value, made: dict[Value, Op]) -> Value:
    """An array that the given one was computed from, with its dtype and lengths; or itself."""
    op = made.get(array)
    while isinstance(op, Apply) and not op.mutated:
        operand = next((a for a in op.args if is_array(a) and a.type == array.type), None)
        if operand is None:
            break
        array, op = operand, made.get(operand)
    return array


def same_length(array: Value, axis: int, made: dict[Value, Op]) -> tuple[Value, int]:
    """An array that the given one was computed from, and an axis, with the same length.

    Itself, if there is no other. ``made`` has the operations that define values.
    """
    d = array.type.shape[axis]
    op = made.get(array)
    while isinstance(d, Size) and isinstance(op, Apply) and not op.mutated:
        operand = next((a for a in op.args if is_array(a) and d in a.type.shape), None)
        if operand is None:
            break
        array, axis = operand, operand.type.shape.index(d)
        op = made.get(array)
    return array, axis


class _Lengths:
    """Which lengths of a block are equal, according to its present operations."""

    def __init__(self, block: Block) -> None:
        self._same: dict[Size, Dimension] = {}
        self._current: set[Dimension] = set()  # lengths that views have now
        self._cut: dict[Any, Dimension] = {}  # of views of a known length, by their bounds
        ops = [op for op in walk(block) if len(op.outputs) == 1 and is_array(op.outputs[0])]
        for op in ops:
            if isinstance(op, Load) and op.view and all(map(_is_basic, op.index)):
                shape = self._view(op.outputs[0], self._shape(op.array), op.index)
                self._current.update(shape)
                self._note(op.outputs[0], shape)
            elif isinstance(op, Apply) and _by_element(op):
                shapes = [self._shape(a) for a in op.args if is_array(a)]
                self._note(op.outputs[0], _broadcast(shapes, self._shape(op.outputs[0])))

    def type_of(self, t: Type) -> Type:
        """A type with one length for all that are equal; the same object if nothing changes."""
        if isinstance(t, ArrayType):
            shape = tuple(self._leader(d) for d in t.shape)
            return t if shape == t.shape else ArrayType(t.dtype, shape)
        size = t.size if t.size is None else self._leader(t.size)
        return replace(t, size=size) if isinstance(size, Size) and size is not t.size else t

    def _shape(self, v: Value) -> tuple[Dimension, ...]:
        return tuple(map(self._leader, v.type.shape))

    def _leader(self, d: Dimension) -> Dimension:
        while isinstance(d, Size) and d in self._same:
            d = self._same[d]
        return d

    def _view(
        self, value: Value, whole: tuple[Dimension, ...], index: tuple[Operand, ...]
    ) -> tuple[Dimension, ...]:
        """The shape of ``a[index]``, which a value is."""
        rest = list(whole)
        lengths: list[Dimension] = []
        for i in spelled_out(index, len(whole)):
            if i is None:
                lengths.append(1)
            else:
                d = rest.pop(0)
                if i == slice(None):
                    lengths.append(d)
                elif isinstance(i, slice):
                    own = value.type.shape[len(lengths)]
                    cut = self._cut.setdefault((d, i.start, i.stop, i.step), own)
                    lengths.append(sliced(d, i, unknown=cut))
        return tuple(lengths)

    def _note(self, value: Value, shape: tuple[Dimension, ...]) -> None:
        if len(shape) != value.type.ndim:
            return
        for d, now in zip(self._shape(value), map(self._leader, shape), strict=True):
            if not isinstance(d, Size) or d is now or d.origin is not None:
                continue
            first = isinstance(now, Size) and now.origin is None and d.number < now.number
            if first and d in self._current:
                assert isinstance(now, Size)
                self._same[now] = d
            else:
                self._same[d] = now


def _is_basic(i: Operand) -> bool:
    return i is None or i is Ellipsis or isinstance(i, (int, np.integer, slice)) or (
        isinstance(i, Value) and not is_array(i)
    )  # fmt: skip


def _by_element(op: Apply) -> bool:
    """Whether a call broadcasts its arguments, and returns one array of that shape."""
    f = op.function
    if op.kwargs:
        return False
    if isinstance(f, np.ufunc):
        return f.signature is None and len(op.args) == f.nin
    try:
        return f in BROADCASTING or (f is np.where and len(op.args) == 3) or f is np.ndarray.copy
    except TypeError:
        return False


def _broadcast(
    shapes: list[tuple[Dimension, ...]], known: tuple[Dimension, ...]
) -> tuple[Dimension, ...]:
    """The shape of a broadcast, as far as it is known now."""
    shape = list(known)
    for axis in range(1, len(known) + 1):
        lengths = {s[-axis] for s in shapes if len(s) >= axis and s[-axis] != 1}
        if len(lengths) == 1:
            shape[-axis] = lengths.pop()
    return tuple(shape)
