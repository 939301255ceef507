"""Objects whose attributes are all that they hold, in a ``__dict__`` or in slots.

They are read and made without running any code of their class: no ``__init__``, no ``__getattr__``,
no ``__setattr__`` and no property.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from fwdad.tangents.namespaces import namespace_of

HEAP_TYPE = 1 << 9
"""The flag of classes that a ``class`` statement has made, or C code as such a statement does."""

# -- slots and namespaces


def slots_of(cls: Any) -> tuple[str, ...]:
    """The slots of a class, by Python's (mangled) names."""
    return tuple(_descriptors(cls))


def _find_descriptors(cls: Any) -> dict[str, Any]:
    descriptors: dict[str, Any] = {}
    for base in cls.__mro__:
        declares_slots = "__slots__" in base.__dict__
        for name, held in base.__dict__.items():
            slot = declares_slots and isinstance(held, types.MemberDescriptorType)
            descriptors.setdefault(name, held if slot else None)
    return {name: held for name, held in descriptors.items() if held is not None}


_descriptors: Callable[[Any], dict[str, Any]] = functools.lru_cache(maxsize=1024)(_find_descriptors)
"""The slots of a class that no other attribute hides."""


def attributes_of(x: Any) -> dict[str, Any]:
    """The attributes of an object, from its slots and its ``__dict__``."""
    namespace = namespace_of(x) or {}
    descriptors = _descriptors(type(x))
    if not descriptors:
        return namespace
    held: dict[str, Any] = {}
    for name, slot in descriptors.items():
        try:
            held[name] = slot.__get__(x)
        except AttributeError:  # it is not set
            continue
    return {**held, **namespace}


def set_attributes(x: Any, content: dict[str, Any]) -> None:
    """Give an object attributes."""
    descriptors = _descriptors(type(x))
    for name, value in content.items():
        if name in descriptors:
            descriptors[name].__set__(x, value)
        else:
            namespace_of(x)[name] = value


def delete_attribute(x: Any, name: str) -> None:
    """Delete an attribute of an object."""
    descriptors = _descriptors(type(x))
    if name in descriptors:
        descriptors[name].__delete__(x)
    else:
        del namespace_of(x)[name]


_MANAGED_DICT = 1 << 4


def _has_fields(cls: Any) -> bool:
    if issubclass(cls, BaseException):
        return False
    size_of_fields = 8 * (
        len(slots_of(cls)) + (cls.__weakrefoffset__ > 0) + (cls.__dictoffset__ > 0)
    )
    if cls.__flags__ & _MANAGED_DICT and cls.__dictoffset__ > 0:
        size_of_fields -= 8
    return bool(cls.__basicsize__ == object.__basicsize__ + size_of_fields)


has_fields: Callable[[Any], bool] = functools.lru_cache(maxsize=1024)(_has_fields)
"""Whether all that an object of a class holds are attributes: it has no state in C."""


# -- new objects


def blank(cls: type) -> Any:
    """An instance of a class, without attributes and items; no code of the class is run."""
    return in_c(cls, "__new__")(cls)


def in_c(cls: type, name: str) -> Any:
    """The method of a class's builtin base, beneath any Python override."""
    for base in cls.__mro__:
        member = base.__dict__.get(name)
        if member is not None and not isinstance(member, (types.FunctionType, staticmethod)):
            return member
    raise TypeError(f"{cls.__qualname__} has no {name}")
