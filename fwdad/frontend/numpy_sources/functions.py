"""Functions along an axis, and by conditions: ``numpy.apply_along_axis``, ``piecewise``."""

import numpy as np

from fwdad.frontend.numpy_sources.table import in_rank, stands_for


@stands_for(np.apply_along_axis)
def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    arr = np.asarray(arr)
    axis = in_rank(axis, arr.ndim)
    moved = np.moveaxis(arr, axis, -1)
    outer = moved.shape[:-1]
    rows = moved.reshape((-1, moved.shape[-1])) if arr.ndim != 2 else moved
    if rows.shape[0] == 0:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    first = np.asarray(func1d(rows[0], *args, **kwargs))
    array = np.empty((rows.shape[0], *first.shape), first.dtype)
    array[0] = first
    for k in range(1, rows.shape[0]):
        array[k] = func1d(rows[k], *args, **kwargs)
    array = array.reshape((*outer, *first.shape)) if arr.ndim != 2 else array
    for j in tuple(range(first.ndim)):
        array = np.moveaxis(array, arr.ndim - 1 + j, axis + j)
    return array


@stands_for(np.piecewise)
def piecewise(x, condlist, funclist, *args, **kw):
    x = np.asarray(x)
    held = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    if x.ndim == 0 or not all(np.ndim(c) == x.ndim for c in held):
        return NotImplemented
    conditions = [np.asarray(c).astype(bool) for c in held]
    if len(funclist) == len(held) + 1:
        none = ~conditions[0]
        for c in conditions[1:]:
            none = none & ~c
        conditions = [*conditions, none]
    elif len(funclist) != len(held):
        raise ValueError("piecewise: expected as many functions as conditions, or one more")
    y = np.zeros_like(x)
    for condition, f in zip(conditions, funclist, strict=True):
        if callable(f):
            y[condition] = f(x[condition], *args, **kw)
        else:
            y[condition] = f
    return y
