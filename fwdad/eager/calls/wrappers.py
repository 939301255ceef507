"""Calls of objects that wrap another callable: ``partial``, ``lru_cache``, ``attrgetter``, …."""

from __future__ import annotations

import copy
import functools
import operator
from typing import Any

import numpy as np

from fwdad.core.getters import got_attributes, method_called
from fwdad.eager.calls.dispatch import call, on_call
from fwdad.eager.duals.dual import OPAQUE
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.hooks.attributes import attr
from fwdad.eager.hooks.method_calls import method
from fwdad.eager.run import STATE
from fwdad.errors import NondeterministicFunctionError
from fwdad.tangents.plain import plain


@on_call(functools.partial)
def _call_partial(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(f.func, *f.args, *args, **{**f.keywords, **kwargs})


@on_call(functools._lru_cache_wrapper)
def _call_cached(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function under ``lru_cache``, with a cache for this run only, to keep no duals."""
    run = STATE.run
    if run is None:
        return call(f.__wrapped__, *args, **kwargs)
    key = (id(f), _identities(args), _identities(tuple(sorted(kwargs.items()))))
    if key not in run.memo:
        value = call(f.__wrapped__, *args, **kwargs)
        run.memo[key] = (value, f, args, kwargs)
        _returns_the_same(f, args, kwargs, value)
    return run.memo[key][0]


def _returns_the_same(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
    """Raise if equal values with other tangents give another result than Python's cache would."""
    arguments = (*args, *(x for pair in sorted(kwargs.items()) for x in pair))
    bare, value = list(map(plain, arguments)), plain(result)
    numbers = (int, float, complex)
    if not any(map(isinstance_dual, arguments)) or not isinstance(value, (*numbers, np.ndarray)):
        return
    if not all(x is None or isinstance(x, (*numbers, str)) for x in bare):
        return  # arrays are no keys: Python raises
    key = ("result", id(f), len(args), *((type(x), x) for x in bare))
    first = STATE.run.memo.setdefault(key, copy.copy(value))
    alike = np.shape(first) == np.shape(value)
    if not (alike and np.allclose(first, value, rtol=1e-12, atol=0.0, equal_nan=True)):
        name = getattr(f, "__name__", "f")
        message = (
            f"{name}, cached by functools.lru_cache, returns {first} and {value} for equal "
            "arguments that carry derivatives: it depends on something that changed between the "
            "calls, where Python would return the first result again. Pass what changes as an "
            "argument"
        )
        raise NondeterministicFunctionError(message)


def _identities(values: Any) -> tuple[Any, ...]:
    """A key for cached arguments: a dual by its identity, anything else by value."""
    return tuple(
        ("dual", id(v))
        if isinstance_dual(v) or type(v) in OPAQUE
        else _identities(v)
        if type(v) is tuple
        else (type(v), v)
        for v in values
    )


@on_call(operator.attrgetter)
def _call_attrgetter(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``operator.attrgetter``, which may reach the user's properties."""
    if len(args) != 1 or kwargs:
        return f(*args, **kwargs)  # raises
    return got_attributes(f, args[0], attr)


@on_call(operator.methodcaller)
def _call_methodcaller(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 1 or kwargs:
        return f(*args, **kwargs)  # raises
    name, given, options = method_called(f)
    return method(args[0], name, *given, **options)
