"""Index analysis: which elements of an array an index selects, as far as is known.

An index is analysed as ``counter + constant``, for the counter of a surrounding loop.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

from fwdad.ir.analysis.alias import aliased_arguments
from fwdad.ir.builder.index_parts import spelled_out
from fwdad.ir.ops import Apply, Block, Load, Loop, Op, Operand, Program, Value, is_array
from fwdad.ir.rewrite import blocks_of, defined_by


class Definitions(Protocol):
    """Where the values of a program are defined."""

    @property
    def definition(self) -> Mapping[Value, Op]:
        """The operation that defines each value."""

    @property
    def home(self) -> Mapping[Value, Block]:
        """The block in which each value is defined."""

    @property
    def holder(self) -> Mapping[int, Op]:
        """The operation that each block is in, by the id of the block."""

    @property
    def natural(self) -> AbstractSet[Value]:
        """Numbers from outside that are known not to be negative."""


class Places:
    """The :class:`Definitions` of a program, which must not change while they are in use."""

    def __init__(self, program: Program) -> None:
        self.definition: dict[Value, Op] = {}
        self.home: dict[Value, Block] = dict.fromkeys(program.block.params, program.block)
        self.holder: dict[int, Op] = {}
        self.natural: set[Value] = set()
        for block in blocks_of(program.block):
            for op in block.ops:
                for inner in op.blocks():
                    self.holder[id(inner)] = op
                    self.home.update(dict.fromkeys(inner.params, inner))
                values = defined_by(op)
                self.definition.update(dict.fromkeys(values, op))
                self.home.update(dict.fromkeys(values, block))
                self.natural.update(v for v in values if getattr(v.type, "size", None) is not None)


class Affine(NamedTuple):
    """A number ``base + offset``; a constant has no base."""

    base: Value | None
    offset: int


class Interval(NamedTuple):
    """The positions on one axis from ``low`` up to but excluding ``high``.

    None stands for an unknown end.
    """

    low: Affine | None
    high: Affine | None


def affine(x: Operand, known: Definitions) -> Affine | None:
    """An integer as a base plus a constant; None if it is not an integer."""
    if isinstance(x, bool) or x is None:
        return None
    if isinstance(x, int):
        return Affine(None, x)
    if not isinstance(x, Value) or x.type.dtype.kind not in "iu" or is_array(x):
        return None
    op = known.definition.get(x)
    if isinstance(op, Apply) and op.function in (operator.add, operator.sub) and len(op.args) == 2:
        a, b = (affine(arg, known) for arg in op.args)
        if a is not None and b is not None:
            if b.base is None:
                sign = 1 if op.function is operator.add else -1
                return Affine(a.base, a.offset + sign * b.offset)
            if a.base is None and op.function is operator.add:
                return Affine(b.base, a.offset + b.offset)
    return Affine(x, 0)


def intervals(index: tuple[Operand, ...], ndim: int, known: Definitions) -> list[Interval] | None:
    """The positions that an index selects on each axis; None unless the index is basic."""
    if any(i is None or is_array(i) or isinstance(i, (list, bool)) for i in index):
        return None
    found = []
    for i in spelled_out(index, ndim):
        if isinstance(i, slice):
            if i.step not in (None, 1):
                found.append(Interval(None, None))
                continue
            low = Affine(None, 0) if i.start is None else _place(i.start, known)
            high = None if i.stop is None else _place(i.stop, known)
            found.append(Interval(low, high))
        else:
            place = _place(i, known)
            end = None if place is None else Affine(place.base, place.offset + 1)
            found.append(Interval(place, end))
    return found


def _place(i: Operand, known: Definitions) -> Affine | None:
    """A position on an axis; None if it may count from the end."""
    position = affine(i, known)
    return position if position is not None and _natural(position, known) else None


def _natural(x: Affine, known: Definitions) -> bool:
    """Whether a number is known not to be negative, so that it does not count from the end."""
    base = x.base
    if base is None or base in known.natural:
        return x.offset >= 0
    loop = counter_loop(base, known)
    if loop is None or loop.span is None:
        return False
    start, stop, step = loop.span
    if not isinstance(step, int):
        return False
    if step > 0:
        least = affine(start, known)
    else:
        end = affine(stop, known)  # the counter stays above it
        least = None if end is None else Affine(end.base, end.offset + 1)
    if least is None:
        return False
    return _natural(Affine(least.base, least.offset + x.offset), known)


def counter_loop(v: Value, known: Definitions) -> Loop | None:
    """The loop whose counter a value is."""
    home = known.home.get(v)
    if home is None or known.definition.get(v) is not None:
        return None
    loop = known.holder.get(id(home))
    if isinstance(loop, Loop) and loop.span is not None and home.params and home.params[0] is v:
        return loop
    return None


def are_apart(read: list[Interval], written: list[Interval]) -> bool:
    """Whether two indices of one array share no element, for equal values of all counters."""
    for r, w in zip(read, written, strict=True):
        for a, b in ((r.high, w.low), (w.high, r.low)):
            if a is not None and b is not None and a.base is b.base and a.offset <= b.offset:
                return True
    return False


def bound(
    x: Affine | None, known: Definitions, keeps: Callable[[Value], bool], *, least: bool
) -> Affine | None:
    """The least or the greatest value of a number over the counters that ``keeps`` rejects."""
    while x is not None and x.base is not None and not keeps(x.base):
        loop = counter_loop(x.base, known)
        if loop is None or loop.span is None or type(loop.span[2]) is not int or not loop.span[2]:
            return x
        start, stop, step = loop.span
        first, last = affine(start, known), affine(stop, known)
        if (step > 0) is least:  # the counter begins with it
            found = first
        elif last is None:
            return x
        else:  # the counter ends before it
            found = Affine(last.base, last.offset + (-1 if step > 0 else 1))
        if found is None:
            return x
        x = Affine(found.base, found.offset + x.offset)
    return x


def is_apart_throughout(op: Load, at: tuple[Operand, ...], loop: Loop, known: Definitions) -> bool:
    """Whether an index in a loop never selects the element that a load reads before the loop.

    ``at`` indexes the array of ``op``, whose elements must be distinct memory; the loop must not
    change what the index of ``op`` is made of.
    """
    ndim = op.array.type.ndim
    read, written = intervals(op.index, ndim, known), intervals(at, ndim, known)
    if read is None or written is None:
        return False
    inside = {id(b) for b in blocks_of(loop.body)}

    def is_outside(v: Value) -> bool:
        return id(known.home.get(v)) not in inside

    reached = [
        Interval(
            bound(w.low, known, is_outside, least=True),
            bound(w.high, known, is_outside, least=False),
        )
        for w in written
    ]
    return are_apart(read, reached)


def is_view_apart(
    view: Value, array: Value, index: tuple[Operand, ...], known: Definitions
) -> bool:
    """Whether a view shares no element with ``array[index]``, whose memory it may be in."""
    op = known.definition.get(view)
    if not (isinstance(op, Load) and op.view and op.array is array):
        return False
    if not has_own_elements(array, known):
        return False
    read, written = (intervals(at, array.type.ndim, known) for at in (op.index, index))
    return read is not None and written is not None and are_apart(read, written)


def is_same_view(view: Value, array: Value, index: tuple[Operand, ...], known: Definitions) -> bool:
    """Whether a view is ``array[index]``."""
    op = known.definition.get(view)
    if not (isinstance(op, Load) and op.view and op.array is array and op.index == index):
        return False
    return has_own_elements(array, known)


def has_own_elements(array: Value, known: Definitions) -> bool:
    """Whether different indices are different memory: true of an array made here and its slices."""
    op = known.definition.get(array)
    while isinstance(op, Load) and op.view:
        op = known.definition.get(op.array)
    return isinstance(op, Apply) and not aliased_arguments(op)
