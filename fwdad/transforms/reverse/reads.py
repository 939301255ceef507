"""What the reverse pass reads of the memory of the program."""

from __future__ import annotations

from collections.abc import Iterator

from fwdad.ir.analysis.alias import aliased_arguments
from fwdad.ir.analysis.effects import reads
from fwdad.ir.ops import (
    Apply,
    Branch,
    Load,
    Loop,
    Op,
    Operand,
    Value,
    is_array,
    values_in,
)
from fwdad.ir.primitives.stacks import pop, push, thin, top
from fwdad.ir.primitives.view_mirrors import view_or_zeros
from fwdad.rules.core.registry import function_name
from fwdad.transforms.reverse.indices import Place, Read, place_of
from fwdad.transforms.reverse.overwriting import Overwriting
from fwdad.transforms.reverse.region import Region
from fwdad.transforms.reverse.restores import Restores
from fwdad.transforms.reverse.sweep import Sweep

_ON_STACKS = (push, pop, top, thin)


class Reads:
    """Notes the memory of the program that the reverse pass reads, and when.

    Attributes
    ----------
    noted : list of Read
        What is read.
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
        self.views: dict[Value, list[Place]] = {}
        self.certain: set[Op] = set()

    def note(self, ops: list[Op], region: Region, position: int) -> None:
        """Note what operations of the reverse pass read, at a position."""
        for op in ops:
            if isinstance(op, Load) and (op.view or op in self.certain):
                places = [] if op in self.certain else self.places_of([op.array])
                if places:  # a view of a view: all of it
                    self.views[op.outputs[0]] = [Place(p.root, None, None) for p in places]
                continue
            if isinstance(op, Apply) and op.outputs and is_array(op.outputs[0]):
                places = self.places_of(aliased_arguments(op))
                if places:
                    for v in op.outputs:
                        self.views[v] = [Place(p.root, None, None) for p in places]
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
        places: list[Place] = []
        for v in values_in(operands):
            if v in self.views:
                places.extend(self.views[v])
            elif v in self.structure.home and is_array(v):
                places.extend(place_of(v, self.structure))
        return places


def read_by(op: Op) -> Iterator[Value]:
    """The arrays whose content an operation of the reverse pass reads."""
    yield from reads(op, {v: {v} for o in op.operands() for v in values_in(o)})
