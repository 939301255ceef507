"""The hooks of iteration, which ``for``, unpacking and comprehensions go through."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from fwdad.core.lifted_code import LIFTED
from fwdad.eager.calls import protocols
from fwdad.eager.calls.dispatch import call
from fwdad.eager.calls.effectful import is_file
from fwdad.eager.duals import flat
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.explicit import explicit
from fwdad.eager.hooks.known_types import PLAIN
from fwdad.eager.memory import stale, store
from fwdad.eager.memory.reach import check_reach
from fwdad.eager.memory.shadow import SHADOWED, find_shadow
from fwdad.errors import DualLeakError, is_library_file


def iterate(o: Any) -> Any:
    """An iterable that yields duals where ``o`` has tangents."""
    t = type(o)
    if t in PLAIN or t is Array or t is range:
        if stale.NUMBERS and (t is list or t is tuple or t is dict) and stale.any_left(o):
            return map(stale.revive, o)
        return o
    if t is types.GeneratorType:
        check_generator(o)
        return o
    if SHADOWED and protocols.is_buffer(t):
        protocols.check_buffer(o)
    if SHADOWED and t is np.broadcast:
        check_reach(t.__iter__, ([it.base for it in o.iters],))
    if t is np.ndarray:
        return _elements(o) if o.dtype.kind in "fc" and o.ndim else o
    if t is np.flatiter:
        return (flat.flat_load(o, k) for k in range(o.base.size))
    if is_file(o):
        return iter(call(o.readlines))
    return protocols.iterate_object(o)


def check_generator(o: Any) -> None:
    """Refuse a generator from outside the call, which would read arrays without their tangents."""
    if not SHADOWED or id(o.gi_code) in LIFTED:
        return
    if not is_library_file(o.gi_code.co_filename):
        message = (
            f"the generator {o.__qualname__} was created outside this derivative call, and "
            "arrays that it may read carry derivatives now: create it inside the function"
        )
        raise DualLeakError(message)


def iterate_deep(o: Any) -> Any:
    """The items of :func:`iterate`, for a target that unpacks them further."""
    for item in iterate(o):
        yield _deep(item) if SHADOWED else item


def _deep(item: Any) -> Any:
    """An item with the tangents in its arrays' memory explicit; itself if there are none."""
    if isinstance(item, (list, tuple)) and not hasattr(item, "_fields"):
        parts = [_deep(i) for i in item]
        if all(part is i for part, i in zip(parts, item, strict=True)):
            return item
        return tuple(parts) if isinstance(item, tuple) else parts
    return explicit(item)


def _elements(o: np.ndarray) -> Any:
    """Rows of a plain array, read one by one, because a store in the loop may make them active."""
    for k in range(len(o)):
        if SHADOWED and find_shadow(o) is not None:
            value = store.load(o, k)
            yield explicit(value)
        else:
            if stale.ARRAYS and o.ndim == 1:
                stale.check_array(o, k)
            yield o[k]


def mapping(o: Any) -> Any:
    """What ``**o`` and ``dict(o)`` read: a user's mapping as a dict."""
    t = type(o)
    if isinstance(o, dict) or not (
        protocols.in_python(t, "keys") or protocols.in_python(t, "__getitem__")
    ):
        return o
    if not hasattr(t, "keys"):
        return o
    names = iterate(call(t.keys, o))
    return {name: call(t.__getitem__, o, name) for name in names}
