"""Programs with loops and calls that are run again from checkpoints."""

import numpy as np


def power(x, n):
    r = 1.0
    for _ in range(n):
        r *= x
    return r


def power_while(x, n):
    r, k = 1.0, 0
    while k < n:
        r *= x
        k += 1
    return r


def whole_arrays(x, n):
    for _ in range(n):
        x = np.sin(x) + 0.1 * x
    return np.sum(x)


def stencil(x, n):
    u = x.copy()
    for _ in range(n):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) * u[1:-1]
    return np.sum(u * u)


def seidel(x, n):
    u = x.copy()
    for _ in range(n):
        for i in range(1, len(u) - 1):
            u[i] = u[i] + 0.1 * (u[i + 1] - 2 * u[i] + u[i - 1]) * u[i]
    return np.sum(u * u)


def two_buffers(x, n):
    u, v = x.copy(), np.zeros(len(x))
    for _ in range(n):
        v[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) * u[1:-1]
        u, v = v, u
    return np.sum(u * u)


def recurrence(x, n):
    y = np.zeros(n + 1)
    y[0] = 0.3
    for i in range(1, n + 1):
        y[i] = x[i % 5] * y[i - 1] + np.sin(y[i - 1])
    return y[n]


def accumulated(x, n):
    a = np.zeros(3)
    for i in range(n):
        a[i % 3] += x[i % 5] * a[(i + 1) % 3] + 1.0
        a *= 0.9
    return np.sum(a)


def read_before(x, n):
    """What was read before the loop is restored after it."""
    u = x.copy()
    s = u[0] * u[1]
    for _ in range(n):
        u[0] = u[0] * u[1]
        u[1] = np.sin(u[1])
    return s * u[0] + np.sum(x)


def overwritten_later(x, n):
    """What the loop reads when it is run again is overwritten after it."""
    u, w = x.copy(), 0.0
    for i in range(n):
        w = w + np.sin(u[i % 5] * w + 1.0)
    u[:] = 0.0
    u[2] = w
    return u[2] * w + np.sum(u)


def sides(x, n):
    y = x[0]
    for _ in range(n):
        if y > 1.0:
            y = y * 0.5
            y = y * x[1]
        else:
            y = y + x[2]
    return y


def left_early(x, n):
    y = x[0]
    for _ in range(2 * n):
        y = y * 1.1 + x[1]
        if y > 1.1**n:
            break
    return y


def heun(x, n):
    t, y, h = 0.0, x.copy(), 1.0 / (n + 0.5)
    while t < 1.0:
        k1 = -y * y
        k2 = -((y + h * k1) ** 2)
        y = y + 0.5 * h * (k1 + k2)
        t += h
    return np.sum(y)


def downwards(x, n):
    r = x[0]
    for i in range(2 * n + 1, 1, -2):
        r = r + np.sin(r * x[1]) / i
    return r


def twice(x, n):
    s = 0.0
    for j in range(3):
        a = x[j]
        for _ in range(n):
            a = a * np.cos(a) + x[4]
        s += a * a
    return s


def mixed_names(x, n):
    """A view of an array, and the array itself, are written."""
    u = x.copy()
    w = u[1:4]
    for i in range(n):
        w *= 1.0 + 0.1 * x[i % 5]
        u[2] = u[2] * u[0] + w[0]
    return np.sum(u * u)


LOOPS = [
    whole_arrays, stencil, seidel, two_buffers, recurrence, accumulated, read_before,
    overwritten_later, sides, left_early, heun, downwards, twice, mixed_names,
]  # fmt: skip


def layer(x, w):
    y = np.tanh(x * w)
    z = np.exp(y) * y
    return np.sin(z) + z * y


def filled(x, w):
    y = np.zeros(len(x))
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = np.sin(y[i - 1]) * x[i] + w
    return y


def written_into(x, w):
    x[1:] = x[1:] * x[:-1] + w
    x *= 0.9
    return np.sum(x) * x[0]


def pair(x, w):
    return np.sin(x) * w, np.sum(x * x) * w


def repeated(g):
    def f(x, n):
        for i in range(n):
            x = g(x, 0.5 + 0.1 * i)
        return np.sum(x * x)

    return f


def in_a_row(g):
    def f(x, n):
        a = g(x, 0.3)
        b = g(a, 0.7 * n)
        c = g(b * a, 0.2)
        c[0] = b[0] * a[1]
        return np.sum(c * b)

    return f


def on_an_array(g):
    def f(x, n):
        u, s = x.copy(), 0.0
        for i in range(n):
            s = s + g(u, 0.1 * i)
            u[0] = u[0] + s * 0.01
        return s + np.sum(u)

    return f


def two_values(g):
    def f(x, n):
        s = 0.0
        for i in range(n):
            if i % 2 == 0:
                x, t = g(x, 0.9)
                s += t
        return s + np.sum(x)

    return f


CALLS = [
    (repeated, layer), (repeated, filled), (in_a_row, layer), (in_a_row, filled),
    (on_an_array, written_into), (two_values, pair),
]  # fmt: skip
