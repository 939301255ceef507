"""The structure of a program before it is reversed: definitions, memory, and activity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fwdad.errors import UntraceableError
from fwdad.ir.analysis.alias import Roots, memory_of
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Load,
    Loop,
    Missing,
    Op,
    Operand,
    Program,
    Store,
    Update,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.ir.primitives.stacks import pop, top
from fwdad.ir.primitives.undef import missing_on_some_way
from fwdad.ir.rewrite import defined_by
from fwdad.ops import record_of
from fwdad.rules.core.registry import find_rule
from fwdad.transforms.forward.rule_table import ruled_function
from fwdad.transforms.integer_derivatives import check_derivatives_fit


class NotReversibleError(UntraceableError):
    """A program on a tape that reverse mode cannot follow, so that its run is recorded instead."""


class Structure:
    """Where the values of a block are defined, which memory they are, and which are active.

    ``wrt`` are the parameters that carry derivatives; ``source_of`` maps the operations of the
    block to those that they were cloned from; ``roots`` is the memory of parameters that may alias;
    ``natural`` are numbers from outside that are not negative.
    """

    def __init__(
        self,
        top: Block,
        wrt: Iterable[Value],
        source_of: dict[Op, Op],
        roots: Roots | None = None,
        natural: Iterable[Value] = (),
    ) -> None:
        self.top = top
        self.source_of = source_of
        self.natural = set(natural)
        self.memory = memory_of(Program("", top), roots)
        self.home: dict[Value, Block] = {}
        self.definition: dict[Value, Op] = {}
        self.position: dict[Op, int] = {}
        self.block_of: dict[Op, Block] = {}
        self.holder: dict[int, Op] = {}  # by the id of a block: the operation that it is in
        self.written: set[Value] = set()
        self.missing = missing_on_some_way(Program("", top))
        self._enter(top)
        self._in_place = self._with_companions()
        self._active: set[Value] = set(wrt)
        self._active_memory = {root for v in wrt for root in self.roots(v)}
        while self._spread(top):
            pass
        for op in walk(top):
            check_derivatives_fit(op, self.is_active)

    # -- places

    def _enter(self, block: Block) -> None:
        for p in block.params:
            self.home[p] = block
        for k, op in enumerate(block.ops):
            self.position[op] = k
            self.block_of[op] = block
            for v in defined_by(op):
                self.home[v] = block
                self.definition[v] = op
            for v in op.writes():
                self.written |= self.roots(v)
            for inner in op.blocks():
                self.holder[id(inner)] = op
                self._enter(inner)

    def chain(self, block: Block) -> Iterator[tuple[Block, Op | None]]:
        """A block and those around it, each with the operation that it is in."""
        while True:
            holder = self.holder.get(id(block))
            yield block, holder
            if holder is None:
                return
            block = self.block_of[holder]

    def roots(self, v: Value) -> set[Value]:
        """The memory that an array may be."""
        return self.memory.get(v, {v}) if is_array(v) else set()

    def is_memory(self, v: Value) -> bool:
        """Whether the program writes an array, or the reverse pass writes its cotangent in place.

        The latter if a phi may be this array or one that is written: the cotangent of the phi is
        memory, whichever array it is.
        """
        return bool(self.roots(v) & self._in_place)

    def writes_inside(self, op: Op) -> bool:
        """Whether a branch or loop stores into memory, so that its stores must be reversed."""
        inside = (inner for block in op.blocks() for inner in walk(block))
        return any(self.roots(v) & self.written for inner in inside for v in inner.writes())

    def _with_companions(self) -> set[Value]:
        """The memory that is written, and all memory that a phi may be instead of it."""
        groups = [roots for roots in self.memory.values() if len(roots) > 1]
        found = set(self.written)
        while added := [roots for roots in groups if roots & found and not roots <= found]:
            found.update(*added)
        return found

    # -- activity

    def is_active(self, v: Any) -> bool:
        """Whether a value may depend on what is differentiated with respect to."""
        if not isinstance(v, Value) or v.type.dtype.kind not in "fc":
            return False
        return v in self._active or bool(self.roots(v) & self._active_memory)

    def any_active(self, operand: Operand) -> bool:
        """Whether there is an active value in a structure of operands."""
        return any(self.is_active(v) for v in values_in(operand))

    def _mark(self, outputs: Iterable[Value]) -> bool:
        found = [v for v in outputs if v.type.dtype.kind in "fc" and not self.is_active(v)]
        self._active.update(found)
        return bool(found)

    def _mark_memory(self, v: Value) -> bool:
        found = self.roots(v) - self._active_memory if v.type.dtype.kind in "fc" else set()
        self._active_memory |= found
        return bool(found)

    def _spread(self, block: Block) -> bool:
        changed = [self._spread_op(op) for op in block.ops]
        return any(changed)

    def _spread_op(self, op: Op) -> bool:
        if isinstance(op, (Branch, Loop)):
            return self._spread_control(op)
        if isinstance(op, Load):
            return self._mark(op.outputs) if self.is_active(op.array) else False
        if isinstance(op, Apply) and not is_differentiable(op):
            return False
        sources = op.value if isinstance(op, (Store, Update)) else op.operands()
        if not self.any_active(sources):
            return False
        changed = [self._mark(op.outputs), *(self._mark_memory(v) for v in op.writes())]
        return any(changed)

    def _spread_control(self, op: Branch | Loop) -> bool:
        if isinstance(op, Branch):
            inside = [self._spread(op.then), self._spread(op.other)]
            sources = zip(op.then.results, op.other.results, strict=True)
            slots: list[list[Value]] = [[v] for v in op.outputs]
        else:
            inside = [self._spread(op.body)]
            sources = zip(op.initial, op.body.results, strict=False)
            slots = [list(pair) for pair in zip(op.carried, op.outputs, strict=True)]
        changed = [
            self._mark(slot)
            for slot, pair in zip(slots, sources, strict=True)
            if self.any_active(list(pair))
        ]
        return any([*inside, *changed])


def is_differentiable(op: Apply) -> bool:
    """Whether the results of a call depend on its arguments' values, and smoothly."""
    function = ruled_function(op)
    if record_of(op.function).constant or record_of(function).constant:
        return False
    rule = find_rule(function)
    return rule is None or rule.kind != "constant"


def may_be_missing(v: Operand, definition: Mapping[Value, Op]) -> bool:
    """Whether a side of a branch, or a loop that does not run, leaves a value undefined."""
    op = definition.get(v) if isinstance(v, Value) else None
    if isinstance(op, Apply) and op.function in (pop, top):
        # what is on a given stack is unknown; what a path leaves undefined is pushed as nothing
        return is_array(v) or op.args[0] not in definition
    if not isinstance(op, (Branch, Loop)) or v not in op.outputs:
        return isinstance(v, Missing)
    ways = [op.then.results, op.other.results] if isinstance(op, Branch) else [op.initial]
    if isinstance(op, Loop):
        ways.append(op.body.results)
    k = op.outputs.index(v)
    return any(may_be_missing(way[k], definition) for way in ways)
