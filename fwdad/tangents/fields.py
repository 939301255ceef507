"""The fields of an object: what is differentiated of it, where its class is plain."""

from __future__ import annotations

import dataclasses
import enum
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.tangents.objects import HEAP_TYPE, attributes_of, has_fields, slots_of
from fwdad.tangents.refused import refusal
from fwdad.tangents.registrations import OWN, registered_base, registration_of


def is_composite(cls: type) -> bool:
    """Whether the objects of a class are differentiated field by field, in every mode."""
    if registration_of(cls) is not None or cls in OWN:
        return False
    return dataclasses.is_dataclass(cls) or is_plain(cls)


# -- plain classes, whose objects have tangents field by field

_BASES = ("abc", "typing", "_collections_abc", "collections", "contextlib", "types", "builtins")
"""Modules of the standard library that have base classes for users, without hidden meaning."""

_LIBRARIES = {"numpy", "scipy", "pandas", "numba", "llvmlite", "sympy", "mpmath", "torch", "jax"}


def is_plain(cls: type) -> bool:
    """Whether the objects of a class are differentiated field by field without registration."""
    return why_not_plain(cls) is None


def why_not_plain(cls: type) -> str | None:
    """Why the objects of a class are no composites of their attributes; None if they are.

    An empty reason means that nothing is lost: its objects are constants by their nature.
    """
    reason = _why_not_plain(cls)
    base = registered_base(cls) if reason is None else None
    return reason if base is None else f"it inherits from {base.__qualname__}, which is registered"


@functools.lru_cache(maxsize=4096)
def _why_not_plain(cls: Any) -> str | None:
    if cls is types.SimpleNamespace:
        return None
    builtin = not cls.__flags__ & HEAP_TYPE or issubclass(cls, (type, BaseException, enum.Enum))
    if builtin or refusal(cls) is not None or _is_of_library(cls):
        return ""
    for base in cls.__mro__[:-1]:
        if _is_of_library(base) and base.__module__.partition(".")[0] not in _BASES:
            return f"it inherits from {base.__module__}.{base.__qualname__}"
    if not has_fields(cls):
        return "its instances have state outside their attributes, in C"
    return "it has a __del__, which a tangent would run, too" if has_finalizer(cls) else None


def has_finalizer(cls: type) -> bool:
    """Whether a class has a ``__del__``, which would run for each copy of an object, too."""
    return any("__del__" in base.__dict__ for base in cls.__mro__)


def _is_of_library(cls: type) -> bool:
    """Whether a class belongs to Python, to a numerical library, or to fwdad itself."""
    module = cls.__module__
    if module.startswith("fwdad."):
        return not module.startswith("fwdad.examples.")
    top = module.partition(".")[0]
    return top in _LIBRARIES or top in sys.stdlib_module_names


# -- their fields

_CONSTANT = "__fwdad_constant_fields__"


def constant_fields(*names: str) -> Callable[[type], type]:
    """Decorate a class to exclude fields from differentiation: settings, meshes, tables.

    A constant field keeps its value in every derivative, as if f read it from outside, and is
    ``NoTangent`` in tangents, gradients and Jacobians. This holds in every mode.

    Parameters
    ----------
    *names : str
        The names of the fields.

    Returns
    -------
    callable
        A decorator, which returns the class itself. Subclasses inherit the constant fields, and can
        add others.

    Raises
    ------
    UnsupportedTypeError
        If no name is given, or one is no string; when the class is decorated, if that is no class,
        or it declares its fields (a dataclass, or slots without a ``__dict__``) and has none of
        such a name.

    Notes
    -----
    What has no tangent space (ints, strings, callables, None) needs no mark. An array in a constant
    field is not copied: what f writes there is written in the caller's object, as when f is called.

    With ``@dataclass``, in either order.

    Examples
    --------
    >>> import numpy as np
    >>> import fwdad
    >>> @fwdad.constant_fields("grid")
    ... class Rod:
    ...     def __init__(self, conductivity, grid):
    ...         self.conductivity, self.grid = conductivity, grid
    >>> rod = Rod(2.0, np.linspace(0.0, 1.0, 3))
    >>> slope = fwdad.grad(lambda rod: rod.conductivity**2 * np.sum(rod.grid))(rod)
    >>> slope.conductivity, slope.grid
    (6.0, NoTangent)
    """
    if not names or not all(isinstance(name, str) for name in names):
        raise UnsupportedTypeError(
            f"constant_fields takes the names of fields, as strings; got {names!r}: write "
            '@fwdad.constant_fields("mesh") above the class'
        )

    def decorate(cls: type) -> type:
        if not isinstance(cls, type):
            message = f"constant_fields decorates a class; got {type_in_words(cls)}"
            raise UnsupportedTypeError(message)
        marked = {_mangled(cls, name) for name in names}
        declared = _declared(cls)
        if declared is not None and not marked <= declared:
            unknown, known = sorted(marked - declared), ", ".join(sorted(declared))
            message = f"{cls.__qualname__} has no field {unknown[0]!r}: its fields are {known}"
            raise UnsupportedTypeError(message)
        try:
            setattr(cls, _CONSTANT, constants_of(cls) | marked)
        except TypeError as error:
            message = f"constant_fields cannot mark {cls.__qualname__}, a class written in C"
            raise UnsupportedTypeError(message) from error
        return cls

    return decorate


def _mangled(cls: type, name: str) -> str:
    private = name.startswith("__") and not name.endswith("__")
    return f"_{cls.__name__.lstrip('_')}{name}" if private else name


def _declared(cls: Any) -> set[str] | None:
    """The names of all fields, where a class declares them."""
    slots = set(slots_of(cls))
    fields = cls.__dict__.get("__dataclass_fields__")
    if fields is not None:
        return {*fields, *slots}
    return slots if cls.__dictoffset__ == 0 else None


def constants_of(cls: type) -> frozenset[str]:
    """The constant fields of a class."""
    return getattr(cls, _CONSTANT, frozenset())


def fields_of(x: Any) -> dict[str, Any]:
    """The fields of an object, by name.

    A cached property is none: it was computed from plain fields, and is computed anew.
    """
    cls = type(x)
    held = attributes_of(x)
    if dataclasses.is_dataclass(x):
        defaults = {f.name: held.get(f.name, _default(cls, f.name)) for f in dataclasses.fields(x)}
        declared = {name: v for name, v in defaults.items() if v is not _NO_DEFAULT}
        held = {**declared, **held}
    cached = [name for name in held if _is_cached(cls, name)]
    return {name: v for name, v in held.items() if name not in cached} if cached else held


_NO_DEFAULT = object()


def _default(cls: type, name: str) -> Any:
    """The value of a field that is in the class only."""
    value = next((c.__dict__[name] for c in cls.__mro__ if name in c.__dict__), _NO_DEFAULT)
    return _NO_DEFAULT if hasattr(type(value), "__get__") else value


def _is_cached(cls: type, name: str) -> bool:
    return isinstance(getattr(cls, name, None), functools.cached_property)
