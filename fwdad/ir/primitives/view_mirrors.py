"""What ``reshape`` and ``ravel`` answer: a window or a copy, as memory lies."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.rules.core.registry import share


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
    return _window(mirrored, held)


def give_back(held: Any, own: Any, order: Any) -> None:
    """Add the cotangent of a copy to that of what was copied; that of a window is there."""
    if not np.may_share_memory(own, held):
        held += np.reshape(own, held.shape, order=order)


def window_or_copy(mirrored: Any, held: Any, v: Any, base: Any) -> Any:
    """The lanes of an array: a window on those of its base where the array is a window, too.

    Parameters
    ----------
    mirrored : ndarray
        What the function answers for the lanes of the base.
    held : ndarray
        The lanes of the base.
    v, base : ndarray
        What it answers for the base, and the base.
    """
    if not np.may_share_memory(v, base):
        return mirrored.copy() if np.may_share_memory(mirrored, held) else mirrored
    return _window(mirrored, held)


def is_window(v: Any, base: Any) -> bool:
    """Whether what a reshape answered is a window on its argument.

    Parameters
    ----------
    v, base : ndarray
        What it answered, and of what.
    """
    return not v.size or np.may_share_memory(v, base)


def lie_apart(a: Any, b: Any) -> bool:
    """Whether two arrays have no element in common.

    Parameters
    ----------
    a, b : ndarray
        Maybe views of one array.
    """
    return not share(a, b)


def _window(mirrored: Any, held: Any) -> Any:
    """What a function has answered, if it is a window on what it was given."""
    if not np.may_share_memory(mirrored, held):
        message = "a window on an array that does not lie row by row, and is written: copy it"
        raise UntraceableError(message)
    return mirrored
