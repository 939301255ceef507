"""The adjoint of a reversible program: its inverse, run with cotangents.

After each statement is undone, the cotangents of what it read receive their part: the derivative
of the statement's expression comes from the rules, by reverse mode of that one expression.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.api.jit import jit
from fwdad.api.transforms import grad
from fwdad.reversible.arguments.kinds import Exact, Kind
from fwdad.reversible.language import nodes
from fwdad.reversible.language.invert import inverted_block, turned
from fwdad.reversible.language.liveness import unread_updates
from fwdad.reversible.language.program import (
    Allocate,
    Block,
    Call,
    Compute,
    Flip,
    Free,
    Instruct,
    Statement,
    Swap,
    Update,
)
from fwdad.reversible.lowering.calls import Callee
from fwdad.reversible.lowering.control import own_variables
from fwdad.reversible.lowering.cotangents import Cotangents
from fwdad.reversible.lowering.expressions import Expressions
from fwdad.reversible.lowering.function_builder import FunctionBuilder
from fwdad.reversible.lowering.writer import Writer


class AdjointWriter:
    """Writes statements backwards, with cotangents.

    ``forwards`` writes what runs in the direction of time, with cotangents of zero for what begins.
    """

    def __init__(
        self,
        builder: FunctionBuilder,
        expressions: Expressions,
        callee: Callee,
        updated_in: Callable[[Block], set[str]],
        *,
        tolerance: float,
    ) -> None:
        self.builder = builder
        self.expressions = expressions
        self.cotangents = Cotangents(builder, expressions)
        self.forwards = Writer(
            builder,
            expressions,
            callee,
            updated_in,
            tolerance=tolerance,
            began=self.cotangents.begin,
        )
        self.checks = self.forwards.checks
        self.updates = self.forwards.updates
        self.calls = self.forwards.calls
        self.control = self.forwards.control
        self.not_undone: set[Statement] = set()  # updates whose results nothing reads again

    def block(self, block: Block) -> None:
        """Write a block backwards."""
        for s in reversed(block):
            self.builder.begin(s)
            self.checks.check_apart(s)
            write = _WRITE_BACK.get(type(s))
            if write is None:
                self.control.statement(turned(s), self.block)
            else:
                write(self, s)

    def update(self, s: Update) -> None:
        """Undo ``place op= value``."""
        undone = s not in self.not_undone
        s = self.updates.whole_numbers(s)
        kind = self.expressions.kind(s.place)
        if isinstance(kind, Exact) and kind.is_log:
            self._multiply(s, kind)
            return
        if undone:
            self.updates.update(turned(s))
        if kind.active:
            bar = self.cotangents.bar(s.place)
            self.cotangents.pull(s.value, nodes.prefix("-", bar) if s.op == "-" else bar, kind)

    def _multiply(self, s: Update, kind: Exact) -> None:
        """Undo a product or quotient of logarithmic numbers; cotangents are those of values."""
        add, factor = self.builder.add, self.expressions.lowered(s.value)
        bar = self.cotangents.bar(s.place)
        weight = self.builder.fresh("weight")
        if s.op == "*":
            self.updates.update(turned(s))
            self.builder.assign(weight, self._weight(s, kind))
            self.cotangents.pull(s.value, weight, kind.plain)
            add(nodes.augment(bar, "*", factor))
        else:
            self.builder.assign(weight, nodes.binary(self._weight(s, kind), "/", factor))
            self.updates.update(turned(s))
            self.cotangents.pull(s.value, nodes.prefix("-", weight), kind.plain)
            add(nodes.augment(bar, "/", factor))

    def _weight(self, s: Update, kind: Exact) -> ast.expr:
        """The cotangent of a logarithmic number, times its value."""
        value = self.expressions.value(s.place, kind)
        return nodes.binary(self.cotangents.bar(s.place), "*", value)

    def swap(self, s: Swap) -> None:
        """Undo ``a, b = b, a``."""
        self.updates.swap_places(s)
        kind = self.expressions.kind(s.a)
        if kind.active:
            bar = self.cotangents.bar
            self.updates.swap(bar(s.a), bar(s.b), kind, kind, s)

    def flip(self, s: Flip) -> None:
        """Undo ``v = -v`` and the like."""
        self.updates.flip_place(s)
        kind = self.expressions.kind(s.place)
        if kind.active:
            self.updates.flip(self.cotangents.bar(s.place), s.op, kind, s)

    def instruct(self, s: Instruct) -> None:
        """Undo an instruction."""
        self.updates.instruct(turned(s))
        ins, bar = s.instruction, self.cotangents.bar
        read = [(a, self.expressions.kind_of_expression(a)) for a in s.args]
        active = [k for k, (_, of) in enumerate(read) if of.active]
        bars = [bar(a) for a, of in read[: ins.updated] if of.active]
        if not active:
            return
        args = [self.expressions.lowered(a) for a, _ in read]
        if ins.adjoint is not None and not s.inverse:
            adjoint = self.builder.bind(ins.adjoint.__name__, ins.adjoint)
            positions = list(range(ins.arity))
        else:
            function = ins.inverse if s.inverse else ins.forward
            pull = _instruction_pull(s, active, read)
            adjoint = self.builder.bind(f"pull_{function.__name__.lstrip('_')}", pull)
            positions = active
        parts: list[ast.expr] = [self.builder.fresh("part") for _ in positions]
        self.builder.assign(ast.Tuple(parts), nodes.call(adjoint, *args, *bars))
        for k, part in zip(positions, parts, strict=True):
            a, of = read[k]
            if not of.active:
                continue
            if k < ins.updated:
                self.builder.assign(nodes.element(bar(a)) if of.is_array else bar(a), part)
            else:
                self.cotangents.pull(a, part, of)

    def allocate(self, s: Allocate) -> None:
        """End what began here, and pull its cotangent back to its first value."""
        kind = self.builder.kinds[s.variable]
        self.updates.end(s)
        if kind.active:
            value = self.expressions.constructed_from(s.value)
            bar = nodes.name(self.cotangents.bars[s.variable.name])
            self.cotangents.pull(value, bar, kind)

    def free(self, s: Free) -> None:
        """Begin what ended here."""
        self.updates.begin(s)
        self.cotangents.begin(s.variable)

    def call(self, s: Call) -> None:
        """Call the adjoint of a reversible function."""
        bar = self.cotangents.bar
        function, updated, values = self.calls.target(s, adjoint=True)
        active = [(a, k) for a, k in values if k.active]
        args = [*(a for a, _ in values), *(bar(a) for a, _ in active)]
        targets = [a for k, (a, of) in enumerate(values) if k in updated and not of.is_array]
        targets += [bar(a) for a, k in active if not k.is_array]
        self.builder.assign_results(targets, nodes.call(function, *args))

    def compute(self, s: Compute) -> None:
        """Undo a block that was undone, what ran inside of it, and the block."""
        if not self.control.is_private(s):
            self.block(inverted_block(s.body))
            self.block(s.inside)
            self.block(s.body)
            return
        # What it computes ends with it: no cotangent comes from its being undone. Nor is anything
        # checked: the forward pass has been.
        with self.builder.unchecked():
            self.forwards.block(s.body)
        self.block(s.inside)
        # It has just been done, and what is not read again is left as it is.
        own = own_variables(s.body)
        self.not_undone |= unread_updates(s.body, own, self.expressions.numeric)
        with self.builder.unchecked():
            self.block(s.body)


_WRITE_BACK: dict[type[Statement], Callable[[AdjointWriter, Any], None]] = {
    Update: lambda w, s: w.update(s),
    Swap: lambda w, s: w.swap(s),
    Flip: lambda w, s: w.flip(s),
    Instruct: lambda w, s: w.instruct(s),
    Allocate: lambda w, s: w.allocate(s),
    Free: lambda w, s: w.free(s),
    Call: lambda w, s: w.call(s),
    Compute: lambda w, s: w.compute(s),
}


def _instruction_pull(s: Instruct, active: list[int], read: list[tuple[ast.expr, Kind]]) -> Any:
    """The adjoint of an instruction by the rules of what it calls."""
    ins = s.instruction
    function = ins.inverse if s.inverse else ins.forward
    count = ins.arity
    updated = [k for k in range(ins.updated) if read[k][1].active]

    def weighted(*args_and_bars: Any) -> Any:
        args, bars = args_and_bars[:count], args_and_bars[count:]
        new = function(*args)
        new = new if ins.updated > 1 else (new,)
        total = 0.0
        for k, bar in zip(updated, bars, strict=True):
            total = total + np.sum(np.real(np.conj(bar) * new[k]))
        return total

    return jit(grad(weighted, argnums=tuple(active)), backend="numpy")
