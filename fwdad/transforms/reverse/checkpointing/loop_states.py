"""The states of a loop that runs again: what they consist of, and how the loop saves them."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from fwdad.ir.ops import (
    Apply,
    Block,
    Load,
    Loop,
    Op,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.ir.primitives.checkpoint_schedule import (
    default_snapshots,
    leaf_of_numbers,
    most_of_unknown,
    next_snapshot,
    places_beside,
    snapshots_in,
    trips,
)
from fwdad.ir.primitives.stacks import push, thin
from fwdad.ir.rewrite import all_inside
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import BOOL, INT
from fwdad.transforms.reverse.checkpointing.code import Code
from fwdad.transforms.reverse.structure import Structure
from fwdad.transforms.reverse.sweep import Sweep


class State:
    """What a loop that runs again reads and changes.

    Attributes
    ----------
    numbers, arrays, memory : list of int
        Positions of active carried values: numbers, arrays that are never written, and arrays that
        are.
    written : list of int
        Positions of all carried arrays that are written.
    free_numbers, free_arrays : list of Value
        Active values from outside.
    free_written : list of Value
        Arrays from outside that the loop writes.
    overwritten : set of Value
        The memory that a state restores.
    kept : list of Value
        The arrays from outside of which a copy is a part of a state.
    """

    def __init__(self, structure: Structure, op: Loop) -> None:
        self.numbers: list[int] = []
        self.arrays: list[int] = []
        self.memory: list[int] = []
        self.written: list[int] = []
        for k, (p, v) in enumerate(zip(op.carried, op.outputs, strict=True)):
            active = structure.activity.is_active(p) or structure.activity.is_active(v)
            if is_array(p) and (structure.is_memory(p) or structure.is_memory(v)):
                self.written.append(k)
                self.memory.extend([k] if active else [])
            elif active:
                (self.arrays if is_array(p) else self.numbers).append(k)
        free = _from_outside(op)
        roots = {r for o in inside(op) for v in o.writes() for r in structure.roots(v)}
        self.free_written = [v for v in free if structure.roots(v) & roots]
        self.free_numbers = [v for v in free if structure.activity.is_active(v) and not is_array(v)]
        self.free_arrays = [v for v in free if structure.activity.is_active(v) and is_array(v)]
        self.carried_roots = {r for k in self.written for r in structure.roots(op.carried[k])}
        self.overwritten: set[Value] = set()
        self.kept: list[Value] = []
        self._structure = structure

    def restore(self, overwritten: set[Value]) -> None:
        """Let a state restore some memory that the loop writes."""
        structure, self.overwritten = self._structure, overwritten
        bases = [_base(v, structure) for v in self.free_written]
        self.kept = list(dict.fromkeys(v for v in bases if structure.roots(v) & overwritten))

    @property
    def any(self) -> bool:
        """Whether the loop has any cotangents."""
        return bool(self.numbers or self.arrays or self.memory)


class States:
    """Lets one loop save states on stacks, by operations that are added to it."""

    def __init__(self, sweep: Sweep, op: Loop, state: State) -> None:
        self.recorder = sweep.recorder
        self.code = Code(sweep)
        self.structure = sweep.structure
        self.op = op
        self.state = state
        self.home = self.structure.block_of[op]
        self.plan, op.checkpoint = op.checkpoint, None
        self.carried, self.initial = list(op.carried), list(op.initial)
        self.known = op.test is None and not op.leaves
        self.saved: Any = None  # how many states may be kept in all, if that is known beforehand
        self.places: Any = None  # how many of them before a leaf
        self.leaf: Any = 1
        self.used: Any = None  # how many are kept when the loop has ended
        self.positions = self.code.stack(INT, "positions")
        self.stacks = [self.code.stack(p.type, p.name) for p in self.carried]
        self.kept = [self.code.stack(v.type, v.name) for v in state.kept]

    def keep(self, position: Any, carried: list[Any]) -> None:
        """Save a state."""
        recorder = self.recorder
        recorder.mutate(push, (Symbol(self.positions, recorder), position), {})
        for k, (stack, x) in enumerate(zip(self.stacks, carried, strict=True)):
            own = self.code.own(x.value) if k in self.state.written else x
            recorder.mutate(push, (Symbol(stack, recorder), own), {})
        for stack, v in zip(self.kept, self.state.kept, strict=True):
            recorder.mutate(push, (Symbol(stack, recorder), self.code.own(v)), {})

    def all_stacks(self) -> list[tuple[Value, Any]]:
        """The stacks of all that a state is, with the types of what is on them."""
        given = [(stack, p.type) for stack, p in zip(self.stacks, self.carried, strict=True)]
        own = [(stack, v.type) for stack, v in zip(self.kept, self.state.kept, strict=True)]
        return [(self.positions, INT), *given, *own]

    # -- the forward pass

    def write_down(self) -> None:
        """Let the loop save states in its forward pass."""
        recorder, op = self.recorder, self.op
        outer, mark, before = recorder.block, recorder.lengths.mark(), Block()
        recorder.block = before
        n = self._count() if self.known else None
        self.saved = self._saved(n)
        if self.known:
            self.divide(self.saved)
        params = [Value(INT, name) for name in ("at", "following", "snapshots", "spacing")]
        at, following, used, spacing = (Symbol(v, recorder) for v in params)
        carried = [Symbol(p, recorder) for p in self.carried]

        def of_known() -> list[Any]:
            self.keep(at, carried)
            count = self.code.number(operator.add, used, 1)
            later = self.code.number(next_snapshot, at, n, count, self.places, self.leaf)
            return [later, count, spacing]

        def of_unknown() -> list[Any]:
            count, wide = self._thinned(at, used, spacing)
            self.keep(at, carried)
            return [self._after(at, wide), self.code.number(operator.add, count, 1), wide]

        head = recorder.block = Block()
        here = self.code.number(operator.eq, at, following, t=BOOL)
        then = of_known if self.known else of_unknown
        counters = self.code.branch(here, [INT, INT, INT], then, lambda: [following, used, spacing])
        tail = recorder.block = Block()
        counters = [self.code.number(operator.add, at, 1), *counters]
        recorder.block = outer
        recorder.lengths.forget(mark)
        op.body.ops[:] = [*head.ops, *op.body.ops, *tail.ops]
        op.body.params.extend(params)
        end = len(self.carried)
        op.body.results[end:end] = [recorder.operand(x) for x in counters]
        op.initial = [*op.initial, 0, 0, 0, 1]
        outputs = tuple(Value(INT, v.name) for v in params)
        op.outputs = (*op.outputs, *outputs)
        self.used = outputs[2]
        structure, index = self.structure, self.home.ops.index(op)
        structure.insert(self.home, index, before.ops, structure.position[op])
        structure.define(self.used, op)

    def _thinned(self, at: Any, used: Any, spacing: Any) -> list[Any]:
        """Drop every second state if there are too many; return their number and spacing."""
        recorder = self.recorder
        most = self.code.number(most_of_unknown, at, 0 if self.saved is None else self.saved)
        even = self.code.number(operator.eq, self.code.number(operator.mod, used, 2), 0, t=BOOL)
        full = self.code.number(operator.ge, used, most, t=BOOL)

        def fewer() -> list[Any]:
            for stack, _ in self.all_stacks():
                recorder.mutate(thin, (Symbol(stack, recorder),), {})
            half = self.code.number(operator.floordiv, used, 2)
            return [half, self.code.number(operator.mul, spacing, 2)]

        both = self.code.number(operator.and_, full, even, t=BOOL)
        return self.code.branch(both, [INT, INT], fewer, lambda: [used, spacing])

    def _after(self, at: Any, wide: Any) -> Any:
        """Where the next state is saved; if only one may be kept, nowhere after the beginning."""
        following = self.code.number(operator.add, at, wide)
        if self.saved is None:
            return following
        several = self.code.number(operator.gt, self.saved, 1, t=BOOL)
        return self.code.branch(several, [INT], lambda: [following], lambda: [-1])[0]

    def _count(self) -> Any:
        """The trip count of the loop's range."""
        given: Any = self.op.span
        start, stop, step = (Symbol(x, self.recorder) if isinstance(x, Value) else x for x in given)
        if not any(type(x) is Symbol for x in (start, stop, step)):
            return len(range(start, stop, step))
        if type(start) is int and start == 0 and type(step) is int and step == 1:
            return stop
        return self.code.number(trips, start, stop, step)

    def _saved(self, n: Any) -> Any:
        """How many states may be kept; None if that depends on an unknown trip count."""
        given: Any = self.plan
        if given.snapshots is not None:
            return given.snapshots
        if given.memory is not None:
            return self.code.number(snapshots_in, given.memory, self._size())
        return None if n is None else self.default(n)

    def default(self, n: Any) -> Any:
        """How many states are kept by default."""
        return default_snapshots(n) if type(n) is int else self.code.number(default_snapshots, n)

    def _size(self) -> Any:
        """The size of a state in bytes."""
        total: Any = 8
        carried = list(zip(self.carried, self.initial, strict=True))
        for p, v in [*carried, *((v, v) for v in self.state.kept)]:
            size: Any = p.type.dtype.itemsize
            if is_array(p) and isinstance(v, Value):
                for axis in range(v.type.ndim):
                    length = self.recorder.length(Symbol(v, self.recorder), axis)
                    size = self._product(size, length)
            total = (
                size + total if type(size) is int else self.code.number(operator.add, size, total)
            )
        return total

    def _product(self, a: Any, b: Any) -> Any:
        plain = type(a) is int and type(b) is int
        return a * b if plain else self.code.number(operator.mul, a, b)

    def divide(self, saved: Any) -> None:
        """Divide the states that may be kept between a leaf and what precedes it."""
        self.places, self.leaf = saved, 1
        if not self._is_of_numbers():
            return
        if type(saved) is int:
            self.leaf = leaf_of_numbers(saved)
            self.places = places_beside(saved, self.leaf)
        else:
            self.leaf = self.code.number(leaf_of_numbers, saved)
            self.places = self.code.number(places_beside, saved, self.leaf)

    def _is_of_numbers(self) -> bool:
        """Whether a state, and everything that an iteration computes, are numbers."""
        if self.state.kept or any(is_array(p) for p in self.carried):
            return False
        return not any(
            isinstance(inner, Apply) and is_array(v) for inner in inside(self.op)
            for v in inner.outputs
        )  # fmt: skip


def inside(op: Loop) -> Iterator[Op]:
    """Every operation in a loop."""
    for block in op.blocks():
        yield from walk(block)


def _from_outside(op: Loop) -> list[Value]:
    """The values from outside that a loop's blocks use, in order."""
    defined = {v for block in op.blocks() for v in all_inside(block)}
    used = [v for inner in inside(op) for v in values_in(inner.operands())]
    for block in op.blocks():
        used += values_in(block.results)
    for inner in inside(op):
        for block in inner.blocks():
            used += values_in(block.results)
    return list(dict.fromkeys(v for v in used if v not in defined))


def _base(v: Value, structure: Structure) -> Value:
    """The array that a view was taken of, through any number of views."""
    op = structure.definition.get(v)
    while isinstance(op, Load) and op.view:
        v = op.array
        op = structure.definition.get(v)
    return v
