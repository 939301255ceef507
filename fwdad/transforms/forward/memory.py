"""Forward mode of memory: loads, stores and views act on shadow lanes, too."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fwdad.eager.lifting.rule_bodies import written_down
from fwdad.errors import UntraceableError
from fwdad.ir.analysis.alias import aliased_arguments, is_rearranged
from fwdad.ir.analysis.layout import Order, Orders, order_of
from fwdad.ir.leaves import Leaves
from fwdad.ir.ops import (
    Apply,
    Load,
    Operand,
    Program,
    Store,
    Update,
    Value,
    is_array,
    type_of_operand,
    values_in,
    walk,
)
from fwdad.ir.primitives.scatter_add import is_scatter, scattered, subtracts, target_of
from fwdad.ir.primitives.stacks import new_stack, push, stack_type, thin
from fwdad.ir.primitives.view_mirrors import give_back, is_view, view_or_copy, view_or_zeros
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import BOOL, ArrayType, Number, Type
from fwdad.ops import record_of
from fwdad.rules.core.registry import find_rule, function_name
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import Lanes
from fwdad.tangents.zero import ZERO
from fwdad.transforms.forward.indexing import Indexing, alignable
from fwdad.transforms.forward.lanes import load_lanes
from fwdad.transforms.forward.rule_table import ruled_function
from fwdad.transforms.forward.shadows import Shadows
from fwdad.transforms.forward.state import State
from fwdad.transforms.forward.tangents import Tangents
from fwdad.transforms.forward.views import ViewTangents


class Memory:
    """Pushes loads, stores and views forward."""

    def __init__(
        self,
        state: State,
        tangents: Tangents,
        shadows: Shadows,
        indexing: Indexing,
        view_tangents: ViewTangents,
    ) -> None:
        self.state = state
        self.tangents = tangents
        self.shadows = shadows
        self.indexing = indexing
        self.view_tangents = view_tangents
        self.recorder = state.recorder
        self.n = state.n
        self._known_orders: dict[bool, Orders] = {}

    def look_through(self, op: Apply) -> None:
        """Mirror a view of memory that has shadows on the shadows."""
        aliased = [v for o in aliased_arguments(op) for v in values_in(o)]
        with_shadows = [v for v in aliased if self.state.has_shadow(v)]
        if not with_shadows or not any(is_array(v) for v in op.outputs):
            return
        if self._reads_in_memory_order(op, with_shadows[0]):  # that of lanes is another
            self._refuse_later_writes(op)
            return
        if (
            with_shadows[0] in self.state.views
            and record_of(op.function).mirrored
            and len(op.outputs) == 1
        ):
            if self._may_copy(op, with_shadows[0], rows=self.recorder.rows):
                self.state.must_be_dense(with_shadows[0])
            self.view_tangents.through(op, with_shadows[0])
            if self._may_copy(op, with_shadows[0]):
                self._is_view(op, with_shadows[0])
            return
        mirrored: list[Symbol] = []
        if record_of(op.function).mirrored or is_rearranged(op):
            if with_shadows[0] in self.state.views:
                self.state.must_be_dense(with_shadows[0])
            mirrored = self._mirrored(op, with_shadows[0])
            if len(mirrored) == 1 and self._may_copy(op, with_shadows[0]):
                mirrored = [self._beside(op, with_shadows[0], *mirrored)]
        elif self.chooses_by_memory(op):
            mirrored = [self._as_that_one(op)]
        if len(mirrored) == len(op.outputs):
            for v, lanes in zip(op.outputs, mirrored, strict=True):
                self.state.tangent.pop(v, None)
                self.state.shadow[v] = lanes
                # its lengths are v's
                lanes.value.type = self.state.lanes_type(self.state.here(v).type)
            return
        self._refuse_later_writes(op)

    def chooses_by_memory(self, op: Apply) -> bool:
        """Whether an operation returns one array or another by whose memory they are.

        Its lanes are chosen by :meth:`look_through`: a rule would be given copies.
        """
        chooses = op.function in (view_or_zeros, view_or_copy)
        return chooses and self.state.has_shadow(op.args[0]) and self._is_written_later(op)

    def _reads_in_memory_order(self, op: Apply, a: Value) -> bool:
        """Whether elements come in the order of memory that may not be C-contiguous."""
        if not record_of(op.function).reads_in_order or order_of(op) not in ("K", "A"):
            return False
        return self._orders(self.recorder.rows).of(a) is not Order.ROWS

    def _refuse_later_writes(self, op: Apply) -> None:
        """Raise if memory is written later of which a view has no lanes that are one, too."""
        called = op.function.function if isinstance(op.function, Leaves) else op.function
        library = (getattr(called, "__module__", None) or "").split(".")[0]
        if library == "numpy" and self._is_written_later(op):
            message = (
                f"{function_name(called)} may return a view of an array that is written later, and "
                "that carries derivatives: call it on a .copy(), or write the array before"
            )
            raise UntraceableError(message, op.location)

    def _may_copy(self, op: Apply, a: Value, *, rows: bool = False) -> bool:
        """Whether a reshape may copy, depending on memory layout, and it makes a difference."""
        if op.function not in (np.reshape, np.ravel) or not self._is_written_later(op):
            return False
        return order_of(op) != "C" or self._orders(rows).of(a) is not Order.ROWS

    def _orders(self, rows: bool) -> Orders:
        """The layouts of the block's arrays, with or without C-contiguous arguments."""
        if rows not in self._known_orders:
            self._known_orders[rows] = Orders(Program("", self.state.block, rows=rows))
        return self._known_orders[rows]

    def _beside(self, op: Apply, a: Value, lanes: Symbol) -> Symbol:
        """The lanes of a reshape, which are a view where the reshape is one."""
        (v,) = op.outputs
        args = (lanes, self.state.shadow[a], self.state.here(v), self.state.here(a))
        return self.recorder.apply_typed(view_or_copy, args, lanes.type)

    def _as_that_one(self, op: Apply) -> Symbol:
        """The lanes of a cotangent, or of lanes: a view where these are one."""
        first, held, *alike = op.args
        self._are_dense(first, held)
        shadows = tuple(self.state.shadow[v] for v in (first, held))
        args = (*shadows, *self.state.symbols(tuple(alike)))
        return self.recorder.apply_typed(op.function, args, shadows[0].type)

    def _give_back(self, op: Apply) -> None:
        """Push the addition of a copy's cotangent to that of its source forward."""
        held, own, order = op.args
        self.shadows.require(held, self.tangents.of(own))
        self.state.copy(op)
        if self.state.has_shadow(held) and self.state.has_shadow(own):
            self._are_dense(held, own)
            args = (self.state.shadow[held], self.state.shadow[own], order, True)
            self.recorder.mutate(give_back, args, {})

    def _are_dense(self, *arrays: Value) -> None:
        """Give up the places of tangents, where they have such."""
        for v in arrays:
            if v in self.state.views:
                self.state.must_be_dense(v)

    def _is_view(self, op: Apply, a: Value) -> None:
        """Record a check that a reshape is a view, which tangents in slots rely on."""
        (v,) = op.outputs
        flag = self.recorder.apply_typed(is_view, (self.state.here(v), self.state.here(a)), BOOL)
        message = (
            f"{function_name(op.function)} returns a copy of an array that is not C-contiguous, "
            "and it is written: derivatives by a tape would be wrong. Call it on a .copy()"
        )
        self.recorder.check(flag, ValueError, (message,), op.location)

    def _mirrored(self, op: Apply, a: Value) -> list[Symbol]:
        """The same views of the shadow; empty if they are unknown."""
        shadow = Chunk.of(self.n, self.state.shape(a.type), {Lanes(self.state.shadow[a]): None})
        if record_of(op.function).passes:
            dots = [shadow] if len(op.args) == 1 and not op.kwargs else []
        elif op.function is np.broadcast_to:
            dots = [shadow.broadcast_to(self.state.shape(op.outputs[0].type))]
        else:
            rule = find_rule(ruled_function(op))
            place = 1 if is_rearranged(op) else 0
            if rule is None or op.args[place] is not a:
                return []
            bound, options = rule.binder.bind(*self.state.symbols((op.args, op.kwargs)))
            if record_of(op.function).reads_in_order and order_of(op) in ("K", "A"):
                options = {**options, "order": "C"}  # of memory that is C-contiguous
            tangents = [shadow if k == place else ZERO for k in range(len(bound))]
            dots = written_down(rule, rule.body)(bound, tuple(tangents), **options)[1]
            dots = list(dots) if isinstance(dots, (tuple, list)) else [dots]
        views = []
        for t in dots:
            if not isinstance(t, Chunk) or len(t.terms) != 1:
                return []
            ((lanes, d),) = t.terms.items()
            if d is not None or type(lanes.array) is not Symbol or lanes.array.ndim != t.ndim + 1:
                return []
            views.append(lanes.array)
        return views

    def _is_written_later(self, op: Apply) -> bool:
        """Whether memory that the results of an operation may alias is written after it."""
        roots = set().union(*(self.state.roots(v) for v in op.outputs))
        after = False
        for outer in self.state.block.ops:
            inside = [outer, *(inner for block in outer.blocks() for inner in walk(block))]
            here = op in inside
            for inner in inside:
                if (after or (here and len(inside) > 1)) and any(
                    self.state.roots(v) & roots for v in inner.writes()
                ):
                    return True
            after = after or here
        return False

    def _scatter(self, op: Apply) -> None:
        """``np.add.at``, which adds the lanes in the same way."""
        target: Any = target_of(op)
        t = self.tangents.of(scattered(op))
        array = target.array
        self.shadows.require(array, t)
        if array in self.state.views:
            self.view_tangents.scatter(op, target, -t if subtracts(op) else t)
            return
        self.state.copy(op)
        if array in self.state.shadow and isinstance(t, Chunk):
            index = tuple(self.state.symbols(i) for i in target.at)
            alignable(index)
            lanes = self._aligned(t, array.type, target.at)
            at = (slice(None), *index)
            self.recorder.mutate(op.function, (self.state.shadow[array], at, lanes), {})

    def mutate(self, op: Apply, *, active: bool) -> None:
        """Push a call forward that writes into an argument."""
        if is_scatter(op):
            self._scatter(op)
            return
        if op.function is give_back:
            self._give_back(op)
            return
        if active:
            message = (
                f"{function_name(op.function)} writes into an array whose values carry "
                "derivatives: that cannot be pushed through a tape. Write it as an assignment"
            )
            raise UntraceableError(message, op.location)
        self.state.copy(op)

    def stack(self, op: Apply) -> None:
        """Mirror a stack operation on the stack of lanes, if active values are on the stack."""
        self.state.copy(op)
        if op.function is new_stack:
            (stack,) = op.outputs
            if stack in self.state.shadowed:
                made = self.recorder.apply_typed(new_stack, (), stack_type(stack.type))
                self.state.shadow[stack] = made
            return
        stack = op.args[0]
        if op.function is push:
            x = op.args[1]
            if stack not in self.state.shadowed:
                self.state.refuse_unpredicted(x)
                return
            t = type_of_operand(x)
            lanes = self.tangents.lanes(x, t)
            self.recorder.mutate(push, (self.state.shadow[stack], lanes), {})
        elif stack in self.state.shadow and op.function is thin:
            self.recorder.mutate(thin, (self.state.shadow[stack],), {})
        elif stack in self.state.shadow:
            (v,) = op.outputs
            lane = Value(self.state.lanes_type(v.type), f"{v.name}_dot" if v.name else None)
            beside = self.state.shadow[stack].value
            self.recorder.emit(Apply(op.function, (beside,), mutated=op.mutated, outputs=(lane,)))
            self.tangents.give_lanes(v, Symbol(lane, self.recorder))

    def load(self, op: Load) -> None:
        """Push a load forward: the same load of the lanes."""
        self.state.copy(op)
        (v,) = op.outputs
        index = tuple(self.state.symbols(i) for i in op.index)
        if op.array in self.state.shadow:
            shadow = self.state.shadow[op.array]
            if op.view:
                value = self.recorder.load(shadow, (slice(None), *index))
                value.value.type = ArrayType(
                    value.dtype, (self.n, *v.type.shape)
                )  # v's own lengths
                self.state.shadow[v] = value
            else:
                self.state.tangent[v] = self._read(shadow, index, v.type)
        elif op.array in self.state.views:
            self.view_tangents.load(op, index)
        elif op.array in self.state.tangent:
            known = self.state.known_index(op.index)
            chunk = self.indexing.indexed(self.state.tangent[op.array], index, v.type, known)
            if isinstance(chunk, Chunk):
                self.state.tangent[v] = chunk
        self.shadows.begin_outputs(op)  # what an index array gathers is memory, too

    def _read(self, shadow: Symbol, index: tuple[Any, ...], t: Type) -> Chunk:
        alignable(index)
        if isinstance(t, Number):
            lanes = self.recorder.apply_typed(
                load_lanes, (shadow, *index), ArrayType(shadow.dtype, (self.n,))
            )
            return Chunk.of(self.n, (), {Lanes(lanes): 1.0})
        lanes = self.recorder.load(shadow, (slice(None), *index))
        return Chunk.of(self.n, self.state.shape(t), {Lanes(lanes): None})

    def _written_lanes(self, op: Store | Update, t: Any) -> tuple[Symbol, tuple[Any, ...]] | None:
        """The lanes and the index that a write of a tangent affects; None if it is already done."""
        if isinstance(t, Chunk):
            op.check_derivatives_fit()
        self.shadows.require(op.array, t)
        if op.array in self.state.views:
            self.view_tangents.write(op, t if isinstance(t, Chunk) else None)
            return None
        if op.array not in self.state.shadow:
            self.state.copy(op)
            return None
        index = tuple(self.state.symbols(i) for i in op.index)
        alignable(index)
        return self.state.shadow[op.array], index

    def store(self, op: Store) -> None:
        """Push a store forward: the same store of the lanes."""
        t = self.tangents.of(op.value)
        written = self._written_lanes(op, t)
        if written is None:
            return
        shadow, index = written
        lanes: Any = 0.0
        if isinstance(t, Chunk):
            lanes = self._aligned(t, op.array.type, op.index)
            if lanes.dtype.kind == "c" and shadow.dtype.kind != "c":
                lanes = self.recorder.apply(np.real, (lanes,), {})
        self.state.copy(op)
        self.recorder.store(shadow, (slice(None), *index), lanes)

    def _aligned(self, t: Chunk, target: Type, index: tuple[Operand, ...]) -> Any:
        """Lanes that broadcast against an indexed array as the value itself does."""
        rank, along = target.ndim, 0  # `along`: the axes that index arrays leave together
        for i in index:
            if i is None:
                rank += 1
            elif i is not Ellipsis and not isinstance(i, slice):
                of = i.type if isinstance(i, Value) else np.asarray(i)
                mask = of.ndim if of.dtype.kind == "b" else 0
                rank -= mask or 1
                along = max(along, 1 if mask else of.ndim)
        rank += along
        missing = rank - len(t.shape)
        lanes = self.tangents.multiplied(t)
        if missing:  # NumPy drops leading axes of length one, too
            head = (slice(None), *((None,) * missing if missing > 0 else (0,) * -missing))
            lanes = self.recorder.load(self.recorder.as_symbol(lanes), head)
        return lanes

    def update(self, op: Update) -> None:
        """Push an update in place forward."""
        t = self.tangents.of(op.value)
        written = self._written_lanes(op, t)
        if written is None:
            return
        shadow, index = written
        at = (slice(None), *index)
        if op.function in (operator.add, operator.sub):
            if isinstance(t, Chunk):
                lanes = self._aligned(t, op.array.type, op.index)
                self.state.copy(op)
                self.recorder.update(shadow, at, op.function, lanes)
            else:
                self.state.copy(op)
            return
        old = self.view_tangents.old(op, index)
        y, y_dot = self.view_tangents.combined(op, old, self._read_any(shadow, index, old), t)
        lanes = y_dot.lanes
        self.recorder.store(self.state.here(op.array), index, y)
        self.recorder.store(shadow, at, lanes)

    def _read_any(self, shadow: Symbol, index: tuple[Any, ...], old: Symbol) -> Chunk:
        if not old.is_array:
            return self._read(shadow, index, old.type)
        lanes = self.recorder.load(shadow, (slice(None), *index))
        copy = self.recorder.apply(np.ndarray.copy, (lanes,), {})
        return Chunk.of(self.n, self.state.shape(old.type), {Lanes(copy): None})
