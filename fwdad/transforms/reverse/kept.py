"""What is kept for the reverse pass: a branch returns it, a loop pushes it onto a stack."""

from __future__ import annotations

from fwdad.ir.builder.shape_env import length_if_any, length_of
from fwdad.ir.ops import Apply, Branch, Load, Loop, Missing, Value
from fwdad.ir.primitives.stacks import pop, push, stack_type
from fwdad.ir.rewrite import blocks_of
from fwdad.ir.types import Type
from fwdad.transforms.reverse.region import Region
from fwdad.transforms.reverse.structure import may_be_missing
from fwdad.transforms.reverse.sweep import Sweep


class Kept:
    """Lets the forward pass keep values for the regions that need them."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.structure = sweep.structure
        self._lengths: dict[tuple[Value, int], Value] = {}

    def keep(self, v: Value, region: Region) -> Value:
        """Keep a value of the region's source block; return what replaces it in the region."""
        if isinstance(region.owner, Branch):
            return self._returned(v, region, region.owner)
        return self._pushed(v, region)

    def _returned(self, v: Value, region: Region, branch: Branch) -> Value:
        """Keep a value of a side of a branch, as an additional output of the branch."""
        output = Value(v.type, v.name)
        for side in (branch.then, branch.other):
            side.results.append(v if side is region.source else Missing(v.type))
        branch.outputs = (*branch.outputs, output)
        self.structure.define(output, branch)
        self.structure.memory[output] = self.structure.roots(v)
        return output

    def _pushed(self, v: Value, region: Region) -> Value:
        """Keep a value of a loop's body, on a stack."""
        stack = self.sweep.new_stack(stack_type(v.type), f"saved_{v.name}" if v.name else "saved")
        popped = Value(v.type, v.name)
        block = region.source
        definition = self.structure.definition.get(v)
        pushing = Apply(push, (stack, v), mutated=(0,))
        if self.structure.is_memory(v):
            if not self._ends_here(v, region):
                self.sweep.fail("an array that is written is another one in each iteration")
            block.ops.append(pushing)  # as the iteration leaves it: what is kept may be a copy
        elif self.sweep.setting.is_called:
            block.ops.append(pushing)  # the calls inside have put theirs on the stack
        elif definition is None:
            pushing.location = region.owner.location if region.owner is not None else None
            block.ops.insert(0, pushing)
        else:
            pushing.location = definition.location
            block.ops.insert(block.ops.index(definition) + 1, pushing)
        region.heads.append(Apply(pop, (stack,), mutated=(0,), outputs=(popped,)))
        return popped

    def _ends_here(self, v: Value, region: Region) -> bool:
        """Whether no later iteration writes into an array; in a program that is called all end."""
        loop = region.owner
        if isinstance(loop, Loop) and v in loop.carried:
            return loop.carried.index(v) in self.sweep.choices.threaded[loop]
        inside = {id(b) for b in blocks_of(region.source)}
        return all(id(self.structure.home[root]) in inside for root in self.structure.roots(v))

    def length(self, array: Value, axis: int, t: Type, region: Region) -> Value:
        """A length of an array of the region's source block, as a number that can be kept."""
        if (array, axis) not in self._lengths:
            structure = self.structure
            number = Value(t)
            definition = structure.definition.get(array)
            # what a branch or a loop returns may not be there
            plain = isinstance(definition, (Apply, Load))
            plain = plain and not may_be_missing(array, structure.definition)
            asked = Apply(length_of if plain else length_if_any, (array, axis), outputs=(number,))
            at, position = 0, -1
            if definition is not None:
                at = region.source.ops.index(definition) + 1
                position = structure.position[definition]
            structure.insert(region.source, at, [asked], position)
            self._lengths[array, axis] = number
        return self._lengths[array, axis]
