"""Copies with the memory layout of the array: a view of it and of its copy are made alike."""

from __future__ import annotations

from typing import Any

import numpy as np


def alike(x: np.ndarray) -> np.ndarray:
    """A copy with the same order of axes, and gaps where the array has gaps.

    Elements that share memory in the array (steps of zero) are separate in the copy.
    """
    if type(x) is not np.ndarray:
        copied: Any = getattr(type(x), "copied_alike", None)  # a dual has one
        return x.copy("K") if copied is None else copied(x)
    if x.flags.c_contiguous:
        return x.copy()
    if x.flags.f_contiguous:
        return x.copy(order="F")
    strides, offset, size = [0] * x.ndim, 0, x.itemsize
    due = x.itemsize  # the step along the next axis if there is no gap
    for axis in _inwards(x.strides):
        n, step = x.shape[axis], x.strides[axis]
        if n > 1:
            stride = size if abs(step) == due else size + x.itemsize
            strides[axis] = stride if step >= 0 else -stride
            offset += 0 if step >= 0 else stride * (n - 1)
            size, due = stride * n, abs(step) * n
    memory = np.empty(size // x.itemsize, x.dtype)
    copy: np.ndarray = np.ndarray(x.shape, x.dtype, memory, offset, strides)
    copy[...] = x
    return copy


def _inwards(strides: tuple[int, ...]) -> list[int]:
    """The axes by their strides, the shortest first; one without a stride stays beside the next."""
    steps = [abs(step) for step in strides]
    for k in range(len(steps) - 2, -1, -1):
        steps[k] = steps[k] or steps[k + 1]
    return sorted(range(len(steps)), key=lambda k: (steps[k], -k))
