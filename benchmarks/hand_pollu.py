"""POLLU and its Jacobian as somebody would write them by hand for Numba, in three ways.

``*_into`` write into an array that the caller holds, so that arithmetic is timed and not the
allocator; the others return a fresh array. Importing this module needs Numba.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fwdad.codegen.llvm.simd import compiled_lanes

LANES = compiled_lanes(20)
store, scale, unit = LANES.store, LANES.scale, LANES.unit
EYE = np.eye(20)


@njit(inline="never")
def primal_into(y, f):
    """Rate of change of the 20 concentrations."""
    r1 = 0.35 * y[0]
    r2 = 26.6 * y[1] * y[3]
    r3 = 1.23e4 * y[4] * y[1]
    r4 = 8.6e-4 * y[6]
    r5 = 8.2e-4 * y[6]
    r6 = 1.5e4 * y[6] * y[5]
    r7 = 1.3e-4 * y[8]
    r8 = 2.4e4 * y[8] * y[5]
    r9 = 1.65e4 * y[10] * y[1]
    r10 = 9e3 * y[10] * y[0]
    r11 = 2.2e-2 * y[12]
    r12 = 1.2e4 * y[9] * y[1]
    r13 = 1.88 * y[13]
    r14 = 1.63e4 * y[0] * y[5]
    r15 = 4.8e6 * y[2]
    r16 = 3.5e-4 * y[3]
    r17 = 1.75e-2 * y[3]
    r18 = 1e8 * y[15]
    r19 = 4.44e11 * y[15]
    r20 = 1.24e3 * y[16] * y[5]
    r21 = 2.1 * y[18]
    r22 = 5.78 * y[18]
    r23 = 4.74e-2 * y[0] * y[3]
    r24 = 1.78e3 * y[18] * y[0]
    r25 = 3.12 * y[19]
    f[0] = -r1 - r10 - r14 - r23 - r24 + r2 + r3 + r9 + r11 + r12 + r22 + r25
    f[1] = -r2 - r3 - r9 - r12 + r1 + r21
    f[2] = -r15 + r1 + r17 + r19 + r22
    f[3] = -r2 - r16 - r17 - r23 + r15
    f[4] = -r3 + 2 * r4 + r6 + r7 + r13 + r20
    f[5] = -r6 - r8 - r14 - r20 + r3 + 2 * r18
    f[6] = -r4 - r5 - r6 + r13
    f[7] = r4 + r5 + r6 + r7
    f[8] = -r7 - r8
    f[9] = -r12 + r7 + r9
    f[10] = -r9 - r10 + r8 + r11
    f[11] = r9
    f[12] = -r11 + r10
    f[13] = -r13 + r12
    f[14] = r14
    f[15] = -r18 - r19 + r16
    f[16] = -r20
    f[17] = r20
    f[18] = -r21 - r22 - r24 + r23 + r25
    f[19] = -r25 + r24


@njit(inline="never")
def lanes_into(y, j):
    """The 20 columns together: a rate's tangents are one SIMD value of 20 lanes.

    Tangents of linear rates stand first in each sum: LLVM adds constants before it runs.
    """
    columns = j.T
    r1 = 0.35 * unit(0)
    r2 = scale(26.6 * y[3], unit(1)) + scale(26.6 * y[1], unit(3))
    r3 = scale(1.23e4 * y[1], unit(4)) + scale(1.23e4 * y[4], unit(1))
    r4 = 8.6e-4 * unit(6)
    r5 = 8.2e-4 * unit(6)
    r6 = scale(1.5e4 * y[5], unit(6)) + scale(1.5e4 * y[6], unit(5))
    r7 = 1.3e-4 * unit(8)
    r8 = scale(2.4e4 * y[5], unit(8)) + scale(2.4e4 * y[8], unit(5))
    r9 = scale(1.65e4 * y[1], unit(10)) + scale(1.65e4 * y[10], unit(1))
    r10 = scale(9e3 * y[0], unit(10)) + scale(9e3 * y[10], unit(0))
    r11 = 2.2e-2 * unit(12)
    r12 = scale(1.2e4 * y[1], unit(9)) + scale(1.2e4 * y[9], unit(1))
    r13 = 1.88 * unit(13)
    r14 = scale(1.63e4 * y[5], unit(0)) + scale(1.63e4 * y[0], unit(5))
    r15 = 4.8e6 * unit(2)
    r16 = 3.5e-4 * unit(3)
    r17 = 1.75e-2 * unit(3)
    r18 = 1e8 * unit(15)
    r19 = 4.44e11 * unit(15)
    r20 = scale(1.24e3 * y[5], unit(16)) + scale(1.24e3 * y[16], unit(5))
    r21 = 2.1 * unit(18)
    r22 = 5.78 * unit(18)
    r23 = scale(4.74e-2 * y[3], unit(0)) + scale(4.74e-2 * y[0], unit(3))
    r24 = scale(1.78e3 * y[0], unit(18)) + scale(1.78e3 * y[18], unit(0))
    r25 = 3.12 * unit(19)
    store(columns, (r11 + r22 + r25 - r1) + (r2 + r3 + r9 + r12 - r10 - r14 - r23 - r24), 0)
    store(columns, (r1 + r21) + (-r2 - r3 - r9 - r12), 1)
    store(columns, r1 + r17 + r19 + r22 - r15, 2)
    store(columns, (r15 - r16 - r17) + (-r2 - r23), 3)
    store(columns, (2.0 * r4 + r7 + r13) + (r6 + r20 - r3), 4)
    store(columns, 2.0 * r18 + (r3 - r6 - r8 - r14 - r20), 5)
    store(columns, r13 - r4 - r5 - r6, 6)
    store(columns, r4 + r5 + r7 + r6, 7)
    store(columns, -r7 - r8, 8)
    store(columns, r7 + (r9 - r12), 9)
    store(columns, r11 + (r8 - r9 - r10), 10)
    store(columns, r9, 11)
    store(columns, -r11 + r10, 12)
    store(columns, -r13 + r12, 13)
    store(columns, r14, 14)
    store(columns, r16 - r18 - r19, 15)
    store(columns, -r20, 16)
    store(columns, r20, 17)
    store(columns, (r25 - r21 - r22) + (r23 - r24), 18)
    store(columns, -r25 + r24, 19)


@njit(inline="never")
def loops_into(y, j, seeds):
    """The 20 columns in a plain loop, which LLVM vectorises where it can."""
    for k in range(20):
        r1 = 0.35 * seeds[0, k]
        r2 = 26.6 * (y[3] * seeds[1, k] + y[1] * seeds[3, k])
        r3 = 1.23e4 * (y[1] * seeds[4, k] + y[4] * seeds[1, k])
        r4 = 8.6e-4 * seeds[6, k]
        r5 = 8.2e-4 * seeds[6, k]
        r6 = 1.5e4 * (y[5] * seeds[6, k] + y[6] * seeds[5, k])
        r7 = 1.3e-4 * seeds[8, k]
        r8 = 2.4e4 * (y[5] * seeds[8, k] + y[8] * seeds[5, k])
        r9 = 1.65e4 * (y[1] * seeds[10, k] + y[10] * seeds[1, k])
        r10 = 9e3 * (y[0] * seeds[10, k] + y[10] * seeds[0, k])
        r11 = 2.2e-2 * seeds[12, k]
        r12 = 1.2e4 * (y[1] * seeds[9, k] + y[9] * seeds[1, k])
        r13 = 1.88 * seeds[13, k]
        r14 = 1.63e4 * (y[5] * seeds[0, k] + y[0] * seeds[5, k])
        r15 = 4.8e6 * seeds[2, k]
        r16 = 3.5e-4 * seeds[3, k]
        r17 = 1.75e-2 * seeds[3, k]
        r18 = 1e8 * seeds[15, k]
        r19 = 4.44e11 * seeds[15, k]
        r20 = 1.24e3 * (y[5] * seeds[16, k] + y[16] * seeds[5, k])
        r21 = 2.1 * seeds[18, k]
        r22 = 5.78 * seeds[18, k]
        r23 = 4.74e-2 * (y[3] * seeds[0, k] + y[0] * seeds[3, k])
        r24 = 1.78e3 * (y[0] * seeds[18, k] + y[18] * seeds[0, k])
        r25 = 3.12 * seeds[19, k]
        j[0, k] = -r1 - r10 - r14 - r23 - r24 + r2 + r3 + r9 + r11 + r12 + r22 + r25
        j[1, k] = -r2 - r3 - r9 - r12 + r1 + r21
        j[2, k] = -r15 + r1 + r17 + r19 + r22
        j[3, k] = -r2 - r16 - r17 - r23 + r15
        j[4, k] = -r3 + 2 * r4 + r6 + r7 + r13 + r20
        j[5, k] = -r6 - r8 - r14 - r20 + r3 + 2 * r18
        j[6, k] = -r4 - r5 - r6 + r13
        j[7, k] = r4 + r5 + r6 + r7
        j[8, k] = -r7 - r8
        j[9, k] = -r12 + r7 + r9
        j[10, k] = -r9 - r10 + r8 + r11
        j[11, k] = r9
        j[12, k] = -r11 + r10
        j[13, k] = -r13 + r12
        j[14, k] = r14
        j[15, k] = -r18 - r19 + r16
        j[16, k] = -r20
        j[17, k] = r20
        j[18, k] = -r21 - r22 - r24 + r23 + r25
        j[19, k] = -r25 + r24


@njit(inline="never")
def entries_into(y, j):  # noqa: PLR0915 (one statement for each entry)
    """The 82 entries that are not zero, each as its formula."""
    j[:] = 0.0
    r2_1 = 26.6 * y[3]
    r2_3 = 26.6 * y[1]
    r3_4 = 1.23e4 * y[1]
    r3_1 = 1.23e4 * y[4]
    r6_6 = 1.5e4 * y[5]
    r6_5 = 1.5e4 * y[6]
    r8_8 = 2.4e4 * y[5]
    r8_5 = 2.4e4 * y[8]
    r9_10 = 1.65e4 * y[1]
    r9_1 = 1.65e4 * y[10]
    r10_10 = 9e3 * y[0]
    r10_0 = 9e3 * y[10]
    r12_9 = 1.2e4 * y[1]
    r12_1 = 1.2e4 * y[9]
    r14_0 = 1.63e4 * y[5]
    r14_5 = 1.63e4 * y[0]
    r20_16 = 1.24e3 * y[5]
    r20_5 = 1.24e3 * y[16]
    r23_0 = 4.74e-2 * y[3]
    r23_3 = 4.74e-2 * y[0]
    r24_18 = 1.78e3 * y[0]
    r24_0 = 1.78e3 * y[18]
    j[0, 0] = -0.35 - r10_0 - r14_0 - r23_0 - r24_0
    j[0, 1] = r2_1 + r3_1 + r9_1 + r12_1
    j[0, 3] = -r23_3 + r2_3
    j[0, 4] = r3_4
    j[0, 5] = -r14_5
    j[0, 9] = r12_9
    j[0, 10] = -r10_10 + r9_10
    j[0, 12] = 2.2e-2
    j[0, 18] = -r24_18 + 5.78
    j[0, 19] = 3.12
    j[1, 0] = 0.35
    j[1, 1] = -r2_1 - r3_1 - r9_1 - r12_1
    j[1, 3] = -r2_3
    j[1, 4] = -r3_4
    j[1, 9] = -r12_9
    j[1, 10] = -r9_10
    j[1, 18] = 2.1
    j[2, 0] = 0.35
    j[2, 2] = -4.8e6
    j[2, 3] = 1.75e-2
    j[2, 15] = 4.44e11
    j[2, 18] = 5.78
    j[3, 0] = -r23_0
    j[3, 1] = -r2_1
    j[3, 2] = 4.8e6
    j[3, 3] = -r2_3 - 3.5e-4 - 1.75e-2 - r23_3
    j[4, 1] = -r3_1
    j[4, 4] = -r3_4
    j[4, 5] = r6_5 + r20_5
    j[4, 6] = 2 * 8.6e-4 + r6_6
    j[4, 8] = 1.3e-4
    j[4, 13] = 1.88
    j[4, 16] = r20_16
    j[5, 0] = -r14_0
    j[5, 1] = r3_1
    j[5, 4] = r3_4
    j[5, 5] = -r6_5 - r8_5 - r14_5 - r20_5
    j[5, 6] = -r6_6
    j[5, 8] = -r8_8
    j[5, 15] = 2 * 1e8
    j[5, 16] = -r20_16
    j[6, 5] = -r6_5
    j[6, 6] = -8.6e-4 - 8.2e-4 - r6_6
    j[6, 13] = 1.88
    j[7, 5] = r6_5
    j[7, 6] = 8.6e-4 + 8.2e-4 + r6_6
    j[7, 8] = 1.3e-4
    j[8, 5] = -r8_5
    j[8, 8] = -1.3e-4 - r8_8
    j[9, 1] = -r12_1 + r9_1
    j[9, 8] = 1.3e-4
    j[9, 9] = -r12_9
    j[9, 10] = r9_10
    j[10, 0] = -r10_0
    j[10, 1] = -r9_1
    j[10, 5] = r8_5
    j[10, 8] = r8_8
    j[10, 10] = -r9_10 - r10_10
    j[10, 12] = 2.2e-2
    j[11, 1] = r9_1
    j[11, 10] = r9_10
    j[12, 0] = r10_0
    j[12, 10] = r10_10
    j[12, 12] = -2.2e-2
    j[13, 1] = r12_1
    j[13, 9] = r12_9
    j[13, 13] = -1.88
    j[14, 0] = r14_0
    j[14, 5] = r14_5
    j[15, 3] = 3.5e-4
    j[15, 15] = -1e8 - 4.44e11
    j[16, 5] = -r20_5
    j[16, 16] = -r20_16
    j[17, 5] = r20_5
    j[17, 16] = r20_16
    j[18, 0] = -r24_0 + r23_0
    j[18, 3] = r23_3
    j[18, 18] = -2.1 - 5.78 - r24_18
    j[18, 19] = 3.12
    j[19, 0] = r24_0
    j[19, 18] = r24_18
    j[19, 19] = -3.12


@njit
def primal(y):
    """The rates in a fresh array."""
    f = np.empty(20)
    primal_into(y, f)
    return f


@njit
def lanes(y):
    """The Jacobian in a fresh array, by SIMD lanes."""
    j = np.empty((20, 20))
    lanes_into(y, j)
    return j


@njit
def loops(y):
    """The Jacobian in a fresh array, by plain loops."""
    j = np.empty((20, 20))
    loops_into(y, j, EYE)
    return j


@njit
def entries(y):
    """The Jacobian in a fresh array, entry by entry."""
    j = np.empty((20, 20))
    entries_into(y, j)
    return j
