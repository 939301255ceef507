"""Callbacks and iterators of Python and NumPy, whose functions and items may be the user's."""

from __future__ import annotations

import bisect
import functools
import heapq
import itertools
import math
import types
from collections import OrderedDict, deque
from typing import Any

import numpy as np

from fwdad.eager import hooks
from fwdad.eager.activity import is_active
from fwdad.eager.calls import numpy_calls, protocols
from fwdad.eager.calls.creation import make_array
from fwdad.eager.calls.dispatch import bind, call, handler
from fwdad.eager.duals import flat
from fwdad.eager.duals.explicit import explicit
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.hooks.iteration import check_generator
from fwdad.eager.memory.shadow import SHADOWED, find_shadow
from fwdad.eager.run import STATE
from fwdad.rules.core.registry import find_rule
from fwdad.tangents.plain import plain


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
    """Handle an iterator in C that calls a function for each item."""

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
    if len(args) == 2:  # a function that is called until it returns the second argument
        return iter(bind(args[0]), args[1])
    return iter(*map(hooks.iterate, args))


@handler(functools.cmp_to_key)
def _cmp_to_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return functools.cmp_to_key(bind(*args, **kwargs))


def _from_mapping(cls: Any) -> None:
    @handler(cls)
    def make(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        mappings = [protocols.mapping(a) for a in args]
        return cls(*[g if isinstance(g, dict) else hooks.iterate(g) for g in mappings], **kwargs)


for _function in (dict, OrderedDict):
    _from_mapping(_function)


@handler(next)
def _next(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    o = args[0]
    if type(o) is np.flatiter and SHADOWED and find_shadow(o.base) is not None:
        k = o.index
        if k < o.base.size:
            next(o)
            return flat.flat_load(o, k)
    if type(o) is types.GeneratorType:
        check_generator(o)
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
    named = functools.update_wrapper(functools.partial(call, f), f)
    return np.frompyfunc(named, *rest, **kwargs)


@handler(np.apply_along_axis)
def _apply_along_axis(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    f, axis, a, *rest = args
    a = np.moveaxis(explicit(a), axis, -1)
    shape = np.shape(plain(a))[:-1]
    results = [call(f, a[index], *rest, **kwargs) for index in np.ndindex(*shape)]
    first = np.shape(plain(explicit(results[0])))
    rows = make_array(results)
    rows = np.reshape(rows, (*shape, *first))
    order = list(range(len(shape)))
    order[axis if axis >= 0 else axis + len(shape) + 1 : 0] = []
    at = axis % (len(shape) + 1)
    for k in range(len(first)):
        rows = np.moveaxis(rows, len(shape) + k, at + k)
    return rows


def _list_writer(function: Any) -> None:
    """Handle a C function of the standard library that reorders a list by comparing its items."""

    @handler(function)
    def write(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if STATE.run is not None:
            STATE.run.log.container(args[0])
        if kwargs.get("key") is not None:
            kwargs = {**kwargs, "key": functools.partial(call, kwargs["key"])}
        return function(*args, **kwargs)


def _best(function: Any) -> None:
    """Handle ``heapq.nlargest`` and its relatives, Python around C that needs a list of its own."""

    @handler(function)
    def best(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        bound = dict(zip(("n", "iterable", "key"), args, strict=False)) | kwargs
        items = list(hooks.iterate(bound["iterable"]))
        return function(bound["n"], items, bind(bound.get("key")))


for _function in (heapq.nlargest, heapq.nsmallest):
    _best(_function)


def _of_items(function: Any) -> None:
    """Handle ``tuple.__new__(cls, x)``, as the user's subclasses call it."""

    @handler(function)
    def make(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
        owner, *items = args
        return function(owner, *map(hooks.iterate, items))


for _function in (tuple.__new__, frozenset.__new__, list.__init__):
    _of_items(_function)


@handler(dict.fromkeys)
def _fromkeys(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    keys, *value = args
    return dict.fromkeys(hooks.iterate(keys), *value)


for _function in (heapq.heapify, heapq.heappush, heapq.heappop, heapq.heappushpop,
                  heapq.heapreplace, bisect.insort, bisect.insort_left,
                  bisect.insort_right):  # fmt: skip
    _list_writer(_function)


def _over_numbers(function: Any) -> None:
    """Handle a reduction of ``math`` over an iterable, which may be a generator of duals."""

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


@handler(itertools.chain.from_iterable)
def _from_iterable(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    return itertools.chain.from_iterable(hooks.iterate(row) for row in hooks.iterate(args[0]))


@handler(np.broadcast)
def _broadcast(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return Broadcast(args) if is_active(args) else np.broadcast(*args, **kwargs)


class Broadcast:
    """``np.broadcast`` of arrays that carry tangents: its shape, and its items one by one."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        whole = np.broadcast(*(plain(explicit(a)) for a in args))
        self.shape, self.size, self.numiter = whole.shape, whole.size, whole.numiter
        self.nd = self.ndim = whole.ndim
        parts = [call(np.ravel, call(np.broadcast_to, a, self.shape)) for a in args]
        self._items = zip(*(hooks.iterate(part) for part in parts), strict=True)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return next(self._items)
