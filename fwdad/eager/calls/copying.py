"""``copy.copy`` and ``copy.deepcopy``, by which the user's own copying methods run lifted.

Python's :mod:`copy` is written in Python, so it is lifted like any other function; what it calls of
``object.__reduce_ex__``, which is written in C and calls the user's methods, is repeated here.
"""

from __future__ import annotations

import copy
import copyreg
from typing import Any

import numpy as np

from fwdad.eager.calls.dispatch import call, handler
from fwdad.eager.calls.protocols import in_python
from fwdad.eager.duals.dual import Dual
from fwdad.eager.lifting.lift import lift
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.eager.memory.stale import ARRAYS, check_array

_STATE = ("__getstate__", "__getnewargs__", "__getnewargs_ex__")
_OWN = ("__copy__", "__reduce__", "__reduce_ex__", "__setstate__", *_STATE)


@handler(copy.copy)
def _copy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _lifted(copy.copy, args, kwargs, deep=False)


@handler(copy.deepcopy)
def _deepcopy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _lifted(copy.deepcopy, args, kwargs, deep=True)


def _lifted(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, deep: bool) -> Any:
    t = type(args[0]) if args else None
    if t is np.ndarray:
        check_array(args[0])
    if t is not None and not issubclass(t, Dual):
        if issubclass(t, (np.generic, np.dtype)):
            return function(args[0])  # without the memo, which may hold duals
        own = any(in_python(t, name) for name in (*_OWN, "__deepcopy__"))
        looked_at = SHADOWED or ARRAYS
        if own or (looked_at and (deep or t is np.ndarray)):
            twin = lift(function)
            if twin is not None:
                return twin(*args, **kwargs)
    return function(*args, **kwargs)


@handler(object.__reduce_ex__)
def reduce_ex(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    """``object.__reduce_ex__``, with the user's methods that it calls lifted."""
    o, protocol = args
    t = type(o)
    if issubclass(t, Dual):
        return o.__reduce_ex__(protocol)
    if in_python(t, "__reduce__"):
        return call(t.__reduce__, o)
    if protocol < 2 or not any(in_python(t, name) for name in _STATE):
        return object.__reduce_ex__(o, protocol)
    make: Any = copyreg.__newobj__  # type: ignore[attr-defined]
    given: tuple[Any, ...] = (t,)
    if hasattr(t, "__getnewargs_ex__"):
        positional, named = call(t.__getnewargs_ex__, o)
        make, given = copyreg.__newobj_ex__, (t, positional, named)  # type: ignore[attr-defined]
    elif hasattr(t, "__getnewargs__"):
        given = (t, *call(t.__getnewargs__, o))
    state = call(t.__getstate__, o)
    items = iter(o) if isinstance(o, list) else None
    pairs = iter(o.items()) if isinstance(o, dict) else None
    return make, given, state, items, pairs
