"""Registration in the closed list, and helpers for writing its laws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fwdad.core.register_into import enter_into
from fwdad.errors import DualLeakError
from fwdad.tangents.chunk import LAWS, Chunk
from fwdad.tangents.lanes import zero_lanes
from fwdad.tangents.plain import plain
from fwdad.tangents.registrations import OWN
from fwdad.tangents.symbolic import zeros
from fwdad.tangents.vectors import zero_tangent


def law(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function into the closed list."""
    return enter_into(LAWS, functions)


def listed() -> list[Any]:
    """The functions of the closed list, in the order of their registration."""
    return list(LAWS)


def dense(x_dot: Any, x: Any, n: int) -> Chunk:
    """Write a ``ZERO`` out as a chunk of n zero lanes of x's shape."""
    if isinstance(x_dot, Chunk):
        return x_dot
    x = plain(x)
    if type(x) in OWN:
        return zero_tangent(x, n)
    dtype = getattr(x, "dtype", None) or np.result_type(type(x))
    if dtype.kind not in "fc":
        dtype = np.dtype(float)
    shape = np.shape(x)
    if all(type(m) is int for m in (n, *shape)):
        return Chunk.of(n, shape, {zero_lanes(n, shape, dtype): None})
    return Chunk(zeros((n, *shape), dtype))


def axis_of(axis: int, ndim: int) -> int:
    """The position, after the lane axis, of an axis of the primal."""
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim + 1


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """The positions, after the lane axis, of the axes that an ``axis`` option names."""
    if axis is None or ndim == 0:  # NumPy reduces a scalar along "axis 0", too
        return tuple(range(1, ndim + 1))
    if isinstance(axis, Sequence) or np.ndim(axis):
        return tuple(axis_of(a, ndim) for a in axis)
    return (axis_of(axis, ndim),)


def or_default(option: Any, default: Any) -> Any:
    """An option's value; NumPy's own default for many options is the marker "no value"."""
    return default if option is np._NoValue else option


def would_lose_it(dtype: np.dtype[Any]) -> str:
    """The message for a value with a derivative that is converted to a dtype without any."""
    return (
        f"a value that carries a derivative would become {dtype} and lose it; write "
        "fwdad.stop_gradient(x) if that is meant"
    )


def cast(x_dot: Any, dtype: Any) -> Any:
    """Cast a tangent as its primal is cast; None, and a structural zero, stay as they are."""
    if dtype is None or not isinstance(x_dot, Chunk):
        return x_dot
    if np.dtype(dtype).kind not in "fc":
        raise DualLeakError(would_lose_it(np.dtype(dtype)))
    return x_dot if x_dot.dtype == dtype else x_dot.astype(dtype)
