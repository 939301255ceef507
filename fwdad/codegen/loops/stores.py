"""Loads and stores in the Numba source: indices, views, and what is written into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fwdad.codegen.loops.assignments import Assignments
from fwdad.codegen.loops.draft import Draft
from fwdad.codegen.loops.elementwise import Elementwise
from fwdad.codegen.loops.facts import Facts
from fwdad.codegen.loops.loop_lines import LoopLines
from fwdad.codegen.loops.memory import Memory
from fwdad.codegen.loops.new_arrays import NewArrays
from fwdad.codegen.loops.notation import Leaf, dtype_text, subscript
from fwdad.ir.analysis.indices import is_same_view
from fwdad.ir.builder.index_parts import spelled_out
from fwdad.ir.notation import ATOM
from fwdad.ir.ops import Load, Operand, Store, Update, Value, is_array
from fwdad.ir.types import Dimension, Number, sliced


class Stores:
    """Writes loads and stores by ints and slices."""

    def __init__(
        self,
        draft: Draft,
        memory: Memory,
        facts: Facts,
        loops: LoopLines,
        arrays: NewArrays,
        assignments: Assignments,
        elements: Elementwise,
    ) -> None:
        self.code, self.names, self.helpers = draft.code, draft.names, draft.helpers
        self.memory = memory
        self.facts = facts
        self.loops = loops
        self.arrays = arrays
        self.assignments = assignments
        self.operands = elements.operands
        self.elements = elements

    def load(self, op: Load) -> None:
        """Define an element or a view."""
        (value,) = op.outputs
        if isinstance(value.type, Number) and not op.array.type.ndim:
            term = self.operands.term(op.array)
            self.assignments.define(op, term.text, term.level)
            return
        array = self.operands.array(op.array)
        if isinstance(value.type, Number):
            index = self.operands.scalar_index(op.index, op.array)
            self.assignments.define(op, f"{array}[{index}]", ATOM)
            return
        if op.view and not value.type.ndim and op.array.type.ndim:
            if self.memory.is_written_later(value):
                raise self.operands.cannot("a view without axes on an array that is written")
            at = tuple(i for i in op.index if i is not Ellipsis)
            item = f"{array}[{self.operands.scalar_index(at, op.array)}]"
            text = f"np.full((), {item}, {dtype_text(value.type.dtype)})"
            self.assignments.define(op, text, ATOM)
            return
        if op.view:
            shape = _shape_of_view(op.array.type.shape, op.index)
            for d, same in zip(value.type.shape, shape, strict=True):
                # one counts up, the other one is of the reverse pass
                self.facts.note_equal(d, same)
            text = array  # `a[...]`, which Numba lowers for tuples only
            if any(i is not Ellipsis for i in op.index):
                text = f"{array}[{self.view_index(op.index)}]"
            if value in self.arrays.loose:
                text = f"{self.helpers.use('loose')}({text})"
            self.assignments.define(op, text, ATOM)
            return
        raise self.operands.cannot("this index")

    def view_of(self, a: Value, index: tuple[Operand, ...]) -> tuple[str, tuple[Dimension, ...]]:
        """The source of ``a[index]`` for ints and slices, and its lengths: none for an element."""
        shape = _shape_of_view(a.type.shape, index)
        if all(i is Ellipsis for i in index):
            return self.operands.array(a), shape
        return f"{self.operands.array(a)}[{self.view_index(index)}]", shape

    def view_index(self, index: tuple[Operand, ...]) -> str:
        """An index of ints and slices as source."""
        parts = []
        for i in index:
            if i is None:
                parts.append("None")
            elif i is Ellipsis:
                parts.append("...")
            elif isinstance(i, slice):
                parts.append(self._slice_of_ints(i))
            else:
                parts.append(self.operands.index_text(i))
        return ", ".join(parts) if parts else "..."

    def _slice_of_ints(self, s: slice) -> str:
        parts = (s.start, s.stop, s.step)
        bounds = [None if x is None else self.operands.index_text(x) for x in parts]
        if isinstance(s.step, Value):
            raise self.operands.cannot("a slice whose step is not known")
        start, stop, step = ("" if b is None else b for b in bounds)
        return f"{start}:{stop}" + (f":{step}" if step else "")

    def store(self, op: Store | Update) -> None:
        """Write into an element or a view."""
        function = op.function if isinstance(op, Update) else None
        index = tuple(op.index)
        ints = [
            i for i in index if i is not None and i is not Ellipsis and not isinstance(i, slice)
        ]
        if len(ints) == op.array.type.ndim and None not in index:
            self._store_item(op, function)
            return
        shape = _shape_of_view(op.array.type.shape, index)
        plain = all(i is Ellipsis or i == slice(None) for i in index if not isinstance(i, Value))
        array = self.operands.array(op.array)
        target = array
        if not (plain and not ints):
            target = self.names.temporary("view")
            self.code.line(f"{target} = {array}[{self.view_index(index)}]", op)
        self.write_into(Leaf(target, shape, op.array), op.value, function, index)

    def _store_item(self, op: Store | Update, function: Any) -> None:
        dtype = op.array.type.dtype
        value = self.operands.number(op.value)
        array = self.operands.array(op.array)
        index = self.operands.scalar_index(op.index, op.array)
        place = f"{array}[{index}]"
        if function is None and not is_array(op.value):
            value = self.operands.converted(value, dtype, item=True)
        self.assignments.assign(place, self.operands.updated(place, function, value, dtype), op)

    def write_over(self, array: Value, value: Operand) -> None:
        """Overwrite a whole array with a value."""
        self.write_into(Leaf(self.operands.array(array), array.type.shape, array), value, None)

    def write_into(
        self, target: Leaf, value: Operand, function: Any, at: tuple[Operand, ...] = (...,)
    ) -> None:
        """Write a value into ``target.value[at]``, broadcast, as if it were computed beforehand."""
        assert target.value is not None
        dtype = target.value.type.dtype
        if isinstance(value, (list, tuple)):
            raise self.operands.cannot("a list that is stored into an array")
        steps: dict[tuple[str, int], str] = {}
        arrays = [target]
        if is_array(value):
            if value in self.elements.lazy:
                arrays += self._fused(target, value, steps, at)
            if value not in self.elements.lazy:
                arrays.append(self._buffer(target, value, steps, at))
        else:
            term = self.operands.term(value)  # also a constant
            self.elements.terms[value] = self.operands.atom(
                self.operands.converted(term, dtype, item=True) if function is None else term
            )
        lengths = target.lengths()
        self.elements.compare(arrays, lengths, steps)
        start = len(self.code.lines)
        with self.loops.nest(lengths, inner=True) as index:
            new = (
                self.elements.terms.pop(value)
                if not is_array(value)
                else self.elements.element(value, index, steps)
            )
            place = f"{target.name}[{subscript(index)}]"
            self.code.line(f"{place} = {self.operands.updated(place, function, new, dtype)}")
        # an argument might overlap itself
        if not self.memory.roots(target.value) & self.memory.params:
            self.loops.spread(start, lengths)
        self.operands.standins.clear()
        if is_array(value):
            self.elements.done(value)

    def _fused(
        self,
        target: Leaf,
        value: Value,
        steps: dict[tuple[str, int], str],
        at: tuple[Operand, ...],
    ) -> list[Leaf]:
        """Leave a deferred value to the target's own loop if nothing it reads can change there.

        Returns the arrays that it reads, or nothing if it is written out first.
        """
        op = self.elements.lazy[value]
        assert target.value is not None
        leaves = self.elements.prepare(op)
        for leaf in leaves:
            first = len(target.shape) - len(leaf.shape)
            if (
                first < 0
                or (leaf.value is not None and self._disturbs(target.value, at, leaf.value))
                or any(isinstance(d, int) and d not in (1, n)
                       for d, n in zip(leaf.shape, target.shape[first:], strict=True))
            ):  # fmt: skip
                self.elements.materialize(value)
                return []
        for leaf in leaves:  # each is broadcast, or as long as the target
            self.elements.stretch(leaf, target.shape, target.lengths(), steps)
        return leaves

    def _disturbs(self, array: Value, at: tuple[Operand, ...], read: Value) -> bool:
        """Whether a loop that writes a view's elements may change those that it reads later."""
        return self.memory.may_change(array, at, read) and not is_same_view(
            read, array, at, self.memory.known
        )

    def _buffer(
        self,
        target: Leaf,
        value: Value,
        steps: dict[tuple[str, int], str],
        at: tuple[Operand, ...],
    ) -> Leaf:
        """Copy an array that may change while it is read; check its lengths."""
        assert target.value is not None
        name = self.operands.array(value)
        if self._disturbs(target.value, at, value):
            buffer = self.names.temporary("copy")
            self.code.line(f"{buffer} = {name}.copy()")
            self.operands.standins[value] = name = buffer
        if value.type.ndim > len(target.shape):
            raise self.operands.cannot("an array that is stored into one of lower rank")
        leaf = Leaf(name, value.type.shape, value)
        self.elements.stretch(leaf, target.shape, target.lengths(), steps)
        return leaf


def _shape_of_view(shape: tuple[Dimension, ...], index: Sequence[Operand]) -> tuple[Dimension, ...]:
    """The lengths of a basic index; an unknown length is a new symbol."""
    rest = list(shape)
    lengths: list[Dimension] = []
    for i in spelled_out(index, len(shape)):
        if i is None:
            lengths.append(1)
        elif isinstance(i, slice):
            d = rest.pop(0)
            lengths.append(sliced(d, i))
        else:
            rest.pop(0)
    return tuple(lengths)
