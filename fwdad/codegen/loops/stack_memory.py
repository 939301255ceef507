"""The stacks of a program in the Numba source: which share memory, and how they are named.

What an iteration pushes onto stacks that share memory is a frame.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from fwdad.codegen.passes.registers import MAX_LANES
from fwdad.ir.ops import (
    Apply,
    Block,
    Call,
    Loop,
    Op,
    Operand,
    Program,
    Value,
    type_of_operand,
    values_in,
)
from fwdad.ir.primitives.stacks import new_stack, pop, push, thin, top
from fwdad.ir.types import ArrayType, Size, Type
from fwdad.transforms.passes import called_from


class Held:
    """The memory of one stack of the tape, or of several that are pushed and popped together.

    ``stacks`` are in the order in which what an iteration pushes is stored, its frame. ``begins``
    and ``ends`` are the first and last pushes of an iteration, ``lowers`` its first pop. Arrays
    whose ``lengths`` are known before they are pushed begin at ``offsets``; the last one is where
    the frame ends; it ``is_open`` from where there is room for it to the last push.
    """

    def __init__(self, t: Type) -> None:
        self.type = t
        self.stacks: list[Value] = []
        self.lengths: dict[Value, list[str]] = {}
        self.offsets: list[str] = []
        self.is_open = False
        self.begins: set[Op] = set()
        self.ends: set[Op] = set()
        self.lowers: set[Op] = set()
        self.name = self.top = self.shapes = ""
        self.unknown: list[int] = []  # the axes whose lengths are on the stack of shapes
        self.mixed: set[int] = set()  # those whose lengths may differ between pushes

    @property
    def each(self) -> int:
        """How many elements a push adds; 0 if that varies."""
        shape = self.type.shape if isinstance(self.type, ArrayType) else ()
        known = [d for d in shape if isinstance(d, int)]
        varies = self.unknown or len(known) < len(shape) or (shape and len(self.stacks) > 1)
        return 0 if varies else math.prod(known)

    @property
    def few(self) -> bool:
        """Whether a push adds as many elements each time, and few: a number, or its lanes.

        A loop reserves room for all its pushes of these; of more it might be too much.
        """
        return 0 < self.each <= MAX_LANES

    def place(self, stack: Value) -> str:
        """Where the next number of a stack is stored."""
        k = self.stacks.index(stack)
        return f"{self.name}[{self.above(k)}]"

    def above(self, k: int) -> str:
        """Where the k-th of what is pushed next, or was popped last, begins."""
        if not k:
            return self.top
        return f"{self.top} + {self.offsets[k] if self.offsets else k}"

    @property
    def rank(self) -> int:
        """How many axes the arrays have that are pushed."""
        return self.type.ndim if isinstance(self.type, ArrayType) else 0

    @property
    def frame(self) -> str:
        """How many elements an iteration pushes, as source; unknown if it is empty."""
        if self.offsets:
            return self.offsets[-1]
        return "" if isinstance(self.type, ArrayType) else str(len(self.stacks))


class Stacks:
    """The stacks of a program.

    ``held`` maps each to its memory, ``roomy`` holds the pushes that need no check of the capacity,
    and ``handed`` are the stacks that callees are given. ``loops`` maps loops to the stacks of
    arrays that nothing else pushes onto, which have memory when these begin; ``pairs`` maps stacks
    to their push and their pop if each has one, with the blocks of these.
    """

    def __init__(self, program: Program, missing: set[Value]) -> None:
        self.held: dict[Value, Held] = {}
        self.roomy: set[Op] = set()
        self.pairs: dict[Value, tuple[tuple[Apply, Block], tuple[Apply, Block]]] = {}
        self.loops: dict[Loop, list[Value]] = {}
        self.late: set[Value] = set()
        pushes: dict[Value, list[tuple[Apply, Block]]] = {}
        pops: dict[Value, list[tuple[Apply, Block]]] = {}
        handed = self.handed = handed_on(program)
        here = {op.args[0] for op, _ in _stacking(program.block)} | handed.keys()
        self.given = [p for p in program.block.params if p in here]
        alone = {*self.given, *values_in(program.block.results)}  # or accessed in other ways
        alone |= handed.keys()
        looks: dict[Value, Apply] = {}
        for op, block in _stacking(program.block):
            if op.function in (top, thin):
                alone.add(op.args[0])
                if op.function is top:
                    looks[op.args[0]] = op
                continue
            (pushes if op.function is push else pops).setdefault(op.args[0], []).append((op, block))
        together: dict[Any, Held] = {}
        for stack, given in pushes.items():
            t, taken = type_of_operand(given[0][0].args[1]), pops.get(stack, [])
            once = len(given) == len(taken) == 1 and stack not in alone
            if once:
                self.pairs[stack] = given[0], taken[0]
            numbers = once and not isinstance(t, ArrayType)
            key = (id(given[0][1]), id(taken[0][1]), t.dtype) if numbers else stack
            held = together.setdefault(key, Held(t))
            if isinstance(t, ArrayType):
                given_types = [type_of_operand(op.args[1]) for op, _ in given]
                anything = stack in alone or stack in missing
                held.mixed = {
                    axis for axis, d in enumerate(t.shape)
                    if anything or any(each.shape[axis] != d for each in given_types)
                }  # fmt: skip
                held.unknown = [
                    k for k, d in enumerate(t.shape) if k in held.mixed or isinstance(d, Size)
                ]
            first = not held.stacks
            held.stacks.append(stack)
            self.held[stack] = held
            ops: set[Op] = {op for op, _ in given}
            held.ends = ops
            if first:
                held.begins = ops
        for stack in dict.fromkeys((*self.given, *handed)):
            if stack not in self.held:
                use = pops[stack][0][0] if stack in pops else looks.get(stack)
                t = handed[stack] if use is None else use.outputs[0].type
                held = self.held[stack] = Held(t)
                held.stacks.append(stack)
                if isinstance(held.type, ArrayType):
                    held.unknown = list(range(held.type.ndim))
        for stack, taken in pops.items():  # in the order of the program
            popped = self.held.get(stack)
            if popped is not None and not popped.lowers:
                popped.lowers = {op for op, _ in taken}
        self._find_loops(program.block, {s: len(given) for s, given in pushes.items()
                                         if s not in alone and self.held[s].rank})  # fmt: skip

    def _find_loops(self, block: Block, pushes: dict[Value, int]) -> None:
        """Find, for each stack of arrays, the loop beside it that does all of its pushes."""
        made: set[Value] = set()
        for op in block.ops:
            if isinstance(op, Apply) and op.function is new_stack:
                made |= pushes.keys() & op.outputs
            elif isinstance(op, Loop) and made:
                inside = Counter(o.args[0] for o, _ in _stacking(op.body) if o.function is push)
                found = [s for s, n in inside.items() if s in made and n == pushes[s]]
                if found:
                    self.loops[op] = found
                    self.late.update(found)
            for inner in op.blocks() if op.nests else ():
                self._find_loops(inner, pushes)

    def join(self, stacks: Sequence[Value]) -> Held:
        """Let stacks share memory: what is pushed onto them is popped together."""
        first, *others = (self.held[stack] for stack in stacks)
        for other in others:
            first.stacks += other.stacks
            first.lengths |= other.lengths
            first.ends = other.ends
            self.held.update(dict.fromkeys(other.stacks, first))
        pops = {self.pairs[stack][1][0] for stack in stacks}
        first.lowers = {next(op for op in self.pairs[stacks[0]][1][1].ops if op in pops)}
        return first

    def is_stack(self, operand: Operand) -> bool:
        """Whether an operand is a stack."""
        return isinstance(operand, Value) and operand in self.held


def handed_on(program: Program) -> dict[Value, Type]:
    """The stacks that a program passes to its callees, and the types of what is on them."""
    programs = called_from(program)
    known: dict[int, dict[Value, Type]] = {}
    for each in programs:
        known[id(each)] = {
            op.args[0]: type_of_operand(op.args[1]) if op.function is push else op.outputs[0].type
            for op, _ in _stacking(each.block)
            if op.function is not thin
        }
    handed: dict[int, dict[Value, Type]] = {id(each): {} for each in programs}
    changed = True
    while changed:
        changed = False
        for each in programs:
            for op in each.walk():
                if not isinstance(op, Call):
                    continue
                inner = known[id(op.program)] | handed[id(op.program)]
                for a, p in zip(op.args, op.program.block.params, strict=True):
                    if p in inner and isinstance(a, Value) and a not in handed[id(each)]:
                        handed[id(each)][a] = inner[p]
                        changed = True
    return handed[id(program)]


def _stacking(block: Block) -> Iterator[tuple[Apply, Block]]:
    """Pushes and pops, with the blocks that contain them."""
    for op in block.ops:
        if isinstance(op, Apply) and op.function in (push, pop, top, thin):
            yield op, block
        elif op.nests:
            for inner in op.blocks():
                yield from _stacking(inner)


def as_list(parts: tuple[Any, ...], rank: int) -> list[Any]:
    """The list that NumPy programs use for a stack, of the arrays that :func:`as_tuple` returns."""
    buffer, height, *rest = parts
    if not rank:
        return list(buffer[:height])
    shapes, end = rest
    made, at = [], 0
    for k in range(0, end, rank):
        shape = tuple(shapes[k : k + rank])
        size = math.prod(shape)
        made.append(buffer[at : at + size].reshape(shape).copy())
        at += size
    return made
