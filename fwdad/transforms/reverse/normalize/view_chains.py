"""Views as an array and a chain of steps: indices and rearrangements.

``a.reshape(3, 2)[k]`` is the array ``a``, a reshape to two lengths and an index of one number.
Views of the same kind differ only in the array and in numbers, and these can be selected and
carried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fwdad.ir.analysis.layout import order_of
from fwdad.ir.builder.index_parts import spelled_out
from fwdad.ir.ops import Apply, Load, Op, Operand, Value, is_array, values_in
from fwdad.ir.types import ArrayType, Size, Type
from fwdad.ops import Memory, record_of

_MOST = 6  # steps between an array and a view of it


class Step(NamedTuple):
    """One view of another.

    ``of`` is what it is taken of in the program, ``made`` its type. ``parts`` are an int, a slice
    or None for each part of a basic index, or the lengths of a reshape; ``call`` is None for an
    index.
    """

    of: Value
    made: Type
    parts: tuple[Operand, ...]
    call: Apply | None = None

    @property
    def kind(self) -> tuple[Any, ...]:
        """What it does, whatever its numbers."""
        if self.call is None:
            return tuple(("slice", p.step) if type(p) is slice else p is None for p in self.parts)
        rest = repr((self.call.args[1:], self.call.kwargs))
        distinguishing = len(self.parts) if _is_reshape(self.call) else rest
        return (self.call.function, self.of.type.ndim, distinguishing)

    def ends(self) -> Iterator[tuple[Operand, int]]:
        """Each number, and the axis that it applies to."""
        axes = (p for p in self.parts if p is not None)
        for axis, p in enumerate(axes):
            for x in _numbers(p):
                yield x, axis

    def by(self, given: Iterator[Operand]) -> Step:
        """The same step with other numbers."""
        parts: list[Operand] = []
        for p in self.parts:
            if type(p) is slice:
                parts.append(slice(next(given), next(given), p.step))
            else:
                parts.append(None if p is None else next(given))
        return self._replace(parts=tuple(parts))

    def written(self, of: Value, v: Value, location: Any) -> Op:
        """The operation that takes this view of an array."""
        if self.call is None:
            return Load(of, self.parts, True, outputs=(v,), location=location)
        if _is_reshape(self.call):
            return Apply(np.reshape, (of, self.parts), outputs=(v,), location=location)
        args, kwargs = (of, *self.call.args[1:]), dict(self.call.kwargs)
        return Apply(self.call.function, args, kwargs, outputs=(v,), location=location)


class View(NamedTuple):
    """An array, and the steps from it to a view."""

    base: Value
    steps: tuple[Step, ...]

    @property
    def kinds(self) -> tuple[Any, ...]:
        """What its steps do, whatever their numbers."""
        return tuple(step.kind for step in self.steps)

    @property
    def numbers(self) -> tuple[Operand, ...]:
        """The numbers in its steps; None where a slice ends with the array."""
        return tuple(x for x, _, _ in self.ends())

    def ends(self) -> Iterator[tuple[Operand, Value, int]]:
        """Each number, the array whose index it is in, and the axis there."""
        for step in self.steps:
            for x, axis in step.ends():
                yield x, step.of, axis

    def of(self, base: Value, numbers: Sequence[Operand]) -> View:
        """The same view of another array, with other numbers."""
        given = iter(numbers)
        return View(base, tuple(step.by(given) for step in self.steps))

    def alike(self, others: Sequence[View]) -> View:
        """The same view, with the types that it shares with others of its kind."""
        steps = list(self.steps)
        for other in others:
            steps = [
                s._replace(made=either(s.made, t.made))
                for s, t in zip(steps, other.steps, strict=True)
            ]
        return View(self.base, tuple(steps))

    def written(self, v: Value, location: Any) -> list[Op]:
        """The operations that take the view and bind it to a value."""
        ops: list[Op] = []
        of = self.base
        for step in self.steps[:-1]:
            out = Value(step.made, step.of.name)
            ops.append(step.written(of, out, location))
            of = out
        return [*ops, self.steps[-1].written(of, v, location)]


def whole(v: Value) -> View:
    """An array as a view of itself."""
    parts = (slice(0, None, 1),) * v.type.ndim
    return View(v, (Step(v, v.type, parts),))


def chain(
    r: Value, definition: dict[Value, Op], lies_by_rows: Callable[[Value], bool]
) -> list[View]:
    """What an array is a view of, with one step, two steps, and so on; last, the array itself.

    ``lies_by_rows`` returns whether an array is known to be C-contiguous.
    """
    views: list[View] = []
    steps: tuple[Step, ...] = ()
    v = r
    while len(steps) < _MOST:
        step = _step(definition.get(v), v, lies_by_rows)
        if step is None:
            break
        steps, v = (step, *steps), step.of
        views.append(View(v, steps))
    return [*views, whole(r)]


def _step(op: Op | None, v: Value, lies_by_rows: Callable[[Value], bool]) -> Step | None:
    """How an array is taken of another one; None if it is no view, or an unsupported one."""
    if isinstance(op, Load) and op.view:
        parts = _parts(op)
        return None if parts is None else Step(op.array, v.type, parts)
    if not isinstance(op, Apply) or len(op.outputs) != 1 or not op.args or not is_array(op.args[0]):
        return None
    record = record_of(op.function)
    if record.memory is Memory.IF_CONTIGUOUS:
        return _reshaped(op, v) if order_of(op) == "C" and lies_by_rows(op.args[0]) else None
    if op.function is np.squeeze and len(op.args) + len(op.kwargs) == 1:
        return None  # which axes are removed depends on the lengths
    if record.rearranges and not values_in([*op.args[1:], *op.kwargs.values()]):
        return Step(op.args[0], v.type, (), op)
    return None


def _reshaped(op: Apply, v: Value) -> Step | None:
    """A reshape to lengths that are ints; None if it is another one."""
    of, *rest = op.args
    if op.function is np.ravel:
        return Step(of, v.type, (-1,), Apply(np.reshape, (of, (-1,))))
    given = rest[0] if rest else op.kwargs.get("shape", op.kwargs.get("newshape"))
    shape = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    shape = tuple(int(n) if isinstance(n, np.integer) else n for n in shape)
    if not all(type(n) is int or _is_int(n) for n in shape):
        return None
    return Step(of, v.type, shape, op)


def _is_reshape(call: Apply) -> bool:
    return call.function is np.reshape


def _parts(op: Load) -> tuple[Operand, ...] | None:
    """A basic index with one part for each axis; None if a slice has a negative step."""
    parts: list[Operand] = []
    for i in spelled_out(op.index, op.array.type.ndim):
        if type(i) is slice:
            step = 1 if i.step is None else i.step
            if type(step) is not int or step < 1:
                return None
            i = slice(0 if i.start is None else i.start, i.stop, step)
        elif isinstance(i, np.integer):
            i = int(i)
        elif i is not None and not (type(i) is int or _is_int(i)):
            return None
        parts.append(i)
    return tuple(parts)


def _is_int(i: Operand) -> bool:
    return isinstance(i, Value) and not is_array(i) and i.type.dtype.kind in "iu"


def _numbers(p: Operand) -> tuple[Operand, ...]:
    return (p.start, p.stop) if type(p) is slice else (p,)


def either(one: Type, other: Type) -> Type:
    """The type of an array that is one of two."""
    pairs = zip(one.shape, other.shape, strict=True)
    return ArrayType(one.dtype, tuple(m if m == n else Size() for m, n in pairs))
