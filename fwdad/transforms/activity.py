"""Activity analysis: which values may depend on what is differentiated with respect to.

A forward dataflow analysis (Hascoët and Pascual 2013, doi:10.1145/2450153.2450158): a value is
active if an operation computes it, differentiably, from an active one; memory is active once an
active value may have been written into it. Both grow, through loops and branches, until nothing
changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fwdad.ir.analysis.alias import Roots, memory_of
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
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
from fwdad.ops import record_of
from fwdad.rules.core.registry import find_rule
from fwdad.transforms.forward.rule_table import ruled_function


class Activity:
    """The active values and memory of a block, with respect to ``wrt``.

    ``memory`` is what :func:`~fwdad.ir.analysis.alias.memory_of` returns for the block; ``called``
    is known of the programs that it calls.
    """

    def __init__(
        self, block: Block, wrt: Iterable[Value], memory: Roots, called: Called | None = None
    ) -> None:
        self.memory = memory
        self.called = Called() if called is None else called
        self._values: set[Value] = set(wrt)
        self._active_memory = {root for v in self._values for root in self._memory_of(v)}
        while self._spread(block):
            pass

    def is_active(self, v: Any) -> bool:
        """Whether a value may depend on what is differentiated with respect to."""
        if not isinstance(v, Value) or v.type.dtype.kind not in "fc":
            return False
        return v in self._values or not self._active_memory.isdisjoint(self._memory_of(v))

    def any_active(self, operand: Operand) -> bool:
        """Whether there is an active value in a structure of operands."""
        return any(self.is_active(v) for v in values_in(operand))

    def _memory_of(self, v: Value) -> set[Value]:
        return self.memory.get(v, {v}) if is_array(v) else set()

    def _mark(self, outputs: Iterable[Value]) -> bool:
        new = [v for v in outputs if v.type.dtype.kind in "fc" and not self.is_active(v)]
        self._values.update(new)
        return bool(new)

    def _mark_memory(self, v: Value) -> bool:
        new = self._memory_of(v) - self._active_memory if v.type.dtype.kind in "fc" else set()
        self._active_memory |= new
        return bool(new)

    def _spread(self, block: Block) -> bool:
        """Go once through a block; return whether anything became active."""
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
        written = op.writes()
        if isinstance(op, Call):
            active = tuple(self.is_active(a) for a in op.args)
            into = self.called.active_parameters(op.program, active)
            written = [a for a, on in zip(op.args, into, strict=True) if on and a in written]
        changed = [self._mark(op.outputs), *(self._mark_memory(v) for v in written)]
        return any(changed)

    def _spread_control(self, op: Branch | Loop) -> bool:
        if isinstance(op, Branch):
            inside = [self._spread(op.then), self._spread(op.other)]
            sources = zip(op.then.results, op.other.results, strict=True)
            slots: list[list[Value]] = [[v] for v in op.outputs]
        else:
            inside = [self._spread(block) for block in op.blocks()]
            sources = zip(op.initial, op.body.results, strict=False)
            slots = [list(pair) for pair in zip(op.carried, op.outputs, strict=True)]
        changed = [
            self._mark(slot)
            for slot, pair in zip(slots, sources, strict=True)
            if self.any_active(list(pair))
        ]
        return any([*inside, *changed])


class Called:
    """Which parameters of called programs are active when these return, also by recursion."""

    def __init__(self) -> None:
        self._known: dict[tuple[Program, tuple[bool, ...]], tuple[bool, ...]] = {}

    def active_parameters(self, program: Program, active: tuple[bool, ...]) -> tuple[bool, ...]:
        """Those that are ``active``, and those into which the program stores active values.

        The least fixed point: at first, the calls of a program that calls itself store nothing.
        """
        key = program, active
        if key not in self._known:
            self._known[key] = active
            before = None
            while before != self._known:
                before = dict(self._known)
                for each in before:
                    self._known[each] = self._after(*each)
        return self._known[key]

    def _after(self, program: Program, active: tuple[bool, ...]) -> tuple[bool, ...]:
        params = program.block.params
        wrt = [p for p, is_on in zip(params, active, strict=True) if is_on]
        activity = Activity(program.block, wrt, memory_of(program), self)
        written = zip(params, active, program.written, strict=True)
        return tuple(is_on or (w and activity.is_active(p)) for p, is_on, w in written)


def is_differentiable(op: Apply) -> bool:
    """Whether the results of a call depend on its arguments' values, and smoothly."""
    function = ruled_function(op)
    if record_of(op.function).constant or record_of(function).constant:
        return False
    if record_of(function).constant_of_reals and op.outputs[0].type.dtype.kind != "c":
        return False
    rule = find_rule(function)
    return rule is None or rule.kind != "constant"
