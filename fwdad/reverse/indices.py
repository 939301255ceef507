"""Which elements a load and a store may have in common, told from their indices.

An index is read as ``counter + constant`` for the counter of a loop around it. While a loop runs
upwards, what is stored later at ``i + b`` lies behind what was read at ``i + a`` if a < b.
"""

from __future__ import annotations

import operator
from typing import NamedTuple

from fwdad.reverse.structure import Structure
from fwdad.tape.ops import Apply, Block, Loop, Op, Operand, Value, is_array
from fwdad.tape.scattering import Target


class Affine(NamedTuple):
    """A number that is another one plus a constant; a constant alone has no base."""

    base: Value | None
    offset: int


class Interval(NamedTuple):
    """The places on one axis that an index means, from ``low`` up to and without ``high``.

    None stands for an end that is not known.
    """

    low: Affine | None
    high: Affine | None


def affine(x: Operand, structure: Structure) -> Affine | None:
    """A number as something plus a constant; None if it is no integer."""
    if isinstance(x, bool) or x is None:
        return None
    if isinstance(x, int):
        return Affine(None, x)
    if not isinstance(x, Value) or x.type.dtype.kind not in "iu" or is_array(x):
        return None
    op = structure.definition.get(x)
    if isinstance(op, Apply) and op.function in (operator.add, operator.sub) and len(op.args) == 2:
        a, b = (affine(arg, structure) for arg in op.args)
        if a is not None and b is not None:
            if b.base is None:
                sign = 1 if op.function is operator.add else -1
                return Affine(a.base, a.offset + sign * b.offset)
            if a.base is None and op.function is operator.add:
                return Affine(b.base, a.offset + b.offset)
    return Affine(x, 0)


def intervals(index: tuple[Operand, ...], ndim: int, structure: Structure) -> list[Interval] | None:
    """The places that an index means on each axis; None if it is not a plain one."""
    if any(i is None or is_array(i) or isinstance(i, (list, bool)) for i in index):
        return None
    parts = list(index)
    if Ellipsis in [i for i in parts if i is Ellipsis]:
        at = next(k for k, i in enumerate(parts) if i is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (ndim - len(parts) + 1)
    parts += [slice(None)] * (ndim - len(parts))
    found = []
    for i in parts:
        if isinstance(i, slice):
            if i.step not in (None, 1):
                found.append(Interval(None, None))
                continue
            low = Affine(None, 0) if i.start is None else _place(i.start, structure)
            high = None if i.stop is None else _place(i.stop, structure)
            found.append(Interval(low, high))
        else:
            place = _place(i, structure)
            end = None if place is None else Affine(place.base, place.offset + 1)
            found.append(Interval(place, end))
    return found


def _place(i: Operand, structure: Structure) -> Affine | None:
    """A place on an axis; None if it may be counted from the end."""
    found = affine(i, structure)
    return found if found is not None and _natural(found, structure) else None


def _natural(x: Affine, structure: Structure) -> bool:
    """Whether a number is surely not negative: else it would be counted from the end."""
    base = x.base
    if base is None or base in structure.natural:
        return x.offset >= 0
    loop = counter_loop(base, structure)
    if loop is None or loop.span is None:
        return False
    start, stop, step = loop.span
    if not isinstance(step, int):
        return False
    if step > 0:
        least = affine(start, structure)
    else:
        end = affine(stop, structure)  # the counter stays above it
        least = None if end is None else Affine(end.base, end.offset + 1)
    if least is None:
        return False
    return _natural(Affine(least.base, least.offset + x.offset), structure)


def counter_loop(v: Value, structure: Structure) -> Loop | None:
    """The loop whose counter a value is."""
    home = structure.home.get(v)
    if home is None or structure.definition.get(v) is not None:
        return None
    loop = structure.holder.get(id(home))
    if isinstance(loop, Loop) and loop.span is not None and home.params and home.params[0] is v:
        return loop
    return None


def loops_around(block: Block, structure: Structure) -> list[Loop]:
    """The loops that a block is in, the outermost first."""
    found = [h for _, h in structure.chain(block) if isinstance(h, Loop)]
    return found[::-1]


def may_meet(
    read: list[Interval] | None,
    read_block: Block,
    store: Op,
    target: Target,
    structure: Structure,
    *,
    after: bool,
) -> bool:
    """Whether a store may write, later than a read, an element that was read.

    Parameters
    ----------
    read : list of Interval or None
        What was read, on each axis of the array.
    read_block : Block
        Where.
    store : Op
        What writes.
    target : Target
        The elements of the same array that it writes.
    structure : Structure
        The program.
    after : bool
        Whether the store comes after the read within one iteration of the loops that both are in.
    """
    written = intervals(target.at, target.array.type.ndim, structure)
    if read is None or written is None or len(read) != len(written):
        return True
    own = loops_around(read_block, structure)
    others = loops_around(structure.block_of[store], structure)
    common = [a for a, b in zip(own, others, strict=False) if a is b]
    for loop in common:
        if loop.span is None or not isinstance(loop.span[2], int) or loop.span[2] == 0:
            return True
        counter = loop.body.params[0]
        verdict = _along(counter, loop.span[2], read, written, structure)
        if verdict is True:
            return False
        if verdict is None:
            return True
    # in the same iteration of all loops that both are in
    return after and not _apart(read, written)


def _along(
    counter: Value,
    step: int,
    read: list[Interval],
    written: list[Interval],
    structure: Structure,
) -> bool | None:
    """Over the iterations of one loop: True if never, False if only within one, None if unknown."""
    found: bool | None = None
    for r, w in zip(read, written, strict=True):
        # later stores lie higher: what was read ends at r.high, what is written begins at w.low
        end, begin = (r.high, w.low) if step > 0 else (w.high, r.low)
        end = _bound(end, counter, structure, least=False)
        begin = _bound(begin, counter, structure, least=True)
        if end is not None and begin is not None and end.base is begin.base is counter:
            if end.offset <= begin.offset:
                return True
        if r == w and _single(r, counter):
            found = False
    return found


def _bound(x: Affine | None, counter: Value, structure: Structure, *, least: bool) -> Affine | None:
    """The least, or the greatest, that a number is in an iteration of a loop around.

    Where it goes by the counter of a loop inside, it is told by that loop's range, if that goes by
    the counter of the loop around.
    """
    while x is not None and x.base is not None and x.base is not counter:
        loop = counter_loop(x.base, structure)
        if loop is None or loop.span is None or type(loop.span[2]) is not int or not loop.span[2]:
            return x
        start, stop, step = loop.span
        first, last = affine(start, structure), affine(stop, structure)
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


def _single(r: Interval, counter: Value) -> bool:
    """Whether an interval is one place that moves with a counter."""
    if r.low is None or r.high is None:
        return False
    return r.low.base is r.high.base is counter and r.high.offset - r.low.offset == 1


def _apart(read: list[Interval], written: list[Interval]) -> bool:
    """Whether two windows have no element in common, for the same values of all counters."""
    for r, w in zip(read, written, strict=True):
        for a, b in ((r.high, w.low), (w.high, r.low)):
            if a is not None and b is not None and a.base is b.base and a.offset <= b.offset:
                return True
    return False
