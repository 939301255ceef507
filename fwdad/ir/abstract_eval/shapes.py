"""Broadcasting of shapes with unknown lengths."""

from __future__ import annotations

import numpy as np

from fwdad.ir.ops import Operand, Value
from fwdad.ir.types import CannotInferError, Dimension, Size, joined


def shape_of(operand: Operand, known: dict[Size, int]) -> tuple[Dimension, ...]:
    """The shape of a value or of a list of numbers, with the lengths known so far."""
    if isinstance(operand, Value):
        return tuple(known.get(d, d) if isinstance(d, Size) else d for d in operand.type.shape)
    return np.shape(operand) if isinstance(operand, (list, tuple)) else ()


def joined_shapes(shapes: list[tuple[Dimension, ...]]) -> tuple[Dimension, ...]:
    """The shapes broadcast together; unknown lengths that cannot be 1 take precedence.

    A computed length may turn out to be 1, so that two of them broadcast to a new length.
    """
    rank = max((len(s) for s in shapes), default=0)
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    found: list[Dimension] = []
    for lengths in zip(*padded, strict=True):
        many = [d for d in lengths if isinstance(d, Size) or d != 1]
        ints = {d for d in many if not isinstance(d, Size)}
        if len(ints) > 1:
            message = f"operands could not be broadcast together: lengths {sorted(ints)}"
            raise CannotInferError(message)
        sure = [d for d in many if isinstance(d, Size) and not d.may_be_one]
        if ints or not many:
            found.append(ints.pop() if ints else 1)
        elif sure or all(d is many[0] for d in many):
            found.append(sure[0] if sure else many[0])
        else:
            found.append(joined(*(d for d in many if isinstance(d, Size))))
    return tuple(found)
