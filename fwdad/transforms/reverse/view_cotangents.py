"""The cotangents of memory: for each view in the program, the same view.

Where a view cannot be followed, because it may be a copy, its cotangent has memory of its own that
is added to the base's.
"""

from __future__ import annotations

import operator

from fwdad.ir.analysis.alias import is_rearranged
from fwdad.ir.analysis.layout import Order, Orders, order_of
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Load,
    Loop,
    Missing,
    Operand,
    Program,
    Value,
    is_array,
)
from fwdad.ir.primitives.view_mirrors import give_back, view_or_zeros
from fwdad.ir.symbol import Symbol
from fwdad.ops import Layout, Memory, Record, record_of
from fwdad.transforms.reverse.spaces import Spaces
from fwdad.transforms.reverse.sweep import Sweep


class ViewCotangents:
    """Finds the cotangents of arrays that are memory.

    Attributes
    ----------
    refs : dict
        Cotangents that are known beforehand, or once and for all.
    """

    def __init__(self, sweep: Sweep, spaces: Spaces) -> None:
        self.sweep = sweep
        self.spaces = spaces
        self.recorder = sweep.recorder
        self.structure = sweep.structure
        self.choices = sweep.choices
        self.refs: dict[Value, Symbol] = {}
        self._orders: Orders | None = None

    def is_begun(self, v: Value) -> bool:
        """Whether the cotangent of an array has memory that the open region knows."""
        return v in self.refs or v in self.sweep.region.buffers

    def is_followed(self, v: Value) -> bool:
        """Whether the cotangent of an array that is memory can be a view where the array is."""
        op = self.structure.definition.get(v)
        if v in self.refs or v in self.choices.meant:
            return True
        if isinstance(op, Load) and op.view:
            return self.is_followed(op.array)
        if isinstance(op, Apply) and op.function is view_or_zeros:
            return self.is_followed(op.args[0])
        if isinstance(op, Apply) and self.structure.roots(v) != {v}:
            bases = _bases(op)
            return (
                (_is_followed(record_of(op.function)) or is_rearranged(op))
                and len(op.outputs) == len(bases) == 1
                and order_of(op) in ("C", "F")
                and self.is_followed(bases[0])
            )
        return True

    def memory_of(self, v: Value) -> Symbol:
        """The cotangent of an array that is memory: a view where the array is one."""
        if v in self.refs:
            return self.refs[v]
        if v in self.choices.meant:
            return self._meant(v)
        op = self.structure.definition.get(v)
        if isinstance(op, Load) and op.view:
            base = self.memory_of(op.array)
            return self.recorder.load(base, self.sweep.symbols(op.index))
        if isinstance(op, Apply) and self.structure.roots(v) != {v}:
            return self._mirrored(op)
        if isinstance(op, Branch):
            return self._chosen(op, v)
        home = self.sweep.home_of(v)
        if v not in home.buffers:
            with self.sweep.writing(home):
                home.buffers[v] = self.spaces.zeros(v)
        return home.buffers[v]

    def _meant(self, v: Value) -> Symbol:
        """The cotangent of an array that is a phi, selected by its number."""
        number = self.choices.number[v]
        with self.sweep.writing(self.sweep.home_of(v)):
            (_, first), *others = self.choices.meant[v].items()
            bar = self.memory_of(first).value
            for k, origin in others:
                memory = self.memory_of(origin).value
                is_meant = self.recorder.apply(operator.eq, (self.sweep.symbols(number), k), {})
                sides = (Block(results=[memory]), Block(results=[bar]))
                bar = Value(memory.type, f"{v.name}_bar" if v.name else None)
                self.recorder.emit(Branch(is_meant.value, *sides, outputs=(bar,)))
        self.refs[v] = Symbol(bar, self.recorder)
        return self.refs[v]

    def _chosen(self, op: Branch, v: Value) -> Symbol:
        """The cotangent of an array that a branch selects, selected in the same way."""
        home = self.sweep.home_of(v)
        with self.sweep.writing(home):
            sides = []
            for block in (op.then, op.other):
                r = block.results[op.outputs.index(v)]
                side = Block()
                outer, self.recorder.block = self.recorder.block, side
                inside = isinstance(r, Value) and self.structure.home.get(r) is block
                names = [x for x in block.results if x is not r]
                if inside and (
                    not self._is_made(r, block) or any(self._may_be_one(r, x) for x in names)
                ):
                    self.sweep.op = op
                    self.sweep.fail_names(v, "an array that is written is chosen by a branch")
                chosen = self._known_as(op, block, r) if inside else None
                if chosen is None:
                    own = inside or isinstance(r, Missing)
                    chosen = self.spaces.zeros(v) if own else self.memory_of(r)
                self.recorder.block = outer
                side.results.append(chosen.value)
                sides.append(side)
            bar = self.spaces.bar_value(v)
            self.recorder.block.ops.append(Branch(op.condition, *sides, outputs=(bar,)))
            self.recorder.lengths.measure(bar)
        self.refs[v] = Symbol(bar, self.recorder)
        return self.refs[v]

    def _is_made(self, v: Operand, block: Block) -> bool:
        """Whether an array is made in a block, by a call, a branch or a loop, and is no view."""
        if not isinstance(v, Value) or self.structure.home.get(v) is not block:
            return False
        op = self.structure.definition.get(v)
        if isinstance(op, Branch):
            k = op.outputs.index(v)
            return all(self._is_made(side.results[k], side) for side in op.blocks())
        if isinstance(op, Loop):
            return op.outputs.index(v) in self.choices.threaded[op]
        return self.structure.roots(v) == {v}

    def _may_be_one(self, a: Operand, b: Operand) -> bool:
        """Whether two results of a branch are one array on some path through it."""
        op = self.structure.definition.get(a) if isinstance(a, Value) else None
        if a is b or not isinstance(op, Branch) or not isinstance(b, Value):
            return a is b
        if self.structure.definition.get(b) is not op:
            return False
        i, j = op.outputs.index(a), op.outputs.index(b)
        return any(self._may_be_one(side.results[i], side.results[j]) for side in op.blocks())

    def _known_as(self, op: Branch, side: Block, r: Value) -> Symbol | None:
        """The cotangent of an array that a side of a branch returns, if it has another name."""
        outputs = (v for v, x in zip(op.outputs, side.results, strict=False) if x is r)
        return next((self.refs[v] for v in outputs if v in self.refs), None)

    def _mirrored(self, op: Apply) -> Symbol:
        """The view of the cotangent that corresponds to a call's result."""
        if not self.is_followed(op.outputs[0]):
            return self.sweep.fail("a view of an array that is written cannot be followed")
        if op.function is view_or_zeros:
            return self._beside(op)
        (base,) = _bases(op)
        if _may_copy(op) and not (order_of(op) == "C" and self._lies_plainly(base)):
            return self._view_or_own(op, base)
        return self._same_view(op, base)

    def _same_view(self, op: Apply, base: Value) -> Symbol:
        bar = self.memory_of(base)
        args = tuple(bar if a is base else self.sweep.symbols(a) for a in op.args)
        kwargs = {key: self.sweep.symbols(a) for key, a in op.kwargs.items()}
        return self.recorder.apply(op.function, args, kwargs)

    def _view_or_own(self, op: Apply, base: Value) -> Symbol:
        """The cotangent of what may be a copy: then it is memory of its own, added later."""
        (v,) = op.outputs
        home = self.sweep.home_of(v)
        if v not in home.buffers:
            with self.sweep.writing(home):
                mirrored, bar = self._same_view(op, base), self.memory_of(base)
                args = (mirrored, bar, *self.sweep.symbols((v, base)))
                home.buffers[v] = self.recorder.apply_typed(view_or_zeros, args, mirrored.type)
        return home.buffers[v]

    def _beside(self, op: Apply) -> Symbol:
        """The cotangent of a cotangent: a view where that one is."""
        (v,) = op.outputs
        home = self.sweep.home_of(v)
        if v not in home.buffers:
            with self.sweep.writing(home):
                mirrored, bar, *alike = op.args
                first = self.memory_of(mirrored)
                args = (first, self.memory_of(bar), *self.sweep.symbols(tuple(alike)))
                home.buffers[v] = self.recorder.apply_typed(view_or_zeros, args, first.type)
        return home.buffers[v]

    def gave_back(self, op: Apply) -> None:
        """Reverse :func:`give_back`: the cotangent that was added gets that of the sum."""
        bar, own, order = op.args
        if not self.is_followed(own):
            self.sweep.fail("a view of an array that is written cannot be followed")
        args = (self.memory_of(own), self.memory_of(bar), order)
        self.recorder.mutate(give_back, args, {})

    def give_back(self, op: Apply) -> None:
        """Where a view may be a copy, add its cotangent to that of the base."""
        (v,) = op.outputs
        if _may_copy(op) and v in self.sweep.region.buffers:
            (base,) = _bases(op)
            args = (self.memory_of(base), self.sweep.region.buffers[v], order_of(op))
            self.recorder.mutate(give_back, args, {})

    def is_surely_view(self, op: Apply) -> bool:
        """Whether the result of a call is never a copy."""
        if _may_copy(op):
            if self._orders is None:
                top = Program("", self.structure.top, rows=self.recorder.rows)
                self._orders = Orders(top)
            (base,) = _bases(op)
            return order_of(op) == "C" and self._orders.of(base) is Order.ROWS
        record = record_of(op.function)
        return record.memory is Memory.VIEW or record.mirrored or is_rearranged(op)

    def _lies_plainly(self, v: Value) -> bool:
        """Whether an array, and so its cotangent, is certainly C-contiguous."""
        op, meant = self.structure.definition.get(v), self.choices.meant.get(v)
        if meant or op is None:  # a parameter is a copy, because it is written
            params = self.structure.top.params
            return all(map(self._lies_plainly, meant.values())) if meant else v in params
        if isinstance(op, Load) and op.view:
            *whole, last = op.index or (0,)
            plain = isinstance(last, slice) and last.step in (None, 1)
            numbers = whole if plain else op.index
            return not any(isinstance(i, slice) or i in (None, Ellipsis) for i in numbers) and (
                self._lies_plainly(op.array)
            )
        if not isinstance(op, Apply):
            return False
        if _may_copy(op):
            return order_of(op) == "C" and self._lies_plainly(op.args[0])
        if self.structure.roots(v) != {v} or order_of(op, ""):
            return False
        return v.type.ndim == 1 or record_of(op.function).layout is Layout.C


def _may_copy(op: Apply) -> bool:
    """Whether a call returns a view or a copy, depending on memory layout."""
    return record_of(op.function).memory is Memory.IF_CONTIGUOUS


def _is_followed(record: Record) -> bool:
    """Whether the same view of a cotangent is one array that can be added into."""
    return record.mirrored and not (record.read_only or record.several)


def _bases(op: Apply) -> list[Value]:
    """The arrays among a call's arguments."""
    return [a for a in op.args if isinstance(a, Value) and is_array(a)]
