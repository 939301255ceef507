"""NumPy functions and methods that write into an array, as stores, which every transform supports.

A write that is no store for all lengths stays one operation; it has no derivative.
"""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.operators import BINARY, COMPARISONS, UNARY, Operator
from fwdad.errors import UntraceableError
from fwdad.frontend.calls.tables import builtin, method
from fwdad.frontend.numpy_sources.row_by_row import check_apart, put_under_mask
from fwdad.frontend.syntax.interpreter import Interpreter
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.rules.core.registry import READ_WHILE_WRITTEN


@builtin(operator.setitem)
def _setitem(tracer: Interpreter, o: Any, index: Any, value: Any) -> None:
    tracer.subscripts.set_subscript(o, index, value)


@builtin(operator.delitem)
def _delitem(tracer: Interpreter, o: Any, index: Any) -> None:
    tracer.subscripts.delete_subscript(o, index)


def _in_place(function: Callable[..., Any], tracer: Interpreter, held: Any, value: Any) -> Any:
    """``held op= value``, which returns the array itself."""
    if _is_array(held) or isinstance(held, np.ndarray):
        tracer.assignments.update(held, Ellipsis, function, value)
        return held
    return tracer.assignments.augmented(function, held, value)


for _known in BINARY:
    builtin(_known.in_place)(functools.partial(_in_place, _known.function))


@builtin(operator.iconcat)
def _iconcat(tracer: Interpreter, a: Any, b: Any) -> Any:
    return tracer.assignments.augmented(operator.add, a, b)


def _methods(known: Operator) -> None:
    function = known.function
    method(known.method)(lambda tracer, a, b: tracer.binary(function, a, b))
    if known.in_place is not None:
        method(known.reflected)(lambda tracer, a, b: tracer.binary(function, b, a))
        method(known.in_place_method)(lambda tracer, a, b: _in_place(function, tracer, a, b))


for _known in (*BINARY, *COMPARISONS):
    _methods(_known)
for _known in UNARY:
    _unary = _known.function
    method(_known.method)(lambda tracer, a, f=_unary: tracer.recorder.apply(f, (a,), {}))
method("__abs__")(lambda tracer, a: tracer.call(abs, (a,), {}))
method("__len__")(lambda tracer, a: tracer.call(len, (a,), {}))
method("__copy__")(lambda tracer, a: tracer.call(copy.copy, (a,), {}))
method("__deepcopy__")(lambda tracer, a, memo: tracer.call(copy.copy, (a,), {}))
method("__getitem__")(lambda tracer, a, index: tracer.subscript(a, index))
method("__setitem__")(
    lambda tracer, a, index, value: tracer.subscripts.set_subscript(a, index, value)
)
method("compress")(
    lambda tracer, a, condition, *args, **kwargs: tracer.call(
        np.compress, (condition, a, *args), kwargs
    )
)


@method("resize")
def _resize(tracer: Tracer, _a: Symbol, *_shape: Any, **_options: Any) -> None:
    message = "`resize` in place cannot be traced: use np.resize or np.reshape"
    raise UntraceableError(message, tracer.position.location())


@builtin(np.copyto)
def _copyto(
    tracer: Tracer, dst: Any, src: Any, casting: Any = "same_kind", where: Any = True
) -> None:
    recorder = tracer.recorder
    into, value = recorder.as_symbol(dst), _value(tracer, src)
    dtype = value.dtype if type(value) is Symbol else np.asarray(value).dtype
    kind: Any = "same_kind" if casting == "unsafe" else casting  # a store is as unsafe: np.full's
    if not np.can_cast(dtype, into.dtype, kind):
        recorder.mutate(np.copyto, (into, value), {"casting": casting, "where": where})
        return
    recorder.store_where(into, value, where)


@builtin(np.nan_to_num)
def _nan_to_num(tracer: Tracer, x: Any, copy: Any = True, *numbers: Any, **options: Any) -> Any:
    options |= dict(zip(("nan", "posinf", "neginf"), numbers, strict=False))
    result = tracer.recorder.apply(np.nan_to_num, (x,), options)
    if tracer.values.known(copy) or not (_is_array(x) or isinstance(x, np.ndarray)):
        return result
    into = tracer.recorder.as_symbol(x)
    tracer.recorder.store(into, Ellipsis, result)
    return into


@method("sort")
def _sort(
    tracer: Tracer, a: Symbol, axis: int = -1, kind: Any = None, order: Any = None, **options: Any
) -> None:
    options |= {key: x for key, x in (("kind", kind), ("order", order)) if x is not None}
    result = tracer.recorder.apply(np.sort, (a, axis), options)
    tracer.recorder.store(a, Ellipsis, result)


@method("partition")
def _partition(
    tracer: Tracer,
    a: Symbol,
    kth: Any,
    axis: int = -1,
    kind: Any = "introselect",
    order: Any = None,
) -> None:
    options = {} if order is None else {"order": order}
    result = tracer.recorder.apply(np.partition, (a, kth, axis, kind), options)
    tracer.recorder.store(a, Ellipsis, result)


def _mask_of(tracer: Tracer, function: Any, into: Symbol, mask: Any) -> Any:
    """A mask in the shape of ``into``: sizes must match, and it is not broadcast."""
    chosen = tracer.recorder.as_symbol(_value(tracer, mask))
    if chosen.type.shape == into.type.shape:
        return chosen
    sizes = [tracer.attribute(x, "size") for x in (chosen, into)]
    message = f"{function.__name__}: mask and data must be the same size"
    holds = tracer.call(operator.eq, tuple(sizes), {})
    if holds is False:
        raise AlwaysRaises(ValueError, (message,))
    tracer.recorder.check(holds, ValueError, (message,), tracer.position.location())
    return tracer.call(np.reshape, (chosen, tracer.attribute(into, "shape")), {})


@builtin(np.putmask)
def _putmask(tracer: Tracer, a: Any, mask: Any, values: Any) -> None:
    recorder = tracer.recorder
    into, value = recorder.as_symbol(a), _value(tracer, values)
    chosen = _mask_of(tracer, np.putmask, into, mask)
    if not _is_array(value) or value.type.shape == into.type.shape:
        recorder.store_where(into, value, chosen)
    else:
        tracer.call(put_under_mask, (into, chosen, value), {})


@builtin(check_apart)
def _check_apart(tracer: Tracer, a: Any, v: Any) -> None:
    if _is_array(a) and _is_array(v) and tracer.recorder.may_share(a.value, v.value):
        raise UntraceableError(READ_WHILE_WRITTEN, tracer.position.location())


@builtin(np.place)
def _place(tracer: Tracer, arr: Any, mask: Any, vals: Any) -> None:
    recorder = tracer.recorder
    into, value = recorder.as_symbol(arr), _value(tracer, vals)
    chosen = recorder.as_symbol(_mask_of(tracer, np.place, into, mask))
    if not _is_array(value):
        recorder.store_where(into, value, chosen)
        return
    if not value.type.ndim:
        recorder.store_where(into, value, chosen)
        return
    if not into.type.ndim:
        into, chosen = (recorder.apply(np.reshape, (x, 1), {}) for x in (into, chosen))
    if chosen.type.dtype.kind != "b":  # numbers as an index would be places
        chosen = recorder.apply(np.not_equal, (chosen, 0), {})
    _check_apart(tracer, into, value)
    count = recorder.apply(np.count_nonzero, (chosen,), {})
    flat = value if value.type.ndim == 1 else recorder.apply(np.ravel, (value,), {})
    length = recorder.length(flat, 0)
    enough = tracer.binary(operator.le, count, tracer.binary(operator.mul, count, length))
    message = "Cannot insert from an empty array!"
    recorder.check(enough, ValueError, (message,), tracer.position.location())
    places = recorder.apply(np.arange, (count,), {}) % length
    recorder.store(into, chosen, recorder.load(flat, places))


@method("put")
def _put_method(tracer: Tracer, a: Symbol, indices: Any, values: Any, mode: str = "raise") -> None:
    _put(tracer, a, indices, values, mode)


@builtin(np.put)
def _put(tracer: Tracer, a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    recorder = tracer.recorder
    into, at, value = recorder.as_symbol(a), _value(tracer, ind), _value(tracer, v)
    if type(at) is Symbol and at.type.dtype.kind == "b":  # zeros and ones here
        at = recorder.apply(np.add, (at, 0), {})
    if mode not in ("raise", "wrap", "clip"):
        recorder.mutate(np.put, (into, at, value), {"mode": mode})
        return
    if not into.type.ndim:
        into = recorder.apply(np.reshape, (into, 1), {})
    size = tracer.attribute(into, "size")
    if mode == "wrap":
        at = recorder.apply(np.remainder, (at, size), {})
    elif mode == "clip":
        at = recorder.apply(np.clip, (at, 0, size - 1), {})
    if _is_array(value) and not (_is_array(at) and value.type.shape == at.type.shape):
        flat = (
            value if value.type.ndim == 1 else recorder.apply(np.ravel, (value,), {})
        )  # its items in turn, from the first again
        count = tracer.attribute(recorder.as_symbol(at), "size")
        places = recorder.apply(np.arange, (count,), {})
        value = recorder.load(flat, places % recorder.length(flat, 0))
        at = recorder.apply(np.ravel, (at,), {})
    recorder.store(into, _places(recorder, into, at), value)


def _places(recorder: Any, into: Any, at: Any) -> tuple[Any, ...]:
    """The index of elements with some positions in C order."""
    index: tuple[Any, ...] = ()
    for axis in range(into.type.ndim - 1, 0, -1):
        n = recorder.length(into, axis)
        index = (recorder.apply(np.remainder, (at, n), {}), *index)
        at = recorder.apply(np.floor_divide, (at, n), {})
    return (at, *index)


@builtin(np.put_along_axis)
def _put_along_axis(tracer: Tracer, arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    recorder = tracer.recorder
    into, at, value = recorder.as_symbol(arr), _value(tracer, indices), _value(tracer, values)
    rank = into.type.ndim
    _check_along_axis(tracer, at, axis, rank)
    if axis is None and _is_array(at) and at.type.ndim == 1:
        recorder.store(into, _places(recorder, into, at), value)
        return
    if axis is None or not _is_array(at) or at.type.ndim != rank:
        recorder.mutate(np.put_along_axis, (into, at, value, axis), {})
        return
    index = []
    for k in range(rank):
        positions = recorder.apply(np.arange, (recorder.length(into, k),), {})
        shape = tuple(-1 if j == k else 1 for j in range(rank))
        index.append(recorder.apply(np.reshape, (positions, shape), {}))
    index[axis] = at
    recorder.store(into, tuple(index), value)


@builtin(np.take_along_axis)
def _take_along_axis(tracer: Tracer, arr: Any, indices: Any, axis: int | None = -1) -> Any:
    at = _value(tracer, indices)
    _check_along_axis(tracer, at, axis, np.ndim(arr))
    return tracer.recorder.apply(np.take_along_axis, (arr, at, axis), {})


def _check_along_axis(tracer: Tracer, at: Any, axis: int | None, rank: int) -> None:
    """Raise NumPy's errors for indices along an axis, whatever the lengths."""
    if type(at) is not Symbol:
        return
    ndim = at.type.ndim if at.is_array else 0
    if axis is None and ndim != 1:
        message = "when axis=None, `indices` must have a single dimension."
        raise AlwaysRaises(ValueError, (message,))
    if at.type.dtype.kind not in "iu":
        raise AlwaysRaises(IndexError, ("`indices` must be an integer array",))
    if axis is not None and ndim != rank:
        message = "`indices` and `arr` must have the same number of dimensions"
        raise AlwaysRaises(ValueError, (message,))


def _value(tracer: Tracer, x: Any) -> Any:
    """A number or array; a list becomes an array."""
    if isinstance(x, (list, tuple)):
        return tracer.call(np.array, (x,), {})
    return tracer.recorder.as_symbol(x) if isinstance(x, np.ndarray) else x


def _is_array(x: Any) -> bool:
    return type(x) is Symbol and x.is_array
