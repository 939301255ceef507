"""Stand-ins for objects with ``__slots__``, whose attributes are in a ``__dict__`` during a trace.

A tracer keeps an object's attributes in its ``__dict__``, where changes are journalled and merged.
An object with slots has none, or one that does not hold all: a trace replaces it by an object of a
*stand-in*, a subclass with a ``__dict__`` whose slots are not used.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from fwdad.ir.symbol import UNBOUND
from fwdad.tangents.fields import has_finalizer
from fwdad.tangents.objects import HEAP_TYPE, slots_of

_STANDS_FOR = "__fwdad_stands_for__"


class _Slot:
    """A stand-in's descriptor in place of a slot; its objects' ``__dict__`` takes precedence."""

    def __init__(self, name: str, descriptor: Any) -> None:
        self.name = name
        self.descriptor = descriptor

    def __get__(self, o: Any, cls: Any = None) -> Any:
        if o is None:
            return self.descriptor
        message = f"{original(type(o)).__name__!r} object has no attribute {self.name!r}"
        raise AttributeError(message)


class _Quiet:
    """A base before the class itself, which does not notify it of the subclass."""

    __slots__ = ()

    def __init_subclass__(cls, **_options: Any) -> None:
        """Do nothing, since a user's class might register its subclasses."""


def original(cls: type) -> type:
    """The class that a stand-in replaces; any other class is itself."""
    return cls.__dict__.get(_STANDS_FOR, cls)


def is_stand_in(cls: type) -> bool:
    """Whether a class is a stand-in for another one."""
    return _STANDS_FOR in cls.__dict__


def has_slots(cls: type) -> bool:
    """Whether some attributes of a class's objects are not in their ``__dict__``."""
    if not all(base.__flags__ & HEAP_TYPE for base in cls.__mro__[:-1]):
        return False
    return cls.__dictoffset__ == 0 or bool(slots_of(cls))


def has_slots_as_argument(x: Any) -> bool:
    """Whether an argument is an object with slots whose attributes are arguments, too."""
    cls = type(x)
    if cls.__module__.split(".")[0] in sys.stdlib_module_names or isinstance(x, BaseException):
        return False
    return bool(has_slots(cls) and slots_of(cls)) and not has_finalizer(cls)


@functools.lru_cache(maxsize=512)
def stand_in(cls: Any) -> type:
    """The stand-in for a class with slots, whose objects replace its objects in a trace."""
    attributes: dict[str, Any] = {name: _Slot(name, getattr(cls, name)) for name in slots_of(cls)}
    attributes[_STANDS_FOR] = cls
    attributes["__class__"] = property(lambda _: cls)
    for name in ("__module__", "__qualname__", "__doc__"):
        attributes[name] = getattr(cls, name)
    # neither a metaclass nor __init_subclass__ of the user's is called
    quiet_class = type.__new__(type(cls), cls.__name__, (_Quiet, cls), attributes)
    type.__setattr__(quiet_class, "__slots__", getattr(cls, "__slots__", ()))  # to be read
    return quiet_class


def class_attribute(t: type, name: str) -> Any:
    """What a class or its bases hold under a name, unbound; None if nothing."""
    for cls in t.__mro__:
        if name in cls.__dict__:
            return cls.__dict__[name]
    return None


def attribute_after(t: type, first: type, name: str) -> Any:
    """What the bases of a class that come after one of them hold a name, as for ``super()``."""
    order = t.__mro__
    later = order[order.index(first) + 1 :] if first in order else ()
    return next((cls.__dict__[name] for cls in later if name in cls.__dict__), UNBOUND)


def may_have(cls: type, name: str) -> bool:
    """Whether an object of a stand-in can have an attribute of that name."""
    of = original(cls)
    return of.__dictoffset__ != 0 or name in slots_of(of)
