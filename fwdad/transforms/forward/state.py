"""The state of a forward pass over a block: primals, tangents, and shadows of memory."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.ir.analysis.alias import with_companions
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Apply, Block, Op, Operand, Program, Value, is_array, map_values, walk
from fwdad.ir.primitives.undef import missing_on_some_way
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType, Type
from fwdad.ops import record_of
from fwdad.tangents.placed import is_fixed
from fwdad.transforms.activity import Activity
from fwdad.transforms.forward.known_indices import Contents, KnownIndices
from fwdad.transforms.forward.lanes import lanes_type
from fwdad.transforms.forward.placing import NotPlacedError, OnlyPlaced, Placer
from fwdad.transforms.forward.slots import View

PushedPrograms = dict[Any, Program]  # by program, number of tangents and which parameters have some


class State:
    """The values of a block, and what stands for them on the tape that is recorded.

    ``activity`` is that of the block, ``dense`` the memory whose tangents are not kept by places,
    ``programs`` are the called programs that have been pushed forward. ``contents`` tells what
    indices from outside are, and lets no lanes be written out.

    Attributes
    ----------
    primal, tangent : dict
        A value's primal, and its tangent if that is neither zero nor in a shadow.
    shadow, views : dict
        The shadows of arrays, as lanes or in slots.
    written : set of Value
        The memory that the block writes.
    shadowed : set of Value
        That of it which is active, and what a name may be instead of it: it has shadows from its
        beginning.
    missing : set of Value
        What is undefined on some way, and has no lengths there.
    op : Op or None
        The operation that is being pushed forward.
    """

    def __init__(
        self,
        recorder: Recorder,
        block: Block,
        n: int,
        activity: Activity,
        dense: set[Value],
        programs: PushedPrograms,
        *,
        contents: Contents | None = None,
    ) -> None:
        self.recorder = recorder
        self.block = block
        self.n = n
        self.activity = activity
        self.dense = dense
        self.programs = programs
        self.written = {r for op in walk(block) for v in op.writes() for r in self.roots(v)}
        self.missing = missing_on_some_way(Program("", block))
        active = {r for r in self.written if activity.is_active(r)}
        self.shadowed = with_companions(active, activity.memory)
        self.primal: dict[Value, Symbol] = {}
        self.tangent: dict[Value, Any] = {}
        self.shadow: dict[Value, Symbol] = {}
        self.views: dict[Value, View] = {}
        self.placed = contents is not None
        self.placer = OnlyPlaced(recorder) if self.placed else Placer(recorder)
        self._indices = contents and KnownIndices(block, contents, self._stays, self._length)
        self.has_basis = False
        self._top = recorder.block
        self._origin: dict[Value, Value] = {}
        self.op: Op | None = None

    def roots(self, v: Value) -> set[Value]:
        """The memory that an array may be."""
        return self.activity.memory.get(v, {v})

    def is_written(self, value: Value) -> bool:
        """Whether an array is memory that the block writes, or a view that a rule takes of it."""
        origins = {
            self._origin[v] for v in self.recorder.definitions.owners(value) if v in self._origin
        }
        return any(self.roots(v) & self.written for v in origins)

    def lanes_type(self, t: Type) -> ArrayType:
        """The type of the lanes of a value."""
        return lanes_type(t, self.n)

    def shape(self, t: Type) -> tuple[Any, ...]:
        """The shape of a type, with unknown lengths as :class:`Length`."""
        return tuple(self.recorder.static_length(d) for d in t.shape)

    def fresh(self, v: Value) -> Value:
        """A value of the tape that stands for one of the block."""
        value = Value(v.type, v.name)
        self.stand_for(v, Symbol(value, self.recorder))
        self.recorder.lengths.measure(value, absent=v in self.missing)
        return value

    def stand_for(self, v: Value, symbol: Symbol) -> None:
        """Let a symbol stand for a value of the block."""
        self.primal[v] = symbol
        self._origin[symbol.value] = v

    def here(self, v: Value) -> Symbol:
        """A value's primal; a value from outside is itself."""
        primal = self.primal.get(v)
        return primal if primal is not None else Symbol(v, self.recorder)

    def operand(self, operand: Operand) -> Operand:
        """A structure of operands on the tape."""
        return map_values(lambda v: self.here(v).value, operand)

    def symbols(self, operand: Operand) -> Any:
        """The same as symbols."""
        return map_values(self.here, operand)

    def copy(self, op: Op) -> None:
        """Record the operation itself, on the primals."""
        outputs = tuple(self.fresh(v) for v in op.outputs)
        fields = {k: v for k, v in vars(op).items() if k not in ("outputs", "location")}
        copied = type(op)(**fields, outputs=outputs, location=op.location)
        copied.replace(lambda v: self.here(v).value)
        self.recorder.block.ops.append(copied)

    # -- what is known

    def _stays(self, v: Value) -> bool:
        return self.written.isdisjoint(self.roots(v)) if is_array(v) else True

    def _length(self, d: Any) -> Any:
        return self.recorder.static_length(d)

    def known_index(self, index: tuple[Operand, ...]) -> tuple[Any, ...] | None:
        """An index as numbers and arrays, if all of it is known; None elsewhere.

        With places, what is read from outside is known where the tape may assume it.
        """
        if self._indices is not None:
            return self._indices.of(index)
        symbols = self.symbols(index)
        return symbols if is_fixed(symbols) else None

    def know_lengths(self, op: Apply) -> None:
        """Note the lengths of a new or reshaped array, where they follow from what is known."""
        if self._indices is None or len(op.outputs) != 1 or not is_array(op.outputs[0]):
            return
        (v,), record = op.outputs, record_of(op.function)
        shape = self.shape(v.type)
        if all(type(m) is int for m in shape):
            return
        by_elements = isinstance(record.stands_for or op.function, np.ufunc)
        if by_elements or record.fill is not None or record.mirrored:
            found = self._indices.shape_of(op)
            if found is not None:
                self.recorder.lengths.know(v.type, found)

    def symbols_or_known(self, operand: Operand) -> Any:
        """A structure of operands as symbols, but as arrays where indices are known."""
        if self._indices is None:
            return self.symbols(operand)
        known = self._indices

        def found(v: Value) -> Any:
            value = known.get(v)
            return self.here(v) if value is None else value

        return map_values(found, operand)

    # -- what has a tangent

    def is_active(self, x: Operand) -> bool:
        """Whether an operand is a value whose tangent is not structurally zero."""
        return isinstance(x, Value) and (x in self.tangent or self.has_shadow(x))

    def has_shadow(self, v: Value) -> bool:
        """Whether the shadow of an array is there, as lanes or in slots."""
        return v in self.shadow or v in self.views

    def has_lanes(self, a: Value) -> bool:
        """Whether an array, or memory that it views, has a tangent, which a store replaces."""
        return a in self.tangent or any(root in self.tangent for root in self.roots(a))

    def is_nested(self) -> bool:
        """Whether the open block may run several times, or not at all."""
        return self.recorder.block is not self._top

    def is_shadowed(self, v: Value) -> bool:
        """Whether an array's memory has shadows: active values may be stored into it."""
        return is_array(v) and not self.shadowed.isdisjoint(self.roots(v))

    def refuse_unpredicted(self, x: Operand) -> None:
        """Raise if a value has a tangent where the activity analysis left no room for one."""
        if self.is_active(x):
            message = "a derivative appears where the activity analysis expects none"
            raise UntraceableError(message, self.op.location if self.op is not None else None)

    def must_be_dense(self, v: Value) -> NoReturn:
        """Give up places for the tangent of some memory."""
        raise NotPlacedError(self.roots(v))
