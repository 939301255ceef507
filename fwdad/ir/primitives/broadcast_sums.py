"""Sums over broadcast axes, where these are known only at run time."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.ops.record import Layout, Memory, op


def sum_to(x: np.ndarray, *lengths: int) -> Any:
    """``x`` summed over the axes of length 1 in ``lengths``; itself if it has these lengths."""
    if x.shape == lengths:
        return x
    axes = tuple(k for k, (m, n) in enumerate(zip(x.shape, lengths, strict=True)) if m != n == 1)
    return np.sum(x, axis=axes, keepdims=True).reshape(lengths)


op(sum_to, memory=Memory.MAYBE, layout=Layout.ELEMENTWISE)
