"""The identity, which gives a number or a view of an array a value of its own."""

from __future__ import annotations

from typing import Any

from fwdad.ops.record import Memory, own_op


@own_op(memory=Memory.MAYBE)
def identity(x: Any) -> Any:
    """``x`` itself."""
    return x
