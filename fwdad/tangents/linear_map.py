"""A linear map that only its own code knows, beside its adjoint."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Map = Callable[[np.ndarray], np.ndarray]


def mapped(x: np.ndarray, apply: Map, adjoint: Map) -> np.ndarray:
    """What a linear map returns.

    Parameters
    ----------
    x : ndarray
        A vector of real numbers.
    apply : callable
        The map; it takes plain arrays.
    adjoint : callable
        Its adjoint.
    """
    return apply(x)
