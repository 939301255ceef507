"""Arrays of texts, dates and objects, which no tape has: Python operates on them in a trace.

Their items are static values, or, in an array of objects, what the program puts there.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.frontend.syntax.raising import native
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import NUMERIC, is_static_array

_WRITE = {
    "byteswap",
    "fill",
    "itemset",
    "partition",
    "put",
    "resize",
    "setfield",
    "setflags",
    "sort",
}
"""Methods that write into an array, or change it otherwise."""


def attribute(tracer: Tracer, a: np.ndarray, name: str) -> Any:
    """An attribute of such an array, or one of its methods."""
    found = native(getattr, a, name)
    if isinstance(found, types.BuiltinFunctionType) and name in _WRITE:
        _refuse(tracer, f"{name}() of")
    return found if isinstance(found, tuple) else made(tracer, found)


def are_given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a function of NumPy's is given such arrays, or what it makes such arrays of."""
    values = (*args, *kwargs.values())
    return any(is_static_array(x) or _is_asked_for(x) or _is_made_of(x) for x in values)


_ITEMS = (str, bytes, np.datetime64, np.timedelta64, enum.Enum)


def _is_asked_for(dtype: Any) -> bool:
    """Whether something is a dtype of such arrays."""
    if isinstance(dtype, np.dtype):
        return dtype.kind not in NUMERIC
    return isinstance(dtype, type) and dtype in _CLASSES


_CLASSES = (object, str, bytes, np.ndarray, np.object_, np.str_, np.bytes_, np.datetime64)


def _is_made_of(x: Any) -> bool:
    """Whether a list holds items of such arrays."""
    if not isinstance(x, (list, tuple)):
        return False
    return any(item is None or isinstance(item, _ITEMS) or _is_made_of(item) for item in x)


def operated(tracer: Tracer, function: Callable[..., Any], *operands: Any) -> Any:
    """An operator on values, some of which are such arrays."""
    if any(type(x) is Symbol for x in operands):
        _refuse(tracer, "an operator on a value and")
    return made(tracer, native(function, *operands))


def item(tracer: Tracer, a: np.ndarray, index: Any) -> Any:
    """``a[index]``."""
    return made(tracer, native(lambda: a[tracer.values.known(index)]))


def set_item(tracer: Tracer, a: np.ndarray, index: Any, value: Any) -> None:
    """``a[index] = value``, of a single item if the array holds objects."""
    index = tracer.values.known(index)
    tracer.outside.may_change(a)
    single = isinstance(index, (int, np.integer)) and a.ndim == 1
    single = single or (isinstance(index, tuple) and len(index) == a.ndim and _are_ints(index))
    if a.dtype.hasobject and not single:
        _refuse(tracer, "setting several items of")
    if type(value) is Symbol and not a.dtype.hasobject:
        _refuse(tracer, "setting an item of")
    tracer.recorder.journal.touch(a)
    native(lambda: a.__setitem__(index, value))


def _are_ints(index: tuple[Any, ...]) -> bool:
    return all(isinstance(k, (int, np.integer)) for k in index)


def made(tracer: Tracer, found: Any) -> Any:
    """A result: an array of numbers is made anew at each run, and one of this kind is its own."""
    if isinstance(found, np.ndarray):
        owner = found
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if not is_static_array(found):
            if is_static_array(owner):
                _refuse(tracer, "a view as numbers of")
            return tracer.operations.constants(found)  # type: ignore[attr-defined]
        if owner is found or tracer.recorder.journal.is_own(owner):
            tracer.recorder.journal.own(found)
        return found
    return tracer.values.made(found)


def _refuse(tracer: Tracer, what: str) -> None:
    message = (
        f"{what} an array of texts, dates or objects cannot be traced: use a list, or make the "
        "array before the call"
    )
    raise UntraceableError(message, tracer.position.location())
