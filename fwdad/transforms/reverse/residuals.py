"""Residuals: values of the forward pass that the reverse pass needs, recomputed or kept.

When a loop or a branch is reversed, the values of that iteration, or side, are gone. A value that
is needed is recomputed where everything that it depends on is available, and that is cheap;
otherwise it is kept: a branch returns it, a loop pushes it onto a stack.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fwdad.ir.analysis.alias import aliased_arguments
from fwdad.ir.analysis.indices import Interval, intervals
from fwdad.ir.builder.shape_env import length_if_any, length_of
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Load,
    Loop,
    Missing,
    Op,
    Operand,
    Store,
    Value,
    is_array,
    values_in,
)
from fwdad.ir.primitives.stacks import new_stack, pop, push, stack_type
from fwdad.ir.primitives.view_mirrors import view_or_zeros
from fwdad.ir.rewrite import all_used, blocks_of
from fwdad.ir.symbol import Symbol
from fwdad.rules.core.registry import function_name
from fwdad.transforms.reverse.memory import Memory
from fwdad.transforms.reverse.region import Region
from fwdad.transforms.reverse.rematerialize import Resolver, read_by


class Place(NamedTuple):
    """Memory that is read: its owner, and which part of which array, as far as is known."""

    root: Value
    array: Value | None
    part: list[Interval] | None


class Residuals(Memory):
    """Resolves the values of the program that are used in a region."""

    lengths: dict[Any, Value]
    views: dict[Value, list[Place]]
    read: list[tuple[Place, Block, int]]
    group: Any

    def is_stored_at_once(self, op: Store, v: Value) -> bool:
        """Whether nothing writes where a value is stored between its definition and the store."""
        raise NotImplementedError

    def settle(
        self, region: Region, start: int, position: int, results: tuple[Operand, ...] = ()
    ) -> None:
        """Resolve what the operations since ``start`` use of the region's source block.

        ``position`` is that of the source operation that they reverse, ``results`` what the region
        returns besides cotangents.
        """
        self._prune(region, start, results)
        made = region.block.ops[start:]
        self._note_reads(made, region, position)
        if region.parent is None:
            return
        del region.block.ops[start:]
        resolver = Resolver(self, region, position)
        for op in made:
            self._rewrite(op, resolver)
            region.block.ops.extend(resolver.take())
            region.block.ops.append(op)
        for v, bar in list(region.bars.items()):  # which the region may return as it is
            if type(bar) is Symbol and self.structure.home.get(bar.value) is region.source:
                found = resolver.value(bar.value)
                region.block.ops.extend(resolver.take())
                region.bars[v] = Symbol(found, self.recorder) if isinstance(found, Value) else found

    def _prune(self, region: Region, start: int, results: tuple[Operand, ...]) -> None:
        """Remove unused operations, whose operands would be kept."""
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

    def _rewrite(self, op: Op, resolver: Resolver) -> None:
        if isinstance(op, Apply) and op.function in (length_of, length_if_any):
            resolver.length(op)
            return
        op.replace(resolver.value)
        for inner in op.blocks():
            self._rewrite_block(inner, resolver)

    def _rewrite_block(self, block: Block, resolver: Resolver) -> None:
        for op in block.ops:
            self._rewrite(op, resolver)
        block.results = [resolver.operand(r) for r in block.results]

    def is_untouched(self, op: Load) -> bool:
        """Whether a load gives the same value when the reverse pass repeats it."""
        raise NotImplementedError

    def is_stale(self, op: Apply) -> bool:
        """Whether a call that may return a copy would copy something else if repeated."""
        raise NotImplementedError

    def is_there(self, op: Apply, a: Value, position: int) -> bool:
        """Whether memory that an operation reads is unchanged when its block is at a position."""
        raise NotImplementedError

    # -- what is read

    def _note_reads(self, ops: list[Op], region: Region, position: int) -> None:
        """Note the memory of the program that the reverse pass reads, and the position."""
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
            for place in self.places_of(used):
                self.read.append((place, region.source, position))

    def _reads_no_stale_copy(self, v: Value) -> None:
        """Refuse to read a repeated view that may be a copy of outdated content."""
        structure = self.structure
        while structure.roots(v) not in (set(), {v}):
            op = structure.definition.get(v)
            if not isinstance(op, (Load, Apply)) or op not in structure.block_of:
                return
            if structure.block_of[op] is structure.top and self.group is None:
                return  # it is there
            if isinstance(op, Apply) and self.is_stale(op):
                name = function_name(op.function)
                self.fail(f"what {name} returns may be a copy of what is written later")
            v = next(a for a in values_in(op.operands()) if structure.roots(a) & structure.roots(v))

    def places_of(self, operands: list[Operand]) -> list[Place]:
        """The memory of the program that arrays among operands are."""
        found: list[Place] = []
        for v in values_in(operands):
            if v in self.views:
                found.extend(self.views[v])
            elif v in self.structure.home and is_array(v):
                found.extend(self.place_of(v))
        return found

    def place_of(self, v: Value) -> list[Place]:
        """The memory that an array of the program is a view of, and where."""
        roots = self.structure.roots(v) & self.structure.written
        op = self.structure.definition.get(v)
        if isinstance(op, Load) and op.view:
            at = intervals(op.index, op.array.type.ndim, self.structure)
            return [Place(root, op.array, at) for root in roots]
        return [Place(root, None, None) for root in roots]

    # -- what is kept

    def keep(self, v: Value, region: Region) -> Value:
        """Keep a value of the region's source block; return what replaces it in the region."""
        if region.is_side:
            return self._answer(v, region)
        return self._pushed(v, region)

    def _answer(self, v: Value, region: Region) -> Value:
        """Keep a value of a side of a branch, as an additional output of the branch."""
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
        """Keep a value of a loop's body, on a stack."""
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
