"""Stacks in the Numba source: growing arrays of elements, and of the shapes of what is on them.

An array on a stack is a copy of its elements; taken off, it is a window on the stack, which nobody
writes before the next push.
"""

from __future__ import annotations

from typing import Any

from fwdad.backends.array_functions import handles, length_text
from fwdad.tape.ops import Apply, Value, is_array
from fwdad.tape.stacks import new_stack, pop, push
from fwdad.tape.summing import sum_to
from fwdad.tape.types import INT, ArrayType, Size, Type

Writer = Any

_FIRST = 64  # elements that a stack begins with


def _item_type(w: Writer, stack: Value) -> Type:
    """The type of what is pushed onto a stack."""
    for op in w.program.walk():
        if isinstance(op, Apply) and op.function is push and op.args[0] is stack:
            x = op.args[1]
            return x.type if isinstance(x, Value) else w.type_of(x)
    raise w.cannot("a stack that nothing is pushed onto")


def _names(w: Writer, stack: Value) -> tuple[str, str, str]:
    """The names of a stack, of its height, and of its shapes."""
    made = w.stacks.get(stack)
    if made is None:
        name = w.name(stack)
        made = name, w.temporary(f"{name}_top", INT), w.temporary(f"{name}_shapes")
        w.stacks[stack] = made
    return made


@handles(sum_to)
def _sum_to(w: Writer, _op: Apply, x: Value, *lengths: Any) -> str:
    """Where something was broadcast it raises, and is run again under NumPy."""
    source = w.array(x)
    for axis, n in enumerate(lengths):
        w.line(f"if {source}.shape[{axis}] != {w.index_text(n)}:")
        w.line("    raise ValueError('a cotangent was broadcast')")
    return source


@handles(new_stack)
def _new_stack(w: Writer, op: Apply) -> None:
    (stack,) = op.outputs
    t = _item_type(w, stack)
    name, top, shapes = _names(w, stack)
    w.types[name] = ArrayType(t.dtype, (Size(),))
    w.line(f"{name} = {w.empty([str(_FIRST)], t.dtype)}", op)
    w.line(f"{top} = 0")
    if isinstance(t, ArrayType) and t.ndim:
        w.line(f"{shapes} = {w.empty([str(_FIRST)], INT.dtype)}")
        w.line(f"{shapes}_top = 0")


@handles(push)
def _push(w: Writer, op: Apply, stack: Value, x: Any) -> None:
    name, top, shapes = _names(w, stack)
    grown = w.help("grown")
    t = w.type_of(x)
    if not is_array(x) or not t.ndim:
        text = f"{w.array(x)}[()]" if is_array(x) else w.stored(w.number(x), t.dtype)
        w.line(f"if {top} == {name}.size:", op)
        w.line(f"    {name} = {grown}({name}, {top} + 1)")
        w.line(f"{name}[{top}] = {text}")
        w.line(f"{top} += 1")
        return
    source = w.array(x)
    lengths = [length_text(d, source, k) for k, d in enumerate(t.shape)]
    size = w.temporary("size", INT)
    w.line(f"{size} = {source}.size", op)
    w.line(f"if {top} + {size} > {name}.size:")
    w.line(f"    {name} = {grown}({name}, {top} + {size})")
    w.line(f"if {shapes}_top + {t.ndim} > {shapes}.size:")
    w.line(f"    {shapes} = {grown}({shapes}, {shapes}_top + {t.ndim})")
    window = w.temporary("window")
    w.line(f"{window} = {name}[{top}:{top} + {size}].reshape({_tuple(lengths)})")
    loop = w.open_loops(lengths)
    w.line(f"{window}[{w.at(loop)}] = {source}[{w.at(loop)}]")
    w.close_loops(loop)
    w.line(f"{top} += {size}")
    for k, length in enumerate(lengths):
        w.line(f"{shapes}[{shapes}_top + {k}] = {length}")
    w.line(f"{shapes}_top += {t.ndim}")


@handles(pop)
def _pop(w: Writer, op: Apply, stack: Value) -> str:
    name, top, shapes = _names(w, stack)
    (out,) = op.outputs
    t = out.type
    if not isinstance(t, ArrayType) or not t.ndim:
        w.line(f"{top} -= 1", op)
        if isinstance(t, ArrayType):
            made = w.temporary("a")
            w.line(f"{made} = {w.empty([], t.dtype)}")
            w.line(f"{made}[()] = {name}[{top}]")
            return made
        return f"{name}[{top}]"
    w.line(f"{shapes}_top -= {t.ndim}", op)
    lengths = [
        str(d) if isinstance(d, int) else f"{shapes}[{shapes}_top + {k}]"
        for k, d in enumerate(t.shape)
    ]
    w.line(f"{top} -= {' * '.join(lengths)}")
    window = f"{name}[{top}:{top} + {' * '.join(lengths)}].reshape({_tuple(lengths)})"
    return f"{w.help('loose')}({window})" if out in w._loose else window


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
