"""Functions of NumPy on objects whose classes say what such a function does with them.

``__array_ufunc__`` and ``__array_function__`` in Python, as NumPy asks for them.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.rules.core.registry import function_name


def answered(tracer: Tracer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the class of an argument makes of a call; ``NotImplemented`` if none is asked."""
    name = "__array_ufunc__" if isinstance(f, np.ufunc) else "__array_function__"
    given = (*args, *kwargs.values())
    if name == "__array_function__":  # in lists, too: those of `np.concatenate`
        given = tuple(x for g in given for x in (g if type(g) in (list, tuple) else (g,)))
    found: dict[type, Any] = {}
    for x in given:
        if _says(x, name):
            found.setdefault(type(x), x)
    asked = sorted(found.values(), key=lambda x: -_subclasses(type(x), found))
    for x in asked:
        method = tracer.values.python_method(x, name)
        if name == "__array_ufunc__":
            y = tracer.call(method, (x, f, "__call__", *args), kwargs)
        else:
            y = tracer.call(method, (x, f, tuple(found), args, kwargs), {})
        if y is not NotImplemented:
            return y
    if asked:
        what = f"no implementation found for {function_name(f)!r} on types that implement {name}"
        raise AlwaysRaises(TypeError, (what,))
    return NotImplemented


def _says(x: Any, name: str) -> bool:
    if type(x) is Symbol or isinstance(x, (np.ndarray, type)):
        return False
    return isinstance(getattr(type(x), name, None), types.FunctionType)


def _subclasses(cls: type, found: dict[type, Any]) -> int:
    """How many of some classes a class is derived from: it is asked before them."""
    return sum(issubclass(cls, other) for other in found)
