"""The lanes of one scalar as arrays: what :mod:`fwdad.backends.simd` does, in NumPy.

The same generated text runs with these functions and with the compiled ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


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


def numpy_lanes(n: int) -> LaneFunctions:
    """The functions on N lanes, for the NumPy source.

    Parameters
    ----------
    n : int
        How many lanes.
    """

    def load(a: Any, *index: int) -> Any:
        if a.shape[0] != n:
            raise IndexError(_wrong_length(a.shape[0], n))
        return a[:, *index].copy()

    def store(a: Any, lanes: np.ndarray, *index: int) -> None:
        if a.shape[0] != n:
            raise IndexError(_wrong_length(a.shape[0], n))
        a[:, *index] = lanes

    def unit(k: int) -> np.ndarray:
        return (np.arange(n) == k).astype(float)

    def build(*items: float) -> np.ndarray:
        if len(items) != n:
            raise TypeError(_wrong_length(len(items), n))
        return np.array(items, float)

    return LaneFunctions(
        load, store, lambda: np.zeros(n), lambda x: np.full(n, float(x)), _scale, unit, build
    )


def _wrong_length(length: int, n: int) -> str:
    return f"an array of {length} lanes where {n} are wanted"


def _scale(d: float, lanes: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.where(lanes == 0.0, 0.0, d * lanes)
