"""Stacks in the Numba source: growing arrays of elements, and of the shapes of stacked arrays.

Numbers that one iteration pushes, and one pops again, are interleaved on one stack, and a loop over
a range reserves capacity for all its iterations before it begins. Arrays share a stack in the same
way if their lengths are known there. An array is pushed as a copy of its elements, unless it was
made in its place; popped, it is a view of the stack, valid until the next push.
Lanes in registers are stored from there, and read into registers again. A push may move the memory,
so what stays on a stack while others are pushed is read from a copy.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import Any

from fwdad.codegen.loops.arrays.functions import handles, reading
from fwdad.codegen.loops.buffer_hoisting import OpenLoop
from fwdad.codegen.loops.new_arrays import Slot
from fwdad.codegen.loops.notation import dtype_text, subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.stack_memory import Held
from fwdad.codegen.numba_support import CHECK_BOUNDS
from fwdad.codegen.passes.registers import width
from fwdad.ir.notation import tuple_text
from fwdad.ir.ops import Apply, Call, Loop, Op, Value, is_array, type_of_operand, values_in, walk
from fwdad.ir.primitives.stacks import new_stack, pop, push, thin, top
from fwdad.ir.types import INT, ArrayType, Size, Type

_FIRST = 1 if CHECK_BOUNDS else 64  # elements that a stack begins with
_ROOM = 0 if CHECK_BOUNDS else 8192  # spare capacity of a stack that grows: untouched pages use
# no memory, and many short stacks would fragment it


@handles(new_stack)
def _new_stack(w: Parts, op: Apply) -> None:
    (stack,) = op.outputs
    layout = w.stacks.held.get(stack)
    if layout is None:
        raise w.operands.cannot("a stack that nothing is pushed onto")
    if not layout.name and stack not in w.stacks.late:
        _begin(w, layout, op)


def settle(w: Parts, loop: Loop, known: OpenLoop) -> None:
    """Give memory to the stacks that only a loop pushes arrays onto, which is about to begin.

    Lengths that are known now are not kept for each array, and what an iteration pushes, and one
    pops again, is one frame, if all of its lengths are known.
    """
    frames: dict[Any, list[Value]] = {}
    for stack in w.stacks.loops.get(loop, ()):
        held = w.stacks.held[stack]
        assert isinstance(held.type, ArrayType)
        texts = [
            None if k in held.mixed else known.length(d) for k, d in enumerate(held.type.shape)
        ]
        held.unknown = [k for k, text in enumerate(texts) if text is None]
        held.lengths[stack] = [text or "" for text in texts]
        frames.setdefault(_frame_of(w, stack) or stack, []).append(stack)
    for stacks in frames.values():
        held = w.stacks.join(stacks)
        _begin(w, held, loop)
        if not held.unknown:
            held.offsets = _offsets(w, held)
            _offer(w, held)


def _offer(w: Parts, held: Held) -> None:
    """Let arrays be made where they will be pushed, instead of being copied."""
    for k, stack in enumerate(held.stacks):
        if stack in w.stacks.pairs:
            pushed, block = w.stacks.pairs[stack][0]
            if is_array(x := pushed.args[1]):
                slot = Slot(stack, block, held.lengths[stack], partial(_take, w, held, k))
                w.arrays.offer(x, slot)


def _take(w: Parts, held: Held, k: int) -> str:
    """The place of the k-th array that an iteration will push."""
    _open_frame(w, held)
    lengths = tuple_text(held.lengths[held.stacks[k]])
    return f"{w.helpers.use('part_of_stack')}({held.name}, {held.above(k)}, {lengths}, {k})"


def _open_frame(w: Parts, held: Held) -> None:
    """Make room for all that an iteration pushes, before the first of these."""
    if not held.is_open:
        held.is_open = True
        _grow(w, held, held.frame)
        _move(w, held, held.frame, 1)


def _frame_of(w: Parts, stack: Value) -> Any:
    """What tells which arrays are pushed and popped together, or None.

    A push moves the memory of all of them: of none may a view be left when the block ends that pops
    it.
    """
    if stack not in w.stacks.pairs or w.stacks.held[stack].unknown:
        return None
    (pushed, here), (popped, there) = w.stacks.pairs[stack]
    values = [pushed.args[1], *popped.outputs]
    if w.registers.lanes.intersection(values) or not w.arrays.temporaries.issuperset(
        popped.outputs
    ):
        return None
    return id(here), id(there), w.stacks.held[stack].type.dtype


def _offsets(w: Parts, held: Held) -> list[str]:
    """Where the arrays of a frame begin, and where it ends."""
    at, counts, found = 0, Counter[str](), ["0"]
    for stack in held.stacks:
        lengths = held.lengths[stack]
        if all(map(str.isdigit, lengths)):
            at += math.prod(map(int, lengths))
        else:
            counts[" * ".join(lengths)] += 1
        parts = [text if n == 1 else f"{n} * {text}" for text, n in counts.items()]
        text = " + ".join([*parts, str(at)] if at else parts)
        if counts:
            name = w.names.temporary(f"{held.name}_end", INT)
            w.code.line(f"{name} = {text}")
            text = name
        found.append(text)
    return found


def _begin(w: Parts, layout: Held, op: Op) -> None:
    layout.name = w.names.name(layout.stacks[0])
    w.names.types[layout.name] = ArrayType(layout.type.dtype, (Size(),))
    layout.top = w.names.temporary(f"{layout.name}_top", INT)
    _note_inside(w, layout)
    memory, tops = {layout.name: layout.type}, [layout.top]
    if layout.rank and (layout.unknown or not layout.lengths):
        layout.shapes = w.names.temporary(f"{layout.name}_shapes")
        memory[layout.shapes] = INT
        tops.append(f"{layout.shapes}_top")
    lines = [f"{name} = {_memory(w, t)}" for name, t in memory.items()]
    w.arrays.begin(layout.stacks, lines, op)
    for each in tops:  # a callee is compiled once: for any int, not for a literal
        w.code.line(f"{each} = {'np.int64(0)' if layout.stacks[0] in w.stacks.handed else '0'}")


def _memory(w: Parts, t: Type) -> str:
    return f"{w.helpers.use('growing')}({_FIRST}, {dtype_text(t.dtype)})"


def unpack(w: Parts, stack: Value, name: str) -> None:
    """Begin with a stack that is a parameter: a tuple, as :func:`as_tuple` makes it."""
    begun(w, stack)
    w.code.line(f"{_parts(w.stacks.held[stack])} = {name}")


def begun(w: Parts, stack: Value) -> list[str]:
    """The names of a stack that is a parameter: what :func:`parts` passes."""
    layout = w.stacks.held[stack]
    layout.name = w.names.name(stack)
    w.names.types[layout.name] = ArrayType(layout.type.dtype, (Size(),))
    layout.top = w.names.temporary(f"{layout.name}_top", INT)
    _note_inside(w, layout)
    if layout.rank:
        layout.shapes = w.names.temporary(f"{layout.name}_shapes")
    return _parts(layout).split(", ")


def _note_inside(w: Parts, held: Held) -> None:
    """Mark indices at the top as inside: there is capacity before a push, and a pop follows one."""
    w.loops.inside += [held.above(k) for k in range(len(held.stacks))]


def parts(w: Parts, stack: Value) -> list[str]:
    """A stack as arguments of a call, and as the last results of a callee."""
    return _parts(w.stacks.held[stack]).split(", ")


def part_types(w: Parts, stack: Value) -> list[Type]:
    """The types of :func:`parts`."""
    layout = w.stacks.held[stack]
    buffer = ArrayType(layout.type.dtype, (Size(),))
    shapes: list[Type] = [ArrayType(INT.dtype, (Size(),)), INT]
    return [buffer, INT, *(shapes if layout.shapes else [])]


def as_tuple(w: Parts, stack: Value) -> str:
    """A stack as a result: its memory, its height, and the same of the shapes of arrays."""
    return f"({_parts(w.stacks.held[stack])})"


def _parts(held: Held) -> str:
    shapes = f", {held.shapes}, {held.shapes}_top" if held.shapes else ""
    return f"{held.name}, {held.top}{shapes}"


def make_room(w: Parts, loop: Loop) -> None:
    """Reserve capacity, before a loop over a range, for the numbers that its iterations push."""
    if loop.span is None or loop.leaves:
        return
    start, stop, step = loop.span
    ends = [type_of_operand(x) for x in (start, stop)]
    if step not in (1, -1) or isinstance(step, Value) or any(t.dtype.kind != "i" for t in ends):
        return
    raising: dict[Held, list[Apply]] = {}
    for op in loop.body.ops:
        if isinstance(op, Apply) and op.function is push:
            layout = w.stacks.held[op.args[0]]
            if layout.name and layout.few:
                raising.setdefault(layout, []).append(op)
    raised = _pushes_in(w, loop)
    rooms = {
        layout: len(ops) * layout.each
        for layout, ops in raising.items()
        if raised[layout] == len(ops)
    }
    if not rooms:
        return
    w.stacks.roomy.update(op for layout in rooms for op in raising[layout])
    low, high = (start, stop) if step == 1 else (stop, start)
    first, last = w.operands.text(low, 6), w.operands.text(high, 5)  # the subtrahend is one term
    count = last if first == "0" else f"{last} - {first}"
    if len(rooms) > 1 and not count.isidentifier():
        name = w.names.temporary("count", INT)
        w.code.line(f"{name} = {count}")
        count = name
    for layout, each in rooms.items():
        factor = count if count.isidentifier() else f"({count})"
        _grow(w, layout, f"{each} * {factor}" if each != 1 else count)


def _pushes_in(w: Parts, loop: Loop) -> Counter[Held]:
    """How often each stack may be pushed to in a loop, including inner blocks and calls.

    Capacity that is reserved for some of these is used up by the others.
    """
    counts: Counter[Held] = Counter()
    for op in walk(loop.body):
        if isinstance(op, Apply) and op.function is push:
            counts[w.stacks.held[op.args[0]]] += 1
        elif isinstance(op, Call):
            counts.update(w.stacks.held[a] for a in values_in(op.args) if a in w.stacks.handed)
    return counts


def _grow(w: Parts, held: Held, more: str) -> None:
    w.code.line(f"if {held.top} + {more} > {held.name}.size:")
    needed = f"{held.top} + {more} + {_ROOM}"
    w.code.line(f"    {held.name} = {w.helpers.use('grown')}({held.name}, {needed})")


@handles(push)
def _push(w: Parts, op: Apply, stack: Value, x: Any) -> None:
    layout = w.stacks.held[stack]
    name, top, shapes = layout.name, layout.top, layout.shapes
    t = w.operands.type_of(x)
    if not is_array(x) or not t.ndim:
        if is_array(x):
            text = f"{w.operands.array(x)}[()]"
        else:
            text = w.operands.stored(w.operands.number(x), t.dtype)
        if op in layout.begins and op not in w.stacks.roomy:
            _grow(w, layout, str(len(layout.stacks)))
        w.code.line(f"{layout.place(stack)} = {text}", op)
        if op in layout.ends:
            w.code.line(f"{top} += {len(layout.stacks)}")
        return
    if x in w.registers.lanes and layout.each:
        if op not in w.stacks.roomy:
            _grow(w, layout, str(layout.each))
        store = w.registers.function("store", layout.each)
        view, lanes = f"{name}[{top}:{top} + {layout.each}]", w.lanes.text(x, layout.each)
        w.code.line(f"{store}({view}, {lanes})", op)
        w.code.line(f"{top} += {layout.each}")
        return
    if layout.frame:
        _push_frame(w, op, layout, x)
        return
    with reading(w, x) as (value, lengths, steps):
        size = w.names.temporary("size", INT)
        w.code.line(f"{size} = {' * '.join(lengths)}", op)
        _grow(w, layout, size)
        _move(w, layout, size, 1)
        count = len(layout.unknown)
        if count:
            w.code.line(f"if {shapes}_top + {count} > {shapes}.size:")
            grown = w.helpers.use("grown")
            w.code.line(f"    {shapes} = {grown}({shapes}, {shapes}_top + {count})")
            _require_part(w, shapes, f"{shapes}_top", str(count))
        _copy(w, f"{name}[{top}:{top} + {size}]", lengths, value, steps)
    w.code.line(f"{top} += {size}")
    for k, axis in enumerate(layout.unknown):
        w.code.line(f"{shapes}[{shapes}_top + {k}] = {lengths[axis]}")
    if count:
        w.code.line(f"{shapes}_top += {count}")


def _push_frame(w: Parts, op: Apply, held: Held, x: Value) -> None:
    """Push an array of known lengths, unless it is where it should be."""
    stack = op.args[0]
    _open_frame(w, held)
    if (x, stack) not in w.arrays.placed:
        k, known = held.stacks.index(stack), held.lengths[stack]
        with reading(w, x) as (value, lengths, steps):
            part = f"{held.name}[{held.above(k)}:{held.above(k + 1)}]"
            for n, length in zip(lengths, known, strict=True):
                if n != length:
                    w.code.line(f"{w.helpers.use('equal_length')}({length}, {n})", op)
            _copy(w, part, lengths, value, steps)
    if op in held.ends:
        w.code.line(f"{held.top} += {held.frame}")
        held.is_open = False


def _copy(
    w: Parts, part: str, lengths: list[str], value: Value, steps: dict[tuple[str, int], str]
) -> None:
    """Copy an array, or compute it, into a part of a stack."""
    view = w.names.temporary("view")
    w.code.line(f"{view} = {_shaped(part, lengths)}")
    with w.loops.nest(lengths, inner=True) as index:
        item = w.operands.stored(w.elements.element(value, index, steps), value.type.dtype)
        w.code.line(f"{view}[{subscript(index)}] = {item}")


@handles(pop)
def _pop(w: Parts, op: Apply, stack: Value) -> str:
    layout = w.stacks.held[stack]
    t = op.outputs[0].type
    lanes = width(op.outputs[0]) if op.outputs[0] in w.registers.lanes else 0
    if lanes and layout.each:
        w.code.line(f"{layout.top} -= {lanes}", op)
        load = w.registers.function("load", lanes)
        return f"{load}({layout.name}[{layout.top}:{layout.top} + {lanes}])"
    if isinstance(t, ArrayType) and t.ndim:
        if layout.unknown:
            w.code.line(f"{layout.shapes}_top -= {len(layout.unknown)}", op)
            _require_part(w, layout.shapes, f"{layout.shapes}_top", str(len(layout.unknown)))
        lengths = _lengths_at(layout, stack, f"{layout.shapes}_top")
        size = layout.frame or " * ".join(lengths)
        if op in layout.lowers:
            w.code.line(f"{layout.top} -= {size}", op)
            _move(w, layout, size, -1)
        part = _part(layout, layout.stacks.index(stack), size, lengths)
        view = _loose(w, op, part)
        return f"{w.registers.function('load', lanes)}({view})" if lanes else view
    if op in layout.lowers:
        w.code.line(f"{layout.top} -= {len(layout.stacks)}", op)
    return _item(w, op, layout.place(stack))


def _move(w: Parts, held: Held, size: str, way: int) -> None:
    """Prefetch beyond the part of a stack that is pushed or popped."""
    _require_part(w, held.name, held.top, size)
    w.code.line(f"{w.helpers.use('ahead')}({held.name}, {held.top}, {size}, {way})")


def _part(held: Held, k: int, size: str, lengths: list[str]) -> str:
    """The view of the k-th array above the top; ``size`` is that of the only one of its kind."""
    end = held.above(k + 1) if held.frame else f"{held.top} + {size}"
    return _shaped(f"{held.name}[{held.above(k)}:{end}]", lengths)


@handles(top)
def _top(w: Parts, op: Apply, stack: Value) -> str:
    layout = w.stacks.held[stack]
    t = op.outputs[0].type
    if isinstance(t, ArrayType) and t.ndim:
        lengths = _lengths_at(layout, stack, f"{layout.shapes}_top - {len(layout.unknown)}")
        if layout.unknown:
            _require_part(w, layout.shapes, f"{layout.shapes}_top - {len(layout.unknown)}", "1")
        start = w.names.temporary("start", INT)
        w.code.line(f"{start} = {layout.top} - {' * '.join(lengths)}", op)
        return _view(w, op, layout.name, start, lengths, ".copy()")
    _require_part(w, layout.name, f"{layout.top} - 1", "1")
    return _item(w, op, f"{layout.name}[{layout.top} - 1]")


@handles(thin)
def _thin(w: Parts, op: Apply, stack: Value) -> None:
    layout = w.stacks.held[stack]
    name, height, shapes, t = layout.name, layout.top, layout.shapes, layout.type
    if isinstance(t, ArrayType) and t.ndim:
        text = f"{w.helpers.use('thinned')}({name}, {shapes}, {shapes}_top, {t.ndim})"
        w.code.line(f"{height}, {shapes}_top = {text}", op)
    else:
        w.code.line(f"{height} = {w.helpers.use('thinned_numbers')}({name}, {height})", op)


def _lengths_at(held: Held, stack: Value, at: str) -> list[str]:
    """The lengths of a stacked array; unknown ones are stored on the stack of shapes."""
    assert isinstance(held.type, ArrayType)
    shapes = {axis: f"{held.shapes}[{at} + {k}]" for k, axis in enumerate(held.unknown)}
    known = held.lengths.get(stack, held.type.shape)
    return [shapes.get(axis, str(d)) for axis, d in enumerate(known)]


def _require_part(w: Parts, name: str, start: str, size: str) -> None:
    """Where bounds are checked, check a part of a stack, of which a slice would be truncated."""
    if CHECK_BOUNDS:
        w.code.line(f"{w.helpers.use('part_inside')}({name}, {start}, {size})")


def _view(w: Parts, op: Apply, name: str, start: str, lengths: list[str], then: str = "") -> str:
    _require_part(w, name, start, " * ".join(lengths))
    return _loose(
        w, op, _shaped(f"{name}[{start}:{start} + {' * '.join(lengths)}]", lengths) + then
    )


def _loose(w: Parts, op: Apply, view: str) -> str:
    return f"{w.helpers.use('loose')}({view})" if op.outputs[0] in w.arrays.loose else view


def _shaped(text: str, lengths: list[str]) -> str:
    """A view of a stack, reshaped to its lengths."""
    return text if len(lengths) == 1 else f"{text}.reshape({tuple_text(lengths)})"


def _item(w: Parts, op: Apply, text: str) -> str:
    t = op.outputs[0].type
    if not isinstance(t, ArrayType):
        return text
    name = w.names.temporary("a")
    w.code.line(f"{name} = {w.arrays.empty([], t.dtype)}")
    w.code.line(f"{name}[()] = {text}")
    return name
