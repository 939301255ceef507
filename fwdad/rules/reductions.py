"""Reductions: sums, means, variances, products, and the functions that pick an extreme element.

Policies. Of equal largest (or smallest) elements the first carries the tangent, in C order of the
axes that are reduced; an ``initial`` value comes before all of them. A NaN that is the result is
the element that carries the tangent. The tangent of a standard deviation that is zero is zero.
``where`` selects: what is left out contributes nothing, whatever its tangent is.
"""

import math

import numpy as np

from fwdad.rules.core.adjoints import take_arrays, transpose
from fwdad.rules.core.define import frule, linear, locally_constant
from fwdad.tangents.laws.listing import cast, or_default
from fwdad.tangents.plain import plain
from fwdad.tangents.symbolic import array_of, is_known
from fwdad.tangents.zero import ZERO, Zero

locally_constant(
    np.any,
    np.all,
    np.count_nonzero,
    np.argmax,
    np.argmin,
    np.nanargmax,
    np.nanargmin,
)

NO_VALUE = np._NoValue  # noqa: SLF001  (what NumPy's own signatures hold)


def reduced_axes(axis, ndim):
    """The axes that a reduction takes away, in rising order; NumPy ignores a scalar's axis."""
    if axis is None or ndim == 0:
        return tuple(range(ndim))
    return tuple(sorted(np.lib.array_utils.normalize_axis_tuple(axis, ndim)))


def with_reduced_last(x, axis, ndim):
    """Collect the reduced axes into one, the last; ``x`` is an array or a tangent."""
    axes = reduced_axes(axis, ndim)
    if ndim and axes == (ndim - 1,):
        return x
    if len(axes) == ndim:
        return np.reshape(x, -1)
    kept = tuple(k for k in range(ndim) if k not in axes)
    rows = np.transpose(x, kept + axes)
    if len(axes) == 1:
        return rows
    count = math.prod(x.shape[k] for k in axes)
    return np.reshape(rows, (*(x.shape[k] for k in kept), count))


# -- sums and means

linear(np.sum)
linear(np.mean)


def _spread(y_bar, a, axis, keepdims, where):
    """Give every element that was summed the cotangent of its sum."""
    if not or_default(keepdims, False):
        axes = reduced_axes(axis, a.ndim)
        y_bar = np.reshape(y_bar, tuple(1 if k in axes else n for k, n in enumerate(a.shape)))
    y_bar = np.broadcast_to(y_bar, a.shape)
    if or_default(where, True) is not True:
        y_bar = np.where(np.broadcast_to(where, a.shape), y_bar, ZERO)
    return cast(y_bar, a.dtype)


@transpose(np.sum)
def sum_transpose(y_bar, a, axis=None, dtype=None, out=None, keepdims=False, initial=0, where=True):
    """Spread the cotangent over what was summed."""
    return _spread(y_bar, a, axis, keepdims, where)


@transpose(np.mean)
def mean_transpose(y_bar, a, axis=None, dtype=None, out=None, keepdims=False, *, where=True):
    """Spread the cotangent, divided by the count, over what was averaged."""
    counts = _counts(a.shape, axis, where, keepdims=bool(or_default(keepdims, False)))
    return _spread(y_bar * _reciprocal(counts, a.dtype), a, axis, keepdims, where)


def _counts(shape, axis, where, *, keepdims):
    """How many elements each result is made of."""
    where = or_default(where, True)
    if where is True:
        return math.prod(shape[k] for k in reduced_axes(axis, len(shape)))
    return np.sum(np.broadcast_to(where, shape), axis=axis, keepdims=keepdims)


def _reciprocal(counts, dtype):
    """1 / counts, as a Python float or in the real dtype: neither widens single precision."""
    if not is_known(counts):
        return 1 / counts
    with np.errstate(all="ignore"):
        inverse = 1 / np.asarray(counts, float)
    if inverse.ndim == 0:
        return float(inverse)
    return inverse.astype(np.zeros(0, dtype).real.dtype) if dtype.kind in "fc" else inverse


# -- variances


@frule(np.var, argnums=("a", "mean"))
def var_frule(primals, tangents, **options):
    r"""Push tangents through the variance of n elements.

    .. math:: \dot y = \frac{2}{n - \mathit{ddof}} \sum_i
        \operatorname{Re}\bigl(\overline{(a_i - m)}\,(\dot a_i - \dot m)\bigr)

    The term in :math:`\dot m` is dropped if m is the mean that was found here: the deviations sum
    to zero.
    """
    y = np.var(primals[0], mean=primals[1], **options)
    return y, variance_dot(primals, tangents, y, options)


@frule(np.std, argnums=("a", "mean"))
def std_frule(primals, tangents, **options):
    r"""Push tangents through the standard deviation: half the variance's, over y; 0 where y is 0.

    .. math:: \dot y = \frac{1}{(n - \mathit{ddof})\, y} \sum_i
        \operatorname{Re}\bigl(\overline{(a_i - m)}\,(\dot a_i - \dot m)\bigr)
    """
    y = np.std(primals[0], mean=primals[1], **options)
    return y, deviation_dot(primals, tangents, y, options)


def variance_dot(primals, tangents, y, options):
    """The tangent of the variance y, with the primals, tangents and options of ``np.var``."""
    y_dot = _shaped(_half_variance_dot(primals, tangents, options), y)
    return cast(2.0 * y_dot, plain(y).dtype)


def deviation_dot(primals, tangents, y, options):
    """The tangent of the standard deviation y, with the same arguments."""
    y_dot = _shaped(_half_variance_dot(primals, tangents, options), y)
    flat = plain(y) == 0
    inverse = np.where(flat, 0, 1 / np.where(flat, 1, y))
    return cast(inverse * y_dot, plain(y).dtype)


def _half_variance_dot(primals, tangents, options):
    a, mean = primals
    a_dot, mean_dot = tangents
    axis, where = options["axis"], or_default(options["where"], True)
    ddof = options["ddof"] if options["correction"] is NO_VALUE else options["correction"]
    shape = np.shape(plain(a))
    counts = _counts(shape, axis, where, keepdims=True)
    dtype = array_of(a).dtype
    with np.errstate(all="ignore"):
        if mean is NO_VALUE:
            mean = np.sum(a, axis=axis, keepdims=True, where=where) * _reciprocal(counts, dtype)
        counts = counts if not is_known(counts) else np.asarray(counts, float)
        free = np.maximum(counts - ddof, 0)
        deviation = (a - mean) * _reciprocal(free, dtype)
    if np.iscomplexobj(plain(deviation)):
        deviation = np.conjugate(deviation)
    deviation_dot = a_dot - mean_dot
    if where is not True:
        deviation_dot = np.where(np.broadcast_to(where, shape), deviation_dot, ZERO)
    return np.sum((deviation * deviation_dot).real, axis=axis)


def _shaped(y_dot, y):
    """Put the axes that ``keepdims`` kept back."""
    shape = np.shape(plain(y))
    same = hasattr(y_dot, "shape") and y_dot.shape == shape
    return y_dot if same else np.reshape(y_dot, shape)


# -- products


@frule(np.prod)
def prod_frule(primals, tangents, *, axis, initial, where, **options):
    r"""Push a tangent through a product, without dividing by any factor.

    .. math:: \dot y = \sum_i \dot a_i \prod_{j \ne i} a_j

    The products of the others are products of those before and of those behind: two
    running products, O(1) per element, exact also where factors are zero.
    """
    (a,), (a_dot,) = primals, tangents
    y = np.prod(a, axis=axis, initial=initial, where=where, **options)
    if isinstance(a_dot, Zero):
        return y, ZERO
    rows, rows_dot = rows_of_factors(a, a_dot, axis, or_default(where, True))
    with np.errstate(all="ignore"):
        others = products_of_others(rows) * or_default(initial, 1)
    return y, cast(_shaped(np.sum(others * rows_dot, axis=-1), y), plain(y).dtype)


def rows_of_factors(a, a_dot, axis, where):
    """Factors and their tangents along the last axis; one where they are masked."""
    shape = np.shape(plain(a))
    if where is not True:
        where = np.broadcast_to(where, shape)
        a, a_dot = np.where(where, a, 1), np.where(where, a_dot, ZERO)
    return with_reduced_last(a, axis, len(shape)), with_reduced_last(a_dot, axis, len(shape))


def products_of_others(rows):
    """For each element, the product of all others along the last axis."""
    unit = np.ones_like(plain(rows)[..., :1])
    before = np.cumprod(np.concatenate([unit, rows[..., :-1]], axis=-1), axis=-1)
    behind = np.cumprod(np.concatenate([unit, rows[..., :0:-1]], axis=-1), axis=-1)
    return before * behind[..., ::-1]


# -- extremes


LARGEST = (np.argmax, np.greater_equal, -np.inf)
SMALLEST = (np.argmin, np.less_equal, np.inf)
"""The extremes that :func:`tangent_of_extreme` knows."""


def _extreme(kind, function, other_name):
    """The tangent of the first extreme element, or of the first NaN."""

    @frule(other_name)
    @frule(function)
    def extreme_frule(primals, tangents, **options):
        (a,), (a_dot,) = primals, tangents
        y = function(a, **options)
        return y, tangent_of_extreme(a, a_dot, y, kind, **options)


_extreme(LARGEST, np.max, np.amax)
_extreme(SMALLEST, np.min, np.amin)


def tangent_of_extreme(a, a_dot, y, kind, *, axis, initial, where, **_options):
    """Pick the tangent of the extreme element.

    ``kind`` is ``argmax`` or ``argmin``, whether a first value keeps its place before a second, and
    the value that is never chosen.
    """
    argextreme, stays, never = kind
    a, where, initial = array_of(a), or_default(where, True), or_default(initial, None)
    if isinstance(a_dot, Zero):
        return ZERO
    if where is not True:
        a = np.where(where, a, never)
    rows, rows_dot = (with_reduced_last(x, axis, a.ndim) for x in (a, a_dot))
    if is_known(rows.shape[-1]) and rows.shape[-1] == 0:
        return ZERO
    places = argextreme(rows, axis=-1)
    y_dot = element_at(rows_dot, places)
    if initial is not None:
        best = element_at(rows, places)
        y_dot = np.where(stays(initial, best) | np.isnan(initial), ZERO, y_dot)
    return _shaped(y_dot, y)


def element_at(rows_dot, places):
    """Take one element of each row: ``rows_dot[..., places]``."""
    if np.ndim(places) == 0:
        return rows_dot[int(places) if is_known(places) else places]
    return np.take_along_axis(rows_dot, places[..., None], -1)[..., 0]


@frule(np.ptp)
def ptp_frule(primals, tangents, **options):
    """Push a tangent through "peak to peak", the largest minus the smallest element."""
    (a,), (a_dot,) = primals, tangents
    y = np.ptp(a, **options)
    highest = tangent_of_extreme(
        a, a_dot, y, (np.argmax, None, None), axis=options["axis"], initial=NO_VALUE, where=True
    )
    lowest = tangent_of_extreme(
        a, a_dot, y, (np.argmin, None, None), axis=options["axis"], initial=NO_VALUE, where=True
    )
    return y, highest - lowest


take_arrays(np.sum, np.mean)
