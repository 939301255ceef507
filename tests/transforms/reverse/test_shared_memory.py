"""Arguments of a derivative that share memory: separate where read, refused where written."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import AliasedArgumentError, UntraceableError

X = np.array([0.5, 1.5, 2.0])
W = np.array([1.0, -2.0, 3.0])


def test_arguments_that_share_memory():
    """As Python runs them, not as if they were apart."""
    x = X.copy()

    def reads(a, b):
        return a * b[::-1]

    x_bar = fwdad.vjp(reads, x, args=(x[::-1],), argnums=(0, 1))[1](W)
    assert_allclose(x_bar, (X * W, (X * W)[::-1]))

    def writes(a, b):
        a[0] *= 5.0
        return a * b

    for other in (x, x[::-1], x[:3]):
        with pytest.raises(AliasedArgumentError):
            fwdad.vjp(writes, x, args=(other,))
    tied = fwdad.vjp(lambda p: p[0] * p[1], [x, x])[1](np.ones(3))
    assert_allclose(tied[0], 2 * X)


def scaled_first(a, b):
    """Reads b after a write into a, which may be the same memory."""
    a[0] = a[0] * b[1]
    return np.sum(a * b[0])


def by_grad(u, argnums):
    return fwdad.grad(scaled_first, argnums=argnums)(u, u[:2])


def by_vjp(u, argnums):
    return fwdad.vjp(scaled_first, u, args=(u[:2],), argnums=argnums)[1](1.0)


def by_jit(u, argnums):
    return fwdad.jit(fwdad.grad(scaled_first, argnums=argnums), backend="numpy")(u, u[:2])


def inside(u, argnums):
    gradient = fwdad.grad(scaled_first, argnums=argnums)
    return fwdad.jit(lambda u: gradient(u, u[:2]), backend="numpy")(u)


def under_jvp(u, argnums):
    return fwdad.jvp(lambda s: by_grad(u, argnums) * s, 1.0, 1.0)


@pytest.mark.parametrize("argnums", [0, 1])
@pytest.mark.parametrize("way", [by_grad, by_vjp, by_jit, inside, under_jvp])
def test_arguments_that_share_memory_and_are_written(way, argnums):
    """They would be apart in a derivative, and are one for the function: refused."""
    u = X.copy()
    errors = (AliasedArgumentError, UntraceableError)
    with pytest.raises(errors, match="share memory"):
        way(u, argnums)
    assert_array_equal(u, X)


@pytest.mark.parametrize("argnums", [0, 1])
def test_a_tape_for_arguments_apart_is_not_run_for_others(argnums):
    gradient = fwdad.jit(fwdad.grad(scaled_first, argnums=argnums), backend="numpy")
    b = X[:2].copy()
    for _ in range(3):  # the last by the shortest way
        expected = fwdad.grad(scaled_first, argnums=argnums)(X, b.copy())
        assert_allclose(gradient(X, b), expected, rtol=1e-15)
    with pytest.raises(AliasedArgumentError, match="share memory"):
        gradient(X, X[:2])


@pytest.mark.parametrize("argnums", [0, 1, (0, 1)])
def test_arguments_that_share_memory_and_are_read(argnums):
    """Each is an argument of its own; the caller may change them."""

    def f(a, b):
        return a[1:] * b * np.sin(b)

    u = X.copy()
    y, pullback = fwdad.vjp(f, u, args=(u[1:],), argnums=argnums)
    expected = fwdad.jacobian(f, X, args=(X[1:].copy(),), argnums=argnums, mode="forward")
    assert_allclose(y, f(X, X[1:]), rtol=1e-15)
    u[:] = 7.0
    both = expected if isinstance(argnums, tuple) else (expected,)
    for _ in range(2):
        found = pullback(W[:2])
        bars = found if isinstance(argnums, tuple) else (found,)
        for x_bar, jacobian in zip(bars, both, strict=True):
            assert_allclose(x_bar, W[:2] @ jacobian, rtol=1e-13)
