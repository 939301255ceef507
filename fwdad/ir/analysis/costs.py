"""What an operation costs for each element: what its function does, but products for a power."""

from __future__ import annotations

import numpy as np

from fwdad.ir.ops import Apply
from fwdad.ops import Cost, record_of


def cost_of(op: Apply) -> Cost | None:
    """The cost of one element; None if it is not known."""
    if small_power(op) is not None:
        return Cost.ARITHMETIC
    record = record_of(op.function)
    return record.cost or (record_of(record.stands_for).cost if record.stands_for else None)


def small_power(op: Apply) -> int | None:
    """The exponent of a square or a cube, which are products; else None."""
    if (record_of(op.function).stands_for or op.function) is not np.power:
        return None
    exponent = op.args[1] if len(op.args) > 1 else None
    number = isinstance(exponent, (int, float, np.number))
    return int(exponent) if number and exponent in (2, 3) else None
