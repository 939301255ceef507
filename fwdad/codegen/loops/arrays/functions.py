"""NumPy's functions of whole arrays as loops, for the Numba source.

A handler has the signature of its function, after the writer and the operation. It returns the
source of the result, or None if it has written the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from fwdad.codegen.loops.notation import lengths_of, subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.terms.number_terms import cast, literal, numpy_number
from fwdad.errors import UndefinedDerivativeError, UntraceableError, type_in_words
from fwdad.ir.abstract_eval.infer import infer
from fwdad.ir.ops import Apply, Operand, Value, is_array
from fwdad.ir.types import number_type
from fwdad.tangents.symbolic import as_traced, defined
from fwdad.tangents.zero import undefined_message
from fwdad.transforms.forward import load_lanes, unit_lanes, zero_lanes

FLOAT64 = np.dtype(float)
HANDLERS: dict[Any, Callable[..., str | None]] = {}


def handles(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a handler for functions."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        for f in functions:
            HANDLERS[f] = handler
            inner = getattr(f, "_implementation", None)
            if inner is not None:
                HANDLERS[inner] = handler
        return handler

    return register


def find(function: Any) -> Callable[..., Any] | None:
    """The handler of a function, or None."""
    try:
        return HANDLERS.get(function)
    except TypeError:
        return None


# -- what a loop over an operand needs


@contextmanager
def reading(w: Parts, a: Operand) -> Iterator[tuple[Value, list[str], dict[Any, str]]]:
    """An array about to be read in a loop, with lengths and steps; it may still be deferred.

    What it reads is compared with the lengths, so that indices below these are inside.
    """
    a = as_array(w, a)
    if a in w.elements.lazy:
        leaves = w.elements.prepare(w.elements.lazy[a])
        lengths, steps = w.elements.lengths(leaves, a.type.ndim)
        w.elements.compare(leaves, lengths, steps)
        yield a, lengths, steps
        w.elements.done(a)
    else:
        name = w.operands.array(a)
        yield a, lengths_of(a, name), {}


def as_array(w: Parts, a: Operand) -> Value:
    """An operand as an array; lists and numbers are written into new ones."""
    if is_array(a):
        return a
    value = Value(infer_array(w, a))
    fill_new(w, value, a)
    return value


def infer_array(w: Parts, a: Operand) -> Any:
    """The type of ``np.array(a)``."""
    if isinstance(a, (list, tuple, Value)) or number_type(a) is not None:
        return infer(np.array, (a,), {})
    raise w.operands.cannot(f"{type_in_words(a)} as an array")


def write_where(
    w: Parts,
    lengths: Sequence[str],
    condition: Callable[[list[str]], str],
    items: Callable[[list[str]], Sequence[str]],
    made: Sequence[str],
    dtype: np.dtype[Any],
    counter: str = "",
) -> None:
    """Write new vectors of the items where a condition holds; it is counted first.

    Condition and items are source, given the indices of the loops. A ``counter`` counts elements.
    """
    count = w.names.temporary("count")
    for last in (False, True):
        w.code.line(f"{count} = 0")
        if counter:
            w.code.line(f"{counter} = 0")
        with w.loops.nest(lengths) as loop:
            w.code.line(f"if {condition(loop)}:")
            for name, item in zip(made, items(loop), strict=True) if last else ():
                w.code.line(f"    {name}[{count}] = {item}")
            w.code.line(f"    {count} += 1")
            if counter:
                w.code.line(f"{counter} += 1")
        for name in made if not last else ():
            w.code.line(f"{name} = {w.arrays.empty([count], dtype)}")


def name_text(w: Parts, text: str, wanted: str) -> str:
    """A name for an expression, which is assigned if it is not a name already."""
    if text.isidentifier():
        return text
    name = w.names.temporary(wanted)
    w.code.line(f"{name} = {text}")
    return name


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes that a reduction goes over, in order; raises if they are not constants."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    for k in axes:
        if not isinstance(k, (int, np.integer)) or not -ndim <= k < ndim:
            raise TypeError(f"along axis {k}: no int, or outside")
    return tuple(sorted(int(k) % ndim for k in axes))


# -- lanes of arrays


@handles(load_lanes)
def _load_lanes(w: Parts, _op, lanes, *index):
    at = "".join(f", {w.operands.index_text(i)}" for i in index)
    return f"{w.operands.array(lanes)}[:{at}].copy()"


@handles(zero_lanes)
def _zero_lanes(w: Parts, op, n, like):
    lengths = [w.operands.index_text(n), *lengths_like(w, like)]
    w.arrays.new(op.outputs[0], lengths, zeros=True)


@handles(unit_lanes)
def _unit_lanes(w: Parts, op, n, k, dtype=None):  # noqa: ARG001
    name, lane = w.names.name(op.outputs[0]), w.operands.atom(w.operands.term(k)).text
    w.arrays.new(op.outputs[0], [w.operands.index_text(n)], op, zeros=True)
    w.code.line(f"if 0 <= {lane} < {w.operands.index_text(n)}:")
    w.code.line(f"    {name}[{lane}] = {literal(1, numpy_number(op.outputs[0].type.dtype))}")


@handles(defined, as_traced)
def _defined(w: Parts, op, x, bad, reason):
    w.code.line(f"if {cast(w.operands.number(bad), np.dtype(bool)).text}:", op)
    refused = op.function is as_traced
    name = w.literals.function(UntraceableError if refused else UndefinedDerivativeError)
    w.code.line(f"    raise {name}({reason if refused else undefined_message(reason)!r})")
    return w.operands.array(x) if is_array(x) else w.operands.term(x).text


# -- new arrays


def shape_text(w: Parts, shape: Operand) -> list[str]:
    """A shape that is an argument, as a list of sources."""
    lengths = shape if isinstance(shape, (tuple, list)) else [shape]
    return [w.operands.index_text(n) for n in lengths]


def filled(w: Parts, op: Apply, lengths: list[str], fill: Operand) -> None:
    """Write a new array with the same number everywhere."""
    out = op.outputs[0]
    number = w.operands.number(fill)
    if number.kind == "i" and not is_array(fill):
        number = w.operands.converted(number, out.type.dtype, item=False)
    value = w.operands.stored(w.operands.atom(number), out.type.dtype)
    w.arrays.new(out, lengths)
    with w.loops.nest(lengths, inner=True) as index:
        w.code.line(f"{w.names.name(out)}[{subscript(index)}] = {value}")


def lengths_like(w: Parts, a: Operand) -> list[str]:
    """The lengths of an operand as sources."""
    if not is_array(a):
        return []
    name = w.operands.array(a)
    return lengths_of(a, name)


@handles(np.zeros)
def _zeros(w: Parts, op, shape, dtype=None, order="C"):  # noqa: ARG001
    w.arrays.new(op.outputs[0], shape_text(w, shape), zeros=True)


@handles(np.ones)
def _ones(w: Parts, op, shape, dtype=None, order="C"):  # noqa: ARG001
    filled(w, op, shape_text(w, shape), 1)


@handles(np.empty)
def _empty(w: Parts, op, shape, dtype=None, order="C", device=None, like=None):  # noqa: ARG001
    w.arrays.new(op.outputs[0], shape_text(w, shape))


@handles(np.full)
def _full(w: Parts, op, shape, fill_value, dtype=None):  # noqa: ARG001
    filled(w, op, shape_text(w, shape), fill_value)


@handles(np.zeros_like)
def _zeros_like(w: Parts, op, a, dtype=None):  # noqa: ARG001
    w.arrays.new(op.outputs[0], lengths_like(w, a), zeros=True)


@handles(np.ones_like)
def _ones_like(w: Parts, op, a, dtype=None):  # noqa: ARG001
    filled(w, op, lengths_like(w, a), 1)


@handles(np.empty_like)
def _empty_like(w: Parts, op, a, dtype=None, order="K", shape=None):  # noqa: ARG001
    lengths = lengths_like(w, a) if shape is None else shape_text(w, shape)
    w.arrays.new(op.outputs[0], lengths)


@handles(np.full_like)
def _full_like(w: Parts, op, a, fill_value, dtype=None, shape=None, order="K"):  # noqa: ARG001
    filled(w, op, lengths_like(w, a) if shape is None else shape_text(w, shape), fill_value)


@handles(np.eye, np.identity)
def _eye(w: Parts, op, n, M=None, k=0, dtype=None):
    dtype = op.outputs[0].type.dtype
    rows = w.operands.index_text(n)
    columns = rows if M is None else w.operands.index_text(M)
    name = w.names.name(op.outputs[0])
    w.arrays.new(op.outputs[0], [rows, columns], zeros=True)
    (i,) = w.loops.index_names(1)
    last = f"{w.helpers.use('smaller')}({rows}, {columns} - {k})"
    w.code.line(f"for {i} in range({max(0, -k)}, {last}):")
    w.code.line(f"    {name}[{i}, {i} + {k}] = {literal(1, numpy_number(dtype))}")


@handles(np.arange)
def _arange(w: Parts, op, *bounds, dtype=None):
    dtype = op.outputs[0].type.dtype
    start, stop, step = {1: (0, *bounds, 1), 2: (*bounds, 1)}.get(len(bounds), bounds)
    if dtype == FLOAT64:
        _arange_of_floats(w, op, start, stop, step)
        return None
    if dtype != np.dtype(np.int64):
        raise TypeError(f"into {dtype}: only int64 and float64 compile")
    texts = [w.operands.index_text(b) for b in (start, stop, step)]
    return f"np.arange({', '.join(texts)})"


def _arange_of_floats(w: Parts, op: Apply, *bounds: Operand) -> None:
    """Write ``np.arange`` of floats as NumPy does: the step is the second number less the first."""
    start, stop, step = (
        w.operands.atom(cast(w.operands.term(b), FLOAT64), t)
        for b, t in zip(bounds, "abd", strict=True)
    )
    name = w.names.name(op.outputs[0])
    ratio, gap = w.names.temporary("ratio"), w.names.temporary("gap")
    (i,) = w.loops.index_names(1)
    w.code.line(f"{ratio} = {w.helpers.use('divide')}({stop.at(5)} - {start.at(6)}, {step.text})")
    w.code.line(f"if not abs({ratio}) < 2.0**62:")
    w.code.line("    raise ValueError('Maximum allowed size exceeded')")
    w.code.line(f"{gap} = {start.at(5)} + {step.at(6)} - {start.at(6)}")
    length = f"{w.helpers.use('larger')}(0, math.ceil({ratio}))"
    w.arrays.new(op.outputs[0], [length])
    w.code.line(f"for {i} in range({name}.shape[0]):")
    w.code.line(f"    {name}[{i}] = {start.at(5)} + {i} * {gap}")


@handles(np.linspace)
def _linspace(w: Parts, op, start, stop, num=50, endpoint=True):
    dtype = op.outputs[0].type.dtype
    if not isinstance(num, int) or op.outputs[0].type.ndim != 1 or dtype.kind != "f" or num < 2:
        raise TypeError("with a num that is no int or below 2, or with arrays as ends")
    ends = ((start, "a"), (stop, "b"))
    first, last = (w.operands.atom(cast(w.operands.term(x), dtype), t) for x, t in ends)
    name = w.names.name(op.outputs[0])
    (i,) = w.loops.index_names(1)
    gap = w.names.temporary("gap", numpy_number(dtype))
    w.code.line(f"{gap} = ({last.at(6)} - {first.at(7)}) / {float(num - 1 if endpoint else num)}")
    w.arrays.new(op.outputs[0], [str(num)])
    w.code.line(f"for {i} in range({num}):")
    w.code.line(f"    {name}[{i}] = {i} * {gap} + {first.at(6)}")
    if endpoint:
        w.code.line(f"{name}[{num - 1}] = {last.text}")


@handles(np.array, np.asarray, np.asanyarray, np.ascontiguousarray)
def _array(w: Parts, op, a, dtype=None, *, copy=...):  # noqa: ARG001
    out = op.outputs[0]
    if is_array(a):
        anew = op.function is np.array if copy is ... else copy is True
        keep = not anew and a.type.dtype == out.type.dtype
        if copy is False and not keep:
            raise TypeError("with copy=False where a copy is needed")
        if keep and (op.function is not np.ascontiguousarray or w.memory.is_written(a)):
            if op.function is np.ascontiguousarray:
                raise TypeError("of an array that is written")
            return w.operands.text(a)
    fill_new(w, out, a)
    return None


def fill_new(w: Parts, out: Value, a: Operand) -> None:
    """Write a new array with the content of nested lists of numbers and arrays."""
    name, t = w.names.name(out), out.type
    if is_array(a):
        with reading(w, a) as (value, lengths, steps):
            w.arrays.new(out, lengths)
            with w.loops.nest(lengths, inner=True) as index:
                text = w.operands.stored(w.elements.element(value, index, steps), t.dtype)
                w.code.line(f"{name}[{subscript(index)}] = {text}")
        return
    lengths = []
    inner: Any = a
    while isinstance(inner, (list, tuple)):
        lengths.append(str(len(inner)))
        inner = inner[0] if inner else None
    if is_array(inner):
        source = w.operands.array(inner)
        lengths += lengths_of(inner, source)
    if len(lengths) != t.ndim:
        raise TypeError("of a ragged list")
    # items first: what they compute is written before the array that is being filled
    flat = list(_flat(w, a, ()))
    w.arrays.new(out, lengths)
    for at, item in flat:
        if is_array(item):
            source = w.operands.array(item)
            item_lengths = lengths_of(item, source)
            for n, wanted in zip(item_lengths, lengths[len(at) :], strict=True):
                if n != wanted:
                    w.code.line(f"if {n} != {wanted}:")
                    w.code.line("    raise ValueError('setting an array element with a sequence.')")
            with w.loops.nest(item_lengths, inner=True) as index:
                place = subscript([*map(str, at), *index])
                text = w.operands.stored(w.elements.element(item, index), t.dtype)
                w.code.line(f"{name}[{place}] = {text}")
        else:
            place = subscript([str(k) for k in at])
            term = w.operands.converted(item, t.dtype, item=True)
            w.code.line(f"{name}[{place}] = {w.operands.stored(term, t.dtype)}")


def _flat(w: Parts, a: Operand, at: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
    if isinstance(a, (list, tuple)):
        for k, item in enumerate(a):
            yield from _flat(w, item, (*at, k))
    elif is_array(a) and a.type.ndim:
        w.operands.array(a)
        yield at, a
    else:
        yield at, w.operands.term(a)


@handles(np.copy, np.ndarray.copy)
def _copy(w: Parts, op, a, order="C"):  # noqa: ARG001
    if a in w.elements.lazy:
        return w.operands.text(a)
    out = op.outputs[0]
    if w.arrays.is_in_order(out) and w.arrays.is_in_order(a) and not w.arrays.has_workspace(out):
        return f"{w.operands.array(a)}.copy()"
    with reading(w, a) as (value, lengths, steps):
        w.arrays.new(out, lengths)
        with w.loops.nest(lengths, inner=True) as index:
            name, item = w.names.name(out), w.elements.element(value, index, steps)
            w.code.line(f"{name}[{subscript(index)}] = {item.text}")
    return None


@handles(np.ndarray.astype)
def _astype(w: Parts, op, a, dtype, copy=True):
    if not copy or (a.type.dtype.kind == "c" and np.dtype(dtype).kind != "c"):
        raise TypeError("with copy=False, or from complex to real")
    fill_new(w, op.outputs[0], a)
