"""Calls of library functions in canonical form: no redundant defaults, ``out`` as a keyword."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any

import numpy as np

from fwdad.ir.symbol import Symbol
from fwdad.rules.core.registry import out_name

_NO_DEFAULT = {Symbol, list, np.ndarray}  # types that no parameter's default has
_NO_VALUE = np._NoValue  # what NumPy's signatures have for "not given"


@lru_cache(maxsize=4096)
def _parameters(function: Any) -> tuple[tuple[str, Any], ...] | None:
    """Names and defaults of a library function's parameters; None where they are unknown."""
    if isinstance(function, np.ufunc) or not hasattr(function, "__name__"):
        return None
    if _is_operator(function):  # without options
        return None
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return None
    return tuple((p.name, p.default) for p in parameters if p.kind is not p.KEYWORD_ONLY)


@lru_cache(maxsize=4096)
def _named_defaults(function: Any) -> dict[str, Any]:
    """The defaults of a library function's keyword-only parameters."""
    if not hasattr(function, "__name__"):
        return {}
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def tidy(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call without arguments that equal their defaults; the remaining options are keywords.

    Permission to overwrite an argument (``overwrite_a=True``) is dropped, since the tape reads the
    argument again, and the memory may be the caller's.
    """
    library = str(getattr(function, "__module__", "")).startswith(("numpy", "scipy"))
    library = library or type(function).__name__ == "fortran"  # f2py's name no module
    kwargs = {
        key: a
        for key, a in kwargs.items()
        if a is not _NO_VALUE and key != "out" and not (library and _uses_up(key))
    }
    if kwargs and not isinstance(function, np.ufunc):
        named = {**dict(_parameters(function) or ()), **_named_defaults(function)}
        kwargs = {
            key: a for key, a in kwargs.items() if not (key in named and _is_default(a, named[key]))
        }
    last = args[-1] if args else None
    if type(last) in _NO_DEFAULT or isinstance(last, np.dtype):
        if not any(a is _NO_VALUE for a in args):
            return args, kwargs  # the signatures of C functions are strings, and slow to parse
    parameters = _parameters(function)
    if parameters is None or len(args) > len(parameters):
        return args, kwargs
    if library and any(_uses_up(name) for name, _ in parameters[: len(args)]):
        pairs = zip(args, parameters, strict=False)
        args = tuple(False if _uses_up(name) else a for a, (name, _) in pairs)
    keep = len(args)
    while keep and _is_default(args[keep - 1], parameters[keep - 1][1]):
        keep -= 1
    if any(a is _NO_VALUE for a in args[:keep]):
        first = next(k for k, a in enumerate(args) if _is_default(a, parameters[k][1]))
        named = {
            name: a
            for a, (name, default) in zip(args[first:], parameters[first:], strict=False)
            if not _is_default(a, default)
        }
        return args[:first], {**named, **kwargs}
    return args[:keep], kwargs


@lru_cache(maxsize=4096)
def positional(function: Any) -> list[str]:
    """The names of the parameters that can be passed by position."""
    if _is_operator(function):
        return []
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def with_named_out(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call whose output array is passed as ``out``."""
    if isinstance(function, np.ufunc):
        n = function.nin
        if len(args) <= n:
            return args, kwargs
        if len(args) > function.nargs:
            name, most = function.__name__, function.nargs
            raise TypeError(
                f"{name}() takes from {n} to {most} positional arguments but {len(args)} were given"
            )
        completed = (*args[n:], *[None] * (function.nout - len(args) + n))
        return args[:n], {**kwargs, "out": completed}
    text = getattr(function, "__text_signature__", None)  # of a C function, which is faster to read
    may_write = len(args) > 1 and (text is None or "out" in text)  # nobody's first argument
    names = positional(function) if may_write else []
    name = out_name(function)
    if name in names[: len(args)]:
        k = names.index(name)
        rest = dict(zip(names[k + 1 :], args[k + 1 :], strict=False))
        args, kwargs = args[:k], {name: args[k], **rest, **kwargs}
    target: Any = kwargs.get(name)
    if name != "out" and (isinstance(target, np.ndarray) or getattr(target, "is_array", False)):
        return args, {**kwargs, name: target.dtype, "out": target}
    return args, kwargs


def _uses_up(option: str) -> bool:
    return option.startswith("overwrite_")


def _is_default(a: Any, default: Any) -> bool:
    return a is default or (
        type(a) in (bool, int, str) and type(default) is type(a) and a == default
    )


def _is_operator(function: Any) -> bool:
    return getattr(function, "__module__", None) == "_operator"
