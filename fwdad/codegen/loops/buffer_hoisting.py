"""Hoisting of buffers: arrays local to a loop's iterations are allocated once, before it.

A new array costs a small program more than its arithmetic, and a large one fresh pages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fwdad.ir.analysis.alias import Roots, memory
from fwdad.ir.leaves import Leaves
from fwdad.ir.ops import Apply, Block, Call, Effect, Loop, Op, Operand, Program, Value, is_array
from fwdad.ir.primitives.opaque_call import Whole
from fwdad.ir.types import ArrayType, Dimension


@dataclass
class OpenLoop:
    """A loop that is being written.

    It begins before line ``start``, and runs ``body``. ``lengths`` has source for the lengths known
    there, ``help`` makes a run-time helper a global of the source, and ``made`` collects lines that
    allocate buffers.
    """

    start: int
    indent: int
    body: Block
    lengths: dict[Dimension, str]
    help: Callable[[str], str]
    made: list[str] = field(default_factory=list)

    def shape(self, value: Value) -> list[str] | None:
        """The lengths of an array as source, if they are known before the loop."""
        assert isinstance(value.type, ArrayType)
        lengths = [self.length(d) for d in value.type.shape]
        return [d for d in lengths if d is not None] if None not in lengths else None

    def length(self, d: Dimension) -> str | None:
        """A length as source, if it is known before the loop."""
        if isinstance(d, int):
            return str(d)
        of, by = d.shortened
        if d not in self.lengths and of in self.lengths:
            more = f"- {by}" if by > 0 else f"+ {-by}"
            return f"{self.help('larger')}({self.lengths[of]} {more}, 0)"
        return self.lengths.get(d)


def moving_lengths(program: Program) -> set[Dimension]:
    """The lengths that may differ between iterations of a loop: known inside one only."""
    lengths: set[Dimension] = set()
    for op in program.walk():
        if isinstance(op, Loop):
            for before, after in zip(op.carried, op.body.results, strict=False):
                if isinstance(before.type, ArrayType) and isinstance(after, Value):
                    pairs = zip(before.type.shape, after.type.shape, strict=True)
                    lengths.update(d for d, other in pairs if d != other)
    return lengths


def temporaries(program: Program, roots: Roots) -> set[Value]:
    """The arrays made inside loops of which nothing is left when an iteration ends."""
    values: set[Value] = set()
    _collect(program.block, None, roots, values)
    return values - memory([_may_be_kept(op) for op in program.walk()], roots)


def _may_be_kept(op: Op) -> list[Operand]:
    """What a function of the user's is given, which may keep it."""
    if isinstance(op, Call) and op.program.interpreted and any(map(_may_keep, op.program.walk())):
        return op.args
    return []


def _may_keep(op: Op) -> bool:
    """Whether an operation under NumPy runs code that may keep its arguments."""
    if not isinstance(op, Apply) or isinstance(op, Effect):
        return isinstance(op, Effect)
    function = op.function
    while isinstance(function, (Whole, Leaves)):
        function = function.function
    module = getattr(function, "__module__", None) or "builtins"
    return module.partition(".")[0] not in ("builtins", "math", "numpy", "operator", "scipy")


def _collect(block: Block, loop: Loop | None, roots: Roots, found: set[Value]) -> None:
    for op in block.ops:
        if loop is not None:
            left = memory([b.results for b in loop.blocks()], roots)
            found.update(v for v in op.outputs if is_array(v) and _is_new(op, v, roots) - left)
        for inner in op.blocks():
            _collect(inner, op if isinstance(op, Loop) else loop, roots, found)


def _is_new(op: Op, v: Value, roots: Roots) -> set[Value]:
    """A set of the array itself if it owns its memory, else an empty set."""
    return {v} if not op.blocks() and roots.get(v, {v}) == {v} else set()
