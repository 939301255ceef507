"""Programs with ``contextlib.ExitStack``, and managers that are asked what they suppress."""

import contextlib

import numpy as np

from tests.frontend.agreement import Programs

PROGRAMS = program = Programs()
V = np.array([0.5, -1.25, 2.0, 3.5])
W = np.array([2.0, 0.125, -4.0, 1.0])


class LeavingError(Exception):
    pass


class Scaled:
    def __init__(self, a, factor):
        self.a, self.factor = a, factor

    def __enter__(self):
        self.a *= self.factor
        return self.a[0] * self.factor

    def __exit__(self, kind, error, traceback):
        self.a += self.factor


class Suppressing(Scaled):
    def __init__(self, a, factor, suppressed):
        super().__init__(a, factor)
        self.suppressed = suppressed

    def __exit__(self, kind, error, traceback):
        super().__exit__(kind, error, traceback)
        return kind is not None and issubclass(kind, self.suppressed)


@contextlib.contextmanager
def shifted(a, by):
    a += by
    try:
        yield a.sum()
    finally:
        a -= 2 * by


@program((V, 2.0), (W, -3.0))
def in_reverse_order(a, x):
    order = []
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(Scaled(a, x))
        for k in range(3):
            stack.enter_context(shifted(a, x * k))
            stack.callback(order.append, k * x)
        stack.push(Scaled(a, 3.0))
        stack.enter_context(contextlib.nullcontext())
        y = first * a[1]
    return y, order, a


@program((V, 2.0), (W, -3.0))
def suppressed_in_the_middle(a, x):
    with contextlib.ExitStack() as outer:
        outer.enter_context(Scaled(a, 2.0))
        with contextlib.ExitStack() as stack:
            stack.enter_context(Suppressing(a, x, ArithmeticError))
            stack.enter_context(Suppressing(a, x, KeyError))
            a[0] = 5.0
            raise KeyError
        a[1] = x
        raise_it = [1.0, x][1] * a[0]
        a[2] *= raise_it
    return a


@program((V, 2.0), (W, -3.0))
def replaced_on_the_way_out(a, x):
    def fails():
        raise LeavingError

    def looks(kind, error, traceback):
        a[3] = 1.0 if kind is LeavingError else 2.0

    try:
        with contextlib.ExitStack() as stack:
            stack.push(looks)
            stack.callback(fails)
            stack.enter_context(Scaled(a, x))
            raise IndexError
    except LeavingError:
        a[0] *= x
    return a


@program((V, 2.0, 3), (W, -3.0, 0))
def left_by_a_return(a, x, n):
    with contextlib.ExitStack() as stack:
        stack.enter_context(Scaled(a, x))
        for k in range(n):
            a[k] += x
            if a[k] > 2.0:
                return a[0] + 1.0
        a[3] *= 2.0
    return a[1]


@program((V, 1), (W, 3))
def asked_for_what_may_come(a, k):
    """An index may be out of range, which the manager does not suppress."""
    with Suppressing(a, 2.0, ZeroDivisionError), contextlib.suppress(KeyError):
        a[k] = a[1] * 2.0
    return a


def scale(a, x):
    a *= x


def of_all(x):
    """For derivatives."""
    a = x * x
    with contextlib.ExitStack() as stack:
        y = stack.enter_context(Scaled(a, x[0]))
        stack.callback(scale, a, x[1])
        if a[2] > 1:
            a[1] = y * x[2]
        with contextlib.suppress(ArithmeticError), contextlib.ExitStack() as inner:
            inner.enter_context(shifted(a, x[1]))
            a[0] *= a[1]
            raise ZeroDivisionError
    return a @ np.array([1.0, 2.0, 3.0]) * y
