"""The tables of callables with a meaning of their own, and the decorators that fill them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwdad.core.register_into import enter_into
from fwdad.frontend.syntax.bound_methods import METHODS
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ops import record_of

CALLED: dict[type, Callable[..., Any]] = {}
"""How objects of some classes are called in a trace: ``call(tracer, f, args, kwargs)``."""

ATTRIBUTES_OF: dict[type, Callable[..., Any]] = {}
"""How attributes of stand-ins of some classes are read: ``read(tracer, o, name)``."""

METHODS_OF: dict[type, Callable[..., Any]] = {}
"""How methods of objects of some classes are called: ``call(tracer, method, args, kwargs)``."""

BUILTINS: dict[Any, Callable[..., Any]] = {}
"""Builtins with a meaning of their own: ``handle(tracer, *args, **kwargs)``."""


def builtin(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Define the meaning of builtins, which the special method of a user's class may replace."""

    def enter(handle: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            name = record_of(function).special_method
            BUILTINS[function] = _or_own(name, handle) if name else handle
        return handle

    return enter


def _or_own(name: str, handle: Callable[..., Any]) -> Callable[..., Any]:
    def ask(tracer: Tracer, x: Any, *args: Any, **kwargs: Any) -> Any:
        own = tracer.values.python_method(x, name)
        if own is not None:
            return tracer.call(own, (x, *args), kwargs)
        return handle(tracer, x, *args, **kwargs)

    return ask


def method(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Define the meaning of a method of arrays."""
    return enter_into(METHODS, (name,))
