"""Lanes on a tape: seeds, and primitives that backends may implement in their own way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.ir.types import ArrayType, Type
from fwdad.ops.record import Layout, Risk, own_op


@own_op(layout=Layout.C, shape_only=(1,), constant=True)
def zero_lanes(n: int, like: Any) -> Any:
    """Zero lanes for an array or number: ``(n, *like.shape)``."""
    return np.zeros((n, *np.shape(like)), np.result_type(like, np.float16))


@own_op(risk=Risk.SHAPES)
def load_lanes(lanes: Any, *index: Any) -> Any:
    """The lanes of one element, a copy."""
    return lanes[(slice(None), *index)].copy()


@own_op(layout=Layout.C, constant=True)
def unit_lanes(n: int, k: int, dtype: Any = float) -> Any:
    """The lanes of the k-th number of a basis: one in lane k, if that exists."""
    lanes = np.zeros(n, dtype)
    if 0 <= k < n:
        lanes[k] = 1.0
    return lanes


@own_op(risk=Risk.RAISES, constant=True)
def element_place(i: int, n: int, axis: int) -> int:
    """The position of an element along an axis of length n; i may count from the end."""
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of bounds for axis {axis} with size {n}")
    return i + n if i < 0 else i


@dataclass
class Basis:
    """A seed known in advance: lane k is the unit direction of flat index ``start + k``.

    ``start`` may be negative; ``shape`` is that of the argument.
    """

    start: int
    shape: tuple[int, ...]


Seed = Basis | bool
"""How a parameter is seeded: by a basis, by lanes that are a parameter (True), or not at all."""


def lanes_type(t: Type, n: int) -> ArrayType:
    """The type of n lanes of a value."""
    dtype = np.result_type(t.dtype, np.float16) if t.dtype.kind in "biu" else t.dtype
    return ArrayType(dtype, (n, *t.shape))
