"""What the way back needs of the way forward: computed again if that is cheap, else kept.

On the way back through a loop or a branch the values of that iteration, or side, are gone. Each one
that is needed is computed again, where all that it is made of is at hand and costs little; else it
is kept: a branch answers it, a loop pushes it onto a stack.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fwdad.reverse.choices import sides_of
from fwdad.reverse.memory import Memory
from fwdad.reverse.region import Region
from fwdad.reverse.structure import may_be_missing
from fwdad.rules.registry import function_name
from fwdad.tape.alias import windows
from fwdad.tape.clone import Cloner
from fwdad.tape.effects import Risk, own_function, reads, risk
from fwdad.tape.known_lengths import length_if_any, length_of
from fwdad.tape.mirroring import window_or_zeros
from fwdad.tape.ops import (
    Apply,
    Block,
    Branch,
    Load,
    Loop,
    Missing,
    Op,
    Operand,
    Value,
    is_array,
    map_values,
    values_in,
)
from fwdad.tape.passes.rewrite import all_used, blocks_of, defined_by
from fwdad.tape.places import Interval, intervals
from fwdad.tape.stacks import new_stack, pop, push, stack_type
from fwdad.tape.symbol import Symbol
from fwdad.tape.types import BOOL
from fwdad.tape.writer import _identity

_CHEAP = 6  # arithmetic operations that cost as much as a number that is kept and read again
_ARRAY = 2  # those that one on an array counts for: two or three cost as much as a copy
_PLAIN = {
    operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pos,
    np.add, np.subtract, np.multiply, np.divide, np.negative, np.positive,
}  # fmt: skip
_DEAR = {
    "exp", "log", "sin", "cos", "tan", "tanh", "sinh", "cosh", "power", "pow", "sqrt", "exp2",
    "log2", "log10", "log1p", "expm1", "arctan2", "hypot", "arcsin", "arccos", "arctan",
}  # fmt: skip


class Place(NamedTuple):
    """Memory that is read: its owner, and which part of which array, where that can be told."""

    root: Value
    array: Value | None
    part: list[Interval] | None


class Residuals(Memory):
    """Finds, for what is written in a region, the values of the program that it uses."""

    lengths: dict[Any, Value]
    windows: dict[Value, list[Place]]
    read: list[tuple[Place, Block, int]]
    group: Any

    def settle(
        self, region: Region, start: int, position: int, results: tuple[Operand, ...] = ()
    ) -> None:
        """Resolve what the operations since ``start`` use of the region's source block.

        Parameters
        ----------
        region : Region
            That is open.
        start : int
            In its block.
        position : int
            Of the operation of the source block that they reverse.
        results : tuple of operands
            What they answer, beside cotangents.
        """
        self._prune(region, start, results)
        made = region.block.ops[start:]
        self._note_reads(made, region, position)
        if region.parent is None:
            return
        del region.block.ops[start:]
        resolver = _Resolver(self, region, position)
        for op in made:
            self._rewrite(op, resolver)
            region.block.ops.extend(resolver.take())
            region.block.ops.append(op)
        for v, bar in list(region.bars.items()):  # which the region may answer as it is
            if type(bar) is Symbol and self.structure.home.get(bar.value) is region.source:
                found = resolver.value(bar.value)
                region.block.ops.extend(resolver.take())
                region.bars[v] = Symbol(found, self.recorder) if isinstance(found, Value) else found

    def _prune(self, region: Region, start: int, results: tuple[Operand, ...]) -> None:
        """Leave out what nobody uses: it would have its operands kept."""
        alive = set(values_in(list(results)))
        alive.update(symbol.value for symbol in self.refs.values())
        inner: Region | None = region
        while inner is not None:
            held = [*inner.bars.values(), *inner.buffers.values()]
            alive.update(x.value for x in held if type(x) is Symbol)
            inner = inner.parent
        kept: list[Op] = []
        gone: set[Value] = set()
        for op in reversed(region.block.ops[start:]):
            if isinstance(op, (Apply, Load)) and op.pure and not alive.intersection(op.outputs):
                gone.update(op.outputs)
                continue
            kept.append(op)
            alive |= all_used(op)
        region.block.ops[start:] = kept[::-1]
        self.recorder.unmeasure(gone)

    def _rewrite(self, op: Op, resolver: _Resolver) -> None:
        if isinstance(op, Apply) and op.function in (length_of, length_if_any):
            resolver.length(op)
            return
        op.replace(resolver.value)
        for inner in op.blocks():
            self._rewrite_block(inner, resolver)

    def _rewrite_block(self, block: Block, resolver: _Resolver) -> None:
        for op in block.ops:
            self._rewrite(op, resolver)
        block.results = [resolver.operand(r) for r in block.results]

    def is_untouched(self, op: Load) -> bool:
        """Whether a load reads the same when it is done again on the way back."""
        raise NotImplementedError

    def is_stale(self, op: Apply) -> bool:
        """Whether a call that may answer a copy would, run again, copy something else."""
        raise NotImplementedError

    def is_there(self, op: Apply, a: Value, position: int) -> bool:
        """Whether the memory that an operation reads is as it was when its block is at a place."""
        raise NotImplementedError

    # -- what is read

    def _note_reads(self, ops: list[Op], region: Region, position: int) -> None:
        """Note the memory of the program whose content the way back reads, and when."""
        for op in ops:
            if isinstance(op, Load) and op.view:
                found = self.places_of([op.array])
                if found:  # a window on a window: all of it
                    self.windows[op.outputs[0]] = [Place(p.root, None, None) for p in found]
                continue
            if isinstance(op, Apply) and op.outputs and is_array(op.outputs[0]):
                found = self.places_of(windows(op))
                if found:
                    for v in op.outputs:
                        self.windows[v] = [Place(p.root, None, None) for p in found]
            used = op.operands() if isinstance(op, (Branch, Loop)) else list(read_by(op))
            if not (isinstance(op, Apply) and op.function is window_or_zeros):  # asks for addresses
                for v in values_in(used):
                    self._reads_no_stale_copy(v)
            for place in self.places_of(used):
                self.read.append((place, region.source, position))

    def _reads_no_stale_copy(self, v: Value) -> None:
        """Refuse to read what is taken again, and may be a copy of what has changed."""
        structure = self.structure
        while structure.roots(v) not in (set(), {v}):
            op = structure.definition.get(v)
            if not isinstance(op, (Load, Apply)) or op not in structure.block_of:
                return
            if structure.block_of[op] is structure.top and self.group is None:
                return  # it is there
            if isinstance(op, Apply) and self.is_stale(op):
                name = function_name(op.function)
                self.fail(f"what {name} answers may be a copy of what is written later")
            v = next(a for a in values_in(op.operands()) if structure.roots(a) & structure.roots(v))

    def places_of(self, operands: list[Operand]) -> list[Place]:
        """The memory of the program that arrays among operands are."""
        found: list[Place] = []
        for v in values_in(operands):
            if v in self.windows:
                found.extend(self.windows[v])
            elif v in self.structure.home and is_array(v):
                found.extend(self.place_of(v))
        return found

    def place_of(self, v: Value) -> list[Place]:
        """The memory that an array of the program is a window on, and where."""
        roots = self.structure.roots(v) & self.structure.written
        op = self.structure.definition.get(v)
        if isinstance(op, Load) and op.view:
            at = intervals(op.index, op.array.type.ndim, self.structure)
            return [Place(root, op.array, at) for root in roots]
        return [Place(root, None, None) for root in roots]

    # -- what is kept

    def keep(self, v: Value, region: Region) -> Value:
        """Keep a value of the region's source block; answer what stands for it in the region."""
        if region.is_side:
            return self._answer(v, region)
        return self._pushed(v, region)

    def _answer(self, v: Value, region: Region) -> Value:
        """A value of a side of a branch, as one more answer of the branch."""
        branch: Any = region.owner
        made = Value(v.type, v.name)
        for side in (branch.then, branch.other):
            side.results.append(v if side is region.source else Missing(v.type))
        branch.outputs = (*branch.outputs, made)
        self.structure.home[made] = self.structure.block_of[branch]
        self.structure.definition[made] = branch
        self.structure.memory[made] = self.structure.roots(v)
        return made

    def _pushed(self, v: Value, region: Region) -> Value:
        """A value of a loop's body, on a stack."""
        stack = Value(stack_type(v.type), f"saved_{v.name}" if v.name else "saved")
        self.stacks.append(Apply(new_stack, (), outputs=(stack,)))
        made = Value(v.type, v.name)
        block = region.source
        definition = self.structure.definition.get(v)
        pushing = Apply(push, (stack, v), mutated=(0,))
        if self.structure.is_memory(v):
            if not self._ends_here(v, region):
                self.fail("an array that is written is another one in each iteration")
            block.ops.append(pushing)  # as the iteration leaves it: what is kept may be a copy
        elif self.group is not None:
            block.ops.append(pushing)  # the calls inside have put theirs on the stack
        elif definition is None:
            pushing.location = region.owner.location if region.owner is not None else None
            block.ops.insert(0, pushing)
        else:
            pushing.location = definition.location
            block.ops.insert(block.ops.index(definition) + 1, pushing)
        region.heads.append(Apply(pop, (stack,), mutated=(0,), outputs=(made,)))
        return made

    def _ends_here(self, v: Value, region: Region) -> bool:
        """Whether no later iteration writes into an array."""
        loop: Any = region.owner
        if v in loop.carried:
            return loop.carried.index(v) in self.choices.threaded[loop]
        inside = {id(b) for b in blocks_of(region.source)}
        return all(id(self.structure.home[root]) in inside for root in self.structure.roots(v))


class _Resolver:
    """What stands in a region for values of its source block, at one place.

    Parameters
    ----------
    writer : Residuals
        The program.
    region : Region
        Where.
    position : int
        The place in the source block that the way back has reached.
    """

    def __init__(self, writer: Residuals, region: Region, position: int) -> None:
        self.writer = writer
        self.region = region
        self.position = position
        self.made: list[Op] = []

    def take(self) -> list[Op]:
        """The operations that were written."""
        made, self.made = self.made, []
        return made

    def operand(self, operand: Operand) -> Operand:
        """A structure of operands, resolved."""
        return map_values(self.value, operand)

    def value(self, v: Value) -> Operand:
        """A value, resolved; one that is not of the source block is itself."""
        structure, region = self.writer.structure, self.region
        if structure.home.get(v) is not region.source:
            return v
        if v not in region.resolved and not (structure.is_memory(v) and self._found(v)):
            plan = self._plan(v, _CHEAP)
            if plan is not None:
                self._write(plan)
            elif not self._is_read_again(v):
                region.resolved[v] = self.writer.keep(v, region)
        return region.resolved[v]

    def _is_read_again(self, v: Value) -> bool:
        """Take a window again on what nothing has been written into; its indices may be kept."""
        structure, region = self.writer.structure, self.region
        op = structure.definition.get(v)
        if not (isinstance(op, Load) and op.view and op in structure.source_of):
            return False
        if structure.home.get(op.array) is region.source or self._cost(op, v) is None:
            return False
        for index in values_in(op.operands()):
            self.value(index)
        self._write([op])
        return True

    def _hangs_on_one_number(self, v: Value) -> bool:
        """Whether no more than one number would be kept so that a window can be taken again."""
        definition = self.writer.structure.definition.get(v)
        if not isinstance(definition, Load):
            return False
        return len(self._wanted(values_in(definition.index))) <= 1

    def _wanted(self, numbers: Iterable[Value]) -> set[Value]:
        """What would be kept so that numbers can be computed again, or these themselves."""
        found: set[Value] = set()
        for v in numbers:
            op = self.writer.structure.definition.get(v)
            if self._plan(v, _CHEAP) is not None:
                continue
            if isinstance(op, Apply) and (self._cost(op, v) or 20) <= _CHEAP:
                found |= self._wanted(values_in(op.operands()))
            else:
                found.add(v)
        return found

    def _found(self, v: Value) -> bool:
        """Find memory itself: what is put back must not be put into a copy."""
        structure, choices = self.writer.structure, self.writer.choices
        op = structure.definition.get(v)
        if v in choices.meant:
            number = self.value(choices.number[v])
            (_, first), *others = choices.meant[v].items()
            found = self.value(first)
            for k, origin in others:
                is_meant = Value(BOOL)
                self.made.append(Apply(operator.eq, (number, k), outputs=(is_meant,)))
                found = self._one_of(v, is_meant, self.value(origin), found)
        elif isinstance(op, Branch) and (sides := sides_of(v, structure)) is not None:
            then, other = (self.value(r) for r in sides)
            found = self._one_of(v, self.operand(op.condition), then, other)
        elif (isinstance(op, Load) and op.view) or (
            isinstance(op, Apply) and structure.roots(v) != {v}
        ):
            for used in values_in(op.operands()):
                self.value(used)
            self._write([op])
            return True
        else:
            return False
        self.region.resolved[v] = found
        return True

    def _one_of(self, v: Value, condition: Operand, then: Operand, other: Operand) -> Value:
        made = Value(v.type, v.name)
        sides = (Block(results=[then]), Block(results=[other]))
        self.made.append(Branch(condition, *sides, outputs=(made,)))
        self.writer.windows[made] = self.writer.place_of(v)
        return made

    def length(self, op: Apply) -> None:
        """A length of an array of the source block: kept as a number, if the array is not there."""
        array, axis = op.args
        region = self.region
        if may_be_missing(array, self.writer.structure.definition):
            op.function = length_if_any
        if self.writer.structure.home.get(array) is not region.source:
            return
        if array in region.resolved or self._plan(array, _CHEAP) is not None:
            op.args = (self.value(array), axis)
            return
        if self._hangs_on_one_number(array) and self._is_read_again(array):
            op.args = (region.resolved[array], axis)
            return
        structure = self.writer.structure
        key = (array, axis)
        if key not in self.writer.lengths:
            made = Value(op.outputs[0].type)
            definition = structure.definition.get(array)
            # what a branch or a loop answers may not be there
            plain = isinstance(definition, (Apply, Load))
            plain = plain and not may_be_missing(array, structure.definition)
            function = length_of if plain else length_if_any
            asked = Apply(function, (array, axis), outputs=(made,))
            at = 0 if definition is None else region.source.ops.index(definition) + 1
            region.source.ops.insert(at, asked)
            structure.home[made] = region.source
            structure.definition[made] = asked
            structure.position[asked] = (
                structure.position[definition] if definition is not None else -1
            )
            structure.block_of[asked] = region.source
            self.writer.lengths[key] = made
        held = self.writer.lengths[key]
        if held not in region.resolved:
            region.resolved[held] = self.writer.keep(held, region)
        op.function, op.args = _identity, (region.resolved[held],)

    # -- computing again

    def _plan(self, v: Value, budget: int) -> list[Op] | None:
        """The operations of the source block that compute a value again; None if it is dear."""
        plan: list[Op] = []
        cost = self._count(v, plan, set(), budget)
        return None if cost is None or cost > budget else plan

    def _count(self, v: Value, plan: list[Op], seen: set[Value], budget: int) -> int | None:
        structure, region = self.writer.structure, self.region
        if structure.home.get(v) is not region.source or v in region.resolved or v in seen:
            return 0
        op = structure.definition.get(v)
        if not isinstance(op, (Apply, Load)) or not op.pure or op not in structure.source_of:
            return None  # the last is read to be kept, before it is overwritten
        own = self._cost(op, v)
        if own is None or own > budget:
            return None
        total = own
        for used in values_in(op.operands()):
            cost = self._count(used, plan, seen, budget - total)
            if cost is None:
                return None
            total += cost
        seen.update(op.outputs)
        plan.append(op)
        return total

    def _cost(self, op: Apply | Load, v: Value) -> int | None:
        """What computing a value again costs, without its operands; None if it is kept instead."""
        if isinstance(op, Load):
            is_window = op.view and is_array(v) and self.writer.structure.is_memory(v)
            return 0 if is_window else self._if_unwritten(op, 1)
        own = own_function(op)
        if risk(op) >= Risk.RAISES and not own:
            return None
        if is_array(v):
            return self._cost_of_array(op, v)
        if any(is_array(a) for a in values_in(op.operands())) and own != "length_of":
            return None
        return 20 if getattr(op.function, "__name__", "") in _DEAR else 1

    def _cost_of_array(self, op: Apply, v: Value) -> int | None:
        """The same of a call that answers an array: a window is no work."""
        is_memory = self.writer.structure.is_memory(v)
        if is_memory and windows(op):
            return 0
        if op.function in _PLAIN and v.type.dtype.kind in "fc" and not is_memory:
            there = all(self._is_there(op, a) for a in values_in(op.args) if is_array(a))
            return _ARRAY if there else None
        return 1 if own_function(op) and not self._reads_written(op) else None

    def _is_there(self, op: Apply, a: Value) -> bool:
        """Whether an array that an operation reads can be read again, and is put back anyway."""
        structure = self.writer.structure
        if not structure.roots(a) & structure.written:
            return True
        return self.writer.is_there(op, a, self.position)

    def _reads_written(self, op: Op) -> bool:
        """Whether an operation reads memory of the program that is written somewhere."""
        structure = self.writer.structure
        return any(structure.roots(a) & structure.written for a in read_by(op))

    def _if_unwritten(self, op: Load, cost: int) -> int | None:
        """The cost of a load, if nothing has been written there that is not put back."""
        structure = self.writer.structure
        roots = structure.roots(op.array)
        if roots & structure.written and not self.writer.is_untouched(op):
            return None
        return cost

    def _write(self, plan: list[Op]) -> None:
        region = self.region
        for op in plan:
            cloner = Cloner({})
            made = cloner.op(op)
            made.replace(lambda v: region.resolved.get(v, v))
            self.made.append(made)
            if isinstance(op, Apply) and op.function in _PLAIN:
                for place in self.writer.places_of(list(values_in(op.args))):
                    self.writer.read.append((place, region.source, self.position))
            for old, new in zip(defined_by(op), defined_by(made), strict=True):
                region.resolved[old] = new
            if is_array(op.outputs[0]):
                found = self.writer.place_of(op.outputs[0])
                if found:
                    self.writer.windows[made.outputs[0]] = found


def read_by(op: Op) -> Iterator[Value]:
    """The arrays whose content an operation of the way back reads."""
    yield from reads(op, {v: {v} for o in op.operands() for v in values_in(o)})
