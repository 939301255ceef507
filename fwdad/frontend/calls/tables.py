"""The tables of callables with a meaning of their own, and the decorators that fill them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwdad.core.register_into import enter_into
from fwdad.frontend.syntax.bound_methods import METHODS

CALLED: dict[type, Callable[..., Any]] = {}
"""How objects of some classes are called in a trace: ``call(tracer, f, args, kwargs)``."""

ATTRIBUTES_OF: dict[type, Callable[..., Any]] = {}
"""How attributes of stand-ins of some classes are read: ``read(tracer, o, name)``."""

METHODS_OF: dict[type, Callable[..., Any]] = {}
"""How methods of objects of some classes are called: ``call(tracer, method, args, kwargs)``."""

BUILTINS: dict[Any, Callable[..., Any]] = {}
"""Builtins with a meaning of their own: ``handle(tracer, *args, **kwargs)``."""


def builtin(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Define the meaning of builtins."""
    return enter_into(BUILTINS, functions)


def method(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Define the meaning of a method of arrays."""
    return enter_into(METHODS, (name,))
