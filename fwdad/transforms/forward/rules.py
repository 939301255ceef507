"""Forward mode of calls: by partials of elementwise rules, by rule bodies, or as opaque calls."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.eager.calls.missing import rule_to_write
from fwdad.eager.lifting.rule_bodies import written_down
from fwdad.errors import (
    DualLeakError,
    MissingRuleError,
    RuleError,
    UntraceableError,
    is_library_file,
)
from fwdad.ir.abstract_eval.rule_trials import check_lengths_of
from fwdad.ir.analysis.def_use import count_uses
from fwdad.ir.analysis.reassociation import hand_on
from fwdad.ir.ops import Apply, Value, is_array, values_in, walk
from fwdad.ir.primitives.broadcast_sums import sum_to
from fwdad.ir.primitives.opaque_call import Whole
from fwdad.ir.primitives.stacks import new_stack, pop, push, thin, top
from fwdad.ir.symbol import Length, Symbol
from fwdad.ir.types import ArrayType, Number, Type
from fwdad.ops import record_of
from fwdad.rules.core.containers import rebuild
from fwdad.rules.core.contract import checked, option_is_active, view_is_written
from fwdad.rules.core.registry import find_rule, function_name
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import Lanes
from fwdad.tangents.placed import KnownPlaces
from fwdad.tangents.scaling import scale_lanes
from fwdad.tangents.scattered import gathered, stays_placed, summed_to
from fwdad.tangents.sparse import sparse_product
from fwdad.tangents.zero import ZERO, Undefined, Zero
from fwdad.transforms.forward.entries import place_entries, pushed_entries
from fwdad.transforms.forward.indexing import Indexing
from fwdad.transforms.forward.lanes import load_lanes
from fwdad.transforms.forward.memory import Memory
from fwdad.transforms.forward.opaque_call import PushWhole
from fwdad.transforms.forward.placing import NotPlacedError, place_lanes, pushed_places
from fwdad.transforms.forward.rule_table import ruled_function
from fwdad.transforms.forward.shadows import Shadows
from fwdad.transforms.forward.sparse_products import pushed_product
from fwdad.transforms.forward.state import State
from fwdad.transforms.forward.tangents import Tangents
from fwdad.transforms.integer_derivatives import check_derivatives_fit
from fwdad.transforms.partials import partials_of


class _Wanted(Lanes):
    """Lanes that a rule returns, which note their first use in the rule's ``wanted``."""

    __slots__ = ("_index", "_push")

    def __init__(self, array: Any, push: PushWhole, index: int) -> None:
        super().__init__(array)
        self._push = push
        self._index = index

    @property
    def array(self) -> Any:
        """The lanes."""
        self._push.wanted.add(self._index)
        return self._array


_TERMS = 4  # lanes that a number's tangent may be a sum of, if they are no unit directions


def _by_elements(op: Apply) -> bool:
    rule = find_rule(ruled_function(op))
    return rule is not None and rule.kind == "elementwise"


class Rules:
    """Pushes calls of functions forward."""

    def __init__(
        self,
        state: State,
        tangents: Tangents,
        shadows: Shadows,
        indexing: Indexing,
        memory: Memory,
    ) -> None:
        self.state = state
        self.tangents = tangents
        self.shadows = shadows
        self.indexing = indexing
        self.memory = memory
        self.recorder = state.recorder
        self.n = state.n
        self._uses = count_uses(state.block)
        calls = (op for op in walk(state.block) if isinstance(op, Apply) and not _by_elements(op))
        self._used_whole = {v for op in calls for v in values_in(op.operands())}

    def push(self, op: Apply) -> None:
        """Push a call forward."""
        active = any(self.state.is_active(v) for o in op.operands() for v in values_in(o))
        block, first = self.recorder.block, len(self.recorder.block.ops)
        if op.function in (new_stack, push, pop, top, thin):
            self.memory.stack(op)
            return
        self.state.know_lengths(op)
        check_derivatives_fit(op, self.state.is_active)
        if op.mutated:
            self.memory.mutate(op, active=active)
            return
        copies = not active or record_of(op.function).constant or not _has_tangent(op)
        if copies or self.memory.chooses_by_memory(op):
            self.state.copy(op)
        elif record_of(op.function).gathers and isinstance(op.args[0], (list, tuple)):
            self._gather(op)
        elif record_of(op.function).passes or _is_number_class(op.function):
            self._convert(op)
        else:
            self._refuse_written_view(op)
            self._by_rule(op)
            self._bound_terms(op)
        self.memory.look_through(op)
        self.shadows.begin_outputs(op)
        hand_on(op, block.ops[first:])

    def _refuse_written_view(self, op: Apply) -> None:
        """Refuse a user's function that may return a view of memory that is written."""
        rule = find_rule(ruled_function(op))
        if rule is None or not rule.of_user or rule.returns == "new":
            return
        if any(self.state.roots(v) & self.state.written for v in op.outputs if is_array(v)):
            raise UntraceableError(view_is_written(rule), op.location)

    def _bound_terms(self, op: Apply) -> None:
        """Multiply out a number's tangent that is a sum of many lanes, and a reduced array's.

        All that follows scales each term, for each use: a loop that pops many numbers would become
        ten times as long. Uses of an array element by element share one loop in compiled code, but
        a reduction beside them would add up the products once more.
        """
        for v in op.outputs:
            tangent = self.state.tangent.get(v)
            if not isinstance(tangent, Chunk):
                continue
            free = sum(
                not isinstance(lanes, KnownPlaces) and lanes.lane < 0 for lanes in tangent.terms
            )
            if tangent.shape:
                scaled = any(d is not None and np.ndim(d) for d in tangent.terms.values())
                apart = self._uses[v] > 1 and v in self._used_whole
                wanted = apart and scaled and free == len(tangent.terms) > 1
            else:
                wanted = free > max(_TERMS, self.n)
            if wanted:
                lanes = Lanes(self.tangents.multiplied(tangent))
                scaling = None if tangent.shape else 1.0
                self.state.tangent[v] = Chunk.of(self.n, tangent.shape, {lanes: scaling})

    def _convert(self, op: Apply) -> None:
        self.state.copy(op)
        (v,) = op.outputs
        chunk = self.tangents.of(op.args[0])
        if op.function is complex and len(op.args) == 2:
            chunk = chunk + self.tangents.of(op.args[1]) * 1j
        if isinstance(v.type, Number) and chunk.shape:
            chunk = self.indexing.indexed(chunk, (0,) * len(chunk.shape), v.type)
            if isinstance(chunk, Zero):
                return
        if v.type.dtype.kind != "c" and chunk.dtype.kind == "c":
            chunk = chunk.real
        self.state.tangent[v] = chunk

    def _gather(self, op: Apply) -> None:
        """``np.array([[a, b], [c, d]])`` of numbers and arrays, nested to any depth."""
        (v,) = op.outputs
        self.state.copy(op)
        n, shape = self.n, self.state.shape(v.type)
        parts = nested_parts(op.args[0], len(shape))
        if self.state.placed and all(type(m) is int for m in shape):
            tangents = [(at, self.tangents.of(p)) for at, p in parts]
            joined = gathered(shape, [(at, t) for at, t in tangents if isinstance(t, Chunk)])
            if joined is not None:
                self.state.tangent[v] = joined
                return
        lanes = self.recorder.apply(np.zeros, ((n, *shape), v.type.dtype), {})
        for at, p in parts:
            chunk = self.tangents.of(p)
            if not isinstance(chunk, Chunk):
                continue
            if all(held.lane >= 0 for held in chunk.terms):  # coefficients are the tangent
                for lane, d in self.tangents.by_lane(chunk.terms).items():
                    self.recorder.store(lanes, (lane, *at), d)
            else:
                self.recorder.store(lanes, (slice(None), *at), self.tangents.multiplied(chunk))
        self.state.tangent[v] = Chunk.of(n, shape, {Lanes(lanes): None})

    def _by_own_law(self, op: Apply, function: Any) -> bool:
        """Push ``ravel``, or what a transform writes, by its own law; whether there was one."""
        if function is np.ravel:
            order = op.kwargs.get("order", op.args[1] if len(op.args) > 1 else "C")
            if order in ("C", "F"):
                self._ravelled(op, order)
                return True
        elif function is np.broadcast_to:
            self.state.copy(op)
            (v,) = op.outputs
            shape = self.state.shape(v.type)
            self.state.tangent[v] = self.tangents.of(op.args[0]).broadcast_to(shape)
            return True
        elif function is load_lanes:
            self.state.copy(op)
            lanes, *index = op.args
            at = (slice(None), *(self.state.symbols(i) for i in index))
            found = self.indexing.indexed(self.tangents.of(lanes), at, op.outputs[0].type)
            self.state.tangent[op.outputs[0]] = found
            return True
        elif function is place_lanes:
            self.state.copy(op)
            dots = [self.tangents.of(d) for d in op.args[4:]]
            self.state.tangent[op.outputs[0]] = pushed_places(self.recorder, op.args[:4], dots)
            return True
        elif function is place_entries:
            self.state.copy(op)
            dots = [self.tangents.of(d) for d in op.args[3:]]
            found = pushed_entries(self.recorder, op.args, dots, self.n)
            self.state.tangent[op.outputs[0]] = found
            return True
        elif function is scale_lanes:
            self._elementwise(op, find_rule(np.multiply))
            return True
        elif function is sparse_product and self.state.placed:
            data, x, *of = self.state.symbols_or_known(op.args)
            found = pushed_product(data, x, *of, *map(self.tangents.of, op.args[:2]))
            if found is None:
                return False
            self.state.copy(op)
            self.state.tangent[op.outputs[0]] = found
            return True
        elif function is sum_to:
            self.state.copy(op)
            (v,), (_, *lengths) = op.outputs, self.state.symbols(op.args)
            t, shape = self.tangents.of(op.args[0]), self.state.shape(v.type)
            if stays_placed(t) and all(type(m) is int for m in shape):
                self.state.tangent[v] = summed_to(t, shape)
                return True
            args = (self.tangents.multiplied(t), self.n, *lengths)
            lanes = self.recorder.apply_typed(sum_to, args, self.state.lanes_type(v.type))
            self.state.tangent[v] = Chunk.of(self.n, shape, {Lanes(lanes): None})
            return True
        return False

    def _by_rule(self, op: Apply) -> None:
        function = ruled_function(op)
        if self._by_own_law(op, function):
            return
        rule = find_rule(function)
        if rule is None and (isinstance(function, Whole) or _has_source(function)):
            dots = tuple(self.tangents.of(a) for a in op.args)
            named = {key: self.tangents.of(a) for key, a in op.kwargs.items()}
            self._whole(op, None, (dots, named), "no frule")
            return
        if rule is None:
            message = (
                f"no frule for {function_name(op.function)}, which meets a value that carries a "
                f"derivative. {rule_to_write(op.function)}"
            )
            raise MissingRuleError(message, op.location)
        if rule.kind == "constant":
            self.state.copy(op)
            return
        if rule.kind == "elementwise":
            if len(op.args) > len(rule.partials) or op.kwargs:
                self._only_primals(op, rule)
            self._written_or_whole(op, rule, self._elementwise)
            return
        self._only_primals(op, rule)
        self._written_or_whole(op, rule, self._by_body)

    def _by_body(self, op: Apply, rule: Any) -> None:
        """Record what the body of a rule does."""
        dots, named = self._dots_of(op)
        bound, options = rule.binder.bind(*self.state.symbols_or_known((op.args, op.kwargs)))
        given, _ = rule.binder.bind(dots, named)
        result = written_down(rule, rule.body)(bound, tuple(_tangent(t) for t in given), **options)
        y, y_dot = checked(rule, result, bound, self.n)
        if stays_placed(y_dot):
            self.recorder.lengths.know(op.outputs[0].type, y_dot.shape)
            self.recorder.lengths.know(y.type, y_dot.shape)
        if rule.of_user:
            check_lengths_of(self.recorder, rule, y, y_dot, op.location)
        if rule.of_user and rule.returns == "new":
            y = self._own_memory(y, (op.args, op.kwargs))
        self._define(op.outputs, y, y_dot)

    def _own_memory(self, y: Any, given: Any) -> Any:
        """The values that a rule has returned, as new arrays: its function promises such."""
        before = {self.state.here(v).value for v in values_in(given)}

        def own(_path: Any, x: Any) -> Any:
            if (
                type(x) is Symbol
                and x.is_array
                and self.recorder.definitions.owners(x.value) & before
            ):
                return self.recorder.apply(np.ndarray.copy, (x,), {})
            return x

        return rebuild(y, own)

    def _dots_of(self, op: Apply) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The tangents of a call's arguments."""
        named = {key: self.tangents.of(a) for key, a in op.kwargs.items()}
        return tuple(self.tangents.of(a) for a in op.args), named

    def _written_or_whole(self, op: Apply, rule: Any, write: Callable[[Apply, Any], None]) -> None:
        """Record the operations of a rule, or one opaque call if its body cannot be recorded."""
        mark = len(self.recorder.block.ops), self.recorder.lengths.mark()
        try:
            write(op, rule)
        except (MissingRuleError, DualLeakError, RuleError, NotPlacedError):
            raise
        except Exception as error:  # noqa: BLE001  (whatever a rule's body raises on symbols)
            self._rewind(mark)
            self._whole(op, rule, self._dots_of(op), error)

    def _rewind(self, mark: tuple[int, Any]) -> None:
        """Remove what an attempt has written into the open block."""
        del self.recorder.block.ops[mark[0] :]
        self.recorder.lengths.forget(mark[1])

    def _only_primals(self, op: Apply, rule: Any) -> None:
        """Refuse derivatives in what the rule takes as an option."""
        _, options = rule.of_call(*self._dots_of(op))
        for name, t in options.items():
            if isinstance(t, (Chunk, Undefined)) or (
                isinstance(t, (list, tuple)) and any(isinstance(part, Chunk) for part in t)
            ):
                message = option_is_active(function_name(op.function), name)
                raise MissingRuleError(message, op.location)

    def _whole(
        self, op: Apply, rule: Any, dots: tuple[Any, dict[str, Any]], reason: Exception | str
    ) -> None:
        """Record one opaque call for a rule that cannot be recorded."""
        lanes: list[Any] = []

        def note(t: Any) -> Any:
            if isinstance(t, Chunk):
                lanes.append(self.recorder.operand(self.tangents.multiplied(t)))
                return True
            if isinstance(t, dict):
                return {key: note(item) for key, item in t.items()}
            if isinstance(t, Undefined):
                t.use()
            return type(t)(note(item) for item in t) if isinstance(t, (list, tuple)) else False

        active = (note(dots[0]), note(dots[1]))
        function = ruled_function(op)
        push = PushWhole(function, rule, self.n, active, [v.type for v in op.outputs])
        push.because(reason, op.location)
        if record_of(op.function).may_be_view:  # what may be a view of an argument stays one
            self.state.copy(op)
            values = tuple(Value(v.type) for v in op.outputs)
        else:
            values = tuple(self.state.fresh(v) for v in op.outputs)
        lanes_of_outputs = []
        for k, v in enumerate(op.outputs):
            if v.type.dtype.kind in "fc":
                value = Value(self.state.lanes_type(v.type), f"{v.name}_dot" if v.name else None)
                lanes_of_outputs.append(value)
                lanes_of_v = Symbol(value, self.recorder)
                self.tangents.give_lanes(v, lanes_of_v, _Wanted(lanes_of_v, push, k))
        args = (self.state.operand(op.args), tuple(lanes))
        kwargs = {key: self.state.operand(a) for key, a in op.kwargs.items()}
        self.recorder.emit(Apply(push, args, kwargs, outputs=(*values, *lanes_of_outputs)))

    def _ravelled(self, op: Apply, order: str) -> None:
        self.state.copy(op)
        (v,) = op.outputs
        lanes = self.tangents.of(op.args[0]).reshape(-1, order=order)
        _retype(lanes, v)
        self.state.tangent[v] = Chunk.of(self.n, self.state.shape(v.type), lanes.terms)

    def _as_python(self, y: Symbol, wanted: Type) -> Symbol:
        """A NumPy number, as rules return it, as a Python number of the same dtype."""
        if not (isinstance(wanted, Number) and wanted.python and isinstance(y.type, Number)):
            return y
        convert = {"f": float, "c": complex}.get(wanted.dtype.kind)
        if convert is None or y.type.python or y.type.dtype != wanted.dtype:
            return y
        return self.recorder.apply(convert, (y,), {})

    def _define(self, outputs: tuple[Value, ...], y: Any, y_dot: Any) -> None:
        """Take what a rule returned as the primals and tangents of the outputs."""
        values = list(y) if isinstance(y, (tuple, list)) else [y]
        dots = list(y_dot) if isinstance(y_dot, (tuple, list)) else [y_dot] * len(values)
        dots = [t for p, t in zip(values, dots, strict=True) if p is not None]
        values = [p for p in values if p is not None]
        for v, p, t in zip(outputs, values, dots, strict=True):
            symbol = self._as_python(self.recorder.as_symbol(p), v.type)
            if not _agrees(symbol, v.type) or not _fits(getattr(t, "shape", v.type.shape), v.type):
                message = f"a rule returns a {symbol.type} where a {v.type} is expected"
                raise UntraceableError(message)
            if symbol.value.name is None:
                symbol.value.name = v.name
            if isinstance(v.type, ArrayType):
                symbol.value.type = v.type
                self.recorder.lengths.measure(symbol.value)
            self.state.stand_for(v, symbol)
            if isinstance(t, Chunk):
                _retype(t, v)
                t = Chunk.of(t.n, self.state.shape(v.type), t.terms)
            if isinstance(t, (Chunk, Undefined)):
                self.state.tangent[v] = t

    def _elementwise(self, op: Apply, rule: Any) -> None:
        self.state.copy(op)
        (v,) = op.outputs
        y_dot: Any = ZERO

        def moves(a: Any) -> bool:
            return not isinstance(self.tangents.of(a), Zero)

        for a, d in partials_of(op, rule, self.state.symbols, moves).items():
            y_dot = y_dot + self.tangents.scaled(self.tangents.of(a), d, v.type)
        if not isinstance(y_dot, Zero):
            self.state.tangent[v] = y_dot


def nested_parts(parts: Any, ndim: int) -> list[tuple[tuple[int, ...], Any]]:
    """The items of nested lists, each with its index in the array made of them, of rank ndim."""
    items: list[tuple[tuple[int, ...], Any]] = []

    def look(part: Any, at: tuple[int, ...]) -> None:
        if isinstance(part, (list, tuple)):
            for k, item in enumerate(part):
                look(item, (*at, k))
        else:
            rank = part.type.ndim if isinstance(part, Value) else np.ndim(part)
            items.append(((*(0,) * (ndim - len(at) - rank), *at), part))  # zeros for `ndmin`

    look(parts, ())
    return items


def _has_tangent(op: Apply) -> bool:
    """Whether an output has a tangent space."""
    return any(v.type.dtype.kind in "fc" for v in op.outputs)


def _tangent(t: Any) -> Any:
    """The tangent that a rule gets; ``ZERO`` for defaults of omitted parameters."""
    return t if isinstance(t, (Chunk, Zero, list, tuple, dict)) else ZERO


def _agrees(symbol: Symbol, t: Type) -> bool:
    """Whether a symbol has the type that a value was traced with."""
    found_type = symbol.type
    same = isinstance(found_type, Number) == isinstance(t, Number) and found_type.dtype == t.dtype
    python = getattr(found_type, "python", None) == getattr(t, "python", None)
    return same and python and _fits(found_type.shape, t)


def _fits(shape: tuple[Any, ...], t: Type) -> bool:
    """Whether a shape may be that of a type: known lengths agree."""
    pairs = zip(shape, t.shape, strict=False)
    known = [(m, n) for m, n in pairs if isinstance(m, int) and isinstance(n, int)]
    return len(shape) == t.ndim and all(m == n for m, n in known)


def _retype(t: Chunk, v: Value) -> None:
    """Give lanes the lengths of their value's type, where these are equal."""
    for lanes in t.terms:
        if not isinstance(lanes, KnownPlaces) and type(lanes.array) is Symbol:
            value = lanes.array.value
            n, *dims = value.type.shape
            if len(dims) == v.type.ndim == len(t.shape):
                sizes: tuple[Any, ...] = t.shape
                shape = [
                    own if isinstance(s, Length) and s.size is d else d
                    for d, own, s in zip(dims, v.type.shape, sizes, strict=True)
                ]
                value.type = ArrayType(value.type.dtype, (n, *shape))


def _has_source(function: Any) -> bool:
    """Whether a library function without a rule is Python code that the builder can process."""
    inner = getattr(function, "_implementation", function)
    return isinstance(inner, types.FunctionType) and is_library_file(inner.__code__.co_filename)


def _is_number_class(f: Any) -> bool:
    return isinstance(f, type) and issubclass(f, (np.floating, np.complexfloating))
