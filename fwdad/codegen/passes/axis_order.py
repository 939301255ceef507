"""The memory order of an array's axes: the one in which the program traverses them.

A loop over a column of an array in C order steps from row to row, one element at a time; LLVM
cannot vectorise it. Where most of what a program reads and writes of an array are columns, these
are made contiguous. Nobody outside can tell: an array that the program returns is copied into C
order at its end, arrays that it passes on, or knows by another name, stay in it, and views are
taken of both in the same way.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from fwdad.codegen.loops.terms.element_terms import ELEMENTWISE
from fwdad.codegen.loops.terms.numpy_terms import as_ufunc
from fwdad.ir.analysis.alias import Roots, memory
from fwdad.ir.analysis.indices import Places, affine
from fwdad.ir.analysis.layout import multiplies_few_rows
from fwdad.ir.builder.index_parts import spelled_out
from fwdad.ir.builder.shape_env import length_of
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
    values_in,
)
from fwdad.ir.primitives.stacks import push
from fwdad.ops import record_of
from fwdad.tangents.scaling import scale_lanes
from fwdad.transforms.forward import zero_lanes

Axes = tuple[int, ...]
"""The axes of an array, the one whose elements lie far apart first."""

_READ = {np.sum, np.where, scale_lanes}
_COPY = 4  # a copy into C order counts as many traversals
_LENGTH = 10  # the assumed length of a loop


def axes_of_memory(program: Program, roots: Roots, known: Places) -> dict[Value, Axes]:
    """The arrays that are not stored in C order, and their axis orders."""
    counted = _Votes(program, roots, known)
    chosen = {}
    for v, votes in counted.votes.items():
        in_order = tuple(range(v.type.ndim))
        order = max(votes, key=lambda o: (votes[o], o == in_order), default=in_order)
        if order != in_order:
            chosen[v] = order
    return chosen


def _is_made(function: Any) -> bool:
    """Whether a function makes arrays in whatever order they are wanted."""
    record = record_of(function)
    return record.fill == 0 or function in (np.full, np.full_like, np.ndarray.copy, zero_lanes)


class _Votes:
    """How often a program traverses the axes of its arrays in each order."""

    def __init__(self, program: Program, roots: Roots, known: Places) -> None:
        self.roots = roots
        self.known = known
        self.depths: dict[Loop, int] = {}
        self.votes: dict[Value, Counter[Axes]] = {
            v: Counter()
            for op in program.walk()
            if isinstance(op, Apply) and _is_made(op.function)
            for v in op.outputs
            if is_array(v) and v.type.ndim > 1 and roots.get(v, {v}) == {v}
        }
        self._results(program.block.results)
        for owners in roots.values():
            if len(owners) > 1:  # one of several
                self._leave(owners)
        if self.votes:
            self._ops(program.block, 0)

    def _results(self, results: list[Operand]) -> None:
        """Count the copy into C order of returned arrays, if they own their memory."""
        owners = Counter(v for r in results for v in memory(r, self.roots))
        self._leave({v for v, n in owners.items() if n > 1 or v not in results})
        for v in owners.keys() & self.votes.keys():
            in_order = tuple(range(v.type.ndim))
            self.votes[v][in_order] += _COPY * _LENGTH**v.type.ndim

    def _leave(self, owners: set[Value]) -> None:
        for v in owners:
            self.votes.pop(v, None)

    def _owner(self, v: Operand) -> Value | None:
        """The array whose memory another one uses, if its order may be chosen."""
        owners = memory(v, self.roots)
        return next(iter(owners)) if len(owners) == 1 and owners <= self.votes.keys() else None

    def _ops(self, block: Block, depth: int) -> None:
        for op in block.ops:
            self._op(op, depth)
            if isinstance(op, Loop):
                self.depths[op] = depth
            for inner in op.blocks():
                self._ops(inner, depth + isinstance(op, Loop))
                self._leave(memory(inner.results, self.roots))

    def _op(self, op: Op, depth: int) -> None:
        if isinstance(op, (Load, Store, Update)) and self._is_plain(op.index):
            if isinstance(op, Load) and op.outputs[0].type.ndim == op.array.type.ndim:
                return  # counted where it is read
            self._visit(op.array, op.index, depth, 1 + isinstance(op, Update))
            if not isinstance(op, Load):
                self._read(op.value, depth)
            return
        reads = isinstance(op, Apply) and not op.blocks() and _only_reads(op)
        operands = op.operands()
        if isinstance(op, Apply):
            operands = op.operands_read()
        for v in values_in(operands):
            if not is_array(v):
                continue
            if reads or (isinstance(op, Apply) and self._is_row(v) and self._is_apart(op, v)):
                self._read(v, depth)
            else:
                self._leave(memory(v, self.roots))
        if isinstance(op, Apply) and record_of(op.function).fill != 0:
            for v in op.outputs:
                self._read(v, depth)

    def _is_row(self, v: Value) -> bool:
        """Whether an array is a one-dimensional view, which may have any stride anyway."""
        op = self.known.definition.get(v)
        return v.type.ndim == 1 and isinstance(op, Load) and op.view

    def _is_apart(self, op: Apply, v: Value) -> bool:
        """Whether a call makes no alias of an array's memory, and does not write it."""
        owners = memory([*op.outputs, *op.writes()], self.roots)
        return not owners & memory(v, self.roots)

    def _is_plain(self, index: tuple[Operand, ...]) -> bool:
        return not any(i is None or isinstance(i, (list, bool)) or is_array(i) for i in index)

    def _read(self, v: Operand, depth: int) -> None:
        """Count an array of which each element is read, row by row."""
        if not is_array(v) or self._is_row(v):
            return
        op = self.known.definition.get(v)
        if isinstance(op, Load) and op.view:
            if op.array.type.ndim == v.type.ndim:
                self._visit(op.array, op.index, depth, 1)
        else:
            self._visit(v, (), depth, 1)

    def _visit(self, v: Value, index: tuple[Operand, ...], depth: int, times: int) -> None:
        """Count a traversal of the elements that an index selects."""
        owner = self._owner(v)
        if owner is None:
            return
        if owner.type.ndim != v.type.ndim:  # a view of a view that has lost an axis
            return
        parts = spelled_out(index, v.type.ndim)
        runs = [k for k, i in enumerate(parts) if isinstance(i, slice)]
        fixed = [k for k, i in enumerate(parts) if not isinstance(i, slice)]
        fixed.sort(key=lambda k: self._depth_of(parts[k]))
        self.votes[owner][(*fixed, *runs)] += times * _LENGTH ** (depth + len(runs))

    def _depth_of(self, i: Operand) -> int:
        """The depth of the loop in which an index changes: that it counts, or is computed in."""
        position = affine(i, self.known)
        if position is None or position.base is None:
            return -1
        loop = self.known.holder.get(id(self.known.home.get(position.base)))
        return self.depths.get(loop, -1) if isinstance(loop, Loop) else -1


def _only_reads(op: Apply) -> bool:
    """Whether a call reads arrays element by element, in any layout."""
    f = op.function
    if op.writes() and f is not push:
        return False
    if f is push or f in _READ or record_of(f).copies or f is length_of:
        return True
    ufunc = as_ufunc(f)
    if multiplies_few_rows(op):
        return True
    if ufunc is not None:
        return len(op.args) == ufunc.nin and not op.kwargs
    return f in ELEMENTWISE and not op.kwargs
