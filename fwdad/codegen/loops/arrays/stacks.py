"""Stacks in the Numba source: growing arrays of elements, and of the shapes of stacked arrays.

Numbers that one iteration pushes, and one pops again, are interleaved on one stack, and a loop over
a range reserves capacity for all its iterations before it begins. An array is pushed as a copy of
its elements; popped, it is a view of the stack, which nobody writes before the next push. A push
may move the memory, so what stays on a stack while others are pushed is read from a copy.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from fwdad.codegen.loops.arrays.functions import handles, reading
from fwdad.codegen.loops.notation import dtype_text, subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.stack_memory import Held
from fwdad.codegen.numba_support import CHECK_BOUNDS
from fwdad.ir.notation import tuple_text
from fwdad.ir.ops import Apply, Call, Loop, Value, is_array, type_of_operand, values_in, walk
from fwdad.ir.primitives.stacks import new_stack, pop, push, thin, top
from fwdad.ir.types import INT, ArrayType, Size, Type

_FIRST = 1 if CHECK_BOUNDS else 64  # elements that a stack begins with
_ROOM = 0 if CHECK_BOUNDS else 8192  # spare capacity of a stack that grows: untouched pages use
# no memory, and many short stacks would fragment it


@handles(new_stack)
def _new_stack(w: Parts, op: Apply) -> None:
    (stack,) = op.outputs
    held = w.stacks.held.get(stack)
    if held is None:
        raise w.operands.cannot("a stack that nothing is pushed onto")
    if held.name:
        return
    held.name = w.names.name(stack)
    w.names.types[held.name] = ArrayType(held.type.dtype, (Size(),))
    held.top = w.names.temporary(f"{held.name}_top", INT)
    _note_inside(w, held)
    w.code.line(f"{held.name} = {_memory(w, held.type)}", op)
    # a callee is compiled once: for any int, not for a literal
    w.code.line(f"{held.top} = {'np.int64(0)' if stack in w.stacks.handed else '0'}")
    if isinstance(held.type, ArrayType) and held.type.ndim:
        held.shapes = w.names.temporary(f"{held.name}_shapes")
        w.code.line(f"{held.shapes} = {_memory(w, INT)}")
        w.code.line(f"{held.shapes}_top = {'np.int64(0)' if stack in w.stacks.handed else '0'}")


def _memory(w: Parts, t: Type) -> str:
    return f"{w.helpers.use('growing')}({_FIRST}, {dtype_text(t.dtype)})"


def unpack(w: Parts, stack: Value, name: str) -> None:
    """Begin with a stack that is a parameter: a tuple, as :func:`as_tuple` makes it."""
    begun(w, stack)
    w.code.line(f"{_parts(w.stacks.held[stack])} = {name}")


def begun(w: Parts, stack: Value) -> list[str]:
    """The names of a stack that is a parameter: what :func:`parts` passes."""
    held = w.stacks.held[stack]
    held.name = w.names.name(stack)
    w.names.types[held.name] = ArrayType(held.type.dtype, (Size(),))
    held.top = w.names.temporary(f"{held.name}_top", INT)
    _note_inside(w, held)
    if isinstance(held.type, ArrayType) and held.type.ndim:
        held.shapes = w.names.temporary(f"{held.name}_shapes")
    return _parts(held).split(", ")


def _note_inside(w: Parts, held: Held) -> None:
    """Mark indices at the top as inside: there is capacity before a push, and a pop follows one."""
    w.loops.inside += [held.above(k) for k in range(len(held.stacks))]


def parts(w: Parts, stack: Value) -> list[str]:
    """A stack as arguments of a call, and as the last results of a callee."""
    return _parts(w.stacks.held[stack]).split(", ")


def part_types(w: Parts, stack: Value) -> list[Type]:
    """The types of :func:`parts`."""
    held = w.stacks.held[stack]
    buffer = ArrayType(held.type.dtype, (Size(),))
    shapes: list[Type] = [ArrayType(INT.dtype, (Size(),)), INT]
    return [buffer, INT, *(shapes if held.shapes else [])]


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
    first, last = w.operands.text(low, 6), w.operands.text(high, 5)  # the subtrahend is one term
    count = last if first == "0" else f"{last} - {first}"
    if len(found) > 1 and not count.isidentifier():
        name = w.names.temporary("count", INT)
        w.code.line(f"{name} = {count}")
        count = name
    for held, each in found.items():
        factor = count if count.isidentifier() else f"({count})"
        _grow(w, held, f"{each} * {factor}" if each != 1 else count)


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
    held = w.stacks.held[stack]
    name, top, shapes = held.name, held.top, held.shapes
    t = w.operands.type_of(x)
    if not is_array(x) or not t.ndim:
        if is_array(x):
            text = f"{w.operands.array(x)}[()]"
        else:
            text = w.operands.stored(w.operands.number(x), t.dtype)
        if op in held.begins and op not in w.stacks.roomy:
            _grow(w, held, str(len(held.stacks)))
        w.code.line(f"{held.place(stack)} = {text}", op)
        if op in held.ends:
            w.code.line(f"{top} += {len(held.stacks)}")
        return
    grown = w.helpers.use("grown")
    with reading(w, x) as (value, lengths, steps):
        size = w.names.temporary("size", INT)
        w.code.line(f"{size} = {' * '.join(lengths)}", op)
        _grow(w, held, size)
        kept = len(held.unknown)
        if kept:
            w.code.line(f"if {shapes}_top + {kept} > {shapes}.size:")
            w.code.line(f"    {shapes} = {grown}({shapes}, {shapes}_top + {kept})")
            _require_part(w, shapes, f"{shapes}_top", str(kept))
        _require_part(w, name, top, size)
        w.code.line(f"{w.helpers.use('ahead')}({name}, {top}, {size}, 1)")
        view = w.names.temporary("view")
        w.code.line(f"{view} = {_shaped(f'{name}[{top}:{top} + {size}]', lengths)}")
        with w.loops.nest(lengths) as index:
            item = w.operands.stored(w.elements.element(value, index, steps), t.dtype)
            w.code.line(f"{view}[{subscript(index)}] = {item}")
    w.code.line(f"{top} += {size}")
    for k, axis in enumerate(held.unknown):
        w.code.line(f"{shapes}[{shapes}_top + {k}] = {lengths[axis]}")
    if kept:
        w.code.line(f"{shapes}_top += {kept}")


@handles(pop)
def _pop(w: Parts, op: Apply, stack: Value) -> str:
    held = w.stacks.held[stack]
    t = op.outputs[0].type
    if isinstance(t, ArrayType) and t.ndim:
        if held.unknown:
            w.code.line(f"{held.shapes}_top -= {len(held.unknown)}", op)
            _require_part(w, held.shapes, f"{held.shapes}_top", str(len(held.unknown)))
        lengths = _lengths_at(held, f"{held.shapes}_top")
        size = " * ".join(lengths)
        w.code.line(f"{held.top} -= {size}")
        w.code.line(f"{w.helpers.use('ahead')}({held.name}, {held.top}, {size}, -1)")
        return _view(w, op, held.name, held.top, lengths)
    if op in held.lowers:
        w.code.line(f"{held.top} -= {len(held.stacks)}", op)
    return _item(w, op, held.place(stack))


@handles(top)
def _top(w: Parts, op: Apply, stack: Value) -> str:
    held = w.stacks.held[stack]
    t = op.outputs[0].type
    if isinstance(t, ArrayType) and t.ndim:
        lengths = _lengths_at(held, f"{held.shapes}_top - {len(held.unknown)}")
        if held.unknown:
            _require_part(w, held.shapes, f"{held.shapes}_top - {len(held.unknown)}", "1")
        start = w.names.temporary("start", INT)
        w.code.line(f"{start} = {held.top} - {' * '.join(lengths)}", op)
        return _view(w, op, held.name, start, lengths, ".copy()")
    _require_part(w, held.name, f"{held.top} - 1", "1")
    return _item(w, op, f"{held.name}[{held.top} - 1]")


@handles(thin)
def _thin(w: Parts, op: Apply, stack: Value) -> None:
    held = w.stacks.held[stack]
    name, height, shapes, t = held.name, held.top, held.shapes, held.type
    if isinstance(t, ArrayType) and t.ndim:
        text = f"{w.helpers.use('thinned')}({name}, {shapes}, {shapes}_top, {t.ndim})"
        w.code.line(f"{height}, {shapes}_top = {text}", op)
    else:
        w.code.line(f"{height} = {w.helpers.use('thinned_numbers')}({name}, {height})", op)


def _lengths_at(held: Held, at: str) -> list[str]:
    """The lengths of a stacked array; unknown ones are stored on the stack of shapes."""
    assert isinstance(held.type, ArrayType)
    kept = {axis: f"{held.shapes}[{at} + {k}]" for k, axis in enumerate(held.unknown)}
    return [kept.get(axis, str(d)) for axis, d in enumerate(held.type.shape)]


def _require_part(w: Parts, name: str, start: str, size: str) -> None:
    """Where bounds are checked, check a part of a stack, of which a slice would be truncated."""
    if CHECK_BOUNDS:
        w.code.line(f"{w.helpers.use('part_inside')}({name}, {start}, {size})")


def _view(w: Parts, op: Apply, name: str, start: str, lengths: list[str], then: str = "") -> str:
    _require_part(w, name, start, " * ".join(lengths))
    view = _shaped(f"{name}[{start}:{start} + {' * '.join(lengths)}]", lengths) + then
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
