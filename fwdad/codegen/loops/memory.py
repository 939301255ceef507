"""What a program's operations do to memory, as far as its source depends on it."""

from __future__ import annotations

from fwdad.ir.analysis.alias import may_overlap, memory_of
from fwdad.ir.analysis.indices import Places, is_view_apart
from fwdad.ir.analysis.layout import Order, Orders
from fwdad.ir.lines import Lines
from fwdad.ir.ops import Apply, Block, Op, Operand, Program, Value, walk
from fwdad.ir.primitives.stacks import pop, top


class Memory:
    """Which arrays may share memory, and which are written.

    ``of`` maps an array to those whose memory it may use, ``known`` tells where values are defined;
    ``popped`` come from stacks.
    """

    def __init__(self, program: Program, code: Lines) -> None:
        self.program = program
        self.code = code
        self.of = memory_of(program)
        self.known = Places(program)
        self.params = set(program.block.params)
        self.popped = {
            v
            for op in program.walk()
            if isinstance(op, Apply) and op.function in (pop, top)
            for v in op.outputs
        }
        self._positions: dict[Op | None, int] = {op: k for k, op in enumerate(program.block.ops)}
        self._written: dict[Value, int] = {}  # where in the program memory is last written
        self._given = -1  # where memory of an argument is
        for k, op in enumerate(program.block.ops):
            written = {r for o in walk(Block([], [op])) for v in o.writes() for r in self.roots(v)}
            self._written.update(dict.fromkeys(written, k))
            if written & self.params:
                self._given = k
        self._orders = Orders(program)

    def roots(self, value: Value) -> set[Value]:
        """The arrays whose memory an array may use."""
        return self.of.get(value, {value})

    def is_c_contiguous(self, value: Value) -> bool:
        """Whether an array is known to be C-contiguous."""
        return self._orders.of(value) is Order.ROWS

    def may_overlap(self, a: Value, b: Value) -> bool:
        """Whether two arrays may share memory; any two arguments may."""
        return may_overlap(a, b, self.of, self.params)

    def may_change(self, array: Value, at: tuple[Operand, ...], read: Value) -> bool:
        """Whether a store to ``array[at]`` may change an element of another array."""
        overlaps = self.may_overlap(array, read)
        return overlaps and not is_view_apart(read, array, at, self.known)

    def is_written(self, value: Value, after: int = -1) -> bool:
        """Whether anything is written into an array's memory, after a position in the program."""
        roots = self.roots(value)
        given = self._given if roots & self.params else -1
        return max([given, *(self._written.get(r, -1) for r in roots)]) > after

    def is_written_later(self, value: Value) -> bool:
        """Whether anything may be written into an array's memory after the current operation."""
        return self.is_written(value, self._positions.get(self.code.op, -1))
