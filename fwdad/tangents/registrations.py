"""The registered classes, whose instances are composites by a given flattening."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Flatten = Callable[[Any], tuple[tuple[Any, ...], Any]]
Unflatten = Callable[[Any, tuple[Any, ...]], Any]


@dataclass(frozen=True)
class Registration:
    """How the instances of a registered class are flattened, or why they are ``refused``.

    ``unflatten`` also gets duals and tangents as children. ``mismatch(data, other_data)`` returns
    why a seed does not fit, or None. ``tangent(data, children)`` makes a tangent of x that is not
    an instance of the class.
    """

    flatten: Flatten
    unflatten: Unflatten
    mismatch: Callable[[Any, Any], str | None] | None = None
    subclasses: bool = False
    refused: str | None = None
    tangent: Unflatten | None = None


REGISTERED: dict[type, Registration] = {}
_LAZY: dict[str, Callable[[], None]] = {}


def register(cls: type, registration: Registration) -> None:
    """Enter a class whose instances are composites of leaves."""
    REGISTERED[cls] = registration
    forget()


def forget() -> None:
    """Look all classes up anew: one was registered."""
    _find_registration.cache_clear()
    registered_base.cache_clear()


def register_lazily(package: str, enter: Callable[[], None]) -> None:
    """Have ``enter`` register the classes of a package when its first instance appears."""
    _LAZY[package] = enter


def registration_of(cls: type) -> Registration | None:
    """The registration of a class, or None."""
    registration = REGISTERED.get(cls)
    return _find_registration(cls) if registration is None else registration


def _nothing() -> None:
    """Do nothing: another thread has registered the package."""


@functools.lru_cache(maxsize=1024)
def _find_registration(cls: type) -> Registration | None:
    for base in cls.__mro__:
        for package in list(_LAZY):
            if f"{base.__module__}.".startswith(f"{package}."):
                _LAZY.pop(package, _nothing)()
    for base in cls.__mro__:
        registration = REGISTERED.get(base)
        if registration is not None and (base is cls or registration.subclasses):
            return registration
    return None


@functools.lru_cache(maxsize=1024)
def registered_base(cls: type) -> type | None:
    """The nearest base class that is registered, alone, without its subclasses; None if none is."""
    return next((b for b in cls.__mro__[1:] if b in REGISTERED or b in OWN), None)


@dataclass(frozen=True)
class OwnTangents:
    """The tangents of a class that has a tangent class of its own.

    ``tangent`` has ``+`` and ``*`` by a number, ``zero(x)`` is the zero tangent of x, and
    ``inner(t, u)`` the real inner product.
    """

    tangent: type
    zero: Callable[[Any], Any]
    inner: Callable[[Any, Any], float]


OWN: dict[type, OwnTangents] = {}
"""class -> its tangents, for classes with a tangent class of their own."""
