"""``functools.lru_cache`` under derivatives: what is kept never carries another call's tangents."""

import functools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.frontend.trace import trace
from fwdad.ir.ops import Apply, walk
from tests.differences import central_differences
from tests.tiers import every

X = np.array([0.7, 0.7, -0.4])


@functools.lru_cache
def kernel(v, k=1.0):
    return np.sin(v) * k


@functools.lru_cache(maxsize=None)
def weights(n):
    return [math.comb(n, k) / 2**n for k in range(n)]


def shared(x):
    return kernel(x[0]) + kernel(x[1], 2.0) * kernel(x[0]) + kernel(x[2])


def of_known_arguments(x):
    return sum(w * v for w, v in zip(weights(3), x, strict=True)) * kernel(0.5) * x[0]


def recurrence(x):
    @functools.lru_cache(maxsize=None)
    def term(n):
        return x[n] if n < 2 else 0.5 * term(n - 1) + np.sin(term(n - 2)) * x[2]

    return term(40)


def in_branches_and_loops(x):
    @functools.cache
    def power(n):
        return x[0] if n == 1 else x[0] * power(n - 1)

    total = power(2)
    if x[2] > 0:
        total = total + power(5)
    else:
        total = total - power(4)
    k = 0
    while total < 3.0 and k < 5:
        total = total + power(3) * power(2) + x[1]
        k += 1
    return total * power(5)


def of_values(x):
    @functools.lru_cache
    def f(v, n):
        return v**n * x[2]

    return f(x[0], 2) + f(x[1], 2) * f(x[1], n=3)


def differentiated_inside(x):
    slope = fwdad.derivative(lambda y: kernel(y) * x[1], x[0])
    return slope * kernel(x[0])


PROGRAMS = [shared, of_known_arguments, recurrence, in_branches_and_loops, of_values,
            differentiated_inside]  # fmt: skip


@pytest.mark.slow_cases("shared")
@pytest.mark.parametrize("f", every(4, PROGRAMS), ids=lambda f: f.__name__)
def test_derivatives(f):
    assert_allclose(trace(f, X)(X), f(X), rtol=1e-14)
    for x in (X, X[[0, 2, 1]]):  # kept from before: primals, and other directions at equal values
        slope = central_differences(f, x)
        for n in (1, 2, 3):
            assert_allclose(fwdad.jacobian(f, x, chunk=n), slope, rtol=2e-7, atol=1e-8)
            assert_allclose(fwdad.jacobian(fwdad.jit(f), x, chunk=n), slope, rtol=2e-7, atol=1e-8)
        assert_allclose(fwdad.grad(f)(x), slope, rtol=2e-7, atol=1e-8)
        assert_allclose(fwdad.jacrev(f)(x), slope, rtol=2e-7, atol=1e-8)
        other = central_differences(lambda y: fwdad.jacobian(f, y) @ np.arange(1.0, 4.0), x)
        assert_allclose(fwdad.hessian(f, x) @ np.arange(1.0, 4.0), other, rtol=1e-6, atol=1e-7)


def test_directions_at_one_point_are_apart():
    for f in (shared, fwdad.jit(shared)):
        for direction in np.eye(3):
            _, y_dot = fwdad.jvp(f, X, direction)
            assert_allclose(y_dot, central_differences(shared, X) @ direction, rtol=1e-7, atol=1e-9)


def test_a_result_for_known_arguments_is_traced_once():
    tape = trace(recurrence, X)
    sines = [op for op in walk(tape.program.block)
             if isinstance(op, Apply) and op.function is np.sin]  # fmt: skip
    assert len(sines) == 39


@pytest.mark.parametrize("f", [recurrence, in_branches_and_loops])
def test_compiled(f):
    pytest.importorskip("numba")
    found = fwdad.jit(fwdad.grad(f), backend="numba")(X)
    assert_allclose(found, central_differences(f, X), rtol=2e-7, atol=1e-8)


def written_between(a):
    @functools.cache
    def scaled(k):
        return a[0] * k

    total = 0.0
    for _ in range(2):
        total += scaled(2.0)
        a[0] *= 3.0
    return total


def written_by_a_view(a):
    b = a.reshape(3, 1).T

    @functools.cache
    def scaled(k):
        return a[0] * k

    total = 0.0
    while total < 9.0:
        total += scaled(2.0) + 1.0
        b[0, 0] *= 3.0
    return total


def read_by_another_function(a):
    def read(k):
        return a[0] * k

    @functools.cache
    def scaled(k):
        return read(k)

    total = scaled(1.0)
    while total < 9.0:
        total += scaled(2.0) + 1.0
        a[0] *= 3.0
    return total


def bound_again(a):
    s = 1.0

    @functools.cache
    def scaled(v):
        return v * s

    total = scaled(a[0])
    s = 2.0
    return total + scaled(a[0])


def answer_that_is_written(a):
    @functools.cache
    def scaled(k):
        return a * k

    total, k = 0.0, 0
    while k < 3:
        w = scaled(2.0)
        w[0] *= 2.0
        total += w[0]
        k += 1
    return total


def answer_that_changes(a):
    @functools.cache
    def scaled(k):
        return [a[0] * k]

    total, k = 0.0, 0
    while k < 3:
        held = scaled(2.0)
        held[0] = held[0] * 2.0
        total += held[0]
        k += 1
    return total


def two_kinds_of_one_key(a):
    @functools.cache
    def half(n):
        return a[0] * (n // 2 if isinstance(n, int) else n / 2)

    return half(3) + half(3.0)


def inner_lists_that_change(a):
    held, i, total = [[a[0]]], 0, 0.0

    @functools.cache
    def scaled(k):
        return held[0][0] * k

    while i < 3:
        total += scaled(3.0)
        held[0][0] = held[0][0] * 2.0
        i += 1
    return total


def objects_that_change(a):
    o, i, total = Held(), 0, 0.0
    o.scale = a[0]

    @functools.cache
    def scaled(k):
        return o.scale * k

    while i < 3:
        total += scaled(2.0)
        o.scale = o.scale * 2.0
        i += 1
    return total


class Held:
    pass


REFUSED = [written_between, written_by_a_view, read_by_another_function, bound_again,
           answer_that_is_written, answer_that_changes, two_kinds_of_one_key]  # fmt: skip
WRITTEN_OUT = [inner_lists_that_change, objects_that_change]  # their iterations are not one body


@pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")
@pytest.mark.parametrize("f", [*REFUSED, *WRITTEN_OUT], ids=lambda f: f.__name__)
def test_what_python_keeps_although_it_has_changed(f):
    x = X.copy()
    slope = central_differences(lambda y: f(y.copy()), x)
    assert_allclose(fwdad.grad(f)(x), slope, rtol=1e-7, atol=1e-8)
    for n in (1, 2, 3):
        assert_allclose(fwdad.jacobian(f, x, chunk=n), slope, rtol=1e-7, atol=1e-8)
    for compiled in (fwdad.jit(fwdad.grad(f), backend="numpy"), fwdad.jit(f, backend="numpy")):
        if f in REFUSED:
            with pytest.raises(fwdad.errors.UntraceableError, match="first result"):
                compiled(x)
        else:
            expected = slope if np.ndim(compiled(x)) else f(x.copy())
            assert_allclose(compiled(x), expected, rtol=1e-7, atol=1e-8)
    assert_allclose(x, X, rtol=0)


def rectified(v):
    if v > 0:
        return v * 2.0
    return -v


def branches_and_arguments_of_loops(x):
    rectify = functools.cache(rectified)

    @functools.cache
    def weight(n):
        return 1.0 if n < 2 else weight(n - 1) * x[1] + weight(n - 2)

    total = rectify(x[0]) * rectify(-x[2])
    for i in range(len(x)):
        total += weight(3) * x[i] * rectify(x[i])
    return total


def lengths_of_what_is_written(x):
    y = x * 1.0

    @functools.cache
    def scaled(k):
        return len(y) * k

    for i in range(3):
        y[i] *= scaled(2.0) * x[i]
    return np.sum(y)


@pytest.mark.parametrize("f", [branches_and_arguments_of_loops, lengths_of_what_is_written])
def test_what_does_not_change_is_traced(f):
    slope = central_differences(f, X)
    for n in (1, 2, 3):
        found = fwdad.jacobian(fwdad.jit(f, backend="numpy"), X, chunk=n)
        assert_allclose(found, slope, rtol=1e-7, atol=1e-8)
    assert_allclose(fwdad.jit(fwdad.grad(f), backend="numpy")(X), slope, rtol=1e-7, atol=1e-8)
