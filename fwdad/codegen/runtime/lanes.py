"""What generated code does with the lanes of one scalar, which are kept in registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class LaneFunctions(NamedTuple):
    """The functions on N lanes that generated code calls.

    Lanes are immutable values with ``+``, ``-``, and products with and quotients by a float.
    ``load(a, *index)`` and ``store(a, lanes, *index)`` access ``a[:, *index]``, whose first axis
    holds N lanes. ``scale(d, lanes)`` keeps zero lanes zero even if d is infinite or NaN;
    ``unit(k)`` is all zero if there is no lane k.
    """

    load: Callable[..., Any]
    store: Callable[..., None]
    zeros: Callable[[], Any]
    splat: Callable[[float], Any]
    scale: Callable[[float, Any], Any]
    unit: Callable[[int], Any]
    build: Callable[..., Any]
