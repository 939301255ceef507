"""Random programs of functions and objects that share arrays, change them and recur on them.

Views, stores in place, arrays exchanged between names, attributes and containers, generators and
closures that write. ``f`` takes four numbers in an array.
"""

PROLOGUE = """\
import functools

import numpy as np


class Store:
    def __init__(self, v, k=1.0):
        self.v = v
        self.k = k
        self.log = []

    def put(self, i, y):
        self.v[i] = y
        return self

    def add(self, y):
        self.v += y * self.k
        return self.v

    def swap(self):
        self.v, old = self.v[::-1].copy(), self.v
        return old

    def halve(self, i=0):
        if abs(self.v[i]) < 0.4:
            return self.v[i]
        self.v[i] *= 0.5
        return self.halve(i) + 0.1

    def total(self):
        return self.v @ self.v * self.k

    def keep(self, y):
        self.log.append(y)
        return self.log[-1]

    def __getitem__(self, i):
        return self.v[i]

    def __setitem__(self, i, y):
        self.v[i] = y * self.k

    def __len__(self):
        return len(self.v)

    def __iter__(self):
        return iter(self.v)

    def __matmul__(self, o):
        return self.v @ o

    def __iadd__(self, y):
        self.v = self.v + y
        return self


def fold(v):
    return v[0] if len(v) == 1 else v[0] * 0.5 + fold(v[1:])


def until(v, y):
    if y < 0.3:
        return y
    v[0] += y * 0.1
    return until(v, y * 0.5) + v[1]


def spread(v, i, y):
    if i >= len(v):
        return y
    v[i] = v[i] * y
    return spread(v, i + 1, y * 0.9) + v[i]


def parts(v):
    for i in range(len(v) - 1):
        v[i] = v[i] * 0.5 + v[i + 1]
        yield v[i]


def writer(v):
    def put(i, y):
        v[i] = y
        return v.sum()

    return put


def scaled(v, out=None):
    out = v if out is None else out
    out[:] = v * 0.5 + 0.1
    return out


def biggest(v):
    best, at = v[0], 0
    for i, y in enumerate(v):
        if y > best:
            best, at = y, i
    return best * (at + 1)


def f(x):
    a = x * 1.0
    b = np.zeros(4)
    e = a[1:3]
    s = x[0] * 0.5
    k = 1.5
    c = Store(b, 0.5)
    o = Store(a.copy(), 2.0)
    d = {"v": a, "s": o}
    q = [a, b]
    w = writer(b)
    r = []

    def g(y):
        return y if y < 0.45 else k * 0.1 + b[0] * 0.01 + g(y * 0.6)

    def h(i):
        nonlocal k
        k = k * 0.9
        a[i] += k * s
        return a[i]

"""
EPILOGUE = "    return s + a @ b * 0.1 + (a * a).sum() + b.sum() + e.sum() + c.v.sum() * 0.3 + o.v @ o.v * 0.2 + d['v'][0] + q[0].sum() * q[1][1] + k + sum(map(np.sum, r))\n"
CALLS = [
    "g(abs({n}))",
    "h({i})",
    "c.put({i}, {n}).total()",
    "o.put({i}, {n})[{i}]",
    "c.halve({i})",
    "o.halve()",
    "c.total()",
    "o.total()",
    "c.keep({n})",
    "fold({v})",
    "until({v}, abs({n}))",
    "spread({v}, {i}, {n})",
    "sum(parts({v}))",
    "w({i}, {n})",
    "writer({v})({i}, {n})",
    "biggest({v})",
    "scaled({v})[0]",
    "scaled({v}, {v})[1]",
    "len({v}) * {n}",
    "(o @ {v})",
    "sum(o)",
    "sum([y * {n} for y in {v}])",
    "max({v})",
    "np.dot({v}, {v})",
    "d['s'].total()",
    "d['v'][{i}]",
    "q[{j}][{i}]",
    "functools.reduce(lambda p, y: p * 0.5 + y, {v}, {n})",
    "(lambda v: v[0] * {n})({v})",
    "np.where({v} > {n}, {v}, 0.5).sum()",
    "sorted({v}, key=lambda y: -y)[0]",
    "any(y > 2.0 for y in {v}) * {n}",
    "c.add({n})[{i}]",
    "next(parts({v}))",
    "np.cumsum({v})[-1]",
    "float(len(o)) * {n}",
    "(c[{i}] + o[{i}])",
]
NUMBERS = [
    "s",
    "a[0]",
    "b[1]",
    "e[0]",
    "c.v[2]",
    "o.v[-1]",
    "x[1]",
    "s * 0.5",
    "np.sin(s)",
    "a.sum() * 0.2",
    "k",
    "e[1] * s",
    "d['v'][2]",
]
STATE = [
    "a[{i}] = {n}",
    "b[{i}] += {n}",
    "e[0] = {n}",
    "e *= 0.5",
    "a += {v} * 0.1",
    "b[:] = {v}",
    "b = {v} * 1.0",
    "a = b",
    "a = a.copy()",
    "c.v = {v}",
    "o.v = {v}",
    "c.v = a",
    "o.v = b",
    "c, o = o, c",
    "d['v'] = {v}",
    "d['v'] = c.v",
    "q[{j}] = {v}",
    "q.reverse()",
    "e = {v}[1:3]",
    "w = writer({v})",
    "w = writer(a)",
    "c[{i}] = {n}",
    "o += {n}",
    "c += {v}",
    "o.swap()",
    "a, b = b, a",
    "k = {n}",
    "k = 2.0",
    "c.k = {n}",
    "o.k = 0.5",
    "c.v[{i}] = {n}",
    "o.v[1:] = {v}[:3]",
    "d['s'] = c",
    "np.add({v}, 0.1, out=b)",
    "b[b > 1.0] = {n}",
    "a[[0, 2]] = {v}[:2]",
    "scaled(a, b)",
    "scaled(b)",
    "h(0)",
    "s = {n}",
    "e = a[2:]",
    "e = o.v[:2]",
    "a[1:] = a[:-1]",
    "np.clip(b, -1.0, 1.0, out=b)",
    "r.append({v})",
    "r.append(e)",
    "a.sort()",
    "b.fill({n})",
    "a -= b",
    "b[1:3] *= e",
    "c.v, o.v = o.v, c.v",
]

WORDS = {
    "call": CALLS,
    "n": NUMBERS,
    "v": [
        "a",
        "b",
        "c.v",
        "o.v",
        "q[0]",
        "q[1]",
        "d['v']",
        "a[::-1]",
        "b[:]",
        "(a + b)",
        "o.v.copy()",
        "a.reshape(2, 2)[0].repeat(2)",
        "x.copy()",
        "np.sin(a)",
    ],
    "i": ["0", "1", "2", "3"],
    "j": ["0", "1"],
}
SETS = [
    "s = {call} * 0.3",
    "s = s * 0.5 + {call} * 0.1",
    "a[{i}] = {call} * 0.3",
    "b[{i}] += {call} * 0.1",
    "s = {call} * 0.2 + {call} * 0.1",
    "s = np.tanh({call})",
]
TESTS = ["s > 0.5", "a[0] > b[0]", "x[0] > 0.9", "k > 1.0", "a.sum() > b.sum()", "len(r) > 0"]
LOOPS = [
    "for i in range(3):",
    "for i in range(len(a)):",
    "for y in a:",
    "for v in (a, b):",
    "for i, y in enumerate(b):",
    "for y in parts(a):",
    "for v in q:",
    "for y, z in zip(a, b):",
]
LEAVES = ["if s > 3.0:", "    return s * a.sum()"]
NESTED = "({call} * 0.2)"
