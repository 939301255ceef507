"""Values of the program in the reverse pass: still available, recomputed, or kept."""

from __future__ import annotations

import operator
from collections.abc import Iterable

from fwdad.ir.analysis.alias import aliased_arguments
from fwdad.ir.analysis.costs import cost_of
from fwdad.ir.analysis.effects import risk
from fwdad.ir.builder.shape_env import length_if_any, length_of
from fwdad.ir.clone import Cloner
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Load,
    Op,
    Operand,
    Store,
    Value,
    is_array,
    map_values,
    values_in,
)
from fwdad.ir.primitives.identity import identity
from fwdad.ir.rewrite import defined_by
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import BOOL
from fwdad.ops import Cost, Risk, record_of
from fwdad.transforms.reverse.kept import Kept
from fwdad.transforms.reverse.normalize.array_phis import sides_of
from fwdad.transforms.reverse.overwriting import Overwriting
from fwdad.transforms.reverse.reads import read_by
from fwdad.transforms.reverse.region import Region
from fwdad.transforms.reverse.structure import may_be_missing
from fwdad.transforms.reverse.sweep import Sweep

_CHEAP = 6  # arithmetic operations that cost as much as a number that is kept and read again
_ARRAY = 2  # those that one on an array counts for: two or three cost as much as a copy
_PLAIN = (Cost.ARITHMETIC, Cost.DIVISION)
DEAR = (Cost.ROOT, Cost.LIBRARY)


class Resolver:
    """Replaces values of a region's source block, at the position that the reverse has reached."""

    def __init__(
        self,
        sweep: Sweep,
        overwriting: Overwriting,
        kept: Kept,
        region: Region,
        position: int,
    ) -> None:
        self.sweep = sweep
        self.structure = sweep.structure
        self.choices = sweep.choices
        self.overwriting = overwriting
        self.kept = kept
        self.region = region
        self.position = position
        self.made: list[Op] = []

    def take(self) -> list[Op]:
        """The operations recorded since the last call."""
        ops, self.made = self.made, []
        return ops

    def operand(self, operand: Operand) -> Operand:
        """A structure of operands, resolved."""
        return map_values(self.value, operand)

    def value(self, v: Value) -> Operand:
        """A value, resolved; one that is not of the source block is itself."""
        structure, region = self.structure, self.region
        if structure.home.get(v) is not region.source:
            return v
        if v not in region.resolved and not (structure.is_memory(v) and self._found(v)):
            plan = self._plan(v, _CHEAP) or self._stored(v) or self._from_kept(v)
            if plan is not None:
                self._write(plan)
            elif not self._is_read_again(v):
                region.resolved[v] = self.kept.keep(v, region)
        return region.resolved[v]

    def _is_read_again(self, v: Value) -> bool:
        """Take a view again of memory that has not been written; its indices may be kept."""
        structure, region = self.structure, self.region
        op = structure.definition.get(v)
        if not (isinstance(op, Load) and op.view and op in structure.program):
            return False
        if structure.home.get(op.array) is region.source or self._cost(op, v) is None:
            return False
        for index in values_in(op.operands()):
            self.value(index)
        self._write([op])
        return True

    def _hangs_on_one_number(self, v: Value) -> bool:
        """Whether keeping at most one number suffices to take a view again."""
        definition = self.structure.definition.get(v)
        if not isinstance(definition, Load):
            return False
        return len(self._wanted(values_in(definition.index))) <= 1

    def _wanted(self, numbers: Iterable[Value]) -> set[Value]:
        """The values that must be kept in order to recompute numbers, perhaps these themselves."""
        wanted: set[Value] = set()
        for v in numbers:
            op = self.structure.definition.get(v)
            if self._plan(v, _CHEAP) is not None:
                continue
            if isinstance(op, Apply) and (self._cost(op, v) or 20) <= _CHEAP:
                wanted |= self._wanted(values_in(op.operands()))
            else:
                wanted.add(v)
        return wanted

    def _found(self, v: Value) -> bool:
        """Find memory itself, since restoring into a copy has no effect; whether it was found."""
        structure, choices = self.structure, self.choices
        op = structure.definition.get(v)
        if v in choices.meant:
            number = self.value(choices.number[v])
            (_, first), *others = choices.meant[v].items()
            array = self.value(first)
            for k, origin in others:
                is_meant = Value(BOOL)
                self.made.append(Apply(operator.eq, (number, k), outputs=(is_meant,)))
                array = self._one_of(v, is_meant, self.value(origin), array)
        elif isinstance(op, Branch) and (sides := sides_of(v, structure)) is not None:
            then, other = (self.value(r) for r in sides)
            array = self._one_of(v, self.operand(op.condition), then, other)
        elif (isinstance(op, Load) and op.view) or (
            isinstance(op, Apply) and structure.roots(v) != {v}
        ):
            for used in values_in(op.operands()):
                self.value(used)
            self._write([op])
            return True
        else:
            return False
        self.region.resolved[v] = array
        return True

    def _one_of(self, v: Value, condition: Operand, then: Operand, other: Operand) -> Value:
        output = Value(v.type, v.name)
        sides = (Block(results=[then]), Block(results=[other]))
        self.made.append(Branch(condition, *sides, outputs=(output,)))
        return output

    def length(self, op: Apply) -> None:
        """Resolve a length of an array, which is kept as a number if the array is not available."""
        array, axis = op.args
        region = self.region
        if may_be_missing(array, self.structure.definition):
            op.function = length_if_any
        if self.structure.home.get(array) is not region.source:
            return
        if array in region.resolved or self._plan(array, _CHEAP) is not None:
            op.args = (self.value(array), axis)
            return
        if self._hangs_on_one_number(array) and self._is_read_again(array):
            op.args = (region.resolved[array], axis)
            return
        number = self.kept.length(array, axis, op.outputs[0].type, region)
        if number not in region.resolved:
            region.resolved[number] = self.kept.keep(number, region)
        op.function, op.args = identity, (region.resolved[number],)

    # -- computing again

    def _plan(self, v: Value, budget: int) -> list[Op] | None:
        """The operations of the source block that recompute a value; None if too expensive."""
        plan: list[Op] = []
        cost = self._count(v, plan, set(), budget)
        return None if cost is None or cost > budget else plan

    def _from_kept(self, v: Value) -> list[Op] | None:
        """The same from values that are needed later in the reverse pass, which it keeps."""
        if not isinstance(self.structure.definition.get(v), (Apply, Load)):
            return None
        plan: list[Op] = []
        cost = self._count(v, plan, set(), _CHEAP, besides=v)
        if cost is None or cost > _CHEAP:
            return None
        for used in dict.fromkeys(x for op in plan for x in values_in(op.operands())):
            if used in self.region.needed and used is not v:
                self.value(used)
        return self._plan(v, _CHEAP)

    def _stored(self, v: Value) -> list[Op] | None:
        """The operations that read a number from where it was stored; None if it is not there."""
        structure, region = self.structure, self.region
        for op in region.source.ops:
            if not isinstance(op, Store) or op.value is not v or op not in structure.program:
                continue
            loaded, _ = self.sweep.recorder.indexing.type_of(
                Symbol(op.array, self.sweep.recorder), self.sweep.symbols(op.index)
            )
            if loaded != v.type or is_array(v) or not self.overwriting.stays_written(op):
                continue
            if not self.overwriting.is_stored_at_once(op, v):
                continue
            plan: list[Op] = []
            seen: set[Value] = set()
            costs = [
                self._count(used, plan, seen, _CHEAP) for used in values_in((op.array, op.index))
            ]
            if sum(_CHEAP if n is None else n for n in costs) < _CHEAP:
                return [*plan, Load(op.array, op.index, False, outputs=(v,), location=op.location)]
        return None

    def _count(
        self,
        v: Value,
        plan: list[Op],
        seen: set[Value],
        budget: int,
        besides: Value | None = None,
    ) -> int | None:
        """What it costs to recompute a value; ``besides`` it, what is needed is kept anyway."""
        structure, region = self.structure, self.region
        if structure.home.get(v) is not region.source or v in region.resolved or v in seen:
            return 0
        if besides not in (None, v) and v in region.needed and not structure.is_memory(v):
            return 0
        op = structure.definition.get(v)
        if not isinstance(op, (Apply, Load)) or not op.pure or op not in structure.program:
            return None  # the last is read to be kept, before it is overwritten
        own = self._cost(op, v)
        if own is None or own > budget:
            return None
        total = own
        for used in values_in(op.operands()):
            cost = self._count(used, plan, seen, budget - total, besides)
            if cost is None:
                return None
            total += cost
        seen.update(op.outputs)
        plan.append(op)
        return total

    def _cost(self, op: Apply | Load, v: Value) -> int | None:
        """The cost of recomputing a value, without its operands; None if it must be kept."""
        if isinstance(op, Load):
            is_view = op.view and is_array(v) and self.structure.is_memory(v)
            return 0 if is_view else self._if_unwritten(op, 1)
        if risk(op) >= Risk.RAISES and not record_of(op.function).own:
            return None
        if is_array(v):
            return self._cost_of_array(op, v)
        if any(is_array(a) for a in values_in(op.operands())):
            if op.function is not length_of:
                return None
        return 20 if cost_of(op) in DEAR else 1

    def _cost_of_array(self, op: Apply, v: Value) -> int | None:
        """The same for a call that returns an array; a view costs nothing."""
        is_memory = self.structure.is_memory(v)
        if is_memory and aliased_arguments(op):
            return 0
        if cost_of(op) in _PLAIN and v.type.dtype.kind in "fc" and not is_memory:
            there = all(self._is_there(op, a) for a in values_in(op.args) if is_array(a))
            return _ARRAY if there else None
        if is_memory:  # it has other content by now
            return None
        return 1 if record_of(op.function).own and not self._reads_written(op) else None

    def _is_there(self, op: Apply, a: Value) -> bool:
        """Whether an array that an operation reads can be read again without another restore."""
        structure = self.structure
        if not structure.roots(a) & structure.written:
            return True
        return self.overwriting.is_there(op, a, self.position)

    def _reads_written(self, op: Op) -> bool:
        """Whether an operation reads memory of the program that is written somewhere."""
        structure = self.structure
        return any(structure.roots(a) & structure.written for a in read_by(op))

    def _if_unwritten(self, op: Load, cost: int) -> int | None:
        """The cost of a load; None if its memory has been written and is not restored."""
        structure = self.structure
        roots = structure.roots(op.array)
        if roots & structure.written and not self.overwriting.is_untouched(op):
            return None
        return cost

    def _write(self, plan: list[Op]) -> None:
        region = self.region
        for op in plan:
            cloner = Cloner({})
            copy = cloner.op(op)
            copy.replace(lambda v: region.resolved.get(v, v))
            self.made.append(copy)
            for old, new in zip(defined_by(op), defined_by(copy), strict=True):
                region.resolved[old] = new
