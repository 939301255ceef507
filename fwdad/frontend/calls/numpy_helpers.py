"""NumPy's helpers beside functions of arrays: ufunc methods, ``np.r_``, ``np.ndindex``, views."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.eager.calls.makers import copy_asked
from fwdad.eager.calls.ufunc_names import NAMED, reduce_arguments
from fwdad.errors import UntraceableError
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.calls.tables import builtin, method
from fwdad.frontend.numpy_sources.row_by_row import check_apart
from fwdad.frontend.numpy_sources.steps import arange_of_values
from fwdad.frontend.numpy_sources.table import known, refuse
from fwdad.frontend.syntax import iteration
from fwdad.frontend.syntax.growing_lists.items import Items
from fwdad.frontend.syntax.interpreter import Interpreter
from fwdad.frontend.syntax.iterators import Iterator
from fwdad.frontend.syntax.lengths import binary_add
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.ops import functions_with, record_of


@builtin(known)
def _known(tracer: Tracer, x: Any) -> Any:
    """A value as it is in the example; an array of one number as that, which a list is times."""
    found = tracer.values.known(x)
    return found[()] if isinstance(found, np.ndarray) and not found.ndim else found


@builtin(refuse)
def _refuse(tracer: Tracer, reason: str) -> None:
    raise UntraceableError(reason, tracer.position.location())


# -- methods of ufuncs that have other names


def _named(function: Any, name: str) -> Callable[..., Any]:
    def call(tracer: Tracer, *args: Any, **kwargs: Any) -> Any:
        if name == "reduce":
            args, kwargs = reduce_arguments(args, kwargs)
        elif len(args) == 1:
            kwargs = {"axis": 0, **kwargs}
        return tracer.call(function, args, kwargs)

    return call


for (_ufunc, _name), _function in NAMED.items():
    builtin(getattr(_ufunc, _name))(_named(_function, _name))


def _outer(ufunc: np.ufunc) -> Callable[..., Any]:
    def call(tracer: Tracer, a: Any, b: Any, **kwargs: Any) -> Any:
        a, b = _as_value(tracer, a), _as_value(tracer, b)
        if type(a) is Symbol and a.is_array:
            rank = b.type.ndim if type(b) is Symbol else 0
            a = tracer.recorder.load(a, (Ellipsis, *(None,) * rank))
        return tracer.call(ufunc, (a, b), kwargs)

    return call


_UFUNCS = {f for f in vars(np).values() if isinstance(f, np.ufunc)}
for _ufunc in _UFUNCS:
    if _ufunc.nin == 2 and _ufunc.nout == 1 and _ufunc.signature is None:
        builtin(_ufunc.outer)(_outer(_ufunc))


def _as_value(tracer: Tracer, x: Any) -> Any:
    """A number or array; a list becomes an array."""
    if isinstance(x, (list, tuple)):
        return tracer.call(np.array, (x,), {})
    return tracer.recorder.as_symbol(x) if isinstance(x, np.ndarray) else x


# -- a number that a reduction begins with


def _with_initial(function: Any) -> Callable[..., Any]:
    ufunc, bound = record_of(function).reduction, record_of(function).start

    def call(tracer: Interpreter, *args: Any, **kwargs: Any) -> Any:
        initial = kwargs.get("initial")
        if type(initial) is not Symbol or kwargs.get("out") is not None:
            return tracer.operations.call_native(function, args, kwargs)
        rest = {key: x for key, x in kwargs.items() if key != "initial"}
        if bound is not None:  # there may be nothing else
            rest["initial"] = bound
        return tracer.call(
            ufunc, (initial, tracer.operations.call_native(function, args, rest)), {}
        )

    return call


for _function in functions_with(lambda record: record.reduction is not None):
    builtin(_function)(_with_initial(_function))


# -- arrays of what is iterated over


@builtin(np.fromiter)
def _fromiter(tracer: Tracer, iter: Any, dtype: Any, count: Any = -1, **_options: Any) -> Any:  # noqa: A002  (NumPy's name)
    count = tracer.values.known(count)
    if count < 0:
        items = tracer.call(list, (iter,), {})
    else:
        items = iteration.first_items(tracer, iter, count)
    if isinstance(items, Items):
        items = items.rows()
    if count > len(items):
        message = f"iterator too short: Expected {count} but iterator had only {len(items)} items."
        raise AlwaysRaises(ValueError, (message,))
    return tracer.call(np.array, (items if count < 0 else items[:count],), {"dtype": dtype})


@builtin(np.arange)
def _arange(tracer: Interpreter, *args: Any, **kwargs: Any) -> Any:
    named = ("start", "stop", "step")
    if kwargs and kwargs.keys() <= set(named[len(args) :]) and ("stop" in kwargs or args):
        given = {"start": 0, "step": 1, **dict(zip(named, args, strict=False)), **kwargs}
        if "stop" not in given:
            given |= {"start": 0, "stop": args[0]}
        args, kwargs = tuple(given[name] for name in named), {}
    real = any(type(a) is Symbol and a.dtype.kind == "f" for a in args)
    if not real or kwargs or len(args) > 3:
        return tracer.operations.call_native(np.arange, args, kwargs)
    return tracer.call(arange_of_values, args, {})


# -- np.r_, np.c_, np.s_


@builtin(type(np.r_).__getitem__)
def _concatenated(tracer: Tracer, o: Any, key: Any) -> Any:
    """``np.r_[...]`` and ``np.c_[...]`` of numbers, arrays and known ranges."""
    items = key if isinstance(key, tuple) else (key,)
    if (o is not np.r_ and o is not np.c_) or any(isinstance(i, str) for i in items):
        message = "np.r_ with a directive (a string) cannot be traced: use numpy.concatenate"
        raise UntraceableError(message, tracer.position.location())
    parts, kinds = [], []
    for item in items:
        if isinstance(item, slice):
            known = slice(*(tracer.values.known(x) for x in (item.start, item.stop, item.step)))
            part: Any = tracer.recorder.as_symbol(np.r_[known])
        else:
            part = _as_value(tracer, item)
        symbol = type(part) is Symbol
        rank = part.type.ndim if symbol else 0
        # numbers enter the dtype as in NumPy: Python's widen nothing
        kinds.append(part.dtype if symbol and (rank or not part.type.python) else _example(part))
        if rank < 2 and o is np.c_:
            part = _column(tracer, part, rank)
        elif not rank:
            part = tracer.call(np.array, ([part],), {})
        parts.append(part)
    dtype = np.result_type(*kinds)
    return tracer.call(np.concatenate, (parts,), {"axis": 0 if o is np.r_ else -1, "dtype": dtype})


def _column(tracer: Tracer, part: Any, rank: int) -> Any:
    if rank:
        return tracer.recorder.load(part, (slice(None), None))
    return tracer.call(np.array, ([[part]],), {})


def _example(number: Any) -> Any:
    """A number of the same kind, since ``np.result_type`` treats Python's numbers specially."""
    return number.type.dtype.type(0).item() if type(number) is Symbol else number


@builtin(type(np.s_).__getitem__)
def _index_expression(_tracer: Tracer, o: Any, item: Any) -> Any:
    return (item,) if o is np.index_exp and not isinstance(item, tuple) else item


@builtin(np.broadcast_arrays)
def _broadcast_arrays(tracer: Tracer, *arrays: Any, **options: Any) -> Any:
    """Views of one shape, each an operation: memory is followed through an operation's result."""
    call = tracer.operations.call_native  # type: ignore[attr-defined]
    if not mentions_symbols(arrays):
        return call(np.broadcast_arrays, arrays, options)
    copies = tuple(tracer.call(np.array, (a,), {}) for a in arrays)
    shape = tracer.call(np.shape, (call(np.broadcast_arrays, copies, options)[0],), {})
    views = tuple(tracer.call(np.broadcast_to, (a, shape), {}) for a in arrays)
    for view in views:  # NumPy warns, and writes into all elements that are one in memory
        made = tracer.recorder.as_symbol(view).value
        tracer.recorder.unwritten[made] = "that np.broadcast_arrays returns: write into a copy"
    return views


@builtin(np.ndarray)
def _ndarray(
    tracer: Interpreter,
    shape: Any,
    dtype: Any = float,
    buffer: Any = None,
    offset: Any = 0,
    strides: Any = None,
    order: Any = None,
) -> Any:
    """A new array; one on memory that is given is refused as any call is that is not known."""
    if buffer is None and strides is None:
        return tracer.call(np.empty, (shape, dtype), {"order": order or "C"})
    given = {"dtype": dtype, "buffer": buffer, "offset": offset, "strides": strides}
    return tracer.operations.call_native(np.ndarray, (shape,), {**given, "order": order})


@builtin(np.array)
def _array(tracer: Interpreter, x: Any, *args: Any, ndmin: Any = 0, **options: Any) -> Any:
    if "copy" in options:
        options["copy"] = copy_asked(options["copy"])
    if options.get("copy", True) is None and not options.get("subok"):  # only where it must
        del options["copy"]
        array = tracer.call(np.asarray, (x, *args), options)
    else:
        array = tracer.operations.call_native(np.array, (x, *args), options)
    if not mentions_symbols(ndmin) and not ndmin:
        return array
    while array.type.ndim < tracer.values.known(ndmin):
        array = tracer.recorder.load(array, (None, Ellipsis))
    return array


def _of_vectors(function: Any) -> Callable[..., Any]:
    """The meaning of products of vectors, whose lengths determine what is computed."""

    def call(tracer: Interpreter, a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
        a, b = _as_value(tracer, a), _as_value(tracer, b)
        names = ("axisa", "axisb")
        options_by_name = dict(zip((*names, "axisc", "axis"), args, strict=False)) | kwargs
        for x, name in zip((a, b), names, strict=True):
            axis = options_by_name.get("axis")
            axis = tracer.values.known(options_by_name.get(name, -1) if axis is None else axis)
            if type(x) is Symbol and x.is_array and x.type.ndim:
                tracer.recorder.lengths.known_length(x, axis % x.type.ndim)
        return tracer.operations.call_native(function, (a, b, *args), kwargs)

    return call


for _function in (np.cross, np.linalg.cross):
    builtin(_function)(_of_vectors(_function))


# -- all places of an array


@builtin(np.ndindex)
def _ndindex(tracer: Tracer, *shape: Any) -> Any:
    if len(shape) == 1 and isinstance(shape[0], tuple):
        (shape,) = shape
    return list(itertools.product(*(range(tracer.values.known(n)) for n in shape)))


@builtin(np.ndenumerate)
def _ndenumerate(tracer: Tracer, a: Any) -> Any:
    a = _as_value(tracer, a)
    lengths = [tracer.recorder.lengths.known_length(a, k) for k in range(a.type.ndim)]
    places = itertools.product(*map(range, lengths))
    return Iterator(tracer, ((at, tracer.recorder.load(a, at)) for at in places))


@builtin(np.fill_diagonal)
def _fill_diagonal(tracer: Tracer, a: Any, val: Any, wrap: bool = False) -> None:
    recorder = tracer.recorder
    into, value = recorder.as_symbol(a), _as_value(tracer, val)
    rank = into.type.ndim
    if rank < 2:
        raise AlwaysRaises(ValueError, ("array must be at least 2-d",))
    index = _diagonal(tracer, into, wrap=tracer.values.known(wrap))
    if type(value) is Symbol and value.type.ndim:  # its items in turn, as `a.flat` takes them
        tracer.call(check_apart, (into, value), {})
        flat = recorder.apply(np.ravel, (value,), {})
        count = recorder.apply(np.arange, (recorder.length(index[0], 0),), {})
        value = recorder.load(flat, count % recorder.length(flat, 0))
    recorder.store(into, index, value)


def _diagonal(tracer: Tracer, a: Symbol, *, wrap: bool) -> tuple[Any, ...]:
    """The index of a diagonal; one that wraps starts again below the first square."""
    recorder = tracer.recorder
    lengths = [recorder.length(a, k) for k in range(a.type.ndim)]
    if len(lengths) > 2:
        message = "All dimensions of input must be of equal length"
        for n in lengths[1:]:
            same = tracer.truth(tracer.binary(operator.eq, n, lengths[0]))
            if same is False:
                raise AlwaysRaises(ValueError, (message,))
            if same is not True:
                recorder.check(same, ValueError, (message,))
        return (recorder.apply(np.arange, (lengths[0],), {}),) * len(lengths)
    rows, columns = lengths
    if not wrap:
        at = recorder.apply(np.arange, (tracer.call(min, (rows, columns), {}),), {})
        return at, at
    size = tracer.binary(operator.mul, rows, columns)
    at = recorder.apply(np.arange, (0, size, binary_add(tracer, columns, 1)), {})
    return tracer.binary(operator.floordiv, at, columns), tracer.binary(operator.mod, at, columns)


def _is_dtype(given: Any, dtype: np.dtype[Any]) -> bool:
    """Whether what stands for a dtype in a call is this one."""
    try:
        return np.dtype(given) == dtype
    except TypeError:  # a class of arrays
        return False


@method("view")
def _view(tracer: Tracer, a: Symbol, *args: Any, **kwargs: Any) -> Any:
    given = (*args, *kwargs.values())
    if given and not (len(given) == 1 and _is_dtype(given[0], a.type.dtype)):
        message = "`view` with another dtype or class cannot be traced: use astype"
        raise UntraceableError(message, tracer.position.location())
    return tracer.recorder.load(a, Ellipsis)


@builtin(np.nditer, np.broadcast)
def _iterates_in_c(tracer: Tracer, *_args: Any, **_kwargs: Any) -> Any:
    message = "np.nditer and np.broadcast cannot be traced: use numpy.broadcast_arrays and a loop"
    raise UntraceableError(message, tracer.position.location())
