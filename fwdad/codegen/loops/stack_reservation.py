"""Reservation of stack capacity, once, before the outermost loop that pushes.

A stack that grows is copied, or its pages are moved, and it ends with more than it needs. How often
loops over ranges run, and how long arrays can be, is bounded before they begin: a counter is
bounded by its range, a view by its base. Capacity that is never touched uses no memory, unless the
system backs it by large pages: for stacks as large as that, elements are counted exactly, by loops
over those counters that other bounds depend on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fwdad.codegen.loops.buffer_hoisting import OpenLoop
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.terms.element_terms import arity
from fwdad.codegen.numba_support import CHECK_BOUNDS
from fwdad.ir.analysis.indices import affine, counter_loop
from fwdad.ir.builder.index_parts import spelled_out
from fwdad.ir.ops import Apply, Block, Load, Loop, Operand, Value, is_array
from fwdad.ir.primitives.stacks import push
from fwdad.ir.rewrite import blocks_of

_MOST = 2**24  # elements that are reserved at most: a larger stack doubles when it grows
_DEEPEST = 8  # nesting of views
_LARGE = 2**21  # elements: larger stacks are counted, not only bounded; see `_LONG_STACK`
_COUNTING = 2  # nesting of counting loops


def reserve(w: Parts, loop: Loop, known: OpenLoop) -> None:
    """Write, before an outermost loop, the reservation of capacity for all that it pushes.

    ``known`` is the same loop, with the lengths that are known before it.
    """
    if CHECK_BOUNDS:  # spare capacity would hide mistakes of the pushes
        return
    bounds = _Bounds(w, loop, known)
    wanted: dict[Any, list[_Part] | None] = {}
    shapes: dict[Any, list[_Part]] = {}
    for op, around in _in(loop.body, [loop]):
        layout = w.stacks.held[op.args[0]]
        if not layout.name or (len(around) == 1 and layout.few):
            continue  # `make_room` reserves for the second case
        part = bounds.part(op.args[1], around)
        if part is None or wanted.get(layout, []) is None:
            wanted[layout] = None
            continue
        reserved = wanted.setdefault(layout, [])
        assert reserved is not None
        reserved.append(part)
        if layout.shapes and layout.unknown:
            lengths = bounds.part(len(layout.unknown), around)
            shapes.setdefault(layout, []).extend([] if lengths is None else [lengths])
    for layout, parts in wanted.items():
        if parts is None:
            continue
        _make(w, layout.name, layout.top, parts)
        if layout in shapes:
            _make(w, layout.shapes, f"{layout.shapes}_top", shapes[layout])


@dataclass(frozen=True)
class _Part:
    """How many elements of a stack one push takes while a loop runs, as source.

    ``most`` is an upper bound. ``loops`` are the counters that the number depends on, each with its
    range; ``exact`` is the number for given values of these.
    """

    most: str
    loops: tuple[tuple[str, str], ...]
    exact: str


def _make(w: Parts, name: str, top: str, parts: list[_Part]) -> None:
    room, wanted = w.names.temporary("room"), _sum([part.most for part in parts])
    if any(part.loops for part in parts):
        most, wanted = wanted, w.names.temporary("wanted")
        w.code.line(f"{wanted} = {most}")
        w.code.line(f"if {wanted} > {float(_LARGE)}:")
        with w.code.indented():
            _count(w, wanted, parts)
    w.code.line(f"{room} = {top} + {w.helpers.use('room_for')}({wanted}, {float(_MOST)})")
    w.code.line(f"if {room} > {name}.size:")
    w.code.line(f"    {name} = {w.helpers.use('grown')}({name}, {room})")


def _count(w: Parts, wanted: str, parts: list[_Part]) -> None:
    """Write the code that counts the elements."""
    plain = [part.most for part in parts if not part.loops]
    w.code.line(f"{wanted} = {_sum(plain) if plain else '0.0'}")
    for loops in dict.fromkeys(part.loops for part in parts if part.loops):
        indent = ""
        for counter, over in loops:
            w.code.line(f"{indent}for {counter} in {over}:")
            indent += "    "
        w.code.line(f"{indent}{wanted} += {_sum([p.exact for p in parts if p.loops == loops])}")


def _sum(products: list[str]) -> str:
    return " + ".join(f"{float(n)} * {each}" for each, n in Counter(products).items())


def _in(block: Block, around: list[Loop]) -> Iterator[tuple[Apply, list[Loop]]]:
    """The pushes in a loop's body, with the loops around each."""
    for op in block.ops:
        if isinstance(op, Apply) and op.function is push:
            yield op, around
        elif isinstance(op, Loop):
            yield from _in(op.body, [*around, op])


class _Bounds:
    """Upper and lower bounds of numbers in a loop, as sources that can stand before it."""

    def __init__(self, w: Parts, loop: Loop, known: OpenLoop) -> None:
        self.w = w
        self.lengths = known
        self.inside = {id(b) for each in loop.blocks() for b in blocks_of(each)}
        self.counters: dict[Value, str] = {}  # counters that bounds may depend on, and their names
        self.used: set[Value] = set()
        self.names: dict[Value, str] = {}
        self.outside: dict[Value, str] = {}  # what is known before the loop

    def part(self, x: Operand | int, around: list[Loop]) -> _Part | None:
        """How many elements it takes to push ``x`` in nested loops, outermost first, or None."""
        self.counters = {}
        counts, sizes = [self.count(each) for each in around], self.elements(x)
        if sizes is None or None in counts:
            return None
        most = " * ".join([str(n) for n in counts] + sizes)
        self.counters = {each.body.params[0]: "" for each in around}
        self.used = set()
        self.elements(x)
        for each in around:
            self.count(each)
        if not 0 < len(self.used) <= _COUNTING:
            return _Part(most, (), most)
        summed = [each for each in around if each.body.params[0] in self.used]
        for each in summed:
            v = each.body.params[0]
            if v not in self.names:
                self.names[v] = self.w.names.temporary("counter")
            self.counters[v] = self.names[v]
        loops = tuple((self.names[each.body.params[0]], self.range(each)) for each in summed)
        left = [str(self.count(each)) for each in around if each not in summed]
        exact = " * ".join([*left, *(self.elements(x) or ())])
        return _Part(most, loops, exact or "1.0")

    def elements(self, x: Operand | int) -> list[str] | None:
        """The factors of an upper bound of the number of elements that are pushed."""
        return [str(x)] if isinstance(x, int) else self.sizes(x)

    def range(self, loop: Loop) -> str:
        """The range of a loop whose bounds are known."""
        assert loop.span is not None
        start, stop, step = loop.span
        up = isinstance(step, int) and step > 0
        ends = (self.bound(start, least=up), self.bound(stop, least=not up))
        return f"range({ends[0]}, {ends[1]}, {step})"

    def count(self, loop: Loop) -> str | None:
        """How often a loop over a range runs at most, each time that it is reached."""
        if loop.span is None or loop.leaves:
            return None
        start, stop, step = loop.span
        if type(step) is not int or step == 0:
            return None
        first, last = (start, stop) if step > 0 else (stop, start)
        low, high = self.bound(first, least=True), self.bound(last, least=False)
        if low is None or high is None:
            return None
        low = low if low.isdigit() else f"({low})"
        length = high if low == "0" else f"{high} - {low}"
        if abs(step) != 1:
            length = f"({length}) // {abs(step)} + 1"
        return f"{self.w.helpers.use('larger')}({length}, 0)"

    def sizes(self, x: Operand) -> list[str] | None:
        """Upper bounds of the lengths of what is pushed."""
        if not is_array(x):
            return []
        lengths = [self.length(x, axis, _DEEPEST) for axis in range(x.type.ndim)]
        return None if None in lengths else [n for n in lengths if n is not None]

    def length(self, v: Value, axis: int, depth: int) -> str | None:
        """An upper bound of one length: known before the loop, or that of the view's base."""
        shape = self.lengths.shape(v)
        if shape is not None:
            return shape[axis]
        d = self.lengths.length(v.type.shape[axis])
        op = self.w.memory.known.definition.get(v)
        if d is not None or depth == 0:
            return d
        if isinstance(op, Load) and op.view:
            return self._of_view(op, axis, depth)
        if isinstance(op, Apply) and arity(op) is not None:
            for a in op.args:
                if is_array(a) and a.type.ndim == v.type.ndim and a.type.shape[axis] != 1:
                    length_of_a = self.length(a, axis, depth - 1)
                    if length_of_a is not None:
                        return length_of_a
        return None

    def _of_view(self, op: Load, axis: int, depth: int) -> str | None:
        """An upper bound of a view's length, from the axis of its base."""
        if any(i is None or is_array(i) for i in op.index):
            return None
        parts = spelled_out(op.index, op.array.type.ndim)
        source_axis = [k for k, i in enumerate(parts) if isinstance(i, slice)][axis]
        s = parts[source_axis]
        if s.start is None and s.stop is not None and s.step is None:  # at most its stop
            most = self.bound(s.stop, least=False)
            counters, self.counters = self.counters, {}
            least = self.bound(s.stop, least=True)
            self.counters = counters
            if most is not None and least is not None and least.isdigit():
                return f"{self.w.helpers.use('larger')}({most}, 0)"
        return self.length(op.array, source_axis, depth - 1)

    def bound(self, x: Operand, *, least: bool) -> str | None:
        """A lower or an upper bound of an int while the loop runs."""
        position = affine(x, self.w.memory.known)
        if position is None:
            return None
        if position.base is None:
            return str(position.offset)
        base = self._bound_of(position.base, least=least)
        if base is None or not position.offset:
            return base
        if _is_int(base):
            return str(int(base) + position.offset)
        return f"{base} {'+' if position.offset > 0 else '-'} {abs(position.offset)}"

    def _bound_of(self, v: Value, *, least: bool) -> str | None:
        if v in self.counters:
            self.used.add(v)
            return self.counters[v] or "0"
        if id(self.w.memory.known.home.get(v)) not in self.inside:
            if v not in self.outside:
                self.outside[v] = self.w.operands.atom(self.w.operands.term(v)).text
            return self.outside[v]
        loop = counter_loop(v, self.w.memory.known)
        if loop is None or loop.span is None:
            return None
        start, stop, step = loop.span
        if type(step) is not int or step == 0:
            return None
        if (step > 0) is least:
            return self.bound(start, least=least)
        end = self.bound(stop, least=least)
        if end is None:
            return None
        beside = -1 if step > 0 else 1
        return str(int(end) + beside) if _is_int(end) else f"{end} {'+' if beside > 0 else '-'} 1"


def _is_int(text: str) -> bool:
    return text.lstrip("-").isdigit()
