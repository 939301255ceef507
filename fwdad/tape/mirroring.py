"""What ``reshape`` and ``ravel`` answer: a window or a copy, as memory lies."""

from __future__ import annotations

from typing import Any

import numpy as np


def window_or_zeros(mirrored: Any, held: Any, v: Any, base: Any) -> Any:
    """The cotangent of an array: a window on that of its base where the array is a window, too.

    Parameters
    ----------
    mirrored : ndarray
        What the function answers for the cotangent of the base.
    held : ndarray
        The cotangent of the base.
    v, base : ndarray
        What it answers for the base, and the base.
    """
    if not np.may_share_memory(v, base):
        return np.zeros_like(mirrored)
    if not np.may_share_memory(mirrored, held):
        message = "a window on an array that does not lie row by row, and is written: copy it"
        raise ValueError(message)
    return mirrored


def give_back(held: Any, own: Any, order: Any) -> None:
    """Add the cotangent of a copy to that of what was copied; that of a window is there."""
    if not np.may_share_memory(own, held):
        held += np.reshape(own, held.shape, order=order)


def lie_alike(made: Any, base: Any, made_dot: Any = None, base_dot: Any = None) -> bool:
    """Whether a reshape of an array and that of its lanes are both windows, or both copies.

    Parameters
    ----------
    made, base : ndarray
        What a reshape answered, and of what.
    made_dot, base_dot : ndarray, optional
        The same of the lanes; without them the lanes are known by their places, as a window.
    """
    if not made.size:
        return True
    if made_dot is None:
        return np.may_share_memory(made, base)
    return np.may_share_memory(made, base) == np.may_share_memory(made_dot, base_dot)
