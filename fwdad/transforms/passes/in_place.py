"""Elimination of copies that are only read before their source changes: the source is read.

In the reverse pass a store takes the cotangent of what it wrote, and leaves zeros. The zeros are
written later where that is unobservable, so that the cotangent can be read in place.
"""

from __future__ import annotations

import functools
import operator
from typing import TypeGuard

import numpy as np

from fwdad.ir.analysis.alias import Roots, memory, memory_of
from fwdad.ir.analysis.effects import reads, writes
from fwdad.ir.analysis.layout import Order, Orders, multiplies_few_rows
from fwdad.ir.ops import Apply, Block, Op, Operand, Program, Store, Update, Value, is_array
from fwdad.ir.ops import values_in as _values
from fwdad.ir.primitives.stacks import pop, top
from fwdad.ir.rewrite import Mapping, all_used, blocks_of, give_name, substitute
from fwdad.ops import record_of
from fwdad.tangents.scaling import scale_lanes
from fwdad.transforms.passes.copies import observable_orders

_READERS = {scale_lanes, np.sum}


def read_in_place(program: Program) -> bool:
    """Eliminate such copies; return whether there were any."""
    if not any(map(_copies, program.walk())):
        return False
    found = _Reader(program)
    for block in blocks_of(program.block):
        found.block(block)
    substitute(program.block, found.mapping)
    give_name(found.mapping)
    return bool(found.mapping)


def _copies(op: Op) -> TypeGuard[Apply]:
    return isinstance(op, Apply) and record_of(op.function).copies


class _Reader:
    def __init__(self, program: Program) -> None:
        self.roots: Roots = memory_of(program)
        self.mapping: Mapping = {}
        self.program = program
        self.params = set(program.block.params)
        on_stacks = [
            op for op in program.walk() if isinstance(op, Apply) and op.function in (pop, top)
        ]
        self.stacked = {v for op in on_stacks for v in op.outputs}  # memory that is on a stack
        self.written = {
            root for op in program.walk() for v in op.writes() for root in self.roots.get(v, {v})
        }
        blocks = list(blocks_of(program.block))
        self.returned = memory([b.results for b in blocks], self.roots)
        self.views: dict[Value, int] = {}  # how many arrays may be in an array's memory
        for v, owners in self.roots.items():
            for root in owners - {v}:
                self.views[root] = self.views.get(root, 0) + 1

    @functools.cached_property
    def orders(self) -> Orders | None:
        """The layouts of arrays, if removing copies could change a result; else None."""
        return observable_orders(self.program)

    def block(self, block: Block) -> None:
        """Eliminate copies that are made and read in a block."""
        tried = [op for op in block.ops if _copies(op) and self._is_plain(op)]
        users: dict[Value, list[Op]] = {v: [] for op in tried for v in op.outputs}
        for op in block.ops if tried else ():
            for v in all_used(op) & users.keys():
                users[v].append(op)
        for op in tried:
            if self._is_plain(op):
                self._try(op, users[op.outputs[0]], block)

    def _is_plain(self, op: Apply) -> bool:
        """Whether a copy is only read, and never known by another name."""
        (made,) = op.outputs
        source = op.args[0]
        return (
            len(op.args) == 1
            and is_array(source)
            and source not in self.mapping
            and not memory(source, self.roots) & self.stacked
            and source.type.dtype == made.type.dtype
            and self.roots.get(made, {made}) == {made}
            and made not in self.written
            and made not in self.returned
            and not self.views.get(made)
            and (self.orders is None or self.orders.of(source) is Order.ROWS)
        )

    def _try(self, op: Apply, users: list[Op], block: Block) -> None:
        (made,), source = op.outputs, op.args[0]
        if not users or not all(_only_reads(user, made) for user in users):
            return
        start = block.ops.index(op)
        last = block.ops.index(users[-1], start)
        owners = memory(source, self.roots)
        late: list[Op] = []
        for k in range(start + 1, last + 1):
            other = block.ops[k]
            if writes(other, self.roots) & owners:
                if not self._may_wait(other):
                    return
                late.append(other)
            elif late and self._reads_beside(other, made) & owners:
                return
        block.ops[start : last + 1] = [
            other for other in block.ops[start + 1 : last + 1] if other not in late
        ] + late
        self.mapping[made] = source
        self.roots[made] = owners  # reading it means reading these from here on

    def _may_wait(self, op: Op) -> bool:
        """Whether delaying the write of a constant is unobservable outside."""
        return (
            isinstance(op, Store)
            and not isinstance(op.value, Value)
            and not any(is_array(v) for v in _values(op.index))
            and not memory(op.array, self.roots) & self.params
        )

    def _reads_beside(self, op: Op, made: Value) -> set[Value]:
        return reads(op, self.roots) - {made}


def _only_reads(op: Op, v: Operand) -> bool:
    """Whether an operation reads an array element by element, whatever its strides are."""
    if isinstance(op, (Store, Update)):
        return op.value is v and v not in set(_values(op.index))
    if not isinstance(op, Apply) or op.blocks():
        return False
    f = op.function
    if isinstance(f, np.ufunc):
        return f.signature is None or multiplies_few_rows(op)
    if f is operator.matmul or f is np.dot:
        return multiplies_few_rows(op)
    return f in _READERS or (
        getattr(f, "__module__", "") == "_operator" and f is not operator.getitem
    )
