"""Stacks in the Numba source: growing arrays of elements, and of the shapes of stacked arrays.

Numbers that one iteration pushes, and one pops again, are interleaved on one stack, and a loop over
a range reserves capacity for all its iterations before it begins. An array is pushed as a copy of
its elements; popped, it is a view of the stack, which nobody writes before the next push. A push
may move the memory, so what stays on a stack while others are pushed is read from a copy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from fwdad.codegen.loops.arrays.functions import handles, reading
from fwdad.codegen.numba_support import CHECK_BOUNDS
from fwdad.ir.ops import (
    Apply,
    Block,
    Call,
    Loop,
    Op,
    Operand,
    Program,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.ir.primitives.stacks import new_stack, pop, push, thin, top
from fwdad.ir.types import INT, ArrayType, Size, Type, number_type
from fwdad.transforms.passes import called_from

Writer = Any

_FIRST = 1 if CHECK_BOUNDS else 64  # elements that a stack begins with
_ROOM = 0 if CHECK_BOUNDS else 8192  # spare capacity of a stack that grows: untouched pages use
# no memory, and many short stacks would fragment it


class Held:
    """The memory of one stack of the tape, or of several that are pushed and popped together.

    ``stacks`` are in the order in which their numbers are interleaved. ``begins`` and ``ends`` are
    the first and last pushes of an iteration, ``lowers`` its first pop.
    """

    def __init__(self, t: Type) -> None:
        self.type = t
        self.stacks: list[Value] = []
        self.begins: set[Op] = set()
        self.ends: set[Op] = set()
        self.lowers: set[Op] = set()
        self.name = self.top = self.shapes = ""
        self.unknown: list[int] = []  # the axes whose lengths are on the stack of shapes

    def place(self, stack: Value) -> str:
        """Where the next number of a stack is stored."""
        k = self.stacks.index(stack)
        return f"{self.name}[{self.above(k)}]"

    def above(self, k: int) -> str:
        """The index of the k-th number to be pushed next, or last popped."""
        return f"{self.top} + {k}" if k else self.top


class Stacks:
    """The stacks of a program.

    ``held`` maps each to its memory, ``roomy`` holds the pushes that need no check of the capacity,
    and ``handed`` are the stacks that callees are given.
    """

    def __init__(self, program: Program) -> None:
        self.held: dict[Value, Held] = {}
        self.roomy: set[Op] = set()
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
            t, taken = _type_of(given[0][0].args[1]), pops.get(stack, [])
            once = len(given) == len(taken) == 1 and not isinstance(t, ArrayType)
            once = once and stack not in alone
            key = (id(given[0][1]), id(taken[0][1]), t.dtype) if once else stack
            held = together.setdefault(key, Held(t))
            if isinstance(t, ArrayType):
                given_types = [_type_of(op.args[1]) for op, _ in given]
                held.unknown = [
                    axis for axis, d in enumerate(t.shape)
                    if stack in alone or isinstance(d, Size)
                    or any(each.shape[axis] != d for each in given_types)
                ]  # fmt: skip
            first = not held.stacks
            held.stacks.append(stack)
            self.held[stack] = held
            own: set[Op] = {op for op, _ in given}
            held.ends = own
            if first:
                held.begins = own
        for stack in dict.fromkeys((*self.given, *handed)):
            if stack not in self.held:
                found = pops[stack][0][0] if stack in pops else looks.get(stack)
                t = handed[stack] if found is None else found.outputs[0].type
                held = self.held[stack] = Held(t)
                held.stacks.append(stack)
                if isinstance(held.type, ArrayType):
                    held.unknown = list(range(held.type.ndim))
        for stack, taken in pops.items():  # in the order of the program
            popped = self.held.get(stack)
            if popped is not None and not popped.lowers:
                popped.lowers = {op for op, _ in taken}


def handed_on(program: Program) -> dict[Value, Type]:
    """The stacks that a program passes to its callees, and the types of what is on them."""
    programs = called_from(program)
    known: dict[int, dict[Value, Type]] = {}
    for each in programs:
        known[id(each)] = {
            op.args[0]: _type_of(op.args[1]) if op.function is push else op.outputs[0].type
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


def _type_of(x: Operand) -> Type:
    """The type of what is pushed."""
    t = x.type if isinstance(x, Value) else number_type(x)
    assert t is not None
    return t


@handles(new_stack)
def _new_stack(w: Writer, op: Apply) -> None:
    (stack,) = op.outputs
    held = w.stacks.held.get(stack)
    if held is None:
        raise w.cannot("a stack that nothing is pushed onto")
    if held.name:
        return
    held.name = w.name(stack)
    w.types[held.name] = ArrayType(held.type.dtype, (Size(),))
    held.top = w.temporary(f"{held.name}_top", INT)
    _note_inside(w, held)
    w.line(f"{held.name} = {_memory(w, held.type)}", op)
    # a callee is compiled once: for any int, not for a literal
    w.line(f"{held.top} = {'np.int64(0)' if stack in w.stacks.handed else '0'}")
    if isinstance(held.type, ArrayType) and held.type.ndim:
        held.shapes = w.temporary(f"{held.name}_shapes")
        w.line(f"{held.shapes} = {_memory(w, INT)}")
        w.line(f"{held.shapes}_top = {'np.int64(0)' if stack in w.stacks.handed else '0'}")


def _memory(w: Writer, t: Type) -> str:
    return f"{w.help('growing')}({_FIRST}, {w.dtype(t.dtype)})"


def given(w: Writer, stack: Value, name: str) -> None:
    """Begin with a stack that is a parameter: a tuple, as :func:`answer` makes it."""
    begun(w, stack)
    w.line(f"{_parts(w.stacks.held[stack])} = {name}")


def begun(w: Writer, stack: Value) -> list[str]:
    """The names of a stack that is a parameter: what :func:`parts` passes."""
    held = w.stacks.held[stack]
    held.name = w.name(stack)
    w.types[held.name] = ArrayType(held.type.dtype, (Size(),))
    held.top = w.temporary(f"{held.name}_top", INT)
    _note_inside(w, held)
    if isinstance(held.type, ArrayType) and held.type.ndim:
        held.shapes = w.temporary(f"{held.name}_shapes")
    return _parts(held).split(", ")


def _note_inside(w: Writer, held: Held) -> None:
    """Mark indices at the top as inside: there is capacity before a push, and a pop follows one."""
    w.inside += [held.above(k) for k in range(len(held.stacks))]


def parts(w: Writer, stack: Value) -> list[str]:
    """A stack as arguments of a call, and as the last results of a callee."""
    return _parts(w.stacks.held[stack]).split(", ")


def part_types(w: Writer, stack: Value) -> list[Type]:
    """The types of :func:`parts`."""
    held = w.stacks.held[stack]
    buffer = ArrayType(held.type.dtype, (Size(),))
    shapes: list[Type] = [ArrayType(INT.dtype, (Size(),)), INT]
    return [buffer, INT, *(shapes if held.shapes else [])]


def answer(w: Writer, stack: Value) -> str:
    """A stack as a result: its memory, its height, and the same of the shapes of arrays."""
    return f"({_parts(w.stacks.held[stack])})"


def as_list(parts: tuple[Any, ...], rank: int) -> list[Any]:
    """The list that NumPy programs use for a stack, from the arrays that :func:`answer` returns."""
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


def _parts(held: Held) -> str:
    shapes = f", {held.shapes}, {held.shapes}_top" if held.shapes else ""
    return f"{held.name}, {held.top}{shapes}"


def make_room(w: Writer, loop: Loop) -> None:
    """Reserve capacity, before a loop over a range, for the numbers that its iterations push."""
    if loop.span is None or loop.leaves:
        return
    start, stop, step = loop.span
    ends = [_type_of(x) for x in (start, stop)]
    if step not in (1, -1) or isinstance(step, Value) or any(t.dtype.kind != "i" for t in ends):
        return
    own: dict[Held, list[Apply]] = {}
    for op in loop.body.ops:
        if isinstance(op, Apply) and op.function is push:
            held = w.stacks.held[op.args[0]]
            if held.name and not isinstance(held.type, ArrayType):
                own.setdefault(held, []).append(op)
    raised = _pushes_in(w, loop)
    found = {held: len(ops) for held, ops in own.items() if raised[held] == len(ops)}
    if not found:
        return
    w.stacks.roomy.update(op for held in found for op in own[held])
    low, high = (start, stop) if step == 1 else (stop, start)
    first, last = w.text(low, 6), w.text(high, 5)  # the subtrahend is one term
    count = last if first == "0" else f"{last} - {first}"
    if len(found) > 1 and not count.isidentifier():
        made = w.temporary("count", INT)
        w.line(f"{made} = {count}")
        count = made
    for held, each in found.items():
        factor = count if count.isidentifier() else f"({count})"
        _grow(w, held, f"{each} * {factor}" if each != 1 else count)


def _pushes_in(w: Writer, loop: Loop) -> Counter[Held]:
    """How often each stack may be pushed to in a loop, including inner blocks and calls.

    Capacity that is reserved for some of these is used up by the others.
    """
    found: Counter[Held] = Counter()
    for op in walk(loop.body):
        if isinstance(op, Apply) and op.function is push:
            found[w.stacks.held[op.args[0]]] += 1
        elif isinstance(op, Call):
            found.update(w.stacks.held[a] for a in values_in(op.args) if a in w.stacks.handed)
    return found


def _grow(w: Writer, held: Held, more: str) -> None:
    w.line(f"if {held.top} + {more} > {held.name}.size:")
    needed = f"{held.top} + {more} + {_ROOM}"
    w.line(f"    {held.name} = {w.help('grown')}({held.name}, {needed})")


@handles(push)
def _push(w: Writer, op: Apply, stack: Value, x: Any) -> None:
    held = w.stacks.held[stack]
    name, top, shapes = held.name, held.top, held.shapes
    t = w.type_of(x)
    if not is_array(x) or not t.ndim:
        text = f"{w.array(x)}[()]" if is_array(x) else w.stored(w.number(x), t.dtype)
        if op in held.begins and op not in w.stacks.roomy:
            _grow(w, held, str(len(held.stacks)))
        w.line(f"{held.place(stack)} = {text}", op)
        if op in held.ends:
            w.line(f"{top} += {len(held.stacks)}")
        return
    grown = w.help("grown")
    with reading(w, x) as (value, lengths, steps):
        size = w.temporary("size", INT)
        w.line(f"{size} = {' * '.join(lengths)}", op)
        _grow(w, held, size)
        kept = len(held.unknown)
        if kept:
            w.line(f"if {shapes}_top + {kept} > {shapes}.size:")
            w.line(f"    {shapes} = {grown}({shapes}, {shapes}_top + {kept})")
            _require_part(w, shapes, f"{shapes}_top", str(kept))
        _require_part(w, name, top, size)
        w.line(f"{w.help('ahead')}({name}, {top}, {size}, 1)")
        view = w.temporary("view")
        w.line(f"{view} = {_shaped(f'{name}[{top}:{top} + {size}]', lengths)}")
        index = w.open_loops(lengths)
        item = w.stored(w.element(value, index, steps), t.dtype)
        w.line(f"{view}[{w.at(index)}] = {item}")
        w.close_loops(index)
    w.line(f"{top} += {size}")
    for k, axis in enumerate(held.unknown):
        w.line(f"{shapes}[{shapes}_top + {k}] = {lengths[axis]}")
    if kept:
        w.line(f"{shapes}_top += {kept}")


@handles(pop)
def _pop(w: Writer, op: Apply, stack: Value) -> str:
    held = w.stacks.held[stack]
    t = op.outputs[0].type
    if isinstance(t, ArrayType) and t.ndim:
        if held.unknown:
            w.line(f"{held.shapes}_top -= {len(held.unknown)}", op)
            _require_part(w, held.shapes, f"{held.shapes}_top", str(len(held.unknown)))
        lengths = _lengths_at(held, f"{held.shapes}_top")
        size = " * ".join(lengths)
        w.line(f"{held.top} -= {size}")
        w.line(f"{w.help('ahead')}({held.name}, {held.top}, {size}, -1)")
        return _view(w, op, held.name, held.top, lengths)
    if op in held.lowers:
        w.line(f"{held.top} -= {len(held.stacks)}", op)
    return _item(w, op, held.place(stack))


@handles(top)
def _top(w: Writer, op: Apply, stack: Value) -> str:
    held = w.stacks.held[stack]
    t = op.outputs[0].type
    if isinstance(t, ArrayType) and t.ndim:
        lengths = _lengths_at(held, f"{held.shapes}_top - {len(held.unknown)}")
        if held.unknown:
            _require_part(w, held.shapes, f"{held.shapes}_top - {len(held.unknown)}", "1")
        start = w.temporary("start", INT)
        w.line(f"{start} = {held.top} - {' * '.join(lengths)}", op)
        return _view(w, op, held.name, start, lengths, ".copy()")
    _require_part(w, held.name, f"{held.top} - 1", "1")
    return _item(w, op, f"{held.name}[{held.top} - 1]")


@handles(thin)
def _thin(w: Writer, op: Apply, stack: Value) -> None:
    held = w.stacks.held[stack]
    name, height, shapes, t = held.name, held.top, held.shapes, held.type
    if isinstance(t, ArrayType) and t.ndim:
        found = f"{w.help('thinned')}({name}, {shapes}, {shapes}_top, {t.ndim})"
        w.line(f"{height}, {shapes}_top = {found}", op)
    else:
        w.line(f"{height} = {w.help('thinned_numbers')}({name}, {height})", op)


def _lengths_at(held: Held, at: str) -> list[str]:
    """The lengths of a stacked array; unknown ones are stored on the stack of shapes."""
    assert isinstance(held.type, ArrayType)
    kept = {axis: f"{held.shapes}[{at} + {k}]" for k, axis in enumerate(held.unknown)}
    return [kept.get(axis, str(d)) for axis, d in enumerate(held.type.shape)]


def _require_part(w: Writer, name: str, start: str, size: str) -> None:
    """Where bounds are checked, check a part of a stack, of which a slice would be truncated."""
    if CHECK_BOUNDS:
        w.line(f"{w.help('part_inside')}({name}, {start}, {size})")


def _view(w: Writer, op: Apply, name: str, start: str, lengths: list[str], then: str = "") -> str:
    _require_part(w, name, start, " * ".join(lengths))
    view = _shaped(f"{name}[{start}:{start} + {' * '.join(lengths)}]", lengths) + then
    return f"{w.help('loose')}({view})" if op.outputs[0] in w._loose else view


def _shaped(text: str, lengths: list[str]) -> str:
    """A view of a stack, reshaped to its lengths."""
    return text if len(lengths) == 1 else f"{text}.reshape({_tuple(lengths)})"


def _item(w: Writer, op: Apply, text: str) -> str:
    t = op.outputs[0].type
    if not isinstance(t, ArrayType):
        return text
    made = w.temporary("a")
    w.line(f"{made} = {w.empty([], t.dtype)}")
    w.line(f"{made}[()] = {text}")
    return made


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
