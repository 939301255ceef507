"""What ``reshape`` and ``ravel`` return: a view or a copy, as memory lies."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.rules.core.registry import share


def view_or_zeros(mirrored: Any, held: Any, v: Any, base: Any) -> Any:
    """The cotangent of an array: a view of that of its base where the array is a view, too.

    Parameters
    ----------
    mirrored : ndarray
        What the function returns for the cotangent of the base.
    held : ndarray
        The cotangent of the base.
    v, base : ndarray
        What it returns for the base, and the base.
    """
    if not np.may_share_memory(v, base):
        return np.zeros_like(mirrored)
    return _view(mirrored, held)


def give_back(held: Any, own: Any, order: Any) -> None:
    """Add the cotangent of a copy to that of what was copied; that of a view is there."""
    if not np.may_share_memory(own, held):
        held += np.reshape(own, held.shape, order=order)


def view_or_copy(mirrored: Any, held: Any, v: Any, base: Any) -> Any:
    """The lanes of an array: a view of those of its base where the array is a view, too.

    Parameters
    ----------
    mirrored : ndarray
        What the function returns for the lanes of the base.
    held : ndarray
        The lanes of the base.
    v, base : ndarray
        What it returns for the base, and the base.
    """
    if not np.may_share_memory(v, base):
        return mirrored.copy() if np.may_share_memory(mirrored, held) else mirrored
    return _view(mirrored, held)


def is_view(v: Any, base: Any) -> bool:
    """Whether what a reshape returned is a view of its argument.

    Parameters
    ----------
    v, base : ndarray
        What it returned, and of what.
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


def _view(mirrored: Any, held: Any) -> Any:
    """What a function has returned, if it is a view of what it was given."""
    if not np.may_share_memory(mirrored, held):
        message = "a view of an array that is not C-contiguous and is written: copy it"
        raise UntraceableError(message)
    return mirrored
