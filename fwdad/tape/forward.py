"""Forward mode on a tape: the same frules, recorded; N tangents travel beside every value.

A tangent is a :class:`Chunk` whose lanes and scalings are symbols, so scalings stay deferred here
too: a chain of elementwise operations becomes one product with the lanes. What crosses the border
of a loop or branch is multiplied out. Arrays that active values are stored into have shadow lanes,
``(N, *shape)``, whose views mirror theirs.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.errors import DualLeakError, MissingRuleError, UntraceableError, is_library_file
from fwdad.rules.registry import find_rule, function_name
from fwdad.tangents.chunk import Chunk, scale_lanes
from fwdad.tangents.lanes import Lanes, basis_lanes, hot_lanes
from fwdad.tangents.zero import ZERO, Undefined, Zero
from fwdad.tape import infer
from fwdad.tape.alias import memory_of, windows, written_parameters
from fwdad.tape.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Check,
    Leaves,
    Load,
    Loop,
    Missing,
    Op,
    Operand,
    Program,
    Store,
    Update,
    Value,
    is_array,
    map_values,
    values_in,
    walk,
)
from fwdad.tape.recorder import Recorder
from fwdad.tape.symbol import Length, Symbol
from fwdad.tape.types import ArrayType, Number, Type
from fwdad.tape.whole import PushWhole

# The operators of numbers and arrays have the rules of NumPy's ufuncs.
_RULE_OF: dict[Any, Callable[..., Any]] = {
    operator.add: np.add, operator.sub: np.subtract, operator.mul: np.multiply,
    operator.truediv: np.true_divide, operator.floordiv: np.floor_divide,
    operator.mod: np.remainder, operator.pow: np.power, operator.matmul: np.matmul,
    operator.neg: np.negative, operator.pos: np.positive, abs: np.absolute,
    np.ndarray.flatten: np.ravel,
}  # fmt: skip
_CONSTANT = {
    bool, int, round, operator.not_, operator.lt, operator.le, operator.gt, operator.ge,
    operator.eq, operator.ne, operator.invert, operator.and_, operator.or_, operator.xor,
}  # fmt: skip
_GATHERING = {np.array, np.asarray}
# answer a window exactly where the same call on the lanes, which are laid out alike, answers one
_MIRRORED = {
    np.reshape, np.ravel, np.transpose, np.swapaxes, np.squeeze, np.expand_dims, np.moveaxis,
    np.broadcast_to, np.asarray, np.asanyarray, np.real, np.imag, np.diagonal, np.flip, np.flipud,
    np.fliplr, np.rot90, np.rollaxis, np.matrix_transpose, np.split, np.array_split,
    np.atleast_1d, np.atleast_2d,
}  # fmt: skip
# of one value
_PASSING = {
    float, complex, np.array, np.asarray, np.asanyarray, np.copy, np.ndarray.item, np.ndarray.copy,
    np.ascontiguousarray, np.asfortranarray,
}  # fmt: skip


# -- primitives of lanes, which backends may have their own way for


def zero_lanes(n: int, like: Any) -> Any:
    """Zero lanes for an array or number: ``(n, *like.shape)``."""
    return np.zeros((n, *np.shape(like)), np.result_type(like, np.float16))


def load_lanes(lanes: Any, *index: Any) -> Any:
    """The lanes of one element, a copy."""
    return lanes[(slice(None), *index)].copy()


def unit_lanes(n: int, k: int) -> Any:
    """The lanes of the k-th number of a basis: one in lane k, if there is one."""
    lanes = np.zeros(n)
    if 0 <= k < n:
        lanes[k] = 1.0
    return lanes


infer.BROADCASTING.add(scale_lanes)


@dataclass
class Basis:
    """A seed that is known beforehand: lane k is the unit direction of flat index start + k.

    Parameters
    ----------
    start : int
        The first index; it may be negative.
    shape : tuple of int
        The shape of the argument.
    """

    start: int
    shape: tuple[int, ...]


Seed = Basis | bool
"""How a parameter is seeded: by a basis, by lanes that are a parameter (True), or not at all."""


class _Wanted(Lanes):
    """Lanes that a rule answers by itself; it is told if somebody uses them."""

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


class _AgainError(Exception):
    """A fact has been found that earlier code was written without."""


class _Facts:
    """What is found on the way, and needed from the start."""

    def __init__(self) -> None:
        self.shadowed: set[Value] = set()  # memory that active values are stored into
        self.carried: set[tuple[int, int]] = set()  # (loop, position): active carried values
        self.programs: dict[Any, tuple[Program, tuple[bool, ...]]] = {}  # called, and pushed

    def note(self, where: set[Any], what: Any) -> None:
        """Note a fact, and start again if it is new."""
        if what not in where:
            where.add(what)
            raise _AgainError


def push_forward(program: Program, n: int, seeds: list[Seed]) -> tuple[Program, list[np.ndarray]]:
    """A program that pushes n tangents through another one.

    Parameters
    ----------
    program : Program
        Whose results are differentiated.
    n : int
        The number of lanes.
    seeds : list of Basis or bool
        For each parameter.

    Returns
    -------
    Program
        Its parameters are those of ``program``, the lanes of the parameters seeded by True, and
        constants; its results are those of ``program`` and then, for each, its lanes.
    list of ndarray
        The constants.

    Raises
    ------
    MissingRuleError
        If an active value meets a function without a rule.
    UntraceableError
        If a rule needs values to be known.
    """
    recorder = Recorder()
    constants: list[tuple[Value, np.ndarray]] = []

    def capture(a: np.ndarray) -> Symbol:
        for value, held in constants:
            if held is a:
                return Symbol(value, recorder)
        value = Value(ArrayType(a.dtype, a.shape))
        constants.append((value, a))
        return Symbol(value, recorder)

    recorder.capture = capture
    given, lanes_params = [], []
    for p, seed in zip(program.block.params, seeds, strict=True):
        made = Symbol(Value(p.type, p.name), recorder)
        recorder.measure(made.value)
        tangent: Any = ZERO
        if seed is True:
            tangent = Symbol(Value(lanes_type(p.type, n), f"{p.name or 'x'}_dot"), recorder)
            lanes_params.append(tangent.value)
        elif isinstance(seed, Basis):
            tangent = seed
        given.append((made, tangent))
    primals, lanes = push_block(recorder, program.block, n, given)
    block = recorder.block
    params = [symbol.value for symbol, _ in given]
    block.results = [recorder.operand(x) for x in (*primals, *lanes)]
    used = {v for op in walk(block) for v in values_in(op.operands())}
    used |= {v for inner in _blocks(block) for v in values_in(inner.results)}
    constants = [(v, a) for v, a in constants if v in used]  # not those of rules given up
    block.params = [*params, *lanes_params, *(v for v, _ in constants)]
    made_program = Program(f"{program.name}_pushforward", block, program.filename)
    made_program.quiet = True
    return made_program, [a for _, a in constants]


def _blocks(block: Block) -> list[Block]:
    """A block and the blocks inside it."""
    return [block, *(inner for op in walk(block) for inner in op.blocks())]


def push_block(
    recorder: Recorder,
    block: Block,
    n: int,
    given: list[tuple[Symbol, Any]],
    facts: _Facts | None = None,
) -> tuple[list[Any], list[Any]]:
    """Write a block with n tangents beside its values.

    Parameters
    ----------
    recorder : Recorder
        Where to write.
    block : Block
        What to differentiate; it may use values from outside, which are constants to it.
    n : int
        The number of lanes.
    given : list of (Symbol, tangent)
        For each parameter its value, and its tangent: lanes, a :class:`Basis`, or ``ZERO``.
    facts : optional
        Filled with what is found.

    Returns
    -------
    primals, lanes : list
        Of the block's results.
    """
    facts = facts or _Facts()
    place, is_written, ops = recorder.place, recorder.is_written, len(recorder.block.ops)
    recorder.derives = True
    outer, mark = recorder.block, recorder.mark()
    try:
        for _ in range(1000):
            try:
                return _Pushforward(recorder, block, n, facts).run(given)
            except _AgainError:
                recorder.block = outer
                del outer.ops[ops:]
                recorder.forget(mark)
    finally:
        recorder.place, recorder.is_written = place, is_written
    message = "the activity of the program's values does not settle"
    raise UntraceableError(message)


def lanes_type(t: Type, n: int) -> ArrayType:
    """The type of n lanes of a value."""
    dtype = np.result_type(t.dtype, np.float16) if t.dtype.kind in "biu" else t.dtype
    return ArrayType(dtype, (n, *t.shape))


class _Pushforward:
    """One attempt, with the facts known so far."""

    def __init__(self, recorder: Recorder, block: Block, n: int, facts: _Facts) -> None:
        self.recorder = recorder
        self.block = block
        self.n = n
        self.facts = facts
        program = Program("", block)
        self.memory = memory_of(program)
        self.written = {
            root for op in walk(block) for v in op.writes() for root in self.memory.get(v, {v})
        }
        recorder.is_written = self._is_written
        self.primal: dict[Value, Symbol] = {}
        self.tangent: dict[Value, Any] = {}
        self.shadow: dict[Value, Symbol] = {}
        self._origin: dict[Value, Value] = {}
        self._op: Op | None = None

    def run(self, given: list[tuple[Symbol, Any]]) -> tuple[list[Any], list[Any]]:
        outer = self.recorder.place
        self.recorder.place = lambda: (self._op and self._op.location) or outer()
        for p, (symbol, tangent) in zip(self.block.params, given, strict=True):
            self.primal[p] = symbol
            self._origin[symbol.value] = p
            if type(tangent) is Symbol:
                self._give_lanes(p, tangent)
            elif isinstance(tangent, Basis):
                found = self._basis(p.type, tangent)
                if isinstance(found, Chunk):
                    self.tangent[p] = found
            if self._is_shadowed(p) and p not in self.shadow:
                self.shadow[p] = self._materialised(p)
        self._block(self.block)
        self._op = None
        results = self.block.results
        return [self._symbols(r) for r in results], [self._result_lanes(r) for r in results]

    # -- values

    def _is_written(self, value: Value) -> bool:
        origin = self._origin.get(value)
        return origin is not None and bool(self.memory.get(origin, {origin}) & self.written)

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
        if isinstance(t, Number):
            k = -seed.start
            dtype = np.dtype(np.result_type(t.dtype, np.float16))
            return (
                Chunk.of(self.n, (), {hot_lanes(self.n, k, dtype): 1.0})
                if 0 <= k < self.n
                else ZERO
            )
        lanes = basis_lanes(self.n, seed.start, seed.shape, t.dtype)
        return Chunk.of(self.n, self._shape(t), {lanes: None})

    def _shape(self, t: Type) -> tuple[Any, ...]:
        return tuple(self.recorder.static_length(d) for d in t.shape)

    def _give_lanes(self, v: Value, lanes: Symbol, held: Lanes | None = None) -> None:
        """Let a value's tangent be these lanes: shadow memory if the value's is written."""
        if self._is_shadowed(v):
            self.shadow[v] = lanes
        else:
            terms: dict[Any, Any] = {held or Lanes(lanes): None if is_array(v) else 1.0}
            self.tangent[v] = Chunk.of(self.n, self._shape(v.type), terms)

    def _is_shadowed(self, v: Value) -> bool:
        return is_array(v) and bool(self.memory.get(v, {v}) & self.facts.shadowed)

    def _shadow_all(self, v: Value) -> None:
        """An active value is stored into an array: its memory has shadows, from the start."""
        for root in self.memory.get(v, {v}):
            if root not in self.facts.shadowed:
                self.facts.shadowed |= self.memory.get(v, {v})
                raise _AgainError

    def _has_lanes(self, a: Value) -> bool:
        """Whether an array, or memory that it views, has a tangent: what is stored replaces it."""
        return a in self.tangent or any(root in self.tangent for root in self.memory.get(a, {a}))

    def tangent_of(self, x: Operand) -> Any:
        """The tangent of an operand: a chunk, ZERO, or a list of these."""
        if isinstance(x, Value):
            if x in self.shadow:
                copy = self.recorder.apply(np.ndarray.copy, (self.shadow[x],), {})
                return Chunk.of(self.n, self._shape(x.type), {Lanes(copy): None})
            found = self.tangent.get(x, ZERO)
            if isinstance(found, Undefined):
                found.use()
            return found
        if isinstance(x, (list, tuple)) and any(self.is_active(v) for v in values_in(x)):
            return type(x)(self.tangent_of(item) for item in x)
        return ZERO

    def is_active(self, v: Value) -> bool:
        """Whether a value has a tangent that is not structurally zero."""
        return v in self.tangent or v in self.shadow

    def _materialised(self, v: Value) -> Symbol:
        """A value's lanes as memory of their own."""
        held = self.tangent.get(v)
        if held is None:
            return self.recorder.apply_typed(
                zero_lanes, (self.n, self._here(v)), self._lanes_type(v.type)
            )
        return self.recorder.apply(np.array, (self._multiplied(held),), {})

    def _lanes(self, x: Operand, t: Type) -> Any:
        """The lanes of an operand, multiplied out, for a type."""
        if isinstance(x, Value):
            if x in self.shadow:
                return self.shadow[x]
            if x in self.tangent:
                return self._cast(self._multiplied(self.tangent[x]), t)
        if isinstance(x, Missing):
            return Missing(self._lanes_type(t))
        if isinstance(t, Number):
            return self.recorder.apply(np.zeros, (self.n, self._lanes_type(t).dtype), {})
        like = self._symbols(x)
        return self.recorder.apply_typed(zero_lanes, (self.n, like), self._lanes_type(t))

    def _cast(self, lanes: Any, t: Type) -> Any:
        if lanes.dtype.kind == "c" and t.dtype.kind != "c":
            lanes = self.recorder.apply(np.real, (lanes,), {})
        return lanes

    def _result_lanes(self, r: Operand) -> Any:
        t = r.type if isinstance(r, Value) else None
        if t is None:
            return self.recorder.apply(np.zeros, (self.n,), {})
        return self._lanes(r, t)

    # -- operations

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self._op = op
            handle = getattr(self, f"_{type(op).__name__.lower()}", None)
            if handle is None:
                message = f"a {type(op).__name__} cannot be pushed forward"
                raise UntraceableError(message, op.location)
            try:
                handle(op)
            except UntraceableError as error:
                here = op.location
                if here is None or (error.filename, error.lineno) == (here.filename, here.line):
                    raise
                what = function_name(op.function) if isinstance(op, Apply) else type(op).__name__
                message = f"the frule of {what} cannot be written on a tape: {error.msg}"
                raise UntraceableError(message, op.location) from error

    def _copy(self, op: Op, **changed: Any) -> None:
        """The operation itself, on the primals."""
        outputs = tuple(self._fresh(v) for v in op.outputs)
        fields = {k: v for k, v in vars(op).items() if k not in ("outputs", "location")}
        made = type(op)(**{**fields, **changed}, outputs=outputs, location=op.location)
        made.replace(lambda v: self._here(v).value)
        self.recorder.block.ops.append(made)

    def _settled(self, op: Op) -> None:
        """Shadows for outputs whose memory has them."""
        for v in op.outputs:
            if self._is_shadowed(v) and v not in self.shadow:
                self.shadow[v] = self._materialised(v)
                self.tangent.pop(v, None)

    def _apply(self, op: Apply) -> None:
        active = any(self.is_active(v) for o in op.operands() for v in values_in(o))
        if op.mutated:
            self._mutation(op, active=active)
            return
        if not active or op.function in _CONSTANT or not _has_tangent(op):
            self._copy(op)
        elif op.function in _GATHERING and isinstance(op.args[0], (list, tuple)):
            self._gather(op)
        elif op.function in _PASSING or _is_number_class(op.function):
            self._convert(op)
        else:
            self._by_rule(op)
        self._look_through(op)
        self._settled(op)

    def _look_through(self, op: Apply) -> None:
        """A window on memory that has shadows is one on its shadows, too."""
        seen = [v for o in windows(op) for v in values_in(o) if v in self.shadow]
        if not seen or not any(is_array(v) for v in op.outputs):
            return
        mirrored = self._mirrored(op, seen[0]) if op.function in _MIRRORED else []
        if len(mirrored) == len(op.outputs):
            for v, lanes in zip(op.outputs, mirrored, strict=True):
                self.tangent.pop(v, None)
                self.shadow[v] = lanes
            return
        library = (getattr(op.function, "__module__", None) or "").split(".")[0]
        if library == "numpy" and self._is_written_later(op):
            message = (
                f"{function_name(op.function)} may answer a window on an array that is written "
                "later, and that carries derivatives: say .copy(), or write it before"
            )
            raise UntraceableError(message, op.location)

    def _mirrored(self, op: Apply, a: Value) -> list[Symbol]:
        """The same windows on the shadow; none if they cannot be told."""
        held = Chunk.of(self.n, self._shape(a.type), {Lanes(self.shadow[a]): None})
        if op.function in _PASSING:
            dots = [held] if len(op.args) == 1 and not op.kwargs else []
        else:
            rule = find_rule(_function(op))
            if rule is None or op.args[0] is not a:
                return []
            bound, options = rule.binder.bind(self._symbols(op.args), self._symbols(op.kwargs))
            dots = rule.body(bound, (held, *(ZERO,) * (len(bound) - 1)), **options)[1]
            dots = list(dots) if isinstance(dots, (tuple, list)) else [dots]
        found = []
        for t in dots:
            if not isinstance(t, Chunk) or len(t.terms) != 1:
                return []
            ((lanes, d),) = t.terms.items()
            if d is not None or type(lanes.array) is not Symbol or lanes.array.ndim != t.ndim + 1:
                return []
            found.append(lanes.array)
        return found

    def _is_written_later(self, op: Apply) -> bool:
        """Whether memory that an operation's results may be is written after it."""
        roots = set().union(*(self.memory.get(v, {v}) for v in op.outputs))
        after = False
        for outer in self.block.ops:
            inside = [outer, *(inner for block in outer.blocks() for inner in walk(block))]
            here = op in inside
            for inner in inside:
                if (after or (here and len(inside) > 1)) and any(
                    self.memory.get(v, {v}) & roots for v in inner.writes()
                ):
                    return True
            after = after or here
        return False

    def _mutation(self, op: Apply, *, active: bool) -> None:
        target = op.args[op.mutated[0]]
        if active:
            message = (
                f"{function_name(op.function)} writes into an array whose values carry "
                "derivatives: that cannot be pushed through a tape. Write it as an assignment"
            )
            raise UntraceableError(message, op.location)
        self._copy(op)
        del target

    def _convert(self, op: Apply) -> None:
        self._copy(op)
        (v,) = op.outputs
        chunk = self.tangent_of(op.args[0])
        if isinstance(v.type, Number) and chunk.shape:
            chunk = chunk.reshape(())
        if v.type.dtype.kind != "c" and chunk.dtype.kind == "c":
            chunk = chunk.real
        self.tangent[v] = chunk

    def _gather(self, op: Apply) -> None:
        """``np.array([a, b, c])`` of numbers."""
        (v,) = op.outputs
        parts = op.args[0]
        if not all(isinstance(getattr(p, "type", None) or Number, (Number, type)) for p in parts):
            message = "an array is made of arrays that carry derivatives: use numpy.stack"
            raise UntraceableError(message, op.location)
        self._copy(op)
        n, count = self.n, len(parts)
        lanes = self.recorder.apply(np.zeros, ((n, count), v.type.dtype), {})
        for k, p in enumerate(parts):
            chunk = self.tangent_of(p)
            if not isinstance(chunk, Chunk):
                continue
            if all(held.lane >= 0 for held in chunk.terms):  # coefficients are the tangent
                for held, d in chunk.terms.items():
                    self.recorder.store(lanes, (held.lane, k), d)
            else:
                self.recorder.store(lanes, (slice(None), k), self._multiplied(chunk))
        self.tangent[v] = Chunk.of(n, (count,), {Lanes(lanes): None})

    def _multiplied(self, chunk: Chunk) -> Any:
        """A chunk's lanes, multiplied out; unit directions of a number are not made arrays."""
        hot = {held: d for held, d in chunk.terms.items() if held.lane >= 0}
        if chunk.shape or not hot:
            return chunk.lanes
        units: list[Any] = [0.0] * self.n
        for held, d in hot.items():
            units[held.lane] = d
        total = self.recorder.apply(np.array, (units,), {})
        rest = {held: d for held, d in chunk.terms.items() if held not in hot}
        return total + Chunk.of(chunk.n, (), rest).lanes if rest else total

    def _by_rule(self, op: Apply) -> None:
        function = _function(op)
        if function is np.ravel:
            order = op.kwargs.get("order", op.args[1] if len(op.args) > 1 else "C")
            if order in ("C", "F"):
                self._ravelled(op, order)
                return
        if function is load_lanes:
            self._copy(op)
            lanes, *index = op.args
            at = (slice(None), *(self._symbols(i) for i in index))
            found = self._indexed(self.tangent_of(lanes), at, op.outputs[0].type)
            self.tangent[op.outputs[0]] = found
            return
        if function is scale_lanes:
            self._elementwise(op, find_rule(np.multiply))
            return
        rule = find_rule(function)
        if rule is None and (isinstance(function, PushWhole) or _has_source(function)):
            dots = tuple(self.tangent_of(a) for a in op.args)
            named = {key: self.tangent_of(a) for key, a in op.kwargs.items()}
            self._whole(op, None, (dots, named), "no frule")
            return
        if rule is None:
            message = (
                f"no frule for {function_name(op.function)}, which meets a value that carries a "
                "derivative"
            )
            raise MissingRuleError(message, op.location)
        if rule.kind == "constant":
            self._copy(op)
            return
        if rule.kind == "elementwise":
            mark = len(self.recorder.block.ops), self.recorder.mark()
            try:
                self._elementwise(op, rule)
            except (MissingRuleError, DualLeakError, _AgainError):
                raise
            except Exception as error:  # noqa: BLE001
                self._rewind(mark)
                self._whole(op, rule, (tuple(map(self.tangent_of, op.args)), {}), error)
            return
        dots = tuple(self.tangent_of(a) for a in op.args)
        named = {key: self.tangent_of(a) for key, a in op.kwargs.items()}
        self._only_primals(op, rule, named)
        mark = len(self.recorder.block.ops), self.recorder.mark()
        try:
            bound, options = rule.binder.bind(self._symbols(op.args), self._symbols(op.kwargs))
            given, _ = rule.binder.bind(dots, named)
            y, y_dot = rule.body(bound, tuple(_tangent(t) for t in given), **options)
            self._answer(op.outputs, y, y_dot)
        except (MissingRuleError, DualLeakError, _AgainError):
            raise
        except Exception as error:  # noqa: BLE001  (SciPy refuses symbols with any exception)
            self._rewind(mark)
            self._whole(op, rule, (dots, named), error)

    def _rewind(self, mark: tuple[int, Any]) -> None:
        """Take back what an attempt has written into the open block."""
        del self.recorder.block.ops[mark[0] :]
        self.recorder.forget(mark[1])

    def _only_primals(self, op: Apply, rule: Any, named: dict[str, Any]) -> None:
        """Refuse derivatives in what the rule takes as an option."""
        _, options = rule.binder.bind(tuple(self.tangent_of(a) for a in op.args), dict(named))
        for name, t in options.items():
            if isinstance(t, (Chunk, Undefined)) or (
                isinstance(t, (list, tuple)) and any(isinstance(part, Chunk) for part in t)
            ):
                message = (
                    f"the frule of {function_name(op.function)} takes `{name}` as an option, and "
                    "here it carries a derivative. Register a rule that has it among its primals, "
                    f"or say fwdad.stop_gradient({name})"
                )
                raise MissingRuleError(message, op.location)

    def _whole(
        self, op: Apply, rule: Any, dots: tuple[Any, dict[str, Any]], reason: Exception | str
    ) -> None:
        """A rule that cannot be written down runs by itself, as one operation."""
        lanes: list[Any] = []

        def note(t: Any) -> Any:
            if isinstance(t, Chunk):
                lanes.append(self.recorder.operand(self._multiplied(t)))
                return True
            if isinstance(t, dict):
                return {key: note(item) for key, item in t.items()}
            if isinstance(t, Undefined):
                t.use()
            return type(t)(note(item) for item in t) if isinstance(t, (list, tuple)) else False

        active = (note(dots[0]), note(dots[1]))
        function = _function(op)
        push = PushWhole(function, rule, self.n, active, [v.type for v in op.outputs], str(reason))
        if op.views:  # what may be a window on an argument stays one
            self._copy(op)
            values = tuple(Value(v.type) for v in op.outputs)
        else:
            values = tuple(self._fresh(v) for v in op.outputs)
        made = []
        for k, v in enumerate(op.outputs):
            if v.type.dtype.kind in "fc":
                held = Value(self._lanes_type(v.type), f"{v.name}_dot" if v.name else None)
                made.append(held)
                lanes_of_v = Symbol(held, self.recorder)
                self._give_lanes(v, lanes_of_v, _Wanted(lanes_of_v, push, k))
        args = (self._operand(op.args), tuple(lanes))
        kwargs = {key: self._operand(a) for key, a in op.kwargs.items()}
        self.recorder.emit(Apply(push, args, kwargs, outputs=(*values, *made)))

    def _ravelled(self, op: Apply, order: str) -> None:
        self._copy(op)
        (v,) = op.outputs
        lanes = self.tangent_of(op.args[0]).reshape(-1, order=order)
        _retype(lanes, v)
        self.tangent[v] = Chunk.of(self.n, self._shape(v.type), lanes.terms)

    def _answer(self, outputs: tuple[Value, ...], y: Any, y_dot: Any) -> None:
        """What a rule answered, as the primals and tangents of the outputs."""
        values = list(y) if isinstance(y, (tuple, list)) else [y]
        dots = list(y_dot) if isinstance(y_dot, (tuple, list)) else [y_dot] * len(values)
        dots = [t for p, t in zip(values, dots, strict=True) if p is not None]
        values = [p for p in values if p is not None]
        for v, p, t in zip(outputs, values, dots, strict=True):
            symbol = self.recorder.as_symbol(p)
            if not _agrees(symbol, v.type) or not _fits(getattr(t, "shape", v.type.shape), v.type):
                message = f"a rule answers a {symbol.type} where a {v.type} is due"
                raise UntraceableError(message)
            if symbol.value.name is None:
                symbol.value.name = v.name
            if isinstance(v.type, ArrayType):
                symbol.value.type = v.type
                self.recorder.measure(symbol.value)
            self.primal[v] = symbol
            self._origin[symbol.value] = v
            if isinstance(t, Chunk):
                _retype(t, v)
                t = Chunk.of(t.n, self._shape(v.type), t.terms)
            if isinstance(t, (Chunk, Undefined)):
                self.tangent[v] = t

    def _elementwise(self, op: Apply, rule: Any) -> None:
        self._copy(op)
        (v,) = op.outputs
        y = self.primal[v]
        numbers = [self._numpy_number(self._symbols(a)) for a in op.args]
        result = self._numpy_number(y)
        y_dot: Any = ZERO
        for k, a in enumerate(op.args):
            t = self.tangent_of(a)
            if isinstance(t, Zero):
                continue
            d = rule.partials[k](*numbers, result)
            y_dot = y_dot + self._scaled(t, d, v.type)
        self.tangent[v] = y_dot

    def _scaled(self, t: Chunk, d: Any, out: Type) -> Chunk:
        shape = self._shape(out)
        if type(d) is Symbol and d.is_array and self.recorder.is_written(d.value):
            d = self.recorder.apply(np.ndarray.copy, (d,), {})
        if isinstance(d, (int, float)) and d == 1:
            term = t
        else:
            rank = d.type.ndim if type(d) is Symbol else np.ndim(d)
            # a scaling of one is no product
            terms = {lanes: None if _is_one(held) else held for lanes, held in t.terms.items()}
            unscaled = Chunk.of(t.n, t.shape, terms)
            term = unscaled.scale_quietly(d, shape if rank else t.shape)
        return term.broadcast_to(shape) if term.shape != shape else term

    def _numpy_number(self, x: Any) -> Any:
        """Partials are taken of NumPy's numbers: 1/0.0 is inf in them, as it is for arrays."""
        if type(x) is Symbol and isinstance(x.type, Number) and x.type.python:
            if x.type.dtype.kind in "fc":
                return self.recorder.apply(x.type.dtype.type, (x,), {})
        elif type(x) is float:
            return np.float64(x)
        return x

    # -- memory

    def _load(self, op: Load) -> None:
        self._copy(op)
        (v,) = op.outputs
        index = tuple(self._symbols(i) for i in op.index)
        if op.array in self.shadow:
            shadow = self.shadow[op.array]
            if op.view:
                self.shadow[v] = self.recorder.load(shadow, (slice(None), *index))
            else:
                self.tangent[v] = self._read(shadow, index, v.type)
        elif op.array in self.tangent:
            chunk = self._indexed(self.tangent[op.array], index, v.type)
            if isinstance(chunk, Chunk):
                self.tangent[v] = chunk

    def _read(self, shadow: Symbol, index: tuple[Any, ...], t: Type) -> Chunk:
        self._alignable(index)
        if isinstance(t, Number):
            lanes = self.recorder.apply_typed(
                load_lanes, (shadow, *index), ArrayType(shadow.dtype, (self.n,))
            )
            return Chunk.of(self.n, (), {Lanes(lanes): 1.0})
        lanes = self.recorder.load(shadow, (slice(None), *index))
        return Chunk.of(self.n, self._shape(t), {Lanes(lanes): None})

    def _alignable(self, index: tuple[Any, ...]) -> None:
        """Advanced indices apart from each other move their axes in front, before the lanes."""
        advanced = [
            k
            for k, i in enumerate(index)
            if i is not None and i is not Ellipsis and not isinstance(i, slice)
        ]
        arrays = [
            k
            for k in advanced
            if isinstance(index[k], (list, np.ndarray))
            or (type(index[k]) is Symbol and index[k].is_array)
        ]
        if arrays and advanced != list(range(advanced[0], advanced[-1] + 1)):
            message = (
                "index arrays apart from each other, as in a[i, :, j], cannot be pushed through a "
                "tape: use numpy.take, or index in two steps"
            )
            raise UntraceableError(message)

    def _indexed(self, chunk: Chunk, index: tuple[Any, ...], t: Type) -> Any:
        """The tangent of ``a[index]``, term by term."""
        places = zip(index, chunk.shape, strict=False)
        known = all(type(i) is int and (i >= 0 or type(n) is int) for i, n in places)
        if known and len(index) == len(chunk.shape):
            found = chunk.element(index)
            if isinstance(found, Zero):
                return found
            terms = {part: 1.0 if d is None else d for part, d in found.terms.items()}
            return Chunk.of(self.n, (), terms)
        self._alignable(index)
        terms = {}
        for lanes, d in chunk.terms.items():
            scaling: Any = d
            if type(d) is Symbol and d.is_array:
                scaling = self.recorder.load(d, index)
            made = self._indexed_lanes(lanes, index, chunk.shape)
            if isinstance(t, Number) and scaling is None:
                scaling = 1.0
            terms[made] = scaling
        return Chunk.of(self.n, self._shape(t), terms)

    def _indexed_lanes(self, lanes: Lanes, index: tuple[Any, ...], shape: tuple[Any, ...]) -> Lanes:
        if lanes.basis is not None and len(index) == len(shape) == 1 and type(index[0]) is Symbol:
            if not index[0].is_array:
                start = lanes.basis[1]
                k = index[0] if start == 0 else index[0] - start
                unit = ArrayType(np.dtype(float), (self.n,))
                return Lanes(self.recorder.apply_typed(unit_lanes, (self.n, k), unit))
        array = lanes.array
        if array.ndim < len(shape) + 1:
            array = lanes.expanded(len(shape)).array
        array = self.recorder.as_symbol(array)
        return Lanes(self.recorder.load(array, (slice(None), *index)))

    def _store(self, op: Store) -> None:
        t = self.tangent_of(op.value)
        if op.array not in self.shadow and (not isinstance(t, Zero) or self._has_lanes(op.array)):
            self._shadow_all(op.array)
        if op.array in self.shadow:
            index = tuple(self._symbols(i) for i in op.index)
            self._alignable(index)
            shadow = self.shadow[op.array]
            lanes: Any = 0.0
            if isinstance(t, Chunk):
                lanes = self._aligned(t, op.array.type, op.index)
                if lanes.dtype.kind == "c" and shadow.dtype.kind != "c":
                    lanes = self.recorder.apply(np.real, (lanes,), {})
            self._copy(op)
            self.recorder.store(shadow, (slice(None), *index), lanes)
            return
        self._copy(op)

    def _aligned(self, t: Chunk, target: Type, index: tuple[Operand, ...]) -> Any:
        """Lanes that broadcast against an indexed array as the value itself does."""
        rank = (
            target.ndim
            - sum(
                1 for i in index if not isinstance(i, slice) and i is not None and i is not Ellipsis
            )
            + sum(i is None for i in index)
        )
        arrays = [i for i in index if is_array(i) or isinstance(i, (list, np.ndarray))]
        if arrays:
            rank += max(i.type.ndim if isinstance(i, Value) else np.ndim(i) for i in arrays)
        missing = rank - len(t.shape)
        lanes = self._multiplied(t)
        if missing > 0:
            head = (slice(None), *(None,) * missing)
            lanes = self.recorder.load(self.recorder.as_symbol(lanes), head)
        return lanes

    def _update(self, op: Update) -> None:
        t = self.tangent_of(op.value)
        if op.array not in self.shadow and (not isinstance(t, Zero) or self._has_lanes(op.array)):
            self._shadow_all(op.array)
        if op.array not in self.shadow:
            self._copy(op)
            return
        index = tuple(self._symbols(i) for i in op.index)
        self._alignable(index)
        shadow = self.shadow[op.array]
        at = (slice(None), *index)
        if op.function in (operator.add, operator.sub):
            if isinstance(t, Chunk):
                lanes = self._aligned(t, op.array.type, op.index)
                self._copy(op)
                self.recorder.update(shadow, at, op.function, lanes)
            else:
                self._copy(op)
            return
        rule = find_rule(_RULE_OF[op.function])
        if rule is None or rule.kind != "elementwise":
            message = f"`{op.function.__name__}` in place cannot be pushed through a tape"
            raise UntraceableError(message, op.location)
        old = self.recorder.load(self._here(op.array), index)
        if old.is_array:
            old = self.recorder.apply(np.ndarray.copy, (old,), {})
        value = self._numpy_number(self._symbols(op.value))
        y = self.recorder.apply(op.function, (old, value), {})
        held = self._read_any(shadow, index, old)
        y_dot: Any = self._scaled(held, rule.partials[0](old, value, y), y.type)
        if isinstance(t, Chunk):
            y_dot = y_dot + self._scaled(t, rule.partials[1](old, value, y), y.type)
        lanes = y_dot.lanes
        self.recorder.store(self._here(op.array), index, y)
        self.recorder.store(shadow, at, lanes)

    def _read_any(self, shadow: Symbol, index: tuple[Any, ...], old: Symbol) -> Chunk:
        if not old.is_array:
            return self._read(shadow, index, old.type)
        lanes = self.recorder.load(shadow, (slice(None), *index))
        copy = self.recorder.apply(np.ndarray.copy, (lanes,), {})
        return Chunk.of(self.n, self._shape(old.type), {Lanes(copy): None})

    def _check(self, op: Check) -> None:
        self._copy(op)

    # -- control flow

    def _branch(self, op: Branch) -> None:
        sides, found = [], []
        condition = self._operand(op.condition)
        for block in op.blocks():
            side = Block()
            outer, self.recorder.block = self.recorder.block, side
            self._block(block)
            found.append([self._activity(r) for r in block.results])
            self.recorder.block = outer
            sides.append(side)
        kinds = [a or b for a, b in zip(*found, strict=True)]
        lanes = []
        for side, block in zip(sides, op.blocks(), strict=True):
            side.results = [self._operand(r) for r in block.results]
            outer, self.recorder.block = self.recorder.block, side
            for r, v, kind in zip(block.results, op.outputs, kinds, strict=True):
                if kind:
                    side.results.append(self.recorder.operand(self._lanes(r, v.type)))
            self.recorder.block = outer
        outputs = [self._fresh(v) for v in op.outputs]
        for v, kind in zip(op.outputs, kinds, strict=True):
            if kind:
                made = Value(self._lanes_type(v.type), f"{v.name}_dot" if v.name else None)
                lanes.append(made)
                self._hold(v, Symbol(made, self.recorder))
        self.recorder.block.ops.append(
            Branch(condition, *sides, outputs=(*outputs, *lanes), location=op.location)
        )

    def _call(self, op: Call) -> None:
        """A call of a program: of the program that pushes the tangents of its arguments, too."""
        pattern = tuple(self._activity(a) for a in op.args)
        if not any(pattern):
            self._copy(op)
            self._settled(op)
            return
        pushed, wide = self._pushed_program(op.program, pattern)
        given: list[Operand] = [self._operand(a) for a in op.args]
        for a, p, has_lanes, written in zip(
            op.args, op.program.block.params, wide, op.program.written, strict=True
        ):
            if has_lanes:
                if written and a not in self.shadow:
                    self._shadow_all(a)
                given.append(self.recorder.operand(self._lanes(a, p.type)))
        outputs = [self._fresh(v) for v in op.outputs]
        lanes = [Value(self._lanes_type(v.type)) for v in op.outputs]
        self.recorder.block.ops.append(
            Call(pushed, given, outputs=(*outputs, *lanes), location=op.location)
        )
        for v, made in zip(op.outputs, lanes, strict=True):
            if v.type.dtype.kind in "fc":
                self._hold(v, Symbol(made, self.recorder))

    def _pushed_program(
        self, program: Program, pattern: tuple[bool, ...]
    ) -> tuple[Program, tuple[bool, ...]]:
        """A called program with tangents, and which of its parameters have lanes.

        More than are active, where the program stores active values into an inactive array.
        """
        key = (program, self.n, pattern)
        if key in self.facts.programs:
            return self.facts.programs[key]
        made = Program(f"{program.name}_pushforward", Block(), program.filename, quiet=True)
        self.facts.programs[key] = (made, pattern)  # what it finds where it calls itself
        recorder = Recorder()
        given: list[tuple[Symbol, Any]] = []
        lanes_params = []
        for p, active in zip(program.block.params, pattern, strict=True):
            symbol = Symbol(Value(p.type, p.name), recorder)
            recorder.measure(symbol.value)
            tangent: Any = ZERO
            if active:
                tangent = Symbol(Value(self._lanes_type(p.type), f"{p.name or 'x'}_dot"), recorder)
                lanes_params.append(tangent.value)
            given.append((symbol, tangent))
        facts = _Facts()
        facts.programs = self.facts.programs
        primals, lanes = push_block(recorder, program.block, self.n, given, facts)
        wide = tuple(
            active or p in facts.shadowed
            for p, active in zip(program.block.params, pattern, strict=True)
        )
        if wide != pattern:
            self.facts.programs[key] = found = self._pushed_program(program, wide)
            return found
        made.block = recorder.block
        made.block.params = [*(symbol.value for symbol, _ in given), *lanes_params]
        made.block.results = [recorder.operand(x) for x in (*primals, *lanes)]
        made.written = [False] * len(made.block.params)
        while (written := written_parameters(made)) != made.written:
            made.written = written
        return made, pattern

    def _activity(self, r: Operand) -> bool:
        return isinstance(r, Value) and self.is_active(r)

    def _hold(self, v: Value, lanes: Symbol) -> None:
        if self._is_shadowed(v):
            self.shadow[v] = lanes
        else:
            self._give_lanes(v, lanes)

    def _loop(self, op: Loop) -> None:
        active = [
            k
            for k, (p, a) in enumerate(zip(op.carried, op.initial, strict=True))
            if (id(op), k) in self.facts.carried or self._is_shadowed(p) or self._activity(a)
        ]
        span = self._operand(op.span) if op.span is not None else None
        initial = [self._operand(a) for a in op.initial]
        for k in active:
            lanes = self._lanes(op.initial[k], op.carried[k].type)
            initial.append(self.recorder.operand(lanes))
        body, test = Block(), None
        body.params = [self._fresh(p) for p in op.body.params]
        outer = self.recorder.block
        for k in active:
            p = op.carried[k]
            made = Value(self._lanes_type(p.type), f"{p.name}_dot" if p.name else None)
            body.params.append(made)
            self._hold(p, Symbol(made, self.recorder))
        if op.test is not None:
            test = self.recorder.block = Block()
            self._block(op.test)
            test.results = [self._operand(r) for r in op.test.results]
        self.recorder.block = body
        self._block(op.body)
        for k, r in enumerate(op.body.results[: len(op.carried)]):
            if k not in active and self._activity(r):
                self.recorder.block = outer
                self.facts.note(self.facts.carried, (id(op), k))
        next_lanes = [
            self.recorder.operand(self._lanes(op.body.results[k], op.carried[k].type))
            for k in active
        ]
        results = [self._operand(r) for r in op.body.results]
        leave = results[len(op.carried) :]
        body.results = [*results[: len(op.carried)], *next_lanes, *leave]
        self.recorder.block = outer
        outputs = [self._fresh(v) for v in op.outputs]
        count = self._fresh(op.exec_count)
        for k in active:
            v = op.outputs[k]
            made = Value(self._lanes_type(v.type), f"{v.name}_dot" if v.name else None)
            outputs.append(made)
            self._hold(v, Symbol(made, self.recorder))
        self.recorder.block.ops.append(
            Loop(
                span, initial, body, test, op.leaves, count,
                outputs=tuple(outputs), location=op.location,
            )
        )  # fmt: skip


def _function(op: Apply) -> Any:
    """The function whose rule a call has."""
    function = op.function.function if isinstance(op.function, Leaves) else op.function
    return _RULE_OF.get(function, function)


def _has_tangent(op: Apply) -> bool:
    """Whether an output has a tangent space."""
    return any(v.type.dtype.kind in "fc" for v in op.outputs)


def _tangent(t: Any) -> Any:
    """What a rule is given: not the values that stand in for parameters left out."""
    return t if isinstance(t, (Chunk, Zero, list, tuple)) else ZERO


def _agrees(symbol: Symbol, t: Type) -> bool:
    """Whether a symbol is of the type that a value was traced with."""
    found = symbol.type
    same = isinstance(found, Number) == isinstance(t, Number) and found.dtype == t.dtype
    python = getattr(found, "python", None) == getattr(t, "python", None)
    return same and python and _fits(found.shape, t)


def _fits(shape: tuple[Any, ...], t: Type) -> bool:
    """Whether a shape may be that of a type: known lengths agree."""
    pairs = zip(shape, t.shape, strict=False)
    known = [(m, n) for m, n in pairs if isinstance(m, int) and isinstance(n, int)]
    return len(shape) == t.ndim and all(m == n for m, n in known)


def _retype(t: Chunk, v: Value) -> None:
    """Type lanes that are as large as their value with its lengths."""
    for lanes in t.terms:
        if lanes.basis is None and lanes.lane < 0 and type(lanes.array) is Symbol:
            held = lanes.array.value
            n, *dims = held.type.shape
            if len(dims) == v.type.ndim == len(t.shape):
                sizes: tuple[Any, ...] = t.shape
                shape = [
                    own if isinstance(s, Length) and s.size is d else d
                    for d, own, s in zip(dims, v.type.shape, sizes, strict=True)
                ]
                held.type = ArrayType(held.type.dtype, (n, *shape))


def _has_source(function: Any) -> bool:
    """Whether a library's function without a rule is Python, for the builder to go through."""
    inner = getattr(function, "_implementation", function)
    return isinstance(inner, types.FunctionType) and is_library_file(inner.__code__.co_filename)


def _is_one(d: Any) -> bool:
    return type(d) is float and d == 1.0


def _is_number_class(f: Any) -> bool:
    return isinstance(f, type) and issubclass(f, (np.floating, np.complexfloating))
