"""``functools.lru_cache`` under derivatives: what is kept never carries another call's tangents."""

import functools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.tape.ops import Apply, walk
from fwdad.tracing.trace import trace

X = np.array([0.7, 0.7, -0.4])
STEP = 1e-6


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


def differences(f, x):
    return np.array([(f(x + h) - f(x - h)) / (2 * STEP) for h in np.eye(len(x)) * STEP])


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_derivatives(f):
    assert_allclose(trace(f, X)(X), f(X), rtol=1e-14)
    for x in (X, X[[0, 2, 1]]):  # kept from before: primals, and other directions at equal values
        slope = differences(f, x)
        for n in (1, 2, 3):
            assert_allclose(fwdad.jacobian(f, x, chunk=n), slope, rtol=2e-7, atol=1e-8)
            assert_allclose(fwdad.jacobian(fwdad.jit(f), x, chunk=n), slope, rtol=2e-7, atol=1e-8)
        assert_allclose(fwdad.grad(f)(x), slope, rtol=2e-7, atol=1e-8)
        assert_allclose(fwdad.jacrev(f)(x), slope, rtol=2e-7, atol=1e-8)
        other = differences(lambda y: fwdad.jacobian(f, y) @ np.arange(1.0, 4.0), x)
        assert_allclose(fwdad.hessian(f, x) @ np.arange(1.0, 4.0), other, rtol=1e-6, atol=1e-7)


def test_directions_at_one_point_are_apart():
    for f in (shared, fwdad.jit(shared)):
        for direction in np.eye(3):
            _, y_dot = fwdad.jvp(f, X, direction)
            assert_allclose(y_dot, differences(shared, X) @ direction, rtol=1e-7, atol=1e-9)


def test_a_result_for_known_arguments_is_traced_once():
    tape = trace(recurrence, X)
    sines = [op for op in walk(tape.program.block)
             if isinstance(op, Apply) and op.function is np.sin]  # fmt: skip
    assert len(sines) == 39


@pytest.mark.parametrize("f", [recurrence, in_branches_and_loops])
def test_compiled(f):
    pytest.importorskip("numba")
    found = fwdad.jit(fwdad.grad(f), backend="numba")(X)
    assert_allclose(found, differences(f, X), rtol=2e-7, atol=1e-8)
