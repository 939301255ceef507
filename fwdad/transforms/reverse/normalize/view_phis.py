"""View phis: views that branches select and loops move, split into an array and numbers.

``w = a[:3] if c else b[1:]`` becomes a selection of an array and one of numbers, followed by the
view; a loop that begins with ``w = a[:2]`` and ends with ``w = a[k:k + 2]`` carries two numbers.
Then a view is taken of an array that exists, and so is that of its cotangent. Views of views are
one array and several indices, with reshapes and transposes among them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fwdad.ir.analysis.alias import Roots, memory_of
from fwdad.ir.analysis.layout import Order, Orders
from fwdad.ir.builder.shape_env import length_of
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Loop,
    Op,
    Operand,
    Program,
    Value,
    is_array,
    walk,
)
from fwdad.ir.rewrite import all_inside, defined_by, substitute
from fwdad.ir.types import INT
from fwdad.transforms.reverse.normalize.view_chains import View, chain, either, whole
from fwdad.transforms.reverse.structure import NotReversibleError


class _Moved(NamedTuple):
    """A view that a loop moves.

    Attributes
    ----------
    output, result : Value
        The view after the loop, and the one that an iteration returns.
    base : Value
        The array that it is a view of: from outside, or carried by the loop.
    first : View
        The initial view, with the types that all iterations share.
    numbers : tuple of operands
        The numbers of the view with which an iteration begins.
    places : list of int
        The positions of the numbers that are carried.
    """

    output: Value
    result: Value
    base: Value
    first: View
    numbers: tuple[Operand, ...]
    places: list[int]


def lower_view_phis(block: Block, *, rows: bool = False) -> None:
    """Let branches and loops select arrays and numbers where they select views of memory.

    Rewrites the block, which must be the caller's own; it may use values from outside. ``rows``:
    its array parameters are known to be C-contiguous. ``NotReversibleError`` if a loop moves a view
    in an unsupported way.
    """
    if any(isinstance(op, (Branch, Loop)) for op in block.ops):
        _Writer(block, rows=rows).write(block)


class _Writer:
    """Rewrites the branches and loops of a program."""

    def __init__(self, top: Block, *, rows: bool) -> None:
        self.orders = Orders(Program("", top, rows=rows))
        self.in_rows: set[Value] = set()  # what is chosen among arrays that are C-contiguous
        self.wanted: dict[Value, Any] = {}  # the kind of view that a name is to be
        self.roots: Roots = memory_of(Program("", top))
        self.written = {
            root for op in walk(top) for v in op.writes() for root in self.roots.get(v, {v})
        }
        self.definition = {v: op for op in walk(top) for v in defined_by(op)}

    def write(self, block: Block) -> None:
        """Rewrite a block, innermost branches first."""
        for op in list(block.ops):
            if isinstance(op, Loop):
                self._loop(block, op)
                continue
            for inner in op.blocks():
                self.write(inner)
            if isinstance(op, Branch):
                for v in op.outputs:
                    self._branch(block, op, v)

    def _is_memory(self, v: Any) -> bool:
        return is_array(v) and bool(self.roots.get(v, {v}) & self.written)

    def _lies_by_rows(self, v: Value) -> bool:
        return v in self.in_rows or self.orders.of(v) is Order.ROWS

    def _views(self, r: Value) -> list[View]:
        """What an array is a view of, with one step or more; last, the array itself."""
        return chain(r, self.definition, self._lies_by_rows)

    # -- branches

    def _branch(self, block: Block, op: Branch, v: Value) -> None:
        """Replace an output of a branch by a view of other outputs."""
        at = op.outputs.index(v)
        sides = (op.then, op.other)
        results = [side.results[at] for side in sides]
        if not self._is_memory(v) or not all(is_array(r) for r in results):
            return
        inside = [all_inside(side) for side in sides]
        options = [
            [w for w in self._views(r) if not self._is_made_of(w.base, within)]
            for r, within in zip(results, inside, strict=True)
        ]
        pairs = [(a, b) for a in options[0] for b in options[1] if a.kinds == b.kinds]
        if not pairs:
            return
        wanted = self.wanted.get(v)
        first, second = min(pairs, key=lambda p: (p[0].kinds != wanted, p[0].base is not p[1].base))
        if (first.base, second.base) == tuple(results):
            return  # arrays are chosen as they are
        base = first.base
        if base is not second.base:
            base = self._output(op, (first.base, second.base))
        numbers = self._chosen(op, first, second)
        at = op.outputs.index(v)
        op.outputs = tuple(o for o in op.outputs if o is not v)
        for side in sides:
            del side.results[at]
        view = first.alike([second]).of(base, numbers)
        self._take(block.ops, block.ops.index(op) + 1, v, view, op)

    def _is_made_of(self, r: Value, within: set[Value]) -> bool:
        """Whether an array is a view that is taken inside a side."""
        return r in within and self.roots.get(r, {r}) != {r}

    def _output(self, op: Branch, results: tuple[Operand, Operand]) -> Value:
        """Add a result to a branch."""
        one, other = results
        kind = either(one.type, other.type) if is_array(one) else INT
        output = Value(kind, getattr(one, "name", None))
        for side, r in zip((op.then, op.other), results, strict=True):
            side.results.append(r)
        op.outputs = (*op.outputs, output)
        self.definition[output] = op
        if all(is_array(r) and self._lies_by_rows(r) for r in results):
            self.in_rows.add(output)
        self.roots[output] = {
            root for r in results if is_array(r) for root in self.roots.get(r, {r})
        }
        return output

    def _chosen(self, op: Branch, first: View, second: View) -> tuple[Operand, ...]:
        """The numbers of a view that is one of two."""
        found: list[Operand] = []
        for (a, of, axis), (b, other_of, _) in zip(first.ends(), second.ends(), strict=True):
            if _same(a, b):
                found.append(a)
                continue
            one = self._number(op.then.ops, a, of, axis)
            other = self._number(op.other.ops, b, other_of, axis)
            found.append(self._output(op, (one, other)))
        return tuple(found)

    # -- loops

    def _loop(self, block: Block, op: Loop) -> None:
        moved = [self._open(block, op, p, views) for p, views in self._moving(op)]
        for inner in op.blocks():
            self.write(inner)
        for view in moved:
            self._close(block, op, view)

    def _moving(self, op: Loop) -> list[tuple[Value, list[View]]]:
        """The carried values that are always views of an array from outside, or a carried one."""
        within = all_inside(op.body)
        found = []
        for k, p in enumerate(op.carried):
            first, last = op.initial[k], op.body.results[k]
            if not self._is_memory(p) or not (is_array(first) and is_array(last)):
                continue
            names: dict[Value, None] = {}
            later = list(dict.fromkeys(self._leaves(last, {p}, names)))
            if not later or not all(map(is_array, later)):
                continue
            options = [
                [w for w in self._views(r) if self._is_there(w.base, p, op, within)] for r in later
            ]
            if all(w[:1] == [whole(r)] for w, r in zip(options, later, strict=True)):
                continue  # arrays are carried as they are
            begun = [self._views(first), *options]
            kinds = [w.kinds for w in options[0]]
            kinds.sort(key=lambda kind: kind != self.wanted.get(op.outputs[k]))
            for kind in kinds:
                views = [[w for w in ways if w.kinds == kind][:1] for ways in begun]
                if all(views):
                    found.append((p, [w for (w,) in views]))
                    self.wanted.update((v, kind) for v in names)
                    break
        moved = {p for p, _ in found}  # no array stands for these in the loop any more
        return [(p, ws) for p, ws in found if not any(w.base in moved for w in ws)]

    def _is_there(self, base: Value, p: Value, op: Loop, within: set[Value]) -> bool:
        """Whether an array is from outside of a loop's body, perhaps under another name.

        The moved name itself does not count, since a view of it gets shorter each time.
        """
        if base not in within:
            return True
        if self.roots.get(base, {base}) & within:
            return False
        definition = self.definition.get(base)
        return base is not p and (base in op.carried or isinstance(definition, (Branch, Loop)))

    def _leaves(self, r: Any, seen: set[Value], names: dict[Value, None]) -> Iterator[Any]:
        """The arrays that branches and loops select from, except what it was before."""
        if not is_array(r):
            yield r
            return
        if r in seen:
            return
        seen.add(r)
        op = self.definition.get(r)
        if not isinstance(op, (Branch, Loop)) or r not in op.outputs:
            yield r
            return
        names[r] = None
        at = op.outputs.index(r)
        if isinstance(op, Loop):
            seen.add(op.carried[at])
            ways = [op.initial[at], op.body.results[at]]
        else:
            ways = [op.then.results[at], op.other.results[at]]
        for way in ways:
            yield from self._leaves(way, seen, names)

    def _open(self, block: Block, op: Loop, p: Value, views: list[View]) -> _Moved:
        """Let a loop carry the numbers of a view instead of the view."""
        first = views[0].alike(views[1:])
        before: list[Op] = []
        numbers: list[Operand] = []
        places: list[int] = []
        for at, (x, of, axis) in enumerate(first.ends()):
            if all(_same(w.numbers[at], x) for w in views):
                numbers.append(x)
                continue
            numbers.append(_carry(op, self._number(before, x, of, axis)))
            places.append(at)
        position = block.ops.index(op)
        block.ops[position:position] = before
        k = op.carried.index(p)
        base = first.base
        output, result = op.outputs[k], op.body.results[k]
        if all(w.base is base for w in views):
            _forget(op, k)
        else:
            base = self._other_base(op, k, [w.base for w in views])
        moved = _Moved(output, result, base, first, tuple(numbers), places)
        for inner in op.blocks():
            v = Value(p.type, p.name)
            substitute(inner, {p: v})
            self._take(inner.ops, 0, v, first.of(base, moved.numbers), op)
        return moved

    def _other_base(self, op: Loop, k: int, bases: list[Value]) -> Value:
        """Let a loop carry the array that a view is taken of, one of several."""
        kind = functools.reduce(either, [v.type for v in bases])
        base, last = Value(kind, bases[0].name), Value(kind, bases[0].name)
        self.roots[base] = self.roots[last] = {r for v in bases for r in self.roots.get(v, {v})}
        if all(map(self._lies_by_rows, bases)):
            self.in_rows.update((base, last))
        op.body.params[op.body.params.index(op.carried[k])] = base
        op.outputs = (*op.outputs[:k], last, *op.outputs[k + 1 :])
        op.initial[k], op.body.results[k] = bases[0], None
        return base

    def _close(self, block: Block, op: Loop, moved: _Moved) -> None:
        """Carry the numbers of the view that an iteration returns; take the view after the loop."""
        first = moved.first
        ways = [w for w in self._views(moved.result) if w.kinds == first.kinds]
        if not ways:
            message = "a loop moves a view of an array that is written, in more than one way"
            raise NotReversibleError(message, op.location)
        last = ways[0]
        ends, numbers = list(last.ends()), list(moved.numbers)
        for at in moved.places:
            x, of, axis = ends[at]
            k = op.carried.index(moved.numbers[at])
            op.body.results[k] = self._number(op.body.ops, x, of, axis)
            numbers[at] = op.outputs[k]
        base = moved.base
        if base in op.carried:
            k = op.carried.index(base)
            op.body.results[k], base = last.base, op.outputs[k]
        view = first.of(base, tuple(numbers))
        self._take(block.ops, block.ops.index(op) + 1, moved.output, view, op)

    # -- numbers

    def _number(self, ops: list[Op], x: Operand, base: Value, axis: int) -> Operand:
        """A number of a view as an int; None stands for the end of the array."""
        if not isinstance(x, Value) and x is not None:
            return x
        if isinstance(x, Value) and x.type == INT:
            return x
        made = Value(INT)
        call = Apply(length_of, (base, axis)) if x is None else Apply(int, (x,))
        call.outputs = (made,)
        ops.append(call)
        self.definition[made] = call
        return made

    def _take(self, ops: list[Op], at: int, v: Value, view: View, op: Op) -> None:
        made = view.written(v, op.location)
        ops[at:at] = made
        for step in made:
            (out,) = step.outputs
            self.definition[out] = step
            self.roots[out] = self.roots.get(view.base, {view.base})
            if isinstance(step, Apply) and step.function is np.reshape:
                self.in_rows.add(out)  # of an array that is C-contiguous


def _carry(op: Loop, first: Operand) -> Value:
    """Let a loop carry one more number; its next value is set later."""
    param = Value(INT)
    op.body.results.insert(len(op.carried), None)
    op.initial.append(first)
    op.body.params.append(param)
    op.outputs = (*op.outputs, Value(INT))
    return param


def _forget(op: Loop, k: int) -> None:
    """Remove one of the carried values of a loop."""
    p = op.carried[k]
    op.body.params = [q for q in op.body.params if q is not p]
    op.outputs = (*op.outputs[:k], *op.outputs[k + 1 :])
    del op.initial[k], op.body.results[k]


def _same(a: Operand, b: Operand) -> bool:
    return a is b or (type(a) is int and type(b) is int and a == b)
