"""What is taken for granted of the example that is traced, and guarded by the tape."""

from __future__ import annotations

from typing import Any, Protocol

from fwdad.errors import UntraceableError
from fwdad.ir.builder.array_contents import Contents, may_be_option
from fwdad.ir.builder.definitions import Definitions
from fwdad.ir.builder.shape_env import KnownLengths, length_of
from fwdad.ir.ops import Apply, Block, Load, Value, is_array, map_values, values_in, walk
from fwdad.ir.symbol import UNBOUND


class Blocks(Protocol):
    """What knows the blocks that are open, the innermost last."""

    blocks: list[Block]


class Examples:
    """The example's values, where the program depends on them.

    Attributes
    ----------
    of : dict
        A value of ints, or a number: (input, example); no input for an array that is a constant.
    value_guards : dict
        Inputs whose values are taken for granted.
    assumed : set of Value
        Arrays whose contents are taken for granted.
    """

    def __init__(self, blocks: Blocks, definitions: Definitions, lengths: KnownLengths) -> None:
        self._blocks = blocks
        self._definitions = definitions
        self._lengths = lengths
        self.of: dict[Value, tuple[int | None, Any]] = {}
        self.value_guards: dict[int, Any] = {}
        self.assumed: set[Value] = set()

    def forced(self, value: Value, *, of_any_size: bool = False) -> Any:
        """The value in the example, kept as a guard; UNBOUND unless it is known from inputs.

        An array qualifies if it is a few integers, or ``of_any_size``, that nothing has written;
        nothing may write it from then on.
        """
        if is_array(value) and self._definitions.may_be_written(value, self._blocks.blocks):
            return UNBOUND
        if value in self.of and is_array(value):
            if not (of_any_size or may_be_option(self.of[value][1])):
                return UNBOUND
        if is_array(value):
            self.assumed.add(value)
        if value in self.of:
            self.assume(value)
            return self.of[value][1]
        op = self._definitions.made_by(value)
        if isinstance(op, Load):
            return self._forced_part(op)
        if not isinstance(op, Apply) or op.mutated:
            return UNBOUND
        if op.function is length_of:
            try:
                return self._lengths.known_length(op.args[0], op.args[1])
            except UntraceableError:
                return UNBOUND
        if op.kwargs:
            return UNBOUND
        known = {}
        for v in values_in(op.args):  # of lists and tuples, too
            known[v] = self.forced(v)
            if known[v] is UNBOUND:
                return UNBOUND
        result = op.function(*map_values(known.__getitem__, op.args))
        return result if len(op.outputs) == 1 else result[op.outputs.index(value)]

    def assume(self, value: Value) -> None:
        """Let the tape hold only as long as an input is what it is in the example."""
        k, example = self.of[value]
        if k is not None:
            self.value_guards[k] = Contents(example) if is_array(value) else example

    def _forced_part(self, op: Load) -> Any:
        """The elements that a load with a known index reads, in the example."""
        array = self.forced(op.array)
        if array is UNBOUND:
            return UNBOUND
        known = {v: self.forced(v) for v in values_in(op.index)}
        if any(x is UNBOUND for x in known.values()):
            return UNBOUND
        return array[map_values(known.__getitem__, op.index)]

    def check_unwritten(self, block: Block) -> None:
        """Raise if an array is written whose contents are taken for granted."""
        for op in walk(block) if self.assumed else ():
            owners = (self._definitions.owners(v) for v in op.writes())
            if any(not self.assumed.isdisjoint(found) for found in owners):
                message = (
                    "an array is written whose contents serve as a shape or as axes elsewhere: "
                    "use a separate array for those"
                )
                raise UntraceableError(message, op.location)
