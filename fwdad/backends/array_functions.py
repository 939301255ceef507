"""NumPy's functions of whole arrays as loops, for the Numba source.

A handler is called as the function is, after the writer and the operation. It answers the source of
the result, or None if it has written the definition.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from fwdad.backends.elementwise import (
    ATOM,
    Term,
    cast,
    literal,
    numpy_number,
    numpy_term,
    where_term,
)
from fwdad.tangents.chunk import scale_lanes
from fwdad.tape.forward import load_lanes, zero_lanes
from fwdad.tape.infer import infer
from fwdad.tape.ops import Apply, Load, Operand, Store, Update, Value, is_array
from fwdad.tape.types import ArrayType, Number, Size, number_type

if TYPE_CHECKING:
    from fwdad.backends.numba_source import NumbaWriter

Writer = Any
_FLOAT = np.dtype(float)
HANDLERS: dict[Any, Callable[..., str | None]] = {}


def handles(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give functions their form."""

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
    """A lane that is zero stays zero, whatever the partial is."""
    product = cast(numpy_term(np.multiply, [d, lanes]), dtype)
    zero = literal(0, numpy_number(dtype))
    return Term(f"{zero} if {lanes.at(1)} == 0 else {product.at(1)}", -2, numpy_number(dtype))


ELEMENTWISE: dict[Any, Callable[..., Term]] = {
    scale_lanes: _scale,
    np.clip: _clip,
    np.where: lambda dtype, c, a, b: where_term(c, a, b, dtype),
}


# -- what a loop over an operand needs


@contextmanager
def reading(w: Writer, a: Operand) -> Iterator[tuple[Value, list[str], dict[Any, str]]]:
    """An array that is about to be read in a loop: lengths and steps; it may still wait."""
    a = as_array(w, a)
    if a in w._lazy:
        leaves = w.prepare(w._lazy[a])
        lengths, steps = w.lengths(leaves, a.type.ndim)
        yield a, lengths, steps
        w.done(a)
    else:
        name = w.array(a)
        yield a, [_length(d, name, k) for k, d in enumerate(a.type.shape)], {}


def as_array(w: Writer, a: Operand) -> Value:
    """An operand as an array; lists and numbers are written into new ones."""
    if is_array(a):
        return a
    value = Value(infer_array(w, a))
    _fill_new(w, w.name(value), value.type, a)
    return value


def infer_array(w: Writer, a: Operand) -> Any:
    """The type of ``np.array(a)``."""
    if isinstance(a, (list, tuple, Value)) or number_type(a) is not None:
        return infer(np.array, (a,), {})
    raise w.cannot(f"a {type(a).__name__} as an array")


def _length(d: Any, name: str, axis: int) -> str:
    return str(d) if isinstance(d, int) else f"{name}.shape[{axis}]"


def _name_text(w: Writer, text: str, wanted: str) -> str:
    if text.isidentifier():
        return text
    made = w.temporary(wanted)
    w.line(f"{made} = {text}")
    return made


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
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
    dtype = op.outputs[0].type.dtype
    return f"np.zeros({_tuple([w.index_text(n), *_like(w, like)])}, {w.dtype(dtype)})"


# -- reductions


class _Fold:
    """A reduction: the identity, and how an element joins the accumulator."""

    def __init__(self, ufunc: np.ufunc, identity: Any) -> None:
        self.ufunc = ufunc
        self.identity = identity

    def step(self, w: Writer, place: str, element: Term, dtype: np.dtype[Any]) -> str:
        old = Term(place, ATOM, numpy_number(dtype))
        made = numpy_term(self.ufunc, [old, cast(element, dtype)])
        return f"{place} = {w.stored(made, dtype)}"


_SUM, _PROD = _Fold(np.add, 0), _Fold(np.multiply, 1)
_ANY, _ALL = _Fold(np.logical_or, False), _Fold(np.logical_and, True)
_WIDE = {np.dtype(np.float32): _FLOAT, np.dtype(np.complex64): np.dtype(complex)}


def _count(lengths: Sequence[str], axes: Sequence[int]) -> str:
    return " * ".join(lengths[k] for k in axes) or "1"


def _reduce(
    w: Writer, op: Apply, fold: _Fold, a: Operand, axis: Any, keepdims: bool, mean: bool = False,
    power: int = 1,
) -> str | None:  # fmt: skip
    out = op.outputs[0]
    dtype = out.type.dtype
    wide = _WIDE.get(dtype, dtype)
    with reading(w, a) as (value, lengths, steps):
        ndim = value.type.ndim
        axes = _axes(axis, ndim)
        kept = [k for k in range(ndim) if k not in axes]
        count = _count(lengths, axes)
        element = lambda index: _power(w, w.element(value, index, steps), power)  # noqa: E731
        start = literal(fold.identity, numpy_number(wide))
        if not kept:
            total = w.temporary("total", numpy_number(wide))
            w.line(f"{total} = {start}")
            index = w.open_loops(lengths)
            w.line(fold.step(w, total, element(index), wide))
            w.close_loops(index)
            made = _finish(w, Term(total, ATOM, numpy_number(wide)), count, dtype, mean)
            if isinstance(out.type, Number):
                return made
            name = w.name(out)
            w.line(f"{name} = {w.empty(['1'] * out.type.ndim, dtype)}")
            w.line(f"{name}[{w.at(['0'] * out.type.ndim)}] = {made}")
            return None
        name = w.name(out)
        shape = [("1" if k in axes else lengths[k]) for k in range(ndim) if keepdims or k in kept]
        w.line(f"{name} = {w.empty(shape, dtype)}")
        index = w.index_names(ndim)
        place = w.at(
            [("0" if k in axes else index[k]) for k in range(ndim) if keepdims or k in kept]
        )
        with _loops(w, index, lengths, kept):
            total = w.temporary("total", numpy_number(wide))
            w.line(f"{total} = {start}")
            with _loops(w, index, lengths, axes):
                w.line(fold.step(w, total, element(index), wide))
            made = _finish(w, Term(total, ATOM, numpy_number(wide)), count, dtype, mean)
            w.line(f"{name}[{place}] = {made}")
    return None


def _power(_w: Writer, term: Term, power: int) -> Term:
    if power == 1:
        return term
    size = numpy_term(np.absolute, [term]) if term.kind == "c" else term
    return numpy_term(np.multiply, [size, size])


@contextmanager
def _loops(
    w: Writer, index: Sequence[str], lengths: Sequence[str], axes: Sequence[int]
) -> Iterator[None]:
    for k in axes:
        w.line(f"for {index[k]} in range({lengths[k]}):")
        w._indent += 1
    yield
    w._indent -= len(axes)


def _finish(w: Writer, total: Term, count: str, dtype: np.dtype[Any], mean: bool) -> str:
    if not mean:
        return w.stored(total, dtype)
    n = Term(f"float({count})", ATOM, numpy_number(_FLOAT))
    return w.stored(numpy_term(np.divide, [total, n]), dtype)


@handles(np.sum, np.add.reduce)
def _sum(w, op, a, axis=None, dtype=None, keepdims=False):  # noqa: ARG001 (the output has it)
    if op.function == np.add.reduce and "axis" not in op.kwargs and len(op.args) < 2:
        axis = 0
    return _reduce(w, op, _SUM, a, axis, keepdims)


@handles(np.prod)
def _prod(w, op, a, axis=None, dtype=None, keepdims=False):  # noqa: ARG001
    return _reduce(w, op, _PROD, a, axis, keepdims)


@handles(np.mean)
def _mean(w, op, a, axis=None, dtype=None, keepdims=False):  # noqa: ARG001
    return _reduce(w, op, _SUM, a, axis, keepdims, mean=True)


@handles(np.any)
def _any(w, op, a, axis=None, keepdims=False):
    return _reduce(w, op, _ANY, a, axis, keepdims)


@handles(np.all)
def _all(w, op, a, axis=None, keepdims=False):
    return _reduce(w, op, _ALL, a, axis, keepdims)


@handles(np.var)
def _var(w, op, a, axis=None, dtype=None, ddof=0, keepdims=False):  # noqa: ARG001
    return w.stored(_variance(w, a, axis, ddof, keepdims), op.outputs[0].type.dtype)


@handles(np.std)
def _std(w, op, a, axis=None, dtype=None, ddof=0, keepdims=False):  # noqa: ARG001
    variance = _variance(w, a, axis, ddof, keepdims)
    return w.stored(numpy_term(np.sqrt, [variance]), op.outputs[0].type.dtype)


def _variance(w, a, axis, ddof, keepdims):
    value = as_array(w, a)
    if (
        len(_axes(axis, value.type.ndim)) != value.type.ndim
        or keepdims
        or value.type.dtype.kind == "c"
    ):
        message = "along an axis"
        raise TypeError(message)
    name = w.array(value)
    lengths = [_length(d, name, k) for k, d in enumerate(value.type.shape)]
    mean, total = (w.temporary(t, numpy_number(_FLOAT)) for t in ("mean", "total"))
    count = _count(lengths, range(len(lengths)))
    w.line(f"{mean} = 0.0")
    index = w.open_loops(lengths)
    w.line(f"{mean} += {w.element(value, index).text}")
    w.close_loops(index)
    w.line(f"{mean} = {w.help('divide')}({mean}, float({count}))")
    w.line(f"{total} = 0.0")
    w.open_loops(lengths)
    w.line(f"{total} += ({w.element(value, index).text} - {mean})**2")
    w.close_loops(index)
    text = f"{w.help('divide')}({total}, float({count} - {ddof}))"
    return Term(text, ATOM, numpy_number(_FLOAT))


def _extreme(w, op, ufunc, a, axis, keepdims):
    out = op.outputs[0]
    dtype = out.type.dtype
    symbol = ">" if ufunc is np.maximum else "<"
    with reading(w, a) as (value, lengths, steps):
        ndim = value.type.ndim
        axes = _axes(axis, ndim)
        if value.type.dtype.kind not in "iuf":
            message = f"of {value.type.dtype}"
            raise TypeError(message)
        kept = [k for k in range(ndim) if k not in axes]
        unknown = [lengths[k] for k in axes if not lengths[k].isdigit() or lengths[k] == "0"]
        for n in unknown:
            w.line(f"if {n} == 0:")
            w.line(
                f"    raise ValueError('zero-size array to reduction operation {ufunc.__name__} "
                "which has no identity')"
            )
        index = w.index_names(ndim)
        best = w.temporary("best", numpy_number(dtype))
        item = w.temporary("item", numpy_number(dtype))
        nan = f" or {item} != {item}" if dtype.kind == "f" else ""
        whole = not kept and isinstance(out.type, Number)
        if not whole:
            shape = [
                ("1" if k in axes else lengths[k]) for k in range(ndim) if keepdims or k in kept
            ]
            w.line(f"{w.name(out)} = {w.empty(shape, dtype)}")
        with _loops(w, index, lengths, kept):
            first = ["0" if k in axes else index[k] for k in range(ndim)]
            w.line(f"{best} = {w.stored(w.element(value, first, steps), dtype)}")
            with _loops(w, index, lengths, axes):
                w.line(f"{item} = {w.stored(w.element(value, index, steps), dtype)}")
                w.line(f"if {item} {symbol} {best}{nan}:")
                w.line(f"    {best} = {item}")
            if not whole:
                place = [("0" if k in axes else index[k]) for k in range(ndim)
                         if keepdims or k in kept]  # fmt: skip
                w.line(f"{w.name(out)}[{w.at(place)}] = {best}")
    return best if whole else None


@handles(np.max, np.amax)
def _max(w, op, a, axis=None, keepdims=False):
    return _extreme(w, op, np.maximum, a, axis, keepdims)


@handles(np.min, np.amin)
def _min(w, op, a, axis=None, keepdims=False):
    return _extreme(w, op, np.minimum, a, axis, keepdims)


def _position(w, symbol, a, axis):
    value = as_array(w, a)
    dtype = value.type.dtype
    if (value.type.ndim != 1 and axis is not None) or dtype.kind not in "iuf":
        message = "along an axis"
        raise TypeError(message)
    name = w.array(value)
    lengths = [_length(d, name, k) for k, d in enumerate(value.type.shape)]
    best, item = (w.temporary(t, numpy_number(dtype)) for t in ("best", "item"))
    where, k = w.temporary("where"), w.temporary("k")
    w.line(f"if {name}.size == 0:")
    w.line("    raise ValueError('attempt to get argmax of an empty sequence')")
    w.line(f"{best} = {w.element(value, ['0'] * len(lengths)).text}")
    w.line(f"{where} = {k} = 0")
    index = w.open_loops(lengths)
    w.line(f"{item} = {w.element(value, index).text}")
    nan = f" or ({item} != {item} and {best} == {best})" if dtype.kind == "f" else ""
    w.line(f"if {item} {symbol} {best}{nan}:")
    w.line(f"    {best} = {item}")
    w.line(f"    {where} = {k}")
    w.line(f"{k} += 1")
    w.close_loops(index)
    return where


@handles(np.argmax)
def _argmax(w, op, a, axis=None):  # noqa: ARG001
    return _position(w, ">", a, axis)


@handles(np.argmin)
def _argmin(w, op, a, axis=None):  # noqa: ARG001
    return _position(w, "<", a, axis)


@handles(np.count_nonzero)
def _count_nonzero(w, op, a):
    value = as_array(w, a)
    name = w.array(value)
    total = w.temporary("count")
    w.line(f"{total} = 0")
    index = w.open_loops([_length(d, name, k) for k, d in enumerate(value.type.shape)])
    w.line(f"if {w.element(value, index).text} != 0:")
    w.line(f"    {total} += 1")
    w.close_loops(index)
    return w.stored(Term(total, ATOM, numpy_number(np.int64)), op.outputs[0].type.dtype)


def _cumulative(w, op, fold, a, axis):
    value = as_array(w, a)
    if axis is None and value.type.ndim != 1:
        message = "of a flattened array"
        raise TypeError(message)
    out = op.outputs[0]
    dtype, ndim = out.type.dtype, value.type.ndim
    (at,) = _axes(axis if axis is not None else 0, ndim)
    name, source = w.name(out), w.array(value)
    lengths = [_length(d, source, k) for k, d in enumerate(value.type.shape)]
    w.line(f"{name} = {w.empty(lengths, dtype)}")
    index = w.index_names(ndim)
    total = w.temporary("total", numpy_number(dtype))
    with _loops(w, index, lengths, [k for k in range(ndim) if k != at]):
        w.line(f"{total} = {literal(fold.identity, numpy_number(dtype))}")
        with _loops(w, index, lengths, [at]):
            w.line(fold.step(w, total, w.element(value, index), dtype))
            w.line(f"{name}[{w.at(index)}] = {total}")


@handles(np.cumsum)
def _cumsum(w, op, a, axis=None, dtype=None):  # noqa: ARG001
    return _cumulative(w, op, _SUM, a, axis)


@handles(np.cumprod)
def _cumprod(w, op, a, axis=None, dtype=None):  # noqa: ARG001
    return _cumulative(w, op, _PROD, a, axis)


# -- new arrays


def _shape(w: Writer, shape: Operand) -> list[str]:
    given = shape if isinstance(shape, (tuple, list)) else [shape]
    return [w.index_text(n) for n in given]


def _filled(w: Writer, op: Apply, lengths: list[str], fill: Operand) -> str | None:
    dtype = op.outputs[0].type.dtype
    value = w.stored(w.atom(w.number(fill)), dtype)
    return f"np.full({_tuple(lengths)}, {value}, {w.dtype(dtype)})"


def _like(w: Writer, a: Operand) -> list[str]:
    if not is_array(a):
        return []
    name = w.array(a)
    return [_length(d, name, k) for k, d in enumerate(a.type.shape)]


def _tuple(items: Sequence[str]) -> str:
    return f"({', '.join(items)},)" if len(items) == 1 else f"({', '.join(items)})"


@handles(np.zeros)
def _zeros(w, op, shape, dtype=None, order="C"):  # noqa: ARG001
    return f"np.zeros({_tuple(_shape(w, shape))}, {w.dtype(op.outputs[0].type.dtype)})"


@handles(np.ones)
def _ones(w, op, shape, dtype=None, order="C"):  # noqa: ARG001
    return f"np.ones({_tuple(_shape(w, shape))}, {w.dtype(op.outputs[0].type.dtype)})"


@handles(np.empty)
def _empty(w, op, shape, dtype=None, order="C", device=None, like=None):  # noqa: ARG001
    return w.empty(_shape(w, shape), op.outputs[0].type.dtype)


@handles(np.full)
def _full(w, op, shape, fill_value, dtype=None):  # noqa: ARG001
    return _filled(w, op, _shape(w, shape), fill_value)


@handles(np.zeros_like)
def _zeros_like(w, op, a, dtype=None):  # noqa: ARG001
    return f"np.zeros({_tuple(_like(w, a))}, {w.dtype(op.outputs[0].type.dtype)})"


@handles(np.ones_like)
def _ones_like(w, op, a, dtype=None):  # noqa: ARG001
    return f"np.ones({_tuple(_like(w, a))}, {w.dtype(op.outputs[0].type.dtype)})"


@handles(np.empty_like)
def _empty_like(w, op, a, dtype=None):  # noqa: ARG001
    return w.empty(_like(w, a), op.outputs[0].type.dtype)


@handles(np.full_like)
def _full_like(w, op, a, fill_value, dtype=None):  # noqa: ARG001
    return _filled(w, op, _like(w, a), fill_value)


@handles(np.eye, np.identity)
def _eye(w, op, n, M=None, k=0, dtype=None):
    dtype = op.outputs[0].type.dtype
    rows = w.index_text(n)
    columns = rows if M is None else w.index_text(M)
    name = w.name(op.outputs[0])
    w.line(f"{name} = np.zeros(({rows}, {columns}), {w.dtype(dtype)})")
    (i,) = w.index_names(1)
    w.line(f"for {i} in range(max(0, {-k}), min({rows}, {columns} - {k})):")
    w.line(f"    {name}[{i}, {i} + {k}] = {literal(1, numpy_number(dtype))}")


@handles(np.arange)
def _arange(w, op, *bounds, dtype=None):
    dtype = op.outputs[0].type.dtype
    start, stop, step = {1: (0, *bounds, 1), 2: (*bounds, 1)}.get(len(bounds), bounds)
    if dtype != np.dtype(np.int64):
        message = f"of {dtype}"
        raise TypeError(message)
    texts = [w.index_text(b) for b in (start, stop, step)]
    return f"np.arange({', '.join(texts)})"


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
def _array(w, op, a, dtype=None):  # noqa: ARG001
    out = op.outputs[0]
    if is_array(a):
        keep = op.function is not np.array and a.type.dtype == out.type.dtype
        if keep and (op.function is not np.ascontiguousarray or w.is_written(a)):
            if op.function is np.ascontiguousarray:
                message = "of an array that is written"
                raise TypeError(message)
            return w.text(a)
    _fill_new(w, w.name(out), out.type, a)
    return None


def _fill_new(w: Writer, name: str, t: Any, a: Operand) -> None:
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
        lengths += [_length(d, source, k) for k, d in enumerate(inner.type.shape)]
    if len(lengths) != t.ndim:
        message = "of a ragged list"
        raise TypeError(message)
    # items first: what they compute is written before the array that is being filled
    flat = list(_flat(w, a, ()))
    w.line(f"{name} = {w.empty(lengths, t.dtype)}")
    for at, item in flat:
        if is_array(item):
            source = w.array(item)
            own = [_length(d, source, k) for k, d in enumerate(item.type.shape)]
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
            w.line(f"{name}[{place}] = {w.stored(item, t.dtype)}")


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
    fresh = a in w._lazy
    return w.text(a) if fresh else f"{w.array(a)}.copy()"


@handles(np.ndarray.astype)
def _astype(w, op, a, dtype, copy=True):
    if not copy or (a.type.dtype.kind == "c" and np.dtype(dtype).kind != "c"):
        message = "without a copy"
        raise TypeError(message)
    _fill_new(w, w.name(op.outputs[0]), op.outputs[0].type, a)


# -- views and rearrangements


def _reshaped(w: Writer, a: Value, shape: str) -> str:
    if a in w._lazy:
        return f"{w.array(a)}.reshape({shape})"
    name = w.array(a)
    if w.is_written(a):
        return f"{name}.reshape({shape})"  # only a window will do: other layouts do not compile
    return f"np.ascontiguousarray({name}).reshape({shape})"


@handles(np.reshape)
def _reshape(w, op, a, shape, order="C"):
    if order != "C" or not is_array(a) or not a.type.ndim:
        message = f"in order {order}"
        raise TypeError(message)
    lengths = _shape(w, shape)
    result = _reshaped(w, a, _tuple(lengths))
    if w.is_written(op.outputs[0]) and not w.is_written(a):
        return f"{result}.copy()"
    return result


@handles(np.ravel)
def _ravel(w, op, a, order="C"):
    if order != "C" or not a.type.ndim or w.is_written(op.outputs[0]):
        message = f"in order {order}"
        raise TypeError(message)
    return _reshaped(w, a, "-1")


@handles(np.ndarray.flatten)
def _flatten(w, op, a, order="C"):  # noqa: ARG001
    if order != "C" or not a.type.ndim:
        message = f"in order {order}"
        raise TypeError(message)
    return f"{w.array(a)}.copy().reshape(-1)"


@handles(np.transpose, np.matrix_transpose, np.swapaxes, np.moveaxis)
def _transpose(w, op, a, *axes, **options):
    ndim = a.type.ndim
    labels = np.empty((1,) * ndim)
    order = list(range(ndim))
    if op.function is np.matrix_transpose:
        order[-2:] = order[:-3:-1]
    elif op.function is np.transpose:
        given = axes[0] if axes else options.get("axes")
        order = order[::-1] if given is None else [k % ndim for k in given]
    else:
        marked = op.function(np.empty(tuple(range(2, ndim + 2))), *axes, **options).shape
        order = [n - 2 for n in marked]
    if labels.ndim != len(order):
        message = "of these axes"
        raise TypeError(message)
    if order == list(range(ndim)):
        return w.text(a)
    if order == list(range(ndim))[::-1]:
        return f"{w.array(a)}.T"
    return f"{w.array(a)}.transpose({_tuple([str(k) for k in order])})"


@handles(np.squeeze)
def _squeeze(w, op, a, axis=None):  # noqa: ARG001
    axes = (
        [k for k, d in enumerate(a.type.shape) if d == 1]
        if axis is None
        else _axes(axis, a.type.ndim)
    )
    if any(a.type.shape[k] != 1 for k in axes) or (axis is None and any(
        isinstance(d, Size) for d in a.type.shape)) or len(axes) == a.type.ndim:  # fmt: skip
        message = "of axes whose lengths are not known"
        raise TypeError(message)
    return f"{w.array(a)}[{', '.join('0' if k in axes else ':' for k in range(a.type.ndim))}]"


@handles(np.expand_dims)
def _expand_dims(w, op, a, axis):
    axes = _axes(axis, op.outputs[0].type.ndim)
    parts = ["None" if k in axes else ":" for k in range(op.outputs[0].type.ndim)]
    return f"{w.array(a)}[{', '.join(parts)}]"


@handles(np.flip, np.flipud, np.fliplr)
def _flip(w, op, a, axis=None):
    axis = {np.flipud: 0, np.fliplr: 1}.get(op.function, axis)
    axes = _axes(axis, a.type.ndim)
    return f"{w.array(a)}[{', '.join('::-1' if k in axes else ':' for k in range(a.type.ndim))}]"


@handles(np.real)
def _real(w, op, a):  # noqa: ARG001
    if not is_array(a):
        return w.text(a) if w.type_of(a).dtype.kind != "c" else f"{w.term(a).at(ATOM)}.real"
    return w.text(a) if a.type.dtype.kind != "c" else f"{w.array(a)}.real"


@handles(np.imag)
def _imag(w, op, a):
    if w.type_of(a).dtype.kind != "c":
        if is_array(a):
            return f"np.zeros({_tuple(_like(w, a))}, {w.dtype(op.outputs[0].type.dtype)})"
        return literal(0, op.outputs[0].type)
    return f"{w.array(a) if is_array(a) else w.term(a).at(ATOM)}.imag"


def _join(w: Writer, op: Apply, parts: Sequence[Operand], axis: int, new: bool) -> None:
    out = op.outputs[0]
    values = [as_array(w, p) for p in parts]
    names = [w.array(v) for v in values]
    ndim = values[0].type.ndim
    first = [_length(d, names[0], k) for k, d in enumerate(values[0].type.shape)]
    for v, n in zip(values[1:], names[1:], strict=True):
        for k, d in enumerate(v.type.shape):
            if (new or k != axis) and d != values[0].type.shape[k]:
                w.line(f"if {_length(d, n, k)} != {first[k]}:")
                w.line("    raise ValueError('all the input arrays must have the same shape')")
    if new:
        lengths = [*first[:axis], str(len(values)), *first[axis:]]
    else:
        total = [_length(v.type.shape[axis], n, axis) for v, n in zip(values, names, strict=True)]
        lengths = [*first[:axis], " + ".join(total), *first[axis + 1 :]]
    name = w.name(out)
    w.line(f"{name} = {w.empty(lengths, out.type.dtype)}")
    offset = "0"
    for k, (v, n) in enumerate(zip(values, names, strict=True)):
        own = [_length(d, n, j) for j, d in enumerate(v.type.shape)]
        index = w.open_loops(own)
        if new:
            place = [*index[:axis], str(k), *index[axis:]]
        else:
            place = [*index]
            if offset != "0":
                place[axis] = f"{index[axis]} + {offset}"
        text = w.stored(w.element(v, index), out.type.dtype)
        w.line(f"{name}[{w.at(place)}] = {text}")
        w.close_loops(index)
        if not new:
            moved = own[axis] if offset == "0" else f"{offset} + {own[axis]}"
            offset = _name_text(w, moved, "offset") if k + 1 < len(values) else offset
    if not ndim and not new:
        message = "of 0-d arrays"
        raise TypeError(message)


@handles(np.concatenate)
def _concatenate(w, op, parts, axis=0):
    ndim = op.outputs[0].type.ndim
    if axis is None:
        message = "of flattened arrays"
        raise TypeError(message)
    _join(w, op, parts, _axes(axis, ndim)[0], new=False)


@handles(np.stack)
def _stack(w, op, parts, axis=0):
    _join(w, op, parts, _axes(axis, op.outputs[0].type.ndim)[0], new=True)


@handles(np.hstack)
def _hstack(w, op, parts):
    ranks = {p.type.ndim for p in parts if is_array(p)}
    if len(ranks) != 1 or not all(is_array(p) for p in parts) or 0 in ranks:
        message = "of numbers"
        raise TypeError(message)
    _join(w, op, parts, 0 if ranks == {1} else 1, new=False)


@handles(np.vstack)
def _vstack(w, op, parts):
    ranks = {p.type.ndim for p in parts if is_array(p)}
    if len(ranks) != 1 or not all(is_array(p) for p in parts) or 0 in ranks:
        message = "of numbers"
        raise TypeError(message)
    _join(w, op, parts, 0, new=ranks == {1})


@handles(np.diff)
def _diff(w, op, a, n=1, axis=-1):
    if n != 1 or a.type.ndim != 1 or axis not in (-1, 0) or a.type.dtype.kind == "b":
        message = "of higher order"
        raise TypeError(message)
    name, out = w.array(a), w.name(op.outputs[0])
    length = _length(a.type.shape[0], name, 0)
    w.line(f"{out} = {w.empty([f'max({length} - 1, 0)'], a.type.dtype)}")
    index = w.open_loops([f"{length} - 1"])
    w.line(f"{out}[{index[0]}] = {name}[{index[0]} + 1] - {name}[{index[0]}]")
    w.close_loops(index)


@handles(np.diag)
def _diag(w, op, a, k=0):
    out, dtype = w.name(op.outputs[0]), a.type.dtype
    if k != 0 or (a.type.ndim == 2 and w.is_written(op.outputs[0])):
        message = "off the diagonal"
        raise TypeError(message)
    name = w.array(a)
    (i,) = w.index_names(1)
    n = _length(a.type.shape[0], name, 0)
    if a.type.ndim == 1:
        w.line(f"{out} = np.zeros(({n}, {n}), {w.dtype(dtype)})")
        w.line(f"for {i} in range({n}):")
        w.line(f"    {out}[{i}, {i}] = {name}[{i}]")
        return
    n = f"min({n}, {_length(a.type.shape[1], name, 1)})"
    w.line(f"{out} = {w.empty([n], dtype)}")
    w.line(f"for {i} in range({n}):")
    w.line(f"    {out}[{i}] = {name}[{i}, {i}]")


@handles(np.trace)
def _trace(w, op, a):
    dtype = op.outputs[0].type.dtype
    if a.type.ndim != 2:
        message = "of a stack of matrices"
        raise TypeError(message)
    name = w.array(a)
    total = w.temporary("total", numpy_number(dtype))
    (i,) = w.index_names(1)
    w.line(f"{total} = {literal(0, numpy_number(dtype))}")
    w.line(f"for {i} in range(min({name}.shape[0], {name}.shape[1])):")
    item = Term(f"{name}[{i}, {i}]", ATOM, numpy_number(a.type.dtype))
    w.line("    " + _SUM.step(w, total, item, dtype))
    return total


@handles(np.sort)
def _sort(w, op, a, axis=-1):  # noqa: ARG001
    if not is_array(a) or a.type.ndim != 1 or a.type.dtype.kind not in "iuf" or axis not in (-1, 0):
        message = "of such arrays"
        raise TypeError(message)
    return f"np.sort({w.array(a)})"


# -- products and linear systems


def _as_dtype(w: Writer, a: Value, dtype: np.dtype[Any]) -> str:
    name = w.array(a)
    if a.type.dtype == dtype:
        return name
    made = w.temporary("a")
    _fill_new(w, made, ArrayType(dtype, a.type.shape), a)
    return made


@handles(operator.matmul, np.matmul, np.dot)
def _dot(w, op, a, b):
    a, b = as_array(w, a), as_array(w, b)
    ranks = (a.type.ndim, b.type.ndim)
    if not set(ranks) <= {1, 2}:
        message = f"of ranks {ranks}"
        raise TypeError(message)
    out = op.outputs[0]
    dtype = out.type.dtype
    if dtype.kind in "fc" and ranks != (1, 1):
        return f"np.dot({_as_dtype(w, a, dtype)}, {_as_dtype(w, b, dtype)})"
    m, n = w.array(a), w.array(b)
    depth, other = f"{m}.shape[{ranks[0] - 1}]", f"{n}.shape[0]"
    if a.type.shape[-1] != b.type.shape[0]:
        w.line(f"if {depth} != {other}:")
        w.line("    raise ValueError('shapes are not aligned for a product')")
    wide = _WIDE.get(dtype, dtype)
    total = w.temporary("total", numpy_number(wide))
    i, j, k = w.index_names(3)
    kept = [(i, f"{m}.shape[0]")] if ranks[0] == 2 else []
    kept += [(j, f"{n}.shape[1]")] if ranks[1] == 2 else []
    left = [i, k] if ranks[0] == 2 else [k]
    right = [k, j] if ranks[1] == 2 else [k]
    if kept:
        w.line(f"{w.name(out)} = {w.empty([length for _, length in kept], dtype)}")
    for index, length in kept:
        w.line(f"for {index} in range({length}):")
        w._indent += 1
    w.line(f"{total} = {literal(0, numpy_number(wide))}")
    w.line(f"for {k} in range({depth}):")
    item = numpy_term(np.multiply, [
        Term(f"{m}[{w.at(left)}]", ATOM, numpy_number(a.type.dtype)),
        Term(f"{n}[{w.at(right)}]", ATOM, numpy_number(b.type.dtype)),
    ])  # fmt: skip
    w.line("    " + _SUM.step(w, total, item, wide))
    result = w.stored(Term(total, ATOM, numpy_number(wide)), dtype)
    if not kept:
        return result
    w.line(f"{w.name(out)}[{w.at([index for index, _ in kept])}] = {result}")
    w._indent -= len(kept)
    return None


@handles(np.outer)
def _outer(w, op, a, b):
    a, b = as_array(w, a), as_array(w, b)
    if (a.type.ndim, b.type.ndim) != (1, 1):
        message = "of matrices"
        raise TypeError(message)
    dtype, name = op.outputs[0].type.dtype, w.name(op.outputs[0])
    m, n = w.array(a), w.array(b)
    lengths = [_length(a.type.shape[0], m, 0), _length(b.type.shape[0], n, 0)]
    w.line(f"{name} = {w.empty(lengths, dtype)}")
    i, j = w.open_loops(lengths)
    item = numpy_term(np.multiply, [w.element(a, [i]), w.element(b, [j])])
    w.line(f"{name}[{i}, {j}] = {w.stored(item, dtype)}")
    w.close_loops([i, j])


@handles(np.linalg.norm)
def _norm(w, op, a):
    if not is_array(a) or a.type.dtype.kind not in "fc":
        message = "of ints"
        raise TypeError(message)
    dtype = op.outputs[0].type.dtype
    total = w.temporary("total", numpy_number(_FLOAT))
    w.line(f"{total} = 0.0")
    with reading(w, a) as (value, lengths, steps):
        index = w.open_loops(lengths)
        item = w.temporary("item", numpy_number(value.type.dtype))
        w.line(f"{item} = {w.element(value, index, steps).text}")
        square = (
            f"{item}.real**2 + {item}.imag**2"
            if value.type.dtype.kind == "c"
            else f"{item} * {item}"
        )
        w.line(f"{total} += {square}")
        w.close_loops(index)
    return w.stored(Term(f"math.sqrt({total})", ATOM, numpy_number(_FLOAT)), dtype)


@handles(np.linalg.solve)
def _solve(w, op, a, b):
    if a.type.ndim != 2 or b.type.ndim not in (1, 2):
        message = "of a stack of systems"
        raise TypeError(message)
    dtype = op.outputs[0].type.dtype
    return f"np.linalg.solve({_as_dtype(w, a, dtype)}, {_as_dtype(w, b, dtype)})"


@handles(np.linalg.inv, np.linalg.cholesky, np.linalg.det, np.linalg.eigvalsh, np.linalg.eigh,
         np.linalg.qr, np.linalg.slogdet)  # fmt: skip
def _of_matrix(w, op, a):
    wide = np.result_type(a.type.dtype, np.float32)
    if a.type.ndim != 2 or a.type.dtype.kind not in "fc":
        message = "of such matrices"
        raise TypeError(message)
    return f"np.linalg.{op.function.__name__}({_as_dtype(w, a, wide)})"


# -- fancy indices


def _index_array(w: Writer, index: Sequence[Operand]) -> tuple[int, Value]:
    """The only array in an index, and its place; everything else is a full slice."""
    found = [(k, as_array(w, i)) for k, i in enumerate(index)
             if is_array(i) or isinstance(i, (list, np.ndarray))]  # fmt: skip
    full = all(isinstance(i, slice) and i == slice(None) for k, i in enumerate(index)
               if k not in [at for at, _ in found])  # fmt: skip
    if len(found) != 1 or not full:
        raise w.cannot("this index")
    return found[0]


def fancy_load(w: NumbaWriter, op: Load, array: str) -> None:
    """``a[ix]`` as a copy."""
    (out,) = op.outputs
    index = op.index
    place, at = _index_array(w, index)
    if not hasattr(out.type, "shape") or isinstance(out.type, Number):
        raise w.cannot("this index")
    name, where = w.name(out), w.array(at)
    shape = op.array.type.shape
    lengths = [_length(d, array, k) for k, d in enumerate(shape)]
    if at.type.dtype.kind == "b":
        if place != 0 or at.type.ndim != len(shape):
            raise w.cannot("a mask of some of the axes")
        _check_same(w, where, at, array, op.array)
        count = w.temporary("count")
        for last in (False, True):
            w.line(f"{count} = 0")
            loop = w.open_loops(lengths)
            w.line(f"if {where}[{w.at(loop)}]:")
            if last:
                w.line(f"    {name}[{count}] = {array}[{w.at(loop)}]")
            w.line(f"    {count} += 1")
            w.close_loops(loop)
            if not last:
                w.line(f"{name} = {w.empty([count], out.type.dtype)}")
        return
    if at.type.dtype.kind not in "iu":
        raise w.cannot("this index")
    inner = [_length(d, where, k) for k, d in enumerate(at.type.shape)]
    made = [*lengths[:place], *inner, *lengths[place + 1 :]]
    w.line(f"{name} = {w.empty(made, out.type.dtype)}")
    loop = w.open_loops(made)
    taken = loop[place : place + len(inner)]
    source = [*loop[:place], f"{where}[{w.at(taken)}]", *loop[place + len(inner) :]]
    w.line(f"{name}[{w.at(loop)}] = {array}[{w.at(source)}]")
    w.close_loops(loop)


def _check_same(w: Writer, m: str, a: Value, n: str, b: Value) -> None:
    for k, (d, e) in enumerate(zip(a.type.shape, b.type.shape, strict=True)):
        if d != e:
            w.line(f"if {_length(d, m, k)} != {_length(e, n, k)}:")
            w.line("    raise IndexError('boolean index did not match indexed array')")


def fancy_store(w: NumbaWriter, op: Store | Update, function: Any) -> None:
    """``a[ix] = value`` and ``a[ix] op= value``."""
    place, at = _index_array(w, op.index)
    array, where = w.array(op.array), w.array(at)
    dtype, shape = op.array.type.dtype, op.array.type.shape
    lengths = [_length(d, array, k) for k, d in enumerate(shape)]
    if w.may_overlap(at, op.array):
        raise w.cannot("an index that is being written")
    if is_array(op.value) and (w.may_overlap(op.value, op.array) or op.value.type.ndim > 1):
        raise w.cannot("this store")
    if at.type.dtype.kind == "b":
        if is_array(op.value) or at.type.ndim != len(shape):
            raise w.cannot("a store of an array through a mask")
        _check_same(w, where, at, array, op.array)
        value = w.atom(w.number(op.value))
        loop = w.open_loops(lengths)
        target = f"{array}[{w.at(loop)}]"
        w.line(f"if {where}[{w.at(loop)}]:")
        text = w.stored(value, dtype)
        if function is not None:
            text = w.combined(function, Term(target, ATOM, numpy_number(dtype)), value, dtype)
        w.line(f"    {target} = {text}")
        w.close_loops(loop)
        return
    if at.type.ndim != 1 or len(shape) != 1 or at.type.dtype.kind not in "iu" or place:
        raise w.cannot("this store")
    (i,) = w.index_names(1)
    n = _length(at.type.shape[0], where, 0)
    item: Any = None if is_array(op.value) else w.atom(w.number(op.value))
    if item is None:
        source = w.array(op.value)
        length = _length(op.value.type.shape[0], source, 0) if op.value.type.ndim else "1"
        w.line(f"if {length} != {n}:")
        w.line("    raise ValueError('shape mismatch: value array does not fit the index')")
        item = Term(f"{source}[{i}]", ATOM, numpy_number(op.value.type.dtype))
    old = array
    if function is not None:
        old = w.temporary("old")
        w.line(f"{old} = {array}.copy()")
    w.line(f"for {i} in range({n}):")
    text = w.stored(item, dtype)
    if function is not None:
        before = Term(f"{old}[{where}[{i}]]", ATOM, numpy_number(dtype))
        text = w.combined(function, before, item, dtype)
    w.line(f"    {array}[{where}[{i}]] = {text}")


@handles(np.copyto)
def _copyto(w, op, target, value, casting="same_kind", where=True):  # noqa: ARG001 (types are known)
    if where is not True or not is_array(target):
        message = "under a mask"
        raise TypeError(message)
    w.write_over(target, value)


@handles(np.add.at, np.subtract.at)
def _accumulate(w, op, a, at, value):
    if not is_array(at) or at.type.dtype.kind not in "iu" or at.type.ndim != 1 or a.type.ndim != 1:
        message = "of such an index"
        raise TypeError(message)
    array, where = w.array(a), w.array(at)
    ufunc = np.add if op.function == np.add.at else np.subtract
    (i,) = w.index_names(1)
    if is_array(value):
        if value.type.ndim != 1 or w.may_overlap(value, a):
            message = "of such a value"
            raise TypeError(message)
        source = w.array(value)
        w.line(f"if {source}.shape[0] != {where}.shape[0]:")
        w.line("    raise ValueError('array is not broadcastable to correct shape')")
        item = Term(f"{source}[{i}]", ATOM, numpy_number(value.type.dtype))
    else:
        item = w.atom(w.number(value))
    place = f"{array}[{where}[{i}]]"
    old = Term(place, ATOM, numpy_number(a.type.dtype))
    w.line(f"for {i} in range({where}.shape[0]):")
    w.line(f"    {place} = {w.combined(ufunc, old, item, a.type.dtype)}")
