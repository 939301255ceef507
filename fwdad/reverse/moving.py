"""Windows that branches choose and loops move: the array and the index, told apart.

``w = a[:3] if c else b[1:]`` is written as a choice among arrays and one among numbers, with the
window behind it; a loop that begins with ``w = a[:2]`` and ends with ``w = a[k:k + 2]`` carries
two numbers. Then a window is taken of an array that is there, and so is that of its cotangent.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fwdad.tape.alias import Roots, memory_of
from fwdad.tape.index_parts import spelled_out
from fwdad.tape.known_lengths import length_of
from fwdad.tape.ops import (
    Apply,
    Block,
    Branch,
    Load,
    Loop,
    Op,
    Operand,
    Program,
    Value,
    is_array,
    walk,
)
from fwdad.tape.passes.rewrite import all_inside, defined_by, substitute
from fwdad.tape.types import INT, ArrayType, Size, Type


class _Window(NamedTuple):
    """An array, and for each part of a basic index of it an int, a slice or None."""

    base: Value
    parts: tuple[Operand, ...]

    @property
    def kinds(self) -> tuple[Any, ...]:
        """What its parts are, whatever their numbers."""
        return tuple(("slice", p.step) if type(p) is slice else p is None for p in self.parts)

    @property
    def numbers(self) -> tuple[Operand, ...]:
        """The numbers in its parts; None where a slice ends with the array."""
        return tuple(x for p in self.parts if p is not None for x in _numbers(p))

    def ends(self) -> Iterator[tuple[Operand, int]]:
        """Each number, and the axis of the array that it is of."""
        axes = (p for p in self.parts if p is not None)
        for axis, p in enumerate(axes):
            for x in _numbers(p):
                yield x, axis

    def of(self, base: Value, numbers: tuple[Operand, ...]) -> _Window:
        """The same window on another array, by other numbers."""
        given = iter(numbers)
        parts: list[Operand] = []
        for p in self.parts:
            if type(p) is slice:
                parts.append(slice(next(given), next(given), p.step))
            else:
                parts.append(None if p is None else next(given))
        return _Window(base, tuple(parts))


class _Moved(NamedTuple):
    """A window that a loop moves.

    Attributes
    ----------
    output, result : Value
        The last window, and that which an iteration leaves.
    base : Value
        The array that it is taken of: one from outside, or one that the loop carries.
    first : _Window
        The one that the loop begins with.
    numbers : tuple of operands
        Those of the window that an iteration begins with.
    places : list of int
        Which of them are carried.
    """

    output: Value
    result: Value
    base: Value
    first: _Window
    numbers: tuple[Operand, ...]
    places: list[int]


def tell_windows_apart(block: Block) -> None:
    """Let branches and loops choose arrays and numbers, where they choose windows on memory.

    Parameters
    ----------
    block : Block
        A program of the caller's own; rewritten. It may use values from outside.
    """
    if any(isinstance(op, (Branch, Loop)) for op in block.ops):
        _Writer(block).write(block)


class _Writer:
    """Rewrites the branches and loops of a program.

    Parameters
    ----------
    top : Block
        The program.
    """

    def __init__(self, top: Block) -> None:
        self.roots: Roots = memory_of(Program("", top))
        self.written = {
            root for op in walk(top) for v in op.writes() for root in self.roots.get(v, {v})
        }
        self.definition = {v: op for op in walk(top) for v in defined_by(op)}

    def write(self, block: Block) -> None:
        """Rewrite what stands in a block; the innermost branches first."""
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

    def _window(self, r: Value) -> _Window:
        """The array that a window is taken of, and its index; the array itself of others."""
        op = self.definition.get(r)
        if not (isinstance(op, Load) and op.view):
            return _whole(r)
        parts = _parts(op)
        return _whole(r) if parts is None else _Window(op.array, parts)

    # -- branches

    def _branch(self, block: Block, op: Branch, v: Value) -> None:
        """Write what a branch answers as a window on what it answers instead."""
        at = op.outputs.index(v)
        sides = (op.then, op.other)
        results = [side.results[at] for side in sides]
        if not self._is_memory(v) or not all(is_array(r) for r in results):
            return
        inside = [all_inside(side) for side in sides]
        options = [
            [w for w in (self._window(r), _whole(r)) if not self._is_made_of(w.base, within)]
            for r, within in zip(results, inside, strict=True)
        ]
        pairs = [(a, b) for a in options[0] for b in options[1] if a.kinds == b.kinds]
        if not pairs:
            return
        first, second = min(pairs, key=lambda p: p[0].base is not p[1].base)
        if (first.base, second.base) == tuple(results):
            return  # arrays are chosen as they are
        base = first.base
        if base is not second.base:
            base = self._answer(op, (first.base, second.base))
        numbers = self._chosen(op, first, second)
        at = op.outputs.index(v)
        op.outputs = tuple(o for o in op.outputs if o is not v)
        for side in sides:
            del side.results[at]
        self._take(block.ops, block.ops.index(op) + 1, v, first.of(base, numbers), op)

    def _is_made_of(self, r: Value, within: set[Value]) -> bool:
        """Whether an array is a window that is taken in a side."""
        return r in within and self.roots.get(r, {r}) != {r}

    def _answer(self, op: Branch, results: tuple[Operand, Operand]) -> Value:
        """One more answer of a branch."""
        one, other = results
        kind = _either(one.type, other.type) if is_array(one) else INT
        made = Value(kind, getattr(one, "name", None))
        for side, r in zip((op.then, op.other), results, strict=True):
            side.results.append(r)
        op.outputs = (*op.outputs, made)
        self.definition[made] = op
        self.roots[made] = {root for r in results if is_array(r) for root in self.roots.get(r, {r})}
        return made

    def _chosen(self, op: Branch, first: _Window, second: _Window) -> tuple[Operand, ...]:
        """The numbers of a window that is one of two."""
        found: list[Operand] = []
        for (a, axis), (b, _) in zip(first.ends(), second.ends(), strict=True):
            if _same(a, b):
                found.append(a)
                continue
            one = self._number(op.then.ops, a, first.base, axis)
            other = self._number(op.other.ops, b, second.base, axis)
            found.append(self._answer(op, (one, other)))
        return tuple(found)

    # -- loops

    def _loop(self, block: Block, op: Loop) -> None:
        moved = [self._open(block, op, p, windows) for p, windows in self._moving(op)]
        for inner in op.blocks():
            self.write(inner)
        for window in moved:
            self._close(block, op, window)

    def _moving(self, op: Loop) -> list[tuple[Value, list[_Window]]]:
        """What a loop carries that is always a window on an array from outside."""
        within = all_inside(op.body)
        found = []
        for k, p in enumerate(op.carried):
            first, last = op.initial[k], op.body.results[k]
            if not self._is_memory(p) or not (is_array(first) and is_array(last)):
                continue
            later = list(self._leaves(last, p))
            if not later or all(w == _whole(w.base) for w in later):
                continue
            kinds = later[0].kinds
            begun = [w for w in (self._window(first), _whole(first)) if w.kinds == kinds][:1]
            windows = [*begun, *later]
            if begun and all(w.base not in within and w.kinds == kinds for w in windows):
                found.append((p, windows))
        return found

    def _leaves(self, r: Value, p: Value) -> Iterator[_Window]:
        """The windows that an array may be, beside what it was in the iteration before."""
        op = self.definition.get(r)
        if isinstance(op, Branch):
            at = op.outputs.index(r)
            for side in (op.then, op.other):
                if is_array(side.results[at]):
                    yield from self._leaves(side.results[at], p)
                else:
                    yield _whole(r)
        elif r is not p:
            yield self._window(r)

    def _open(self, block: Block, op: Loop, p: Value, windows: list[_Window]) -> _Moved:
        """Let a loop carry the numbers of a window in the place of the window."""
        first = windows[0]
        before: list[Op] = []
        numbers: list[Operand] = []
        places: list[int] = []
        for at, (x, axis) in enumerate(first.ends()):
            if all(_same(w.numbers[at], x) for w in windows):
                numbers.append(x)
                continue
            numbers.append(_carry(op, self._number(before, x, first.base, axis)))
            places.append(at)
        position = block.ops.index(op)
        block.ops[position:position] = before
        k = op.carried.index(p)
        base = first.base
        output, result = op.outputs[k], op.body.results[k]
        if all(w.base is base for w in windows):
            _forget(op, k)
        else:
            base = self._other_base(op, k, [w.base for w in windows])
        moved = _Moved(output, result, base, first, tuple(numbers), places)
        for inner in op.blocks():
            v = Value(p.type, p.name)
            substitute(inner, {p: v})
            self._take(inner.ops, 0, v, first.of(base, moved.numbers), op)
        return moved

    def _other_base(self, op: Loop, k: int, bases: list[Value]) -> Value:
        """Let a loop carry the array that a window is taken of, one of several."""
        kind = functools.reduce(_either, [v.type for v in bases])
        base, last = Value(kind, bases[0].name), Value(kind, bases[0].name)
        self.roots[base] = self.roots[last] = {r for v in bases for r in self.roots.get(v, {v})}
        op.body.params[op.body.params.index(op.carried[k])] = base
        op.outputs = (*op.outputs[:k], last, *op.outputs[k + 1 :])
        op.initial[k], op.body.results[k] = bases[0], None
        return base

    def _close(self, block: Block, op: Loop, moved: _Moved) -> None:
        """Carry the numbers of the window that an iteration leaves, and take the last one."""
        first = moved.first
        options = (self._window(moved.result), _whole(moved.result))
        last = next(w for w in options if w.kinds == first.kinds)
        ends, numbers = list(last.ends()), list(moved.numbers)
        for at in moved.places:
            x, axis = ends[at]
            k = op.carried.index(moved.numbers[at])
            op.body.results[k] = self._number(op.body.ops, x, last.base, axis)
            numbers[at] = op.outputs[k]
        base = moved.base
        if base in op.carried:
            k = op.carried.index(base)
            op.body.results[k], base = last.base, op.outputs[k]
        window = first.of(base, tuple(numbers))
        self._take(block.ops, block.ops.index(op) + 1, moved.output, window, op)

    # -- numbers

    def _number(self, ops: list[Op], x: Operand, base: Value, axis: int) -> Operand:
        """A number of a window as an int; where the array ends, if it is None."""
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

    def _take(self, ops: list[Op], at: int, v: Value, window: _Window, op: Op) -> None:
        load = Load(window.base, window.parts, True, outputs=(v,), location=op.location)
        ops.insert(at, load)
        self.definition[v] = load
        self.roots[v] = self.roots.get(window.base, {window.base})


def _carry(op: Loop, first: Operand) -> Value:
    """Let a loop carry one more number; what it is in the next iteration is not said yet."""
    made = Value(INT)
    op.body.results.insert(len(op.carried), None)
    op.initial.append(first)
    op.body.params.append(made)
    op.outputs = (*op.outputs, Value(INT))
    return made


def _forget(op: Loop, k: int) -> None:
    """Let a loop carry one value less."""
    p = op.carried[k]
    op.body.params = [q for q in op.body.params if q is not p]
    op.outputs = (*op.outputs[:k], *op.outputs[k + 1 :])
    del op.initial[k], op.body.results[k]


def _parts(op: Load) -> tuple[Operand, ...] | None:
    """A basic index, with a part for each axis; None if slices run backwards."""
    found: list[Operand] = []
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
        found.append(i)
    return tuple(found)


def _is_int(i: Operand) -> bool:
    return isinstance(i, Value) and not is_array(i) and i.type.dtype.kind in "iu"


def _whole(v: Value) -> _Window:
    return _Window(v, (slice(0, None, 1),) * v.type.ndim)


def _numbers(p: Operand) -> tuple[Operand, ...]:
    return (p.start, p.stop) if type(p) is slice else (p,)


def _same(a: Operand, b: Operand) -> bool:
    return a is b or (type(a) is int and type(b) is int and a == b)


def _either(one: Type, other: Type) -> Type:
    """The type of an array that is one of two."""
    pairs = zip(one.shape, other.shape, strict=True)
    return ArrayType(one.dtype, tuple(m if m == n else Size() for m, n in pairs))
