"""Random programs of exceptions, context managers, patterns and optional values.

``f`` takes a number, and may raise.
"""

PROLOGUE = """\
import contextlib
import math

import numpy as np


class Trouble(Exception):
    def __init__(self, amount):
        super().__init__(amount)
        self.amount = amount


class Worse(Trouble):
    pass


class Scope:
    def __init__(self, k, swallow=False):
        self.k = k
        self.swallow = swallow
        self.open = False

    def __enter__(self):
        self.open = True
        self.k = self.k + 0.25
        return self

    def __exit__(self, kind, error, trace):
        self.open = False
        self.k = self.k * 0.9
        return self.swallow and kind is not None and issubclass(kind, Trouble)


class Point:
    __match_args__ = ("u", "v")

    def __init__(self, u, v):
        self.u = u
        self.v = v


def checked(y, most):
    if y > most:
        raise Trouble(y - most)
    if y < -most:
        raise Worse(y)
    return y * 0.5


def first_above(values, level):
    for y in values:
        if y > level:
            return y
    return None


def kind_of(item):
    match item:
        case Point(u, v):
            return u * 0.5 + v
        case [a, b]:
            return a - b
        case [a, *rest]:
            return a + len(rest)
        case {"w": w}:
            return w * 2.0
        case None:
            return -1.0
        case int() | float():
            return item * 0.1
        case _:
            return 0.25


def retried(y, times):
    for k in range(times):
        try:
            return checked(y, 1.0) * (k + 1)
        except Worse:
            y = y * -0.5
        except Trouble as trouble:
            y = y - trouble.amount * 0.6
        finally:
            y = y * 0.99
    return y


def cleaned(y, notes):
    try:
        notes.append(y)
        if y > 0.9:
            return y * 2.0
        y = y + checked(y * 2.0, 1.5)
    except Trouble as trouble:
        return trouble.amount
    else:
        y = y * 1.1
    finally:
        notes.append(y * 0.5)
    return y


def f(x):
    s, t, u = x, 0.5, None
    k, n = 2, 3
    sc = Scope(1.5)
    sw = Scope(0.5, True)
    notes = []
    best = None
    item = Point(x, 0.5)
    d = {"w": x}
    q = [0.3, x, 1.2]

"""
EPILOGUE = "    return s + t * 0.5 + (0.1 if u is None else u) + k * 0.01 + sc.k + sw.k * 0.5 + sum(notes) * 0.01 + kind_of(item) + d['w'] + q[0] * q[1] + (0.0 if best is None else best) + n * 0.001\n"
CALLS = [
    "retried({n}, {i})",
    "cleaned({n}, notes)",
    "kind_of(item)",
    "kind_of({item})",
    "(first_above(q, {n}) or 0.2)",
    "sc.k * {n}",
    "min(max({n}, -1.0), 1.0)",
    "(y := {n}) * 0.5",
    "divmod(k, 3)[1] * {n}",
    "(k // 2) * {n}",
    "sum(q[i] for i in range(len(q)) if i % 2 == k % 2)",
    "({n} if u is None else u)",
    "({n} if best is None or best < {n} else best)",
    "math.sqrt(abs({n}))",
    "len(notes) * {n}",
    "(d.get('z') or {n})",
    "d.get('w', 1.0)",
    "dict(zip('abc', q))['b']",
    "[y for y in q if y is not None][-1]",
    "q[k % 3]",
    "(s if 0.2 < s < 1.5 else t)",
    "next((y for y in q if y > 0.5), 0.0)",
    "max(q, key=lambda y: abs(y - {c}))",
    "any(y > 1.0 for y in q) * {n}",
    "all(y > -5.0 for y in q) * {n}",
    "sum(a * b for a, b in zip(q, reversed(q)))",
    "float(np.clip({n}, 0.1, 0.9))",
]
NUMBERS = [
    "s",
    "t",
    "x",
    "abs(s)",
    "s * t",
    "s + t",
    "math.sin(s)",
    "x * k",
    "1.5 * t",
    "q[1]",
    "sc.k",
    "-s",
    "d['w']",
]
STATE = [
    "u = {n}",
    "u = None",
    "u = first_above(q, {n})",
    "best = {n} if best is None else max(best, {n})",
    "item = None",
    "item = {item}",
    "d['w'] = {n}",
    "d = {'w': {n}, 'z': 0.5}",
    "q[{j}] = {n}",
    "k = k + 1",
    "n += k",
    "k = int(n * 1.5)",
    "sc.k = {n}",
    "notes = notes[-2:]",
    "notes += [{n}]",
    "q = q[::-1]",
    "q = [*q[1:], {n}]",
    "s, t = t, s",
    "t = {n}",
    "sc, sw = sw, sc",
    "k, n = n, k",
    "notes.clear()",
    "assert s is not None",
    "q[{j}], s = s, q[{j}]",
    "k -= 1",
    "d |= {'w': {n}}",
    "best = None",
    "n = len(notes)",
]
WORDS = {
    "call": CALLS,
    "item": [
        "Point({n}, {n})",
        "[{n}, {n}]",
        "[{n}, 1.0, 2.0]",
        "{'w': {n}}",
        "None",
        "{n}",
        "3",
        "'text'",
    ],
    "n": NUMBERS,
    "c": ["0.5", "1.5", "2.0"],
    "i": ["1", "2", "3"],
    "j": ["0", "1", "2"],
    "block": [
        "s = {call} * 0.5",
        "t = checked({n}, 1.0)",
        "s = s * 0.5 + {call} * 0.1",
        "raise Trouble({n})",
        "u = {n}",
        "k = k + 1",
        "notes.append({n})",
        "d['w'] = {call}",
        "q[0] = checked({n}, 0.8)",
        "t = retried({n}, 2)",
    ],
    "exc": ["Trouble", "Worse", "(Worse, ZeroDivisionError)", "Exception", "ValueError"],
}
SETS = [
    "s = {call} * 0.5",
    "t = {call} * 0.25",
    "s = s * 0.5 + {call} * 0.1",
    "t += {call} * 0.1",
    "s = {call} * 0.3 + {call} * 0.2",
    "try:\n    {block}\n    {block}\nexcept Trouble as e:\n    t = e.amount * 0.5\n    {block}",
    "try:\n    {block}\nexcept Trouble:\n    s = s * 0.5\nelse:\n    {block}\nfinally:\n    k = k + 1",
    "with sc as w:\n    s = s + w.k * 0.1\n    {block}",
    "try:\n    with sc:\n        {block}\n        {block}\nexcept Trouble as e:\n    u = e.amount",
    "with sw:\n    {block}\n    {block}",
    "with contextlib.suppress(Trouble):\n    {block}\n    {block}",
    "match {item}:\n    case Point(u=a):\n        s = a * 0.5\n    case [a, _] if a > 0.4:\n        t = a\n    case None | 'text':\n        k = k + 1\n    case _:\n        s = s * 0.9",
    "while s > 1.0:\n    s = s * 0.6\n    if t > s:\n        break\nelse:\n    t = t + 0.1",
    "for y in q:\n    if y > 1.0:\n        continue\n    s = s + y * 0.1\n    if s > 2.0:\n        break\nelse:\n    k = k + 2",
]
TESTS = [
    "s > 0.7",
    "t < 0.5",
    "x > 1.0",
    "k > 2",
    "u is None",
    "u is not None and u > 0.3",
    "best is None or best < s",
    "not notes",
    "len(notes) > 2",
    "isinstance(item, Point)",
    "s > t and k % 2",
    "'z' in d",
]
LOOPS = [
    "for i in range(3):",
    "for i, y in enumerate(q):",
    "for z in [s, t]:",
    "for a, b in zip(q, q[1:]):",
    "for key, y in list(d.items()):",
    "while k < 5 and s < 3.0:\n    k = k + 1\n    s = s + 0.1\nfor i in range(2):",
]
LEAVES = ["if s > 3.0:", "    return s * k"]
NESTED = "({call} * 0.5)"
