"""The structure of a program before it is reversed: definitions, memory, and activity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fwdad.errors import UntraceableError
from fwdad.ir.analysis.alias import Roots, memory_of, with_companions
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Loop,
    Missing,
    Op,
    Operand,
    Program,
    Value,
    is_array,
    walk,
)
from fwdad.ir.primitives.stacks import pop, top
from fwdad.ir.primitives.undef import missing_on_some_way
from fwdad.ir.rewrite import defined_by
from fwdad.transforms.activity import Activity
from fwdad.transforms.integer_derivatives import check_derivatives_fit


class NotReversibleError(UntraceableError):
    """A program on a tape that reverse mode cannot follow, so that its run is recorded instead."""


class Structure:
    """Where the values of a block are defined, which memory they are, and which are active.

    ``wrt`` are the parameters that carry derivatives; ``roots`` is the memory of parameters that
    may alias; ``natural`` are numbers from outside that are not negative.

    Attributes
    ----------
    program : frozenset of Op
        The operations of the block, without those that keep residuals, which are added later.
    """

    def __init__(
        self,
        top: Block,
        wrt: Iterable[Value],
        roots: Roots | None = None,
        natural: Iterable[Value] = (),
    ) -> None:
        self.top = top
        self.natural = set(natural)
        self.memory = memory_of(Program("", top), roots)
        self.home: dict[Value, Block] = {}
        self.definition: dict[Value, Op] = {}
        self.position: dict[Op, int] = {}
        self.block_of: dict[Op, Block] = {}
        self.holder: dict[int, Op] = {}  # by the id of a block: the operation that it is in
        self.written: set[Value] = set()
        self._loops_around: dict[int, list[Loop]] = {}
        self.missing = missing_on_some_way(Program("", top))
        self._enter(top)
        self.program = frozenset(self.position)
        self._in_place = with_companions(self.written, self.memory)
        self.activity = Activity(top, wrt, self.memory)
        for op in walk(top):
            check_derivatives_fit(op, self.activity.is_active)

    # -- places

    def _enter(self, block: Block) -> None:
        for p in block.params:
            self.home[p] = block
        for k, op in enumerate(block.ops):
            self.position[op] = k
            self.block_of[op] = block
            for v in defined_by(op):
                self.home[v] = block
                self.definition[v] = op
            for v in op.writes():
                self.written |= self.roots(v)
            for inner in op.blocks():
                self.holder[id(inner)] = op
                self._enter(inner)

    def define(self, v: Value, op: Op) -> None:
        """Enter a value that has been added to the outputs of an operation."""
        self.home[v] = self.block_of[op]
        self.definition[v] = op

    def insert(self, block: Block, at: int, ops: list[Op], position: int) -> None:
        """Insert operations into a block; they are reversed with what is at a position."""
        block.ops[at:at] = ops
        for op in ops:
            self.block_of[op] = block
            self.position[op] = position
            for v in defined_by(op):
                self.define(v, op)

    def chain(self, block: Block) -> Iterator[tuple[Block, Op | None]]:
        """A block and those around it, each with the operation that it is in."""
        while True:
            holder = self.holder.get(id(block))
            yield block, holder
            if holder is None:
                return
            block = self.block_of[holder]

    def loops_around(self, block: Block) -> list[Loop]:
        """The loops that a block is in, outermost first."""
        loops = self._loops_around.get(id(block))
        if loops is None:
            loops = [h for _, h in self.chain(block) if isinstance(h, Loop)][::-1]
            self._loops_around[id(block)] = loops
        return loops

    def roots(self, v: Value) -> set[Value]:
        """The memory that an array may be."""
        return self.memory.get(v, {v}) if is_array(v) else set()

    def is_memory(self, v: Value) -> bool:
        """Whether the program writes an array, or the reverse pass writes its cotangent in place.

        The latter if a phi may be this array or one that is written: the cotangent of the phi is
        memory, whichever array it is.
        """
        return bool(self.roots(v) & self._in_place)

    def writes_inside(self, op: Op) -> bool:
        """Whether a branch or loop stores into memory, so that its stores must be reversed."""
        inside = (inner for block in op.blocks() for inner in walk(block))
        return any(self.roots(v) & self.written for inner in inside for v in inner.writes())


def may_be_missing(v: Operand, definition: Mapping[Value, Op]) -> bool:
    """Whether a side of a branch, or a loop that does not run, leaves a value undefined."""
    op = definition.get(v) if isinstance(v, Value) else None
    if isinstance(op, Apply) and op.function in (pop, top):
        # what is on a given stack is unknown; what a path leaves undefined is pushed as nothing
        return is_array(v) or op.args[0] not in definition
    if not isinstance(op, (Branch, Loop)) or v not in op.outputs:
        return isinstance(v, Missing)
    ways = [op.then.results, op.other.results] if isinstance(op, Branch) else [op.initial]
    if isinstance(op, Loop):
        ways.append(op.body.results)
    k = op.outputs.index(v)
    return any(may_be_missing(way[k], definition) for way in ways)
