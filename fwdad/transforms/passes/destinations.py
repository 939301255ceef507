"""New arrays that are stored whole into others: they are computed in the memory of these.

An argument that a program fills, such as a gradient with ``out``, is C-contiguous, and holds
anything until the end, so that a program that raises leaves it half-written. Of a new array the
caller sees nothing then, so its rows are computed in place, too. A row of a few numbers,
``y[k] = np.array([a, b])``, is stored number by number.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

import numpy as np

from fwdad.ir.analysis.alias import Roots, memory, memory_of
from fwdad.ir.analysis.def_use import count_uses
from fwdad.ir.analysis.effects import reads, writes
from fwdad.ir.ops import (
    Apply,
    Block,
    Load,
    Loop,
    Op,
    Operand,
    Program,
    Store,
    Update,
    Value,
    is_array,
    type_of_operand,
)
from fwdad.ir.rewrite import defined_by, substitute, with_blocks, with_ops
from fwdad.ir.types import Dimension, Number
from fwdad.ops.record import Layout, record_of


def compute_in_destination(program: Program) -> bool:
    """Let arrays that are stored whole into arguments be these; whether there were any."""
    found = [_take_over(program, op) for op in list(program.block.ops) if isinstance(op, Store)]
    return any(found)


def _take_over(program: Program, store: Store) -> bool:
    target, ops = store.array, program.block.ops
    if store.index not in ((), (Ellipsis,)) or target not in program.block.params:
        return False
    start = _start(program.block, store, target.type.shape, memory_of(program))
    if start is None:
        return False
    ops[start : ops.index(store) + 1] = [
        *_filled(ops[start], target), *ops[start + 1 : ops.index(store)],
    ]  # fmt: skip
    substitute(program.block, {store.value: target})
    return True


def computed_in_rows(program: Program) -> Program:
    """A program whose new arrays that are stored as rows of its own are these; itself if none."""
    block = _Rows(memory_of(program), count_uses(program.block)).of(program.block)
    return program if block is program.block else dataclasses.replace(program, block=block)


_MOST_NUMBERS = 16


class _Rows:
    """Rewrites the blocks of a program."""

    def __init__(self, roots: Roots, uses: Counter[Value]) -> None:
        self.roots = roots
        self.uses = uses
        self.lengths: dict[Value, Sequence[Operand]] = {}  # of new arrays, as they are given
        self.ends: dict[Value, Operand] = {}  # of the counters of loops that count upwards

    def of(self, block: Block) -> Block:
        """A block, rewritten; itself if nothing changes."""
        ops = []
        for op in block.ops:
            if isinstance(op, Apply) and _is_filled(op) and isinstance(op.args[0], tuple):
                self.lengths[op.outputs[0]] = op.args[0]
            elif isinstance(op, Loop) and op.span is not None and _counts_upwards(op.span):
                self.ends[op.body.params[0]] = op.span[1]
            ops.append(with_blocks(op, self.of))
        block = with_ops(block, ops)
        filled = {op.outputs[0] for op in ops if _is_filled(op)}
        for op in ops if filled else ():
            if isinstance(op, Store) and isinstance(op.value, Value) and op.value in filled:
                block = self._in_place(block, op) if self._is_row(op) else block
        return self._number_by_number(block)

    def _number_by_number(self, block: Block) -> Block:
        """A block in which rows of numbers are stored, or updated, one by one."""
        makers = {v: op for op in block.ops for v in op.outputs}
        instead: dict[Op, list[Op]] = {}
        for op in block.ops:
            if not isinstance(op, (Store, Update)) or not isinstance(op.value, Value):
                continue
            if self.uses[op.value] == 1:
                maker = makers.get(op.value)
                numbers = _numbers(maker)
                stores = _one_by_one(op, numbers) if numbers else None
                if stores and maker is not None:
                    instead |= {op: stores, maker: []}
        return with_ops(block, [new for op in block.ops for new in instead.get(op, [op])])

    def _is_row(self, store: Store) -> bool:
        """Whether a store writes a row of a new array, at an index that exists."""
        lengths = self.lengths.get(store.array, ())
        return 0 < len(store.index) < len(lengths) and all(
            self._is_below(i, n) for i, n in zip(store.index, lengths, strict=False)
        )

    def _is_below(self, i: Operand, n: Operand) -> bool:
        if isinstance(i, Value):
            return i in self.ends and self.ends[i] == n
        return isinstance(i, int) and isinstance(n, int) and 0 <= i < n

    def _in_place(self, block: Block, store: Store) -> Block:
        """A block in which the array that is stored is the row; itself if it cannot be."""
        target, index, array, ops = store.array, store.index, store.value, block.ops
        start = _start(block, store, target.type.shape[len(index) :], self.roots)
        if start is None:
            return block
        there = {v for op in ops[start:] for v in defined_by(op)}
        if there.intersection((target, *index)):
            return block
        assert isinstance(array, Value)
        row = Load(target, index, view=True, outputs=(array,), location=store.location)
        end = ops.index(store)
        made = [*ops[:start], row, *_filled(ops[start], array), *ops[start + 1 : end]]
        for v, owners in self.roots.items():
            if array in owners:
                self.roots[v] = (owners - {array}) | self.roots.get(target, {target})
        self.roots[array] = self.roots.get(target, {target})
        return with_ops(block, [*made, *ops[end + 1 :]])


def _one_by_one(store: Store | Update, numbers: list[Operand]) -> list[Op] | None:
    """Stores of the numbers that a row consists of; None if it is none, or another one."""
    target, index = store.array, store.index
    whole = len(index) < target.type.ndim and not any(i is None or i is Ellipsis for i in index)
    index = (*index, slice(None)) if whole else index
    slices = [k for k, i in enumerate(index) if isinstance(i, slice)]
    others = [i for i in index if not isinstance(i, slice)]
    if len(index) != target.type.ndim or len(slices) != 1:
        return None
    (k,) = slices
    fits = target.type.shape[k] == len(numbers) and target.type.dtype == store.value.type.dtype
    if index[k] != slice(None) or not fits or not all(map(_is_int, others)):
        return None
    if isinstance(store, Update):
        ufunc = record_of(store.function).stands_for or store.function
        if not isinstance(ufunc, np.ufunc) or ufunc.signature is not None:
            return None
    return [
        dataclasses.replace(store, index=(*index[:k], j, *index[k + 1 :]), value=x)
        for j, x in enumerate(numbers)
    ]


def _numbers(op: Op | None) -> list[Operand]:
    """The numbers that an array is made of, all of its dtype; none if it is made otherwise."""
    if not isinstance(op, Apply) or op.function not in (np.array, np.asarray) or op.kwargs:
        return []
    items = op.args[0] if len(op.args) == 1 else None
    if not isinstance(items, (list, tuple)) or len(items) > _MOST_NUMBERS:
        return []
    types = [type_of_operand(x) for x in items]
    dtype = op.outputs[0].type.dtype
    same = all(isinstance(t, Number) and t.dtype == dtype for t in types)
    return list(items) if same else []


def _is_int(i: Operand) -> bool:
    t = type_of_operand(i)
    return isinstance(t, Number) and t.dtype.kind in "iu"


def _counts_upwards(span: Sequence[Operand]) -> bool:
    """Whether a loop's counter begins at a constant that is no index from the end, and grows."""
    start, _, step = span
    return isinstance(start, int) and isinstance(step, int) and start >= 0 and step > 0


def _start(block: Block, store: Store, shape: tuple[Dimension, ...], roots: Roots) -> int | None:
    """Where an array is made that a store copies into memory of this shape.

    None unless it can be that memory: that is not accessed while the array is written, nor is the
    array afterwards.
    """
    target, array, ops = store.array, store.value, block.ops
    if not (isinstance(array, Value) and is_array(array)) or array.type.shape != shape:
        return None
    start = next((k for k, op in enumerate(ops) if array in op.outputs), None)
    if array.type.dtype != target.type.dtype or start is None or not _is_filled(ops[start]):
        return None
    own, given, end = {array}, memory(target, roots), ops.index(store)
    if roots.get(array, own) != own:
        return None
    before = any((reads(op, roots) | writes(op, roots)) & given for op in ops[start:end])
    after = any((reads(op, roots) | writes(op, roots)) & own for op in ops[end + 1 :])
    return None if before or after or memory(block.results, roots) & own else start


def _is_filled(op: Op) -> bool:
    """Whether an operation makes a new C-contiguous array of floats, all equal or anything."""
    if not isinstance(op, Apply) or "order" in op.kwargs or len(op.outputs) != 1:
        return False
    (array,) = op.outputs
    if not is_array(array) or array.type.dtype.kind not in "fc":
        return False
    record = record_of(op.function)
    return op.function is np.empty or (record.fill is not None and record.layout is Layout.C)


def _filled(op: Op, target: Value) -> list[Op]:
    """Write what an operation fills a new array with into another one."""
    assert isinstance(op, Apply)
    if op.function is np.empty:
        return []
    fill = record_of(op.function).fill
    assert fill is not None
    return [Store(target, (Ellipsis,), float(fill), location=op.location)]
