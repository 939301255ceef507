"""Reversal of loads and stores: cotangents are taken and added in place.

The reverse of a store takes the cotangent of the elements that it wrote, and leaves zeros there. It
first restores what the store has overwritten, if something that is reversed later reads it.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fwdad.ir.ops import Apply, Load, Op, Store, Update, Value, is_array, values_in
from fwdad.ir.primitives.scatter_add import last_writes, scattered, subtracts, target_of
from fwdad.ir.rewrite import all_used
from fwdad.ir.symbol import Symbol, as_numpy_number
from fwdad.ir.types import ArrayType
from fwdad.rules.core.registry import find_rule
from fwdad.transforms.forward.rule_table import ruled_function
from fwdad.transforms.reverse.cotangents import Cotangents
from fwdad.transforms.reverse.normalize.lowering import is_index_array
from fwdad.transforms.reverse.overwriting import Overwriting
from fwdad.transforms.reverse.reads import Reads
from fwdad.transforms.reverse.restores import Restores
from fwdad.transforms.reverse.spaces import Spaces
from fwdad.transforms.reverse.sweep import Sweep
from fwdad.transforms.reverse.view_cotangents import ViewCotangents


class Memory:
    """Reverses loads, stores and updates."""

    def __init__(
        self,
        sweep: Sweep,
        spaces: Spaces,
        view_cotangents: ViewCotangents,
        overwriting: Overwriting,
        cotangents: Cotangents,
        reads: Reads,
        restores: Restores,
    ) -> None:
        self.sweep = sweep
        self.recorder = sweep.recorder
        self.structure = sweep.structure
        self.activity = sweep.structure.activity
        self.spaces = spaces
        self.view_cotangents = view_cotangents
        self.overwriting = overwriting
        self.cotangents = cotangents
        self.reads = reads
        self.restores = restores
        self._old: dict[Op, Value] = {}
        self._partials_use: set[Op] = set()

    def load(self, op: Load) -> None:
        """Reverse a load: add the cotangent where it was read."""
        (v,) = op.outputs
        if not self.activity.is_active(v):
            return
        if op.view and self.structure.is_memory(v):
            return  # its cotangent is a view
        y_bar = self.cotangents.take(v)
        if y_bar is None or not self.activity.is_active(op.array):
            return  # of a copy of constants, into which active values are stored later
        if self.structure.is_memory(op.array) and not self.view_cotangents.is_followed(op.array):
            self.cotangents.add_element(op.array, op.index, y_bar)
            return
        self.cotangents.scatter(self.cotangents.target(op.array), op.index, y_bar)

    def _bar(self, op: Store | Update) -> tuple[Symbol, Any]:
        """The cotangent of the memory that is written, and where in it."""
        return self.view_cotangents.memory_of(op.array), self.sweep.symbols(op.index)

    def store(self, op: Store) -> None:
        """Reverse a store: take the cotangent of what it wrote, and leave zero."""
        self._restore(op)
        self._keeps_numbers(op)
        if not self.activity.is_active(op.array):
            return
        bar, at = self._bar(op)
        if self.activity.any_active(op.value):
            taken = self._taken(bar, op, at)
            self.recorder.store(bar, at, 0.0)
            self._give(op.value, taken)
        else:
            self.recorder.store(bar, at, 0.0)

    def _taken(self, bar: Symbol, op: Store | Update, at: Any) -> Any:
        """The cotangent of what a store wrote; of an element written twice, for the last write."""
        taken = self.recorder.load(bar, at)
        by_array = any(map(is_index_array, op.index))
        if taken.is_array and is_array(op.value) and not by_array:
            taken = self.spaces.into(op.value, taken)  # summed first: a copy of it may go
        if taken.is_array:
            taken = self.recorder.apply(np.ndarray.copy, (taken,), {})
        if by_array:
            bits = ArrayType(np.dtype(bool), taken.type.shape)
            given = (Symbol(op.array, self.recorder), at, taken)
            kept = self.recorder.apply_typed(last_writes, given, bits)
            taken = self.recorder.apply(np.where, (kept, taken, 0.0), {})
        return taken

    def _give(self, value: Any, x_bar: Any) -> None:
        """Add the cotangent of a stored value, which may have been broadcast."""
        if isinstance(value, Value):
            self.cotangents.add(value, x_bar)
        else:
            self.sweep.fail("a list of values that carry derivatives is stored: make it an array")

    def _keeps_numbers(self, op: Store | Update) -> None:
        """Raise if an active value goes into an array whose dtype has no derivatives."""
        if self.activity.any_active(op.value):
            op.check_derivatives_fit()

    def update(self, op: Update) -> None:
        """Reverse an update in place."""
        self._keeps_numbers(op)
        if not self.activity.is_active(op.array):
            self._restore(op)
        elif op.function in (operator.add, operator.sub):
            self._restore(op)
            self._accumulation(op, *self._bar(op))
        else:
            self._product(op)

    def scatter_add(self, op: Apply) -> None:
        """``np.add.at(a, index, b)``: an element that occurs twice belongs to two elements of b."""
        self._restore(op)
        target = target_of(op)
        if target is None or not self.activity.any_active(scattered(op)):
            return
        bar, at = self.view_cotangents.memory_of(target.array), self.sweep.symbols(target.at)
        taken = self.recorder.load(bar, at)
        if subtracts(op):
            taken = -taken
        elif taken.is_array:
            taken = self.recorder.apply(np.ndarray.copy, (taken,), {})
        self._give(scattered(op), taken)

    def _accumulation(self, op: Update, bar: Symbol, at: Any) -> None:
        """``a[index] += b``: the cotangent of ``a[index]`` stays."""
        if not self.activity.any_active(op.value):
            return
        taken = self.recorder.load(bar, at)
        if op.function is operator.sub:
            taken = -taken
        elif taken.is_array:
            if is_array(op.value):  # summed first: what is then only read needs no copy
                taken = self.spaces.into(op.value, taken)
            if taken.is_array:
                taken = self.recorder.apply(np.ndarray.copy, (taken,), {})
        self._give(op.value, taken)

    def _product(self, op: Update) -> None:
        """``a[index] *= b`` and similar updates."""
        rule = find_rule(ruled_function(op))
        if rule is None or rule.kind != "elementwise":
            self.sweep.fail(f"`{op.function.__name__}` in place cannot be run backwards")
            return
        value = as_numpy_number(self.sweep.symbols(op.value), op.array.type.dtype)
        active = (True, self.activity.any_active(op.value))
        partials = self._of_new_content(op, rule, value, active)
        self._restore(op)
        bar, at = self._bar(op)
        if partials is None:
            old = self._old_content(op)
            self._partials_use.add(op)
            y = self.recorder.apply(op.function, (old, value), {})
            partials = [p(old, value, y) for p, on in zip(rule.partials, active, strict=True) if on]
        y_bar = self.recorder.load(bar, at)
        if y_bar.is_array:
            y_bar = self.recorder.apply(np.ndarray.copy, (y_bar,), {})
        of_value = self.spaces.scaled(partials[1], y_bar) if active[1] else None
        self.recorder.store(bar, at, self.spaces.scaled(partials[0], y_bar))
        if of_value is not None:  # last: the value may be a view of the array itself
            self._give(op.value, of_value)

    def _of_new_content(
        self, op: Update, rule: Any, value: Any, active: tuple[bool, bool]
    ) -> list[Any] | None:
        """The partials, if they depend on the new content, which is still there; else None."""
        if not self.overwriting.is_last_write(op):
            return None
        roots = self.structure.roots(op.array)
        if any(self.structure.roots(v) & roots for v in values_in(op.value)):
            return None  # the value is read after the old content has been restored
        recorder = self.recorder
        start, mark = len(recorder.block.ops), recorder.lengths.mark()
        y = recorder.load(Symbol(op.array, recorder), self.sweep.symbols(op.index))
        load = recorder.block.ops[-1]
        old = Symbol(Value(y.type), recorder)  # which nobody has read
        partials = [p(old, value, y) for p, on in zip(rule.partials, active, strict=True) if on]
        recorded = recorder.block.ops[start:]
        used = {v for o in recorded for v in all_used(o)}
        own = {p.value for p in partials if type(p) is Symbol}
        if old.value in used | own or (y.is_array and y.value in own):
            del recorder.block.ops[start:]
            recorder.lengths.forget(mark)
            return None
        self.reads.certain.add(load)
        return partials

    # -- what was overwritten

    def _old_content(self, op: Op) -> Symbol:
        """The elements that a store overwrites, kept in the forward pass."""
        return Symbol(self._loaded_before(op), self.recorder)

    def _loaded_before(self, op: Op) -> Value:
        """The value of ``a[index]`` before an operation, loaded in the program itself."""
        if op in self._old:
            return self._old[op]
        target: Any = target_of(op)
        block = self.structure.block_of[op]
        old_type, is_view = self.recorder.indexing.type_of(
            Symbol(target.array, self.recorder), self.sweep.symbols(target.at)
        )
        old = Value(old_type, f"{target.array.name}_old" if target.array.name else None)
        before: list[Any] = [
            Load(target.array, target.at, is_view, outputs=(old,), location=op.location)
        ]
        if is_view:
            view, old = old, Value(old_type, old.name)
            view.name = None
            before.append(Apply(np.ndarray.copy, (view,), outputs=(old,), location=op.location))
        self.structure.insert(block, block.ops.index(op), before, self.structure.position[op])
        self._old[op] = old
        return old

    def _restore(self, op: Op) -> None:
        """Restore what a store has overwritten, if that turns out to be read."""
        target = target_of(op)
        if target is None:
            return
        old = self._old_content(op)
        array, index = Symbol(target.array, self.recorder), self.sweep.symbols(target.at)
        with self.restores.only_for([op]):
            definition = self.structure.definition[old.value]
            if (
                isinstance(definition, Apply) and definition.function is np.ndarray.copy
            ):  # of a view
                array, index = self.recorder.load(array, index), Ellipsis
            self.recorder.store(array, index, old)

    def take_out_old(self, restored: set[Op]) -> None:
        """Remove the loads of old contents that are not needed."""
        for op in self._old.keys() - restored - self._partials_use:
            ops, definition = (
                self.structure.block_of[op].ops,
                self.structure.definition[self._old[op]],
            )
            at = ops.index(definition)
            del ops[at - isinstance(definition, Apply) : at + 1]
