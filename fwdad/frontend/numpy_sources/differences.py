"""Differences and sums of neighbours: ``numpy.gradient``, ``trapezoid``, ..."""

import numpy as np

from fwdad.frontend.numpy_sources.table import along, in_rank, known, stands_for


@stands_for(np.ediff1d)
def ediff1d(ary, to_end=None, to_begin=None):
    ary = np.ravel(ary)
    inner = ary[1:] - ary[:-1]
    if to_end is None and to_begin is None:
        return inner
    parts = [inner]
    if to_begin is not None:
        parts = [np.ravel(to_begin), *parts]
    if to_end is not None:
        parts = [*parts, np.ravel(to_end)]
    return np.concatenate(parts).astype(ary.dtype)


@stands_for(np.diff)
def diff(a, n=1, axis=-1, prepend=np._NoValue, append=np._NoValue):
    n = known(n)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if n == 0:
        return a
    a = np.asarray(a)
    if a.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = in_rank(axis, a.ndim)
    if prepend is not np._NoValue or append is not np._NoValue:
        parts = [p for p in (prepend, append) if p is not np._NoValue]
        edges = [_at_edge(np.asarray(p), a, axis) for p in parts]
        before = [] if prepend is np._NoValue else edges[:1]
        a = np.concatenate([*before, a, *edges[len(before) :]], axis=axis)
    for _ in [0] * n:
        upper, lower = a[along(axis, slice(1, None))], a[along(axis, slice(None, -1))]
        a = np.not_equal(upper, lower) if a.dtype.kind == "b" else upper - lower
    return a


def _at_edge(part, a, axis):
    """What is put before or behind an array: one number is repeated along the other axes."""
    if part.ndim > 0:
        return part
    return np.broadcast_to(part, (*a.shape[:axis], 1, *a.shape[axis + 1 :]))


@stands_for(np.trapezoid)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    y = np.asarray(y)
    axis = in_rank(axis, y.ndim)
    if x is None:
        d = dx
    else:
        x = np.asarray(x)
        d = np.diff(x, axis=0 if x.ndim == 1 else axis)
        if x.ndim == 1:
            d = d.reshape((-1,) + (1,) * (y.ndim - axis - 1))
    upper, lower = y[along(axis, slice(1, None))], y[along(axis, slice(None, -1))]
    return np.sum(d * (upper + lower) / 2.0, axis=axis)


@stands_for(np.gradient)
def gradient(f, *varargs, axis=None, edge_order=1):
    f = np.asarray(f)
    order = known(edge_order)
    if f.dtype.kind not in "fc":
        f = f.astype(np.float64)
    if axis is None:
        axes = tuple(range(f.ndim))
    else:
        axes = tuple(in_rank(k, f.ndim) for k in (axis if isinstance(axis, tuple) else (axis,)))
    if len(varargs) == 0:
        steps = [1.0] * len(axes)
    elif len(varargs) == 1 and np.ndim(varargs[0]) == 0:
        steps = list(varargs) * len(axes)
    elif len(varargs) == len(axes):
        steps = list(varargs)
    else:
        raise TypeError("invalid number of arguments")
    slopes = [_slope(f, h, k, order) for h, k in zip(steps, axes, strict=True)]
    return slopes[0] if len(slopes) == 1 else tuple(slopes)


def _slope(f, h, axis, order):
    n = f.shape[axis]
    if n < order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) "
            "elements are required."
        )
    at = lambda i: f[along(axis, slice(i, i + 1 if i != -1 else None))]  # noqa: E731
    inside = lambda i: f[along(axis, slice(i, n - 2 + i))]  # noqa: E731
    if np.ndim(h) == 0:
        middle = (inside(2) - inside(0)) / (2.0 * h)
        if order == 1:
            first, last = (at(1) - at(0)) / h, (at(-1) - at(-2)) / h
        else:
            a, b, c = -1.5 / h, 2.0 / h, -0.5 / h
            first = a * at(0) + b * at(1) + c * at(2)
            a, b, c = 0.5 / h, -2.0 / h, 1.5 / h
            last = a * at(-3) + b * at(-2) + c * at(-1)
        return _joined(f, first, middle, last, axis)
    if h.ndim == 1 and h.shape[0] != n:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    d = np.diff(h)
    shape = (-1,) + (1,) * (f.ndim - axis - 1)
    before, after = d[:-1].reshape(shape), d[1:].reshape(shape)
    middle = (
        -after / (before * (before + after)) * inside(0)
        + (after - before) / (before * after) * inside(1)
        + before / (after * (before + after)) * inside(2)
    )
    if order == 1:
        first, last = (at(1) - at(0)) / d[0], (at(-1) - at(-2)) / d[-1]
    else:
        p, q = d[0], d[1]
        first = (
            -(2.0 * p + q) / (p * (p + q)) * at(0)
            + (p + q) / (p * q) * at(1)
            - p / (q * (p + q)) * at(2)
        )
        p, q = d[-2], d[-1]
        last = (
            q / (p * (p + q)) * at(-3)
            - (q + p) / (p * q) * at(-2)
            + (2.0 * q + p) / (q * (p + q)) * at(-1)
        )
    return _joined(f, first, middle, last, axis)


def _joined(f, first, middle, last, axis):
    """Slopes at the ends and between, in the dtype and the memory order of what they are of."""
    y = np.empty_like(f)
    y[along(axis, slice(0, 1))] = first
    y[along(axis, slice(1, -1))] = middle
    y[along(axis, slice(-1, None))] = last
    return y
