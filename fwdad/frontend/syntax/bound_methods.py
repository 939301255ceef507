"""Bound methods of arrays and numbers that are not known, and the table of those with a meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Number

METHODS: dict[str, Callable[..., Any]] = {}
"""Methods of arrays and numbers: ``handle(tracer, symbol, *args, **kwargs)``."""

_EXAMPLES = {"b": True, "i": 1, "u": 1, "f": 1.0, "c": 1j}


class BoundArrayMethod:
    """A bound method of an unknown array or number."""

    def __init__(self, owner: Symbol, name: str) -> None:
        self.owner = self.__self__ = owner
        self.name = self.__name__ = name


def array_method(o: Symbol, name: str) -> BoundArrayMethod:
    """The bound method ``o.name``."""
    t, special = o.type, name.startswith("__")  # NumPy, the module, has some, too
    if name in METHODS or (hasattr(np.ndarray, name) and hasattr(np, name) and not special):
        return BoundArrayMethod(o, name)
    if isinstance(t, Number) and hasattr(_EXAMPLES[t.dtype.kind], name):
        return BoundArrayMethod(o, name)
    raise UntraceableError(f"'{name}' of a {t} cannot be traced", o.recorder.place())
