"""Defers outer products that a loop adds to one matrix, in a program for NumPy.

One by one, each reads and writes the matrix. Where it is not read before the loop ends, they are
collected and added many at a time, as one product of matrices.
"""

from __future__ import annotations

from typing import NamedTuple

from fwdad.ir.analysis.alias import memory, memory_of
from fwdad.ir.analysis.def_use import count_uses
from fwdad.ir.ops import Apply, Block, Load, Loop, Op, Program, Update, Value
from fwdad.ir.primitives.outer_products import OuterProducts
from fwdad.ir.primitives.stacks import stack_type
from fwdad.ir.rewrite import all_inside, blocks_of
from fwdad.ops import Algebra, record_of
from fwdad.rules.core.adjoints import add_outer

_SUMS = (Algebra.SUM, Algebra.DIFFERENCE)


def add_products_later(program: Program) -> None:
    """Defer the outer products that loops add to a matrix; the program is rewritten in place.

    Outer products that are added in place must be ``add_outer`` already.
    """
    if any(isinstance(op, Apply) and op.function is add_outer for op in program.walk()):
        _Later(program).block(program.block)


class _Added(NamedTuple):
    """An outer product that is added to a view of a matrix."""

    matrix: Value
    view: tuple[slice, slice]
    vectors: tuple[Value, Value]
    ops: list[Op]


class _Later:
    def __init__(self, program: Program) -> None:
        self._roots = memory_of(program)
        self._given = set(program.block.params)
        self._uses = count_uses(program.block)

    def block(self, block: Block) -> None:
        """Rewrite the loops of a block, the outer ones first."""
        ops: list[Op] = []
        for op in block.ops:
            waiting = self._in_loop(op) if isinstance(op, Loop) else {}
            for matrix, products in waiting.items():
                ops.append(Apply(OuterProducts, (matrix,), outputs=(products,)))
            ops.append(op)
            ops.extend(
                Apply(OuterProducts.add_all, (products,), mutated=(0,))
                for products in waiting.values()
            )
            for inner in op.blocks():
                self.block(inner)
        block.ops = ops

    def _in_loop(self, loop: Loop) -> dict[Value, Value]:
        """Rewrite a loop; returns the matrices with deferred products, and what collects them."""
        inside = set().union(*(all_inside(b) for b in loop.blocks()))
        blocks = [inner for b in loop.blocks() for inner in blocks_of(b)]
        updates: dict[Value, list[_Added]] = {}
        for added in (a for block in blocks for a in self._added(block)):
            if added.matrix not in inside and not self._given & memory(added.matrix, self._roots):
                updates.setdefault(added.matrix, []).append(added)
        waiting: dict[Value, Value] = {}
        instead: dict[int, list[Op]] = {}
        for matrix, each in updates.items():
            if self._is_read(matrix, loop, blocks, {id(op) for added in each for op in added.ops}):
                continue
            products = waiting[matrix] = Value(stack_type(matrix.type), "later")
            for added in each:
                args = (products, *added.view, *added.vectors)
                *taken, last = added.ops
                later = Apply(OuterProducts.add_later, args, mutated=(0,), location=last.location)
                instead.update({id(last): [later], **{id(op): [] for op in taken}})
        for block in blocks if waiting else ():
            block.ops = [new for op in block.ops for new in instead.get(id(op), [op])]
        return waiting

    def _added(self, block: Block) -> list[_Added]:
        loads = {v: op for op in block.ops if isinstance(op, Load) for v in op.outputs}
        terms = []
        for op in block.ops:
            if not isinstance(op, Apply) or op.function is not add_outer:
                continue
            matrix, *vectors = op.args
            load = loads.get(matrix)
            if load is None:
                terms.append(_Added(matrix, (slice(None), slice(None)), tuple(vectors), [op]))
            elif self._uses[matrix] == 1 and load.view and load.array.type.ndim == 2:
                if all(isinstance(i, slice) for i in load.index):
                    view = (*load.index, slice(None))[:2]
                    terms.append(_Added(load.array, view, tuple(vectors), [load, op]))
        return terms

    def _is_read(self, matrix: Value, loop: Loop, blocks: list[Block], adding: set[int]) -> bool:
        """Whether a loop does anything with the memory of a matrix but add to it."""
        owners = memory(matrix, self._roots)

        def touches(*operands: object) -> bool:
            return bool(owners & memory(operands, self._roots))

        if touches(loop.initial):
            return True
        for block in blocks:
            if touches(block.results):
                return True
            for op in block.ops:
                if id(op) in adding:
                    others = op.args[1:] if isinstance(op, Apply) else ()
                    if touches(*others):
                        return True
                elif isinstance(op, Update) and record_of(op.function).algebra in _SUMS:
                    if touches(op.index, op.value):
                        return True
                elif touches(op.operands()):
                    return True
        return False
