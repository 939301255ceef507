"""Look-ups in tables, convolutions and distinct elements for generated code.

Importing this module needs Numba.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fwdad.codegen.numba_support import CHECK_BOUNDS

_njit = njit(boundscheck=CHECK_BOUNDS)
_njit_sums = njit(boundscheck=CHECK_BOUNDS, fastmath={"contract", "reassoc"})  # as BLAS sums up


@_njit
def less(a, b):
    """Whether a number is sorted before another one; NaN comes last."""
    return a < b or (b != b and a == a)


@_njit
def search(table, v, right):
    """The insertion index of a number in a sorted table, to the right or left of equal ones."""
    low, high = 0, table.shape[0]
    while low < high:
        middle = (low + high) // 2
        if (not less(v, table[middle])) if right else less(table[middle], v):
            low = middle + 1
        else:
            high = middle
    return low


@_njit
def direction(bins):
    """1 for increasing bins, -1 for decreasing ones; raises for others."""
    n = bins.shape[0]
    rises, falls = True, True
    for k in range(n - 1):
        rises = rises and bins[k] <= bins[k + 1]
        falls = falls and bins[k] >= bins[k + 1]
    if not (rises or falls):
        raise ValueError("bins must be monotonically increasing or decreasing")
    return 1 if rises else -1


@_njit
def bin_of(bins, v, right, way):
    """The bin of a number."""
    if way > 0:
        return search(bins, v, not right)
    n = bins.shape[0]
    low, high = 0, n  # in the reversed table
    while low < high:
        middle = (low + high) // 2
        item = bins[n - 1 - middle]
        if less(item, v) if right else not less(v, item):
            low = middle + 1
        else:
            high = middle
    return n - low


@_njit
def interpolate(v, xp, fp, left, right):
    """Interpolate one number in a table, as NumPy does."""
    n = xp.shape[0]
    if v != v:
        return v
    if v > xp[n - 1]:
        return right
    if v < xp[0]:
        return left
    j = search(xp, v, True) - 1
    if j >= n - 1 or xp[j] == v:
        return fp[j]
    slope = (fp[j + 1] - fp[j]) / (xp[j + 1] - xp[j])
    y = slope * (v - xp[j]) + fp[j]
    if y != y:
        y = slope * (v - xp[j + 1]) + fp[j + 1]
        if y != y and fp[j] == fp[j + 1]:
            y = fp[j]
    return y


@_njit
def check_table(xp, fp):
    """Raise unless a table has as many values as knots, at least one."""
    if xp.shape[0] == 0:
        raise ValueError("array of sample points is empty")
    if xp.shape[0] != fp.shape[0]:
        raise ValueError("fp and xp are not of the same length.")


_BLOCK = 1024
"""Numbers of a vector that stay in the first cache, with those that they are combined with."""


@_njit
def convolved(a, v, start, length):
    """A part of the full convolution of two vectors."""
    if v.shape[0] > a.shape[0]:
        a, v = v, a
    array, whole = np.zeros(length, a.dtype), np.ascontiguousarray(a)
    if length < v.shape[0]:  # fewer results than summands of each
        turned = v[::-1].copy()
        for low in range(0, whole.shape[0], _BLOCK):
            _add_dots(array, whole[low : low + _BLOCK], turned, v.shape[0] - 1 - start + low)
        return array
    items = np.ascontiguousarray(v)
    for low in range(0, length, _BLOCK):
        _add_products(array[low : low + _BLOCK], whole, items, start + low)
    return array


@_njit_sums
def _add_dots(array, a, turned, shift):
    """Add the sum of ``a[i] * turned[shift - k + i]`` to element k, for eight of them at once."""
    n, m, count = a.shape[0], turned.shape[0], array.shape[0]
    for k in range(0, count, 8):
        at = shift - k
        first, last = max(0, 7 - at), min(n, m - at)  # where all eight have summands
        if k + 8 > count or first >= last:
            for j in range(k, min(k + 8, count)):
                for i in range(max(0, j - shift), min(n, m + j - shift)):
                    array[j] += a[i] * turned[shift - j + i]
            continue
        for j in range(8):
            for i in range(max(0, j - at), first):
                array[k + j] += a[i] * turned[at - j + i]
            for i in range(last, min(n, m + j - at)):
                array[k + j] += a[i] * turned[at - j + i]
        inside, near = a[first:last], turned[at - 7 + first : at + last]
        zero = array.dtype.type(0)
        s_0, s_1, s_2, s_3, s_4, s_5, s_6, s_7 = zero, zero, zero, zero, zero, zero, zero, zero
        for i in range(last - first):
            x = inside[i]
            s_0 += x * near[i + 7]
            s_1 += x * near[i + 6]
            s_2 += x * near[i + 5]
            s_3 += x * near[i + 4]
            s_4 += x * near[i + 3]
            s_5 += x * near[i + 2]
            s_6 += x * near[i + 1]
            s_7 += x * near[i]
        array[k] += s_0
        array[k + 1] += s_1
        array[k + 2] += s_2
        array[k + 3] += s_3
        array[k + 4] += s_4
        array[k + 5] += s_5
        array[k + 6] += s_6
        array[k + 7] += s_7


@_njit_sums
def _add_products(array, a, v, start):
    """Add a part of the full convolution; eight items of v at once where all meet items of a."""
    n, m, count = a.shape[0], v.shape[0], array.shape[0]
    j, end = max(0, start - n + 1), min(m, start + count)
    while j < end:
        shift = start - j
        first, last = max(0, 7 - shift), min(count, n - shift)
        if j + 8 <= end and last > first:
            for i in range(8):
                for k in range(max(0, i - shift), first):
                    array[k] += v[j + i] * a[shift - i + k]
                for k in range(last, min(count, n + i - shift)):
                    array[k] += v[j + i] * a[shift - i + k]
            inside, near = array[first:last], a[shift - 7 + first : shift + last]
            v_0, v_1, v_2, v_3 = v[j], v[j + 1], v[j + 2], v[j + 3]
            v_4, v_5, v_6, v_7 = v[j + 4], v[j + 5], v[j + 6], v[j + 7]
            for k in range(last - first):
                inside[k] += (
                    v_0 * near[k + 7] + v_1 * near[k + 6] + v_2 * near[k + 5] + v_3 * near[k + 4]
                ) + (v_4 * near[k + 3] + v_5 * near[k + 2] + v_6 * near[k + 1] + v_7 * near[k])
            j += 8
        else:
            first = max(0, -shift)
            if last > first:  # slices, whose indices need no checks: LLVM makes vectors
                inside, near, x = array[first:last], a[shift + first : shift + last], v[j]
                for k in range(last - first):
                    inside[k] += x * near[k]
            j += 1


@_njit
def part_of_full(n, m, mode, turned):
    """Where the result of a mode (0, 1 or 2) begins in the full convolution, and its length."""
    if n == 0 or m == 0:
        raise ValueError("a cannot be empty" if n == 0 else "v cannot be empty")
    short, long = min(n, m), max(n, m)
    if mode == 0:
        return short - 1, long - short + 1
    if mode == 1:
        return short // 2 if turned and m > n else (short - 1) // 2, long
    return 0, n + m - 1


@_njit
def distinct(a, equal_nan):
    """The distinct elements in order, their first indices, the inverse indices, and the counts."""
    n = a.shape[0]
    order = np.argsort(a, kind="mergesort")
    inverse = np.empty(n, np.int64)
    starts = np.empty(n, np.int64)
    count = 0
    for k in range(n):
        item = a[order[k]]
        if k > 0:
            before = a[order[k - 1]]
            new = item != before and not (equal_nan and item != item and before != before)
        else:
            new = True
        if new:
            starts[count] = k
            count += 1
        inverse[order[k]] = count - 1
    values = np.empty(count, a.dtype)
    first = np.empty(count, np.int64)
    counts = np.empty(count, np.int64)
    for j in range(count):
        values[j] = a[order[starts[j]]]
        first[j] = order[starts[j]]
        counts[j] = (starts[j + 1] if j + 1 < count else n) - starts[j]
    return values, first, inverse, counts
