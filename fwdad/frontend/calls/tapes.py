"""Calls of tapes in a traced function: their operations are copied, what they assume is kept."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Hashable
from typing import Any

from fwdad.errors import UntraceableError
from fwdad.frontend.arguments import Build, Flattened, leaf_key
from fwdad.frontend.calls.tables import CALLED
from fwdad.frontend.derivatives.copied_arguments import order_of
from fwdad.frontend.result_parts import Run, Take
from fwdad.frontend.syntax.growing_lists.growing_tuples import Tuples
from fwdad.frontend.syntax.growing_lists.items import Items
from fwdad.frontend.syntax.merge import container_of
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.symbols import Optional
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.frontend.tape import Tape
from fwdad.frontend.trees import made_in
from fwdad.ir.analysis.layout import Order
from fwdad.ir.clone import Cloner
from fwdad.ir.ops import Block, Call, Loop, Value, walk
from fwdad.ir.rewrite import give_types
from fwdad.ir.symbol import UNBOUND, Symbol
from fwdad.ir.types import ArrayType, Dimension, Number, Size, Type, joined, product, smallest


class _Arguments(Flattened):
    """Arguments of a call inside a trace, whose leaves may be symbols."""

    def _take(self, x: Any) -> tuple[Hashable, Build]:
        if type(x) is not Symbol:
            return super()._take(x)
        if id(x.value) in self._arrays:  # the same array again
            first = self._arrays[id(x.value)]
            return ("again", "array", first), lambda leaves, _: leaves[first]
        k = len(self.leaves)
        self.leaves.append(x)
        self.notes.append(None)
        if isinstance(x.type, Number):
            return (x.type.dtype, x.type.python), lambda leaves, _: leaves[k]
        self._arrays[id(x.value)] = k
        shape = tuple(n if isinstance(n, int) and n < 2 else -1 for n in x.type.shape)
        return (x.type.dtype, shape), lambda leaves, _: leaves[k]


class _Run(Run):
    """The results of a tape that is called in a traced function."""

    def __init__(self, tracer: Tracer, values: list[Any], containers: list[Any]) -> None:
        super().__init__(values, containers)
        self._tracer = tracer

    def either(self, flag: Any, value: Take) -> Any:
        """A value, or None if a flag that is known at run time is not set."""
        return Optional(flag, value(self)) if type(flag) is Symbol else super().either(flag, value)

    def rows(self, y: Any, *, python: bool, arrays: bool, inner: bool = False) -> Any:
        """A list whose length may be unknown."""
        if type(y) is not Symbol:
            return super().rows(y, python=python, arrays=arrays, inner=inner)
        return Items(self._tracer, y, python=python, arrays=arrays, inner=inner)

    def lists(self, y: Any, counts: Any, *, python: bool) -> Any:
        """Refuse lists of lengths that are unknown."""
        if type(y) is Symbol or type(counts) is Symbol:
            message = "a list of lists of different lengths, from another function, is not traced"
            raise UntraceableError(message, self._tracer.position.location())
        return super().lists(y, counts, python=python)

    def with_none(self, items: Any, there: Any) -> Any:
        """Refuse lists with None that values decide on."""
        if isinstance(items, Items) or type(there) is Symbol:
            message = "a list of another function in which values decide what is None is not traced"
            raise UntraceableError(message, self._tracer.position.location())
        return super().with_none(items, there)

    def tuples(self, kind: type, columns: list[Any]) -> Any:
        """A list of tuples, whose length may be unknown."""
        if not any(isinstance(column, Items) for column in columns):
            return super().tuples(kind, columns)
        return Tuples(self._tracer, kind, columns)


def call_tape(tracer: Tracer, tape: Tape, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a tape: its operations on these arguments, its guards among the trace's own.

    A length that is known when the program runs is checked then.
    """
    recorder = tracer.recorder
    flat = _Arguments(args, kwargs)
    captured = [c.fetch() for c in tape.captures]
    kinds = [c.key for c in tape.captures]
    same = all(x is not UNBOUND and leaf_key(x) == k for x, k in zip(captured, kinds, strict=True))
    if flat.key != tape.key or not same or not tape.stands():
        _misfit(tape)
    outside, names = tracer.outside, (c.value.name or "a" for c in tape.captures)
    places = zip(captured, tape.captures, names, strict=True)
    leaves = [*flat.leaves, *(outside.captures.value(x, c.path, name) for x, c, name in places)]
    for path, held in tape.object_guards:
        outside.guard(path, held)
    outside.captures.same += tape.same_objects
    for k, value in tape.value_guards.items():
        if tracer.values.force(leaves[k]) != value:
            _misfit(tape)
    symbols = [recorder.as_symbol(x) for x in leaves]
    sizes = _check_lengths(tracer, tape, symbols)
    _check_memory(tracer, tape, symbols)
    results = _copied(tracer, tape, symbols, sizes)
    recorder.prints |= tape.prints
    recorder.derives |= tape.program.quiet
    recorder.split += tape.split
    if tape.follows and recorder.ways is not None:
        recorder.ways.calls(tape.followed_at)
    for x in map(container_of, tape.rebuild.changed(flat.containers)):
        outside.may_change(x)
        recorder.journal.touch(x)
    run = functools.partial(_Run, tracer)
    return made_in(recorder, tape.rebuild(results, flat.containers, run))


CALLED[Tape] = call_tape


def _misfit(tape: Tape, why: str = "") -> Any:
    raise AlwaysRaises(TypeError, (tape.misfit(why),))


def _check_lengths(tracer: Tracer, tape: Tape, symbols: list[Symbol]) -> dict[Size, Dimension]:
    """Check what the tape assumes of lengths; the lengths of its inputs as they are here."""
    recorder = tracer.recorder

    def differ(a: Any, b: Any) -> None:
        if isinstance(a, int) and isinstance(b, int):
            if a != b:
                _misfit(tape)
        else:
            recorder.check(tracer.call(operator.eq, (a, b), {}), TypeError, (tape.misfit(),))

    for k, axis, n in tape.length_guards:
        d = recorder.lengths.resolved(symbols[k].type).shape[axis]
        of_input = isinstance(d, Size) and d.origin is not None and d.hint is not None
        if of_input and recorder.assumes:
            differ(recorder.lengths.known_length(symbols[k], axis), n)
        else:
            differ(recorder.length(symbols[k], axis), n)
    for k, axis, other, at in tape.equal_lengths:
        a, b = symbols[k].type.shape[axis], symbols[other].type.shape[at]
        if a is not b:
            differ(recorder.length(symbols[k], axis), recorder.length(symbols[other], at))
    sizes: dict[Size, Dimension] = {}
    for param, x in zip(tape.program.block.params, symbols, strict=True):
        here = recorder.lengths.resolved(x.type).shape
        for axis, (d, length_here) in enumerate(zip(param.type.shape, here, strict=True)):
            if isinstance(length_here, Size) and length_here.may_be_one:  # one would broadcast
                length = recorder.length(x, axis)
                enough = tracer.call(operator.ge, (length, 2), {})
                recorder.check(enough, TypeError, (tape.misfit(),))
            if isinstance(d, Size):
                sizes.setdefault(d, length_here)
    return sizes


def _check_memory(tracer: Tracer, tape: Tape, symbols: list[Symbol]) -> None:
    """Check what the tape assumes of the memory of its inputs, or let the outer tape check it."""
    recorder = tracer.recorder
    arrays = [k for k, x in enumerate(symbols) if x.is_array]
    for k in tape.alone.intersection(arrays):
        value = symbols[k].value
        if any(recorder.may_share(value, symbols[j].value) for j in arrays if j != k):
            _refuse(tracer, "two of its arguments may share memory, and it writes into one")
        recorder.alone.update(map(_given(recorder), recorder.definitions.owners(value)))
    if not (tape.rows or tape.copied):
        return
    for k in arrays if tape.rows else tape.copied:
        if order_of(recorder, symbols[k].value) is not Order.ROWS:
            _refuse(tracer, "what it computes depends on the memory order of its arguments, which "
                            "is unknown here")  # fmt: skip
    recorder.copied.update(_given(recorder)(symbols[k].value) for k in tape.copied)


def _given(recorder: Any) -> Any:
    def outermost(v: Value) -> Value:
        while v in recorder.given:
            v = recorder.given[v]
        return v

    return outermost


def _refuse(tracer: Tracer, why: str) -> None:
    message = f"a tape cannot be called here: {why}. Call it outside, or pass copies (`.copy()`)"
    raise UntraceableError(message, tracer.position.location())


def _copied(
    tracer: Tracer, tape: Tape, symbols: list[Symbol], sizes: dict[Size, Dimension]
) -> list[Any]:
    """Write a tape's operations; what they return."""
    recorder, block = tracer.recorder, tape.program.block
    cloner = Cloner(dict(zip(block.params, (x.value for x in symbols), strict=True)))
    ops = cloner.ops(block.ops)
    give_types(Block(ops=ops), _Lengths(sizes).of)
    for op in walk(Block(ops=ops)):
        recorder.definitions.note(op)
        if isinstance(op, Loop):
            recorder.definitions.carried.update(v for v in op.carried if type(v.type) is ArrayType)
        if isinstance(op, Call) and op.adjoint is not None:
            op.adjoint = op.adjoint.inside(tracer)
    for op in ops:
        recorder.emit(op)
    results = map(cloner.operand, block.results)
    return [Symbol(r, recorder) if type(r) is Value else r for r in results]


class _Lengths:
    """The lengths in a copy of a tape: those of its inputs are given, others are its own."""

    def __init__(self, known: dict[Size, Dimension]) -> None:
        self._known = known

    def of(self, t: Type) -> Type:
        """A type with these lengths."""
        if isinstance(t, Number):
            if t.size is None:
                return t
            d = self._now(t.size)
            return Number(t.dtype, t.python, d if isinstance(d, Size) else None)
        return ArrayType(t.dtype, tuple(map(self._now, t.shape)))

    def _now(self, d: Dimension) -> Dimension:
        if not isinstance(d, Size):
            return d
        if d not in self._known:
            self._known[d] = self._made(d)
        return self._known[d]

    def _made(self, d: Size) -> Dimension:
        whole, by = d.shortened
        if whole is not d:
            n = self._now(whole)
            return n.minus(by) if isinstance(n, Size) else max(n - by, 0)
        if d.smallest_of:
            return smallest(*map(self._now, d.smallest_of))
        coefficient, factors = d.factors
        if factors != (d,):
            lengths = [self._now(f) for f in factors]
            coefficient *= math.prod(n for n in lengths if isinstance(n, int))
            return product(coefficient, tuple(n for n in lengths if isinstance(n, Size)))
        if d.joined_of != {d}:
            parts = [self._now(part) for part in d.joined_of]
            if all(isinstance(n, Size) for n in parts):
                return joined(*(n for n in parts if isinstance(n, Size)))
        return Size()
