"""Forward mode of memory whose tangent is in slots: loads, stores and views at fixed indices.

Where places are no longer known (a symbolic index, a store in a loop or under a condition, a
tangent with dense lanes), the memory gets a dense shadow, from the start.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.ir.ops import Apply, Load, Store, Update, Value, values_in
from fwdad.ir.primitives.scatter_add import Target
from fwdad.ir.symbol import Symbol, as_numpy_number
from fwdad.rules.core.registry import find_rule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import is_basic
from fwdad.transforms.forward.indexing import Indexing
from fwdad.transforms.forward.rule_table import ruled_function
from fwdad.transforms.forward.state import State
from fwdad.transforms.forward.tangents import Tangents


class ViewTangents:
    """Pushes loads, stores and views of memory forward whose tangent is in slots."""

    def __init__(self, state: State, tangents: Tangents, indexing: Indexing) -> None:
        self.state = state
        self.tangents = tangents
        self.indexing = indexing
        self.recorder = state.recorder

    def through(self, op: Apply, a: Value) -> None:
        """Push a view of memory in slots forward; a copy already has its tangent."""
        (v,) = op.outputs
        rest = (*op.args[1:], op.kwargs)
        if op.function in (np.real, np.imag) and a.type.dtype.kind == "c":
            self.state.must_be_dense(a)  # one part of an element has no slot of its own
        if op.args[0] is not a or any(True for _ in values_in(rest)):
            self.state.must_be_dense(a)
        view = self.state.views[a].through(op.function, op.args[1:], op.kwargs)
        if view is not None:
            self.state.tangent.pop(v, None)
            self.state.views[v] = view
        elif op.function not in (np.reshape, np.ravel):  # these two may be copies
            self.state.must_be_dense(a)

    def load(self, op: Load, index: tuple[Any, ...]) -> None:
        """Push a load from memory in slots forward: a view, or a copy of some elements."""
        (v,) = op.outputs
        view, known = self.state.views[op.array], self.state.known_index(op.index)
        if not op.view:
            found = self.indexing.indexed(view.chunk(copy=False), index, v.type, known)
            if isinstance(found, Chunk):
                self.state.tangent[v] = found
        elif known is not None:
            self.state.views[v] = view.at(known)
            if self.state.placed:
                self.recorder.lengths.know(v.type, self.state.views[v].shape)
        else:
            self.state.must_be_dense(op.array)

    def write(self, op: Store | Update, t: Chunk | None) -> None:
        """Push a store into memory in slots forward."""
        index = self._known_index(op)
        if isinstance(op, Update):
            sums = op.function in (operator.add, operator.sub)
            if t is None and sums:
                self.state.copy(op)
                return
            if sums and t is not None and self.state.views[op.array].adds(index):
                self.state.copy(op)
                self._add(op.array, index, -t if op.function is operator.sub else t)
                return
            t = self._updated(op, index, t)
        else:
            self.state.copy(op)
        self._view_store(op.array, index, t)

    def scatter(self, op: Apply, target: Target, t: Any) -> None:
        """Push a sum into elements of memory in slots forward, which an index may repeat."""
        known = self.state.known_index(target.at)
        if not self.state.placed or self.state.is_nested() or known is None:
            self.state.must_be_dense(target.array)
        self.state.copy(op)
        if isinstance(t, Chunk):
            self._add(target.array, known, t)

    def _add(self, array: Value, index: tuple[Any, ...], t: Chunk) -> None:
        try:
            done = self.state.views[array].add(index, t)
        except (IndexError, ValueError):  # shapes that do not fit: said when the program runs
            done = False
        if not done:
            self.state.must_be_dense(array)

    def _view_store(self, array: Value, index: tuple[Any, ...], t: Chunk | None) -> None:
        try:
            done = self.state.views[array].store(index, t)
        except ValueError:  # shapes that do not fit: said when the program runs
            done = False
        if not done:
            self.state.must_be_dense(array)

    def _known_index(self, op: Store | Update) -> tuple[Any, ...]:
        """The index of a store: known, of each element once, and in a place that runs once."""
        index = self.state.known_index(op.index)
        shape = self.state.views[op.array].shape
        if self.state.is_nested() or index is None or not _takes_each_once(shape, index):
            self.state.must_be_dense(op.array)
        return index

    def _updated(self, op: Update, index: tuple[Any, ...], t: Chunk | None) -> Chunk:
        """Update the primal in place; return the tangent of the new content."""
        if op.function in (operator.add, operator.sub):
            self.state.copy(op)
            held = self._held(op, index)
            assert t is not None
            t = t if op.function is operator.add else -t
            return held + (t if t.shape == held.shape else t.broadcast_to(held.shape))
        old = self.old(op, index)
        y, y_dot = self.combined(op, old, self._held(op, index), t)
        self.recorder.store(self.state.here(op.array), index, y)
        return y_dot

    def _held(self, op: Update, index: tuple[Any, ...]) -> Chunk:
        """The tangent of what an update finds, in slots."""
        view = self.state.views[op.array].at(index)
        return view.chunk()

    def old(self, op: Update, index: tuple[Any, ...]) -> Symbol:
        """The elements that an update finds."""
        old = self.recorder.load(self.state.here(op.array), index)
        if old.is_array:
            old = self.recorder.apply(np.ndarray.copy, (old,), {})
        return old

    def combined(self, op: Update, old: Symbol, held: Chunk, t: Any) -> tuple[Symbol, Chunk]:
        """The value and the tangent that an update leaves, by the rule of its function."""
        rule = find_rule(ruled_function(op))
        if rule is None or rule.kind != "elementwise":
            message = f"`{op.function.__name__}` in place cannot be pushed through a tape"
            raise UntraceableError(message, op.location)
        value = as_numpy_number(self.state.symbols(op.value), op.array.type.dtype)
        y = self.recorder.apply(op.function, (old, value), {})
        y_dot: Any = self.tangents.scaled(held, rule.partials[0](old, value, y), y.type)
        if isinstance(t, Chunk):
            y_dot = y_dot + self.tangents.scaled(t, rule.partials[1](old, value, y), y.type)
        return y, y_dot


def _takes_each_once(shape: tuple[int, ...], index: tuple[Any, ...]) -> bool:
    """Whether an index is inside a shape, and repeats no element; the program may raise there."""
    try:
        if is_basic(index):
            np.empty(shape, np.bool_)[index]
            return True
        taken = np.arange(math.prod(shape)).reshape(shape)[index]
    except IndexError:
        return False
    return np.unique(taken).size == taken.size
