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
from fwdad.ir.ops import Block, Loop, Op, Operand, Value, is_array
from fwdad.ir.primitives.scatter_add import Target
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import INT, ArrayType, Size, Type, of_any_lengths
from fwdad.transforms.reverse.region import Region, zero_number
from fwdad.transforms.reverse.residuals import Residuals


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

    def __init__(self, writer: Loops, op: Loop) -> None:
        structure = writer.structure
        self.numbers: list[int] = []
        self.arrays: list[int] = []
        self.memory: list[int] = []
        self.threaded: list[int] = []
        for k, p in enumerate(op.carried):
            active = structure.is_active(p) or structure.is_active(op.outputs[k])
            if p in writer.choices.meant:
                continue  # its cotangent is chosen as it is
            if is_array(p) and (structure.is_memory(p) or structure.is_memory(op.outputs[k])):
                if k not in writer.choices.threaded[op]:
                    writer.fail(
                        "an array made in a loop changes places with another that is written"
                    )
                self.memory.extend([k] if active else [])
                self.threaded.append(k)
            elif active:
                (self.arrays if is_array(p) else self.numbers).append(k)

    @property
    def any(self) -> bool:
        """Whether the loop has any cotangents."""
        return bool(self.numbers or self.arrays or self.memory)


class Loops(Residuals):
    """Reverses loops.

    ``in_loop``: the program is a part of another one, in a loop.
    """

    in_loop = False

    def stores_in(self, block: Block) -> list[tuple[Op, Target]]:
        """The operations of the program in a block that write elements, with these elements."""
        raise NotImplementedError

    def reverse(self, region: Region) -> None:
        """Reverse the operations of a region's source block, into the region."""
        raise NotImplementedError

    def _loop(self, op: Loop) -> None:
        carried = Carried(self, op)
        if not carried.any and not self._matters(op):
            return
        region = Region(op.body, Block(), self.region, op)
        counter = Value(INT, op.body.params[0].name if op.span is not None else None)
        if op.span is not None:
            region.resolved[op.body.params[0]] = counter
        initial = self._ends(op, carried)
        pairs = [*self._bar_params(op, carried)]
        params, outputs = [p for p, _ in pairs], [v for _, v in pairs]
        with self.writing(region), self.recorder.own_lengths():
            for v in params:
                self.recorder.measure(v)
            self._begin(op, carried, region, params)
            self.reverse(region)
            results = self._answers(op, carried, region)
        for v, made in region.imports.items():
            params.append(made)
            outputs.append(Value(made.type, made.name))
            known = self.current(v)
            initial.append(self.recorder.operand(zero_number(v) if known is None else known))
            results.append(self.recorder.operand(region.bars[v]))
        region.block.params = [counter, *params]
        region.block.results = results
        region.close()
        if self._is_inside_loop():
            free_sums(region.block)
        span = self._span(op)
        self.recorder.block.ops.append(
            Loop(span, initial, region.block, outputs=tuple(outputs), location=op.location)
        )
        for v in outputs:
            self.recorder.measure(v)
        self._end(op, carried, region, iter(Symbol(v, self.recorder) for v in outputs))

    def _ends(self, op: Loop, carried: Carried) -> list[Operand]:
        """What the reverse pass starts with: the cotangents of the loop's outputs."""
        made: list[Operand] = []
        for k in carried.numbers:
            bar = self.take(op.outputs[k])
            made.append(self.recorder.operand(zero_number(op.outputs[k]) if bar is None else bar))
        for k in carried.arrays:
            bar, v = self.take(op.outputs[k]), op.outputs[k]
            made.append(self.recorder.operand(self.zeros(v) if bar is None else self.whole(v, bar)))
        made.extend(self.memory_of(op.outputs[k]).value for k in carried.memory)
        made.extend(op.outputs[k] for k in carried.threaded)
        return made

    def _bar_params(self, op: Loop, carried: Carried) -> Iterator[tuple[Value, Value]]:
        """For each carried cotangent and array, a value for the start and the end of the loop."""
        bars = (*carried.numbers, *carried.arrays, *carried.memory)
        made = [(k, self.bar_value(op.outputs[k])) for k in bars]
        for k, v in (*made, *((k, op.outputs[k]) for k in carried.threaded)):
            ends, starts = self._at_end(op, k, v.type), self._at_start(op, k, v.type)
            yield Value(ends, v.name), Value(starts, v.name)

    def _at_end(self, op: Loop, k: int, t: Type) -> Type:
        """A type with the lengths of an iteration's result."""
        r = op.body.results[k]
        if not isinstance(t, ArrayType) or not isinstance(r, Value):
            return t
        lengths = self.recorder.resolved(r.type).shape
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
                self.add(r, bar, alike=True)
        for k in carried.memory:
            self.become(op.body.results[k], Symbol(next(given), self.recorder))
        for k in carried.threaded:
            region.resolved[op.body.results[k]] = next(given)

    def _answers(self, op: Loop, carried: Carried, region: Region) -> list[Operand]:
        """The cotangents of the values with which an iteration begins."""
        made: list[Operand] = []
        for k in carried.numbers:
            known = region.bars.pop(op.carried[k], None)
            made.append(
                self.recorder.operand(zero_number(op.carried[k]) if known is None else known)
            )
        start = len(region.block.ops)
        for k in carried.arrays:
            known, p = region.bars.pop(op.carried[k], None), op.carried[k]
            written_out = self.zeros(p) if known is None else self.whole(p, known)
            made.append(self.recorder.operand(written_out))
        made.extend(self.memory_of(op.carried[k]).value for k in carried.memory)
        for k in carried.threaded:
            p = op.carried[k]
            made.append(region.resolved.get(p) or self.keep(p, region))
        self.settle(region, start, -1, tuple(made))
        return made

    def _end(self, op: Loop, carried: Carried, region: Region, found: Iterator[Symbol]) -> None:
        """Add the cotangents of the loop's initial values."""
        values = [next(found) for _ in (*carried.numbers, *carried.arrays)]
        memory = [next(found) for _ in carried.memory]
        arrays = [next(found) for _ in carried.threaded]
        for v in region.imports:
            self.region.bars[v] = next(found)
        # what the loop begins with may be a number that it also reads from outside
        for k, bar in zip((*carried.numbers, *carried.arrays), values, strict=True):
            if isinstance(op.initial[k], Value):
                self.add(op.initial[k], bar, alike=True)
        for k, bar in zip(carried.memory, memory, strict=True):
            self.become(op.initial[k], bar)
        for k, array in zip(carried.threaded, arrays, strict=True):
            self._put_back(op, k, array)

    def _put_back(self, op: Loop, k: int, found: Symbol) -> None:
        """Restore into a loop's initial array if each iteration has another array."""
        first = op.initial[k]
        if op.body.results[k] in op.carried or not isinstance(first, Value):
            return
        roots = self.structure.roots(first)
        for restored, target in self.stores_in(op.body):
            if self.is_restored(restored) and self.structure.roots(target.array) & roots:
                self.recorder.store(Symbol(first, self.recorder), Ellipsis, found)
                return

    def _is_inside_loop(self) -> bool:
        """Whether the present loop is inside another one, not counting calls, which run once."""
        region: Region | None = self.region
        while region is not None:
            if isinstance(region.owner, Loop) and not region.owner.sealed:
                return True
            region = region.parent
        return self.in_loop

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
        return self.recorder.apply_typed(f, (self.symbols(a), self.symbols(b)), INT).value

    # -- of use to branches, too

    def bar_value(self, v: Value) -> Value:
        """A value for a cotangent."""
        return Value(self.bar_type(v), f"{v.name}_bar" if v.name else None)

    def become(self, v: Value, bar: Symbol) -> None:
        """Make an array the cotangent of another one."""
        if self.structure.is_memory(v):
            self.refs[v] = bar
        else:
            self.add(v, bar, alike=True)

    def _matters(self, op: Any) -> bool:
        """Whether a branch or loop stores into memory, so that its stores must be reversed."""
        return any(
            self.structure.roots(v) & self.structure.written
            for block in op.blocks()
            for inner in _walk(block)
            for v in inner.writes()
        )


def _walk(block: Block) -> Iterator[Any]:
    for op in block.ops:
        yield op
        for inner in op.blocks():
            yield from _walk(inner)
