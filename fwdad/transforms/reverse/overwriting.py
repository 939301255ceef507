"""Overwriting: which stores may change what was read earlier."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

from fwdad.ir.analysis.indices import are_apart, intervals
from fwdad.ir.ops import Apply, Block, Call, Load, Loop, Op, Store, Value, is_array, values_in, walk
from fwdad.ir.primitives.scatter_add import Target, target_of
from fwdad.ir.rewrite import blocks_of
from fwdad.transforms.reverse.indices import Place, Read, may_meet, place_of
from fwdad.transforms.reverse.sweep import Sweep
from fwdad.transforms.reverse.view_cotangents import ViewCotangents


class Overwriting:
    """Knows the stores of the program that is reversed.

    Attributes
    ----------
    restored : set of Op or None
        Those whose old content the reverse pass restores; None until it has been written.
    run_again : set of Loop
        The loops that run again in the reverse pass.
    restored_by_states : set of Op
        The stores in these loops whose old content is part of the loops' states.
    """

    def __init__(self, sweep: Sweep, view_cotangents: ViewCotangents) -> None:
        self.sweep = sweep
        self.view_cotangents = view_cotangents
        self.structure = sweep.structure
        self.restored: set[Op] | None = None
        self.run_again: set[Loop] = set()
        self.restored_by_states: set[Op] = set()
        self._by_functions: set[Value] | None = None

    def is_restored(self, op: Op) -> bool:
        """Whether the reverse pass restores what an operation overwrites."""
        if self.restored is None:
            raise AssertionError("asked before the reverse pass was written")
        return op in self.restored

    def runs_again(self, op: Op) -> bool:
        """Whether an operation is in a loop that runs again in the reverse pass."""
        around = self.structure.loops_around(self.structure.block_of[op])
        return not self.run_again.isdisjoint(around)

    def stores_in(self, block: Block) -> list[tuple[Op, Target]]:
        """The operations of the program in a block that write elements, with these elements.

        Includes calls of programs, which count as writing all of an array.
        """
        stores: list[tuple[Op, Target]] = []
        for inner in blocks_of(block):
            for op in inner.ops:
                if op not in self.structure.program:
                    continue
                if isinstance(op, Call):  # and on stacks, which are not the program's
                    written = [v for v in op.writes() if v in self.structure.home]
                    stores.extend((op, Target(v, (Ellipsis,))) for v in written)
                elif (target := target_of(op)) is not None:
                    stores.append((op, target))
        return stores

    @functools.cached_property
    def stores(self) -> list[tuple[Op, Target]]:
        """The same for the whole program."""
        return self.stores_in(self.structure.top)

    @functools.cached_property
    def _stores_by_memory(self) -> dict[Value, list[tuple[Op, Target]]]:
        """The same by the memory that they may write."""
        by_memory: dict[Value, list[tuple[Op, Target]]] = {}
        for store, target in self.stores:
            for root in self.structure.roots(target.array):
                by_memory.setdefault(root, []).append((store, target))
        return by_memory

    def is_untouched(self, op: Load) -> bool:
        """Whether a load gives the same value when the reverse pass repeats it."""
        block, position = self.structure.block_of[op], self.structure.position[op]
        return not any(self._writing(Target(op.array, op.index), block, position))

    def stays_written(self, op: Op) -> bool:
        """Whether what a store wrote is still there while what precedes it is reversed.

        Nothing may write there later, and the reverse pass may not restore what was there before.
        """
        return self.is_last_write(op) and not self.is_restored(op)

    def is_last_write(self, op: Op) -> bool:
        """Whether nothing may write later where a store wrote."""
        target = target_of(op)
        if target is None or self.sweep.setting.is_called or self.runs_again(op):
            return False
        if self.structure.roots(target.array) & self._written_by_functions():
            return False
        block, position = self.structure.block_of[op], self.structure.position[op]
        return not any(self._writing(target, block, position + 1))

    def is_stored_at_once(self, op: Store, v: Value) -> bool:
        """Whether nothing writes where a value is stored between its definition and the store."""
        structure = self.structure
        definition = structure.definition.get(v)
        if definition is None or structure.block_of.get(definition) is not structure.block_of[op]:
            return False
        block, start = structure.block_of[op], structure.position[definition]
        roots = structure.roots(op.array)
        return not any(
            self.is_before(block, start, store)
            and not self.is_before(block, structure.position[op] + 1, store)
            for store, target in self.stores
            if store is not op and structure.roots(target.array) & roots
        )

    def _writing(self, read: Target, block: Block, position: int) -> Iterator[Op]:
        """The stores that may write certain elements after a position in the program."""
        structure = self.structure
        part = intervals(read.at, read.array.type.ndim, structure)
        for root in structure.roots(read.array):
            place = Place(root, read.array, part)
            for store, target in self._stores_by_memory.get(root, ()):
                if self.overwrites(store, target, place, block, position):
                    yield store

    def is_stale(self, op: Apply) -> bool:
        """Whether a call that may return a copy would copy something else if repeated."""
        structure = self.structure
        if op not in structure.block_of or self.view_cotangents.is_surely_view(op):
            return False
        block, position = structure.block_of[op], structure.position[op]
        roots = structure.roots(op.outputs[0])
        return any(
            structure.roots(target.array) & roots and self.is_before(block, position, store)
            for store, target in self.stores_in(block)
        )

    def is_there(self, op: Apply, a: Value, position: int) -> bool:
        """Whether memory that an operation reads is unchanged when its block is at a position.

        True if nothing writes there between the operation and the position, and later writes have
        been restored.
        """
        structure = self.structure
        block, start = structure.block_of[op], structure.position[op]
        roots = structure.roots(a)
        if position < start or self.sweep.setting.is_called or len(roots) != 1:
            return False
        if roots & self._written_by_functions():
            return False
        places = place_of(a, self.structure)
        for store, target in self.stores:
            if not structure.roots(target.array) & roots:
                continue
            if not any(self.overwrites(store, target, p, block, start) for p in places):
                continue
            if not self.is_restored(store) or self.runs_again(store):
                return False
            # what is inside a loop at the position is restored after it
            is_between = not self.is_before(block, position + 1, store)
            if is_between and self.is_before(block, start, store):
                if any(self._meets(target, p) for p in places):
                    return False
        return True

    def is_overwritten_before_use(self, call: Apply) -> bool:
        """Whether memory that a call reads may be written before the operation being reversed."""
        arrays = [v for v in values_in(call.operands()) if is_array(v)]
        read = {root for v in arrays for root in self.structure.roots(v)}
        return any(
            self._is_between(call, store)
            for store, target in self.stores
            if self.structure.roots(target.array) & read
        )

    def _is_between(self, call: Apply, store: Op) -> bool:
        """Whether a store may run after a call, and before the operation being reversed."""
        structure, use = self.structure, self.sweep.op
        block = structure.block_of[call]
        if store is use or not self.is_before(block, structure.position[call], store):
            return False
        if use is None or self.is_before(structure.block_of[store], structure.position[store], use):
            return True
        own = structure.loops_around(block)
        shared = set(structure.loops_around(structure.block_of[use])) - set(own)
        return not shared.isdisjoint(structure.loops_around(structure.block_of[store]))

    def _written_by_functions(self) -> set[Value]:
        """The memory that is written by anything else than stores."""
        if self._by_functions is None:
            self._by_functions = {
                root
                for op in walk(self.structure.top)
                if target_of(op) is None
                for v in op.writes()
                for root in self.structure.roots(v)
            }
        return self._by_functions

    def _meets(self, target: Target, place: Place) -> bool:
        """Whether a store may write to a place in the same iteration."""
        written = intervals(target.at, target.array.type.ndim, self.structure)
        if place.array is not target.array or place.part is None or written is None:
            return True
        return not are_apart(place.part, written)

    def overwrites(
        self, store: Op, target: Target, place: Place, block: Block, position: int
    ) -> bool:
        """Whether a store may write to a place after it was read at a position in the program."""
        later = self.is_before(block, position, store)
        if isinstance(store, Call) and block is self.structure.block_of[store]:
            later = later and position != self.structure.position[store]  # it is what is read there
        if not later and not self.share_loop(block, store):
            return False
        if place.array is not target.array:
            return later or self.share_loop(block, store)
        return may_meet(place.part, block, store, target, self.structure, after=later)

    def that_change(self, reads: Iterable[Read]) -> set[Op]:
        """The stores that may write to one of several places after it was read."""
        by_memory: dict[Value, list[Read]] = {}
        for r in reads:
            by_memory.setdefault(r.place.root, []).append(r)
        return {
            store
            for root, own in by_memory.items()
            for store, target in self._stores_by_memory.get(root, ())
            if any(self.overwrites(store, target, r.place, r.block, r.position) for r in own)
        }

    def share_loop(self, block: Block, store: Op) -> bool:
        """Whether a block and a store are in the same outermost loop."""
        own = self.structure.loops_around(block)
        others = self.structure.loops_around(self.structure.block_of[store])
        return bool(own and others and own[0] is others[0])

    def is_before(self, block: Block, position: int, store: Op) -> bool:
        """Whether a position precedes a store within one iteration of their common loops."""
        if block is self.structure.block_of[store]:
            return position <= self.structure.position[store]
        places: dict[int, int] = {}
        at = position
        for b, holder in self.structure.chain(block):
            places[id(b)] = at
            at = self.structure.position[holder] if holder is not None else 0
        at = self.structure.position[store]
        for b, holder in self.structure.chain(self.structure.block_of[store]):
            if id(b) in places:
                return places[id(b)] <= at  # what reverses a store reads what was before it
            at = self.structure.position[holder] if holder is not None else 0
        return True
