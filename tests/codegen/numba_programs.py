"""Programs that the two backends run, and arguments for each."""

import math

import numpy as np

CASES = []


def case(*arguments):
    """A program with the tuples of arguments that it is called with; traced with the first."""

    def register(f):
        CASES.append((f, arguments))
        return f

    return register


A = np.array([0.5, -1.5, 2.0, 3.25])
B = np.array([1.0, 2.0, -0.5, 4.0])
M = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, -0.25, 5.0]])
V = np.array([1.0, -2.0, 0.5])
STRIDED = np.arange(8.0)[::2] - 3
READONLY = B.copy()
READONLY.flags.writeable = False


# -- numbers


@case((1.5, 2.0), (-1.5, 0.25), (0.0, 1.0))
def polynomial(x, y):
    return 3 * x**2 - x * y / 4 + abs(-x) + (x + 1) * (y - 2) - +y


@case((np.float64(1.5), np.float64(0.0)), (np.float64(0.0), np.float64(0.0)))
def numpy_division(x, y):
    return x / y, x % y, x // y, -x / y


@case((7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3))
def int_signs(a, b):
    return a // b, a % b, a / b, -a, ~a, a & b, a | b, a ^ b, abs(a)


@case((7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (-6.0, 3.0), (6.0, -3.0), (0.0, -1.0))
def float_signs(a, b):
    return a // b, a % b


@case((np.float64(7.5), np.float64(2.0)), (np.float64(-7.5), np.float64(2.0)),
      (np.float64(7.5), np.float64(-2.0)), (np.float64(-6.0), np.float64(3.0)),
      (np.float64(np.inf), np.float64(3.0)), (np.float64(1.0), np.float64(np.inf)))  # fmt: skip
def numpy_float_signs(a, b):
    return a // b, a % b


@case((np.int64(7), np.int64(2)), (np.int64(-7), np.int64(2)), (np.int64(7), np.int64(0)))
def numpy_int_signs(a, b):
    return a // b, a % b, a / b, a**2


@case((2, 10), (3, 39), (-2, 63))
def int_powers(a, n):
    return a**n


@case((2.0, -1.5), (4.0, 0.5), (-2.0, 3.0), (1e-3, 2.0))
def float_powers(a, b):
    return a**b, a**3, a**2


@case((np.float64(2.0), -1.5), (np.float64(-8.0), 1 / 3), (np.float64(0.0), -1.0))
def numpy_powers(a, b):
    return a**b, a**2, a**-1


@case((0.5,), (0.25,), (0.9,))
def math_functions(x):
    return (
        math.sin(x) + math.exp(-x) * math.sqrt(x),
        math.log(x) + math.atan2(x, 2.0) + math.erf(x) + math.hypot(x, 1.0),
        math.floor(10 * x) + math.ceil(x) + int(x * 7) + round(3 * x),
        math.isnan(x),
        math.pow(x, 1.5),
    )


@case((np.float64(0.5),), (np.float64(-0.5),), (np.float64(0.0),), (np.float64(np.nan),))
def numpy_functions(x):
    return (
        np.sqrt(x), np.log(x), np.exp(x), np.arctan2(x, 1.0), np.sign(x), np.floor(x),
        np.maximum(x, 0.1), np.minimum(x, 0.1), np.tanh(x), np.log1p(x), np.square(x), np.cbrt(x),
        np.arcsin(x), np.hypot(x, 3.0), np.isnan(x), np.reciprocal(x), np.where(x > 0, x, -1.0),
    )  # fmt: skip


@case((np.float32(1.5), 2.0), (np.float32(-0.1), 1e-3))
def single_precision(x, y):
    return x * y, x + 1, np.sin(x), x / 3, x**2


@case((1.5 + 2.0j, 0.5), (-1.0j, 2.0))
def complex_numbers(z, x):
    return z * x + 1, z / (x + 1), abs(z), np.exp(z), z.real, z.imag, z**2


@case((3, True), (0, False))
def mixed_kinds(n, flag):
    return n + flag, float(n), complex(n), bool(n), n * 1.5, not flag


# -- loops and branches


@case((1.0, 5), (2.0, 0), (-1.0, 1))
def counted(x, n):
    total = 0.0
    for i in range(n):
        if i % 3 == 1:
            continue
        total += x * i
    return total


@case((2.0,), (9.0,), (1e-4,))
def newton(a):
    x = a
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


@case((A, 1.0), (B, 10.0), (np.zeros(3), 1.0))
def early_return(x, limit):
    total = 0.0
    for i in range(len(x)):
        total += x[i]
        if total > limit:
            return total, i
    return total, -1


@case((5, 3), (0, 2), (2, 0))
def nested_loops(n, m):
    k = 0
    for i in range(n):
        for j in range(m):
            if j > i:
                break
            k += i * j + 1
    return k


@case((A,), (B,), (STRIDED,), (READONLY,), (np.zeros(2),))
def recurrence(x):
    y = np.zeros_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = 0.5 * y[i - 1] + np.sin(x[i])
    return y


@case((A, 3), (B, 0))
def swap_arrays(x, n):
    u, v = x.copy(), x[::-1]
    for _ in range(n):
        u, v = v, u + 0.5 * v
    return u, v


@case((A, True), (A, False), (STRIDED, True))
def either_array(x, flag):
    y = x[1:] if flag else 2.0 * x[:-1]
    return y.sum() + y[-1]


# -- arrays


@case((A, B), (STRIDED, B), (READONLY, A), (np.zeros(0), np.zeros(0)))
def elementwise(x, y):
    return (
        x * y + 2.0,
        np.exp(-(x**2)) / (1.0 + y * y),
        np.where(x > y, x, -y),
        np.maximum(x, y) - np.clip(x, -1, 1) + np.clip(y),
        (x > 0) & (y > 0),
        -x,
        x / y,
    )


@case((M, V), (np.asfortranarray(M), V), (M.T, V), (M[::-1, ::-1], V))
def broadcasting(m, v):
    return m * v + v[:, None], m - m.mean(axis=0), (m.T @ v)[:, None] * v


@case((A.astype(np.float32), 2.0), (B.astype(np.float32), 0.1))
def weak_scalars(x, s):
    return x * s, x + 1, x.sum(), x.mean(), np.sqrt(np.abs(x)), 2 * x[0]


@case((np.array([1 + 2j, -1j, 0.5]), V), (np.array([1j, 2.0, 1j]), V))
def complex_arrays(z, v):
    return z * v, np.abs(z), z.real + z.imag, z.sum(), np.conj(z) @ v, z / (1 + v * v)


@case((np.array([3, -4, 5]), 2), (np.array([1, 2, 3]), -3))
def int_arrays(k, n):
    return k * n, k / 2, k // n, k % n, k.sum(), k**2, k > 0, k.mean(), k @ k


@case((M,), (M.T,), (np.asfortranarray(M),), (M[:2],))
def reductions(m):
    return (
        m.sum(), m.sum(axis=0), m.sum(axis=1, keepdims=True), m.max(), m.min(axis=1), m.prod(),
        (m > 0).all(), (m > 2).any(axis=0), m.mean(axis=-1), m.std(), m.var(ddof=1),
        np.argmax(m), np.cumsum(m[0]), np.cumsum(m, axis=1), np.linalg.norm(m), np.trace(m),
    )  # fmt: skip


@case((np.array([1.0, np.nan, 3.0]),), (np.array([3.0, 1.0, 2.0]),))
def extremes_and_nan(x):
    return x.max(), x.min(), np.argmax(x), np.argmin(x), x.sum()


TIES = np.array([[2.0, 5.0, 5.0], [np.nan, 1.0, np.nan], [-1.0, -1.0, -1.0]])


@case((TIES,), (np.asfortranarray(TIES),), (TIES[::-1, 1:],), (TIES[:2].T,))
def along_an_axis(m):
    first = np.argmin(m, axis=0, keepdims=True)
    return (
        np.argmax(m, axis=1), np.argmax(m, axis=0), first, np.argmax(m > 1, axis=-1),
        np.take_along_axis(m, first, 0), np.sort(m), np.sort(m, axis=0), np.ptp(m, axis=1),
        np.ptp(m[0]), np.argsort(m, axis=0, kind="stable"), np.argsort(m[-1], kind="stable"),
        np.linalg.norm(m[0], np.inf), np.linalg.norm(m, -np.inf, axis=1, keepdims=True),
    )  # fmt: skip


@case((A, 2), (B, 0), (STRIDED, 4))
def slices(x, k):
    return x[k:], x[:k].sum(), x[::-1], x[-1], x[1:3] * 2, x[-3:-1]


@case((M, V, 1), (np.asfortranarray(M), V, -4), (M[:, ::-1], V[:0], 0))
def rolled(m, v, k):
    return np.roll(m, k, axis=1), np.roll(m.T, 2, axis=-1), np.roll(v, k), np.roll(v * 2, -1)


@case((M, V, 2), (np.asfortranarray(M), V, 1))
def partial_products(m, v, n):
    total = 0.0
    for i in range(n):
        total += m[i, :i] @ v[:i] + m[i, :] @ v
    return total, m @ v, v @ m, m @ m, np.outer(v, v), np.dot(v, v)


@case((A, 1), (B, 3))
def overlapping(x, _n):
    x = x.copy()
    x[1:] = x[:-1]
    x[:-1] += x[1:]
    x[::-1] = x
    x[1:] *= 2.0
    x += x[0]
    return x


@case((M, V), (M.T.copy(), V))
def slice_stores(m, v):
    out = np.zeros((3, 3))
    out[0] = v
    out[:, 1] = 7.0
    out[1:, 2] = m[0, :2]
    out[2] += v * m[1]
    out[...] -= m
    out[1, 1] = v[0]
    return out


@case((A, np.array([0, 2, 2])), (B, np.array([-1, 0, 1])))
def fancy(x, ix):
    y = x.copy()
    y[ix] = 5.0
    y[y > 3] += 1.0
    np.add.at(y, ix, 0.5)
    return x[ix], x[x > 0], y, x[[1, 0]]


@case((A,), (B,))
def through_views(x):
    y = x.copy()
    v = y[1:]
    v[0] = 10.0
    w = y.reshape(2, 2)
    w[1, 1] = -3.0
    t = w.T
    t[0, 1] += 1.0
    return y, w.sum(axis=0)


@case((A, B), (B, A))
def joined(x, y):
    return (
        np.concatenate([x, y]), np.stack([x, y], axis=1), np.array([x[0], 2.0, y[1]]),
        np.array([[x[0], 1.0], [y[0], x[1]]]), np.hstack((x, y)), np.vstack((x, y)),
        x.reshape(2, 2).T.ravel(), np.linspace(0, 1, 5), np.eye(3), np.flip(x),
        np.arange(4) * x, np.full(3, x[0]), np.diag(x[:2]), x.astype(np.float32),
    )  # fmt: skip


@case((M, V, 2), (np.asfortranarray(M), V, 0), (M[:, ::-1], READONLY[:3], 1))
def repeated(m, v, n):
    rows = np.broadcast_to(v, (n, len(v)))
    columns = np.broadcast_to(v[:, None], m.shape)
    stack = np.broadcast_to(m, (2, *m.shape))
    total = columns
    for k in range(n):
        total = total + rows[k] * columns
    v = v.copy()
    view = np.broadcast_to(v, (2, 3))
    v[0] = 7.0  # seen through the view
    return rows, columns * m, stack[1], total, view, columns.reshape(-1), columns.T @ v


@case((np.array(2.0), 3.0), (np.array(-1.0), 0.5))
def zero_dimensional(a, x):
    b = a * x
    return b, a + 1, np.sqrt(a * a)


@case((M, V), (np.asfortranarray(M), V), (M.T, V))
def linear_algebra(m, v):
    return (
        np.linalg.solve(m, v), np.linalg.solve(m, m.T), np.linalg.inv(m), np.linalg.det(m),
        np.linalg.cholesky(m @ m.T),
    )  # fmt: skip


@case((A, B))
def lengths(x, y):
    n = len(x)
    return n * 2 + x.shape[0] * y.size, x.ndim


@case((M,), (M[:2],))
def rows(m):
    total = 0.0
    for row in m:
        total += row.sum() * row[0]
    for i, row in enumerate(m):
        row_copy = row * i
        total += row_copy.max()
    return total


@case((0.0, 1.0, 0.1), (1.0, 0.0, -0.3), (0.0, -1.0, 0.1), (0.3, 7.77, 0.7), (1.0, 5.0, 1.0))
def float_range(start, stop, step):
    return np.arange(start, stop, step)


@case((A,), (B,))
def copies_that_are_asked_for(x):
    y = x * 1.0
    np.asarray(y, copy=True)[0] = 9.0
    np.asarray(y)[1] = 8.0
    np.array(y)[2] = 7.0
    return y


@case((np.sort(A), 0.3), (np.sort(B), 2.0))
def place_of_an_array_without_axes(x, t):
    return np.searchsorted(x, np.asarray(t)), np.interp(np.asarray(t), x, x**2)
