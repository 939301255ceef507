"""Shapes of which some lengths are not known when a program is traced."""

from __future__ import annotations

from typing import Any

import numpy as np


def broadcast_shapes(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    """``numpy.broadcast_shapes`` for lengths that may be unknown, which are never one.

    Parameters
    ----------
    first, second : tuple
        Shapes; an unknown length is an object that equals itself only.
    """
    if all(type(n) is int for n in (*first, *second)):
        return np.broadcast_shapes(first, second)
    rank = max(len(first), len(second))
    pairs = zip(
        (1,) * (rank - len(first)) + first, (1,) * (rank - len(second)) + second, strict=True
    )
    return tuple(n if type(m) is int and m == 1 else m for m, n in pairs)
