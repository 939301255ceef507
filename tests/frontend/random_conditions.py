"""Random programs whose conditions call functions: with loops, branches and returns inside.

``while``, ``break``, ``continue`` and ``else``, conditional expressions, chained comparisons,
``and`` and ``or`` of values, assignment expressions, and arrays that are kept or replaced on some
paths. ``f`` takes four numbers in an array.
"""

PROLOGUE = """\
import numpy as np


def squares(v):
    total = 0.0
    for y in v:
        total += y * y
    return total


def first_above(v, y):
    for i in range(len(v)):
        if v[i] > y:
            return v[i]
    return y * 0.5


def count_above(v, y):
    n = 0
    for z in v:
        if z > y:
            n += 1
    return n


def halved(y, limit=0.4):
    while limit < abs(y) < 1e9:
        y = y * 0.5
        if y < -1.0:
            break
    return y


def newton(y):
    for _ in range(20):
        step = (y * y - 2.0) / (2.0 * y)
        if abs(step) < 1e-9:
            return y
        y = y - step
    return y


def smaller(v, w):
    return v if v @ v < w @ w else w


def clipped(v, y):
    out = v * 1.0
    for i in range(len(v)):
        if out[i] > y:
            out[i] = y + 0.1 * (out[i] - y)
        elif out[i] < -y:
            continue
        else:
            out[i] *= 0.9
    return out


def sign(y):
    return 1.0 if y > 0 else -1.0


def shifted(v, n):
    return np.concatenate([v[n:], v[:n]])


class Keeper:
    def __init__(self, v):
        self.v = v
        self.best = None

    def offer(self, y):
        if self.best is None or y > self.best:
            self.best = y
        return self.best

    def big(self):
        return self.v.sum() > 0.8

    def __bool__(self):
        return self.best is not None

    def __gt__(self, y):
        return self.v[0] > y


def f(x):
    a = x * 1.0
    b = x[::-1] * 0.6
    s = x[0] * 0.5
    t = x[1] * x[2]
    n = 0
    o = Keeper(b)
    q = []

"""
EPILOGUE = "    return s + t * 0.3 + a @ b * 0.1 + b.sum() + (a * a).sum() * 0.2 + n * 0.1 * s + o.v.sum() * 0.2 + sum(q)\n"
CALLS = [
    "squares({v})",
    "first_above({v}, {n})",
    "count_above({v}, {n}) * {n}",
    "halved({n})",
    "halved({n}, 0.2)",
    "newton(abs({n}) + 0.5)",
    "smaller({v}, {v})[{i}]",
    "clipped({v}, abs({n}))[{i}]",
    "sign({n}) * {n}",
    "shifted({v}, {i})[0]",
    "o.offer({n})",
    "({n} if {test} else {n})",
    "({n} if {test} else {n} * 0.5)",
    "max({n}, {n})",
    "min({v})",
    "(({n}) and ({n}) * 2.0)",
    "(({n}) or 0.3)",
    "sum(y for y in {v} if y > 0.2)",
    "sum(y * 0.5 if y > {n} else y for y in {v})",
    "np.where({v} > {n}, {v}, 0.3).sum()",
    "({v} if {test} else {v} * 0.5)[{i}]",
    "[{n}, {n}][int({test})]",
    "(r := {n} * 0.5) * r",
    "next((y for y in {v} if y > 0.4), 0.1)",
    "all(y > -2.0 for y in {v}) * {n}",
    "{v}[{v} > 0.2].sum()",
    "float(np.argmax({v})) * {n}",
    "len(q) * {n}",
    "(q[-1] if q else {n})",
]
NUMBERS = ["s", "t", "a[0]", "b[1]", "x[2]", "s * t", "np.sin(s)", "a.sum() * 0.3", "0.3", "s - t"]
STATE = [
    "a[{i}] = {n}",
    "b[{i}] += {n}",
    "a *= 0.5",
    "b = a",
    "a = {v} * 1.0",
    "a = clipped(a, 0.7)",
    "b = smaller(a, b)",
    "o.v = {v}",
    "o = Keeper({v})",
    "s = {n}",
    "t = t * 0.5 + {n} * 0.1",
    "n += 1",
    "n = count_above(a, 0.4)",
    "q.append({n})",
    "a, b = b, a",
    "s, t = t, s",
    "a[a > 0.9] = {n}",
    "if {test}: a[{i}] = {n}",
    "if {test}: b = a",
    "if {test}: a = a * 0.5",
    "if {test}: s = {n}",
    "if {test}: o.v = a",
    "assert s < 100.0",
    "a[{i}] = {n} if {test} else a[{i}]",
]
TESTS = [
    "s > 0.5",
    "squares(a) > 1.0",
    "first_above(b, 0.2) > s",
    "count_above(a, 0.3) > 1",
    "halved(s) < 0.25",
    "newton(abs(t) + 0.5) > 1.0",
    "0.2 < s < 0.9",
    "s > 0.2 and t > 0.1",
    "s > 0.7 or squares(b) > 0.5",
    "not squares(a) > 1.5",
    "o.big()",
    "bool(o)",
    "o > 0.3",
    "n < 2",
    "(w := squares(b)) > 0.4 and w < 2.0",
    "any(y > 0.9 for y in a)",
    "np.all(a > -1.0)",
    "a[0] > b[0] > -1.0",
    "len(q) > 0",
    "smaller(a, b) is a",
]
WORDS = {
    "call": CALLS,
    "test": TESTS,
    "n": NUMBERS,
    "v": ["a", "b", "x", "o.v", "(a + b)", "a[::-1]", "np.sin(b)", "clipped(a, 0.5)"],
    "i": ["0", "1", "2", "3"],
}
SETS = [
    "s = {call} * 0.3",
    "s = s * 0.5 + {call} * 0.1",
    "t = {call} * 0.2 + {call} * 0.1",
    "a[{i}] = {call} * 0.3",
    "b[{i}] += {call} * 0.1",
    "s = np.tanh({call})",
    "if {test}: s = {call} * 0.3\nelse: t = {call} * 0.2",
]
LOOPS = [
    "for i in range(3):",
    "m = 0\nwhile squares(a) > 0.6 and m < 9:\n    a, m = a * 0.7, m + 1",
    "m = 0\nwhile s < 0.8 and m < 4:\n    s, m = s * 1.3 + 0.1, m + 1",
    "m = 0\nwhile first_above(b, 0.2) > 0.3 and m < 9:\n    b, m = b * 0.6, m + 1",
    "for y in a:\n    if y > 0.9: break\n    if y < 0.0: continue\n    s += y * 0.1",
    "for i, y in enumerate(b):\n    if squares(a) > 3.0: break\n    a[i] += y * 0.3",
    "m = 0\nwhile True:\n    s, m = halved(s) + 0.05, m + 1\n    if m > 2 or s < 0.3: break",
    "for y in a:\n    q.append(y * 0.1)\n    if len(q) > 5: break",
]
LEAVES = ["if squares(a) > 3.0:", "    return s * a.sum()"]
NESTED = "({call} * 0.2)"
