"""NumPy's quantiles, histograms, correlations and polynomials, rewritten in Python."""

from __future__ import annotations

import numpy as np

from fwdad.frontend.numpy_sources.table import in_rank, known, refuse, stands_for

# -- quantiles, by the method that is the default: between neighbours, in proportion


@stands_for(np.percentile)
def percentile(a, q, axis=None, method="linear", keepdims=False):
    return quantile(a, _per_hundred(q), axis, method, keepdims)


@stands_for(np.quantile)
def quantile(a, q, axis=None, method="linear", keepdims=False):
    a = np.asarray(a)
    if method != "linear" or a.dtype.kind not in "biuf" or isinstance(axis, (tuple, list)):
        return NotImplemented
    rows = np.sort(_last(a, axis).astype(np.float64 if a.dtype.kind != "f" else a.dtype), axis=-1)
    q = _fraction(q)
    at = q * (rows.shape[-1] - 1)
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, rows.shape[-1] - 1)
    if rows.ndim == 1:
        y, last = _between(rows[low], rows[high], at - low), rows[-1]
    else:
        t = at - low
        t = t.reshape((-1,) + (1,) * (rows.ndim - 1)) if np.ndim(q) > 0 else t
        y, last = _between(_taken(rows, low), _taken(rows, high), t), _taken(rows, -1)
    y = _of_dtype(np.where(np.isnan(last), last, y), q, rows)
    return _placed(y, q, a.ndim, axis, keepdims)


def _taken(rows, at):
    """Items of all rows at some places: these places are the first axis, as NumPy has it."""
    return np.take(np.moveaxis(rows, -1, 0), at, axis=0)


@stands_for(np.nanpercentile)
def nanpercentile(a, q, axis=None, method="linear", keepdims=False):
    return nanquantile(a, _per_hundred(q), axis, method, keepdims)


@stands_for(np.nanmedian)
def nanmedian(a, axis=None, keepdims=False):
    return _nan_quantile(a, 0.5, axis, "linear", keepdims)


@stands_for(np.nanquantile)
def nanquantile(a, q, axis=None, method="linear", keepdims=False):
    y = _nan_quantile(a, q, axis, method, keepdims)
    if y is NotImplemented:
        return NotImplemented
    return y.copy() if np.ndim(y) > 1 else y  # row by row, as NumPy fills it


def _nan_quantile(a, q, axis, method, keepdims):
    a = np.asarray(a)
    if method != "linear" or a.dtype.kind != "f" or isinstance(axis, (tuple, list)):
        return NotImplemented
    if np.ndim(q) > 0:
        return NotImplemented
    rows = np.sort(_last(a, axis), axis=-1)  # NaN comes last
    q = _fraction(q)
    count = np.sum(~np.isnan(rows), axis=-1)
    at = q * np.maximum(count - 1, 0)
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(count - 1, 0))
    if rows.ndim == 1:
        y = _between(rows[low], rows[high], at - low)
    else:
        ends = [np.take_along_axis(rows, k[..., None], axis=-1)[..., 0] for k in (low, high)]
        y = _between(ends[0], ends[1], at - low)
    return _placed(_of_dtype(y, q, rows), q, a.ndim, axis, keepdims)


def _per_hundred(q):
    if not (np.all(np.asarray(q) >= 0.0) and np.all(np.asarray(q) <= 100.0)):
        raise ValueError("Percentiles must be in the range [0, 100]")
    return q / 100.0 if np.ndim(q) == 0 else np.true_divide(q, 100.0)


def _of_dtype(y, q, rows):
    """Quantiles in the dtype of the array if q is a single number, which does not widen it."""
    return y.astype(rows.dtype) if np.ndim(q) == 0 and y.dtype != rows.dtype else y


def _fraction(q):
    q = q if np.ndim(q) == 0 else np.asarray(q)
    if not (np.all(q >= 0.0) and np.all(q <= 1.0)):
        raise ValueError("Quantiles must be in the range [0, 1]")
    return q


def _last(a, axis):
    """An array with the axis of a statistic at the end."""
    return np.ravel(a) if axis is None else np.moveaxis(a, known(axis), -1)


def _between(low, high, t):
    gap = high - low
    return np.where(t >= 0.5, high - gap * (1 - t), low + gap * t)


def _placed(y, q, rank, axis, keepdims):
    """A statistic with its quantiles in front, and with the reduced axis if ``keepdims``."""
    if keepdims:
        axes = tuple(range(rank)) if axis is None else (axis % rank,)
        for k in axes:
            y = np.expand_dims(y, k + np.ndim(q))
        return y
    return y if np.ndim(y) else y[()]  # np.where returns an array for one number


# -- how numbers are spread, and go together


@stands_for(np.average)
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    a = np.asarray(a)
    if isinstance(axis, (tuple, list)):
        return NotImplemented
    if weights is None:
        y = np.mean(a, axis=axis, keepdims=keepdims)
        total = y.dtype.type(a.size / np.size(y))
        return (y, _like(total, y)) if returned else y
    w = np.asarray(weights)
    if w.ndim == a.ndim:
        if w.shape != a.shape:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
    elif w.ndim != 1 or axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    else:
        at = in_rank(axis, a.ndim)
        if w.shape[0] != a.shape[at]:
            raise ValueError(
                "Shape of weights must be consistent with shape of a along specified axis."
            )
        w = w.reshape((-1,) + (1,) * (a.ndim - at - 1))
    total = np.sum(np.broadcast_to(w * 1.0, a.shape), axis=axis, keepdims=keepdims)
    if np.any(total == 0.0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    y = np.sum(a * w, axis=axis, keepdims=keepdims) / total
    return (y, _like(total, y)) if returned else y


def _like(x, y):
    return x if np.ndim(y) == np.ndim(x) else np.broadcast_to(x, y.shape).copy()


@stands_for(np.corrcoef)
def corrcoef(x, y=None, rowvar=True):
    c = np.cov(x, y, rowvar)
    if c.ndim == 0:
        return c / c
    d = np.sqrt(np.diag(c).real)
    c = c / d[:, None] / d
    return np.clip(c, -1, 1) if c.dtype.kind == "f" else NotImplemented


@stands_for(np.histogram)
def histogram(a, bins=10, range=None, density=None, weights=None):  # noqa: A002 (NumPy's name)
    if weights is not None and np.shape(weights) != np.shape(a):
        raise ValueError("weights should have the same shape as a.")
    a = np.ravel(a)
    if isinstance(bins, str) or np.iscomplexobj(a):
        return NotImplemented
    if np.ndim(bins) > 0:
        edges = np.asarray(bins)
        if np.any(edges[:-1] > edges[1:]):
            raise ValueError("`bins` must increase monotonically, when an array")
    else:
        if range is None:
            low, high = (np.min(a), np.max(a)) if a.shape[0] > 0 else (0.0, 1.0)
        else:
            low, high = range
        low, high = np.float64(low), np.float64(high)
        if low > high:
            raise ValueError("max must be larger than min in range parameter.")
        apart = 0.5 if low == high else 0.0
        edges = np.linspace(low - apart, high + apart, known(bins) + 1)
        if a.dtype.kind == "f" and a.dtype != edges.dtype:
            edges = edges.astype(a.dtype)
    count = edges.shape[0] - 1
    at = np.searchsorted(edges, a, side="right") - 1
    at = np.where(a == edges[-1], count - 1, at)
    inside = (at >= 0) & (at < count)
    if weights is None:
        n = np.bincount(at[inside], minlength=count)
    else:
        weights = np.ravel(weights)
        if weights.dtype.kind not in "iuf":
            return NotImplemented
        n = np.bincount(at[inside], weights=weights[inside], minlength=count).astype(weights.dtype)
    if density:
        return n / np.diff(edges) / np.sum(n), edges
    return n, edges


# -- polynomials


@stands_for(np.poly)
def poly(seq_of_zeros):
    zeros = np.atleast_1d(seq_of_zeros)
    if zeros.dtype.kind == "c":
        refuse("np.poly of complex numbers is real if they are conjugate: its dtype is unknown")
    if zeros.ndim != 1:
        return NotImplemented
    zeros = zeros.astype(float) if zeros.dtype == np.float16 else zeros * 1.0
    array = np.zeros(zeros.shape[0] + 1, zeros.dtype)
    array[0] = 1.0
    for k in range(zeros.shape[0]):
        array[1 : k + 2] -= zeros[k] * array[: k + 1].copy()
    return array


@stands_for(np.polyint)
def polyint(p, m=1, k=None):
    order = known(m)
    if isinstance(p, np.poly1d):
        return np.poly1d(np.polyint(np.asarray(p), order, k))
    if order < 0:
        return NotImplemented
    p = np.asarray(p)
    if k is None:
        constants = [0.0] * order
    elif np.ndim(k) == 0:
        constants = [k] * order
    else:
        constants = list(k)
    for c in constants:
        p = np.concatenate([p / np.arange(p.shape[0], 0, -1), np.array([c])])
    return p


@stands_for(np.polymul)
def polymul(a1, a2):
    if isinstance(a1, np.poly1d) or isinstance(a2, np.poly1d):
        return np.poly1d(np.polymul(np.asarray(a1), np.asarray(a2)))
    return np.convolve(_without_leading_zeros(a1), _without_leading_zeros(a2))


def _without_leading_zeros(p):
    p = np.atleast_1d(p)
    there = p != 0
    return p[np.argmax(there) if np.any(there) else p.shape[0] - 1 :]
