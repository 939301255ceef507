"""Bound methods of arrays and numbers that are not known, and the table of those with a meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.frontend.syntax.raising import native
from fwdad.frontend.syntax.symbols import OfFunction
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Number

METHODS: dict[str, Callable[..., Any]] = {}
"""Methods of arrays and numbers: ``handle(tracer, symbol, *args, **kwargs)``."""

_EXAMPLES = {"b": True, "i": 1, "u": 1, "f": 1.0, "c": 1j}


class BoundArrayMethod(OfFunction):
    """A bound method of an unknown array or number."""

    def __init__(self, owner: Symbol, name: str) -> None:
        self.owner = self.__self__ = owner
        self.name = self.__name__ = name

    @property
    def kind(self) -> type:  # type: ignore[override]
        """The class of bound methods in C."""
        return type(self.like)

    @property
    def like(self) -> Any:
        """The method of a value that is known."""
        return native(getattr, example_of(self.owner), self.name)

    def __eq__(self, other: object) -> bool:
        """Compare as Python does: one method of the same value."""
        if not isinstance(other, BoundArrayMethod):
            return NotImplemented
        return self.name == other.name and self.owner.value is other.owner.value

    def __hash__(self) -> int:
        return hash((self.name, self.owner.value))


def example_of(x: Symbol) -> Any:
    """A value of a symbol's class."""
    t = x.type
    if isinstance(t, Number):
        return _EXAMPLES[t.dtype.kind] if t.python else t.dtype.type(1)
    return np.empty((0,) * t.ndim, x.dtype)


def array_method(o: Symbol, name: str) -> BoundArrayMethod:
    """The bound method ``o.name``."""
    t, special = o.type, name.startswith("__")  # NumPy, the module, has some, too
    if name in METHODS or (hasattr(np.ndarray, name) and hasattr(np, name) and not special):
        return BoundArrayMethod(o, name)
    if isinstance(t, Number) and hasattr(_EXAMPLES[t.dtype.kind], name):
        return BoundArrayMethod(o, name)
    raise UntraceableError(f"'{name}' of a {t} cannot be traced", o.recorder.place())
