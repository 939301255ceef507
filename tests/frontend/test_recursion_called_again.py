"""Recursive functions that are called again where what they can see has changed.

Each is a program of its own in a tape: another one where the names around it, the attributes of
its object, or what a container holds are others by then.
"""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad


def rebound(x):
    k = 2.0

    def f(x):
        return x if x < 1.0 else k + f(x / k)

    a = f(x)
    k = 3.0
    return a + f(x)


class M:
    def __init__(self, k):
        self.k = k

    def f(self, x):
        return x if x < 1.0 else self.k + self.f(x / self.k)


def attribute(x):
    m = M(2.0)
    a = m.f(x)
    m.k = 3.0
    return a + m.f(x)


def two(x):
    return M(2.0).f(x) + M(3.0).f(x)


def sym(x):
    m = M(2.0)
    a = m.f(x)
    m.k = x / 3
    return a + m.f(x)


def dic(x):
    d = {"k": 2.0}

    def f(x):
        return x if x < 1.0 else d["k"] + f(x / d["k"])

    a = f(x)
    d["k"] = 3.0
    return a + f(x)


def lis(x):
    d = [2.0]

    def f(x):
        return x if x < 1.0 else d[0] + f(x / d[0])

    a = f(x)
    d[0] = 3.0
    return a + f(x)


def arr(x):
    d = np.array([2.0])

    def f(x):
        return x if x < 1.0 else d[0] + f(x / d[0])

    a = f(x)
    d[0] = 3.0
    return a + f(x)


def func(x):
    def f(h, x):
        return x if x < 1.0 else h(x) + f(h, h(x))

    return f(lambda t: t / 2, x) + f(lambda t: t / 3, x)


def mk(h):
    return lambda t: t / h


def func2(x):
    def f(h, x):
        return x if x < 1.0 else h(x) + f(h, h(x))

    return f(mk(2.0), x) + f(mk(3.0), x)


def loop(x):
    s = 0.0
    for k in (2.0, 3.0, 4.0):

        def f(x):
            return x if x < 1.0 else k + f(x / k)

        s = s + f(x)
    return s


def deflt(x):
    s = 0.0
    for k in (2.0, 3.0, 4.0):

        def f(x, k=k):
            return x if x < 1.0 else k + f(x / k)

        s = s + f(x)
    return s


def static_text(x):
    m = M("a")

    def f(x):
        return x if x < 1.0 else (2.0 if m.k == "a" else 3.0) + f(x / 2)

    a = f(x)
    m.k = "b"
    return a + f(x)


class S:
    __slots__ = ("k",)

    def __init__(self, k):
        self.k = k

    def f(self, x):
        return x if x < 1.0 else self.k + self.f(x / self.k)


def slots(x):
    m = S(2.0)
    a = m.f(x)
    m.k = 3.0
    return a + m.f(x)


def fattr(x):
    def f(x):
        return x if x < 1.0 else f.k + f(x / f.k)

    f.k = 2.0
    a = f(x)
    f.k = 3.0
    return a + f(x)


def nested(x):
    m = M(2.0)
    w = {"m": [m]}

    def f(x):
        return x if x < 1.0 else w["m"][0].k + f(x / w["m"][0].k)

    a = f(x)
    m.k = 3.0
    return a + f(x)


def other(x):
    k = 2.0

    def h():
        return k

    def f(x):
        return x if x < 1.0 else h() + f(x / h())

    a = f(x)
    k = 3.0
    return a + f(x)


def inloop(x):
    m = M(2.0)
    s = 0.0
    for i in range(4):
        s = s + m.f(x)
        m.k = m.k + 1.0
    return s


def inbranch(x):
    m = M(2.0)
    if x > 5:
        m.k = 3.0
    return m.f(x)


def rec_in_branch(x):
    m = M(2.0)
    a = 0.0
    if x > 5:
        a = m.f(x * 1.5)
    return m.f(x) + a


def defined_inside(x):
    def f(x, n):
        def g(y):
            return y if y < 1.0 else n + g(y / 2)

        return g(x) if x < 3.0 else g(x) + f(x / 2, n + 1.0)

    return f(x, 1.0) + f(x, 2.0)


def part(x):
    def f(k, x):
        return x if x < 1.0 else k + f(k, x / k)

    return functools.partial(f, 2.0)(x) + functools.partial(f, 3.0)(x)


def arrays(x):
    a = np.array([2.0, 3.0])
    b = np.array([1.0, 2.0])
    c = a

    def f(x):
        return x if x < 1.0 else c[0] + f(x / c[1])

    r = f(x)
    c = b
    return r + f(x)


def marr(x):
    a = np.array([2.0, 3.0])

    def f(x):
        return x if x < 1.0 else a[0] + f(x / a[1])

    r = f(x)
    a[1] = 2.0
    a[0] = x
    return r + f(x)


def scalar_k(x):
    k = x * 0.5

    def f(y):
        return y if y < 1.0 else k + f(y / 2)

    r = f(x)
    k = k * 2.0
    return r + f(x)


def signs_of_zero(x):
    m = M(0.0)

    def f(y):
        return y if y < 1.0 else np.copysign(y, m.k) + f(y / 2)

    a = f(x)
    m.k = -0.0
    return a * 2.0 + f(x)


def made_twice(x):
    return two_steps(x) + three_steps(x)


def with_steps(k):
    def f(x):
        return x if x < 1.0 else k + f(x / k)

    return f


two_steps, three_steps = with_steps(2.0), with_steps(3.0)


PROGRAMS = [
    rebound, attribute, two, sym, dic, lis, arr, func, func2, loop, deflt, static_text, slots, fattr, nested, other, inloop, inbranch, rec_in_branch, defined_inside, part, arrays, marr, scalar_k, made_twice, signs_of_zero,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_each_call_sees_what_is_there(f, backend):
    value = fwdad.jit(f, backend=backend)
    slope = fwdad.jit(fwdad.grad(f), backend=backend)
    pushed = fwdad.jit(fwdad.jacfwd(f), backend=backend)
    for x in (11.0, 7.5, 0.4):
        h = 1e-6
        expected = (f(x + h) - f(x - h)) / (2 * h)
        assert_allclose(value(x), f(x), rtol=1e-14)
        assert_allclose(slope(x), expected, rtol=1e-7)
        assert_allclose(pushed(x), expected, rtol=1e-7)
        assert_allclose(fwdad.grad(f)(x), expected, rtol=1e-7)
