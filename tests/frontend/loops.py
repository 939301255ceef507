"""Programs with loops: what they carry, and how they end by themselves."""

import math

import numpy as np

from tests.frontend.agreement import Programs

PROGRAMS = program = Programs()
V = np.array([0.5, -1.25, 2.0, 3.5])
W = np.array([2.0, 0.1, -4.0, 1.0, 7.0, 0.25])
M = np.arange(12.0).reshape(3, 4) / 7


@program((2.0, 3), (2.0, 4), (1.5, 0), (-1.0, 1), (3.0, -2))
def power(x, n):
    y = 1.0
    for _ in range(n):
        y *= x
    return y


@program.widening((2.0, 3), (2.0, 0), (0.1, 9))
def integer_that_becomes_a_float(x, n):
    s = 0
    for k in range(n):
        s += x / (k + 1)
    return s


@program.widening((np.float64(2.0), 3), (np.float64(-1.0), 1), (np.float64(0.5), 0))
def integer_that_becomes_a_numpy_float(x, n):
    s = 0
    for k in range(n):
        s = s + x * k
    return s


@program((2.0,), (1e6,), (0.3,), (0.0,))
def while_to_convergence(a):
    x = a
    k = 0
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
        k += 1
    return x, k


@program((10.0,), (1.0,), (-1.0,))
def while_with_and(x):
    n = 0
    while x > 1 and n < 20:
        x = x / 2
        n += 1
    return x, n


@program((2.0, 2, 3), (2.0, 3, 4), (2.0, 0, 5), (2.0, 5, 0))
def nested(a, n, m):
    for _ in range(n):
        for _ in range(m):
            a = a + a
    return a


@program((2.0, 4), (2.0, 0), (2.0, 1))
def counter_is_used_after_the_loop(x, n):
    for k in range(n):
        x += k
    return x * k


@program((3, 2.0), (0, 2.0), (1, -2.0))
def triangle_of_loops(n, x):
    s = 0.0
    for i in range(n):
        for j in range(i + 1):
            s += x * i - j
    return s


@program((V, 3), (W, 2), (V, 0))
def fibonacci_by_swapping(v, n):
    a, b = v[0], v[1]
    for _ in range(n):
        a, b = b, a + b
    return a, b


@program((V, 3), (W, 2), (V, 0), (V, 1))
def arrays_swapped_in_a_time_loop(u, n):
    new = np.zeros_like(u)
    for _ in range(n):
        new[1:-1] = 0.5 * (u[2:] + u[:-2])
        new[0] = u[-1]
        new[-1] = u[0]
        u, new = new, u
    return u


@program((V, 3), (W, 2), (V, 0), (V, 1))
def copied_arrays_swapped_in_a_time_loop(u, n):
    u = u.copy()
    new = u.copy()
    for _ in range(n):
        new[1:] = u[:-1] * 0.5
        u, new = new, u
    new[0] = 99.0
    return u, new


@program((V, 5), (W, 3), (V, 0))
def three_buffers_rotate(u, n):
    a, b, c = u.copy(), np.zeros_like(u), np.ones_like(u)
    for k in range(n):
        c[:] = a + b * k
        a, b, c = b, c, a
    return a, b, c


@program((3.0, 4), (3.0, 0), (0.5, 11))
def alternating_branch(y, n):
    for i in range(n):
        y = 3 * y if i % 2 == 0 else -y
    return y


@program((6,), (27,), (1,))
def collatz(n):
    k = 0
    while n != 1:
        if n % 2:
            n = 3 * n + 1
        else:
            n //= 2
        k += 1
    return k


@program((V,), (W,))
def best_starts_as_none(a):
    best = None
    for x in a:
        if best is None or x > best:
            best = x
    return best


@program((3.0, 2), (3.0, 0), (-1.0, 5))
def last_starts_as_none(x, n):
    last = None
    for _ in range(n):
        x = x * 2
        if x > 20:
            last = x
    if last is None:
        return -1.0
    return last


@program((3.0, 2), (3.0, 0), (-1.0, 5))
def none_may_be_answered(x, n):
    last = None
    for _ in range(n):
        x = x * 2
        last = x
    return last


@program((M, V[:3]), (np.eye(3) * 2, W[:3]))
def forward_substitution(a, b):
    x = np.zeros(len(b))
    for i in range(len(b)):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / (a[i, i] + 3)
    return x


@program((np.array([[4.0, 1, 0], [1, 5, 2], [0, 2, 6]]),), (np.eye(5) + 0.1,), (np.eye(2) * 9,))
def cholesky(a):
    n = a.shape[0]
    low = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j] - low[i, :j] @ low[j, :j]
            if i == j:
                low[i, i] = np.sqrt(s)
            else:
                low[i, j] = s / low[j, j]
    return low


@program((2.0, 5), (2.0, 2), (3.0, 0))
def while_counts_down(x, n):
    while n:
        x = math.sqrt(x + n)
        n -= 1
    return x


@program((1.0, 5), (1.0, 0), (2.0, 1))
def tuple_is_carried(x, n):
    state = (x, 0.0)
    for k in range(n):
        p, q = state
        state = (p + 0.1 * q, q - 0.1 * p)
    return state


@program.widening((1.0, 5), (1.0, 0), (2.0, 1))
def list_is_carried(x, n):
    state = [x, 0]
    for k in range(n):
        state[0] += 0.5 * state[1]
        state[1] = state[0] - k
    return state


@program((1.0, 5), (1.0, 0), (2.0, 1))
def dict_is_carried(x, n):
    state = {"t": 0.0, "x": x}
    for _ in range(n):
        state["x"] = state["x"] * 1.1
        state["t"] += 0.1
    return state


@program((1.0, 4), (1.0, 0), (-3.0, 9))
def walrus_in_a_while(x, n):
    k = 0
    while (y := x * k) < n:
        k += 1
        x += 1
    return x, y, k


@program((V,), (W,))
def max_and_argmax_by_hand(a):
    best, where = a[0], 0
    for k in range(1, len(a)):
        if a[k] > best:
            best, where = a[k], k
    return best, where


@program((3, 2.0), (5, 2.0), (0, 2.0))
def name_is_deleted_in_a_loop(n, x):
    for k in range(n):
        t = x * k
        x = x + t
        del t
    return x


@program((0.5, 3), (0.5, 0))
def loop_variable_shadows(x, n):
    k = 100
    for k in range(n):
        x += k
    return x, k


@program((V,), (W,))
def nested_closures_over_the_loop_variable(a):
    s = 0.0
    for k in range(len(a)):
        g = lambda t: t * a[k]
        s += g(k)
    return s


@program((5, 2.0), (0, 2.0), (3, 0.0))
def zero_division_in_a_loop(n, x):
    s = 0.0
    for k in range(n):
        s += k / x
    return s


@program((V, 3), (V, 9), (V, -5), (W, 5))
def index_error_in_a_loop(a, n):
    s = 0.0
    for k in range(n):
        s += a[k]
    return s + a[n]


@program((V, 2), (W, 3), (V[:2], 1), (W, -9))
def slices_of_a_range(a, n):
    places, s = range(len(a)), 0.0
    for k in places[::-1]:
        s = s * 0.9 + a[k] * k
    for k in places[1:]:
        s += a[k] * a[k - 1]
    for k in places[n::-2]:
        s = s * 1.1 - a[k]
    for k in range(len(a), 0, -1)[-2:9]:
        s = s * 0.7 + a[k - 1]
    return s + len(places[-3:-1]) + sum(range(1, len(a))[:n])
