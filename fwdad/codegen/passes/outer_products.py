"""Sums of outer products in a program for NumPy, found and fused into one operation each.

The reverse pass of two products of one matrix with vectors adds two arrays as large as the matrix.
Under NumPy each of them is written to memory, and then their sum; in compiled code they are one
loop anyway. One that is added to a matrix in place is BLAS's ``ger``.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Iterator

import numpy as np

from fwdad.codegen.passes.deferred_updates import add_products_later
from fwdad.codegen.passes.rank_one_products import has_constant_matrix, multiply_one_row
from fwdad.ir.analysis.alias import Roots, may_overlap, memory_of
from fwdad.ir.analysis.def_use import count_uses
from fwdad.ir.clone import copied
from fwdad.ir.ops import (
    Apply,
    Block,
    Call,
    Load,
    Op,
    Operand,
    Program,
    Update,
    Value,
    is_array,
)
from fwdad.ir.primitives.outer_products import sum_of_outer
from fwdad.ir.rewrite import blocks_of
from fwdad.ir.types import ArrayType, Dimension, Size, number_type
from fwdad.rules.core.adjoints import add_outer

_SUMS = (operator.add, np.add)
_PRODUCTS = (operator.mul, np.multiply)


def without_outer_sums(program: Program) -> Program:
    """A program whose sums of outer products are one operation each.

    Products with matrices of equal rows become products with one row. Values that are no
    derivatives keep the user's operations, to the last bit. The program is not changed, and
    returned itself if there is nothing to do.
    """
    constant = program.quiet and has_constant_matrix(program)
    if not program.quiet or not (constant or any(sums.found for _, sums in _sums_of(program))):
        return program
    copy = copied(program)
    if constant:
        multiply_one_row(copy)
    for block, sums in _sums_of(copy):
        block.ops = [
            new
            for op in block.ops
            if id(op) not in sums.inside
            for new in sums.found.get(id(op), [op])
        ]
    add_products_later(copy)
    return copy


def _sums_of(program: Program) -> Iterator[tuple[Block, _Sums]]:
    """The blocks that may have sums of outer products, with what is found in each."""
    blocks = [b for b in blocks_of(program.block) if _may_have(b)]
    uses = count_uses(program.block) if blocks else Counter()
    return ((b, _Sums(program, b, uses)) for b in blocks)


class _Sums:
    """The sums of outer products in a block.

    ``found`` maps the ids of operations to those that replace them; ``inside`` are the ids of
    operations that become parts of one.
    """

    def __init__(self, program: Program, block: Block, uses: Counter[Value]) -> None:
        self._uses = uses
        self._program = program
        self._place = {v: k for k, op in enumerate(block.ops) for v in op.outputs}
        self._ops = block.ops
        self.found: dict[int, list[Op]] = {}
        self.inside: set[int] = set()
        self._others: set[Op] = set()  # sums of something else
        for op in reversed(block.ops):
            if id(op) not in self.inside and _is(op, _SUMS):
                self._try(op)
            elif isinstance(op, Update):
                self._try_update(op)

    @functools.cached_property
    def _roots(self) -> Roots:
        return memory_of(self._program)

    def _try(self, op: Op) -> None:
        inside: list[Op] = []
        vectors = self._vectors(op, inside, op.outputs[0].type.shape)
        dtypes = {op.outputs[0].type.dtype, *(v.type.dtype for v in vectors or ())}
        if vectors is None or len(dtypes) > 1 or op.outputs[0].type.dtype.kind not in "fc":
            return
        first = min(self._place[v] for o in inside for v in o.outputs)
        if any(_acts(o) for o in self._ops[first : self._place[op.outputs[0]]]):
            return
        self.inside.update(map(id, inside))
        args = tuple(vectors)
        call = Apply(sum_of_outer, args, outputs=op.outputs, location=op.location)
        self.found[id(op)] = [call]

    def _try_update(self, op: Update) -> None:
        """Record an outer product that is added to a matrix in place."""
        inner = self._own(op.value) if op.function in _SUMS else None
        if inner is None or not _is(inner, _PRODUCTS) or not isinstance(inner, Apply):
            return
        t = inner.outputs[0].type
        inside: list[Op] = [inner]
        if not isinstance(t, ArrayType) or t.ndim != 2 or op.array.type.dtype != np.float64:
            return
        pair = self._pair(inner, inside, t.shape)
        rank = op.array.type.ndim - sum(not isinstance(i, slice) for i in op.index)
        plain = all(isinstance(i, slice) or _is_number(i) for i in op.index)
        first = min(self._place[v] for o in inside for v in o.outputs)
        last = self._ops.index(op)
        if pair is None or not (op.index == (Ellipsis,) or (plain and rank == 2)):
            return
        params = set(self._program.block.params)
        if any(
            v.type.dtype != np.float64 or may_overlap(v, op.array, self._roots, params)
            for v in pair
        ):
            return
        if any(_acts(o) for o in self._ops[first:last]):
            return
        view, taken = op.array, []
        if op.index != (Ellipsis,):
            view = Value(ArrayType(t.dtype, (Size(), Size())))
            taken = [Load(op.array, op.index, True, outputs=(view,), location=op.location)]
        added = Apply(add_outer, (view, *pair), mutated=(0,), location=op.location)
        self.inside.update(map(id, inside))
        self.found[id(op)] = [*taken, added]

    def _vectors(
        self, op: Op, inside: list[Op], shape: tuple[Dimension, ...]
    ) -> list[Value] | None:
        """The vectors of a sum or a product; None if it is of anything else."""
        if len(shape) != 2 or not isinstance(op, Apply) or op in self._others:
            return None
        if _is(op, _PRODUCTS):
            return self._pair(op, inside, shape)
        values: list[Value] = []
        for a in op.args if _is(op, _SUMS) else ():
            part = self._own(a)
            vectors = None if part is None else self._vectors(part, inside, shape)
            if part is None or vectors is None:
                self._others.add(op)
                return None
            inside.append(part)
            values += vectors
        return values or None

    def _pair(
        self, op: Apply, inside: list[Op], shape: tuple[Dimension, ...]
    ) -> list[Value] | None:
        loads: list[Op] = []
        vectors = [self._vector(a, loads) for a in op.args]
        for (u, is_column), (v, is_other) in (vectors, vectors[::-1]):
            if u is not None and v is not None and is_column and not is_other:
                if (u.type.shape[0], v.type.shape[0]) == shape:
                    inside += loads
                    return [u, v]
        return None

    def _vector(self, a: Operand, loads: list[Op]) -> tuple[Value | None, bool]:
        """The vector that an operand of one or two axes shows, and whether it is a column."""
        if not is_array(a):
            return None, False
        if a.type.ndim == 1:
            return a, False
        op = self._ops[self._place[a]] if a in self._place else None
        if not isinstance(op, Load) or not op.view or op.array.type.ndim != 1:
            return None, False
        if op.array.type.shape == (1,):
            return None, False
        if not all(i is None or i is Ellipsis or i == slice(None) for i in op.index):
            return None, False
        if self._uses[a] == 1:
            loads.append(op)
        return op.array, a.type.shape[1] == 1

    def _own(self, a: Operand) -> Op | None:
        """The operation of this block whose result is only used as this operand, or None."""
        if not isinstance(a, Value) or self._uses[a] != 1 or a not in self._place:
            return None
        return self._ops[self._place[a]]


def _may_have(block: Block) -> bool:
    return any(
        isinstance(op, Update) or (_is(op, _SUMS) and op.outputs[0].type.ndim == 2)
        for op in block.ops
    )


def _is_number(i: Operand) -> bool:
    return not is_array(i) and (isinstance(i, Value) or number_type(i) is not None)


def _is(op: Op, functions: tuple[object, ...]) -> bool:
    return (
        isinstance(op, Apply)
        and op.function in functions
        and len(op.args) == 2
        and not op.kwargs
        and len(op.outputs) == 1
    )


def _acts(op: Op) -> bool:
    return bool(op.writes() or op.blocks() or isinstance(op, Call))
