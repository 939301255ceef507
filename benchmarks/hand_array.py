"""The array function and N of its tangents by hand for Numba, with vector math and without.

Importing this module needs Numba and the vector functions of the C library.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from benchmarks.vector_math import WIDTH, cos, divide, exp, log1p, multiply, sin, tanh
from fwdad.codegen.llvm.simd import compiled_lanes

LANES = compiled_lanes(WIDTH)
load, store, splat = LANES.load, LANES.store, LANES.splat
STRIP = 16384  # elements whose slopes wait in the cache for the tangents


@njit
def value(x):
    """One element."""
    xx = x * x
    return math.tanh(x) * math.exp(-xx) + math.log1p(xx) * math.sin(3 * x) + math.cos(x) * x


@njit
def value_and_slope(x):
    """One element, and its derivative."""
    xx = x * x
    t, e, l = math.tanh(x), math.exp(-xx), math.log1p(xx)
    s, c = math.sin(3 * x), math.cos(x)
    slope = (
        (1 - t * t - 2 * x * t) * e
        + (2 * x / (1 + xx)) * s
        + 3 * l * math.cos(3 * x)
        + c
        - x * math.sin(x)
    )
    return t * e + l * s + c * x, slope


@njit
def values(x):
    """``WIDTH`` elements."""
    xx = multiply(x, x)
    return multiply(tanh(x), exp(-xx)) + multiply(log1p(xx), sin(3.0 * x)) + multiply(cos(x), x)


@njit
def values_and_slopes(x):
    """``WIDTH`` elements, and their derivatives."""
    xx, one = multiply(x, x), splat(1.0)
    t, e, l = tanh(x), exp(-xx), log1p(xx)
    s, c = sin(3.0 * x), cos(x)
    slopes = (
        multiply(one - multiply(t, t) - 2.0 * multiply(x, t), e)
        + multiply(divide(2.0 * x, one + xx), s)
        + 3.0 * multiply(l, cos(3.0 * x))
        + c
        - multiply(x, sin(x))
    )
    return multiply(t, e) + multiply(l, s) + multiply(c, x), slopes


@njit
def primal(x):
    """The array function, ``WIDTH`` elements at a time."""
    n = x.size
    y = np.empty(n)
    whole = n - n % WIDTH
    x_by, y_by = x[:whole].reshape(-1, WIDTH).T, y[:whole].reshape(-1, WIDTH).T
    for i in range(whole // WIDTH):
        store(y_by, values(load(x_by, i)), i)
    for i in range(whole, n):
        y[i] = value(x[i])
    return y


@njit
def lanes(x, x_dot):
    """The function and its tangents ``(N, n)``: strips of slopes, then the directions in turn."""
    n = x.size
    y, y_dot, slope = np.empty(n), np.empty_like(x_dot), np.empty(STRIP)
    slope_by = slope.reshape(-1, WIDTH).T
    whole = n - n % WIDTH
    x_by, y_by = x[:whole].reshape(-1, WIDTH).T, y[:whole].reshape(-1, WIDTH).T
    for start in range(0, whole, STRIP):
        stop = min(start + STRIP, whole)
        for i in range(start // WIDTH, stop // WIDTH):
            made, slopes = values_and_slopes(load(x_by, i))
            store(y_by, made, i)
            store(slope_by, slopes, i - start // WIDTH)
        for k in range(x_dot.shape[0]):
            x_dot_by = x_dot[k, :whole].reshape(-1, WIDTH).T
            y_dot_by = y_dot[k, :whole].reshape(-1, WIDTH).T
            for i in range(start // WIDTH, stop // WIDTH):
                slopes = load(slope_by, i - start // WIDTH)
                store(y_dot_by, multiply(slopes, load(x_dot_by, i)), i)
    for i in range(whole, n):
        y[i], d = value_and_slope(x[i])
        for k in range(x_dot.shape[0]):
            y_dot[k, i] = d * x_dot[k, i]
    return y, y_dot


@njit
def primal_loops(x):
    """The array function with the scalar functions."""
    y = np.empty(x.size)
    for i in range(x.size):
        y[i] = value(x[i])
    return y


@njit
def loops(x, x_dot):
    """The same with the scalar functions, as it is written without a SIMD type."""
    n = x.size
    y, y_dot, slope = np.empty(n), np.empty_like(x_dot), np.empty(STRIP)
    for start in range(0, n, STRIP):
        stop = min(start + STRIP, n)
        for i in range(start, stop):
            y[i], slope[i - start] = value_and_slope(x[i])
        for k in range(x_dot.shape[0]):
            for i in range(start, stop):
                y_dot[k, i] = slope[i - start] * x_dot[k, i]
    return y, y_dot
