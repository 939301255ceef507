"""Calls of what stands for another callable: ``partial``, ``lru_cache``, ``attrgetter``, …."""

from __future__ import annotations

import functools
import operator
from typing import Any

from fwdad.builder.calls.dispatch import call, on_call
from fwdad.builder.duals.dual import OPAQUE
from fwdad.builder.duals.tags import isinstance_dual
from fwdad.builder.hooks.attributes import attr
from fwdad.builder.hooks.method_calls import method
from fwdad.builder.run import STATE


@on_call(functools.partial)
def _call_partial(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(f.func, *f.args, *args, **{**f.keywords, **kwargs})


@on_call(functools._lru_cache_wrapper)
def _call_cached(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of an ``lru_cache``: kept for this derivative call only, or it would keep duals."""
    run = STATE.run
    if run is None:
        return call(f.__wrapped__, *args, **kwargs)
    key = (id(f), _identities(args), _identities(tuple(sorted(kwargs.items()))))
    if key not in run.memo:
        run.memo[key] = (call(f.__wrapped__, *args, **kwargs), f, args, kwargs)
    return run.memo[key][0]


def _identities(values: Any) -> tuple[Any, ...]:
    """A key for cached arguments: a dual is known by its identity, the rest by value."""
    return tuple(
        ("dual", id(v))
        if isinstance_dual(v) or type(v) in OPAQUE
        else _identities(v)
        if type(v) is tuple
        else (type(v), v)
        for v in values
    )


@on_call(operator.attrgetter, operator.methodcaller)
def _call_getter(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``operator.attrgetter`` and ``methodcaller`` reach properties and methods of the user's."""
    if len(args) != 1 or kwargs:
        return f(*args, **kwargs)  # raises
    (o,) = args
    made, given = f.__reduce__()
    if type(f) is operator.attrgetter:
        found = []
        for dotted in given:
            value = o
            for name in dotted.split("."):
                value = attr(value, name)
            found.append(value)
        return found[0] if len(found) == 1 else tuple(found)
    options = made.keywords if isinstance(made, functools.partial) else {}
    name, *rest = (*made.args, *given) if isinstance(made, functools.partial) else given
    return method(o, name, *rest, **options)
