"""Programs whose loops are left early: ``break``, ``continue``, ``return``, ``else``."""

import numpy as np

from tests.frontend.agreement import Programs

PROGRAMS = program = Programs()
V = np.array([0.5, -1.25, 2.0, 3.5])
W = np.array([2.0, 0.1, -4.0, 1.0, 7.0, 0.25])
M = np.arange(12.0).reshape(3, 4) / 7


@program((2.0,), (0.01,), (1e9,))
def while_true_with_break(x):
    k = 0
    while True:
        x = x * 1.5
        k += 1
        if x > 10:
            break
    return x, k


@program((V,), (W,), (-W,), (np.array([3.0, 3.0]),))
def continue_skips(a):
    s = 0.0
    for x in a:
        if x < 0:
            continue
        s += x
    return s


@program.widening((V, 2.0), (V, 99.0), (W, 5.0))
def for_else(a, limit):
    for x in a:
        if x > limit:
            found = x
            break
    else:
        found = -1.0
    return found


@program((5.0,), (50.0,))
def while_else(x):
    k = 0
    while k < 10:
        if x * k > 100:
            break
        k += 1
    else:
        x = -x
    return x, k


@program.widening((V, 1.0), (V, 100.0), (W, 3.0), (W, -9.0))
def early_return_in_a_loop(a, limit):
    for k in range(len(a)):
        if a[k] > limit:
            return k, a[k]
    return -1, 0.0


@program.widening((M, 1.0), (M, 100.0), (M * 3, 0.5))
def early_return_in_nested_loops(a, limit):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > limit:
                return a[i, j] * 10 + i
    return -1.0


@program((V, 1.0), (V, 100.0), (W, 3.0))
def early_return_without_a_value_at_the_end(a, limit):
    for x in a:
        if x > limit:
            return x


@program((M, 1.0), (M, 0.2), (M, 99.0))
def break_of_the_inner_loop_only(a, limit):
    s = 0.0
    for row in a:
        for x in row:
            if x > limit:
                break
            s += x
        else:
            s *= 2
    return s


@program((V,), (W,))
def break_and_continue_together(a):
    s = 0.0
    for k, x in enumerate(a):
        if x < -3:
            break
        if k % 2:
            continue
        s += x
    else:
        s = -s
    return s, k


@program((V, 2), (W, 4), (V, 0))
def loop_with_a_loop_after_break(a, n):
    s = 0.0
    for i in range(n):
        if a[i] > 1:
            break
        s += a[i]
    for j in range(i, n):
        s -= a[j]
    return s


@program((4, 1.0), (0, 1.0), (7, 2.0))
def two_returns_in_while(n, x):
    k = 0
    while k < 5:
        k += 1
        if k == n:
            return x * k
        if x > 4:
            return -x
        x *= 1.7
    return x
