"""The tables of what is called by its meaning, and how their entries are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwdad.core.register_into import enter_into
from fwdad.frontend.syntax import growing_use
from fwdad.frontend.syntax.attributes import METHODS

CALLED: dict[type, Callable[..., Any]] = {growing_use.Bound: growing_use.call_bound}
"""How objects of some classes are called in a trace: ``call(tracer, f, args, kwargs)``."""

METHODS_OF: dict[type, Callable[..., Any]] = {}
"""How methods of objects of some classes are called: ``call(tracer, method, args, kwargs)``."""

MANAGED: list[Callable[..., Any]] = []
"""How functions under ``contextlib.contextmanager`` are called: one handler."""

BUILTINS: dict[Any, Callable[..., Any]] = {}
"""Builtins with a meaning of their own: ``handle(tracer, *args, **kwargs)``."""


def builtin(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give builtins their meaning."""
    return enter_into(BUILTINS, functions)


def method(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a method of arrays its meaning."""
    return enter_into(METHODS, (name,))
