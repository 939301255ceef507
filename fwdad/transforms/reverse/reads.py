"""What the reverse pass reads of the program, and which stores are restored for that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fwdad.ir.analysis.alias import aliased_arguments
from fwdad.ir.analysis.effects import reads
from fwdad.ir.ops import (
    Apply,
    Branch,
    Call,
    Load,
    Loop,
    Op,
    Operand,
    Value,
    is_array,
    values_in,
)
from fwdad.ir.primitives.scatter_add import Target, target_of
from fwdad.ir.primitives.stacks import pop, push, thin, top
from fwdad.ir.primitives.view_mirrors import view_or_zeros
from fwdad.ir.rewrite import blocks_of
from fwdad.rules.core.registry import function_name
from fwdad.transforms.reverse.dead_restores import hidden_stores
from fwdad.transforms.reverse.indices import Place, Read, place_of
from fwdad.transforms.reverse.region import Region
from fwdad.transforms.reverse.restores import Restores
from fwdad.transforms.reverse.sweep import Sweep
from fwdad.transforms.reverse.tbr import Overwriting

_ON_STACKS = (push, pop, top, thin)


class Reads:
    """Notes the memory of the program that the reverse pass reads, and when.

    Attributes
    ----------
    noted : list of Read
        What is read.
    assumed : set of Op
        Stores in loops that run again, which are restored by the states of the loops.
    views : dict
        Arrays made in the reverse pass that are views, or may be, with their places.
    certain : set of Op
        Loads of what is certainly still there.
    """

    def __init__(self, sweep: Sweep, overwriting: Overwriting, restores: Restores) -> None:
        self.sweep = sweep
        self.overwriting = overwriting
        self.restores = restores
        self.structure = sweep.structure
        self.noted: list[Read] = []
        self.assumed: set[Op] = set()
        self.views: dict[Value, list[Place]] = {}
        self.certain: set[Op] = set()

    def note(self, ops: list[Op], region: Region, position: int) -> None:
        """Note what operations of the reverse pass read, at a position."""
        for op in ops:
            if isinstance(op, Load) and (op.view or op in self.certain):
                found = [] if op in self.certain else self.places_of([op.array])
                if found:  # a view of a view: all of it
                    self.views[op.outputs[0]] = [Place(p.root, None, None) for p in found]
                continue
            if isinstance(op, Apply) and op.outputs and is_array(op.outputs[0]):
                found = self.places_of(aliased_arguments(op))
                if found:
                    for v in op.outputs:
                        self.views[v] = [Place(p.root, None, None) for p in found]
            used = op.operands() if isinstance(op, (Branch, Loop)) else list(read_by(op))
            if not (isinstance(op, Apply) and op.function is view_or_zeros):  # needs addresses
                for v in values_in(used):
                    self._reads_no_stale_copy(v)
            stores = self.restores.stores_of(op)
            for place in self.places_of(used):
                self.noted.append(Read(place, region.source, position, stores))

    def _reads_no_stale_copy(self, v: Value) -> None:
        """Refuse to read a repeated view that may be a copy of outdated content."""
        structure = self.structure
        while structure.roots(v) not in (set(), {v}):
            op = structure.definition.get(v)
            if not isinstance(op, (Load, Apply)) or op not in structure.block_of:
                return
            if structure.block_of[op] is structure.top and not self.sweep.setting.is_called:
                return  # it is there
            if isinstance(op, Apply) and self.overwriting.is_stale(op):
                name = function_name(op.function)
                self.sweep.fail(f"what {name} returns may be a copy of what is written later")
            v = next(a for a in values_in(op.operands()) if structure.roots(a) & structure.roots(v))

    def places_of(self, operands: list[Operand]) -> list[Place]:
        """The memory of the program that arrays among operands are."""
        found: list[Place] = []
        for v in values_in(operands):
            if v in self.views:
                found.extend(self.views[v])
            elif v in self.structure.home and is_array(v):
                found.extend(place_of(v, self.structure))
        return found

    # -- what must be restored for them

    def needed(self) -> set[Op]:
        """The stores whose old contents are read, after the whole reverse pass has been written."""
        stores = self.overwriting.stores()
        found: set[Op] = set()
        if self.sweep.setting.restores:
            params = set(self.structure.top.params)
            found = {op for op, t in stores if self.structure.roots(t.array) & params}
        while True:  # what restores memory may read some in its turn: an index
            read = [r for r in self.noted if r.stores is None or r.stores & found]
            needed = {op for op, t in stores if self.is_read_before(op, t, read)}
            once = [op for op in needed if not self.overwriting.runs_again(op)]
            needed -= hidden_stores(self.structure, once, read)
            if needed <= found:
                break
            found |= needed
        self._check_other_writers(read)
        if any(self.overwriting.runs_again(op) for op in found - self.assumed):
            self.sweep.fail("a loop that runs again overwrites what the reverse pass reads")
        return found

    def is_read_before(self, op: Op, target: Target, reads: Iterable[Read]) -> bool:
        """Whether a store may overwrite something that is read."""
        roots, overwrites = self.structure.roots(target.array), self.overwriting.overwrites
        return any(
            r.place.root in roots and overwrites(op, target, r.place, r.block, r.position)
            for r in reads
        )

    def _check_other_writers(self, read: list[Read]) -> None:
        """Refuse a function that overwrites what the reverse pass reads, which is not restored."""
        structure, overwriting, sweep = self.structure, self.overwriting, self.sweep
        for block in blocks_of(structure.top):
            for op in block.ops:
                if target_of(op) is not None or op not in structure.source_of:
                    continue
                if isinstance(op, Call) or (isinstance(op, Apply) and op.function in _ON_STACKS):
                    continue
                roots = {root for v in op.writes() for root in structure.roots(v)}
                if sweep.setting.restores and roots & set(structure.top.params):
                    sweep.op = op
                    sweep.fail("a function overwrites an argument that the reverse pass reads")
                for r in read:
                    if r.place.root in roots and (
                        overwriting.is_before(r.block, r.position, op)
                        or overwriting.share_loop(r.block, op)
                    ):
                        sweep.op = op
                        sweep.fail("a function overwrites an array that the reverse pass reads")


def read_by(op: Op) -> Iterator[Value]:
    """The arrays whose content an operation of the reverse pass reads."""
    yield from reads(op, {v: {v} for o in op.operands() for v in values_in(o)})
