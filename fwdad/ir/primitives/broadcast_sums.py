"""Sums over what was broadcast, where that is known only when the tape runs."""

from __future__ import annotations

from typing import Any

import numpy as np


def sum_to(x: np.ndarray, *lengths: int) -> Any:
    """The sum over the axes of length one that something was broadcast along.

    Parameters
    ----------
    x : ndarray
        Of as many axes; it is returned itself where nothing was broadcast.
    *lengths : int
        The lengths.
    """
    if x.shape == lengths:
        return x
    axes = tuple(k for k, (m, n) in enumerate(zip(x.shape, lengths, strict=True)) if m != n == 1)
    return np.sum(x, axis=axes, keepdims=True).reshape(lengths)
