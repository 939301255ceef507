"""Operations that would lose a tangent, which are refused."""

from __future__ import annotations

import array
import json
import pickle
import struct
import types
from typing import Any

import numpy as np

from fwdad.eager.activity import is_active
from fwdad.eager.calls import protocols
from fwdad.eager.calls.dispatch import handler
from fwdad.eager.duals.dual import OPAQUE, leak
from fwdad.eager.duals.explicit import explicit
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.memory.shadow import SHADOWED
from fwdad.errors import DualLeakError, UnsupportedTypeError
from fwdad.ops import functions_with, record_of
from fwdad.tangents.namespaces import namespace_of


def _some_dual(v: Any) -> Any:
    """A dual in a value, at any depth of its lists and dicts; or None."""
    v = explicit(v)
    if isinstance_dual(v) or type(v) in OPAQUE:
        return v
    if isinstance(v, dict):
        v = list(v.values())
    if isinstance(v, (list, tuple, set)):
        return next((d for d in map(_some_dual, v) if d is not None), None)
    return None


def _some_attribute(o: Any, seen: set[int]) -> Any:
    """A dual, or an array whose memory carries tangents, among items and attributes; or None."""
    dual = _some_dual(o)
    if dual is not None or id(o) in seen or isinstance(o, (type, types.ModuleType)):
        return dual
    seen.add(id(o))
    items = o.values() if isinstance(o, dict) else o if isinstance(o, (list, tuple, set)) else ()
    attributes = namespace_of(o) or {}
    for item in (*items, *attributes.values()):
        dual = _some_attribute(item, seen)
        if dual is not None:
            return dual
    return None


REFUSED: dict[Any, str] = {int: "an int"}
"""What raises where it is given something that carries derivatives: what it would make of it."""


def _refuse(function: Any, what: str, *, views: bool = False) -> None:
    REFUSED[function] = what

    @handler(function)
    def refuse(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for v in (*args, *kwargs.values()):
            dual = _some_attribute(v, set()) if SHADOWED else _some_dual(v)
            if SHADOWED and not views and type(v) in protocols.BUFFERS:
                protocols.check_buffer(v)
            if dual is not None:
                raise DualLeakError(leak(what, dual))
        return function(*args, **kwargs)


for _function in (pickle.dumps, struct.pack, struct.pack_into, struct.unpack,
                  struct.unpack_from, struct.iter_unpack, json.dumps,
                  array.array, bytes, bytearray, np.from_dlpack):  # fmt: skip
    _refuse(_function, "plain data")
_refuse(memoryview, "a plain buffer", views=True)
_refuse(np.frombuffer, "a plain buffer", views=True)


_refuse(np.nditer, "a plain array (through nditer)")


def _refuse_class(function: Any, what: str) -> None:
    REFUSED[function] = what

    @handler(function)
    def refuse(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if is_active((*args, *kwargs.values())):
            message = f"{what} cannot carry derivatives: use a plain array and numpy.where"
            raise UnsupportedTypeError(message)
        return function(*args, **kwargs)


for _function in functions_with(lambda record: bool(record.cannot_carry)):
    _refuse_class(_function, record_of(_function).cannot_carry)


@handler(np.ndarray.__new__)
def _new_array(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Refuse an array over a buffer that is active, as a subclass's ``__new__`` makes it."""
    if is_active((*args, *kwargs.values())):
        message = (
            f"{getattr(args[0], '__name__', 'ndarray')} is created by ndarray.__new__ on memory "
            "that carries a derivative, but only plain arrays can carry one. Use a plain array, "
            "and functions that accept one"
        )
        raise UnsupportedTypeError(message)
    return np.ndarray.__new__(*args, **kwargs)
