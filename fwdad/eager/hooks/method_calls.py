"""The hook of method calls, ``o.name(...)``."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from fwdad.core.containers import CHANGING, READING_ITEMS
from fwdad.core.lifted_code import LIFTED
from fwdad.eager.calls import protocols
from fwdad.eager.calls.apply import apply_to_array
from fwdad.eager.calls.dispatch import call, call_function
from fwdad.eager.calls.effectful import is_file
from fwdad.eager.calls.numpy_functions import NumpyFunction, call_numpy, call_ufunc
from fwdad.eager.duals import methods
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.explicit import explicit
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.hooks.attributes import attr
from fwdad.eager.hooks.iteration import iterate, mapping
from fwdad.eager.hooks.known_types import KEYS, PLAIN
from fwdad.eager.hooks.subscripts import check_key, getitem, setitem
from fwdad.eager.memory import stale
from fwdad.eager.memory.containers import CONTAINERS, log_container
from fwdad.eager.memory.draws import note_generator
from fwdad.eager.memory.reach import check_reach
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.eager.run import STATE
from fwdad.rules.core.registry import RULES

_LOOKUPS = {"get", "pop", "setdefault", "__getitem__"}


def method_of_one(o: Any, name: str, x: Any) -> Any:
    """``o.name(x)``, with a shortcut for the commonest case, ``np.sin(x)``."""
    if type(x) is Array and type(o) is types.ModuleType:
        f = getattr(o, name)
        if type(f) is np.ufunc:
            rule = RULES.get(f)
            if rule is not None and rule.kind == "elementwise":
                return apply_to_array(rule, f, x)
        elif type(f) is NumpyFunction:
            return call_numpy(f, (x,), {})
    return method(o, name, x)


def method(o: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
    """``o.name(*args, **kwargs)``."""
    t = type(o)
    if t is types.ModuleType:
        f = getattr(o, name)
        if type(f) is np.ufunc:
            return call_ufunc(f, args, kwargs)
        if type(f) is NumpyFunction:
            return call_numpy(f, args, kwargs)
        return call(f, *args, **kwargs)
    if t is Array or t is Scalar:
        if SHADOWED and args:
            args = _read_by_method(name, args)
        return methods.call_method(o, name, args, kwargs)
    if t is np.ndarray:
        if SHADOWED:
            if o.dtype.hasobject:
                check_reach(getattr(o, name), (o,))
            if args:
                args = _read_by_method(name, args)
        return methods.call_plain_method(o, name, args, kwargs)
    if args and type(args[0]) in KEYS and isinstance(o, dict) and name in _LOOKUPS:
        check_key(o, args[0])
    if t is np.flatiter:
        return _flat_method(o, name, args, kwargs)
    if t in protocols.BUFFERS:
        if SHADOWED and name not in ("cast", "release", "toreadonly"):
            protocols.check_buffer(o)
        if t is memoryview:
            return getattr(o, name)(*args, **kwargs)
    mutating = CHANGING.get(t)
    if mutating is not None:
        if name in mutating:
            log_container(o)
            if name == "sort" and kwargs.get("key") is not None:
                kwargs["key"] = functools.partial(call, kwargs["key"])
            if name == "__setitem__":
                return setitem(args[1], o, args[0])
            if name in READING_ITEMS and args:
                first = mapping(args[0])
                args = (first if isinstance(first, dict) else iterate(first), *args[1:])
        return _found(getattr(o, name)(*args, **kwargs))
    if args and methods.is_number_operator(o, name, args):
        return methods.number_operator(o, name, args)
    if t in PLAIN:
        return _found(getattr(o, name)(*args, **kwargs))
    if t is ContextVar:
        value = getattr(o, name)(*args, **kwargs)
        if name == "set" and STATE.run is not None:
            STATE.run.log.context(value)
        return value
    note_generator(o)
    if isinstance(o, CONTAINERS):
        log_container(o)
    f = attr(o, name)
    if type(f) is types.MethodType and type(f.__func__) is types.FunctionType and not is_file(o):
        if id(f.__func__.__code__) in LIFTED:  # as the dispatcher does, without its frames
            return f(*args, **kwargs)
        return call_function(f.__func__, (f.__self__, *args), kwargs)
    return call(f, *args, **kwargs)


def _found(x: Any) -> Any:
    """The result of a container's method, or a dead dual if it is left from an earlier call."""
    return stale.revive(x) if stale.NUMBERS else x


def _flat_method(o: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a method of ``a.flat`` by its name."""
    method = _FLAT_METHODS.get(name)
    if method is not None:
        return method(o, *args)
    return getattr(o, name)(*args, **kwargs)


_FLAT_METHODS: dict[str, Callable[..., Any]] = {
    "__setitem__": lambda o, index, value: setitem(value, o, index),
    "__getitem__": getitem,
    "__next__": lambda o: call(next, o),
    "__array__": lambda o, *args: call(np.array, np.ravel(explicit(o.base)), *args),
    "copy": lambda o: call(np.array, np.ravel(explicit(o.base))),
}


def _read_by_method(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    args = protocols.all_as_numpy_reads(args)
    if name in ("__setitem__", "fill"):
        args = (*args[:-1], protocols.as_number(args[-1]))
    return args
