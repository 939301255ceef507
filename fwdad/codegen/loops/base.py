"""The base of all parts of the Numba source writer: typed names, memory, loops as lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fwdad.codegen.llvm import vector_functions
from fwdad.codegen.loops import parallel_elements
from fwdad.codegen.loops.arrays.functions import Leaf, tuple_text
from fwdad.codegen.loops.arrays.stacks import Stacks
from fwdad.codegen.loops.buffer_hoisting import OpenLoop, moving_lengths, temporaries
from fwdad.codegen.loops.number_terms import Term, cast, literal, numpy_number, stored_cast
from fwdad.codegen.numba_support import (
    HELPERS,
    LINALG_HELPERS,
    SPECIAL_HELPERS,
    TABLE_HELPERS,
    CannotCompileError,
)
from fwdad.codegen.passes.axis_order import Axes, axes_of_memory
from fwdad.codegen.passes.registers import in_registers, lane_memory, width
from fwdad.errors import type_in_words
from fwdad.ir.analysis.alias import memory_of
from fwdad.ir.analysis.def_use import used_in_own_block
from fwdad.ir.analysis.indices import Places, is_view_apart
from fwdad.ir.analysis.layout import Order, Orders
from fwdad.ir.notation import words
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Loop,
    Missing,
    Op,
    Operand,
    Program,
    Value,
    is_array,
    walk,
)
from fwdad.ir.primitives.stacks import pop, top
from fwdad.ir.primitives.undef import missing_on_some_way
from fwdad.ir.printer import Writer
from fwdad.ir.types import Dimension, Size, Type, number_type

_CALLED = HELPERS | SPECIAL_HELPERS | TABLE_HELPERS


class BaseWriter(Writer):
    """What is known while a program is written for Numba."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        taken = [*HELPERS, *LINALG_HELPERS, *SPECIAL_HELPERS, *TABLE_HELPERS]
        self._used.update([*taken, *vector_functions.FUNCTIONS, *parallel_elements.namespace()])
        if program.parallel:
            self._used.update(parallel_elements.RESERVED)
        self.helpers: set[str] = set()
        self.vector_functions: set[str] = set()
        self.types: dict[str, Type] = {}  # the types that the compiled names must have
        self.writes = {v for op in program.walk() for v in op.writes()}
        self._roots = memory_of(program)
        self.known = Places(program)
        self._missing = missing_on_some_way(program)
        self.axes = axes_of_memory(program, self._roots, self.known)
        self._positions: dict[Op | None, int] = {op: k for k, op in enumerate(program.block.ops)}
        self._params = set(program.block.params)
        self._lazy: dict[Value, Apply] = {}
        self._terms: dict[Value, Term] = {}
        self._bits: dict[Value, int] = {}
        self._of_row: dict[Value, str] = {}  # names of elements that are constant along a row
        self._standin: dict[Value, str] = {}  # copies of arrays that are being written
        self.lanes = in_registers(program, self.is_written)
        self._lane_memory = lane_memory(program, self.lanes)
        self._lane_names: dict[str, int] = {}
        self.lane_functions: dict[str, tuple[str, int]] = {}
        self._loose = merged_arrays(program.block) - self.lanes
        self._op_now: Op | None = None
        self._indices: list[str] = []
        self.inner: list[str] = []  # indices that are inside every array that they index
        self.inside: list[str] = []  # indices that have been checked, and their steps
        self.stepped: dict[str, str] = {}  # the length that a step belongs to
        self.outlined: list[str] = []  # lines of outlined functions, before the program
        self.outlined_names: list[str] = []  # names of those whose types are checked, too
        self.in_thread = False  # whether the code being written runs on one of several threads
        self._temporaries = temporaries(program, self._roots)
        self._moving = moving_lengths(program)
        self._open: list[OpenLoop] = []
        self.stacks = Stacks(program)
        self.groups: dict[Op, list[Apply]] = {}  # products that share a NaN test, by the first
        self.in_vectors = False  # whether LLVM may vectorise the current loop
        self.ahead: dict[Op, str] = {}  # scalar functions computed ahead in a strip, and where
        self.popped = {
            v
            for op in program.walk()
            if isinstance(op, Apply) and op.function in (pop, top)
            for v in op.outputs
        }
        self._once = used_in_own_block(program.block, self._uses, named=True)
        self._orders = Orders(program)
        self._same: dict[Dimension, Dimension] = {}  # lengths that are known to be equal

    # -- reports and names

    def cannot(self, what: str) -> CannotCompileError:
        """The error that says that an operation has no compiled form."""
        return CannotCompileError(what, self._op_now.location if self._op_now else None)

    def line(self, text: str, op: Op | None = None) -> None:
        """Write one line, attributed to the current operation."""
        super().line(text, op if op is not None else self._op_now)

    def name(self, value: Value) -> str:
        """A value's name."""
        made = super().name(value)
        if value in self.lanes:
            self._lane_names[made] = width(value)
        elif made not in self.types:
            self.types[made] = value.type
        return made

    def temporary(self, wanted: str, t: Type | None = None) -> str:
        """A new name."""
        made = self._unique(wanted)
        if t is not None:
            self.types[made] = t
        return made

    def help(self, name: str) -> str:
        """The name of a run-time helper, which becomes a global of the source."""
        self.helpers.add(name)
        return name

    def note_helpers(self, text: str) -> None:
        """Make the run-time helpers that an expression calls globals of the source."""
        if "(" in text:
            self.helpers |= _CALLED & words(text)

    def type_of(self, operand: Operand) -> Type:
        """The type of an operand."""
        if isinstance(operand, (Value, Missing)):
            return operand.type
        t = number_type(operand)
        if t is None:
            raise self.cannot(f"{type_in_words(operand)} as a value")
        return t

    def is_stack(self, operand: Operand) -> bool:
        """Whether an operand is a stack."""
        return isinstance(operand, Value) and operand in self.stacks.held

    # -- lengths

    def length_of(self, d: Dimension) -> Dimension:
        """The representative of all lengths that are known to equal a length."""
        while d in self._same:
            d = self._same[d]
        return d

    def note_equal(self, a: Dimension, b: Dimension) -> None:
        """Record that two lengths are equal from here to the end of the block."""
        a, b = self.length_of(a), self.length_of(b)
        if a != b:
            self._same.update({a: b} if isinstance(a, Size) else {b: a})

    # -- memory

    def roots(self, value: Value) -> set[Value]:
        """The arrays whose memory an array may use."""
        return self._roots.get(value, {value})

    def lies_by_rows(self, value: Value) -> bool:
        """Whether an array is known to be C-contiguous."""
        return self._orders.of(value) is Order.ROWS

    def may_overlap(self, a: Value, b: Value) -> bool:
        """Whether two arrays may share memory; any two arguments may."""
        ra, rb = self.roots(a), self.roots(b)
        return bool(ra & rb) or bool(ra & self._params and rb & self._params)

    def may_change(self, array: Value, at: tuple[Operand, ...], read: Value) -> bool:
        """Whether a store to ``array[at]`` may change an element of another array."""
        overlaps = self.may_overlap(array, read)
        return overlaps and not is_view_apart(read, array, at, self.known)

    def is_written(self, value: Value) -> bool:
        """Whether anything is ever written into the memory of an array."""
        if value in self.program.shared:
            return True
        return any(self.may_overlap(value, w) for w in self.writes)

    def is_written_later(self, value: Value) -> bool:
        """Whether anything may be written into an array's memory after the current operation."""
        ops = self.program.block.ops
        if self._op_now not in self._positions or value in self.program.shared:
            return self.is_written(value)
        later = ops[self._positions[self._op_now] + 1 :]
        return any(self.may_overlap(value, v) for op in walk(Block([], later)) for v in op.writes())

    def new_array(
        self,
        value: Value,
        lengths: Sequence[str],
        op: Op | None = None,
        *,
        zeros: bool = False,
        compared: bool = False,
    ) -> None:
        """Define an array to be filled; one local to an iteration is allocated before the loop.

        Its lengths are checked here, unless the caller has ``compared`` them.
        """
        name, dtype = self.name(value), value.type.dtype
        loop, shape = self._workspace(value)
        if loop is None:
            made = self.zeros(value, lengths) if zeros else self.empty(lengths, dtype, value)
            self.line(f"{name} = {made}", op)
            return
        loop.made.append(f"{name} = {self.empty(shape, dtype, value)}")
        for axis, (n, known) in enumerate(zip(lengths, shape, strict=False)):
            if n != known and not compared:  # so that no element has to be checked
                self.line(f"{self.help('equal_length')}({name}.shape[{axis}], {n})", op)
        if zeros:
            index = self.open_loops(shape)
            self.line(f"{name}[{self.at(index)}] = {literal(0, numpy_number(dtype))}", op)
            self.close_loops(index)

    def _workspace(self, value: Value) -> tuple[OpenLoop | None, list[str]]:
        """The outermost loop before which an array can be allocated, and its lengths there."""
        if value in self._temporaries and value not in self._lane_memory:
            for loop in self._open:
                shape = loop.shape(value)
                if shape is not None:
                    return loop, shape
        return None, []

    def has_workspace(self, value: Value) -> bool:
        """Whether an array is allocated before the loop that computes it."""
        return self._workspace(value)[0] is not None

    def empty(
        self, lengths: Sequence[str], dtype: np.dtype[Any], value: Value | None = None
    ) -> str:
        """Source for a new array, in the axis order that was chosen for a value."""
        return self._new("empty", value, lengths, dtype)

    def zeros(self, value: Value, lengths: Sequence[str]) -> str:
        """Source for an array of zeros."""
        return self._new("zeros", value, lengths, value.type.dtype)

    def _new(
        self, function: str, value: Value | None, lengths: Sequence[str], dtype: np.dtype[Any]
    ) -> str:
        order = None if value is None else self._order(value)
        held = list(lengths) if order is None else [lengths[k] for k in order]
        made = f"np.{function}({tuple_text(held)}, {self.dtype(dtype)})"
        if order is None:
            return made
        if len(order) == 2:
            return f"{made}.T"
        return f"{made}.transpose({tuple_text([str(order.index(k)) for k in range(len(order))])})"

    def _order(self, value: Value) -> Axes | None:
        """The axis order of an array; lanes that are read and written as one are neighbours."""
        if value in self._lane_memory and value.type.ndim > 1:
            return (*range(1, value.type.ndim), 0)
        return self.axes.get(value)

    def is_in_order(self, value: Value) -> bool:
        """Whether an array's memory was allocated in C order."""
        return all(self._order(v) is None for v in self.roots(value))

    def dtype(self, dtype: np.dtype[Any]) -> str:
        """A dtype as source."""
        return "np.bool_" if dtype.kind == "b" else f"np.{dtype}"

    def stored(self, term: Term, dtype: np.dtype[Any]) -> str:
        """A term cast to an array's dtype, as source."""
        self.note_helpers(term.text)
        return cast(term, dtype).text

    def converted(self, term: Term, dtype: np.dtype[Any], *, item: bool) -> Term:
        """A number as it is stored into an array: what does not fit raises."""
        made = stored_cast(term, dtype, item=item)
        self.note_helpers(made.text)
        return made

    # -- loops as lines

    def open_loops(self, lengths: Sequence[str], *, inner: bool = False) -> list[str]:
        """Begin one loop over each axis; returns the indices.

        Those of an ``inner`` loop are not checked where they are used: the lengths of all that is
        read and written there have been compared before.
        """
        names = self.index_names(len(lengths), inner=inner)
        for name, length in zip(names, lengths, strict=True):
            self.line(f"for {name} in range({length}):")
            self._indent += 1
        return names

    def close_loops(self, names: Sequence[str]) -> None:
        """End the loops of :meth:`open_loops`."""
        self._indent -= len(names)

    @property
    def spreads(self) -> bool:
        """Whether what is written now may run on several threads."""
        return self.program.parallel and not self.in_thread and parallel_elements.can_nest()

    def spread(self, start: int, lengths: Sequence[str]) -> None:
        """Let the loop nest written from line ``start`` on use several cores if it is long.

        Each iteration must write one element of its own, and read nothing that another one writes.
        """
        if not (self.spreads and lengths):
            return
        name = self._unique("loop")
        made = parallel_elements.spread(self.lines[start:], name, lengths, self._unique)
        if made is None:
            return
        function, call = made
        place = next((p for p in self.places[start:] if p is not None), None)
        self.outlined += function
        self.lines[start:] = call
        self.places[start:] = [place] * len(call)

    def spread_region(self, start: int, length: str, work: str) -> None:
        """Make the lines from ``start`` on, which go from ``first`` to ``last``, a function.

        It is called for all elements, or on several cores for parts of the length if there is much
        work.
        """
        name = self._unique("region")
        made = parallel_elements.region(self.lines[start:], name, length, work)
        function, call = made
        place = next((p for p in self.places[start:] if p is not None), None)
        self.outlined += function
        self.lines[start:] = call
        self.places[start:] = [place] * len(call)

    def index_names(self, n: int, *, inner: bool = False) -> list[str]:
        """Names for the indices of nested loops."""
        names = self.inner if inner else self._indices
        while len(names) < n:
            names.append(self._unique("ijklmnpq"[len(names) % 8]))
        return names[:n]

    def at(self, index: Sequence[str]) -> str:
        """An index as source."""
        return ", ".join(index) if index else "()"

    # -- what subclasses define

    def _define(self, op: Op, text: str, level: int, block: Block, k: int) -> None:
        raise NotImplementedError

    def _element_of(self, op: Apply, index: Sequence[str]) -> Term:
        raise NotImplementedError

    def _array_of_lanes(self, operand: Value) -> str:
        raise NotImplementedError

    def materialize(self, value: Value) -> str:
        """Write a deferred operation into an array."""
        raise NotImplementedError

    def prepare(self, op: Apply) -> list[Leaf]:
        """Name all arrays that an operation and its deferred operands read; hoist its numbers."""
        raise NotImplementedError

    def done(self, value: Value) -> None:
        """Forget an operation that has been written, and those deferred inside it."""
        raise NotImplementedError


class Ready(NamedTuple):
    """Source that is already written."""

    source: str


def name_of(function: Any) -> str:
    """What a function is called in a report."""
    return str(getattr(function, "__name__", type(function).__name__))


def merged_arrays(block: Block) -> set[Value]:
    """Arrays that stand for one of several, and results of calls: their layout is left open."""
    found: set[Value] = set()
    for op in walk(block):
        if isinstance(op, (Branch, Loop, Call)):
            found.update(v for v in op.outputs if is_array(v))
        if isinstance(op, Loop):
            found.update(v for v in op.carried if is_array(v))
    return found
