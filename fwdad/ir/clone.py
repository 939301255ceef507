"""Cloning of programs and blocks, with new values."""

from __future__ import annotations

from fwdad.ir.ops import Block, Effect, Loop, Op, Operand, Program, Value, map_values


def copied(program: Program) -> Program:
    """A copy of a program that can be changed; the programs that it calls are shared."""
    fields = {k: v for k, v in vars(program).items() if k not in ("name", "block")}
    cloner = Cloner({})
    clone = Program(program.name, cloner.block(program.block))
    vars(clone).update(fields)
    clone.absent = {v for v in map(cloner.operand, program.absent) if isinstance(v, Value)}
    return clone


class Cloner:
    """Clones blocks; a value from outside is itself, unless ``mapping`` replaces it.

    ``again``: the copy runs a second time what has already run, so that output effects are left
    out.
    """

    def __init__(self, mapping: dict[Value, Operand], *, again: bool = False) -> None:
        self.mapping = mapping
        self.again = again
        self.origin: dict[Op, Op] = {}  # of the new operations

    def operand(self, operand: Operand) -> Operand:
        """An operand of the clone."""
        return map_values(lambda v: self.mapping.get(v, v), operand)

    def fresh(self, value: Value) -> Value:
        """The clone's value for one that is defined in the original."""
        clone = Value(value.type, value.name)
        self.mapping[value] = clone
        return clone

    def block(self, block: Block) -> Block:
        """A block with its parameters and operations."""
        clone = Block(params=[self.fresh(p) for p in block.params])
        clone.ops = self.ops(block.ops)
        clone.results = [self.operand(r) for r in block.results]
        return clone

    def ops(self, ops: list[Op]) -> list[Op]:
        """Operations in their order."""
        return [self.op(op) for op in ops if not (self.again and isinstance(op, Effect))]

    def op(self, op: Op) -> Op:
        """One operation with the blocks inside it."""
        fields = {k: v for k, v in vars(op).items() if k not in ("outputs", "location")}
        if isinstance(op, Loop):
            # the condition sees the parameters of the body
            params = [self.fresh(p) for p in op.body.params]
            test = None if op.test is None else self.block(op.test)
            body = Block(params, self.ops(op.body.ops))
            body.results = [self.operand(r) for r in op.body.results]
            fields.update(body=body, test=test, exec_count=self.fresh(op.exec_count))
        else:
            fields.update({k: self.block(b) for k, b in fields.items() if isinstance(b, Block)})
        clone = type(op)(**fields, location=op.location)
        clone.replace(lambda v: self.mapping.get(v, v))
        clone.outputs = tuple(self.fresh(v) for v in op.outputs)
        self.origin[clone] = op
        return clone
