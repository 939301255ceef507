"""The results of ``reshape`` and ``ravel``: a view or a copy, depending on memory layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.ops.record import Memory, op, own_op
from fwdad.rules.core.registry import share


def view_or_zeros(mirrored: Any, held: Any, v: Any, base: Any) -> Any:
    """The cotangent of ``v``: a view of the base's if ``v`` is a view of ``base``, else zeros.

    ``held`` is the cotangent of ``base``, and ``mirrored`` what the function that made ``v`` of
    ``base`` returns for it.
    """
    if not np.may_share_memory(v, base):
        return np.zeros_like(mirrored)
    return _view(mirrored, held)


def give_back(held: Any, own: Any, order: Any, stacked: bool = False) -> None:
    """Add the cotangent of a copy to that of its source; a view has nothing to add.

    Several of them may be ``stacked``, each in memory order ``order``.
    """
    if not np.may_share_memory(own, held):
        for bar, part in zip(held, own, strict=True) if stacked else ((held, own),):
            bar += np.reshape(part, bar.shape, order=order)


def view_or_copy(mirrored: Any, held: Any, v: Any, base: Any) -> Any:
    """The lanes of ``v``: a view of the base's if ``v`` is a view of ``base``, else a copy.

    ``held`` are the lanes of ``base``, and ``mirrored`` what the function that made ``v`` of
    ``base`` returns for them.
    """
    if not np.may_share_memory(v, base):
        return mirrored.copy() if np.may_share_memory(mirrored, held) else mirrored
    return _view(mirrored, held)


@own_op(sees_strides=True)
def is_view(v: Any, base: Any) -> bool:
    """Whether the result of a reshape is a view of its argument."""
    return not v.size or np.may_share_memory(v, base)


@own_op()
def lie_apart(a: Any, b: Any) -> bool:
    """Whether two arrays share no element."""
    return not share(a, b)


@own_op()
def is_one_or_apart(a: Any, b: Any) -> bool:
    """Whether an array has one element, or shares none with another."""
    return b.size < 2 or not share(a, b)


op(view_or_zeros, view_or_copy, memory=Memory.MAYBE, aliased=(0,), sees_strides=True)
op(give_back, memory=Memory.UNKNOWN, sees_strides=True)


def _view(mirrored: Any, held: Any) -> Any:
    """The result of a function; an error unless it is a view of its argument."""
    if not np.may_share_memory(mirrored, held):
        raise UntraceableError(
            "a view of an array that is not C-contiguous is written: copy the array first "
            "(np.ascontiguousarray)"
        )
    return mirrored
