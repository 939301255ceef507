"""Tests for functions that may be called at tracing time, with arguments that are known by then.

They return the same whenever they are called with the same arguments, and do nothing else.
"""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

from fwdad.errors import is_library_file
from fwdad.ir.abstract_eval.purity import is_pure
from fwdad.ops import record_of

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
# Python code of these modules reads the clock, the system or a state, or changes it.
_IMPURE = {
    "asyncio", "csv", "datetime", "http", "io", "logging", "multiprocessing", "os", "pathlib",
    "pickle", "queue", "random", "secrets", "select", "shelve", "shutil", "signal", "socket",
    "sqlite3", "subprocess", "sys", "tempfile", "threading", "time", "traceback", "urllib", "uuid",
}  # fmt: skip
_LIBRARIES = {"fwdad", "numba", "numpy", "scipy"}
# functions of SciPy that read or write files or global options
_IMPURE_OF_SCIPY = {
    "load_npz",
    "register_backend",
    "save_npz",
    "set_backend",
    "set_global_backend",
    "set_workers",
    "seterr",
    "skip_backend",
}


def is_impure(f: Any) -> bool:
    """Whether a function's result may differ from call to call, or it has effects.

    It is asked only where all arguments are known.
    """
    if is_pure(f):
        return False
    home, name = getattr(f, "__module__", None) or "", getattr(f, "__name__", "")
    root = home.split(".")[0]
    if root == "numpy" and record_of(f).outside:
        return True
    if root == "scipy":
        return name in _IMPURE_OF_SCIPY or home.startswith(("scipy.io", "scipy.datasets"))
    if isinstance(f, (types.FunctionType, type)):
        return root in _IMPURE
    if not isinstance(f, types.BuiltinFunctionType):  # nobody knows what C code does
        kind = type(f).__module__.split(".")[0]
        return kind not in _PURE and kind not in _LIBRARIES
    if f in _IMPURE_BUILTINS:
        return True
    return _home(f) not in _PURE


def is_of_package(f: Any) -> bool:
    """Whether something that is called belongs to an installed package, but NumPy and fwdad."""
    module = getattr(f, "__module__", None) or type(f).__module__
    root = module.partition(".")[0] if isinstance(module, str) else ""
    if root in ("numpy", "fwdad", "builtins") or root in sys.stdlib_module_names:
        return False
    return is_library_file(getattr(sys.modules.get(root), "__file__", None) or "")


def is_of_files(f: types.FunctionType) -> bool:
    """Whether a library function is refused by its own name, not by what its source calls."""
    return (f.__module__ or "").split(".")[0] in ("logging", "numpy", "scipy") and is_impure(f)


def is_trusted(f: types.FunctionType) -> bool:
    """Whether a Python function is NumPy's, SciPy's or Python's; any other is traced."""
    root = (f.__module__ or "").split(".")[0]
    return root in _LIBRARIES or root in sys.stdlib_module_names


def shows(f: types.FunctionType) -> bool:
    """Whether a function of Python's library, or of those that it calls, writes onto the screen."""
    if (f.__module__ or "").split(".")[0] not in sys.stdlib_module_names:
        return False
    waiting, seen = [f], set()
    while waiting:
        g = waiting.pop()
        if g not in seen:
            seen.add(g)
            names = g.__code__.co_names
            if not _SCREEN.isdisjoint(names):
                return True
            called = (g.__globals__.get(name) for name in names)
            waiting += [h for h in called if isinstance(h, types.FunctionType)]
    return False


_SCREEN = {"print", "stdout", "stderr"}


def _home(f: types.BuiltinFunctionType) -> str:
    """The module of a compiled function, or of the class whose method it is."""
    owner = f.__self__
    if isinstance(owner, types.ModuleType) or owner is None:
        module = f.__module__ or getattr(owner, "__name__", "")
    else:
        module = (
            _defining(owner, f.__name__) if isinstance(owner, type) else type(owner)
        ).__module__
    return (module or "").split(".")[0]


def _defining(cls: type, name: str) -> type:
    """The class whose method is called on a class: one of its bases', or of its metaclass's."""
    bases = [*type.mro(cls), *type.mro(type(cls))]
    return next((c for c in bases if name in vars(c)), cls)


_OF_SYSTEM = {*_IMPURE, "_random", "nt", "posix"}


def reads_world(f: Any) -> bool:
    """Whether a function is known to draw at random, or to ask the clock, the system or the user.

    False for functions about which nothing is known.
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
