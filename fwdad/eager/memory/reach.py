"""The search for memory with tangents that C code could read through its arguments.

An array that is passed to C code is seen, and meets a rule or an error. One that an object holds is
not: the object's code reads bare numbers. So while memory carries tangents, the arguments of C code
without a rule are searched for it. An extension class whose objects do not reveal what they hold,
as those of Cython that keep pointers to arrays, is assumed to hold it.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.eager.lifting.reached import names_read
from fwdad.eager.memory.shadow import SHADOWED, shadow_of_memory
from fwdad.errors import DualLeakError, type_in_words
from fwdad.tangents.namespaces import referents
from fwdad.tangents.objects import HEAP_TYPE

_DEPTH = 5  # depth of nested objects that is searched
_MOST = 20_000  # objects visited in one search

_TOLD = ("numpy", "pandas", "scipy.spatial._ckdtree")
"""Modules of which extension classes tell the garbage collector of all that they hold."""

_FUNCTIONS_OF_CYTHON = ("cython_function_or_method", "fused_cython_function")
_LEAVES = (
    int, float, complex, str, bytes, bool, type(None), slice, range, type, types.ModuleType,
    types.FunctionType, types.CodeType, types.GeneratorType, np.dtype, np.ufunc, np.generic,
)  # fmt: skip


def check_reach(f: Any, values: Any) -> None:
    """Refuse a call of C code that can read memory with tangents through one of ``values``.

    They are the object whose method f is, and the arguments.
    """
    if not SHADOWED:
        return
    search = _Search()
    for v in values:
        if type(v) in _LEAVES or (type(v) is np.ndarray and not v.dtype.hasobject):
            continue
        found = search.find(v, 0)
        if found is not None:
            raise DualLeakError(_message(f, v, found))


def is_foreign(f: Any) -> bool:
    """Whether C code is from a package that may read the memory of arrays directly."""
    owner = getattr(f, "__self__", None)
    of = getattr(f, "__objclass__", None)
    if of is not None:
        return holds_state(of)
    if owner is None or isinstance(owner, types.ModuleType):
        module = getattr(f, "__module__", None) or getattr(owner, "__name__", None) or ""
        return module.partition(".")[0] not in ("", *_SAFE)
    return holds_state(owner if isinstance(owner, type) else type(owner))


def check_objects(f: Any, values: Any) -> None:
    """Refuse arrays of objects one of which carries tangents, since NumPy reads these by itself."""
    for v in values:
        if isinstance(v, np.ndarray) and v.dtype.hasobject:
            check_reach(f, (v,))


def _holds_state(cls: Any) -> bool:
    base = next(c for c in cls.__mro__ if not _is_python(c))
    return base.__module__.partition(".")[0] not in _SAFE and not issubclass(base, _OF_NUMPY)


holds_state: Callable[[Any], bool] = functools.lru_cache(maxsize=2048)(_holds_state)
"""Whether a class, or one that it is made of, is C code of another package than Python."""


_OF_NUMPY = (
    np.ndarray, np.generic, np.dtype, np.ufunc, np.random.Generator, np.random.RandomState,
)  # fmt: skip
"""Classes of NumPy's of which the hooks know each method."""

_SAFE = {*sys.stdlib_module_names, "builtins", "fwdad", "numba", "uarray"}


def _is_python(cls: type) -> bool:
    """Whether a class statement made a class, so that it has no memory beside its attributes."""
    if cls is object or not cls.__flags__ & HEAP_TYPE or "__pyx_vtable__" in cls.__dict__:
        return False
    base = cls.__base__
    assert base is not None
    more = cls.__basicsize__ - base.__basicsize__
    slots = sum(isinstance(v, types.MemberDescriptorType) for v in vars(cls).values())
    return more <= 8 * (slots + 2) and not any(
        isinstance(v, (types.MethodDescriptorType, types.WrapperDescriptorType))
        and v.__objclass__ is cls  # not `__setattr__ = dict.__setitem__`
        for v in vars(cls).values()
    )


class _Search:
    """One search for memory with tangents."""

    def __init__(self) -> None:
        self.seen: dict[int, Any] = {}

    def find(self, x: Any, depth: int) -> Any:
        """An array, a buffer or an opaque object that holds such memory; or None."""
        t = type(x)
        if (
            hasattr(t, "__fwdad_tag__")
            or isinstance(x, _LEAVES)
            or id(x) in self.seen
            or len(self.seen) > _MOST
        ):
            return None
        self.seen[id(x)] = x
        if issubclass(t, np.ndarray):  # not a dual, which C code cannot read
            if x.dtype.hasobject:
                return self._among(x.ravel().tolist(), depth)
            return x if _carries(x) else None
        if isinstance(x, (memoryview, bytearray, ctypes.Array)) or t.__module__ == "array":
            return x if _carries(_bytes(x)) else None
        if depth >= _DEPTH:
            return None
        compiled = getattr(x, "py_func", None)
        if type(compiled) is types.FunctionType:  # Numba's: it has what its source names, frozen
            return self._among(names_read(compiled), depth)
        if isinstance(x, dict):
            return self._among(x.values(), depth)
        held = getattr(x, "__dict__", None)
        found = self._among(held.values(), depth) if type(held) is dict else None
        if found is not None:
            return found
        if isinstance(x, types.BuiltinFunctionType) or t.__name__ in _FUNCTIONS_OF_CYTHON:
            return self.find(getattr(x, "__self__", None), depth)
        inside = referents(x)
        found = self._among([v for v in inside if v is not t and v is not held], depth)
        if found is None and holds_state(t) and not _tells(t):
            return x
        return found

    def _among(self, items: Any, depth: int) -> Any:
        for item in list(items):
            found = self.find(item, depth + 1)
            if found is not None:
                return found
        return None


def _tells(cls: Any) -> bool:
    """Whether the objects of an extension class reveal all that they hold."""
    base = next(c for c in cls.__mro__ if not _is_python(c))
    return base.__module__ == "numpy" or base.__module__.startswith(_TOLD)


def _bytes(x: Any) -> Any:
    try:
        return np.frombuffer(x, np.uint8)
    except (ValueError, BufferError):  # empty, released, or not in one piece
        return np.asarray(x) if type(x) is memoryview and x.nbytes else None


def _carries(a: Any) -> bool:
    shadow = None if a is None else shadow_of_memory(a)
    return shadow is not None and bool(shadow.seen())


def _message(f: Any, x: Any, inner: Any) -> str:
    name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None) or type(f).__qualname__
    if isinstance(inner, np.ndarray):
        memory = f"the array of shape {inner.shape} that it contains carries derivatives"
    elif isinstance(inner, (memoryview, bytearray, ctypes.Array)):
        memory = f"{type_in_words(inner)} that it contains views memory that carries derivatives"
    else:
        written = (s.owner for s in SHADOWED.values() if s.lanes)
        shapes = ", ".join(sorted({str(getattr(owner, "shape", "?")) for owner in written}))
        memory = (
            f"fwdad cannot see which memory {type_in_words(inner)} reads, and arrays (of shape "
            f"{shapes}) carry derivatives"
        )
    return (
        f"{name} is compiled code, called with {type_in_words(x)}: {memory}, which it would read "
        "as plain numbers. Write a rule for it (fwdad.frule), or build the object from plain "
        "arrays"
    )
