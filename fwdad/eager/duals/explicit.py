"""The tangents that memory carries, made explicit in duals."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.eager.duals.array import Array, _read, wrap
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.memory.shadow import SHADOWED, find_shadow
from fwdad.eager.memory.stale import ARRAYS, check_array
from fwdad.eager.run import Tag
from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.tangents.alike import alike
from fwdad.tangents.plain import plain


def explicit(x: Any) -> Any:
    """``x`` with all the tangents that its memory carries, even those that other calls stored."""
    if ARRAYS and type(x) is not Array and isinstance(x, np.ndarray):
        check_array(x)
    if not SHADOWED or type(x) is Scalar:
        return x
    if type(x) is Array:
        return _of_all_calls(x)
    if isinstance(x, np.flatiter):
        return np.ravel(wrap(x.base, copy=False)) if find_shadow(x.base) else x
    if isinstance(x, np.ndarray) and find_shadow(x):
        if type(x) not in (np.ndarray, np.memmap):
            message = (
                f"{type_in_words(x)} views memory whose values carry derivatives; only plain "
                "arrays can carry them: use numpy.asarray(x)"
            )
            raise UnsupportedTypeError(message)
        if x.dtype.kind == "V":
            raise UnsupportedTypeError(records("a function is given"))
        return wrap(x, copy=False)
    return x


def with_explicit(values: Any) -> Any:
    """Make the tangents in the memory of arrays explicit, also inside lists and dicts."""
    if not SHADOWED and not ARRAYS:
        return values
    settled_values = []
    for x in values:
        t = type(x)
        if t is np.flatiter or isinstance(x, np.ndarray):
            x = explicit(x)
        elif (t is list or t is tuple) and x:
            items = with_explicit(x)
            x = t(items)
        elif t is dict and x:
            x = dict(zip(x, with_explicit(x.values()), strict=True))
        settled_values.append(x)
    return tuple(settled_values)


def settled(y: Any) -> Any:
    """A copy of an array with all its tangents, before the memory that was written is restored.

    Calls other than the array's own may have stored tangents, too.
    """
    if type(y) is not Array:
        return wrap(y, copy=True)
    shadow = find_shadow(plain(y))
    return _with_tangents(y, shadow.seen() if shadow is not None else [], copy=True)


def _of_all_calls(x: Array) -> Array:
    """A dual array that is also a dual of the calls that have stored into its memory."""
    shadow = find_shadow(plain(x))
    if shadow is None or (len(shadow.lanes) == 1 and x.tag in shadow.lanes):
        return x
    seen = shadow.seen()
    level: Any = x
    while type(level) is Array and seen:
        seen = [tag for tag in seen if tag is not level.tag]
        level = level.p
    return _with_tangents(x, seen, copy=False) if seen else x


def _with_tangents(y: Array, stored: list[Tag], *, copy: bool) -> Array:
    """An array with its own tangents and those of calls that have stored into it."""
    tangents: dict[Tag, Any] = {}
    level: Any = y
    while type(level) is Array:
        tangents[level.tag] = level.t
        level = level.p
    if stored:
        shadow = find_shadow(level)
        assert shadow is not None
        tangents |= {tag: _read(shadow, tag, level) for tag in stored}
    value: Any = alike(level) if copy else level
    for tag in sorted(tangents, key=lambda t: t.order):
        value = Array(value, tangents[tag], tag)
    return value


def records(what: str) -> str:
    """The message for what cannot be done with a structured array that carries tangents."""
    return (
        f"{what} a structured array whose fields carry derivatives: read or write the fields, "
        "a['field'], one by one"
    )
