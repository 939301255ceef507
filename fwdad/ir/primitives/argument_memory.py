"""What a program that writes into an argument may check of its memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.ops.record import own_op


@own_op(constant=True, pure=True, sees_strides=True)
def is_c_contiguous(a: Any) -> bool:
    """Whether an array is C-contiguous."""
    return bool(a.flags.c_contiguous)


@own_op(constant=True, pure=True)
def are_disjoint(a: Any, b: Any) -> bool:
    """Whether no byte between the first and the last of one array is between those of another."""
    return not np.may_share_memory(a, b)
