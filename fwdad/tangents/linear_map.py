"""A linear map that is given as code, together with its adjoint."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Map = Callable[[np.ndarray], np.ndarray]


def mapped(x: np.ndarray, apply: Map, adjoint: Map) -> np.ndarray:
    """Return ``apply(x)`` for a vector of real numbers.

    ``apply``, a linear map, and ``adjoint`` take plain arrays.
    """
    return apply(x)
