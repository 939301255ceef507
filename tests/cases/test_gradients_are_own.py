"""Gradients that a program takes belong to it: it may write into them, and into what they are of.

Where a cotangent is an argument, a captured array, another cotangent or a value, it is copied.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.differences import central_differences

X = np.array([0.4, 0.9, -0.3])
K = np.array([1.0, 2.0, 3.0])


def of_an_argument(x):
    g = fwdad.grad(lambda a: np.sum(a * x))(x)
    g[0] = 9.0 * x[1]
    return x * g


def of_a_global(x):
    g = fwdad.grad(lambda a: np.sum(a * K))(x)
    g *= x
    return g * K


def of_a_slice(x):
    A = np.outer(x, x)
    g = fwdad.grad(lambda a: np.sum(a * A.T[1]))(x)
    g += A[0]
    return g * A[:, 1]


def before_its_argument_is_written(x):
    w = x * 1.0
    g = fwdad.grad(lambda a: np.sum(a * w))(x)
    w[0] = 100.0
    return g * x


def summed_up(x):
    total = fwdad.grad(lambda a: np.sum(a * x))(x)
    for _ in range(3):
        total += fwdad.grad(lambda a: np.sum(np.sin(a) * x))(total)
    return total


def with_its_value(x):
    y, g = fwdad.value_and_grad(lambda a: np.sum(a * x))(x)
    g -= 0.5 * x
    return g * x + y


def with_aux(x):
    g, aux = fwdad.grad(lambda a: (np.sum(np.exp(a)), np.exp(a)), has_aux=True)(x)
    g[0] = 0.0
    return aux * x


def of_two_arguments(x):
    d, e = fwdad.grad(lambda a, b: np.sum((a + b) ** 2), argnums=(0, 1))(x, 2 * x)
    d *= 0
    return e * x


def of_a_dict(x):
    d = fwdad.grad(lambda t: np.sum((t["a"] + t["b"]) ** 2))({"a": x, "b": 2 * x})
    d["a"][1:] = 0.0
    return d["b"] * x


def of_a_mean(x):
    g = fwdad.grad(lambda a: np.mean(a) * x[0])(x)
    g[1] = 5.0 * x[2]
    return g * x


def in_a_loop(x):
    w, m = x * 1.0, np.zeros(3)
    for _ in range(3):
        g = fwdad.grad(lambda w: np.sum(w * np.sin(x)))(w)
        m += g
        g[0] = 0.0
        w -= 0.1 * m + g
    return w


def pulled_back(x):
    _, pull = fwdad.vjp(lambda a, b: a + b, x, x)
    d, e = pull(np.ones(3))
    d[0] = 9.0
    return e * x


def pulled_back_twice(x):
    y, pull = fwdad.vjp(np.exp, x)
    first, second = pull(np.ones(3)), pull(x)
    first[0] = 0.0
    return y * x + first + second


def pulled_back_for_several(x):
    _, pull = fwdad.vjp(lambda a, b: a + b, x, x)
    d, e = pull(np.eye(3))
    d[0] = 0.0
    return e @ x


def pulled_back_as_given(x):
    bar = x * 2.0
    g = fwdad.vjp(lambda a: a + 1.0, x)[1](bar)
    g[0] = 0.0
    return bar * x + g


PROGRAMS = [
    of_an_argument, of_a_global, of_a_slice, before_its_argument_is_written, summed_up,
    with_its_value, with_aux, of_two_arguments, of_a_dict, of_a_mean, in_a_loop, pulled_back,
    pulled_back_twice, pulled_back_for_several, pulled_back_as_given,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_written_gradients(f):
    x = X.copy()
    value, expected = f(x), central_differences(f, X)
    assert_array_equal(x, X)
    for chunk in (1, 2, 3):
        found = fwdad.jacobian(f, x, mode="forward", chunk=chunk)
        assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    assert_allclose(fwdad.jacrev(f)(x), expected, rtol=1e-6, atol=1e-8)
    assert_allclose(fwdad.jit(f, backend="numpy")(x), value, rtol=1e-13)
    for transform in (fwdad.jacfwd, fwdad.jacrev):
        found = fwdad.jit(transform(f), backend="numpy")(x)
        assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    assert_array_equal(x, X)
    assert_array_equal(K, [1.0, 2.0, 3.0])


@pytest.mark.every(4, first=1)
@pytest.mark.parametrize("f", PROGRAMS)
def test_compiled(f):
    pytest.importorskip("numba")
    x, g = X.copy(), fwdad.jit(fwdad.jacrev(f))
    assert_allclose(fwdad.jit(f)(x), f(x), rtol=1e-13)
    assert_allclose(g(x), central_differences(f, X), rtol=1e-6, atol=1e-8)
    assert_array_equal(x, X)


@pytest.mark.parametrize("transform", [lambda f: f, lambda f: fwdad.jit(f, backend="numpy")])
def test_results_are_the_callers(transform):
    """Neither what was given, nor captured, nor read-only, nor one array twice."""
    b = K.copy()
    g = transform(fwdad.grad(lambda a, b: np.sum(a * b)))(X, b)
    assert not np.shares_memory(g, b)
    assert transform(fwdad.grad(lambda a: np.sum(a * K)))(X) is not K
    assert transform(fwdad.grad(np.mean))(X).flags.writeable
    d, e = transform(fwdad.grad(lambda a, b: np.sum((a + b) ** 2), argnums=(0, 1)))(X, X)
    assert not np.shares_memory(d, e)
    slope = transform(lambda x, v: fwdad.jvp(lambda a: a * K, x, v)[1])(X, b)
    assert slope.flags.writeable
    assert not np.shares_memory(transform(lambda x, v: fwdad.jvp(np.flip, x, v)[1])(X, b), b)
