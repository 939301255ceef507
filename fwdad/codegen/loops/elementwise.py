"""Elementwise operations on arrays in the Numba source: deferred, and fused into one loop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fwdad.codegen.loops.assignments import Assignments
from fwdad.codegen.loops.draft import Draft
from fwdad.codegen.loops.facts import Facts
from fwdad.codegen.loops.loop_lines import LoopLines
from fwdad.codegen.loops.memory import Memory
from fwdad.codegen.loops.new_arrays import NewArrays
from fwdad.codegen.loops.notation import Leaf, length_text, subscript
from fwdad.codegen.loops.operands import Operands
from fwdad.codegen.loops.registers import Registers
from fwdad.codegen.loops.terms.element_terms import ELEMENTWISE, arity
from fwdad.codegen.loops.terms.number_terms import (
    Term,
    constant,
    literal,
    number_cast,
    numpy_number,
)
from fwdad.codegen.loops.terms.numpy_terms import as_ufunc, needed_dtypes, numpy_term, where_term
from fwdad.codegen.runtime.arithmetic import BROADCAST
from fwdad.ir.analysis.def_use import used_in_own_block
from fwdad.ir.notation import ATOM, tuple_text
from fwdad.ir.ops import (
    Apply,
    Load,
    Op,
    Operand,
    Store,
    Update,
    Value,
    is_array,
    values_in,
)
from fwdad.ir.primitives.broadcast_sums import sum_to
from fwdad.ir.primitives.stacks import push
from fwdad.ir.types import ArrayType, Dimension, Number, Size, number_type

_MOST_FUSED = 64  # operations in one loop: sums of cotangents would grow with the program


class Elementwise:
    """Writes elementwise operations as loops.

    ``lazy`` are the operations that wait until their result is used, ``terms`` the numbers that the
    loop being written reads.
    """

    def __init__(
        self,
        draft: Draft,
        memory: Memory,
        facts: Facts,
        registers: Registers,
        loops: LoopLines,
        arrays: NewArrays,
        assignments: Assignments,
    ) -> None:
        program = draft.program
        self.code, self.names, self.helpers = draft.code, draft.names, draft.helpers
        self.inlined = draft.inlined
        self.memory = memory
        self.facts = facts
        self.registers = registers
        self.loops = loops
        self.arrays = arrays
        self.assignments = assignments
        self.operands = Operands(draft, registers, arrays, self)
        self.lazy: dict[Value, Apply] = {}
        self._fused: dict[Value, int] = {}  # how many operations a deferred one will be written as
        self.terms: dict[Value, Term] = {}
        self._stored: dict[Value, str] = {}  # arrays with the lanes of values in registers
        self._of_row: dict[Value, str] = {}  # names of elements that are constant along a row
        self._once = used_in_own_block(program.block, draft.usage.count, named=True)

    def take(self, op: Apply) -> bool:
        """Take an elementwise operation, deferred if used once; returns whether it is one."""
        (value,) = op.outputs
        if arity(op) is None or not any(is_array(a) for a in op.args):
            if not (op.function is np.where and len(op.args) == 3):
                return False
        if op.function is sum_to:
            op = self._compared(op)
        elif op.function is np.ndarray.copy:  # its order is not one of its operands
            op = Apply(op.function, op.args[:1], outputs=op.outputs, location=op.location)
        if op.function in (sum_to, np.ndarray.copy) and not self._may_wait(op):
            if op.function is sum_to and op.args[0] not in self.lazy:
                name = self.operands.array(op.args[0])
                if value in self.arrays.loose:
                    name = f"{self.helpers.use('loose')}({name})"
                self.code.line(f"{self.names.name(value)} = {name}", op)
                return True
            if op.function is np.ndarray.copy:
                return False
        if isinstance(value.type, Number):
            if any(is_array(a) and a.type.ndim for a in op.args):
                return False
            term = self.element_of(op, [])
            self.assignments.define(op, term.text, term.level)
            return True
        if self._may_wait(op):
            self.lazy[value] = op
            self._fused[value] = self._operations(op)
            self.inlined.hold(value, "", ATOM)
            self.inlined.wait(value)
            for a in op.args:  # deferred operands stay deferred with it
                if is_array(a) and a in self.lazy:
                    self.inlined.settle(a)
            return True
        self.write_loop(op)
        return True

    def _may_wait(self, op: Apply) -> bool:
        """Whether an array is used once, later in the same block, and its loop not yet too long."""
        (value,) = op.outputs
        if value not in self._once or value in self.arrays.loose:
            return False
        return self._operations(op) <= _MOST_FUSED

    def _operations(self, op: Apply) -> int:
        """How many operations are written as one loop with this one."""
        return 1 + sum(self._fused.get(a, 1) for a in op.args if is_array(a) and a in self.lazy)

    def _compared(self, op: Apply) -> Apply:
        """A cotangent whose lengths are checked to be those of its value.

        Where something was broadcast it raises, and the program is run again under NumPy.
        """
        x, *lengths = op.args
        (value,) = op.outputs
        if x in self.lazy and any(len(d) > 1 for d in self._union(self.leaf_values(x)).values()):
            self.materialize(x)
        leaves = [Leaf(self.operands.array(v), v.type.shape, v) for v in self.leaf_values(x)]
        own, _ = self.lengths(leaves, x.type.ndim)
        for k, (n, text) in enumerate(zip(lengths, own, strict=True)):
            if self.facts.length_of(x.type.shape[k]) != self.facts.length_of(value.type.shape[k]):
                self.code.line(f"if {text} != {self.operands.index_text(n)}:", op)
                self.code.line(f"    raise ValueError({BROADCAST!r})")
                self.facts.note_equal(x.type.shape[k], value.type.shape[k])
        return Apply(sum_to, (x,), outputs=op.outputs, location=op.location)

    def done(self, value: Value) -> None:
        """Forget an operation that has been written, and those deferred inside it."""
        op = self.lazy.pop(value, None)
        self.inlined.held.pop(value, None)
        self.inlined.settle(value)
        if op is not None:
            self._done_inside(op)

    def _done_inside(self, op: Apply) -> None:
        for a in op.args:
            if is_array(a) and a in self.lazy:
                self.done(a)

    def item(self, value: Value) -> Term:
        """The only element of a deferred operation."""
        op = self.lazy[value]
        self.prepare(op)
        term = self.element_of(op, [])
        self.done(value)
        return term

    def materialize(self, value: Value) -> str:
        """Write a deferred operation into an array."""
        op = self.lazy[value]
        name = self.names.name(value)
        self.write_loop(op)
        self.done(value)
        return name

    def flush(self, upto: Op | None = None) -> None:
        """Write out deferred operations that read memory about to be written."""
        if not self.inlined.pending:
            return
        operands_of_op = (
            {v for o in upto.operands() for v in values_in(o)} if upto is not None else set()
        )
        for value in list(self.inlined.pending):
            if (
                value in operands_of_op
                or value not in self.inlined.pending
                or self._stays(value, upto)
            ):
                continue
            if value in self.lazy:
                self.materialize(value)
            else:
                self.inlined.pending.remove(value)
                if value in self.inlined.held:
                    text, _ = self.inlined.held.pop(value)
                    self.assignments.assign(self.names.name(value), text)

    def _stays(self, value: Value, upto: Op | None) -> bool:
        """Whether a deferred value reads nothing that an operation writes into local arrays."""
        written = upto.writes() if upto is not None else []
        if value not in self.lazy or not written:
            return False
        if isinstance(upto, Apply):  # a popped array is stored where the next push writes
            read = self.leaf_values(value)
            popped = any(self.memory.roots(a) & self.memory.popped for a in read)
            return upto.function is push and not popped
        if any(self.memory.roots(v) & self.memory.meeting for v in written):
            return False  # exceptions must come before the write, unless it is into ``out``
        read = self.leaf_values(value)
        if isinstance(upto, (Store, Update)):
            return not any(self.memory.may_change(upto.array, upto.index, a) for a in read)
        return not any(self.memory.may_overlap(a, v) for a in read for v in written)

    def write_loop(self, op: Apply) -> None:
        """Write an operation as a loop over the elements of a new array."""
        value = op.outputs[0]
        name, t = self.names.name(value), value.type
        assert isinstance(t, ArrayType)
        leaves = self.prepare(op)
        lengths, steps = self.lengths(leaves, t.ndim)
        self.arrays.new(value, lengths, op, compared=True)
        self.compare([Leaf(name, t.shape, value), *leaves], lengths, steps)
        start = len(self.code.lines)
        with_index = self._open_rows(leaves, lengths, steps)
        term = self.element_of(op, with_index, steps)
        item = self.operands.stored(term, t.dtype)
        self.code.line(f"{name}[{subscript(with_index)}] = {item}", op)
        self.loops.close(with_index)
        self._of_row.clear()
        self.loops.spread(start, lengths)
        self._done_inside(op)

    def _open_rows(
        self, leaves: list[Leaf], lengths: list[str], steps: dict[tuple[str, int], str]
    ) -> list[str]:
        """Begin the loops over a new array; elements that are constant along a row are hoisted.

        LLVM does not hoist them: it cannot see that the new array does not overlap the others.
        """
        *rows, last = self.loops.index_names(len(lengths), inner=True) or [""]
        if not rows or self.loops.spreads:
            return self.loops.open(lengths, inner=True)
        for index, n in zip(rows, lengths, strict=False):
            self.code.line(f"for {index} in range({n}):")
            self.code.indent += 1
        for name, shape, v in leaves:
            if v is None or v in self._of_row or v in self.registers.lanes or self.filled_with(v):
                continue
            if not shape or shape[-1] == 1:
                row = self.index_into(name, shape, [*rows, last], steps)
                self._of_row[v] = self.names.temporary("of_row")
                self.code.line(f"{self._of_row[v]} = {name}[{subscript(row)}]")
        self.code.line(f"for {last} in range({lengths[-1]}):")
        self.code.indent += 1
        return [*rows, last]

    def compare(
        self, arrays: Sequence[Leaf], lengths: Sequence[str], steps: dict[tuple[str, int], str]
    ) -> None:
        """Make sure that the indices of loops are inside all arrays that they index."""
        for name, shape, _ in arrays:
            rank = len(shape)
            dims = [f"{name}.shape[{k}]" for k in range(rank)]
            wanted = list(lengths[len(lengths) - rank :]) if rank else []
            for k, d in enumerate(shape):
                if d == 1:
                    wanted[k] = "1"
                elif (name, k) in steps:
                    wanted[k] = self.loops.stepped[steps[name, k]]
            if wanted == dims:
                continue
            like = wanted[0].rpartition(".shape[")[0]
            is_like = wanted == [f"{like}.shape[{k}]" for k in range(rank)]
            text = f"{like}.shape" if is_like else tuple_text(wanted)
            self.code.line(f"{self.helpers.use('check_shape')}({name}, {text})")

    def prepare(self, op: Apply) -> list[Leaf]:
        """Name all arrays that an operation and its deferred operands read; hoist its numbers."""
        union = self._union([v for a in op.args if is_array(a) for v in self.leaf_values(a)])
        self._settle(op, union)
        leaves: dict[Value, Leaf] = {}
        for o in self._tree(op):
            for a in o.args:
                if is_array(a) and a not in self.lazy:
                    if a not in leaves:
                        leaves[a] = Leaf(self.operands.array(a), a.type.shape, a)
                    if a in self.registers.lanes:
                        self._stored[a] = leaves[a].name
                elif isinstance(a, Value) and not is_array(a):
                    self.terms[a] = self.operands.atom(self.operands.term(a))
            self._check_ints(o)
        return [*leaves.values()]

    def _check_ints(self, op: Apply) -> None:
        """Check before a loop, which may be empty, that its Python ints fit into their dtypes."""
        ufunc = as_ufunc(op.function)
        if ufunc is None:
            return
        types = [self.operands.type_of(a) for a in op.args]
        for a, wanted in zip(op.args, needed_dtypes(ufunc, types), strict=True):
            if isinstance(a, Value) and not is_array(a) and wanted is not None:
                term = number_cast(self.terms[a], wanted)
                self.helpers.note(term.text)
                self.code.line(f"{self.names.temporary('fits')} = {term.text}")

    def _settle(self, op: Apply, union: dict[int, set[Dimension]]) -> None:
        for a in op.args:
            if is_array(a) and a in self.lazy:
                if self._fits(a, union):
                    self._settle(self.lazy[a], union)
                else:
                    self.materialize(a)

    def _tree(self, op: Apply) -> list[Apply]:
        tree = [op]
        for a in op.args:
            if is_array(a) and a in self.lazy:
                tree.extend(self._tree(self.lazy[a]))
        return tree

    def leaf_values(self, a: Value) -> list[Value]:
        """The arrays that a value is read from: itself, unless it is deferred."""
        if a not in self.lazy:
            return [a]
        return [v for o in self._tree(self.lazy[a]) for b in o.args if is_array(b)
                for v in ([b] if b not in self.lazy else [])]  # fmt: skip

    def _union(self, values: list[Value]) -> dict[int, set[Dimension]]:
        """The lengths on each axis, counted from the last, that are not known to be one."""
        dimensions: dict[int, set[Dimension]] = {}
        for v in values:
            for axis, d in enumerate(reversed(v.type.shape)):
                dimensions.setdefault(axis, set())
                if d != 1:
                    dimensions[axis].add(self.facts.length_of(d))
        return dimensions

    def _fits(self, a: Value, union: dict[int, set[Dimension]]) -> bool:
        """Whether a deferred value has one element for each of the loop's, as far as is known."""
        own = self._union(self.leaf_values(a))
        return all(bool(own.get(k)) == bool(d) for k, d in union.items())

    def lengths(
        self, leaves: list[Leaf], ndim: int
    ) -> tuple[list[str], dict[tuple[str, int], str]]:
        """The lengths of a broadcast, and the steps of indices into arrays that may repeat."""
        lengths: list[str] = []
        steps: dict[tuple[str, int], str] = {}
        for axis in range(ndim):
            sources: dict[Dimension, list[tuple[str, int]]] = {}
            for leaf in leaves:
                own = axis - (ndim - len(leaf.shape))
                if own >= 0 and leaf.shape[own] != 1:
                    d = self.facts.length_of(leaf.shape[own])
                    sources.setdefault(d, []).append((leaf.name, own))
            if not sources:
                lengths.append("1")
            elif len(sources) == 1:
                ((d, places),) = sources.items()
                lengths.append(length_text(d, *places[0]))
            else:
                lengths.append(self._broadcast(sources, steps))
        return lengths, steps

    def _broadcast(
        self, found: dict[Dimension, list[tuple[str, int]]], steps: dict[tuple[str, int], str]
    ) -> str:
        parts = [length_text(d, *places[0]) for d, places in found.items()]
        if not any(isinstance(d, Size) and d.may_be_one for d in found):
            return self.equal(parts)
        n = self._named_length("broadcast_length", parts)
        for (d, places), part in zip(found.items(), parts, strict=True):
            if isinstance(d, Size):
                step = self.loops.step(f"1 if {part} == {n} else 0", part)
                steps.update(dict.fromkeys(places, step))
        return n

    def equal(self, parts: Sequence[str]) -> str:
        """The length of axes that are read together without repetition."""
        return self._named_length("equal_length", parts)

    def _named_length(self, function: str, parts: Sequence[str]) -> str:
        """A name for what a function of two lengths makes of several."""
        total = parts[0]
        for part in parts[1:]:
            total = f"{self.helpers.use(function)}({total}, {part})"
        n = self.names.temporary("n")
        self.code.line(f"{n} = {total}")
        return n

    def stretch(
        self,
        leaf: Leaf,
        dims: Sequence[Dimension],
        lengths: Sequence[str],
        steps: dict[tuple[str, int], str],
    ) -> None:
        """Note the steps of an array that is broadcast to some lengths, or is as long as these.

        ``dims`` are the lengths as the program knows them, ``lengths`` the same as source.
        """
        first = len(dims) - len(leaf.shape)
        for axis, (d, own) in enumerate(zip(leaf.shape, leaf.lengths(), strict=True)):
            wanted = dims[first + axis]
            known = d == 1 or self.facts.length_of(d) == self.facts.length_of(wanted)
            if not known and (leaf.name, axis) not in steps:
                text = f"{self.helpers.use('check_length')}({own}, {lengths[first + axis]})"
                steps[leaf.name, axis] = self.loops.step(text, own)

    def element(
        self, a: Operand, index: Sequence[str], steps: dict[tuple[str, int], str] | None = None
    ) -> Term:
        """One element of an operand of a loop."""
        if not is_array(a):
            if isinstance(a, Value):
                return self.terms[a] if a in self.terms else self.operands.term(a)
            return constant(a)
        if a in self.lazy:
            return self.element_of(self.lazy[a], index, steps)
        known = self.filled_with(a)
        if known is not None:
            return known
        if a in self._of_row:
            return Term(self._of_row[a], ATOM, numpy_number(a.type.dtype))
        name = self._stored.get(a) or self.operands.array(a)
        element = self.index_into(name, a.type.shape, index, steps)
        return Term(f"{name}[{subscript(element)}]", ATOM, numpy_number(a.type.dtype))

    def filled_with(self, a: Value) -> Term | None:
        """The number that all elements of an array are known to be, or None."""
        op = self.memory.known.definition.get(a)
        while isinstance(op, Load) and op.view:
            op = self.memory.known.definition.get(op.array)
        if not isinstance(op, Apply) or op.function is not np.full or len(op.args) != 2:
            return None
        fill, t = op.args[1], a.type
        if op.kwargs or isinstance(fill, Value) or is_array(fill) or t.dtype.kind != "f":
            return None
        if number_type(fill) is None or t.dtype != op.outputs[0].type.dtype:
            return None
        if self.memory.is_written(a):
            return None
        text = literal(fill, numpy_number(t.dtype))
        return Term(text, 7 if text.startswith("-") else ATOM, numpy_number(t.dtype))

    def index_into(
        self,
        name: str,
        shape: tuple[Dimension, ...],
        index: Sequence[str],
        steps: dict[tuple[str, int], str] | None,
    ) -> list[str]:
        """A loop's index for an array of lower rank, or with axes that repeat."""
        rest = list(index[len(index) - len(shape) :]) if shape else []
        for axis, d in enumerate(shape):
            step = (steps or {}).get((name, axis))
            if d == 1:
                rest[axis] = "0"
            elif step is not None:
                rest[axis] = f"{rest[axis]} * {step}"
        return rest

    def element_of(
        self, op: Apply, index: Sequence[str], steps: dict[tuple[str, int], str] | None = None
    ) -> Term:
        """One element of the result of an operation."""
        terms = [self.element(a, index, steps) for a in op.args]
        ufunc = as_ufunc(op.function)
        dtype = op.outputs[0].type.dtype
        if ufunc is not None:
            term = numpy_term(ufunc, terms)
        elif op.function is np.where:
            condition, a, b = terms
            term = where_term(condition, a, b, dtype)
        else:
            term = ELEMENTWISE[op.function](dtype, *terms)
        self.helpers.note(term.text)
        return term
