"""Callbacks and iterators of Python and NumPy, whose functions and items may be the user's."""

from __future__ import annotations

import functools
import math
import operator
import types
from collections import OrderedDict
from collections.abc import Callable
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
from fwdad.eager.hooks.iteration import check_generator, mapping
from fwdad.eager.lifting.lift import lift
from fwdad.eager.memory.shadow import SHADOWED, find_shadow
from fwdad.eager.run import STATE
from fwdad.ops import functions_with, record_of
from fwdad.ops.parameters import UNKNOWN, Parameters, Role
from fwdad.rules.core.registry import find_rule
from fwdad.tangents.plain import plain

# -- functions whose parameters are known


def _callback(f: Any) -> Any:
    """A function for C code to call: an operator is a hook, any other one is bound."""
    if type(f) is types.BuiltinFunctionType and f in hooks.OPERATORS:
        return hooks.OPERATORS[f]
    return bind(f)


def _changed(items: Any) -> Any:
    if STATE.run is not None:
        STATE.run.log.container(items)
    return items


def _itself(x: Any) -> Any:
    return x


_CONVERT: dict[Role, Callable[[Any], Any]] = {
    Role.ITEMS: hooks.iterate,
    Role.ROWS: lambda rows: (hooks.iterate(row) for row in hooks.iterate(rows)),
    Role.TRUTHS: hooks.iterate,
    Role.FUNCTION: _callback,
    Role.TEST: _callback,
    Role.KEY: _callback,
    Role.OPTION: _itself,
    Role.VALUE: _itself,
    Role.LIST: _changed,
}


def _by_roles(function: Any, parameters: Parameters) -> None:
    """Handle a function in C whose parameters are known."""
    converted = parameters.converter(_CONVERT)

    @handler(function)
    def call_converted(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args, kwargs = converted(args, kwargs)
        return function(*args, **kwargs)


for _function in functions_with(lambda record: record.parameters is not UNKNOWN):
    _by_roles(_function, record_of(_function).parameters)


# -- functions with a way of their own


def _extreme(function: Any) -> None:
    @handler(function)
    def extreme(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if "key" in kwargs:
            kwargs = {**kwargs, "key": _callback(kwargs["key"])}
        items = [hooks.iterate(args[0])] if len(args) == 1 else [explicit(a) for a in args]
        return function(*items, **kwargs)


for _function in (min, max):
    _extreme(_function)


@handler(sum)
def _sum(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    start = kwargs.get("start", args[1] if len(args) > 1 else 0)
    items, add = list(hooks.iterate(args[0])), hooks.OPERATORS[operator.add]
    total = start
    for item in items:
        total = add(total, item)
    # since Python 3.12 sum carries the rounding errors of floats along: the value is its own
    if type(plain(total)) in (float, complex) and _SUMMED.issuperset(map(type, (start, *items))):
        return _with_value(total, sum([plain(item) for item in items], plain(start)))
    return total


_SUMMED = {Scalar, float, int, complex, bool, np.float64}


def _with_value(x: Any, value: Any) -> Any:
    return Scalar(_with_value(x.p, value), x.terms, x.tag) if type(x) is Scalar else value


@handler(iter)
def _iter(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    if len(args) == 2:  # a function that is called until it returns the second argument
        return iter(bind(args[0]), args[1])
    return iter(*map(hooks.iterate, args))


def _from_mapping(cls: Any) -> None:
    @handler(cls)
    def make(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        mappings = [mapping(a) for a in args]
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


@handler(np.frompyfunc)
def _frompyfunc(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    f, *rest = args
    named = functools.update_wrapper(functools.partial(call, f), f)
    return np.frompyfunc(named, *rest, **kwargs)


@handler(np.vectorize.__call__)
def _vectorized(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call by another object than the user's, which may keep a ufunc of the unlifted function."""
    o: Any = args[0]
    call_of: Any = np.vectorize.__call__
    if type(o) is np.vectorize and callable(o.pyfunc):
        o = np.vectorize(o.pyfunc, o.otypes, None, o.excluded, o.cache, o.signature)
    lifted: Any = lift(call_of)
    return lifted(o, *args[1:], **kwargs)


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
