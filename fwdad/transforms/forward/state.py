"""The state of a forward pass over a block: primals, tangents, and shadows of memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from fwdad.ir.analysis.alias import memory_of
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Block, Op, Operand, Program, Value, is_array, map_values, walk
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType, Type
from fwdad.transforms.forward.lanes import lanes_type
from fwdad.transforms.forward.placing import Placer
from fwdad.transforms.forward.slots import View


class AgainError(Exception):
    """New facts were found, so that code recorded without them is invalid."""


class Facts:
    """What is found on the way, and needed from the start."""

    def __init__(self) -> None:
        self.shadowed: set[Value] = set()  # memory that active values are stored into
        self.dense: set[Value] = set()  # of that, what cannot be written place by place
        self.carried: set[tuple[int, int]] = set()  # (loop, position): active carried values
        self.programs: dict[Any, tuple[Program, tuple[bool, ...]]] = {}  # called, and pushed
        self.wider: dict[Any, tuple[bool, ...]] = {}  # what has lanes besides what is active


class State:
    """The values of a block, and what stands for them on the tape that is recorded.

    Attributes
    ----------
    primal, tangent : dict
        A value's primal, and its tangent if that is neither zero nor in a shadow.
    shadow, views : dict
        The shadows of arrays, as lanes or in slots.
    written : set of Value
        The memory that the block writes.
    op : Op or None
        The operation that is being pushed forward.
    """

    def __init__(
        self,
        recorder: Recorder,
        block: Block,
        n: int,
        facts: Facts,
        together: Sequence[int] = (),
    ) -> None:
        self.recorder = recorder
        self.block = block
        self.n = n
        self.facts = facts
        self._memory = memory_of(Program("", block, together=list(together)))
        self.written = {r for op in walk(block) for v in op.writes() for r in self.roots(v)}
        self.primal: dict[Value, Symbol] = {}
        self.tangent: dict[Value, Any] = {}
        self.shadow: dict[Value, Symbol] = {}
        self.views: dict[Value, View] = {}
        self.placer = Placer(recorder)
        self.has_basis = False
        self.again = False  # a fact is new: this attempt goes on, to find others, and is given up
        self._top = recorder.block
        self._origin: dict[Value, Value] = {}
        self.op: Op | None = None

    def roots(self, v: Value) -> set[Value]:
        """The memory that an array may be."""
        return self._memory.get(v, {v})

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
        self.recorder.lengths.measure(value)
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
        """Whether active values are stored into an array's memory."""
        return is_array(v) and bool(self.roots(v) & self.facts.shadowed)

    # -- facts

    def note(self, where: set[Any], facts: Iterable[Any]) -> None:
        """Note facts; if one is new, this attempt is not the last."""
        new = set(facts) - where
        where |= new
        self.again |= bool(new)

    def note_shadow(self, v: Value) -> None:
        """Note that active values are stored into an array, so that its memory needs shadows."""
        self.note(self.facts.shadowed, self.roots(v))

    def must_be_dense(self, v: Value) -> NoReturn:
        """Start again with dense lanes for memory whose tangent is not known by places."""
        if not self.again:  # else it may be so in this attempt only
            self.facts.dense |= self.roots(v)
        raise AgainError
