"""NumPy's functions of whole arrays as loops, for the Numba source.

A handler has the signature of its function, after the writer and the operation. It returns the
source of the result, or None if it has written the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from fwdad.codegen.loops.number_terms import Term, cast, literal, numpy_number
from fwdad.codegen.loops.numpy_terms import numpy_term, where_term
from fwdad.errors import UndefinedDerivativeError, type_in_words
from fwdad.ir.abstract_eval.infer import infer
from fwdad.ir.ops import Apply, Operand, Value, is_array
from fwdad.ir.primitives.broadcast_sums import sum_to
from fwdad.ir.types import Dimension, number_type
from fwdad.tangents.scaling import scale_lanes
from fwdad.tangents.straight import with_derivative_of
from fwdad.tangents.symbolic import defined
from fwdad.tangents.zero import undefined_message
from fwdad.transforms.forward import load_lanes, unit_lanes, zero_lanes

Writer = Any  # the NumbaWriter: it knows this module, not the other way round
FLOAT64 = np.dtype(float)
HANDLERS: dict[Any, Callable[..., str | None]] = {}


class Leaf(NamedTuple):
    """An array that an elementwise expression reads: its name and its lengths."""

    name: str
    shape: tuple[Dimension, ...]
    value: Value | None


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


# -- elementwise, beside the ufuncs


def _clip(dtype: np.dtype[Any], x: Term, low: Term, high: Term) -> Term:
    made = numpy_term(np.minimum, [numpy_term(np.maximum, [x, low]), high])
    return cast(made, dtype)


def _scale(dtype: np.dtype[Any], d: Term, lanes: Term) -> Term:
    """A product in which a lane that is zero stays zero, whatever the partial is."""
    product = cast(numpy_term(np.multiply, [d, lanes]), dtype)
    zero = literal(0, numpy_number(dtype))
    return Term(f"{zero} if {lanes.at(1)} == 0 else {product.at(1)}", -2, numpy_number(dtype))


ELEMENTWISE: dict[Any, Callable[..., Term]] = {
    scale_lanes: _scale,
    sum_to: lambda _dtype, x: x,
    np.ndarray.copy: lambda _dtype, x: x,
    np.clip: _clip,
    np.where: lambda dtype, c, a, b: where_term(c, a, b, dtype),
    with_derivative_of: lambda dtype, value, _: cast(value, dtype),
}


# -- what a loop over an operand needs


@contextmanager
def reading(w: Writer, a: Operand) -> Iterator[tuple[Value, list[str], dict[Any, str]]]:
    """An array about to be read in a loop, with lengths and steps; it may still be deferred.

    What it reads is compared with the lengths, so that indices below these are inside.
    """
    a = as_array(w, a)
    if a in w._lazy:
        leaves = w.prepare(w._lazy[a])
        lengths, steps = w.lengths(leaves, a.type.ndim)
        w.compare(leaves, lengths, steps)
        yield a, lengths, steps
        w.done(a)
    else:
        name = w.array(a)
        yield a, [length_text(d, name, k) for k, d in enumerate(a.type.shape)], {}


def as_array(w: Writer, a: Operand) -> Value:
    """An operand as an array; lists and numbers are written into new ones."""
    if is_array(a):
        return a
    value = Value(infer_array(w, a))
    fill_new(w, w.name(value), value.type, a)
    return value


def infer_array(w: Writer, a: Operand) -> Any:
    """The type of ``np.array(a)``."""
    if isinstance(a, (list, tuple, Value)) or number_type(a) is not None:
        return infer(np.array, (a,), {})
    raise w.cannot(f"{type_in_words(a)} as an array")


def length_text(d: Any, name: str, axis: int) -> str:
    """A length as source: a number, or a look-up at run time."""
    return str(d) if isinstance(d, int) else f"{name}.shape[{axis}]"


def name_text(w: Writer, text: str, wanted: str) -> str:
    """A name for an expression, which is assigned if it is not a name already."""
    if text.isidentifier():
        return text
    made = w.temporary(wanted)
    w.line(f"{made} = {text}")
    return made


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes that a reduction goes over, in order; raises if they are not constants."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple) else (axis,)
    for k in given:
        if not isinstance(k, (int, np.integer)) or not -ndim <= k < ndim:
            message = f"axis {k}"
            raise TypeError(message)
    return tuple(sorted(int(k) % ndim for k in given))


# -- lanes of arrays


@handles(load_lanes)
def _load_lanes(w, _op, lanes, *index):
    at = "".join(f", {w.index_text(i)}" for i in index)
    return f"{w.array(lanes)}[:{at}].copy()"


@handles(zero_lanes)
def _zero_lanes(w, op, n, like):
    return w.zeros(op.outputs[0], [w.index_text(n), *lengths_like(w, like)])


@handles(unit_lanes)
def _unit_lanes(w, op, n, k, dtype=None):  # noqa: ARG001
    name, lane = w.name(op.outputs[0]), w.atom(w.term(k)).text
    w.line(f"{name} = {w.zeros(op.outputs[0], [w.index_text(n)])}", op)
    w.line(f"if 0 <= {lane} < {w.index_text(n)}:")
    w.line(f"    {name}[{lane}] = {literal(1, numpy_number(op.outputs[0].type.dtype))}")


@handles(defined)
def _defined(w, op, x, bad, reason):
    w.line(f"if {cast(w.number(bad), np.dtype(bool)).text}:", op)
    name = w.function(UndefinedDerivativeError)
    w.line(f"    raise {name}({undefined_message(reason)!r})")
    return w.array(x) if is_array(x) else w.term(x).text


# -- new arrays


def shape_text(w: Writer, shape: Operand) -> list[str]:
    """A shape that is an argument, as a list of sources."""
    given = shape if isinstance(shape, (tuple, list)) else [shape]
    return [w.index_text(n) for n in given]


def filled(w: Writer, op: Apply, lengths: list[str], fill: Operand) -> None:
    """Write a new array with the same number everywhere."""
    out = op.outputs[0]
    number = w.number(fill)
    if number.kind == "i" and not is_array(fill):
        number = w.converted(number, out.type.dtype, item=False)
    value = w.stored(w.atom(number), out.type.dtype)
    w.new_array(out, lengths)
    index = w.open_loops(lengths)
    w.line(f"{w.name(out)}[{w.at(index)}] = {value}")
    w.close_loops(index)


def lengths_like(w: Writer, a: Operand) -> list[str]:
    """The lengths of an operand as sources."""
    if not is_array(a):
        return []
    name = w.array(a)
    return [length_text(d, name, k) for k, d in enumerate(a.type.shape)]


def tuple_text(items: Sequence[str]) -> str:
    """Sources as a tuple."""
    return f"({', '.join(items)},)" if len(items) == 1 else f"({', '.join(items)})"


@handles(np.zeros)
def _zeros(w, op, shape, dtype=None, order="C"):  # noqa: ARG001
    w.new_array(op.outputs[0], shape_text(w, shape), zeros=True)


@handles(np.ones)
def _ones(w, op, shape, dtype=None, order="C"):  # noqa: ARG001
    return f"np.ones({tuple_text(shape_text(w, shape))}, {w.dtype(op.outputs[0].type.dtype)})"


@handles(np.empty)
def _empty(w, op, shape, dtype=None, order="C", device=None, like=None):  # noqa: ARG001
    return w.empty(shape_text(w, shape), op.outputs[0].type.dtype, op.outputs[0])


@handles(np.full)
def _full(w, op, shape, fill_value, dtype=None):  # noqa: ARG001
    filled(w, op, shape_text(w, shape), fill_value)


@handles(np.zeros_like)
def _zeros_like(w, op, a, dtype=None):  # noqa: ARG001
    w.new_array(op.outputs[0], lengths_like(w, a), zeros=True)


@handles(np.ones_like)
def _ones_like(w, op, a, dtype=None):  # noqa: ARG001
    return f"np.ones({tuple_text(lengths_like(w, a))}, {w.dtype(op.outputs[0].type.dtype)})"


@handles(np.empty_like)
def _empty_like(w, op, a, dtype=None):  # noqa: ARG001
    return w.empty(lengths_like(w, a), op.outputs[0].type.dtype, op.outputs[0])


@handles(np.full_like)
def _full_like(w, op, a, fill_value, dtype=None, shape=None, order="K"):  # noqa: ARG001
    filled(w, op, lengths_like(w, a) if shape is None else shape_text(w, shape), fill_value)


@handles(np.eye, np.identity)
def _eye(w, op, n, M=None, k=0, dtype=None):
    dtype = op.outputs[0].type.dtype
    rows = w.index_text(n)
    columns = rows if M is None else w.index_text(M)
    name = w.name(op.outputs[0])
    w.line(f"{name} = np.zeros(({rows}, {columns}), {w.dtype(dtype)})")
    (i,) = w.index_names(1)
    last = f"{w.help('smaller')}({rows}, {columns} - {k})"
    w.line(f"for {i} in range({max(0, -k)}, {last}):")
    w.line(f"    {name}[{i}, {i} + {k}] = {literal(1, numpy_number(dtype))}")


@handles(np.arange)
def _arange(w, op, *bounds, dtype=None):
    dtype = op.outputs[0].type.dtype
    start, stop, step = {1: (0, *bounds, 1), 2: (*bounds, 1)}.get(len(bounds), bounds)
    if dtype == FLOAT64:
        _arange_of_floats(w, op, start, stop, step)
        return None
    if dtype != np.dtype(np.int64):
        message = f"of {dtype}"
        raise TypeError(message)
    texts = [w.index_text(b) for b in (start, stop, step)]
    return f"np.arange({', '.join(texts)})"


def _arange_of_floats(w: Writer, op: Apply, *bounds: Operand) -> None:
    """Write ``np.arange`` of floats as NumPy does: the step is the second number less the first."""
    start, stop, step = (
        w.atom(cast(w.term(b), FLOAT64), t) for b, t in zip(bounds, "abd", strict=True)
    )
    name, ratio, gap = w.name(op.outputs[0]), w.temporary("ratio"), w.temporary("gap")
    (i,) = w.index_names(1)
    w.line(f"{ratio} = {w.help('divide')}({stop.at(5)} - {start.at(6)}, {step.text})")
    w.line(f"if not abs({ratio}) < 2.0**62:")
    w.line("    raise ValueError('Maximum allowed size exceeded')")
    w.line(f"{gap} = {start.at(5)} + {step.at(6)} - {start.at(6)}")
    length = f"{w.help('larger')}(0, math.ceil({ratio}))"
    w.line(f"{name} = {w.empty([length], FLOAT64)}")
    w.line(f"for {i} in range({name}.shape[0]):")
    w.line(f"    {name}[{i}] = {start.at(5)} + {i} * {gap}")


@handles(np.linspace)
def _linspace(w, op, start, stop, num=50, endpoint=True):
    dtype = op.outputs[0].type.dtype
    if not isinstance(num, int) or op.outputs[0].type.ndim != 1 or dtype.kind != "f" or num < 2:
        message = "of this kind"
        raise TypeError(message)
    first, last = (w.atom(cast(w.term(x), dtype), t) for x, t in ((start, "a"), (stop, "b")))
    name = w.name(op.outputs[0])
    (i,) = w.index_names(1)
    gap = w.temporary("gap", numpy_number(dtype))
    w.line(f"{gap} = ({last.at(6)} - {first.at(7)}) / {float(num - 1 if endpoint else num)}")
    w.line(f"{name} = {w.empty([str(num)], dtype)}")
    w.line(f"for {i} in range({num}):")
    w.line(f"    {name}[{i}] = {i} * {gap} + {first.at(6)}")
    if endpoint:
        w.line(f"{name}[{num - 1}] = {last.text}")


@handles(np.array, np.asarray, np.asanyarray, np.ascontiguousarray)
def _array(w, op, a, dtype=None, *, copy=...):  # noqa: ARG001
    out = op.outputs[0]
    if is_array(a):
        anew = op.function is np.array if copy is ... else copy is True
        keep = not anew and a.type.dtype == out.type.dtype
        if copy is False and not keep:
            message = "that must not copy"
            raise TypeError(message)
        if keep and (op.function is not np.ascontiguousarray or w.is_written(a)):
            if op.function is np.ascontiguousarray:
                message = "of an array that is written"
                raise TypeError(message)
            return w.text(a)
    fill_new(w, w.name(out), out.type, a)
    return None


def fill_new(w: Writer, name: str, t: Any, a: Operand) -> None:
    """Write a new array with the content of nested lists of numbers and arrays."""
    if is_array(a):
        with reading(w, a) as (value, lengths, steps):
            w.line(f"{name} = {w.empty(lengths, t.dtype)}")
            index = w.open_loops(lengths)
            text = w.stored(w.element(value, index, steps), t.dtype)
            w.line(f"{name}[{w.at(index)}] = {text}")
            w.close_loops(index)
        return
    lengths = []
    inner: Any = a
    while isinstance(inner, (list, tuple)):
        lengths.append(str(len(inner)))
        inner = inner[0] if inner else None
    if is_array(inner):
        source = w.array(inner)
        lengths += [length_text(d, source, k) for k, d in enumerate(inner.type.shape)]
    if len(lengths) != t.ndim:
        message = "of a ragged list"
        raise TypeError(message)
    # items first: what they compute is written before the array that is being filled
    flat = list(_flat(w, a, ()))
    w.line(f"{name} = {w.empty(lengths, t.dtype)}")
    for at, item in flat:
        if is_array(item):
            source = w.array(item)
            own = [length_text(d, source, k) for k, d in enumerate(item.type.shape)]
            for n, wanted in zip(own, lengths[len(at) :], strict=True):
                if n != wanted:
                    w.line(f"if {n} != {wanted}:")
                    w.line("    raise ValueError('setting an array element with a sequence.')")
            index = w.open_loops(own)
            place = w.at([*map(str, at), *index])
            w.line(f"{name}[{place}] = {w.stored(w.element(item, index), t.dtype)}")
            w.close_loops(index)
        else:
            place = w.at([str(k) for k in at])
            made = w.converted(item, t.dtype, item=True)
            w.line(f"{name}[{place}] = {w.stored(made, t.dtype)}")


def _flat(w: Writer, a: Operand, at: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
    if isinstance(a, (list, tuple)):
        for k, item in enumerate(a):
            yield from _flat(w, item, (*at, k))
    elif is_array(a) and a.type.ndim:
        w.array(a)
        yield at, a
    else:
        yield at, w.term(a)


@handles(np.copy, np.ndarray.copy)
def _copy(w, op, a, order="C"):  # noqa: ARG001
    if a in w._lazy:
        return w.text(a)
    out = op.outputs[0]
    if w.is_in_order(out) and w.is_in_order(a) and not w.has_workspace(out):
        return f"{w.array(a)}.copy()"
    with reading(w, a) as (value, lengths, steps):
        w.new_array(out, lengths)
        index = w.open_loops(lengths)
        w.line(f"{w.name(out)}[{w.at(index)}] = {w.element(value, index, steps).text}")
        w.close_loops(index)
    return None


@handles(np.ndarray.astype)
def _astype(w, op, a, dtype, copy=True):
    if not copy or (a.type.dtype.kind == "c" and np.dtype(dtype).kind != "c"):
        message = "without a copy"
        raise TypeError(message)
    fill_new(w, w.name(op.outputs[0]), op.outputs[0].type, a)
