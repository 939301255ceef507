"""Sorting and partial sorting: the tangents go where the values went.

Policy: of equal values the first in the argument comes first, and every NaN comes last, as a
stable sort has it. The order is found once, for all lanes.
"""

import numpy as np

from fwdad.rules.core.define import frule, locally_constant
from fwdad.rules.reductions import element_at, with_reduced_last
from fwdad.tangents.laws.listing import cast
from fwdad.tangents.plain import plain
from fwdad.tangents.symbolic import array_of, is_known
from fwdad.tangents.zero import ZERO, Zero

locally_constant(np.argsort, np.argpartition, np.lexsort)


def stable_order(a, ordered, axis):
    """The indices that sort an array stably along an axis; ``ordered`` is the sorted array.

    Without equal values every sort is stable, and NumPy's quicksort is many times faster.
    """
    rows = ordered if ordered.ndim == 1 else np.moveaxis(ordered, axis, -1)
    later, former = rows[..., 1:], rows[..., :-1]
    if not is_known(a):
        return np.argsort(a, axis=axis, kind="stable")
    ties = np.any((later == former) | np.isnan(later))
    return np.argsort(a, axis=axis, kind="stable" if ties else None)


@frule(np.sort, argnums=0)
def sort_frule(primals, tangents, *, axis, **options):
    """Push a tangent through ``np.sort``: it is permuted as the values are."""
    (a,), (a_dot,) = primals, tangents
    y = np.sort(a, axis=axis, **options)
    a = array_of(a)
    if axis is None:
        a, a_dot, axis = a.reshape(-1), np.reshape(a_dot, -1), 0
    return y, np.take_along_axis(a_dot, stable_order(a, plain(y), axis), axis)


@frule(np.partition, argnums=0)
def partition_frule(primals, tangents, *, axis, **options):
    """Push a tangent through ``np.partition``.

    Where the values other than the ``kth`` end up depends on NumPy's version and on the
    processor, so the places are read off the result: the k-th of equal values in it is the k-th
    in the argument. Its element ``kth`` so has the tangent that it has after ``np.sort``.
    """
    (a,), (a_dot,) = primals, tangents
    y = np.partition(a, axis=axis, **options)
    if isinstance(a_dot, Zero):
        return y, ZERO
    a, result = np.asarray(plain(a)), plain(y)
    if axis is None:
        a, a_dot, axis = a.reshape(-1), np.reshape(a_dot, -1), 0
    ordered = np.sort(a, axis=axis)
    places = np.empty(a.shape, np.intp)
    there, here = stable_order(result, ordered, axis), stable_order(a, ordered, axis)
    np.put_along_axis(places, there, here, axis)
    return y, np.take_along_axis(a_dot, places, axis)


@frule(np.sort_complex)
def sort_complex_frule(primals, tangents):
    """Push a tangent through ``np.sort_complex``, which sorts along the last axis."""
    (a,), (a_dot,) = primals, tangents
    y = np.sort_complex(a)
    order = stable_order(array_of(a), plain(y), -1)
    return y, cast(np.take_along_axis(a_dot, order, -1), plain(y).dtype)


@frule(np.median, argnums=0)
def median_frule(primals, tangents, *, axis, keepdims, **options):
    """Push a tangent through the median: the middle element's, or the mean of the middle two's.

    A rule of its own, for NumPy's source sorts whole lanes where one or two elements matter. A
    median that is NaN has the tangent of the first NaN.
    """
    (a,), (a_dot,) = primals, tangents
    y = np.median(a, axis=axis, keepdims=keepdims)
    a = array_of(a)
    if isinstance(a_dot, Zero) or (is_known(a.shape) and a.size == 0):
        return y, ZERO
    rows, rows_dot = (with_reduced_last(x, axis, a.ndim) for x in (a, a_dot))
    order = stable_order(rows, np.sort(rows, axis=-1), -1)
    n = rows.shape[-1]
    missing = np.isnan(rows)
    broken, first_broken = np.any(missing, axis=-1), np.argmax(missing, axis=-1)
    lower, upper = (
        element_at(rows_dot, np.where(broken, first_broken, order[..., k]))
        for k in ((n - 1) // 2, n // 2)
    )
    y_dot = lower if is_known(n) and n % 2 else 0.5 * (lower + upper)
    return y, cast(np.reshape(y_dot, np.shape(plain(y))), plain(y).dtype)
