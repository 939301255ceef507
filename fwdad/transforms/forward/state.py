"""The state of a forward pass over a block: primals, tangents, and shadows of memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.ir.analysis.alias import memory_of
from fwdad.ir.analysis.layout import Orders
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import (
    Block,
    Missing,
    Op,
    Operand,
    Program,
    Value,
    is_array,
    map_values,
    values_in,
    walk,
)
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType, Number, Type
from fwdad.rules.core.partials import SINGLE, floating
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import Lanes
from fwdad.tangents.placed import NOWHERE, Placed
from fwdad.tangents.zero import ZERO, Undefined
from fwdad.transforms.forward.lanes import Basis, lanes_type, zero_lanes
from fwdad.transforms.forward.placing import Placer
from fwdad.transforms.forward.slots import Slots, View

_LISTED = 64  # lanes of a number that are written as a list


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
    """The values of the block, and what stands for them on the tape that is recorded."""

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
        program = Program("", block, together=list(together))
        self.memory = memory_of(program)
        self.written = {
            root for op in walk(block) for v in op.writes() for root in self.memory.get(v, {v})
        }
        recorder.is_written = self._is_written
        self.primal: dict[Value, Symbol] = {}
        self.tangent: dict[Value, Any] = {}
        self.shadow: dict[Value, Symbol] = {}
        self._known_orders: dict[bool, Orders] = {}
        self.views: dict[Value, View] = {}  # the shadows that are known by their places
        self.placer = Placer(recorder)
        self.has_basis = False
        self.again = False  # a fact is new: this attempt goes on, to find others, and is given up
        self._top = recorder.block
        self._origin: dict[Value, Value] = {}
        self._op: Op | None = None

    def _block(self, block: Block) -> None:
        """Push a block forward; the most derived class defines this."""
        raise NotImplementedError

    def _is_written(self, value: Value) -> bool:
        """Whether an array is memory that the block writes, or a view that a rule takes of it."""
        origins = {self._origin[v] for v in self.recorder.owners(value) if v in self._origin}
        return any(self.memory.get(v, {v}) & self.written for v in origins)

    def _lanes_type(self, t: Type) -> ArrayType:
        return lanes_type(t, self.n)

    def _fresh(self, v: Value) -> Value:
        made = Value(v.type, v.name)
        self.primal[v] = Symbol(made, self.recorder)
        self._origin[made] = v
        self.recorder.measure(made)
        return made

    def _here(self, v: Value) -> Symbol:
        """A value's primal; a value from outside is itself."""
        found = self.primal.get(v)
        return found if found is not None else Symbol(v, self.recorder)

    def _operand(self, operand: Operand) -> Operand:
        return map_values(lambda v: self._here(v).value, operand)

    def _symbols(self, operand: Operand) -> Any:
        return map_values(self._here, operand)

    def _basis(self, t: Type, seed: Basis) -> Any:
        self.has_basis = True
        size = int(np.prod(seed.shape, dtype=int))
        places = np.arange(size).reshape(seed.shape) - seed.start
        places = np.where((places >= 0) & (places < self.n), places, NOWHERE)
        if isinstance(t, Number):
            dtype = np.dtype(np.result_type(t.dtype, np.float16))
            held = Placed(self.n, places, dtype, self.placer)
            return Chunk.of(self.n, (), {held: 1.0}) if places >= 0 else ZERO
        lanes = Placed(self.n, places, t.dtype, self.placer)
        return Chunk.of(self.n, self._shape(t), {lanes: None})

    def _shape(self, t: Type) -> tuple[Any, ...]:
        return tuple(self.recorder.static_length(d) for d in t.shape)

    def _give_lanes(self, v: Value, lanes: Symbol, held: Lanes | None = None) -> None:
        """Make these lanes a value's tangent, or its shadow if the value is memory with shadows."""
        if self._is_shadowed(v):
            self.shadow[v] = lanes
        else:
            terms: dict[Any, Any] = {held or Lanes(lanes): None if is_array(v) else 1.0}
            self.tangent[v] = Chunk.of(self.n, self._shape(v.type), terms)

    def _hold(self, v: Value, lanes: Symbol) -> None:
        if self._is_shadowed(v):
            self._shadow_all(v)  # a store through v may be one into any of these arrays
            self.shadow[v] = lanes
        else:
            self._give_lanes(v, lanes)

    def _is_shadowed(self, v: Value) -> bool:
        return is_array(v) and bool(self.memory.get(v, {v}) & self.facts.shadowed)

    def _note(self, where: set[Any], facts: Iterable[Any]) -> None:
        """Note facts; if one is new, this attempt is not the last."""
        new = set(facts) - where
        where |= new
        self.again |= bool(new)

    def _shadow_all(self, v: Value) -> None:
        """Note that active values are stored into an array, so that its memory needs shadows."""
        self._note(self.facts.shadowed, self.memory.get(v, {v}))

    def _shadow_stored(self, v: Value) -> None:
        """The same when the store is reached, which also makes the shadow available."""
        self._shadow_all(v)
        if v not in self.shadow and v not in self.views:
            if self.again:
                self._begin_shadow(v)
                return
            message = "derivatives are stored into an array that has no memory for them"
            raise UntraceableError(message, self._op.location if self._op is not None else None)

    def _begin_shadow(self, v: Value) -> None:
        """Create the shadow of memory that active values will be stored into, from its tangent."""
        view = self._placed_shadow(v)
        if view is None:
            self.shadow[v] = self._materialised(v)
        else:
            self.views[v] = view
        self.tangent.pop(v, None)

    def _placed_shadow(self, v: Value) -> View | None:
        """A shadow known by its places, if there can be one."""
        shape = self._shape(v.type)
        if not self.has_basis or self.memory.get(v, {v}) != {v} or v in self.facts.dense:
            return None
        if self._is_nested() or not all(type(m) is int for m in shape):
            return None
        slots = Slots(self.recorder, self.n, shape, self._lanes_type(v.type).dtype, self.placer)
        view = View(slots)
        held = self.tangent.get(v)
        return view if held is None or view.store((Ellipsis,), held) else None

    def _is_nested(self) -> bool:
        """Whether the open block may run several times, or not at all."""
        return self.recorder.block is not self._top

    def _must_be_dense(self, v: Value) -> None:
        """Start again with dense lanes for memory whose tangent is not known by places."""
        if not self.again:  # else it may be so in this attempt only
            self.facts.dense |= self.memory.get(v, {v})
        raise AgainError

    def _has_lanes(self, a: Value) -> bool:
        """Whether an array, or memory that it views, has a tangent, which a store replaces."""
        return a in self.tangent or any(root in self.tangent for root in self.memory.get(a, {a}))

    def tangent_of(self, x: Operand) -> Any:
        """The tangent of an operand: a chunk, ZERO, or a list of these."""
        if isinstance(x, Value):
            if x in self.shadow:
                copy = self.recorder.apply(np.ndarray.copy, (self.shadow[x],), {})
                return Chunk.of(self.n, self._shape(x.type), {Lanes(copy): None})
            if x in self.views:
                return self.views[x].chunk()
            found = self.tangent.get(x, ZERO)
            if isinstance(found, Undefined):
                found.use()
            return found
        if isinstance(x, (list, tuple)) and any(self.is_active(v) for v in values_in(x)):
            return type(x)(self.tangent_of(item) for item in x)
        if isinstance(x, dict) and any(self.is_active(v) for v in values_in(x)):
            return {key: self.tangent_of(item) for key, item in x.items()}
        return ZERO

    def is_active(self, v: Value) -> bool:
        """Whether a value has a tangent that is not structurally zero."""
        return v in self.tangent or v in self.shadow or v in self.views

    def _activity(self, r: Operand) -> bool:
        return isinstance(r, Value) and self.is_active(r)

    def _materialised(self, v: Value) -> Symbol:
        """A value's lanes in memory of their own."""
        held = self.tangent.get(v)
        if held is None:
            return self.recorder.apply_typed(
                zero_lanes, (self.n, self._here(v)), self._lanes_type(v.type)
            )
        # of the array's own dtype: the tangent of `x + 0j` is real, until something is stored
        lanes = self._cast(self._multiplied(held), v.type)
        # a plain copy of what is broadcast is not C-contiguous, and its reshape is a copy
        lanes = self.recorder.apply(np.ascontiguousarray, (lanes,), {})
        return self.recorder.apply(np.array, (lanes,), {})

    def _lanes(self, x: Operand, t: Type) -> Any:
        """The lanes of an operand, multiplied out, for a type."""
        if isinstance(x, Value):
            if x in self.shadow:
                return self.shadow[x]
            if x in self.views:
                self._must_be_dense(x)
            if x in self.tangent:
                return self._cast(self._multiplied(self.tangent[x]), t)
        if isinstance(x, Missing):
            return Missing(self._lanes_type(t))
        if isinstance(t, Number):
            return self.recorder.apply(np.zeros, (self.n, self._lanes_type(t).dtype), {})
        like, made = self._symbols(x), self._lanes_type(t)
        if isinstance(x, Value):  # what a loop carries may have other lengths than it begins with
            made = ArrayType(made.dtype, (self.n, *like.type.shape))
        return self.recorder.apply_typed(zero_lanes, (self.n, like), made)

    def _cast(self, lanes: Any, t: Type) -> Any:
        """Lanes converted to the dtype of their value's type."""
        dtype = self._lanes_type(t).dtype
        if lanes.dtype.kind == "c" and dtype.kind != "c":
            lanes = self.recorder.apply(np.real, (lanes,), {})
        if lanes.dtype != dtype:
            lanes = self.recorder.apply(np.ndarray.astype, (lanes, dtype), {})
        return lanes

    def _multiplied(self, chunk: Chunk) -> Any:
        """A chunk's lanes, multiplied out, without making arrays of a number's unit directions."""
        hot = {held: d for held, d in chunk.terms.items() if held.lane >= 0}
        if chunk.shape or not hot or self.n > _LISTED:
            return chunk.lanes
        units: list[Any] = [0.0] * self.n
        for held, d in hot.items():
            units[held.lane] = self._coefficient(d)
        dtype = Chunk.of(chunk.n, (), hot).dtype
        single = {"dtype": dtype} if dtype in SINGLE else {}
        total = self.recorder.apply(np.array, (units,), single)
        rest = {held: d for held, d in chunk.terms.items() if held not in hot}
        return total + Chunk.of(chunk.n, (), rest).lanes if rest else total

    def _coefficient(self, d: Any) -> Any:
        """A scaling of a number's lanes, as a number."""
        if d is None:
            return 1.0
        return self.recorder.load(d, ()) if type(d) is Symbol and d.is_array else d

    def _result_lanes(self, r: Operand) -> Any:
        t = r.type if isinstance(r, Value) else None
        if t is None:
            return self.recorder.apply(np.zeros, (self.n,), {})
        if r in self.views:
            return self._cast(self.views[r].chunk(copy=False).lanes, t)
        return self._lanes(r, t)

    def _copy(self, op: Op, **changed: Any) -> None:
        """Record the operation itself, on the primals."""
        outputs = tuple(self._fresh(v) for v in op.outputs)
        fields = {k: v for k, v in vars(op).items() if k not in ("outputs", "location")}
        made = type(op)(**{**fields, **changed}, outputs=outputs, location=op.location)
        made.replace(lambda v: self._here(v).value)
        self.recorder.block.ops.append(made)

    def _settled(self, op: Op) -> None:
        """Create shadows for outputs whose memory has them."""
        for v in op.outputs:
            if self._is_shadowed(v) and v not in self.shadow and v not in self.views:
                self._begin_shadow(v)

    def _scaled(self, t: Chunk, d: Any, out: Type) -> Chunk:
        shape = self._shape(out)
        if type(d) is Symbol and d.is_array and self.recorder.is_written(d.value):
            d = self.recorder.apply(np.ndarray.copy, (d,), {})
        if type(d) is Symbol and out.dtype in SINGLE:
            dtype = floating(d.dtype, out)
            d = d.astype(dtype) if d.dtype != dtype else d
        if isinstance(d, (int, float)) and d == 1:
            term = t
        else:
            # a scaling of one is no product
            terms = {lanes: None if _is_one(held) else held for lanes, held in t.terms.items()}
            unscaled = Chunk.of(t.n, t.shape, terms)
            array = type(d) is Symbol and d.is_array
            if array and broadcasts(d.shape, shape):  # parts are taken of it as of the value
                d = np.broadcast_to(d, shape)
            term = unscaled.scale_quietly(d, shape if array else t.shape)
        return term.broadcast_to(shape) if term.shape != shape else term


def broadcasts(lengths: tuple[Any, ...], shape: tuple[Any, ...]) -> bool:
    """Whether an array of these lengths is broadcast against a shape.

    Unknown lengths of arguments are at least two; those of their slices may be one.
    """
    if len(lengths) != len(shape):
        return True
    return any(
        m != n and (m == 1 if type(m) is int else m.may_be_one)
        for m, n in zip(lengths, shape, strict=True)
    )


def _is_one(d: Any) -> bool:
    return type(d) is float and d == 1.0
