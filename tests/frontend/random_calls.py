"""Random programs of functions that call each other, and of the state that they see and change.

Closures, methods, generators and recursion to depths that values decide, between which names,
attributes, dicts and lists are changed. ``f`` takes a number.
"""

PROLOGUE = """\
import functools
import itertools

import numpy as np


class Cell:
    scale = 0.75

    def __init__(self, k, inner=None):
        self.k = k
        self.inner = inner
        self.seen = []

    def shrink(self, y):
        return y if y < 0.5 else self.k * 0.1 + self.shrink(y * 0.6)

    def deep(self, y, n):
        if n <= 0:
            return y * self.k
        return self.deep(y * 0.9 + self.k * 0.01, n - 1)

    def note(self, y):
        self.seen.append(y)
        return sum(self.seen) / len(self.seen)

    def tick(self, y):
        self.k = self.k + 0.5
        return y * self.k

    @property
    def twice(self):
        return 2 * self.k

    def __call__(self, y):
        return y * self.k + (self.inner(y) if self.inner is not None else 0.0)


class Other(Cell):
    def shrink(self, y):
        return super().shrink(y * 0.5) + self.twice

    def __add__(self, other):
        return Other(self.k + (other.k if isinstance(other, Cell) else other))


def maker(k):
    def halve(y):
        return y if y < 0.5 else k * 0.1 + halve(y * 0.5)

    return halve


def counter(start):
    count = start

    def step(y):
        nonlocal count
        count = count + 1.0
        return y * count

    return step


def even(y, n):
    return y if n < 0.5 else odd(y * 1.1, n - 1.0)


def odd(y, n):
    return y * 0.5 if n < 0.5 else even(y + 0.1, n - 1.0)


def walk(tree, y):
    if not isinstance(tree, tuple):
        return y * tree
    return walk(tree[0], y) + walk(tree[1], y * 0.5)


def steps(y, k):
    while y > 0.3:
        yield y * k
        y = y * 0.6


def f(x):
    s, t = x, 0.5
    k, j = 2.0, 3.0
    c, o = Cell(1.5), Other(2.5)
    p = c
    d = {"k": 1.25, "f": maker(2.0)}
    q = [1.5, x]
    h = maker(3.0)
    w = counter(1.0)
    fs = [maker(1.0), lambda y: y * k]

    def g(y):
        return y if y < 0.4 else k * 0.2 + g(y * 0.5)

    def r(y, b=j):
        return y if y < 0.6 else d["k"] * 0.3 + q[0] * b * 0.01 + r(y * 0.7, b)

    def m(y):
        return c.shrink(y) + t * 0.1 if y > 0.7 else m(y + 0.5)

"""
EPILOGUE = (
    "    return s + t * 0.5 + k * 0.25 + c.k * 0.125 + o.k * 0.0625 + d['k'] * q[0] + sum(c.seen)\n"
)
CALLS = [
    "g({n})",
    "r({n})",
    "r({n}, {c})",
    "m({n})",
    "h({n})",
    "c.shrink({n})",
    "o.shrink({n})",
    "p.shrink({n})",
    "c.deep({n}, {i})",
    "c(s)",
    "p({n})",
    "c.note({n})",
    "p.tick({n})",
    "c.tick({n})",
    "w({n})",
    "d['f']({n})",
    "fs[{b}]({n})",
    "fs[-1]({n})",
    "even({n}, 3.0 * s % 2)",
    "walk((1.0, (k, {c})), {n})",
    "sum(steps({n}, k))",
    "functools.partial(r, b={c})({n})",
    "functools.reduce(lambda a, b: a * 0.5 + g(b), [s, t, {n}])",
    "sum(g(z) for z in [s, t])",
    "sum([r(z) for z in (s, {n})])",
    "sum(map(h, [s, t]))",
    "max(map(c, [s, t]))",
    "(lambda y: g(y) + k)({n})",
    "maker({c})({n})",
    "maker(s)({n})",
    "Cell({c}, h)({n})",
    "Cell(s).shrink({n})",
    "(o + c).shrink({n})",
    "(o + {c}).k",
    "o.twice",
    "Cell.shrink(p, {n})",
    "sorted([s, t, {n}], key=lambda z: -z)[0]",
    "next(steps(2.0 + {n}, k))",
    "getattr(c, 'shrink')({n})",
]
NUMBERS = [
    "s",
    "t",
    "x",
    "abs(s)",
    "s * t",
    "s + t",
    "np.sin(s)",
    "x * k",
    "1.5 * t",
    "q[1]",
    "c.k",
    "abs(t) + 1.0",
]
STATE = [
    "k = {c}",
    "k = k + 1.0",
    "k = {n}",
    "c.k = {c}",
    "c.k += 0.5",
    "p.k = {n}",
    "o.k = {call}",
    "d['k'] = {c}",
    "d['k'] = {n}",
    "q[0] = {c}",
    "q[0] = {n}",
    "d['f'] = maker({c})",
    "d['f'] = g",
    "fs.append(maker({c}))",
    "fs.append(g)",
    "fs[0] = c.shrink",
    "h = maker({c})",
    "h = g",
    "h = c",
    "p = o",
    "p = Cell({c})",
    "p = c",
    "c.inner = o",
    "c.inner = g",
    "o.inner = None",
    "q.append({n})",
    "t = {n}",
    "w = counter({c})",
    "c = Cell({c})",
    "c, o = o, c",
    "c.seen = []",
    "fs.reverse()",
    "k, t = t, k",
    "j = {c}",
    "d = dict(d, k={c})",
    "o.scale = {c}",
]

WORDS = {
    "call": CALLS,
    "n": NUMBERS,
    "c": ["0.5", "1.5", "2.0", "3.0"],
    "i": ["0", "2", "4"],
    "b": ["0", "1"],
}
SETS = [
    "s = {call} * 0.5",
    "t = {call} * 0.25",
    "s = s * 0.5 + {call} * 0.1",
    "t += {call} * 0.1",
    "s = {call} * 0.3 + {call} * 0.2",
]
TESTS = ["s > 0.7", "t < 0.5", "x > 1.0", "k > 2.0", "c.k > 1.0", "s > t"]
LOOPS = [
    "for i in range(3):",
    "for i in range(2):",
    "for z in [s, t]:",
    "for k in (1.0, 2.0):",
    "for z in steps(1.0 + abs(t), 0.5):",
]
LEAVES = ["if s > 3.0:", "    return s * k"]
NESTED = "abs({call})"
