"""Recomputation of arrays that are cheaper to compute at each use than to store and load.

What is left of an update in the reverse pass, ``-0.5 * y_bar``, is added to several views. Each of
these is a loop of its own, in which a product costs less than a load; an array that holds it is
written once and read every time.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

import numpy as np

from fwdad.ir.analysis.alias import Roots, alone_by_checks, may_overlap, memory_of
from fwdad.ir.analysis.costs import cost_of
from fwdad.ir.analysis.def_use import count_uses
from fwdad.ir.ops import (
    Apply,
    Block,
    Load,
    Op,
    Program,
    Store,
    Update,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.ir.rewrite import with_blocks, with_ops
from fwdad.ops import Cost
from fwdad.tangents.scaling import scale_lanes

_MOST = 4  # operations that are repeated per element, at most


def repeated(program: Program) -> Program:
    """A program whose cheap arrays are computed where they are used; itself if it has none."""
    uses = count_uses(program.block)
    if not any(_is_cheap(op) and uses[op.outputs[0]] > 1 for op in program.walk()):
        return program
    params = set(program.block.params) - alone_by_checks(program)
    block = _Repeater(uses, memory_of(program), params).of(program.block)
    return program if block is program.block else dataclasses.replace(program, block=block)


def _is_cheap(op: Op) -> bool:
    if not isinstance(op, Apply) or len(op.outputs) != 1 or op.kwargs:
        return False
    (value,) = op.outputs
    if not is_array(value) or not value.type.ndim or value.type.dtype != np.float64:
        return False
    return op.function is scale_lanes or cost_of(op) is Cost.ARITHMETIC


class _Repeater:
    """Rewrites the blocks of one program, any two of whose ``params`` may alias."""

    def __init__(self, uses: Counter[Value], roots: Roots, params: set[Value]) -> None:
        self.uses = uses
        self.roots = roots
        self.params = params
        self.made: dict[Value, Op] = {}  # defining operations of the program so far
        self.here: set[Value] = set()  # what operations of the current block define
        self.users: dict[Value, list[Op]] = {}  # operations of the current block, for each use

    def of(self, block: Block) -> Block:
        """A block, rewritten; itself if nothing changes."""
        outer = self.here, self.users
        self.made.update({v: op for op in block.ops for v in op.outputs})
        ops = [with_blocks(op, self.of) for op in block.ops]
        self.made.update({v: op for op in ops for v in op.outputs})
        self.here = {v for op in ops for v in op.outputs}
        self.users = {}
        for op in ops:
            for v in values_in(op.operands()):
                self.users.setdefault(v, []).append(op)
        k = 0
        while k < len(ops):
            if _is_cheap(ops[k]):
                k += self._spread(ops, k)
            k += 1
        self.here, self.users = outer
        return with_ops(block, ops)

    def _spread(self, ops: list[Op], k: int) -> int:
        """Compute the array that ``ops[k]`` makes at each use; returns by how much that moved k."""
        (value,) = ops[k].outputs
        users = self.users.get(value, [])
        if len(users) < 2 or len(users) != self.uses[value]:
            return 0
        if len(set(users)) < len(users) or not all(_reads_elements(value, op) for op in users):
            return 0
        tree = self._tree(ops[k])
        leaves = {a for op in tree for a in op.args if is_array(a)} - {o.outputs[0] for o in tree}
        costs = len(leaves) * (len(users) - 1) > len(users) + 1
        if costs or len(tree) > _MOST or not all(map(self._is_dense, leaves)):
            return 0
        users = users.copy()
        places = [k]
        for _ in users:
            places.append(next(j for j in range(places[-1] + 1, len(ops)) if ops[j] in users))
        own = [k]
        for _ in tree[1:]:
            own.append(next(j for j in range(own[-1] - 1, -1, -1) if ops[j] in tree))
        if any(self._writes(op, leaves) for op in ops[own[-1] : places[-1]]):
            return 0
        for j in reversed(places[1:]):
            ops[j : j + 1] = [*self._copied(tree, ops[j], value)]
        for j in own:
            del ops[j]
        for op in tree:
            self._replace(op, [])
        return -len(tree)

    def _replace(self, op: Op, others: Sequence[Op]) -> None:
        """Note that other operations take the place of one of the current block."""
        for v in values_in(op.operands()):
            self.users[v].remove(op)
            self.uses[v] -= 1
        for other in others:
            for v in values_in(other.operands()):
                self.users.setdefault(v, []).append(other)
                self.uses[v] += 1

    def _tree(self, op: Op) -> list[Apply]:
        """An operation and those that nobody else needs, in their order."""
        assert isinstance(op, Apply)
        tree = [op]
        for a in op.args:
            maker = self.made.get(a) if is_array(a) else None
            if maker is not None and self.uses[a] == 1 and a in self.here and _is_cheap(maker):
                tree = [*self._tree(maker), *tree]
        return tree

    def _copied(self, tree: Sequence[Apply], user: Op, value: Value) -> list[Op]:
        new: dict[Value, Value] = {}
        copies: list[Op] = []
        for op in tree:
            (v,) = op.outputs
            new[v] = Value(v.type, v.name)
            self.here.add(new[v])
            self.roots[new[v]] = {new[v]}
            copies.append(dataclasses.replace(op, outputs=(new[v],)))
            copies[-1].replace(lambda x: new.get(x, x))
            self.made[new[v]] = copies[-1]
        changed = dataclasses.replace(user)
        changed.replace(lambda x: new[value] if x is value else x)
        self.made.update(dict.fromkeys(changed.outputs, changed))
        copies.append(changed)
        self._replace(user, copies)
        return copies

    def _is_dense(self, a: Value) -> bool:
        """Whether neighbours along the last axis are neighbours in memory, as far as is known."""
        maker = self.made.get(a)
        if isinstance(maker, Load):
            last = maker.index[-1] if maker.index else slice(None)
            full = sum(i is not None for i in maker.index) == maker.array.type.ndim
            plain = isinstance(last, slice) and last.step is None
            return (plain or not full) and last is not None and self._is_dense(maker.array)
        return self.roots.get(a, {a}) == {a}

    def _writes(self, op: Op, leaves: set[Value]) -> bool:
        written = list(op.writes())
        written += [v for b in op.blocks() for o in walk(b) for v in o.writes()]
        return any(may_overlap(v, a, self.roots, self.params) for v in written for a in leaves)


def _reads_elements(value: Value, op: Op) -> bool:
    """Whether an operation that uses an array reads it element by element."""
    if isinstance(op, (Store, Update)):
        return op.value is value
    return _is_cheap(op)
