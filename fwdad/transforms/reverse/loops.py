"""Reversal of loops as loops: trip counts, carried cotangents, and the arrays of each iteration.

A loop of the program carries numbers and arrays from iteration to iteration; its reverse carries
their cotangents. An array that the program writes may be another one in each iteration (two arrays
that are swapped): then the reverse carries the array itself, beside the memory of its cotangent.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from fwdad.ir.analysis.reassociation import free_sums
from fwdad.ir.ops import Block, Loop, Operand, Value, is_array
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import INT, ArrayType, Size, Type, of_any_lengths
from fwdad.transforms.reverse.cotangents import Cotangents
from fwdad.transforms.reverse.overwriting import Overwriting
from fwdad.transforms.reverse.region import Blocks, Region
from fwdad.transforms.reverse.residuals import Residuals
from fwdad.transforms.reverse.restores import Restores
from fwdad.transforms.reverse.spaces import Spaces
from fwdad.transforms.reverse.sweep import Sweep
from fwdad.transforms.reverse.view_cotangents import ViewCotangents


class Carried:
    """The positions of what a loop carries, by the form of its cotangent.

    Attributes
    ----------
    numbers : list of int
        Active numbers, whose cotangents are numbers.
    arrays : list of int
        Active arrays that are never written, whose cotangents are arrays.
    memory : list of int
        Active arrays that are written, whose cotangents are memory.
    threaded : list of int
        Arrays that are written, carried themselves.
    """

    def __init__(self, sweep: Sweep, op: Loop) -> None:
        structure, choices = sweep.structure, sweep.choices
        self.numbers: list[int] = []
        self.arrays: list[int] = []
        self.memory: list[int] = []
        self.threaded: list[int] = []
        for k, p in enumerate(op.carried):
            active = structure.activity.is_active(p) or structure.activity.is_active(op.outputs[k])
            if p in choices.meant:
                continue  # its cotangent is chosen as it is
            if is_array(p) and (structure.is_memory(p) or structure.is_memory(op.outputs[k])):
                if k not in choices.threaded[op]:
                    what = "an array made in a loop changes places with another that is written"
                    sweep.fail_names(p, what)
                self.memory.extend([k] if active else [])
                self.threaded.append(k)
            elif active:
                (self.arrays if is_array(p) else self.numbers).append(k)

    @property
    def any(self) -> bool:
        """Whether the loop has any cotangents."""
        return bool(self.numbers or self.arrays or self.memory)


class Loops:
    """Reverses loops."""

    def __init__(
        self,
        sweep: Sweep,
        spaces: Spaces,
        view_cotangents: ViewCotangents,
        overwriting: Overwriting,
        restores: Restores,
        cotangents: Cotangents,
        residuals: Residuals,
        blocks: Blocks,
    ) -> None:
        self.sweep = sweep
        self.recorder = sweep.recorder
        self.structure = sweep.structure
        self.spaces = spaces
        self.view_cotangents = view_cotangents
        self.overwriting = overwriting
        self.restores = restores
        self.cotangents = cotangents
        self.residuals = residuals
        self.blocks = blocks

    def reverse(self, op: Loop) -> None:
        """Reverse a loop as a loop."""
        carried = Carried(self.sweep, op)
        if not carried.any and not self.structure.writes_inside(op):
            return
        region = Region(op.body, Block(), self.sweep.region, op)
        counter = Value(INT, op.body.params[0].name if op.span is not None else None)
        if op.span is not None:
            region.resolved[op.body.params[0]] = counter
        initial = self._ends(op, carried)
        pairs = [*self._bar_params(op, carried)]
        params, outputs = [p for p, _ in pairs], [v for _, v in pairs]
        with self.sweep.writing(region), self.recorder.lengths.own_lengths():
            for v in params:
                self.recorder.lengths.measure(v)
            self._begin(op, carried, region, params)
            self.blocks.reverse(region)
            results = self._results(op, carried, region)
        for v, param in region.imports.items():
            params.append(param)
            outputs.append(Value(param.type, param.name))
            known = self.cotangents.current(v)
            initial.append(self.recorder.operand(self.spaces.whole(v, known)))
            results.append(self.recorder.operand(region.bars[v]))
        region.block.params = [counter, *params]
        region.block.results = results
        if self.sweep.is_inside_loop():
            free_sums(region.block)
        span = self._span(op)
        self.recorder.block.ops.append(
            Loop(span, initial, region.block, outputs=tuple(outputs), location=op.location)
        )
        for v in outputs:
            self.recorder.lengths.measure(v)
        self._end(op, carried, region, iter(Symbol(v, self.recorder) for v in outputs))

    def _ends(self, op: Loop, carried: Carried) -> list[Operand]:
        """What the reverse pass starts with: the cotangents of the loop's outputs."""
        ends: list[Operand] = []
        for k in (*carried.numbers, *carried.arrays):
            v = op.outputs[k]
            bar = self.spaces.whole(v, self.cotangents.take(v))
            ends.append(self.recorder.operand(bar))
        ends.extend(self.view_cotangents.memory_of(op.outputs[k]).value for k in carried.memory)
        ends.extend(op.outputs[k] for k in carried.threaded)
        return ends

    def _bar_params(self, op: Loop, carried: Carried) -> Iterator[tuple[Value, Value]]:
        """For each carried cotangent and array, a value for the start and the end of the loop."""
        bars = (*carried.numbers, *carried.arrays, *carried.memory)
        bar_values = [(k, self.spaces.bar_value(op.outputs[k])) for k in bars]
        for k, v in (*bar_values, *((k, op.outputs[k]) for k in carried.threaded)):
            ends, starts = self._at_end(op, k, v.type), self._at_start(op, k, v.type)
            yield Value(ends, v.name), Value(starts, v.name)

    def _at_end(self, op: Loop, k: int, t: Type) -> Type:
        """A type with the lengths of an iteration's result."""
        r = op.body.results[k]
        if not isinstance(t, ArrayType) or not isinstance(r, Value):
            return t
        lengths = self.recorder.lengths.resolved(r.type).shape
        pairs = zip(lengths, t.shape, strict=True)
        return ArrayType(
            t.dtype, tuple(n if isinstance(n, Size) or n == m else Size() for n, m in pairs)
        )

    def _at_start(self, op: Loop, k: int, t: Type) -> Type:
        """A type with the lengths of the loop's initial value, which are unknown if they change."""
        r = op.body.results[k]
        changes = not isinstance(r, Value) or r.type.shape != op.carried[k].type.shape
        return of_any_lengths(t) if changes and isinstance(t, ArrayType) else t

    def _begin(self, op: Loop, carried: Carried, region: Region, params: list[Value]) -> None:
        """Pass the cotangents of an iteration's results on to the values that these are."""
        given = iter(params)
        for k in (*carried.numbers, *carried.arrays):
            bar, r = Symbol(next(given), self.recorder), op.body.results[k]
            if isinstance(r, Value):
                self.cotangents.add(r, bar, alike=True)
        for k in carried.memory:
            self.cotangents.become(op.body.results[k], Symbol(next(given), self.recorder))
        for k in carried.threaded:
            region.resolved[op.body.results[k]] = next(given)

    def _results(self, op: Loop, carried: Carried, region: Region) -> list[Operand]:
        """The cotangents of the values with which an iteration begins."""
        results: list[Operand] = []
        start = len(region.block.ops)
        for k in (*carried.numbers, *carried.arrays):
            p = op.carried[k]
            results.append(self.recorder.operand(self.spaces.whole(p, region.bars.pop(p, None))))
        results.extend(self.view_cotangents.memory_of(op.carried[k]).value for k in carried.memory)
        results.extend(op.carried[k] for k in carried.threaded)
        self.residuals.end_segment(region, start, -1, tuple(results))
        return results

    def _end(self, op: Loop, carried: Carried, region: Region, outputs: Iterator[Symbol]) -> None:
        """Add the cotangents of the loop's initial values."""
        values = [next(outputs) for _ in (*carried.numbers, *carried.arrays)]
        memory = [next(outputs) for _ in carried.memory]
        arrays = [next(outputs) for _ in carried.threaded]
        for v in region.imports:
            self.sweep.region.bars[v] = next(outputs)
        # what the loop begins with may be a number that it also reads from outside
        for k, bar in zip((*carried.numbers, *carried.arrays), values, strict=True):
            if isinstance(op.initial[k], Value):
                self.cotangents.add(op.initial[k], bar, alike=True)
        for k, bar in zip(carried.memory, memory, strict=True):
            self.cotangents.become(op.initial[k], bar)
        for k, array in zip(carried.threaded, arrays, strict=True):
            self._restore_initial(op, k, array)

    def _restore_initial(self, op: Loop, k: int, array: Symbol) -> None:
        """Restore into a loop's initial array if each iteration has another array."""
        first = op.initial[k]
        if op.body.results[k] in op.carried or not isinstance(first, Value):
            return
        structure, roots = self.structure, self.structure.roots(first)
        inside = self.overwriting.stores_in(op.body)
        stores = [s for s, target in inside if structure.roots(target.array) & roots]
        if stores:
            with self.restores.only_for(stores):
                self.recorder.store(Symbol(first, self.recorder), Ellipsis, array)

    # -- how often

    def _span(self, op: Loop) -> tuple[Operand, Operand, Operand]:
        """The range of a loop in reverse."""
        if op.span is None:
            return (0, op.exec_count, 1)
        start, stop, step = op.span
        if not op.leaves and type(step) is int and step in (1, -1):
            last = self._arithmetic(operator.sub, stop, step)
            return (last, self._arithmetic(operator.sub, start, step), -step)
        before = self._arithmetic(operator.sub, start, step)
        steps = self._arithmetic(operator.mul, op.exec_count, step)
        last = self._arithmetic(operator.add, before, steps)
        return (last, before, self._arithmetic(operator.sub, 0, step))

    def _arithmetic(self, f: Any, a: Operand, b: Operand) -> Operand:
        if not isinstance(a, Value) and not isinstance(b, Value):
            return f(a, b)
        return self.recorder.apply_typed(f, self.sweep.symbols((a, b)), INT).value
