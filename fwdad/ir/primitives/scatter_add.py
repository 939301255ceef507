"""``np.add.at``, ``np.subtract.at``: sums into elements that an index may repeat."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fwdad.ir.ops import Apply, Op, Operand, Store, Update, Value
from fwdad.ops import Risk
from fwdad.ops.record import own_op

_SCATTERING = (np.add.at, np.subtract.at)


class Target(NamedTuple):
    """The elements that an operation writes."""

    array: Value
    at: tuple[Operand, ...]


def is_scatter(op: Op) -> bool:
    """Whether an operation is a call of ``np.add.at`` or ``np.subtract.at``."""
    return isinstance(op, Apply) and op.function in _SCATTERING and not op.kwargs


def subtracts(op: Apply) -> bool:
    """Whether a scatter subtracts."""
    return bool(op.function == np.subtract.at)


def target_of(op: Op) -> Target | None:
    """The elements that a store, an update or a scatter writes; None for any other operation."""
    if isinstance(op, (Store, Update)):
        return Target(op.array, op.index)
    if isinstance(op, Apply) and is_scatter(op):
        array, index, _ = op.args
        return Target(array, index if isinstance(index, tuple) else (index,))
    return None


def scattered(op: Apply) -> Any:
    """What a scatter adds."""
    return op.args[2]


@own_op(constant=True, shape_only=(0, 2), risk=Risk.SHAPES)
def last_writes(a: np.ndarray, index: Any, values: np.ndarray) -> np.ndarray:
    """Which elements of ``values`` remain after ``a[index] = values``, whose index may repeat.

    Only the shape of ``a`` counts; ``values`` has the shape of ``a[index]``.
    """
    order = np.arange(np.size(values)).reshape(np.shape(values))
    last = np.empty(np.shape(a), int)  # of which only these elements are touched
    last[index] = order
    return last[index] == order
