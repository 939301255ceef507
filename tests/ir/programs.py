"""Programs for the tape, with arguments to trace them at and others to run them at.

Every program changes what it must not change: trip counts of zero, the other side of a branch,
other lengths. ``raises`` are arguments at which Python raises.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class TracedProgram:
    """A program and arguments; the first are those that it is traced at."""

    f: Callable[..., Any]
    runs: list[tuple[Any, ...]]
    raises: list[tuple[Any, ...]] = field(default_factory=list)

    def __str__(self):
        return self.f.__name__


CASES = []


def case(*runs, raises=()):
    def register(f):
        CASES.append(TracedProgram(f, list(runs), list(raises)))
        return f

    return register


def named(name):
    return next(c for c in CASES if c.f.__name__ == name)


X = np.array([0.3, -1.2, 2.0, 0.7])
Y = np.array([1.5, 0.2, -0.4, 3.0])
A = np.arange(12.0).reshape(4, 3) / 7 - 0.5
E = np.zeros(0)


# -- CASES, "Loops and branches on the tape"


@case((2.0, 3), (2.0, 4), (2.0, 0))
def power(a, n):
    a = 2 * a
    for _ in range(n):
        a *= n
    return a


@case((2.0, 3), (2.0, 4), (2.0, 5), (2.0, 0))
def doubled(x, n):
    for _ in range(n):
        x = x + x
    return x


@case((1.0, 3), (1.0, 4), (1.0, 0), (-2.5, 7))
def alternating(y, n):
    for i in range(n):
        y = 3 * y if i % 2 == 0 else -y
    return y


@case((2.0, 2, 3), (2.0, 3, 4), (2.0, 0, 4), (2.0, 3, 0))
def nested(a, n, m):
    for _ in range(n):
        for _ in range(m):
            a = a + a
    return a


@case((3.0,), (-3.0,), (0.0,), (math.nan,))
def absolute(x):
    if x > 0:
        return x
    return -x


@case((2.0,), (9.0,), (0.25,))
def newton(a):
    x = a
    while True:
        new = 0.5 * (x + a / x)
        if abs(new - x) < 1e-12:
            break
        x = new
    else:
        x = 0.0
    return new


@case((0.7, 3), (0.7, 4), (-1.3, 0), (2.0, 1))
def sines(x, n):
    s = 0.0
    for _ in range(n):
        s = s + np.sin(x) * np.cos(x) + np.sin(x)
        x = np.sin(x) + s
    return s


@case((X, 3), (X, 0), (Y, 4))
def element_sines(x, n):
    y = x.copy()
    for i in range(n):
        a = np.sin(y[i])
        y[i] = a * np.cos(y[i])
        y[i] = y[i] + np.sin(y[i]) + a
    return y


# -- loops


@case((X, 3), (X, 4), raises=[(X, 0), (X, 5)])
def last_item(x, n):
    s = 0
    for i in range(n):
        last = x[i]
        s += np.sin(last) * 2.0
    return s * last


@case((X, 4), (X, 1), raises=[(X, 0)])
def counter_afterwards(x, n):
    for i in range(n):
        for j in range(2):
            x = x * 0.5
    return x, i, j


@case((X, Y), (Y, X), (X[:1], Y[:1]), (E, E))
def recurrence(a, x):
    y = np.zeros_like(x)
    if len(x) > 0:
        y[0] = x[0]
    for i in range(1, len(x)):
        if a[i] < 0:
            continue
        y[i] = a[i] * y[i - 1] + np.sin(y[i - 1])
    return y


@case((X, 0.5), (X, 5.0), (Y, -9.0), (E, 1.0))
def first_above(x, limit):
    for i in range(len(x)):
        if x[i] > limit:
            return x[i] * i
    return -1.0


@case((X, 0.5), (X, 5.0), (E, 0.0))
def search_with_else(x, limit):
    found = 0.0
    for v in x:
        if v > limit:
            found = v
            break
    else:
        found = limit * 2
    return found


@case((10.0, 3.0), (1.0, 3.0), (100.0, 1.5))
def halving(x, stop):
    count = 0
    while x > stop:
        x = x / 2.0
        count += 1
        if count == 4:
            x = x - 1.0
            continue
        x = x + 0.125
    return x, count


@case((0.5, 3), (0.5, 1), (0.0, 6), (0.5, 0))
def fibonacci(x, n):
    a, b = x, 1.0
    for _ in range(n):
        a, b = b, a + b
    return a


@case((X, Y, 2), (Y, X, 3), (X, Y, 0))
def swapped_arrays(x, y, n):
    new, old = np.zeros_like(x), x.copy()
    for _ in range(n):
        for i in range(len(x)):
            new[i] = old[i] * y[i] + 1.0
        new, old = old, new
    return old


@case((X, 3), (Y, 0), (X, 1))
def unused_work(x, n):
    waste = np.zeros(4)
    t = 0.0
    u = 1.0
    s = 0.0
    for i in range(n):
        t, u = u * 2.0, t + 1.0
        waste[i] = np.exp(x[i])
        s = s + x[i]
    np.add.at(waste, [0, 1], t)
    return s


@case((X, 3), (X, 0))
def returned_work(x, n):
    kept = np.zeros(4)
    for i in range(n):
        kept[i] = np.exp(x[i])
    return kept


@case((X, 2.0, 3), (X, 0.0, 2), (Y, 3.0, 0))
def invariant(x, c, n):
    s = np.zeros_like(x)
    for i in range(n):
        s += np.exp(x) * np.sin(2 * c) * i
    return s


@case((X, 2, 3), (Y, 3, 0), (X, 0, 2))
def invariant_nested(x, n, m):
    s = 0.0
    for _ in range(n):
        for j in range(m):
            s = s + np.sum(np.exp(x)) * j
    return s


@case((X, 3), (X, 1))
def not_invariant(x, n):
    y = x.copy()
    s = 0.0
    for i in range(n):
        s = s + np.sum(np.exp(y))
        y[i] = 0.5
        s = s + np.sum(np.exp(y))
    return s


@case((X, Y, 3), (X, Y, 0), (Y, X, 4), raises=[(X, np.array([0.0, 1.0, 2.0, 3.0]), 5)])
def division_in_loop(x, y, n):
    s = 0.0
    for i in range(n):
        s = s + x[i] / y[i] + y[0] / x[0]
    return s


@case((1.0, 0.0, 0), (1.0, 2.0, 3), raises=[(1.0, 0.0, 2)])
def python_division(a, b, n):
    s = 0.0
    for _ in range(n):
        s = s + a / b
    return s


# -- branches


@case((1.0, 2.0), (-1.0, 2.0), (1.0, -2.0), (-5.0, 0.0), (0.0, 0.0))
def early_returns(x, y):
    if x > 0:
        if y > 0:
            return x * y
        z = x + y
    elif x < -4:
        return y
    else:
        z = x - y
    z = z * 2.0
    if not z > 1.0:
        return -z
    return z


@case((1.0,), (-1.0,))
def same_condition(x):
    a, b = 0.0, 0.0
    if x > 0:
        a = x * 2.0
    s = np.cos(x)
    if x > 0:
        b = a + s
    else:
        b = s
    if not x > 0:
        a = b + 1.0
    return a + b


@case((X, 1.0), (X, -1.0))
def stores_between(x, c):
    y = x.copy()
    if c > 0:
        y[0] = c
    y[1] = y[0] + 1.0
    if c > 0:
        y[0] = y[1]
    return y


@case((2.0, 3), (-2.0, 3), (2.0, 0), raises=[(0.5, 3)])
def checked(x, n):
    s = 0.0
    for _ in range(n):
        if 0 < x < 1:
            raise ValueError("between")
        assert x != 1.0, "one"
        s = s + x
    return s


@case((3.0, True), (3.0, False), (-3.0, True))
def defined_sometimes(x, flag):
    if flag:
        y = np.sqrt(abs(x))
    z = 2.0
    if flag:
        z = y * y
    return z


# -- memory


@case((X, 0.5), (Y, 2.0))
def through_views(x, c):
    y = x.copy()
    v = y[1:]
    s = y[2] * 1.0
    v[1] = c
    return s + y[2], y


@case((A, 2), (A, 0), (A, 3))
def growing_slices(a, n):
    s = 0.0
    for j in range(n):
        s = s + np.sum(a[j, :j] * a[j + 1, :j]) + np.sum(a[j, :j])
    return s


@case((X, np.array([0, 1, 1, 3])), (Y, np.array([2, 2, 2, 2])))
def scattered(x, index):
    y = np.zeros(5)
    np.add.at(y, index, x)
    y[0] += np.sum(y)
    np.add.at(y, index, np.sin(x))
    return y


@case((X,), (Y,))
def two_arrays(x):
    y = np.sin(x)
    z = np.sin(x)
    w = np.sin(x) + np.sin(x)
    z[0] = 5.0
    return y, z, w, np.cos(x), np.cos(x)


@case((X, 3), (X, 0))
def in_place(x, n):
    y = x * 1.0
    for k in range(n):
        y *= 1.5
        y[k] += np.sum(y)
        y[1:] -= y[:-1]
    return y


@case((X, 2), (X, 0))
def updates_argument(x, n):
    for i in range(n):
        x[i + 1] = x[i] ** 2
    return np.sum(x)


@case((A,), (A * 2,))
def reshaped(a):
    b = np.reshape(a.copy(), (-1,))
    b[1] = 7.0
    c = b.reshape(a.shape)
    t = np.sum(c)
    c[0] = 1.0
    return t, np.sum(b), np.sum(c)


# -- state


SCALE = 1.5
OFFSETS = np.array([0.1, 0.2, 0.3, 0.4])


@case((X, 2), (Y, 0))
def closure(x, n):
    rate = SCALE * 2.0

    def step(v, k):
        return v + OFFSETS * rate * k

    for k in range(n):
        x = step(x, k)
    return x


@dataclass
class State:
    t: float
    u: np.ndarray


def _advance(state, h):
    state.t = state.t + h
    state.u = state.u + h * np.cos(state.u)


@case((0.1, X, 3), (0.1, Y, 0))
def dataclass_state(h, u, n):
    state = State(0.0, u)
    for _ in range(n):
        _advance(state, h)
    return state.t, state.u


@case((0.7, 4), (0.7, 0), (0.2, 9))
def bounded_search(x, n):
    best = None
    for i in range(n):
        v = np.sin(x * i)
        if best is None or v > best:
            best = v
    return -1.0 if best is None else best


@case((X, 4), (X, 2), (Y, 0))
def left_by_two(x, n):
    total = 0.0
    for i in range(n):
        for j in range(i):
            if x[j] > 1.0:
                break
            total = total + x[j]
        else:
            total = total - 0.25
        if total < -1.0:
            return total
    return total + 10.0
