"""Dead code elimination: operations, carried values, outputs and stores that nothing depends on.

Liveness starts from the results, from writes into parameters and memory from outside, and from what
may raise because of a *value*: checks, calls of other programs, ``numpy.linalg``, ``math``,
``int(x)``, and division of Python numbers stay although their results are unused. Exceptions about
shapes and indices, and warnings, disappear with the unused operation that would have raised them:
an unused element is not loaded, and an unused sum not formed. An unused ``while`` is assumed to
terminate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fwdad.ir.analysis.alias import Roots, memory, memory_of
from fwdad.ir.analysis.effects import is_nonzero, reads, risk
from fwdad.ir.ops import (
    Block,
    Branch,
    Call,
    Loop,
    Op,
    Operand,
    Program,
    Store,
    Update,
    Value,
    values_in,
    walk,
)
from fwdad.ir.rewrite import all_inside, blocks_of, defined_by
from fwdad.ops import Risk


def dead(program: Program) -> bool:
    """Remove what nothing depends on; return whether anything was removed."""
    return _sweep(program.block, _Marker(program))


def _last_stores(block: Block, roots: Roots, own: set[Value]) -> set[Op]:
    """The stores into memory of the program's own that nothing reads from there on."""
    if not any(isinstance(op, (Store, Update)) for op in block.ops):
        return set()
    found: set[Op] = set()
    handed = [op.operands() for op in walk(block) if not op.nests and risk(op) >= Risk.RAISES]
    read = memory([block.results, handed], roots)  # what is called may keep its arguments
    for op in reversed(block.ops):
        if isinstance(op, (Store, Update)):
            target = memory([op.array], roots)
            if target <= own and not target & read:
                found.add(op)
                continue
        read |= reads(op, roots)
    return found


def drop_unread(program: Program) -> bool:
    """Remove carried values and results of branches that nothing reads; all operations stay.

    A traced loop carries every name that its body binds, since code after it may read it.
    """
    ops = [op for block in blocks_of(program.block) for op in block.ops]
    if not any(isinstance(op, (Branch, Loop)) for op in ops):
        return False
    alive = _Marker(program, every=True)
    changed = False
    for op in ops:
        changed |= _prune(op, alive)
    return changed


class _Marker:
    """Finds what is live: operations, values, and memory whose content matters.

    With ``every``, all operations are live, and so are the values that they read.
    """

    def __init__(self, program: Program, *, every: bool = False) -> None:
        self.roots = memory_of(program)
        self.ops: set[Op] = set()
        self.values: set[Value] = set()
        self._memory: set[Value] = set()
        self._holders: dict[Op, Op] = {}  # the operation whose block an operation stands in
        self._definitions: dict[Value, Op] = {}
        self._writers: dict[Value, list[Op]] = {}
        self._slots: dict[Value, tuple[Op, int]] = {}  # what a loop carries, a branch returns
        self._work: list[Op | Value] = []
        for block in blocks_of(program.block):
            for op in block.ops:
                self._enter(op)
                if every:
                    self._work.append(op)
        inside = all_inside(program.block) if self._writers else set()
        own = inside - set(program.block.params)
        for op in () if every else _last_stores(program.block, self.roots, own):
            for root in memory(op.writes(), self.roots):
                self._writers[root].remove(op)
        self._read(set(program.block.params))
        self._read(self._writers.keys() - inside)
        self._read(memory(program.block.results, self.roots))
        self._use(program.block.results)
        self._run()

    def _enter(self, op: Op) -> None:
        if op.nests:
            self._enter_blocks(op)
        for v in defined_by(op):
            self._definitions[v] = op
        for root in memory(op.writes(), self.roots):
            self._writers.setdefault(root, []).append(op)
        if must_run(op):
            self._work.append(op)

    def _enter_blocks(self, op: Op) -> None:
        for block in op.blocks():
            self._holders.update(dict.fromkeys(block.ops, op))
        if isinstance(op, Loop):
            for k, (param, output) in enumerate(zip(op.carried, op.outputs, strict=True)):
                self._slots[param] = self._slots[output] = (op, k)
        elif isinstance(op, Branch):
            self._slots.update({v: (op, k) for k, v in enumerate(op.outputs)})

    def _use(self, operand: Operand) -> None:
        self._work.extend(v for v in values_in(operand) if v not in self.values)

    def _read(self, found: set[Value]) -> None:
        for root in found - self._memory:
            self._memory.add(root)
            self._work.extend(self._writers.get(root, ()))

    def _run(self) -> None:
        while self._work:
            item = self._work.pop()
            if isinstance(item, Value):
                self._value(item)
            elif item not in self.ops:
                self._op(item)

    def _value(self, value: Value) -> None:
        if value in self.values:
            return
        self.values.add(value)
        if value in self._definitions:
            self._work.append(self._definitions[value])
        op, k = self._slots.get(value, (None, 0))
        if isinstance(op, Loop):
            self._work.extend((op.carried[k], op.outputs[k]))
            self._use([op.initial[k], op.body.results[k]])
        elif isinstance(op, Branch):
            self._use([op.then.results[k], op.other.results[k]])

    def _op(self, op: Op) -> None:
        self.ops.add(op)
        if op in self._holders:
            self._work.append(self._holders[op])
        if isinstance(op, Loop):
            self._use(op.span)
            if op.test is not None:
                self._use(op.test.results)
            if op.leaves:
                self._use(op.body.results[-1])
        else:
            self._use(op.operands())
            if not isinstance(op, Branch):
                self._read(reads(op, self.roots))


def must_run(op: Op) -> bool:
    """Whether an operation is kept because of what it may raise itself, not in its blocks."""
    if isinstance(op, Loop):
        return op.span is not None and not is_nonzero(op.span[2])
    if isinstance(op, Branch):
        return False
    if isinstance(op, Call):
        return True
    return not op.writes() and risk(op) >= Risk.RAISES  # writers are live if what they write is


def _sweep(block: Block, alive: _Marker) -> bool:
    ops = [op for op in block.ops if op in alive.ops]
    changed = len(ops) != len(block.ops)
    block.ops = ops
    for op in ops:
        changed |= _prune(op, alive)
        for inner in op.blocks():
            changed |= _sweep(inner, alive)
    return changed


def _prune(op: Op, alive: _Marker) -> bool:
    """Remove dead outputs of a branch, and dead carried values of a loop; whether any were."""
    if not isinstance(op, (Branch, Loop)):
        return False
    keep = [v in alive.values for v in op.outputs]
    if all(keep):
        return False
    if isinstance(op, Branch):
        for side in (op.then, op.other):
            side.results = _selected(side.results, keep)
    else:
        heads = op.body.params[: len(op.body.params) - len(keep)]
        op.body.params = [*heads, *_selected(op.carried, keep)]
        op.initial = _selected(op.initial, keep)
        op.body.results = [*_selected(op.body.results[: len(keep)], keep),
                           *op.body.results[len(keep) :]]  # fmt: skip
    op.outputs = tuple(_selected(op.outputs, keep))
    return True


def _selected(items: Sequence[Any], keep: list[bool]) -> list[Any]:
    return [x for x, k in zip(items, keep, strict=True) if k]
