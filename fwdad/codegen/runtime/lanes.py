"""What generated code does with the lanes of one scalar, which live in registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class LaneFunctions(NamedTuple):
    """The functions on N lanes that generated code calls.

    Lanes are values: no function writes into them. They have ``+``, ``-``, negation, products with
    a float on either side and division by a float as operators.

    Attributes
    ----------
    load : callable
        ``load(a, *index)``: the lanes ``a[:, *index]`` of an array whose first axis holds N lanes.
    store : callable
        ``store(a, lanes, *index)``: ``a[:, *index] = lanes``.
    zeros : callable
        ``zeros()``: N zeros.
    splat : callable
        ``splat(x)``: N times x.
    scale : callable
        ``scale(d, lanes)``: ``d * lanes``, where a lane that is zero stays zero even if d is
        infinite or NaN.
    unit : callable
        ``unit(k)``: one in lane k, zero elsewhere; all zero if there is no lane k.
    build : callable
        ``build(x0, x1, ...)``: N numbers, one for each lane.
    """

    load: Callable[..., Any]
    store: Callable[..., None]
    zeros: Callable[[], Any]
    splat: Callable[[float], Any]
    scale: Callable[[float, Any], Any]
    unit: Callable[[int], Any]
    build: Callable[..., Any]
