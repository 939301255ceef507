"""The adjoint of a reversible program: its inverse, run with cotangents.

After each statement is undone, the cotangents of what it read receive their part: the derivative
of the statement's expression comes from the rules, by reverse mode of that one expression.
"""

from __future__ import annotations

import ast
import weakref
from typing import Any

import numpy as np

from fwdad.api.jit import jit
from fwdad.api.transforms import grad
from fwdad.reversible import exact
from fwdad.reversible.control import own_variables
from fwdad.reversible.invert import OPPOSITE, inverted_block
from fwdad.reversible.kinds import Exact, Kind, place_kind
from fwdad.reversible.liveness import unread_updates
from fwdad.reversible.places import renamed_root, text, without_attributes
from fwdad.reversible.program import (
    Allocate,
    Block,
    Call,
    Compute,
    Define,
    Flip,
    For,
    Free,
    If,
    Instruct,
    Require,
    Statement,
    Swap,
    Unchecked,
    Update,
    Variable,
    While,
    root_of,
)
from fwdad.reversible.source import Writer

SAMPLES: weakref.WeakKeyDictionary[Any, tuple[tuple[Any, ...], bool]] = weakref.WeakKeyDictionary()
"""For the pull of an expression: arguments to trace it with, and whether it returns one value."""


class AdjointWriter(Writer):
    """Writes statements backwards, with cotangents."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.bars: dict[str, str] = {}
        for p in self.program.params:
            if self.kinds[p].active:
                self.bars[p] = self.names.fresh(f"{p}_bar")
        self.forward_with_bars = False
        self.left: set[Statement] = set()
        self.helpers: list[str] = []

    # -- cotangents

    def bar(self, place: ast.expr) -> str:
        """The cotangent's place."""
        return text(renamed_root(place, self.bars[root_of(place)]))

    def zero(self, variable: Variable) -> None:
        """A cotangent of zero for a new variable."""
        kind = self.kinds[variable]
        if not kind.active:
            return
        name = self.bars.setdefault(variable.name, "") or self.names.fresh(f"{variable.name}_bar")
        self.bars[variable.name] = name
        zero = "0j" if kind.is_complex else "0.0"
        value = f"{self.np}.zeros_like({variable.name})" if kind.is_array else zero
        self.line(f"{name} = {value}")

    def pulled(self, value: ast.expr, bar: str, kind: Kind) -> None:
        """Add to the cotangents of what an expression reads."""
        whole = without_attributes(value)[0] is value
        if isinstance(value, (ast.Name, ast.Subscript)) and whole and root_of(value) in self.bars:
            of = place_kind(value, self.env, self.kind_of_expression)  # None if it is gathered
            # a number itself; of arrays one may have been broadcast
            if of is not None and exact.same_space(of, kind) and not kind.is_array:
                sign, rest = ("-", bar[1:]) if bar.startswith("-") else ("+", bar)
                self.line(f"{self.bar(value)} {sign}= {rest}")
                return
        read, shapes = self.parts(value)
        active = [k for k, (_, of) in enumerate(read) if of.active]
        if not active:
            return
        name, args = self.pull_of(value, read, shapes, active, kind)
        call = f"{name}({', '.join([bar, *args])})"
        places = [self.bar(read[k][0]) for k in active]
        if len(places) == 1:
            self.line(f"{places[0]} += {call}")
            return
        parts = [self.names.fresh("part") for _ in places]
        self.line(f"{', '.join(parts)} = {call}")
        for place, part in zip(places, parts, strict=True):
            self.line(f"{place} += {part}")

    def pull_of(
        self, value: ast.expr, read: Any, shapes: Any, active: list[int], kind: Kind
    ) -> tuple[str, list[str]]:
        """A function that pulls a cotangent back through an expression, and its other arguments."""
        complex_ = kind.is_complex or any(of.is_complex for _, of in read)
        product = "{np}.real({np}.conj(w) * ({{}}))" if complex_ else "w * ({{}})"
        if kind.is_array:
            product = f"{{np}}.sum({product})"
        name, args = self.as_function(
            "weighted", value, read, shapes, before="w", wrap=product.format(np=self.np)
        )
        argnums: Any = tuple(k + 1 for k in active)
        if len(active) == 1:
            argnums = argnums[0]
        pull = self.names.fresh(name.replace("weighted", "pull"))
        made = jit(grad(self.namespace[name], argnums=argnums), backend="numpy")
        SAMPLES[made] = (kind.sample(), *(of.sample() for _, of in read)), isinstance(argnums, int)
        self.namespace[pull] = made
        self.helpers.append(f"{pull} = jit(grad({name}, argnums={argnums}))\n")
        return pull, args

    def helper(self, name: str, code: str) -> None:
        """Keep the source of a weighted expression, to be shown."""
        if name.startswith("weighted"):
            self.helpers.append(code)

    # -- statements, from the last to the first

    def block_back(self, block: Block) -> None:
        """Write a block backwards."""
        for s in reversed(block):
            self.back(s)

    def back(self, s: Statement) -> None:
        """Write a statement backwards."""
        self.comment(s)
        self.check_apart(s)
        getattr(self, f"_back_{type(s).__name__.lower()}")(s)

    def _back_update(self, s: Update) -> None:
        left = s in self.left
        s = self.whole_numbers(s)
        kind = self.kind(s.place)
        if isinstance(kind, Exact) and kind.is_log:
            exact.back_multiply(self, s, s.op, kind)
            return
        if not left:
            self.update(s, OPPOSITE[s.op])
        if kind.active:
            sign = "-" if s.op == "-" else ""
            self.pulled(s.value, sign + self.bar(s.place), kind)

    def _back_swap(self, s: Swap) -> None:
        kind = self.kind(s.a)
        self.swap(text(s.a), text(s.b), kind, self.kind(s.b), s)
        if kind.active:
            self.swap(self.bar(s.a), self.bar(s.b), kind, kind, s)

    def _back_flip(self, s: Flip) -> None:
        kind = self.kind(s.place)
        self.flip(text(s.place), s.op, kind, s)
        if kind.active:
            self.flip(self.bar(s.place), s.op, kind, s)

    def _back_instruct(self, s: Instruct) -> None:
        self.instruct(s, not s.inverse)
        ins = s.instruction
        read = [(a, self.kind_of_expression(a)) for a in s.args]
        active = [k for k, (_, of) in enumerate(read) if of.active]
        bars = [self.bar(a) for a, of in read[: ins.updated] if of.active]
        if not active:
            return
        args = [self.code(a) for a, _ in read]
        if ins.adjoint is not None and not s.inverse:
            name = self.given(ins.adjoint.__name__, ins.adjoint)
            positions = list(range(ins.arity))
        else:
            name = self.instruction_pull(ins, s.inverse, active, read)
            positions = active
        parts = [self.names.fresh("part") for _ in positions]
        call = f"{name}({', '.join([*args, *bars])})"
        self.line(f"{', '.join(parts)}{',' if len(parts) == 1 else ''} = {call}")
        for k, part in zip(positions, parts, strict=True):
            a, of = read[k]
            if not of.active:
                continue
            if k < ins.updated:
                self.line(f"{self.bar(a)}{'[...]' if of.is_array else ''} = {part}")
            else:
                self.pulled(a, part, of)

    def instruction_pull(self, ins: Any, inverse: bool, active: list[int], read: Any) -> str:
        """The adjoint of an instruction by the rules of what it calls."""
        function = ins.inverse if inverse else ins.forward
        count = ins.arity
        updated = [k for k in range(ins.updated) if read[k][1].active]

        def weighted(*given: Any) -> Any:
            args, bars = given[:count], given[count:]
            new = function(*args)
            new = new if ins.updated > 1 else (new,)
            total = 0.0
            for k, bar in zip(updated, bars, strict=True):
                total = total + np.sum(np.real(np.conj(bar) * new[k]))
            return total

        pull = jit(grad(weighted, argnums=tuple(active)), backend="numpy")
        return self.given(f"pull_{function.__name__.lstrip('_')}", pull)

    def _write_allocate(self, s: Allocate) -> None:
        super()._write_allocate(s)
        if self.forward_with_bars:
            self.zero(s.variable)

    def _back_allocate(self, s: Allocate) -> None:
        kind = self.kinds[s.variable]
        value_kind = kind
        self.end(s)
        if kind.active:
            self.pulled(exact.inner(self, s.value), self.bars[s.variable.name], value_kind)

    def _back_free(self, s: Free) -> None:
        self.begin(s)
        self.zero(s.variable)

    def _back_define(self, s: Define) -> None:
        self.define(s)
        with self.keeping(s.variable.name, s.value):
            self.block_back(s.body)

    def _back_if(self, s: If) -> None:
        self._backwards(lambda: self.branch(s, s.post, s.pre, s.body, s.orelse))

    def _back_while(self, s: While) -> None:
        self._backwards(lambda: self.loop(s, s.post, s.pre, s.body))

    def _back_for(self, s: For) -> None:
        self._backwards(lambda: self.repeat(s, s.body, backwards=not s.backwards))

    def _backwards(self, write: Any) -> None:
        """Write something whose blocks go backwards."""
        forwards = self.block
        self.block = self.block_back  # type: ignore[method-assign]
        write()
        self.block = forwards  # type: ignore[method-assign]

    def _back_call(self, s: Call) -> None:
        kinds = [self.argument_kind(a, s) for a in s.args]
        name, updated = self.called(s, kinds, s.inverse, self, adjoint=True)
        values = self.values(s, kinds)
        bars = [(a, k) for a, k in values if k.active]
        self.check_fixed(s, values, updated)
        given = [*(text(a) for a, _ in values), *(self.bar(a) for a, _ in bars)]
        targets = [text(a) for k, (a, of) in enumerate(values) if k in updated and not of.is_array]
        targets += [self.bar(a) for a, k in bars if not k.is_array]
        call = f"{name}({', '.join(given)})"
        self.line(f"{', '.join(targets)} = {call}" if targets else call)

    def _back_compute(self, s: Compute) -> None:
        forwards, checked = self.block, self.checked
        private = self.is_private(s)
        if private:
            # what it computes ends with it: no cotangent comes from its being undone
            before, self.forward_with_bars = self.forward_with_bars, True
            self.checked = False  # the forward pass has been checked before
            self._forwards(s.body)
            self.forward_with_bars, self.checked = before, checked
        else:
            self.block_back(inverted_block(s.body))
        self.block_back(s.inside)
        if private:  # it has just been done, and what nobody reads again is left as it is
            self.checked = False
            self.left |= unread_updates(s.body, own_variables(s.body), self.numeric)
        self.block_back(s.body)
        self.checked = checked
        self.block = forwards  # type: ignore[method-assign]

    def _forwards(self, block: Block) -> None:
        kept = self.block
        self.block = super().block  # type: ignore[method-assign]
        super().block(block)
        self.block = kept  # type: ignore[method-assign]

    def _back_require(self, s: Require) -> None:
        self._write_require(s)

    def _back_unchecked(self, s: Unchecked) -> None:
        before, self.checked = self.checked, False
        self.block_back(s.body)
        self.checked = before
