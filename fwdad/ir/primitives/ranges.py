"""The number of items in a range, where its bounds are known only at run time."""

from __future__ import annotations

from fwdad.ops.record import own_op


@own_op(constant=True, pure=True)
def range_length(start: int, stop: int, step: int) -> int:
    """The number of items in a range; it raises if the step is zero."""
    return len(range(start, stop, step))
