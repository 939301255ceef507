"""The hooks of attributes: ``o.name``, ``o.name = value``, ``del o.name``."""

from __future__ import annotations

import functools
import random
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.eager.activity import is_active
from fwdad.eager.calls import protocols
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals import attributes as dual_attributes
from fwdad.eager.duals import methods, opaque
from fwdad.eager.duals.array import Array, wrap
from fwdad.eager.duals.dual import OPAQUE, leak
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.memory import stale
from fwdad.eager.memory.reach import check_reach, holds_state
from fwdad.eager.memory.shadow import SHADOWED, find_shadow
from fwdad.eager.run import STATE
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
    member = _class_attribute(t, name)
    if member is None or type(member) is types.FunctionType or _in_python(t, "__getattribute__"):
        value = _instance_attribute(o, t, name)
        return stale.revive(value) if stale.NUMBERS else value
    try:
        return _by_class(o, t, name, member, getattr)
    except AttributeError:
        fallback = _in_python(t, "__getattr__")
        if fallback is None:
            raise
        return call(fallback, o, name)


def generic_attr(o: Any, name: str) -> Any:
    """``object.__getattribute__(o, name)``, which ignores a class's own lookup methods."""
    t = type(o)
    if t in _KNOWN or (OPAQUE and t in OPAQUE):
        return attr(o, name)
    found = _class_attribute(t, name)
    if found is None or type(found) is types.FunctionType or isinstance(o, type):
        return _held(object.__getattribute__(o, name))
    return _by_class(o, t, name, found, object.__getattribute__)


def _by_class(o: Any, t: type, name: str, member: Any, look: Callable[[Any, str], Any]) -> Any:
    """An attribute for which the object's class holds something other than a function."""
    kind = type(member)
    if kind is property:
        return call(member.fget, o) if member.fget is not None else look(o, name)
    if kind is functools.cached_property:
        return _cached(o, member, name)
    get = getattr(kind, "__get__", None)
    if isinstance(get, types.FunctionType):
        attributes = namespace_of(o) or {}
        if name in attributes and not hasattr(kind, "__set__"):
            return _held(attributes[name])
        return call(get, member, o, t)
    if SHADOWED and kind is types.GetSetDescriptorType and holds_state(t):
        check_reach(member, (o,))
    return _held(look(o, name))


def has_attr(o: Any, name: str) -> bool:
    """``hasattr(o, name)``; whatever that computes is lifted."""
    t = type(o)
    if t in _KNOWN or isinstance(o, type):
        return hasattr(o, name)
    found = _class_attribute(t, name)
    by_python = type(found) is property or protocols.in_python(type(found), "__get__")
    if not by_python and not any(_in_python(t, asks) for asks in _ASKS):
        return hasattr(o, name)
    try:
        attr(o, name)
    except AttributeError:
        return False
    return True


_KNOWN = {types.ModuleType, np.ndarray, Array, Scalar, super}
_ASKS = ("__getattribute__", "__getattr__")


def _held(x: Any) -> Any:
    """The value that an object holds, or a dead dual if it is left from an earlier call."""
    return stale.revive(x) if stale.NUMBERS else x


def _super_attribute(o: Any, name: str) -> Any:
    """``super().name``, with properties of base classes lifted."""
    order = o.__self_class__.__mro__ if o.__self_class__ is not None else ()
    for cls in order[order.index(o.__thisclass__) + 1 :] if order else ():
        if name in cls.__dict__:
            member = cls.__dict__[name]
            if type(member) is property and member.fget is not None:
                return call(member.fget, o.__self__)
            break
    return getattr(o, name)


def _class_attribute(t: type, name: str) -> Any:
    for cls in t.__mro__:
        if name in cls.__dict__:
            return cls.__dict__[name]
    return None


def _in_python(t: type, name: str) -> types.FunctionType | None:
    """A class's own method, in Python, that looks up, sets or deletes attributes; or None."""
    found = _class_attribute(t, name)
    return found if isinstance(found, types.FunctionType) else None


def _instance_attribute(o: Any, t: type, name: str) -> Any:
    lookup = _in_python(t, "__getattribute__")
    fallback = _in_python(t, "__getattr__")
    if fallback is not None:
        try:
            return call(lookup, o, name) if lookup else object.__getattribute__(o, name)
        except AttributeError:
            return call(fallback, o, name)
    return call(lookup, o, name) if lookup else getattr(o, name)


def _cached(o: Any, member: Any, name: str) -> Any:
    attributes = o.__dict__
    if name not in attributes:
        if STATE.run is not None:
            STATE.run.log.attributes(o)
        attributes[member.attrname or name] = call(member.func, o)
    return attributes[member.attrname or name]


_LEAVES = {"ctypes", "data", "__array_interface__", "__array_struct__"}


def _array_attribute(o: np.ndarray, name: str) -> Any:
    if SHADOWED and find_shadow(o) is not None and name in _LEAVES:
        raise DualLeakError(leak(f"a plain array (through .{name})", wrap(o, copy=False)))
    return getattr(o, name)


def set_attr(value: Any, o: Any, name: str) -> None:
    """``o.name = value``; what the object held is kept, to be restored when the call ends."""
    t = type(o)
    setattr_method = (
        None if isinstance(o, (type, types.ModuleType)) else _in_python(t, "__setattr__")
    )
    if setattr_method is None:
        _set(value, o, name, setattr)
        return
    _keep(o)
    call(setattr_method, o, name, value)


def generic_set_attr(value: Any, o: Any, name: str) -> None:
    """``object.__setattr__(o, name, value)``, which ignores a class's own methods."""
    _set(value, o, name, object.__setattr__)


def _set(value: Any, o: Any, name: str, store: Callable[[Any, str, Any], None]) -> None:
    t = type(o)
    if OPAQUE and t in OPAQUE:
        opaque.refuse_write(o, name)
    if isinstance(o, (type, types.ModuleType)):
        _keep(o, name)
        store(o, name, value)
        return
    found = _class_attribute(t, name)
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
    if (
        holds_state(t)
        and is_active((value,))
        and not isinstance(getattr(o, "__dict__", None), dict)
    ):
        raise DualLeakError(
            leak((f"a plain value that {with_article(t.__name__)} keeps in C"), value)
        )
    _keep(o)
    store(o, name, value)


def _keep(o: Any, name: str = "") -> None:
    """Keep what an object holds before it changes, or one attribute of a class or module."""
    run = STATE.run
    if run is None:
        return
    if type(o) in weakref.ProxyTypes:  # it is the object itself that is written
        o = o.__dir__.__self__
    if isinstance(o, (type, types.ModuleType)):
        run.log_namespace(o, name)
    elif isinstance(o, random.Random):  # its attributes are its state, which is not restored
        run.note_generator(o)
    else:
        run.log.attributes(o)


def del_attr(o: Any, name: str) -> None:
    """``del o.name``."""
    delattr_method = (
        None if isinstance(o, (type, types.ModuleType)) else _in_python(type(o), "__delattr__")
    )
    if delattr_method is None:
        _delete(o, name, delattr)
        return
    _keep(o)
    call(delattr_method, o, name)


def generic_del_attr(o: Any, name: str) -> None:
    """``object.__delattr__(o, name)``, which ignores a class's own methods."""
    _delete(o, name, object.__delattr__)


def _delete(o: Any, name: str, remove: Callable[[Any, str], None]) -> None:
    if OPAQUE and type(o) in OPAQUE:
        opaque.refuse_write(o, name)
    member = None if isinstance(o, (type, types.ModuleType)) else _class_attribute(type(o), name)
    if type(member) is property and member.fdel is not None:
        call(member.fdel, o)
        return
    deleter = getattr(type(member), "__delete__", None)
    if isinstance(deleter, types.FunctionType):
        call(deleter, member, o)
        return
    _keep(o, name)
    remove(o, name)
