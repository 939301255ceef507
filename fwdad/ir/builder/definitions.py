"""Which operation defines each value, and which arrays may share memory."""

from __future__ import annotations

from collections.abc import Container

from fwdad.ir.analysis.alias import aliased_arguments, returns_read_only
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Load,
    Loop,
    Op,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.ops import Memory, record_of


class Definitions:
    """The operations that define the values of a tape.

    ``carried`` are arrays that loops carry: in another iteration, other arrays.
    """

    def __init__(self) -> None:
        self.carried: set[Value] = set()
        self._made_by: dict[Value, Op] = {}

    def note(self, op: Op) -> None:
        """Note an operation that has been written."""
        for value in op.outputs:
            self._made_by[value] = op

    def made_by(self, value: Value) -> Op | None:
        """The operation that defines a value; None for an input."""
        return self._made_by.get(value)

    def in_order(self, ops: Container[Op]) -> list[Op]:
        """These operations, in the order in which they were written."""
        return [op for op in dict.fromkeys(self._made_by.values()) if op in ops]

    def is_merged(self, value: Value) -> bool:
        """Whether a value is the result of a branch or a loop."""
        return isinstance(self._made_by.get(value), (Branch, Loop))

    def is_view(self, value: Value, arrays: set[Value]) -> bool:
        """Whether an array is certainly one of ``arrays``, or a view of one."""
        while value not in arrays:
            op = self._made_by.get(value)
            if not isinstance(op, Load) or not op.view or type(op.array) is not Value:
                return False
            value = op.array
        return True

    def is_read_only(self, value: Value) -> bool:
        """Whether an array is certainly one that NumPy makes read-only, or a view of one."""
        while True:
            op = self._made_by.get(value)
            if isinstance(op, Apply):
                if returns_read_only(op):
                    return True
                given = [v for v in values_in(aliased_arguments(op)) if is_array(v)]
                if record_of(op.function).memory is not Memory.VIEW or len(given) != 1:
                    return False
                (value,) = given
            elif isinstance(op, Load) and op.view and type(op.array) is Value:
                value = op.array
            else:
                return False

    def owners(self, value: Value) -> set[Value]:
        """The arrays that a value may alias, including itself, as far as is known."""
        values: set[Value] = set()
        waiting = [value]
        while waiting:
            v = waiting.pop()
            if v in values or not is_array(v):
                continue
            values.add(v)
            op = self._made_by.get(v)
            if isinstance(op, Load) and op.view:
                waiting.append(op.array)
            elif isinstance(op, Apply):
                waiting.extend(values_in(aliased_arguments(op)))
            elif isinstance(op, (Branch, Loop)):
                given = [b.results for b in op.blocks()]
                waiting.extend(values_in([given, op.operands()]))
            elif isinstance(op, Call):
                waiting.extend(values_in(op.args))
        return values

    def may_share(self, a: Value, b: Value, block: Block) -> bool:
        """Whether two arrays may share memory, in the open block."""
        one, other = self.owners(a), self.owners(b)
        if not one.isdisjoint(other):
            return True
        here = {v for op in block.ops for v in op.outputs}
        pairs = ((one, other), (other, one))
        return any(not p.isdisjoint(self.carried) and not q <= here for p, q in pairs)

    def may_be_written(self, value: Value, blocks: list[Block]) -> bool:
        """Whether an operation in these blocks may write into an array."""
        ops = (op for block in blocks for op in walk(block))
        return value in self.carried or any(
            value in self.owners(v) or v in self.carried for op in ops for v in op.writes()
        )
