"""Fingerprints: what another process compares where a tape in this one compares identities."""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Hashable
from typing import Any

import numpy as np

from fwdad.eager.lifting.reached import MAIN
from fwdad.frontend.guards import Same
from fwdad.ir.symbol import UNBOUND

_BY_TEXT = (int, float, complex, str, bytes, bool, type(None), np.dtype, range, slice)


def fingerprint(x: Any) -> Hashable:
    """A key of an object that is equal in two processes if a tape may take one for the other.

    Of functions it holds the code, of classes and modules their names. An object is known by its
    class: what a tape reads of it has guards of its own.
    """
    t = type(x)
    if t is Same:
        return fingerprint(x.held)
    if isinstance(x, np.generic):
        return (t.__name__, x.tobytes())
    if isinstance(x, enum.Enum):
        return (*_name(t), x.name)
    if t in _BY_TEXT or x is UNBOUND:
        return (t.__name__, repr(x))
    if isinstance(x, np.ndarray):
        return (x.dtype.str, x.shape, None if x.dtype.hasobject else x.tobytes())
    if t is types.CodeType:
        return _of_code(x)
    if t is types.FunctionType:
        return (*_name(x), _of_code(x.__code__))
    if isinstance(x, type):
        return ("class", *_name(x))
    if t is types.ModuleType:
        return ("module", x.__name__)
    if t is types.MethodType:
        return ("method", fingerprint(x.__func__), fingerprint(x.__self__))
    if t is functools.partial:
        return ("partial", *map(fingerprint, (x.func, x.args, tuple(x.keywords.items()))))
    if isinstance(x, (staticmethod, classmethod)):
        return (t.__name__, fingerprint(x.__func__))
    if isinstance(x, (tuple, list)):
        return (*_name(t), *map(fingerprint, x))
    if isinstance(x, (set, frozenset)):
        return (*_name(t), *sorted((fingerprint(item) for item in x), key=repr))
    if isinstance(x, dict):
        return (*_name(t), *((fingerprint(k), fingerprint(v)) for k, v in x.items()))
    return ("one of", *_name(t), getattr(x, "__qualname__", getattr(x, "__name__", "")))


def _name(x: Any) -> tuple[Any, Any]:
    module = getattr(x, "__module__", None)
    main = module in MAIN  # a process that was spawned calls it by another name
    return ("__main__" if main else module, getattr(x, "__qualname__", None))


def _of_code(code: types.CodeType) -> Hashable:
    constants = tuple(map(fingerprint, code.co_consts))
    return (code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_freevars,
            constants)  # fmt: skip
