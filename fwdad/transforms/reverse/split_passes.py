"""The split of a program into forward and reverse pass: one keeps what the other one uses.

Both are traced and optimised as one program, and cut where the reverse pass begins. What the
reverse pass uses of the forward pass is kept: numbers, arrays, stacks. A view of an array is
taken again; other arrays that may alias, where their memory is written, are declared to do so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fwdad.ir.analysis.alias import Roots, memory, memory_of, written_parameters
from fwdad.ir.ops import (
    Apply,
    Block,
    Call,
    Load,
    Op,
    Operand,
    Program,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.ir.primitives.stacks import bar_of, new_stack, pop, push, thin, top, turn
from fwdad.ir.rewrite import all_used, defined_by, definitions
from fwdad.ir.types import ArrayType, Type
from fwdad.transforms.reverse.structure import may_be_missing


class Cut(NamedTuple):
    """What is known of a program that consists of a forward and a reverse pass.

    ``bars`` are the types of its cotangents, ``cotangents`` counts the results of the reverse pass,
    which come last.
    """

    bars: list[Type]
    cotangents: int


class Stacked(NamedTuple):
    """How the reverse pass uses a stack.

    ``rank`` is that of the arrays on it, 0 for numbers; ``deep``: it writes into these arrays;
    ``grows``: it pushes more.
    """

    rank: int
    deep: bool
    grows: bool


class SplitPasses(NamedTuple):
    """The forward and the reverse pass of a program.

    Attributes
    ----------
    forward : Program
        Takes the parameters of the whole; returns the value, then what is kept.
    reverse : Program
        Takes what is kept, then the cotangents.
    values : int
        How many results of ``forward`` are the value's.
    read : list of int
        The parameters of the whole that the reverse pass may read, and must not change.
    shared : list of int
        The results of ``forward`` that may alias what is kept.
    apart : list of int
        The results that ``forward`` copies, because the reverse pass changes the originals.
    hollow : list of int
        What is kept only for its shape.
    written : list of int
        The kept arrays that the reverse pass writes into.
    stacks : dict of int to Stacked
        The stacks among what is kept, by position.
    """

    forward: Program
    reverse: Program
    values: int
    read: list[int]
    shared: list[int]
    apart: list[int]
    hollow: list[int]
    written: list[int]
    stacks: dict[int, Stacked]


def cut(program: Program, known: Cut) -> SplitPasses:
    """Cut a program where its reverse pass begins, at the mark that tracing has left there."""
    block = program.block
    bars = [Value(t, "y_bar") for t in known.bars]
    ops: list[Op] = []
    for op in block.ops:
        if isinstance(op, Apply) and op.function is bar_of:
            bars[int(op.args[0])] = op.outputs[0]
        else:
            ops.append(op)
    turns = (k for k, op in enumerate(ops) if isinstance(op, Apply) and op.function is turn)
    at = next(turns, len(ops))  # a program that always raises has no reverse pass
    front, back = _begun_late(ops[:at], ops[at + 1 :])
    values = len(block.results) - known.cotangents
    results, cotangents = block.results[:values], block.results[values:]
    kept, again = _residuals(front, block.params, back, cotangents)
    roots = memory_of(program)
    back = [*again, *back]
    written = _written(back, roots)
    hollow = [k for k, v in enumerate(kept) if is_array(v) and _is_hollow(v, back, cotangents)]
    stacks = {op.outputs[0] for op in front if isinstance(op, Apply) and op.function is new_stack}
    arrays = [k for k, v in enumerate(kept) if is_array(v) and v not in stacks and k not in hollow]
    lasting = memory([kept[k] for k in arrays], roots)
    lasting |= memory([op.args[1] for op in _calls(front, push)], roots)
    together = _together(kept, arrays, roots, written)
    reverse_pass = _program(program, "reverse", [*kept, *bars], back, cotangents, together)
    made_by = definitions(program)
    reverse_pass.absent = {v for v in kept if may_be_missing(v, made_by)}
    return SplitPasses(
        _program(program, "forward", list(block.params), front, [*results, *kept]),
        reverse_pass,
        values,
        [k for k, p in enumerate(block.params) if p in lasting],
        [k for k, r in enumerate(results) if memory(r, roots) & lasting],
        _apart(results, front, roots, written),
        hollow,
        [k for k in arrays if reverse_pass.written[k]],
        {k: _use_of(v, back, roots, written) for k, v in enumerate(kept) if v in stacks},
    )


def _begun_late(front: list[Op], back: list[Op]) -> tuple[list[Op], list[Op]]:
    """Move stacks that the forward pass leaves empty to the reverse pass."""
    used = {v for op in front for v in all_used(op)}
    late = [
        op for op in front
        if isinstance(op, Apply) and op.function is new_stack and used.isdisjoint(op.outputs)
    ]  # fmt: skip
    return [op for op in front if op not in late], [*late, *back]


def _program(
    whole: Program, word: str, params: list[Value], ops: list[Op], results: list[Operand],
    together: Sequence[int] = (),
) -> Program:  # fmt: skip
    program = Program(f"{whole.name}_{word}", Block(params, ops, list(results)), whole.filename)
    program.together = list(together)
    program.quiet, program.parallel = whole.quiet, whole.parallel
    stacks = {op.args[0] for op in _calls(ops, pop, top)}  # compiled code has its own kind
    program.written = [
        w or p in stacks for w, p in zip(written_parameters(program), params, strict=True)
    ]  # fmt: skip
    return program


def _residuals(
    front: list[Op], params: list[Value], back: list[Op], cotangents: list[Operand]
) -> tuple[list[Value], list[Op]]:
    """What the reverse pass uses of the forward pass, and the views that it takes again."""
    definitions: dict[Value, Op | None] = dict.fromkeys(params)
    definitions.update((v, op) for op in front for v in defined_by(op))
    order = {v: k for k, v in enumerate(definitions)}
    wanted = {v for op in back for v in all_used(op)} | set(values_in(cotangents))
    kept: set[Value] = set()
    again: dict[Op, None] = {}
    waiting = sorted(wanted & order.keys(), key=order.__getitem__)
    while waiting:
        v = waiting.pop()
        op = definitions[v]
        if isinstance(op, Load) and op.view:
            again[op] = None
            waiting.extend(u for u in values_in(op.operands()) if u not in kept)
        else:
            kept.add(v)
    in_order = [op for op in front if op in again]
    return sorted(kept, key=order.__getitem__), in_order


def _apart(results: list[Operand], front: list[Op], roots: Roots, written: set[Value]) -> list[int]:
    """The results that are copies, made by a transform, of memory that the reverse pass writes."""
    copies = {
        op.outputs[0] for op in front
        if isinstance(op, Apply) and op.function is np.ndarray.copy and op.location is None
        and memory(op.args, roots) & written
    }  # fmt: skip
    return [k for k, r in enumerate(results) if isinstance(r, Value) and r in copies]


def _written(ops: list[Op], roots: Roots) -> set[Value]:
    return {
        root
        for op in walk(Block(ops=ops))
        for v in op.writes()
        for root in roots.get(v, {v})
    }  # fmt: skip


def _together(kept: list[Value], arrays: list[int], roots: Roots, written: set[Value]) -> list[int]:
    """For each value, the first one that it may alias; empty if no written memory is shared."""
    groups = list(range(len(kept)))
    owners: dict[Value, int] = {}
    for k in arrays:
        for root in roots.get(kept[k], {kept[k]}):
            pair = groups[owners.setdefault(root, k)], groups[k]
            groups = [min(pair) if f in pair else f for f in groups]
    changed = {groups[k] for k in arrays if roots.get(kept[k], {kept[k]}) & written}
    groups = [f if f in changed else k for k, f in enumerate(groups)]
    return [] if groups == list(range(len(kept))) else groups


def _is_hollow(v: Value, back: list[Op], cotangents: list[Operand]) -> bool:
    """Whether only the shape of an array is used."""
    if v in values_in(cotangents):
        return False
    for op in walk(Block(ops=back)):
        if v in values_in([op.operands(), [b.results for b in op.blocks()]]):
            if not isinstance(op, Apply) or v in values_in(op.operands_read()):
                return False
    return is_array(v)


def _calls(ops: list[Op], *functions: object) -> list[Apply]:
    walked = walk(Block(ops=ops))
    return [op for op in walked if isinstance(op, Apply) and op.function in functions]


def _use_of(stack: Value, back: list[Op], roots: Roots, written: set[Value]) -> Stacked:
    """How the reverse pass uses a stack; what is passed to another program may be written."""
    taken, arrays, handed = _taken(stack, back), {stack}, False
    for op in walk(Block(ops=back)):
        if isinstance(op, Call) and stack in op.args:
            handed = True
            for a, p in zip(op.args, op.program.block.params, strict=True):
                if a is stack and p not in arrays:
                    taken += _taken_inside(p, op.program, arrays)
    return Stacked(
        max((v.type.ndim for v in taken if isinstance(v.type, ArrayType)), default=0),
        handed or any(roots.get(v, set()) & written for v in taken),
        handed or any(op.args[0] is stack for op in _calls(back, push, thin)),
    )


def _taken(stack: Value, ops: list[Op]) -> list[Value]:
    return [op.outputs[0] for op in _calls(ops, pop, top) if op.args[0] is stack]


def _taken_inside(stack: Value, program: Program, found: set[Value]) -> list[Value]:
    """What a called program, and those that it calls, pop from a stack."""
    found.add(stack)
    taken = _taken(stack, program.block.ops)
    for op in program.walk():
        if isinstance(op, Call) and stack in op.args:
            for a, p in zip(op.args, op.program.block.params, strict=True):
                if a is stack and p not in found:
                    taken += _taken_inside(p, op.program, found)
    return taken
