"""Programs whose gradients are taken backwards: loops, branches, and arrays updated in place."""

import math

import numpy as np


def elementwise(x):
    return np.sum(np.sin(x) * x / (1 + x**2))


def short_factors(x):
    """The sum of a product whose other factor is broadcast."""
    a = np.outer(x, x)
    column, row = np.array([[2.0], [3.0], [0.5]]), np.array([1.0, -1.0, 4.0])
    return np.sum(a * column) + np.sum(row * a) + np.sum(a / x[:, None]) + np.sum(x - a)


def slices(x):
    y = x[1:] * x[:-1]
    return np.sum(y**2) + x[0]


def elements(x):
    y = np.zeros(3)
    y[0] = x[0]
    y[1] = x[1] * x[0]
    y[2] = y[1] * y[0]
    y[0] = y[2] * x[2]
    return np.sum(y)


def carried_number(x):
    s = 0.0
    for i in range(len(x)):
        s = s + math.sin(x[i]) * s + x[i]
    return s


def recurrence(x):
    y = x.copy()
    for i in range(1, len(x)):
        y[i] = x[i] * y[i - 1] + math.sin(y[i - 1])
    return np.sum(y)


def backwards_recurrence(x):
    y = x * 1.0
    for i in range(len(x) - 2, -1, -1):
        y[i] = y[i + 1] * x[i] + y[i + 1] ** 2
    return y[0]


def branch(x):
    if x[0] > 0:
        s = x[0] * x[1]
        t = math.exp(s)
    else:
        s = x[1]
        t = s * x[0] * 2
    return s * t


def while_loop(x):
    s = x[0]
    while s < 10.0:
        s = s * s + x[1]
    return s


def condition_of_a_number(x):
    """The body reads what the condition has computed."""
    s = x[0] * x[1]
    while np.sin(s) * x[2] < 1.5:
        s = s + np.sin(s) * x[2] * 0.3
    return s * x[1]


def condition_of_elements(x):
    """The body overwrites what the condition has read."""
    y = x * 1.0
    while y[0] * y[1] < 5.0 and y[2] < 90.0:
        y[0] += y[0] * y[1] + 0.3
        y[1:] = y[1:] * y[2]
    while np.max(y) < 1e3:
        y *= np.max(y) + 0.5
    return np.sum(np.sqrt(y) * x)


def broken_off(x):
    s, k = 1.0, 0
    for k in range(100):
        s = s * x[k % 3] + 0.5
        if s > 20.0:
            break
    return s * k


def solved(x):
    a = np.outer(x, x) + 5 * np.eye(len(x))
    return np.sum(np.linalg.solve(a, x)) + np.linalg.det(a)


def carried_array(x):
    u = x
    for _ in range(4):
        u = u + 0.1 * np.sin(u) * u
    return np.sum(u * u)


def two_buffers(x):
    u = x.copy()
    v = np.empty_like(u)
    for _ in range(5):
        v[0] = u[0]
        v[-1] = u[-1]
        v[1:-1] = u[1:-1] * (u[2:] - u[:-2])
        u, v = v, u
    return np.sum(u * u)


def fresh_buffer(x):
    u = x * 0.4
    for _ in range(3):
        v = np.empty_like(u)
        v[0] = u[-1] * u[0]
        v[1:] = u[:-1] ** 2 + u[1:]
        u = v
    return np.sum(np.cos(u))


def in_place(x):
    for i in range(len(x)):
        for j in range(i):
            x[i] += x[j] * x[i] * 0.1
        if x[i] > 1.0:
            x[i] = math.log(x[i])
    return np.sum(x)


def products_in_place(x):
    u = x.copy()
    for i in range(1, len(x)):
        u[i] *= u[i - 1]
        u[i] /= 1.0 + u[0] ** 2
    u *= 2.0
    return np.sum(u**2)


def stencil(x):
    u = x.copy()
    for _ in range(3):
        u[1:-1] += 0.1 * u[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**2)


def overwritten(x):
    u = x.copy()
    for _ in range(3):
        u[:] = np.sin(u)
    return np.sum(u**3)


def through_views(x):
    a = np.zeros((2, len(x)))
    row = a[1]
    row[:] = x
    last = row[::-1]
    last[0] = x[0] * x[1]
    a.T[1] *= 3.0
    return np.sum(a**2) + np.sum(row * last)


def gathered(x):
    i = np.array([0, 2, 2, 1])
    y = x[i] * np.arange(4.0)
    y[i] = y * x[0]
    return np.sum(y**2) + np.sum(x[x > 1.0])


def buffers_of_an_inner_loop(x):
    s = 0.0
    for i in range(len(x)):
        w = np.zeros(3)
        for j in range(3):
            w[j] = x[i] ** (j + 1)
            if j:
                w[j] += w[j - 1] * x[0]
        s += np.sum(w) * w[2]
    return s


def chosen_array(x):
    y = x * 2.0
    z = y if x[0] > x[1] else np.zeros_like(x)
    z[1] = z[0] * x[2] + 1.0
    return np.sum(y * z)


def cholesky(x):
    a = np.outer(x, x) + 4.0 * np.eye(len(x))
    n = len(x)
    for i in range(n):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[j, :j]
            a[i, j] /= a[j, j]
        a[i, i] = math.sqrt(a[i, i] - a[i, :i] @ a[i, :i])
    s = 0.0
    for i in range(n):
        s += np.sum(a[i, : i + 1])
    return s


def largest(x):
    s = 0.0
    for k in range(1, len(x)):
        s += np.max(x[:k] * x[k]) * x[-1]
    return s


def short_axes(x):
    """One axis is known to be short, the lengths of the other are not known to be equal."""
    s = 0.0
    for i in range(1, len(x)):
        s += np.sum(x[:i, np.newaxis] * np.outer(x[-i:], x))
    return s


def filled(x):
    """Arrays of one number, also of one that depends on x, that are written then."""
    n = len(x)
    lower, diagonal = np.full(n, -0.3), np.full(n, x[0] + 2.0)
    whole = np.full((n, 2), [1.0, 2.0])
    for i in range(1, n):
        lower[i] *= x[i] / diagonal[i - 1]
        diagonal[i] -= lower[i] * x[i - 1]
        whole[i] += whole[i - 1] * diagonal[i]
    return np.sum(diagonal * lower) + np.sum(whole)


def shrinking(x):
    """Bézier's curve by de Casteljau's algorithm: each iteration's array is shorter."""
    while len(x) > 1:
        x = 0.3 * x[1:] + 0.7 * x[:-1] ** 2
    return x[0]


def shrinking_for(x):
    for _ in range(len(x) - 1):
        x = x[1:] * x[:-1]
    return np.sum(np.sin(x))


def growing(x):
    for _ in range(3):
        x = np.concatenate([x, x[:1] * 2]) * 1.1
    return np.sum(np.sin(x))


def shrinking_rows(x):
    m = np.outer(x, x)
    total = 1.0
    while m.shape[0] > 1:
        total = total * m[0, 0]
        m = m[1:, 1:] - 0.5 * np.outer(m[1:, 0], m[0, 1:]) / m[0, 0]
    return total * m[0, 0]


def sides_of_other_lengths(x):
    y = x[1:] * 2 if x[0] > 0 else x[:-2] * x[2:]
    return np.sum(np.sin(y))


def shrinking_views(x):
    """Lengths are asked for inside the loop and behind it."""
    while len(x) > 4:
        x = (x[1:] * x[:-1]).reshape(-1)
    return np.sum(np.sin(x[:-1].reshape(-1) * 2) * x[1:].ravel())


def shrinking_sides(x):
    for _ in range(2):
        x = x[1:] * x[:-1] if x[0] > 0 else np.cos(x[:-1])
    return np.sum(x * x)


def written_or_read(x):
    """A name for an array that is written, or for one that is not."""
    y, z = np.zeros_like(x), x * 2.0
    y[2] += np.sin(x[0])
    if x[0] > 0:
        y = z
    return y[0] * 3 + y[2]


def read_after_a_loop(x):
    y, z = np.zeros_like(x), x * 2.0
    y[0] = np.cos(x[1])
    for _ in range(int(x[0] > 0)):
        y = z
    return y[1] * z[0] + y[0]


def pivoted(x):
    """Gaussian elimination: rows change places by lists of numbers of the loop."""
    a = np.outer(x, np.cos(x)) + np.diag(x[::-1])
    for k in range(len(x) - 1):
        p = k + int(np.argmax(np.abs(a[k:, k])))
        a[[k, p]] = a[[p, k]]
        a[k + 1 :] -= np.outer(a[k + 1 :, k] / a[k, k], a[k])
    return np.sum(np.log(np.abs(np.diag(a))) * x)


X = np.array([1.2, 0.5, 2.0])
LONG = np.linspace(0.5, 1.0, 7)
PROGRAMS = [
    (elementwise, X),
    (elementwise, LONG.reshape(7, 1) * X),
    (short_factors, X),
    (slices, X),
    (elements, X),
    (carried_number, X),
    (recurrence, LONG),
    (backwards_recurrence, LONG),
    (branch, X),
    (branch, -X),
    (while_loop, X),
    (condition_of_a_number, X),
    (condition_of_elements, X),
    (broken_off, X),
    (solved, X),
    (carried_array, X),
    (two_buffers, LONG),
    (fresh_buffer, X),
    (in_place, X),
    (products_in_place, LONG),
    (stencil, LONG),
    (overwritten, LONG),
    (through_views, X),
    (gathered, X),
    (buffers_of_an_inner_loop, X),
    (chosen_array, X),
    (chosen_array, X[::-1].copy()),
    (cholesky, X),
    (largest, LONG),
    (filled, LONG),
    (short_axes, LONG),
    (shrinking, X),
    (shrinking_for, X),
    (growing, X),
    (shrinking_rows, X),
    (sides_of_other_lengths, LONG),
    (sides_of_other_lengths, -LONG),
    (shrinking_sides, LONG),
    (shrinking_views, LONG),
    (pivoted, X),
    (written_or_read, X),
    (written_or_read, -X),
    (read_after_a_loop, X),
    (read_after_a_loop, -X),
]
