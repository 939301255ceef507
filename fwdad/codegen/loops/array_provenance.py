"""What a program's statements reveal of its arrays: whose memory they use, and their layout.

A loop that is a function of its own is given both. Else LLVM compares the address of each array
with all that are written, copies the loop for arrays that overlap, and loads elements one by one
that are neighbours. Importing this module needs Numba.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba.core import ir
from numba.core import types as _types

from fwdad.codegen.llvm import allocation, reshaping
from fwdad.codegen.llvm.blas import Product
from fwdad.codegen.runtime.arithmetic import loose

types: Any = _types

_NEW: set[Any] = {
    *allocation.REPLACED.keys(), *allocation.REPLACED.values(), allocation.growing,
    np.arange, reshaping.arange,
}  # fmt: skip
_VIEWS: set[Any] = {
    loose, np.ascontiguousarray, np.broadcast_to, reshaping.ascontiguousarray,
    reshaping.broadcast_to, reshaping.by_rows,
}  # fmt: skip
_VIEW_METHODS = ("transpose", "reshape")
_OUTSIDE = "outside"
"""The memory of all arguments, which may overlap."""


class Adjacent(NamedTuple):
    """The axis along which elements are adjacent in memory; ``step`` is -1 if they go backwards."""

    axis: int
    step: int = 1


class Given(NamedTuple):
    """What is known of an array at all calls of a loop.

    ``neighbours`` tells which elements are adjacent, if that is known; ``is_apart`` means that no
    other array of the call may share memory with it.
    """

    neighbours: Adjacent | None = None
    is_apart: bool = False

    def strides(self, ndim: int, itemsize: int) -> list[int | None]:
        """The strides in bytes of an array in any layout, as far as they are known."""
        known: list[int | None] = [None] * ndim
        if self.neighbours is not None:
            known[self.neighbours.axis] = self.neighbours.step * itemsize
        return known


class _Part(NamedTuple):
    """A part of a stack's memory, of which two kinds are apart."""

    stack: Any
    kind: int


class Arrays:
    """What is known of the arrays of one function, from all of its blocks.

    ``apart`` are the parameters that share memory with no other.
    """

    def __init__(
        self, blocks: Iterable[Any], typeof: Callable[[str], Any], apart: Collection[str] = ()
    ) -> None:
        self._definitions: dict[str, list[Any]] = {}
        for block in blocks:
            for s in block.find_insts(ir.Assign):
                self._definitions.setdefault(s.target.name, []).append(s.value)
        self._typeof = typeof
        self._apart = apart
        self._memories: dict[str, frozenset[Any] | None] = {}
        self._adjacent: dict[str, Adjacent | None] = {}

    def given(self, names: Sequence[str]) -> list[Given]:
        """What is known of the arguments of a call, arrays and others."""
        kinds = [self._typeof(name) for name in names]
        memories = [
            self.memories(name) if isinstance(t, types.Array) else frozenset()
            for name, t in zip(names, kinds, strict=True)
        ]
        return [
            Given(
                self.neighbours(name),
                all(_are_apart(mine, other) for j, other in enumerate(memories) if j != k),
            )
            if isinstance(t, types.Array)
            else Given()
            for k, (name, t, mine) in enumerate(zip(names, kinds, memories, strict=True))
        ]

    def memories(self, name: str) -> frozenset[Any] | None:
        """Where an array's memory may have been allocated, or None if that is not known."""
        if name not in self._memories:
            self._memories[name] = self._all_memories(name)
        return self._memories[name]

    def _all_memories(self, name: str) -> frozenset[Any] | None:
        memories: set[Any] = set()
        names, seen = [name], {name}
        while names:
            definitions = self._definitions.get(names.pop(), ())
            if not definitions:
                return None
            for statement in definitions:
                if (parts := self._parts(statement)) is not None:
                    memories |= parts
                    continue
                memory, of = self._memory(statement)
                if memory is None and of is None:
                    return None
                if memory is not None:
                    memories.add(memory)
                if of is not None and of not in seen:
                    seen.add(of)
                    names.append(of)
        return frozenset(memories)

    def _memory(self, made: Any) -> tuple[Any, str | None]:
        """The memory that a statement allocates, and the array whose memory it may return."""
        if isinstance(made, ir.Arg):
            return made.name if made.name in self._apart else _OUTSIDE, None
        if isinstance(made, ir.Var):
            return None, made.name
        if not isinstance(made, ir.Expr):
            return None, None
        if made.op == "cast" or (made.op == "getattr" and made.attr == "T"):
            return None, made.value.name
        if made.op in ("getitem", "static_getitem"):
            of = made.value.name
            return None, of if isinstance(self._typeof(of), types.Array) else None
        if made.op != "call":
            return None, None
        function, method, of = self._called(made)
        is_product = isinstance(function, Product) and len(made.args) == 2
        if function in _NEW or is_product or method == "copy":
            return id(made), None
        if function is allocation.grown:
            return id(made), made.args[0].name
        if function in _VIEWS:
            return None, made.args[0].name
        return None, of if method in _VIEW_METHODS else None

    def _parts(self, made: Any) -> set[Any] | None:
        """The memory of an array in a stack, of which those of another kind are apart."""
        if not isinstance(made, ir.Expr) or made.op != "call":
            return None
        if self._called(made)[0] is not allocation.part_of_stack:
            return None
        stack, kind = made.args[0].name, self._made_of(made.args[3].name)
        memories = self.memories(stack)
        if memories is None or _OUTSIDE in memories or not isinstance(kind, ir.Const):
            return None
        return {_Part(memory, kind.value) for memory in memories}

    def _called(self, call: Any) -> tuple[Any, str | None, str | None]:
        """The function that is called; or the method, and its array."""
        definition = self._made_of(call.func.name)
        if isinstance(definition, (ir.Global, ir.FreeVar)):
            return definition.value, None, None
        if isinstance(definition, ir.Expr) and definition.op == "getattr":
            owner = definition.value.name
            if isinstance(self._typeof(owner), types.Array):
                return None, definition.attr, owner
            module = self._made_of(owner)
            if isinstance(module, (ir.Global, ir.FreeVar)) and module.value is np:
                return getattr(np, definition.attr, None), None, None
        return None, None, None

    def _made_of(self, name: str) -> Any:
        definitions = self._definitions.get(name, ())
        return definitions[0] if len(definitions) == 1 else None

    def neighbours(self, name: str) -> Adjacent | None:
        """Which elements of an array are adjacent in memory, or None if that is not known."""
        if name not in self._adjacent:
            self._adjacent[name] = None  # what a loop carries is asked of itself
            self._adjacent[name] = self._neighbours(name)
        return self._adjacent[name]

    def _neighbours(self, name: str) -> Adjacent | None:
        t = self._typeof(name)
        if not t.ndim:
            return None
        if t.layout in "CF":
            return Adjacent(t.ndim - 1 if t.layout == "C" else 0)
        first, *rest = self._definitions.get(name, ()) or (None,)
        found = self._of_statement(first, t.ndim)
        return found if all(self._of_statement(s, t.ndim) == found for s in rest) else None

    def _of_statement(self, made: Any, ndim: int) -> Adjacent | None:
        """The same of what a statement makes, which has some axes."""
        if isinstance(made, ir.Var):
            return self.neighbours(made.name)
        if not isinstance(made, ir.Expr):
            return None
        if made.op == "cast":
            return self.neighbours(made.value.name)
        if made.op == "getattr" and made.attr == "T":
            found = self.neighbours(made.value.name)
            return found and found._replace(axis=ndim - 1 - found.axis)
        if made.op in ("getitem", "static_getitem"):
            return self._of_view(made)
        return self._of_call(made) if made.op == "call" else None

    def _of_call(self, made: Any) -> Adjacent | None:
        function, method, of = self._called(made)
        if function is loose:
            return self.neighbours(made.args[0].name)
        if method == "transpose" and of is not None and len(made.args) == 1:
            found, order = self.neighbours(of), self._known_ints(made.args[0].name)
            if found is not None and found.axis in order:
                return found._replace(axis=order.index(found.axis))
        return None

    def _of_view(self, made: Any) -> Adjacent | None:
        of = made.value.name
        if not isinstance(self._typeof(of), types.Array):
            return None
        found = self.neighbours(of)
        if found is None:
            return None
        axis, step = found
        if made.op == "static_getitem":
            items = made.index if isinstance(made.index, tuple) else (made.index,)
            parts = [_effect(item) for item in items]
        else:
            t = self._typeof(made.index.name)
            parts = [_effect_of_type(p) for p in (t if isinstance(t, types.BaseTuple) else (t,))]
        if "?" in parts:
            return None
        before = 0  # axes of the view
        for part in parts:
            if part == "new":
                before += 1
            elif axis == 0:
                turn = {"slice": 1, "turned": -1}.get(part)
                return None if turn is None else Adjacent(before, step * turn)
            else:
                axis -= 1
                before += part != "int"
        return Adjacent(before + axis, step)

    def _known_ints(self, name: str) -> list[Any]:
        definition = self._made_of(name)
        if isinstance(definition, ir.Const) and isinstance(definition.value, tuple):
            return list(definition.value)
        if not (isinstance(definition, ir.Expr) and definition.op == "build_tuple"):
            return []
        return [getattr(self._made_of(item.name), "value", None) for item in definition.items]


def _are_apart(one: frozenset[Any] | None, other: frozenset[Any] | None) -> bool:
    if one is None or other is None or one & other:
        return False
    # all of a stack meets its parts
    return not (_stacks(one) & other or _stacks(other) & one)


def _stacks(memories: frozenset[Any]) -> set[Any]:
    return {part.stack for part in memories if isinstance(part, _Part)}


def _effect(item: Any) -> str:
    """What a constant item of an index does to its axis."""
    if item is None:
        return "new"
    if isinstance(item, slice):
        return {None: "slice", 1: "slice", -1: "turned"}.get(item.step, "?")
    return "int" if type(item) is int else "?"


def _effect_of_type(t: Any) -> str:
    """What an item of an index does to its axis, by its type."""
    if t == types.none:
        return "new"
    if isinstance(t, types.SliceType):
        return "?" if t.has_step else "slice"
    return "int" if isinstance(t, types.Integer) else "?"


def met(calls: Iterable[list[Given]]) -> list[Given]:
    """What holds at each of some calls."""
    first, *rest = calls
    for call in rest:
        first = [
            Given(
                one.neighbours if one.neighbours == other.neighbours else None,
                one.is_apart and other.is_apart,
            )
            for one, other in zip(first, call, strict=True)
        ]
    return first
