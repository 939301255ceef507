"""What a program's operations do to memory, as far as its source depends on it."""

from __future__ import annotations

from typing import NamedTuple

from fwdad.ir.analysis.alias import alone_by_checks, may_overlap, memory_of
from fwdad.ir.analysis.indices import Places, is_view_apart
from fwdad.ir.analysis.layout import Order, Orders
from fwdad.ir.lines import Lines
from fwdad.ir.ops import Apply, Block, Op, Operand, Program, Value, values_in, walk
from fwdad.ir.primitives.stacks import pop, top
from fwdad.ir.rewrite import blocks_of


class _Writes(NamedTuple):
    """What the operations of a block write, by their positions in it.

    ``last`` tells where memory is last written; ``own`` are the values that they define and that
    do not escape the block.
    """

    positions: dict[Op, int]
    last: dict[Value, int]
    own: set[Value]


class Memory:
    """Which arrays may share memory, and which are written.

    ``of`` maps an array to those whose memory it may use, ``known`` tells where values are defined;
    ``popped`` come from stacks, and ``meeting`` are the parameters but those for results alone.
    """

    def __init__(self, program: Program, code: Lines) -> None:
        self.program = program
        self.code = code
        self.of = memory_of(program)
        self.known = Places(program)
        self.params = set(program.block.params)
        self.meeting = self.params - alone_by_checks(program)  # any two of them may overlap
        self.popped = {
            v
            for op in program.walk()
            if isinstance(op, Apply) and op.function in (pop, top)
            for v in op.outputs
        }
        self._blocks = {op: block for block in blocks_of(program.block) for op in block.ops}
        self._writes: dict[int, _Writes] = {}  # by the ids of blocks
        self._orders = Orders(program)

    def roots(self, value: Value) -> set[Value]:
        """The arrays whose memory an array may use."""
        return self.of.get(value, {value})

    def is_c_contiguous(self, value: Value) -> bool:
        """Whether an array is known to be C-contiguous."""
        return self._orders.of(value) is Order.ROWS

    def may_overlap(self, a: Value, b: Value) -> bool:
        """Whether two arrays may share memory; any two arguments may."""
        return may_overlap(a, b, self.of, self.meeting)

    def may_change(self, array: Value, at: tuple[Operand, ...], read: Value) -> bool:
        """Whether a store to ``array[at]`` may change an element of another array."""
        overlaps = self.may_overlap(array, read)
        return overlaps and not is_view_apart(read, array, at, self.known)

    def is_written(self, value: Value) -> bool:
        """Whether anything is ever written into the memory of an array."""
        return self._is_written_in(self.program.block, value, -1)

    def is_written_later(self, value: Value) -> bool:
        """Whether anything may be written into an array's memory after the current operation.

        Another iteration of a loop writes into other arrays, if they are new in each.
        """
        op = self.code.op
        block = None if op is None else self._blocks.get(op)
        if op is None or block is None:
            return self.is_written(value)
        writes = self._writes_of(block)
        if block is self.program.block or self.roots(value) <= writes.own:
            return self._is_written_in(block, value, writes.positions[op])
        return self.is_written(value)

    def _is_written_in(self, block: Block, value: Value, after: int) -> bool:
        last = self._writes_of(block).last
        roots = self.roots(value)
        if roots & self.meeting:
            roots = roots | self.meeting  # any two arguments may overlap
        return any(last.get(r, -1) > after for r in roots)

    def _writes_of(self, block: Block) -> _Writes:
        if id(block) not in self._writes:
            last: dict[Value, int] = {}
            own: set[Value] = set()
            for k, op in enumerate(block.ops):
                for o in walk(Block([], [op])):
                    own.update(o.outputs)
                    last.update((r, k) for v in o.writes() for r in self.roots(v))
            own -= {r for v in values_in(list(block.results)) for r in self.roots(v)}
            positions = {op: k for k, op in enumerate(block.ops)}
            self._writes[id(block)] = _Writes(positions, last, own)
        return self._writes[id(block)]
