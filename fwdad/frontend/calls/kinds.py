"""Tests for what kind of function is called, and whether its arguments are known."""

from __future__ import annotations

import functools
import sys
import types
from collections import deque
from typing import Any

import numpy as np

from fwdad.frontend.arguments import is_record
from fwdad.frontend.syntax.symbols import Maybe, OfFunction, OfTrace, Optional
from fwdad.ir.symbol import Symbol, UnknownText
from fwdad.ir.types import is_static_array
from fwdad.ops import record_of
from fwdad.rules.core.registry import find_rule, is_declared_pure
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.objects import attributes_of

NUMPY_FUNCTION = type(np.sum)


C_FUNCTIONS = (types.BuiltinFunctionType, np.ufunc)


CONTAINERS = (list, dict, set, deque)


TEXTS = {repr, format, ascii}


STATIC_OPTIONS = {
    "axis",
    "axes",
    "axis1",
    "axis2",
    "source",
    "destination",
    "reps",
    "decimals",
    "keepdims",
    "dtype",
    "order",
    "ord",
    "ddof",
    "k",
    "offset",
    "mode",
    "n",
}


AXES = {"axis", "axes", "axis1", "axis2", "source", "destination"}
SHAPES = {"shape", "newshape", "new_shape", "window_shape", "pad_width"}
"""Options that lengths stand in, which may be computed when the program runs."""


def writes(f: Any) -> bool:
    """Whether a function writes into its first argument."""
    at = isinstance(getattr(f, "__self__", None), np.ufunc) and f.__name__ == "at"
    return at or bool(record_of(f).writes)


def mentions_symbols(x: Any) -> bool:
    """Whether something holds values that are unknown when the program is traced."""
    return _mentions(x, set())


def _mentions(x: Any, seen: set[int], *, in_object: bool = False) -> bool:
    if isinstance(x, (Symbol, UnknownText, Maybe, Optional, OfTrace)):
        return True
    if is_static_array(x):
        return x.dtype.hasobject and _mentions(x.ravel().tolist(), seen, in_object=in_object)
    if isinstance(x, np.ndarray):
        return not in_object
    parts: Any = ()
    if isinstance(x, (list, tuple, set, frozenset, deque)):
        parts = x
    elif isinstance(x, dict):
        parts = x.values()
    elif isinstance(x, slice):
        parts = (x.start, x.stop, x.step)
    elif isinstance(x, functools.partial):
        parts = (x.func, *x.args, *x.keywords.values())
    elif isinstance(x, types.MethodType):
        parts, in_object = (x.__self__,), True
    elif is_record(x):
        parts, in_object = attributes_of(x).values(), True
    else:
        namespace = namespace_of(x)
        if isinstance(namespace, dict) and not isinstance(x, _NO_OBJECTS):
            parts = [v for v in namespace.values() if isinstance(v, _LOOKED_INTO)]
            in_object = True
    if not parts or id(x) in seen:
        return False
    seen.add(id(x))
    return any(_mentions(part, seen, in_object=in_object) for part in parts)


_LOOKED_INTO = (Symbol, OfFunction, tuple, list, dict)  # among the attributes of an object
_NO_OBJECTS = (type, types.ModuleType, types.FunctionType)


def makes_arrays(f: Any) -> bool:
    """Whether a function returns arrays, which are made anew whenever the tape runs."""
    module = getattr(f, "__module__", None) or ""
    return (
        module.split(".")[0] in ("numpy", "scipy")
        and not isinstance(f, (type, np.ufunc))
        and not record_of(f).about_types
    )


def is_computed(f: Any) -> bool:
    """Whether a function of known numbers is called once, when the program is traced.

    These are NumPy's functions written in Python (``np.hamming``, ``np.triu_indices``), except
    those for which compiled code has a loop.
    """
    module = getattr(f, "__module__", None) or ""
    written = getattr(f, "_implementation", f)
    in_python = module.split(".")[0] == "numpy" and isinstance(written, types.FunctionType)
    return in_python and not record_of(f).has_loop and find_rule(f) is None


_KNOWN_MODULES = ("numpy", "scipy", "math", "cmath", "_operator", "operator")


def is_known(f: Any) -> bool:
    """Whether a function can be one operation of a tape."""
    if isinstance(f, np.ufunc) or find_rule(f) is not None or is_declared_pure(f):
        return True
    if isinstance(getattr(f, "__self__", None), np.ufunc):
        return True
    if isinstance(f, type):
        return issubclass(f, np.generic) or f in (int, float, complex, bool)
    module = (getattr(f, "__module__", None) or "").split(".")[0]
    return module in _KNOWN_MODULES or type(f).__name__ == "method_descriptor"


def public_function(f: Any) -> Any:
    """A library's function under its public name; a function of generated code is itself."""
    if f.__code__.co_filename.startswith("<"):
        return f
    return getattr(sys.modules.get(f.__module__.partition("._")[0]), f.__name__, f)
