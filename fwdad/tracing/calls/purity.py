"""Which functions answer the same whenever they are called with the same arguments."""

from __future__ import annotations

import builtins
import types
from typing import Any

# Compiled functions of these modules depend on nothing but their arguments.
_PURE = {
    "_bisect", "_collections", "_functools", "_heapq", "_operator", "_struct", "bisect", "builtins",
    "cmath", "collections", "copy", "decimal", "fractions", "functools", "heapq", "itertools",
    "math", "numpy", "operator", "re", "scipy", "struct", "types", "typing", "unicodedata",
}  # fmt: skip
_IMPURE_BUILTINS = {
    builtins.open, builtins.input, builtins.exec, builtins.eval, builtins.next, builtins.compile,
    builtins.__import__, builtins.breakpoint, builtins.globals, builtins.locals, builtins.id,
}  # fmt: skip
# Python code of these modules asks the clock, the system or a state.
_IMPURE = {
    "asyncio", "datetime", "http", "io", "multiprocessing", "os", "pathlib", "queue", "random",
    "secrets", "select", "shutil", "socket", "subprocess", "tempfile", "threading", "time",
    "urllib", "uuid",
}  # fmt: skip


def is_impure(f: Any) -> bool:
    """Whether what a function answers may differ from call to call.

    Parameters
    ----------
    f : callable
        A function without values that are not known among its arguments.
    """
    if isinstance(f, types.FunctionType):
        return f.__module__ is not None and f.__module__.split(".")[0] in _IMPURE
    if isinstance(f, type):
        return f.__module__.split(".")[0] in _IMPURE
    if not isinstance(f, types.BuiltinFunctionType):
        return False
    if f in _IMPURE_BUILTINS:
        return True
    return _home(f) not in _PURE


def _home(f: types.BuiltinFunctionType) -> str:
    """The module of a compiled function, or of the class whose method it is."""
    owner = f.__self__
    if isinstance(owner, types.ModuleType) or owner is None:
        module = f.__module__ or getattr(owner, "__name__", "")
    else:
        module = (owner if isinstance(owner, type) else type(owner)).__module__
    return (module or "").split(".")[0]


_OF_SYSTEM = {*_IMPURE, "_random", "nt", "posix"}


def reads_world(f: Any) -> bool:
    """Whether a function is known to draw at random, or to ask the clock, the system or the user.

    Parameters
    ----------
    f : callable
        Any; of functions that nobody knows this is not said.
    """
    if isinstance(f, types.MethodType):
        return reads_world(f.__func__) or _of_system(type(f.__self__))
    if isinstance(f, types.BuiltinFunctionType):
        owner = f.__self__
        known = owner is not None and not isinstance(owner, types.ModuleType)
        return (
            f in _IMPURE_BUILTINS or _home(f) in _OF_SYSTEM or (known and _of_system(type(owner)))
        )
    return isinstance(f, (types.FunctionType, type)) and _of_system(f)


def _of_system(f: Any) -> bool:
    module = f.__module__ or ""
    return module.startswith("numpy.random") or module.split(".")[0] in _OF_SYSTEM
