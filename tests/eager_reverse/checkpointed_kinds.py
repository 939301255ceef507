"""More programs as in :mod:`checkpointed_calls`: exceptions, caches, operations of other kinds."""

import functools

import numpy as np

import fwdad
from tests.eager_reverse.checkpointed_calls import TABLE, WORK, layer


def exceptions(mark):
    @mark
    def checked(u, limit):
        u = u * 1.2
        WORK[:] = u
        try:
            u = u * {True: 0.5}[float(np.sum(u)) > limit]
        except KeyError:
            u = u * 0.7
        if limit < 0:
            raise KeyError
        return np.sin(u) * WORK[1]

    def f(x):
        y = checked(x, 1.0)
        try:
            y = checked(y, -1.0)
        except KeyError:
            y = y * WORK  # what it has done until then
        return checked(y, 100.0)

    return f


def cached(mark):
    def f(x):
        @functools.lru_cache
        def squares(k):
            return x[k] * x[k]

        @mark
        def g(u, k):
            return u * squares(k) + squares(0)

        y = x
        for k in range(5):
            y = g(y, k)
        return y * squares(4) + g(y, 1)

    return f


def linear_algebra(mark):
    @mark
    def solve(a, b):
        a = a + np.outer(b, b)
        q, r = np.linalg.qr(a)
        return np.linalg.solve(r, q.T @ b) + np.linalg.inv(a)[0]

    def f(x):
        a = np.diag(TABLE + 2.0) + 0.1 * np.outer(x, x[::-1])
        y = solve(a, x)
        a[1] *= 2.0
        return solve(a, y + x)

    return f


def elements(mark):
    @mark
    def g(u, v):
        s = u[0] * v[1]
        for k in range(4):
            s = s + u[k] * v[k + 1] ** 2
        return s

    def f(x):
        c = x * 1.0
        first = c[0] * c[1]
        a, b = g(c, x), g(c, c)
        return np.array([a * first + c[2] * a, b * c[0], x[1]])

    return f


def derivatives_inside(mark):
    @mark
    def g(u):
        slope = fwdad.jvp(np.sin, u, TABLE)[1]
        return slope * u + fwdad.jacobian(lambda v: v * np.sum(v * v), u)[0]

    def f(x):
        return g(g(x) * 0.1)

    return f


def complex_numbers(mark):
    @mark
    def g(z, u):
        z = z * np.exp(1j * u)
        return np.fft.fft(z) / 5.0

    def f(x):
        z = x + 0.5j
        for _ in range(3):
            z = g(z, x)
        return z.real * z.imag + np.abs(z)

    return f


def unused(mark):
    @mark
    def g(u):
        u = np.sin(u)
        return u * u, TABLE * 3.0, u[1]

    def f(x):
        g(x)
        y, table, _ = g(x)
        return y * table + g(TABLE)[0]

    return f


class Scaled:
    def __init__(self, by):
        self.by = by

    def __call__(self, u):
        return np.sin(u) * self.by


def callables(mark):
    def f(x):
        scaled = Scaled(x[1] * x[2])
        g, h = mark(scaled), mark(functools.partial(layer, w=0.3))
        y = g(x) + h(x)
        scaled.by = scaled.by * y[0]
        return g(y) * mark(lambda u: u * x)(y)

    return f


def sums_made_one_node_elsewhere(mark):
    def f(x):
        c = x * 2.0 + np.cumsum(x) + np.sin(x)  # a sum of several terms, captured
        box = [c]

        @mark
        def g(u):
            return np.sort(box[0]) * u

        y = g(x)
        return np.sort(c) * y + g(y)

    return f


def steps_kept_in_an_object(mark):
    """An object with numbers, arrays and containers inside of each other."""

    class Solver:
        __slots__ = ("deep", "k", "u")

    def f(x):
        s = Solver()
        s.u, s.k, s.deep = x * 1.0, 0, {"a": [np.zeros(5), (TABLE.copy(), x[0])]}

        @mark
        def step(s):
            s.k += 1
            s.deep["a"][0][:] = s.u * s.k
            s.u = s.u * s.deep["a"][1][0] + s.deep["a"][0] * s.deep["a"][1][1]
            s.deep["a"][1] = (s.deep["a"][1][0] * 0.9, s.u[1])

        for _ in range(4):
            step(s)
        return s.u * s.k + s.deep["a"][1][1]

    return f


def generators(mark):
    @mark
    def pieces(u):
        for k in range(3):
            yield np.sin(u) * k

    @mark
    def total(u):
        return sum(part * (k + 1) for k, part in enumerate(u))

    def f(x):
        return total([p * x for p in pieces(x)])

    return f


PROGRAMS = [
    exceptions, cached, linear_algebra, elements, derivatives_inside, complex_numbers, unused,
    callables, sums_made_one_node_elsewhere, steps_kept_in_an_object, generators,
]  # fmt: skip
