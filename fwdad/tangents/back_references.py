"""References from a value without tangents to parts of a composite that have some.

Through such a reference a function could read the caller's own numbers instead of those that carry
derivatives: a method bound to the object itself, a closure over it, a set of its nodes.
"""

from __future__ import annotations

import enum
import types
import weakref
from typing import Any

import numpy as np

from fwdad.tangents.namespaces import referents

_SIMPLE = (
    int, float, complex, str, bytes, bool, type(None), type(Ellipsis), slice, range, type,
    types.ModuleType, types.CodeType, types.GenericAlias, enum.Enum, np.generic, np.dtype,
)  # fmt: skip
_MOST = 10_000  # objects visited in one search

READ_AS_CONSTANT = (
    "through it a part of the argument that carries derivatives can be read as a constant, so that "
    "its derivative would be lost. Replace a closure or a partial function by a method, a set or "
    "the keys of a dict by a list; or exclude the field by @fwdad.constant_fields"
)
"""What is wrong with such a reference, and what to write instead."""


def is_simple(x: Any) -> bool:
    """Whether a value refers to nothing that could carry derivatives."""
    return issubclass(type(x), _SIMPLE)


def reaches(x: Any, wanted: set[int]) -> bool:
    """Whether a value is, or leads to, one of the objects with the wanted addresses.

    The search goes as the garbage collector sees it, not through modules and classes, and ends
    after 10,000 objects.
    """
    seen: dict[int, Any] = {}
    waiting = [x]
    while waiting and len(seen) < _MOST:
        part = waiting.pop()
        if id(part) in wanted:
            return True
        if id(part) not in seen and not is_simple(part):
            seen[id(part)] = part
            waiting.extend(_referents(part))
    return False


def _referents(x: Any) -> list[Any]:
    """What can be read through an object."""
    if isinstance(x, types.FunctionType):
        return [*(x.__closure__ or ()), x.__defaults__, x.__kwdefaults__]
    if isinstance(x, weakref.ref):
        return [x()]
    if isinstance(x, np.ndarray):
        return x.ravel().tolist() if x.dtype.hasobject else [x.base]
    return referents(x)
