"""Shapes with lengths that are not known when a program is traced."""

from __future__ import annotations

from typing import Any

import numpy as np


def broadcast_shapes(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    """``numpy.broadcast_shapes`` for lengths that may be unknown.

    An unknown length equals only itself, says whether it ``may_be_one``, and is ``joined`` with
    another one that may be.
    """
    if all(type(n) is int for n in (*first, *second)):
        return np.broadcast_shapes(first, second)
    rank = max(len(first), len(second))
    pairs = zip(
        (1,) * (rank - len(first)) + first, (1,) * (rank - len(second)) + second, strict=True
    )
    return tuple(_broadcast(m, n) for m, n in pairs)


def same_shape(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Whether two shapes are equal, or may be, where an unknown length meets another."""
    return len(first) == len(second) and all(
        m == n or not (type(m) is int and type(n) is int)
        for m, n in zip(first, second, strict=True)
    )


def _broadcast(m: Any, n: Any) -> Any:
    if type(m) is int and (m == 1 or type(n) is int):
        return n if m == 1 else np.broadcast_shapes((m,), (n,))[0]
    if type(n) is int:
        return m if n == 1 else n
    if type(m) is int:
        return m  # the other one is it, or one
    if m == n or not m.may_be_one:
        return m
    return m.joined(n) if n.may_be_one else n
