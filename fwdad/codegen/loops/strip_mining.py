"""Strip mining: scalar functions in a loop, computed ahead for a strip of its iterations.

``for j in range(n): s += math.exp(x[j] - m)`` calls a function of one number in each iteration. Its
argument does not depend on earlier iterations, so that a strip of iterations begins with the C
library's vector function of all of them. The rest of the body stays as it is: exceptions are raised
in their iteration, and sums keep their order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fwdad.codegen.loops.notation import subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.terms.number_terms import constant
from fwdad.codegen.loops.terms.numpy_terms import as_ufunc
from fwdad.codegen.loops.vectors.vector_terms import lanes_of, library_name
from fwdad.codegen.runtime import libmvec
from fwdad.ir.ops import Apply, Load, Loop, Op, Operand, Value, values_in, walk
from fwdad.ir.types import Number
from fwdad.ops import Algebra, record_of

_LENGTH = 512  # iterations of a strip
_FEWEST = 16  # iterations of a loop of known length, for which a strip is worth while
_DOUBLE = np.dtype(np.float64)
_SIGNS = (Algebra.SUM, Algebra.DIFFERENCE, Algebra.PRODUCT)


@dataclass
class Ahead:
    """What is computed ahead of a loop's iterations.

    ``made`` maps values to the operations of the body that define them, and ``inside`` are all that
    the body defines. ``loads`` maps the elements that ``calls`` need to their distance from the
    counter; None for one that is the same in all iterations.
    """

    start: int
    made: dict[Value, Op]
    counter: Value
    inside: set[Value]
    calls: list[Apply] = field(default_factory=list)
    loads: dict[Load, int | None] = field(default_factory=dict)


def ahead_of(w: Parts, loop: Loop) -> Ahead | None:
    """What can be computed ahead of a loop's iterations; None if nothing."""
    if not libmvec.register_bits() or w.program.parallel or any(w.program.written):
        return None
    if loop.span is None or loop.leaves or loop.checkpoint or not is_long(loop.span):
        return None
    calls = [op for op in loop.body.ops if is_function(op)]
    if not calls:
        return None
    definitions = {v: op for op in loop.body.ops for v in op.outputs}
    ahead = Ahead(loop.span[0], definitions, loop.body.params[0], {*loop.body.params, *definitions})
    written = [v for op in walk(loop.body) for v in op.writes()]
    for op in calls:
        assert isinstance(op, Apply)
        loads: dict[Load, int | None] = {}
        known = _is_known(ahead, op.args[0], loads)
        overlap = any(w.memory.may_overlap(load.array, v) for load in loads for v in written)
        if known and set(loads.values()) - {None} and not overlap:
            ahead.calls.append(op)
            ahead.loads.update(loads)
    return ahead if ahead.calls else None


def is_long(span: tuple[Operand, Operand, Operand]) -> bool:
    """Whether a range counts up by ones from a nonnegative number, far enough."""
    start, stop, step = span
    known = all(type(x) is int for x in (start, step))
    if not known or step != 1 or start < 0:
        return False
    return stop - start >= _FEWEST if type(stop) is int else isinstance(stop, Value)


def is_function(op: Op) -> bool:
    """Whether an operation is a function of one number that the C library has for vectors."""
    if not isinstance(op, Apply) or len(op.args) != 1 or op.kwargs or len(op.outputs) != 1:
        return False
    name, t = library_name(op.function), op.outputs[0].type
    if name is None or not isinstance(t, Number) or t.dtype != _DOUBLE:
        return False
    return libmvec.symbol(name, _DOUBLE.itemsize, lanes_of(_DOUBLE)) is not None


def _is_known(ahead: Ahead, x: Operand, loads: dict[Load, int | None]) -> bool:
    """Whether an argument depends only on elements near the counter and on loop invariants."""
    if not isinstance(x, Value):
        return isinstance(x, (int, float, np.float64)) and not isinstance(x, bool)
    if not isinstance(x.type, Number) or x.type.dtype != _DOUBLE:
        return False
    if x not in ahead.inside:
        return True
    op = ahead.made.get(x)
    if isinstance(op, Load):
        if len(op.index) != op.array.type.ndim or op.array.type.dtype != _DOUBLE:
            return False
        *outer, last = op.index or (None,)
        shift = shift_of(ahead, last)
        rest = [op.array, outer] if shift is not None else [op.array, op.index]
        loads[op] = shift
        return not ahead.inside.intersection(values_in(rest)) and Ellipsis not in op.index
    if not isinstance(op, Apply) or op.kwargs:
        return False
    ufunc = as_ufunc(op.function)
    known = (record_of(ufunc).algebra in _SIGNS and len(op.args) == 2) or (
        ufunc is np.negative and len(op.args) == 1
    )
    return known and all(_is_known(ahead, a, loads) for a in op.args)


def shift_of(ahead: Ahead, i: Operand) -> int | None:
    """The distance of an index from the counter; None if unknown or if it may be negative."""
    if i is ahead.counter:
        return 0
    op = ahead.made.get(i) if isinstance(i, Value) else None
    if not isinstance(op, Apply) or as_ufunc(op.function) not in (np.add, np.subtract):
        return None
    a, b = op.args
    if as_ufunc(op.function) is np.add and type(a) is int:
        a, b = b, a
    if a is not ahead.counter or type(b) is not int:
        return None
    shift = b if as_ufunc(op.function) is np.add else -b
    return shift if ahead.start + shift >= 0 else None


def write_ahead(w: Parts, loop: Loop, ahead: Ahead) -> tuple[str, str]:
    """Begin a loop over strips, with the values of each; returns where a strip begins and ends.

    One more indentation is open afterwards.
    """
    assert loop.span is not None
    width = lanes_of(_DOUBLE)
    fixed: dict[Value, str] = {}
    for op in ahead.calls:
        _name_fixed(w, ahead, op.args[0], fixed)
    indices = {
        load: [
            w.operands.atom(w.operands.term(i)).text
            for i in load.index[: -1 if shift is not None else None]
        ]
        for load, shift in ahead.loads.items()
    }
    last = w.operands.atom(w.operands.term(loop.span[1])).text
    start, stop, n = (w.names.temporary(name) for name in ("start", "stop", "n"))
    w.code.line(f"for {start} in range({ahead.start}, {last}, {_LENGTH}):", loop)
    w.code.indent += 1
    w.code.line(f"{stop} = {start} + {_LENGTH}")  # Numba compiles `min` as a function of its own
    w.code.line(f"if {stop} > {last}:")
    w.code.line(f"    {stop} = {last}")
    views: dict[Load, str] = {}
    for load, shift in ahead.loads.items():
        if shift is None:
            views[load] = w.names.temporary("t")
            w.code.line(
                f"{views[load]} = {w.operands.array(load.array)}[{subscript(indices[load])}]"
            )
            continue
        ends = [f"{end} + {shift}" if shift else end for end in (start, stop)]
        views[load] = w.names.temporary("ahead")
        index = subscript([*indices[load], ":".join(ends)])
        w.code.line(f"{views[load]} = {w.operands.array(load.array)}[{index}]")
    w.code.line(f"{n} = {stop} - {start}")
    for load, view in views.items():  # an index that is outside raises in its iteration
        if ahead.loads[load] is not None:
            w.code.line(f"if {n} > {view}.shape[0]:")
            w.code.line(f"    {n} = {view}.shape[0]")
    rooms = [w.names.temporary("strip") for _ in ahead.calls]
    w.arrays.open[0].made += [
        f"{room} = np.empty(({_LENGTH + width},), np.float64)" for room in rooms
    ]
    (k,) = w.loops.index_names(1)
    w.code.line(f"for {k} in range(0, {n}, {width}):")
    with w.code.indented():
        for op, room in zip(ahead.calls, rooms, strict=True):
            arguments = _text(ahead, op.args[0], fixed, views, f"{width}, {n}", k)
            text = (
                f"vector_write(vector_{library_name(op.function)}({arguments}), None, {room}, {k})"
            )
            w.draft.vector_line(text, op)
    for op, room in zip(ahead.calls, rooms, strict=True):
        w.numbers.ahead[op] = room
    return start, stop


def _name_fixed(w: Parts, ahead: Ahead, x: Operand, fixed: dict[Value, str]) -> None:
    """Name the loop invariants in an argument."""
    if not isinstance(x, Value) or x in fixed:
        return
    if x not in ahead.inside:
        fixed[x] = w.operands.atom(w.operands.term(x)).text
        return
    op = ahead.made[x]
    for a in op.args if isinstance(op, Apply) else ():
        _name_fixed(w, ahead, a, fixed)


def _text(
    ahead: Ahead, x: Operand, fixed: dict[Value, str], views: dict[Load, str], ends: str, k: str
) -> str:
    """W values of an argument as source."""
    if not isinstance(x, Value):
        return f"({constant(x).text})"
    if x in fixed:
        return fixed[x]
    op = ahead.made[x]
    if isinstance(op, Load):
        is_fixed = ahead.loads[op] is None
        return views[op] if is_fixed else f"vector_read({ends}, {views[op]}, {k})"
    assert isinstance(op, Apply)
    parts = [_text(ahead, a, fixed, views, ends, k) for a in op.args]
    if len(parts) == 1:
        return f"(-{parts[0]})"
    ufunc = as_ufunc(op.function)
    algebra = record_of(ufunc).algebra
    assert algebra is not None
    return f"({parts[0]} {algebra.value} {parts[1]})"
