"""The hooks of attributes: ``o.name``, ``o.name = value``, ``del o.name``."""

from __future__ import annotations

import functools
import random
import types
from typing import Any

import numpy as np

from fwdad.builder.activity import is_active
from fwdad.builder.calls.dispatch import call
from fwdad.builder.duals import attributes as dual_attributes
from fwdad.builder.duals import methods, opaque
from fwdad.builder.duals.array import Array, wrap
from fwdad.builder.duals.dual import OPAQUE, leak
from fwdad.builder.duals.scalar import Scalar
from fwdad.builder.memory import stale
from fwdad.builder.memory.reach import check_reach, holds_state
from fwdad.builder.memory.shadow import SHADOWED, find_shadow
from fwdad.builder.run import STATE
from fwdad.errors import DualLeakError, with_article
from fwdad.tangents.namespaces import namespace_of


def attr(o: Any, name: str) -> Any:
    """``o.name``; properties and other descriptors written in Python are lifted."""
    t = type(o)
    if t is types.ModuleType:
        return _held(getattr(o, name))
    if t is np.ndarray:
        return _array_attribute(o, name)
    if t is Array or t is Scalar:
        return methods.attribute(o, name)
    if isinstance(o, type):
        return _held(getattr(o, name))
    if t is super:
        return _super_attribute(o, name)
    if OPAQUE and t in OPAQUE:
        return opaque.attribute(o, name)
    found = _class_attribute(t, name)
    kind = type(found)
    if kind is property:
        return call(found.fget, o) if found.fget is not None else getattr(o, name)
    if kind is functools.cached_property:
        return _cached(o, found, name)
    if kind is types.FunctionType or found is None:
        held = _instance_attribute(o, t, name)
        return stale.revive(held) if stale.NUMBERS else held
    get = getattr(kind, "__get__", None)
    if isinstance(get, types.FunctionType):
        held = namespace_of(o) or {}
        if name in held and not hasattr(kind, "__set__"):
            return _held(held[name])
        return call(get, found, o, t)
    if SHADOWED and kind is types.GetSetDescriptorType and holds_state(t):
        check_reach(found, (o,))
    return _held(getattr(o, name))


def _held(x: Any) -> Any:
    """What an object holds, if it is no number that an earlier call has left there."""
    return stale.revive(x) if stale.NUMBERS else x


def _super_attribute(o: Any, name: str) -> Any:
    """``super().name``: a property of a base class is lifted, too."""
    order = o.__self_class__.__mro__ if o.__self_class__ is not None else ()
    for cls in order[order.index(o.__thisclass__) + 1 :] if order else ():
        if name in cls.__dict__:
            found = cls.__dict__[name]
            if type(found) is property and found.fget is not None:
                return call(found.fget, o.__self__)
            break
    return getattr(o, name)


def _class_attribute(t: type, name: str) -> Any:
    for cls in t.__mro__:
        if name in cls.__dict__:
            return cls.__dict__[name]
    return None


def _instance_attribute(o: Any, t: type, name: str) -> Any:
    lookup = _class_attribute(t, "__getattribute__")
    if not isinstance(lookup, types.FunctionType):
        lookup = None
    fallback = _class_attribute(t, "__getattr__")
    if isinstance(fallback, types.FunctionType):
        try:
            return call(lookup, o, name) if lookup else object.__getattribute__(o, name)
        except AttributeError:
            return call(fallback, o, name)
    return call(lookup, o, name) if lookup else getattr(o, name)


def _cached(o: Any, found: Any, name: str) -> Any:
    held = o.__dict__
    if name not in held:
        if STATE.run is not None:
            STATE.run.log.attributes(o)
        held[found.attrname or name] = call(found.func, o)
    return held[found.attrname or name]


_LEAVES = {"ctypes", "data", "__array_interface__", "__array_struct__"}


def _array_attribute(o: np.ndarray, name: str) -> Any:
    if SHADOWED and find_shadow(o) is not None and name in _LEAVES:
        raise DualLeakError(leak(f"a plain array (through .{name})", wrap(o, copy=False)))
    return getattr(o, name)


def set_attr(value: Any, o: Any, name: str) -> None:
    """``o.name = value``; what the object held is kept, to be put back when the call ends."""
    t = type(o)
    if OPAQUE and t in OPAQUE:
        opaque.refuse_write(o, name)
    found = _class_attribute(t, name) if not isinstance(o, (type, types.ModuleType)) else None
    if type(found) is property and found.fset is not None:
        call(found.fset, o, value)
        return
    setter = getattr(type(found), "__set__", None)
    if isinstance(setter, types.FunctionType):
        call(setter, found, o, value)
        return
    if t is np.ndarray or t is Array:
        dual_attributes.set_array_attribute(o, name, value)
        return
    run = STATE.run
    if isinstance(o, (type, types.ModuleType)):
        if run is not None:
            run.log_namespace(o, name)
        setattr(o, name, value)
        return
    if (
        holds_state(t)
        and is_active((value,))
        and not isinstance(getattr(o, "__dict__", None), dict)
    ):
        raise DualLeakError(leak(f"what {with_article(t.__name__)} holds in C", value))
    if run is not None:
        if isinstance(o, random.Random):  # its attributes are its state, which is not put back
            run.note_generator(o)
        else:
            run.log.attributes(o)
    own = _class_attribute(t, "__setattr__")
    if isinstance(own, types.FunctionType):
        call(own, o, name, value)
        return
    setattr(o, name, value)


def del_attr(o: Any, name: str) -> None:
    """``del o.name``."""
    if OPAQUE and type(o) in OPAQUE:
        opaque.refuse_write(o, name)
    found = None if isinstance(o, (type, types.ModuleType)) else _class_attribute(type(o), name)
    if type(found) is property and found.fdel is not None:
        call(found.fdel, o)
        return
    if STATE.run is not None:
        if isinstance(o, (type, types.ModuleType)):
            STATE.run.log_namespace(o, name)
        else:
            STATE.run.log.attributes(o)
    delattr(o, name)
