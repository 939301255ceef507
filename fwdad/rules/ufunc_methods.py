"""``ufunc.reduce``, ``ufunc.accumulate`` and ``ufunc.reduceat``.

The builder takes ``add.reduce`` for ``np.sum``, and so on; here is what has no other name. Rules
are registered for the bound methods, which are equal whenever their ufunc is.
"""

import numpy as np

from fwdad.rules.core.adjoints import transpose
from fwdad.rules.core.define import call_rule, frule, linear
from fwdad.rules.gathering import scatter_add
from fwdad.rules.reductions import (
    LARGEST,
    NO_VALUE,
    SMALLEST,
    reduced_axes,
    rows_of_factors,
    tangent_of_extreme,
    with_reduced_last,
)
from fwdad.tangents.laws.listing import cast, dense, or_default
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import ZERO, Zero

REDUCE = (
    "(array, axis=0, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=True)"
).replace("NO_VALUE", "np._NoValue")
ACCUMULATE = "(array, axis=0, dtype=None, out=None)"
REDUCEAT = "(array, indices, axis=0, dtype=None, out=None)"


# -- reduce


def _reduce_to_extreme(ufunc, kind):
    """The tangent of the extreme element that is no NaN; of the first NaN if all are."""

    @frule(ufunc.reduce, signature=REDUCE)
    def extreme_frule(primals, tangents, **options):
        (a,), (a_dot,) = primals, tangents
        y = ufunc.reduce(a, **options)
        return y, _tangent_of_number(a, a_dot, y, kind, options)


def _tangent_of_number(a, a_dot, y, kind, options):
    """The tangent of an extreme among the elements that are numbers."""
    a = np.asarray(plain(a))
    a = np.where(np.isnan(a), kind[2], a)
    initial = options["initial"]
    if initial is not NO_VALUE and np.isnan(initial):
        initial = kind[2]
    chosen = {**options, "initial": initial}
    return tangent_of_extreme(a, a_dot, y, kind, **chosen)


_reduce_to_extreme(np.fmax, LARGEST)
_reduce_to_extreme(np.fmin, SMALLEST)


def _reduce_to_logarithm(ufunc, power):
    r"""The logarithm of a sum of powers: a weighted mean of the tangents.

    .. math:: \dot y = \sum_i e^{a_i - y} \dot a_i
    """

    @frule(ufunc.reduce, signature=REDUCE)
    def logarithm_frule(primals, tangents, **options):
        (a,), (a_dot,) = primals, tangents
        y = ufunc.reduce(a, **options)
        return y, _weighted(power, a, a_dot, y, options)


_reduce_to_logarithm(np.logaddexp, np.exp)
_reduce_to_logarithm(np.logaddexp2, np.exp2)


def _weighted(power, a, a_dot, y, options):
    axis, where = options["axis"], options["where"]
    ndim = np.ndim(plain(a))
    axes = reduced_axes(axis, ndim)
    total = y if ndim == 0 or options["keepdims"] else np.expand_dims(y, axes)
    # where every weight is zero the sum is -inf; the weights stay zero there
    total = np.where(np.isneginf(plain(total)), 0, total)
    with np.errstate(all="ignore"):
        weights = power(a - total)
    y_dot = np.sum(weights * a_dot, axis=axis, where=where)
    return cast(np.reshape(y_dot, np.shape(plain(y))), plain(y).dtype)


@frule(np.hypot.reduce, signature=REDUCE)
def hypot_reduce_frule(primals, tangents, **options):
    r"""Push a tangent through the Euclidean length; the tangent at zero is zero.

    .. math:: \dot y = \sum_i (a_i / y) \dot a_i
    """
    (a,), (a_dot,) = primals, tangents
    y = np.hypot.reduce(a, **options)
    ndim = np.ndim(plain(a))
    axes = reduced_axes(options["axis"], ndim)
    length = y if ndim == 0 or options["keepdims"] else np.expand_dims(y, axes)
    cosines = a / np.where(plain(length) == 0, 1, length)
    y_dot = np.sum(cosines * a_dot, axis=options["axis"], where=options["where"])
    return y, cast(np.reshape(y_dot, np.shape(plain(y))), plain(y).dtype)


@frule(np.subtract.reduce, signature=REDUCE)
def subtract_reduce_frule(primals, tangents, *, axis, where, initial, **options):
    """Push a tangent through ``a0 - a1 - a2 - …`` (``initial - a0 - a1 - …``)."""
    (a,), (a_dot,) = primals, tangents
    y = np.subtract.reduce(a, axis=axis, where=where, initial=initial, **options)
    if isinstance(a_dot, Zero):
        return y, ZERO
    shape = np.shape(plain(a))
    if where is not True:
        a_dot = np.where(np.broadcast_to(where, shape), a_dot, ZERO)
    rows_dot = with_reduced_last(a_dot, axis, len(shape))
    y_dot = -np.sum(rows_dot, axis=-1)
    if initial is NO_VALUE and rows_dot.shape[-1]:
        y_dot = y_dot + 2.0 * rows_dot[..., 0]
    return y, cast(np.reshape(y_dot, np.shape(plain(y))), plain(y).dtype)


@frule(np.divide.reduce, signature=REDUCE)
def divide_reduce_frule(primals, tangents, *, axis, where, initial, **options):
    """Push a tangent through ``a0 / a1 / a2 / …`` (``initial / a0 / a1 / …``), step by step."""
    (a,), (a_dot,) = primals, tangents
    y = np.divide.reduce(a, axis=axis, where=where, initial=initial, **options)
    if isinstance(a_dot, Zero):
        return y, ZERO
    rows, rows_dot = rows_of_factors(a, a_dot, axis, where)
    steps = list(_steps(np.divide, rows, rows_dot, or_default(initial, None)))
    if not steps:
        return y, ZERO
    return y, cast(np.reshape(steps[-1][1], np.shape(plain(y))), plain(y).dtype)


def _steps(ufunc, rows, rows_dot, initial=None):
    """Fold the last axis by a ufunc and its rule; every value on the way, with its tangent."""
    y, y_dot = initial, ZERO
    for k in range(np.shape(plain(rows))[-1]):
        a, a_dot = rows[..., k], rows_dot[..., k]
        if y is None:
            y, y_dot = a, a_dot
        else:
            y, y_dot = call_rule(ufunc, (y, a), (y_dot, a_dot))
        yield y, y_dot


# -- accumulate


def _accumulate_frule(ufunc, is_new):
    """A running selection: ``is_new(previous, a)`` says where an element takes over."""

    @frule(ufunc.accumulate, signature=ACCUMULATE)
    def running_frule(primals, tangents, *, axis, dtype, out):
        (a,), (a_dot,) = primals, tangents
        y = ufunc.accumulate(a, axis=axis, dtype=dtype)
        rows = np.moveaxis(np.asarray(plain(a)), axis, -1)
        best = np.moveaxis(plain(y), axis, -1)
        places = np.zeros(rows.shape, np.intp)
        here = np.arange(1, rows.shape[-1])
        places[..., 1:] = np.where(is_new(best[..., :-1], rows[..., 1:]), here, 0)
        places = np.moveaxis(np.maximum.accumulate(places, axis=-1), -1, axis)
        return y, cast(np.take_along_axis(a_dot, places, axis), plain(y).dtype)


_accumulate_frule(np.maximum, lambda best, a: (a > best) | (np.isnan(a) & ~np.isnan(best)))
_accumulate_frule(np.minimum, lambda best, a: (a < best) | (np.isnan(a) & ~np.isnan(best)))
_accumulate_frule(np.fmax, lambda best, a: (a > best) | (np.isnan(best) & ~np.isnan(a)))
_accumulate_frule(np.fmin, lambda best, a: (a < best) | (np.isnan(best) & ~np.isnan(a)))


def _accumulate_by_steps(ufunc):
    @frule(ufunc.accumulate, signature=ACCUMULATE)
    def running_frule(primals, tangents, *, axis, dtype, out):
        (a,), (a_dot,) = primals, tangents
        y = ufunc.accumulate(a, axis=axis, dtype=dtype)
        if isinstance(a_dot, Zero) or plain(y).size == 0:
            return y, ZERO
        rows, rows_dot = np.moveaxis(a, axis, -1), np.moveaxis(a_dot, axis, -1)
        steps_dot = [
            dense(step_dot, step, a_dot.n) for step, step_dot in _steps(ufunc, rows, rows_dot)
        ]
        return y, cast(np.stack(steps_dot, axis=axis), plain(y).dtype)


for _ufunc in (np.subtract, np.divide, np.logaddexp, np.logaddexp2, np.hypot):
    _accumulate_by_steps(_ufunc)


# -- reduceat

linear(np.add.reduceat, signature=REDUCEAT, argnums=0)


@transpose(np.add.reduceat)
def add_reduceat_transpose(y_bar, array, indices, axis=0, dtype=None, out=None):
    """Every element receives the cotangents of the segments that contain it."""
    segments = _segments(indices, array.shape[axis])
    lengths = [segment.stop - segment.start for segment in segments]
    members = np.concatenate([np.arange(s.start, s.stop) for s in segments])
    places = np.take(np.arange(array.size).reshape(array.shape), members, axis=axis)
    spread = np.take(y_bar, np.repeat(np.arange(len(segments)), lengths), axis=axis)
    return scatter_add(spread, places, array)


def _segments(indices, length):
    """The slices that ``reduceat`` reduces; one that would be empty is a single element."""
    starts = [int(i) for i in indices]
    stops = [*starts[1:], length]
    return [
        slice(start, stop if stop > start else start + 1)
        for start, stop in zip(starts, stops, strict=True)
    ]


def _reduceat_by_segments(ufunc, reduction):
    @frule(ufunc.reduceat, signature=REDUCEAT, argnums=0)
    def segments_frule(primals, tangents, *, indices, axis, dtype, out):
        (array,), (array_dot,) = primals, tangents
        y = ufunc.reduceat(array, indices, axis=axis, dtype=dtype)
        if isinstance(array_dot, Zero) or plain(y).size == 0:
            return y, ZERO
        before = (slice(None),) * (axis % array_dot.ndim)
        parts_dot = []
        for segment in _segments(indices, array_dot.shape[axis]):
            part = array[(*before, segment)]
            part_dot = array_dot[(*before, segment)]
            value, value_dot = call_rule(reduction, (part,), (part_dot,), axis=axis)
            parts_dot.append(dense(value_dot, value, array_dot.n))
        return y, cast(np.stack(parts_dot, axis=axis), plain(y).dtype)


_reduceat_by_segments(np.multiply, np.prod)
_reduceat_by_segments(np.maximum, np.max)
_reduceat_by_segments(np.minimum, np.min)
