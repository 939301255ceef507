"""The tangents that memory carries, made explicit."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.builder.duals.array import Array, _read, wrap
from fwdad.builder.duals.scalar import Scalar
from fwdad.builder.memory.shadow import SHADOWED, find_shadow
from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.tangents.alike import alike


def explicit(x: Any) -> Any:
    """``x``, as a dual if it is a plain array whose memory carries tangents."""
    if not SHADOWED or type(x) is Array or type(x) is Scalar:
        return x
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
    """Make the tangents in the memory of plain arrays explicit, also inside lists."""
    if not SHADOWED:
        return values
    made = []
    for x in values:
        t = type(x)
        if t is np.flatiter or isinstance(x, np.ndarray):
            x = explicit(x)
        elif (t is list or t is tuple) and x:
            items = with_explicit(x)
            x = t(items)
        made.append(x)
    return tuple(made)


def settled(y: Any) -> Any:
    """A copy of an array with all its tangents, for when the memory that was written is put back.

    Parameters
    ----------
    y : ndarray or Array
        An array whose memory was written, also with tangents of other calls than its own.

    Returns
    -------
    ndarray or Array
    """
    if type(y) is not Array:
        return wrap(y, copy=True)
    tangents = {}
    while type(y) is Array:
        tangents[y.tag] = y.t
        y = y.p
    shadow = find_shadow(y)
    if shadow is not None:
        tangents |= {tag: _read(shadow, tag, y) for tag in shadow.seen()}
    value: Any = alike(y)
    for tag in sorted(tangents, key=lambda t: t.order):
        value = Array(value, tangents[tag], tag)
    return value


def records(what: str) -> str:
    """The message for what cannot be done with a structured array that carries tangents."""
    return (
        f"{what} a structured array whose fields carry derivatives: read or write the fields, "
        "a['field'], one by one"
    )
