"""Builtins that need care with duals, and NumPy's functions that create and write arrays."""

from __future__ import annotations

import array
import bisect
import builtins
import functools
import heapq
import itertools
import json
import math
import operator
import pickle
import struct
import sys
import threading
import types
from collections import OrderedDict, deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from fwdad.builder import hooks, methods, numpy_calls, protocols, store
from fwdad.builder.apply import primal_part
from fwdad.builder.creation import cast, make_array
from fwdad.builder.dispatch import HANDLERS, TRANSPARENT, bind, call, handler, is_active
from fwdad.builder.dual import OPAQUE, Array, Scalar, explicit, isinstance_dual, leak, top_tag
from fwdad.builder.memory import SHADOWED, find_shadow
from fwdad.builder.run import STATE
from fwdad.errors import DualLeakError, FwdadError, UnsupportedTypeError
from fwdad.rules.registry import find_rule
from fwdad.tangents.chunk import plain

TRANSPARENT.update(
    {
        abs, divmod, pow, round, repr, str, format, print, len, iter, next, bool, hash, id,
        callable,
        isinstance, issubclass, tuple, list, dict, set, frozenset, range, slice, zip,
        enumerate, reversed, sorted, min, max, sum, any, all, type, object, super, ascii,
        operator.itemgetter, operator.attrgetter, operator.methodcaller, operator.index,
        math.floor, math.ceil, math.trunc, itertools.chain, itertools.product, itertools.repeat,
        itertools.islice, itertools.zip_longest, itertools.count, itertools.cycle, itertools.tee,
        itertools.combinations, itertools.permutations, sys.getsizeof, sys.getrefcount,
        bisect.bisect, bisect.bisect_left, bisect.bisect_right, heapq.nlargest, heapq.nsmallest,
        np.ndim, np.shape,
    }
)  # fmt: skip


# -- conversions


@handler(float)
def _float(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) == 1:
        x = explicit(args[0])
        if isinstance_dual(x):
            x = methods.call_method(x, "item", (), {})
            return _to_float(x)
        method = getattr(type(x), "__float__", None)
        if isinstance(method, types.FunctionType):
            return call(method, x)
    return float(*args, **kwargs)


def _to_float(x: Any) -> Any:
    if type(x) is not Scalar:
        return float(x)
    if isinstance(plain(x), complex):
        message = "can't convert complex to float"
        raise TypeError(message)
    return Scalar(_to_float(x.p), x.terms, x.tag)


@handler(complex)
def _complex(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if SHADOWED:
        args = tuple([protocols.as_number(a) for a in args])
    if not is_active((*args, *kwargs.values())):
        return complex(*args, **kwargs)
    real = args[0] if args else kwargs.get("real", 0.0)
    imag = args[1] if len(args) > 1 else kwargs.get("imag")
    value = methods.call_method(real, "item", (), {}) if isinstance_dual(real) else real
    value = value + 0j
    if imag is not None:
        value = value + 1j * imag
    return value


@handler(int)
def _int(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if args:
        x = explicit(args[0])
        if isinstance_dual(x):
            raise DualLeakError(leak("an int", x))
    return int(*args, **kwargs)


@handler(bool)
def _bool(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    return bool(*args)


@handler(id)
def _id(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    return id(*args)  # of the array itself, not of the dual that stands for it


@handler(type)
def _type(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) == 1 and (isinstance_dual(args[0]) or type(args[0]) in OPAQUE):
        return type(plain(args[0]))
    return type(*args, **kwargs)


# -- attributes by name


@handler(getattr)
def _getattr(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    if len(args) == 3:
        try:
            return hooks.attr(args[0], args[1])
        except AttributeError:
            return args[2]
    return hooks.attr(*args)


@handler(hasattr)
def _hasattr(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    o, name = args
    return hasattr(plain(o) if type(o) in OPAQUE else explicit(o), name)


@handler(setattr)
def _setattr(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    o, name, value = args
    hooks.set_attr(value, o, name)


@handler(delattr)
def _delattr(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    hooks.del_attr(*args)


@handler(object.__setattr__)
def _object_setattr(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    o, name, value = args
    if STATE.run is not None:
        STATE.run.log.attributes(o)
    object.__setattr__(o, name, value)


# -- callbacks and iteration


@handler(map)
def _map(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    f, *rest = args
    return map(functools.partial(call, f), *(hooks.iterate(r) for r in rest))


@handler(filter)
def _filter(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    f, items = args
    return filter(bind(f), hooks.iterate(items))


@handler(functools.reduce)
def _reduce(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    f, items, *initial = args
    return functools.reduce(functools.partial(call, f), hooks.iterate(items), *initial)


def _with_key(function: Any) -> None:
    @handler(function)
    def keyed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs.get("key") is not None:
            kwargs = {**kwargs, "key": functools.partial(call, kwargs["key"])}
        items = [hooks.iterate(args[0])] if len(args) == 1 else [explicit(a) for a in args]
        return function(*items, **kwargs)


for _function in (sorted, min, max):
    _with_key(_function)


@handler(sum)
def _sum(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    start = kwargs.get("start", args[1] if len(args) > 1 else 0)
    items = list(hooks.iterate(args[0]))
    total = start
    for item in items:
        total = hooks.OPERATORS["add"](total, item)
    # since Python 3.12 sum carries the rounding errors of floats along: the value is its own
    if type(plain(total)) in (float, complex) and _SUMMED.issuperset(map(type, (start, *items))):
        return _with_value(total, sum([plain(item) for item in items], plain(start)))
    return total


_SUMMED = {Scalar, float, int, complex, bool, np.float64}


def _with_value(x: Any, value: Any) -> Any:
    return Scalar(_with_value(x.p, value), x.terms, x.tag) if type(x) is Scalar else value


def _over_iterables(function: Any) -> None:
    @handler(function)
    def iterated(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return function(*(hooks.iterate(a) for a in args), **kwargs)


for _function in (zip, list, tuple, set, frozenset, enumerate, any, all, itertools.chain,
                  itertools.product, itertools.islice, itertools.zip_longest, itertools.cycle,
                  itertools.tee, itertools.combinations, itertools.permutations,
                  itertools.combinations_with_replacement, itertools.compress,
                  itertools.pairwise, deque):  # fmt: skip
    _over_iterables(_function)


def _by_callback(function: Any) -> None:
    """An iterator in C that asks a function about each item."""

    @handler(function)
    def asked(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
        f, items = args
        return function(bind(f), hooks.iterate(items))


for _function in (itertools.takewhile, itertools.dropwhile, itertools.filterfalse):
    _by_callback(_function)


@handler(itertools.groupby)
def _groupby(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = dict(zip(("iterable", "key"), args, strict=False)) | kwargs
    return itertools.groupby(hooks.iterate(bound["iterable"]), bind(bound.get("key")))


@handler(iter)
def _iter(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    if len(args) == 2:  # a function that is called until it answers the second argument
        return iter(bind(args[0]), args[1])
    return iter(*map(hooks.iterate, args))


@handler(functools.cmp_to_key)
def _cmp_to_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return functools.cmp_to_key(bind(*args, **kwargs))


def _from_mapping(cls: Any) -> None:
    @handler(cls)
    def make(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = [protocols.mapping(a) for a in args]
        return cls(*[g if isinstance(g, dict) else hooks.iterate(g) for g in given], **kwargs)


for _function in (dict, OrderedDict):
    _from_mapping(_function)


def _by_dunder(function: Any, name: str) -> None:
    """A builtin that asks its argument's class for a method, which may be the user's own."""
    previous = HANDLERS.get(function)

    @handler(function)
    def ask(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        own = getattr(type(args[0]), name, None) if args else None
        if isinstance(own, types.FunctionType) and not isinstance_dual(args[0]):
            return call(own, *args, **kwargs)
        if previous is not None:
            return previous(args, kwargs)
        return function(*[explicit(a) for a in args], **kwargs)


@handler(reversed)
def _reversed(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    (o,) = args
    o = explicit(o)
    items = protocols.in_python(type(o), "__getitem__") and not hasattr(type(o), "__reversed__")
    if isinstance_dual(o) or items:
        return (hooks.getitem(o, k) for k in range(call(len, o) - 1, -1, -1))
    return reversed(o)


@handler(next)
def _next(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    o = args[0]
    if type(o) is np.flatiter and SHADOWED and find_shadow(o.base) is not None:
        k = o.index
        if k < o.base.size:
            next(o)
            return methods.flat_load(o, k)
    if type(o) is types.GeneratorType:
        hooks.check_generator(o)
    step = getattr(type(args[0]), "__next__", None)
    if isinstance(step, types.FunctionType):
        try:
            return call(step, args[0])
        except StopIteration:
            if len(args) > 1:
                return args[1]
            raise
    return next(*args)


@handler(itertools.accumulate)
def _accumulate(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    items, *rest = args
    function = rest[0] if rest else kwargs.pop("func", None)
    step = hooks.OPERATORS["add"] if function is None else functools.partial(call, function)
    return itertools.accumulate(hooks.iterate(items), step, **kwargs)


@handler(itertools.starmap)
def _starmap(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    f, items = args
    return itertools.starmap(functools.partial(call, f), hooks.iterate(items))


@handler(np.frompyfunc)
def _frompyfunc(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    f, *rest = args
    return np.frompyfunc(functools.partial(call, f), *rest, **kwargs)


@handler(np.apply_along_axis)
def _apply_along_axis(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    f, axis, a, *rest = args
    a = np.moveaxis(explicit(a), axis, -1)
    shape = np.shape(plain(a))[:-1]
    made = [call(f, a[index], *rest, **kwargs) for index in np.ndindex(*shape)]
    first = np.shape(plain(explicit(made[0])))
    rows = make_array(made)
    rows = np.reshape(rows, (*shape, *first))
    order = list(range(len(shape)))
    order[axis if axis >= 0 else axis + len(shape) + 1 : 0] = []
    at = axis % (len(shape) + 1)
    for k in range(len(first)):
        rows = np.moveaxis(rows, len(shape) + k, at + k)
    return rows


def _list_writer(function: Any) -> None:
    """A C function of the standard library that reorders a list by comparing its items."""

    @handler(function)
    def write(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if STATE.run is not None:
            STATE.run.log.container(args[0])
        if kwargs.get("key") is not None:
            kwargs = {**kwargs, "key": functools.partial(call, kwargs["key"])}
        return function(*args, **kwargs)


for _function in (heapq.heapify, heapq.heappush, heapq.heappop, heapq.heappushpop,
                  heapq.heapreplace, bisect.insort, bisect.insort_left,
                  bisect.insort_right):  # fmt: skip
    _list_writer(_function)


def _over_numbers(function: Any) -> None:
    """A reduction of ``math`` over an iterable, which may be a generator of duals."""

    @handler(function)
    def reduced(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        first, *rest = args
        items = list(hooks.iterate(first))
        if SHADOWED:
            items = [protocols.as_number(i) for i in items]
        rule = find_rule(function)
        if rule is None or not is_active((items, *rest, *kwargs.values())):
            return function(items, *rest, **kwargs)
        return numpy_calls.with_out(rule, (items, *rest), kwargs)


for _function in (math.fsum, math.prod):
    _over_numbers(_function)

# -- operator module


def _with_args(hook: Any) -> Any:
    return lambda args, _kwargs: hook(*args)


for _name, _hook in hooks.OPERATORS.items():
    HANDLERS[getattr(operator, _name)] = _with_args(_hook)
for _name, _hook in hooks.INPLACE.items():
    HANDLERS[getattr(operator, _name)] = _with_args(_hook)
for _name, _hook in hooks.COMPARISONS.items():
    HANDLERS[getattr(operator, _name)] = _with_args(_hook)
HANDLERS[operator.pos] = lambda args, _kwargs: hooks.pos(*args)
HANDLERS[operator.invert] = lambda args, _kwargs: hooks.invert(*args)
HANDLERS[operator.abs] = lambda args, _kwargs: call(abs, *args)
HANDLERS[operator.contains] = lambda args, _kwargs: hooks.contains(args[1], args[0])
TRANSPARENT.update({operator.truth, operator.not_, operator.is_, operator.is_not})
HANDLERS[operator.neg] = lambda args, _kwargs: hooks.neg(*args)
HANDLERS[operator.getitem] = lambda args, _kwargs: hooks.getitem(*args)
HANDLERS[operator.setitem] = lambda args, _kwargs: hooks.setitem(args[2], args[0], args[1])
HANDLERS[operator.delitem] = lambda args, _kwargs: hooks.delitem(*args)


# -- NumPy: arrays out of duals


def _creation(function: Any) -> None:
    @handler(function)
    def create(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if len(args) == 1 and not kwargs and type(args[0]) is list:
            if Scalar in set(map(type, args[0])):
                return make_array(args[0])
        if SHADOWED and args and type(args[0]) not in protocols.KNOWN:
            given = args[0]
            viewed = type(given) in protocols.BUFFERS
            given = np.asarray(given) if viewed else protocols.as_numpy_reads(given)
            if len(args) > 1 or kwargs.get("dtype") is not None:  # then NumPy asks for numbers
                given = protocols.as_numbers(given)
            args = (given, *args[1:])
        own = getattr(type(args[0]), "__array__", None) if args else None
        if isinstance(own, types.FunctionType) and not isinstance_dual(args[0]):
            return call(function, call(own, args[0]), *args[1:], **kwargs)
        if not is_active(args) and not _holds_duals(args):
            return function(*args, **kwargs)
        values, *rest = args
        dtype = kwargs.get("dtype", rest[0] if rest else None)
        values = explicit(values)
        if type(values) is Array and dtype is not None and np.dtype(dtype).kind == "O":
            return methods.call_method(values, "astype", (object,), {})
        if type(values) is Array:
            return _as_numpy_would(function, values, dtype, rest[1:], kwargs)
        if type(values) is np.ndarray and values.dtype.kind == "O":
            values = values.tolist()
        made = make_array(values, dtype)
        ndmin = kwargs.get("ndmin", 0)
        if type(made) is Array and made.ndim < ndmin:
            made = np.reshape(made, (1,) * (ndmin - made.ndim) + made.shape)
        return made


def _as_numpy_would(
    function: Any, x: Array, dtype: Any, rest: list[Any], kwargs: dict[str, Any]
) -> Any:
    """An array from a dual array: the same, a view, or a copy in NumPy's choice of layout."""
    raw = plain(x)
    options = {k: v for k, v in kwargs.items() if k != "dtype"}
    converted = cast(x, dtype, copy=False)
    made = function(raw, dtype, *rest, **options)
    if made is raw:
        return x
    if made.dtype == raw.dtype and np.may_share_memory(made, raw):
        return np.reshape(x, made.shape)
    if made.shape != raw.shape:
        converted = np.reshape(converted, made.shape)
    p = (
        made
        if not isinstance_dual(converted.p)
        else methods.call_method(converted.p, "copy", (), {})
    )
    return Array(p, converted.t, converted.tag)


def _holds_duals(args: tuple[Any, ...]) -> bool:
    values = args[0] if args else None
    if type(values) is np.ndarray and values.dtype.kind == "O":
        return any(isinstance_dual(v) for v in values.flat)
    return False


for _function in (np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray,
                  np.asarray_chkfinite):  # fmt: skip
    _creation(_function)


@handler(np.fromiter)
def _fromiter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = dict(zip(("iter", "dtype", "count"), args, strict=False)) | kwargs
    items = list(hooks.iterate(bound["iter"]))
    count = bound.get("count", -1)
    if top_tag(items) is None:
        return np.fromiter(items, bound["dtype"], count)
    return make_array(items if count < 0 else items[:count], bound["dtype"])


@handler(np.full)
def _full(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if SHADOWED:
        args = protocols.all_as_numpy_reads(args)
    if not is_active((*args, *kwargs.values())):
        return np.full(*args, **kwargs)
    bound = dict(zip(("shape", "fill_value", "dtype", "order"), args, strict=False)) | kwargs
    value = explicit(bound["fill_value"])
    made = cast(make_array(value), bound.get("dtype"), copy=False)
    return methods.call_method(np.broadcast_to(made, bound["shape"]), "copy", (), {})


@handler(np.full_like)
def _full_like(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    names = ("a", "fill_value", "dtype", "order", "subok", "shape")
    bound = dict(zip(names, args, strict=False)) | kwargs
    shape = bound.get("shape")
    shape = np.shape(plain(bound["a"])) if shape is None else shape
    dtype = bound.get("dtype") or plain(bound["a"]).dtype
    return _full((shape, bound["fill_value"], dtype), {})


def _like(function: Any) -> None:
    @handler(function)
    def like(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return function(plain(args[0]), *args[1:], **kwargs)


for _function in (np.zeros_like, np.ones_like, np.empty_like):
    _like(_function)


class _Converter:
    """NumPy's own helper behind ``insert``, ``delete``, …, for arguments that are duals."""

    def __init__(self, *values: Any) -> None:
        self.values = [make_array(v) if is_active((v,)) else np.asarray(v) for v in values]
        self.scalar_input = tuple(np.ndim(primal_part(v)) == 0 for v in values)

    def __getitem__(self, k: int) -> Any:
        return self.values[k]

    def __len__(self) -> int:
        return len(self.values)

    def as_arrays(self, *, subok: bool = True, pyscalars: str = "convert") -> tuple[Any, ...]:
        """The arguments as arrays."""
        return tuple(self.values)

    def result_type(self, *_extra: Any, **_options: Any) -> Any:
        """The common dtype."""
        return np.result_type(*(plain(v) for v in self.values))

    def wrap(self, made: Any, *, to_scalar: bool | None = None) -> Any:
        """The result as it is: there is no subclass to restore."""
        return made[()] if to_scalar and np.ndim(plain(made)) == 0 else made


_array_converter: Any = getattr(np._core._multiarray_umath, "_array_converter", None)
if _array_converter is not None:

    @handler(_array_converter)
    def _convert(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
        return _Converter(*args) if is_active(args) else _array_converter(*args)


# -- NumPy: functions that write


@handler(np.copyto)
def _copyto(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = dict(zip(("dst", "src", "casting", "where"), args, strict=False)) | kwargs
    dst, where = bound["dst"], bound.get("where", True)
    if not is_active((dst, bound["src"])):
        numpy_calls.log_written(np.copyto, (dst,), {})
        return np.copyto(*args, **kwargs)
    value = explicit(bound["src"])
    if isinstance(value, (list, tuple)):
        value = make_array(value)
    numpy_calls.write_out(dst, value, where if where is True else np.asarray(where))
    return None


@handler(np.put)
def _put(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    a, indices, values, *mode = args
    hooks.method(a, "put", indices, values, *mode, **kwargs)


@handler(np.putmask)
def _putmask(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = dict(zip(("a", "mask", "values"), args, strict=False)) | kwargs
    a, mask, values = bound["a"], bound["mask"], bound["values"]
    if not is_active((a, values)):
        numpy_calls.log_written(np.putmask, (a,), {})
        return np.putmask(a, mask, values)
    chosen = np.flatnonzero(np.broadcast_to(mask, plain(a).shape))
    values = _flat_values(values)
    if chosen.size:
        picked = values[chosen % plain(values).size]
        store.store(a, np.unravel_index(chosen, plain(a).shape), picked)
    return None


@handler(np.place)
def _place(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = dict(zip(("arr", "mask", "vals"), args, strict=False)) | kwargs
    a, mask, values = bound["arr"], bound["mask"], bound["vals"]
    if not is_active((a, values)):
        numpy_calls.log_written(np.place, (a,), {})
        return np.place(a, mask, values)
    chosen = np.flatnonzero(mask)
    values = _flat_values(values)
    if chosen.size:
        picked = values[np.arange(chosen.size) % plain(values).size]
        store.store(a, np.unravel_index(chosen, plain(a).shape), picked)
    return None


def _flat_values(values: Any) -> Any:
    values = explicit(values)
    made = make_array(values) if not isinstance(values, np.ndarray) else values
    return np.ravel(made)


@handler(np.shape)
def _shape(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    return np.shape(primal_part(args[0]))


@handler(np.ndim)
def _ndim(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    return np.ndim(primal_part(args[0]))


@handler(np.size)
def _size(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return np.size(primal_part(args[0]), *args[1:], **kwargs)


# -- the ways out that lose a tangent


def _some_dual(v: Any) -> Any:
    """A dual in a value, at any depth of its lists and dicts."""
    v = explicit(v)
    if isinstance_dual(v) or type(v) in OPAQUE:
        return v
    if isinstance(v, dict):
        v = list(v.values())
    if isinstance(v, (list, tuple, set)):
        return next((d for d in map(_some_dual, v) if d is not None), None)
    return None


def _some_attribute(o: Any, seen: set[int]) -> Any:
    """A dual array among the attributes of objects, where arrays carry tangents in their memory."""
    found = _some_dual(o)
    if found is not None or id(o) in seen or isinstance(o, (type, types.ModuleType)):
        return found
    seen.add(id(o))
    items = o.values() if isinstance(o, dict) else o if isinstance(o, (list, tuple, set)) else ()
    held = getattr(o, "__dict__", None) or {}
    for item in (*items, *held.values()):
        found = _some_attribute(item, seen)
        if found is not None:
            return found
    return None


def _refuse(function: Any, what: str, *, views: bool = False) -> None:
    @handler(function)
    def refuse(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for v in (*args, *kwargs.values()):
            found = _some_attribute(v, set()) if SHADOWED else _some_dual(v)
            if SHADOWED and not views and type(v) in protocols.BUFFERS:
                protocols.check_buffer(v)
            if found is not None:
                raise DualLeakError(leak(what, found))
        return function(*args, **kwargs)


for _function in (pickle.dumps, pickle.dump, struct.pack, struct.pack_into, struct.unpack,
                  struct.unpack_from, struct.iter_unpack, json.dumps, json.dump,
                  array.array, bytes, bytearray, np.from_dlpack):  # fmt: skip
    _refuse(_function, "plain data")
_refuse(memoryview, "a plain buffer", views=True)
_refuse(np.save, "a file of plain numbers")
_refuse(np.savez, "a file of plain numbers")
_refuse(np.savetxt, "a file of plain numbers")
_refuse(np.frombuffer, "a plain buffer", views=True)


_refuse(np.nditer, "a plain array (through nditer)")


@handler(np.broadcast)
def _broadcast(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    return np.broadcast(*primal_part(args))


@handler(vars)
def _vars(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    if args and STATE.run is not None:
        STATE.run.log.attributes(args[0])
    return builtins.vars(*args)


_refused_classes = {np.ma.MaskedArray: "masked arrays", np.matrix: "numpy.matrix"}


def _refuse_class(function: Any, what: str) -> None:
    @handler(function)
    def refuse(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if is_active((*args, *kwargs.values())):
            message = f"{what} cannot carry derivatives: use a plain array and numpy.where"
            raise UnsupportedTypeError(message)
        return function(*args, **kwargs)


_CANNOT_CARRY: dict[Any, str] = {
    **_refused_classes,
    np.ma.array: "masked arrays",
    np.ma.asarray: "masked arrays",
    np.asmatrix: "numpy.matrix",
}
for _function, _what in _CANNOT_CARRY.items():
    _refuse_class(_function, _what)


def _strided(function: Any) -> None:
    """Views with strides of their own: of memory, whose tangents are then found by address."""

    @handler(function)
    def view(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        x, *rest = args
        if type(x) is Array:
            store.settle(x)
            x = plain(x)
        return function(x, *rest, **kwargs)


_strided(np.lib.stride_tricks.as_strided)
_strided(np.lib.stride_tricks.sliding_window_view)


@handler(itertools.chain.from_iterable)
def _from_iterable(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    return itertools.chain.from_iterable(hooks.iterate(row) for row in hooks.iterate(args[0]))


# -- threads: each starts outside of every derivative call


def _in_run(run: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function in another thread as a part of this thread's derivative call."""
    STATE.run = run
    try:
        return call(f, *args, **kwargs)
    except FwdadError as error:
        if run is not None:
            run.errors.append(error)
        raise


@handler(threading.Thread)
def _thread(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    target = kwargs.get("target", args[1] if len(args) > 1 else None)
    if STATE.run is None or target is None:
        return threading.Thread(*args, **kwargs)
    wrapped = functools.partial(_in_run, STATE.run, target)
    if len(args) > 1:
        return threading.Thread(args[0], wrapped, *args[2:], **kwargs)
    return threading.Thread(*args, **{**kwargs, "target": wrapped})


@handler(ThreadPoolExecutor.submit)
def _submit(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    pool, f, *rest = args
    return ThreadPoolExecutor.submit(pool, _in_run, STATE.run, f, *rest, **kwargs)


@handler(ThreadPoolExecutor.map)
def _pool_map(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    pool, f, *rest = args
    wrapped = functools.partial(_in_run, STATE.run, f)
    return ThreadPoolExecutor.map(pool, wrapped, *map(hooks.iterate, rest), **kwargs)


for _function, _dunder_name in (
    (abs, "__abs__"),
    (round, "__round__"),
    (divmod, "__divmod__"),
    (len, "__len__"),
    (reversed, "__reversed__"),
    (complex, "__complex__"),
    (bool, "__bool__"),
    (math.floor, "__floor__"),
    (math.ceil, "__ceil__"),
    (math.trunc, "__trunc__"),
):
    _by_dunder(_function, _dunder_name)
